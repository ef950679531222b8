"""A run as people see it: in the terminal, and as one page that is safe to open and whole on a phone."""

from __future__ import annotations

import base64
import io
import itertools
import re
from html import unescape
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from quorum.agents.critics import VALIDATOR
from quorum.event_text import link_to
from quorum.graph.runs import RunFolder
from quorum.graph.trace import Trace, located
from quorum.page import page_of
from quorum.progress import Progress
from quorum.render import show_answer, show_report
from quorum.report import Report, report_of
from quorum.tools.results.files import write_result
from tests.browser import Browser
from tests.pages import alone
from tests.quorum.conftest import COLUMNS, HOSTILE, ROWS, SQL, VOTE, candidate, made, unfinished_run

NUMBERS = itertools.count()
RIVAL = "SELECT name, 1 AS avg FROM reviews"


def terminal(**how: Any) -> Console:
    return Console(file=io.StringIO(), width=140, highlight=False, **how)


def printed(console: Console) -> str:
    return console.file.getvalue()


def screen(answer: dict[str, Any], **how: Any) -> str:
    """An answer as the terminal shows it."""
    out = terminal(**how)
    show_answer(made(answer), out)
    return printed(out)


def timeline(report: Report, *, full: bool = False) -> str:
    """A run as the terminal shows it."""
    out = terminal()
    show_report(report, out, full=full)
    return printed(out)


def read(trace: Trace) -> Report:
    """The report of a run that is not written any more."""
    trace.close()
    return report_of(RunFolder(trace.folder))


def finished(workplace: Path, answer: dict[str, Any]) -> Report:
    trace = unfinished_run(workplace, f"run-{next(NUMBERS)}")
    trace.finish(answer)
    return read(trace)


def both(workplace: Path, answer: dict[str, Any]) -> tuple[str, str]:
    """An answer on the terminal and, unescaped, on its page."""
    return screen(answer), unescape(page_of(finished(workplace, answer)))


@pytest.fixture
def report(run: Trace) -> Report:
    return report_of(RunFolder(run.folder))


@pytest.fixture
def html(report: Report) -> str:
    return page_of(report)


# A run


def test_a_run_without_an_answer_shows_what_it_has_and_how_to_go_on(workplace: Path) -> None:
    report = read(unfinished_run(workplace, "killed"))
    assert report.usage["model_calls"] == 3
    assert report.accounts["agent"]["action"]["queries"] == 2
    assert "quorum ask --resume killed" in timeline(report)
    assert "no answer yet" in page_of(report)
    trace = unfinished_run(workplace, "down")
    trace.record("failed", agent="run", message=f"The endpoint is down {HOSTILE}")
    trace.flush()
    report = report_of(RunFolder(trace.folder))
    for text in (timeline(report), page_of(report)):
        assert "it failed: The endpoint is down" in text
        assert "quorum ask --resume down" in text
        assert "\x1b" not in text
    trace.record("begun", agent="run", run="down", resumed=True)
    report = read(trace)
    assert report.error == ""
    assert "goes on with down" in report.sections[0].entries[-1].step.gist


def test_the_terminal_shows_decisions_errors_sql_and_rows_but_no_escapes(report: Report) -> None:
    report.options.update(votes=None, recipe="recap", models=["a", "b"], database=["sample", "crm.duckdb"])
    report.sections[1].outcome.repairs = 1
    assert [(voice.id, cluster) for voice, cluster in report.voices] == [("c1", 1), ("c2", 1), ("c3", 2)]
    text = timeline(report)
    for part in (
        SQL,
        "column not found: no column ratng",
        "repairs it: misspelt",
        "database sample, crm.duckdb · recipe recap · models a, b",
        "results differ: 33 % for candidate 3 against 67 % for candidates 1, 2",
        "Candidate 1 · openai:a · 1 repair\n",
    ):
        assert part in text
    for part in ("rules rules", "\x1b", "\u202e", "votes None"):
        assert part not in text
    assert timeline(report, full=True).count("rules rules") > 3


def test_terminal_and_page_say_where_a_step_comes_from(workplace: Path) -> None:
    trace = unfinished_run(workplace, "placed")
    code, declared, prompt = "graph/nodes/winner.py:40", VALIDATOR.declared, "agents/prompts/validator.md"
    with located(node="validate_winner", recipe="quorum", code=code, task="1"):
        trace.record("validation", agent="validator", candidate="c1", accepted=True, objection="")
    report = read(trace)
    said = f"validate_winner · quorum · {code} · {declared} · {prompt}"
    assert f"the result can be the answer {said}" in " ".join(timeline(report, full=True).split())
    assert f"the result can be the answer  {code} · {declared}\n" in timeline(report)
    html = page_of(report)
    assert html.count(said) == 1
    for place in (code, declared):
        assert f'<a href="{link_to(place)}">{place}</a>' in html
    assert "<summary>node</summary>" not in html


def test_a_second_round_stands_below_the_vote_that_called_for_it(workplace: Path) -> None:
    trace = unfinished_run(workplace, "twice")
    probe = "SELECT DISTINCT rating FROM films LIMIT 20"
    about = {"purpose": "What ratings are there?", "sql": probe, "text": "rating", "corrected": False}
    for name in ("c3", "c4"):
        trace.record("finding", agent="column_explorer", candidate=name, **about)
        trace.record("model_retry", agent="run", model="openai:a", reason="slow", wait=1.0)
    trace.record("vote", agent="consensus", **VOTE)
    report = read(trace)
    titles = [section.title for section in report.sections]
    rounds = ["Candidate 1", "Candidate 2", "Vote", "Candidate 3", "Candidate 4"]
    assert titles == ["Preparation", *rounds, "Vote and answer"]
    text, tally = timeline(report), "for candidates 1, 2"
    assert text.count(probe) == 2, "what was explored is shown, and by whom"
    assert text.index(tally) < text.index("Candidate 3\n") < text.rindex(tally)
    assert page_of(report).index("candidate-c2") < page_of(report).index('id="candidate-c3"')


def test_a_repair_shows_what_it_changed_or_that_it_changed_nothing(workplace: Path) -> None:
    trace = unfinished_run(workplace, "repaired")
    trace.record("sql_review", agent="sql_critique", candidate="c1", correct=False, reasoning="No.", sql=SQL)
    report = read(trace)
    (repair,) = [entry for entry in report.sections[1].entries if entry.step.kind == "refinement"]
    (diff,) = [detail for detail in repair.details if detail.kind == "diff"]
    assert repair.is_telling(diff)
    assert ["-", "  ratng"] in diff.rows
    assert ["+", "  AVG(rating)"] in diff.rows
    html = page_of(report)
    assert '<span class="cut">-   ratng</span>' in html
    assert html.count("the query stays as it was") == 1


def test_progress_has_a_line_for_each_step_and_for_failed_calls(run: Trace) -> None:
    out, quiet = terminal(), terminal()
    with Progress(out) as progress, Progress(quiet, quiet=True) as silent:
        for event in run.events():
            progress(event)
            silent(event)
    lines = printed(out).splitlines()
    assert len(lines) == sum(e["kind"] != "model_call" for e in run.events())
    assert sum("column not found" in line for line in lines) == 2
    assert (progress.calls, progress.tokens) == (3, 3 * 1280)
    assert "\x1b" not in printed(out)
    assert printed(quiet) == ""


# An answer


def test_what_is_assumed_open_missing_and_left_out_is_shown(workplace: Path, answer: dict[str, Any]) -> None:
    said: dict[str, Any] = {"assumptions": ["May is 2024-05."], "summary": "Chairs lead."}
    said |= {"readings": [{"says": "Paid orders."}], "row_count": 100_000, "truncated": True}
    for text in both(workplace, answer | said):
        plain = " ".join(re.sub(r"<[^>]+>", " ", text).split())
        assert re.search(r"It assumes:? May is 2024-05\.", plain)
        assert re.search(r"The question could also mean:? Paid orders\.", plain)
        assert "Chairs lead." in plain
        assert "the first 2 of 100,000 rows; cut off at the limit" in plain
    for text in both(workplace, answer | {"status": "unanswerable", "missing": "There is no NPS."}):
        assert "The data cannot answer this" in text
        assert "There is no NPS." in text


def test_low_confidence_looks_low(workplace: Path, answer: dict[str, Any]) -> None:
    answer |= {"confidence": 0.27, "grounds": "ran; 1 candidate gives another answer"}
    text = screen(answer, force_terminal=True, color_system="standard")
    assert "probably wrong (27 %)\x1b[0m: ran; 1 candidate gives another answer" in text
    assert "\x1b[1;31mAnswer of low confidence\x1b" in text
    html = page_of(finished(workplace, answer))
    assert '<span class="badge bad">Answer of low confidence</span>' in html
    assert '<div class="v bad">probably wrong (27 %)</div>' in html.replace("\u00a0", " ")


# The page


def test_the_page_holds_the_whole_story_escapes_it_and_asks_for_nothing(html: str, root: Path) -> None:
    page = alone(html, "#", f"{root.as_uri()}/")  # a person follows links to the code, never the page
    assert not re.search(r"https?://", html)
    shown = ("2 of 3 candidates agree; 1 differs", "67 %", "SelfRefiner", "1,200", *COLUMNS)
    for part in (*shown, ">prompt</summary>", ">reply</summary>"):
        assert part in html
    assert html.count("&lt;script&gt;") >= 6  # question, prompt, reply, error, rows, answer
    assert not set(html) & set("\x1b\u202e")
    links = {address for address in page.addresses if address.startswith("#")}
    assert links == {"#candidate-c1", "#candidate-c2", "#candidate-c3"}
    assert {"candidate-c1", "candidate-c2"} <= set(page.ids)


def test_each_answer_of_the_vote_stands_beside_it_with_its_sql_and_rows(
    workplace: Path, answer: dict[str, Any]
) -> None:
    trace = unfinished_run(workplace, "rivals")
    rival = {"sql": RIVAL, "columns": COLUMNS, "row_count": 1, "preview": [["x", 9]]}
    trace.record("result", agent="action", candidate="c3", **rival)
    first, third = candidate("c0", superseded=True), candidate("c3", sql=RIVAL, row_count=1)
    trace.finish(answer | {"candidates": [first, candidate("c1"), candidate("c2"), third]})
    report = read(trace)
    standings = [(each.candidates, each.sql) for each in report.standings]
    assert standings == [(["c1", "c2"], SQL), (["c3"], RIVAL)]
    vote = page_of(report).partition("<h2>Vote</h2>")[2].partition("<h2>Cost")[0]
    text = re.sub(r"<[^>]+>", "", vote)
    assert "Result 2 33 % of the vote, 1 row, from candidate 3" in text
    assert RIVAL in text
    assert SQL not in text  # it stands above
    assert '<td class=" num">9</td>' in vote
    assert text.count("nothing: a second round voted") == 1
    lacking = candidate("c3", sql="", error="No NPS.", error_kind="unanswerable", row_count=None)
    html = page_of(finished(workplace, answer | {"candidates": [candidate("c1"), candidate("c2"), lacking]}))
    text = re.sub(r"<[^>]+>", "", html.partition("<h2>Vote</h2>")[2])
    assert "Result 2 33 % of the vote, no result, from candidate 3" in text
    assert "no answer: the data lacks it" in text


def test_rows_that_have_a_shape_for_it_are_drawn(workplace: Path, answer: dict[str, Any]) -> None:
    pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")
    trace = unfinished_run(workplace, "drawn")
    table = pa.table({"city": [f"<b>{n}</b>" for n in range(30)], "orders": range(30)})
    kept = write_result(table, trace.folder / "results")
    trace.finish(answer | {"result_file": f"/moved/{kept.name}", "row_count": 30})
    report = read(trace)
    (image,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)">', page_of(report))
    assert b"<svg" in base64.b64decode(image[0], validate=True)
    assert image[1] == "orders by city, 24 rows"
    assert "orders by city, 24 rows; the first 24 of 30 rows</figcaption>" in page_of(report)
    assert "<img" not in page_of(report, charts=False)
    kept.unlink()
    assert "No chart: The result " in page_of(report)
    plain = page_of(finished(workplace, answer | {"columns": ["n"], "rows": [[1]], "row_count": 1}))
    assert "<img" not in plain
    assert "No chart" not in plain


# In a browser


OPEN = "document.querySelectorAll('details').forEach(part => part.open = true)"


@pytest.mark.heavy
@pytest.mark.parametrize("width", [420, 1300])
def test_nothing_is_cut(browser: Browser, workplace: Path, answer: dict[str, Any], width: int) -> None:
    many = [candidate(f"c{n}", model="openai:gpt-4.1-2025-04-14", error="x" * 300) for n in range(1, 9)]
    wordy = {"readings": [{"says": "y" * 300}], "disagreement": ["z" * 300], "sql": f"SELECT '{'w' * 400}'"}
    page = workplace / "page.html"
    page.write_text(page_of(finished(workplace, answer | wordy | {"candidates": many})))
    visit = browser.visit(page, width=width, script=OPEN)
    assert (visit.messages, visit.requests, visit.width, visit.cut) == ([], [], width, [])


@pytest.mark.heavy
def test_the_search_shows_the_steps_that_hold_its_words(browser: Browser, html: str, workplace: Path) -> None:
    page = workplace / "page.html"
    page.write_text(html)
    typed = "document.querySelector('.search').dispatchEvent(new Event('input'))"

    def found(words: str) -> str:
        script = f"document.querySelector('.search').value = {words!r}; {typed}"
        return browser.visit(page, script=script).text.partition("EVERY STEP")[2]

    before = browser.visit(page).text
    for wanted, there, gone in (
        ("MISSPELT", "SelfRefiner", "Planner"),
        ("rules rules", "rules rules", "SelfRefiner"),
    ):
        assert gone in before
        assert (there in found(wanted), gone in found(wanted)) == (True, False)
    assert "Candidate 1" not in found("no such words")


def test_what_a_database_says_runs_no_script(browser: Browser, workplace: Path, html: str) -> None:
    page = workplace / "page.html"
    page.write_text(html.replace("<main>", "<main><script>document.title = 'taken'</script>"))
    visit = browser.visit(page)
    assert any("Content Security Policy" in message for message in visit.messages)
    assert HOSTILE.partition("\x1b")[0] in visit.text
    assert str(ROWS[0][1]) in visit.text
