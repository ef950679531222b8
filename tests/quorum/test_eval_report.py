"""``quorum eval report``: what goes where, and what it says when something is wrong."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from tests.evals.evaluations import asked, manifest, record, write


def quorum(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["eval", "report", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def evaluation(workplace: Path) -> Path:
    questions = [asked("a"), asked("b")]
    return write(workplace / "run", manifest(questions), [record("a"), record("b", match=False)])


def test_markdown_goes_to_standard_output(evaluation: Path) -> None:
    result = quorum(evaluation)
    assert result.exit_code == 0
    assert result.stdout.startswith("# 1 evaluation\n")
    assert "| all questions asked for | 1 | 2 | 50.0 |" in result.stdout


def test_json_is_a_list_of_summaries_and_nothing_else(evaluation: Path) -> None:
    (found,) = json.loads(quorum(evaluation, "--json").stdout, parse_constant=pytest.fail)
    assert (found["suite"], found["overall"]["ex"]["share"]) == ("shops", 0.5)
    assert found["folders"] == ["run"]


def test_a_file_is_written_instead(evaluation: Path, workplace: Path) -> None:
    result = quorum(evaluation, "--out", workplace / "new" / "report.md")
    assert (result.stdout, result.exit_code) == ("", 0)
    assert (workplace / "new" / "report.md").read_text(encoding="utf-8") == quorum(evaluation).stdout
    quorum(evaluation, "--json", "--out", workplace / "report.json")
    assert len(json.loads((workplace / "report.json").read_text(encoding="utf-8"))) == 1


def test_the_page_is_written_where_it_is_wanted(
    evaluation: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = {}
    page = SimpleNamespace(
        write_page=lambda found, path: written.update({path: [each.name for each in found]})
    )
    monkeypatch.setitem(sys.modules, "quorum.evals.reports.page", page)  # type: ignore[arg-type]
    result = quorum(evaluation, "--html", workplace / "page.html")
    assert written == {workplace / "page.html": ["run"]}
    assert (result.stdout, result.exit_code) == ("", 0)
    assert json.loads(quorum(evaluation, "--html", workplace / "page.html", "--json").stdout)


def test_what_is_wrong_is_said(evaluation: Path, workplace: Path) -> None:
    missing = quorum(workplace / "nothing")
    assert missing.exit_code == 2
    assert "There is no folder" in missing.stderr
    (workplace / "empty").mkdir()
    assert "holds no evaluation: it has no eval.json" in quorum(workplace / "empty").stderr
    (evaluation / "results.jsonl").write_text("{}\n", encoding="utf-8")
    assert "Line 1 of" in quorum(evaluation).stderr
    (evaluation / "results.jsonl").write_text("", encoding="utf-8")
    unwritable = quorum(evaluation, "--out", evaluation)
    assert unwritable.exit_code == 2
    assert "is a folder, not a file" in unwritable.stderr
    assert quorum().exit_code == 2
