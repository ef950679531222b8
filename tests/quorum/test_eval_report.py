"""``quorum eval report``: what goes where, and what it says when something is wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from quorum.graph.trace import Trace
from tests.evals.evaluations import asked, manifest, record, write


def quorum(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["eval", "report", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def evaluation(workplace: Path) -> Path:
    questions = [asked("a"), asked("b")]
    return write(workplace / "run", manifest(questions), [record("a"), record("b", match=False)])


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pages without plots: drawing takes time."""
    monkeypatch.setattr("quorum.evals.reports.report.plots_of", lambda summary: [])


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


@pytest.mark.usefixtures("undrawn")
def test_the_page_links_every_question_to_its_trace(workplace: Path, run: Trace) -> None:
    folder = workplace / "run"
    records = [record(id, run=f"runs/{id}") for id in "abc"]
    write(folder, manifest([asked(id) for id in "abc"]), records)
    for id in "ab":
        shutil.copytree(run.folder, folder / "runs" / id)
    assert quorum(folder, "--html", "without.html", "--no-traces").exit_code == 0
    assert "trace.html" not in Path("without.html").read_text(encoding="utf-8")
    result = quorum(folder, "--html", "page.html")
    assert (result.stdout, result.exit_code) == ("", 0)
    assert "Question c has no trace to link to. " in result.stderr
    links = re.findall(r'href="([^"]+)"', Path("page.html").read_text(encoding="utf-8"))
    assert links == ["run/runs/a/trace.html", "run/runs/b/trace.html"]
    first, second = (Path(link) for link in links)
    assert "<title>What is the average rating?" in first.read_text(encoding="utf-8")
    first.write_text("as new as the run")
    second.write_text("old")
    os.utime(second, (1, 1))
    quorum(folder, "--html", "page.html")
    assert first.read_text() == "as new as the run"
    assert second.read_text(encoding="utf-8") != "old"


@pytest.mark.usefixtures("undrawn")
def test_runs_without_a_trace_are_told_in_one_line(workplace: Path) -> None:
    records = [record(id, run=f"runs/{id}") for id in "abcdefg"]
    folder = write(workplace / "run", manifest([asked(id) for id in "abcdefg"]), records)
    result = quorum(folder, "--html", "page.html")
    assert result.exit_code == 0
    assert result.stderr.count("no trace to link to") == 1
    assert "7 questions have no trace to link to (a, b, c, d, e, …). " in result.stderr


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
