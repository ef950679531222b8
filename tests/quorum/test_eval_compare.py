"""``quorum eval compare``: what it prints, what it writes, and where its links lead."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any
from urllib.parse import unquote

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from quorum.graph.trace import Trace
from tests.evals.evaluations import asked, manifest, record, write
from tests.quorum.conftest import HOSTILE

IDS = "abcd"


def quorum(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["eval", "compare", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def evaluation(folder: Path, right: str, answer: dict[str, Any], *, traced: str = IDS, **values: Any) -> Path:
    """An evaluation with the traces of its runs."""
    records = [record(id, match=id in right, reason="" if id in right else HOSTILE) for id in IDS]
    write(folder, manifest([asked(id) for id in IDS], **values), records)
    for id in traced:
        trace = Trace.create(folder, id, {"question": f"What is {id}?", "options": {}})
        trace.finish(answer)
        trace.close()
    return folder


@pytest.fixture
def pair(workplace: Path, answer: dict[str, Any]) -> tuple[Path, Path]:
    return (
        evaluation(workplace / "evals" / "base # 1", "ab", answer),
        evaluation(workplace / "evals" / "new", "bcd", answer),
    )


def test_it_prints_markdown_for_the_terminal(pair: tuple[Path, Path]) -> None:
    result = quorum(*pair)
    assert result.exit_code == 0
    assert result.stdout.startswith(r"# shops: base \# 1 against new")
    assert "+25.0 percentage points" in result.stdout
    assert "Gained: B is right, A is not (2 questions)" in result.stdout
    assert "\x1b" not in result.stdout
    assert not list(pair[0].rglob("trace.html"))  # nothing is written unasked


def test_json_is_one_object_and_nothing_else(pair: tuple[Path, Path], workplace: Path) -> None:
    result = quorum(*pair, "--json", "--html", "page.html")
    found = json.loads(result.stdout)
    assert (found["gained"], found["lost"], found["compared"]) == (2, 1, 4)
    assert found["flips"][0]["a"]["run"] == "runs/a"
    assert str(workplace) not in result.stdout
    assert (workplace / "page.html").is_file()


def test_the_page_links_to_the_traces_of_both_sides(pair: tuple[Path, Path], workplace: Path) -> None:
    result = quorum(*pair, "--html", "out/page.html")
    assert result.exit_code == 0
    assert "Written: out/page.html" in result.stderr
    html = (workplace / "out" / "page.html").read_text()
    links = re.findall(r'href="([^"]+)"', html)
    assert len(links) == 2 * 3  # both sides of a, c, d
    for link in links:
        target = (workplace / "out" / unquote(link)).resolve()
        assert "<title>What is" in target.read_text()
        assert "#" not in link
    assert {Path(unquote(link)).parts[-4] for link in links} == {"base # 1", "new"}
    assert not (pair[0] / "runs" / "b" / "trace.html").exists()  # b did not flip
    assert str(workplace) not in html


def test_the_page_is_one_file_and_escapes_what_others_say(pair: tuple[Path, Path], workplace: Path) -> None:
    quorum(*pair, "--html", "page.html")
    html = (workplace / "page.html").read_text()
    assert "default-src 'none'; style-src 'unsafe-inline'" in html
    assert "<script" not in html
    assert "&lt;script&gt;" in html
    assert "\x1b" not in html
    assert not re.search(r"""url\(|@import|src=|https?://""", html)


def test_markdown_links_from_where_it_lies(pair: tuple[Path, Path], workplace: Path) -> None:
    quorum(*pair, "--out", "notes/pull.md")
    text = (workplace / "notes" / "pull.md").read_text()
    links = re.findall(r"\[trace\]\(([^)]+)\)", text)
    assert len(links) == 6
    assert all((workplace / "notes" / unquote(link)).is_file() for link in links)
    assert "```sql" in text
    assert str(workplace) not in text


def test_a_run_without_a_trace_is_told_and_not_linked(workplace: Path, answer: dict[str, Any]) -> None:
    one = evaluation(workplace / "one", "ab", answer, traced="a")
    two = evaluation(workplace / "two", "b", answer, traced="")
    result = quorum(one, two, "--html", "page.html")
    assert result.exit_code == 0
    assert "Question a has no trace to link to" in result.stderr
    links = re.findall(r'href="([^"]+)"', (workplace / "page.html").read_text())
    assert links == ["one/runs/a/trace.html"]


def test_other_suites_cannot_be_compared(workplace: Path, answer: dict[str, Any]) -> None:
    one = evaluation(workplace / "one", "a", answer)
    two = evaluation(workplace / "two", "a", answer, suite="other")
    result = quorum(one, two, "--json")
    assert result.exit_code == 2
    assert json.loads(result.stdout)["error"]["kind"] == "ConfigurationError"
    assert "different suites" in result.stderr


def test_a_folder_without_an_evaluation_is_named(pair: tuple[Path, Path]) -> None:
    Path("empty").mkdir()
    Path("file").touch()
    for name, said in {
        "nowhere": "There is no folder nowhere.",
        "empty": "empty holds no evaluation",
        "file": "file is a file, not a folder.",
    }.items():
        result = quorum(pair[0], name)
        assert result.exit_code == 2
        assert said in result.stderr


def test_a_page_that_cannot_be_written_ends_with_a_hint(pair: tuple[Path, Path], workplace: Path) -> None:
    (workplace / "file").write_text("")
    result = quorum(*pair, "--html", "file/page.html")
    assert result.exit_code == 2
    assert "file is a file, not a folder. Name another file to write." in result.stderr
