"""A run's page: the whole story, safe to open, and whole on a phone."""

from __future__ import annotations

import base64
import hashlib
import io
import itertools
import re
from collections.abc import Iterator
from html import unescape
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from rich.console import Console

from quorum.graph.runs import RunFolder
from quorum.graph.strategies import STRATEGIES, strategy_words
from quorum.graph.trace import Trace
from quorum.page import page_of
from quorum.render import show_answer
from quorum.report import Report, report_of
from quorum.tools.results.files import write_result
from tests.browser import Browser, find_browser, running_browser
from tests.quorum.conftest import COLUMNS, HOSTILE, ROWS, SQL, VOTE, candidate, made, unfinished_run

LONG = "SELECT name, AVG(rating) FROM reviews WHERE rating > 1 AND city = 'a' GROUP BY name ORDER BY 1, 2"
NUMBERS = itertools.count()
RIVAL = "SELECT name, 1 AS avg FROM reviews"


class _Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.addresses: list[str] = []
        self.ids: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.addresses += [
            value or "" for name, value in attributes if name in ("src", "href", "action", "data")
        ]
        self.ids += [value or "" for name, value in attributes if name == "id"]


@pytest.fixture
def report(run: Trace) -> Report:
    return report_of(RunFolder(run.folder))


@pytest.fixture
def html(report: Report) -> str:
    return page_of(report)


def finished(workplace: Path, answer: dict[str, Any]) -> str:
    trace = unfinished_run(workplace, f"told-{next(NUMBERS)}")
    trace.finish(answer)
    trace.close()
    return page_of(report_of(RunFolder(trace.folder)))


def test_the_page_is_one_file_without_requests_and_runs_its_search_alone(html: str) -> None:
    page = _Page(html)
    assert not set(page.tags) & {"link", "iframe", "object", "embed", "form", "base"}
    assert all(address.startswith(("#", "data:image/svg+xml;base64,")) for address in page.addresses)
    assert not re.search(r"url\(|@import|https?://", html)
    (script,) = re.findall(r"<script>(.*?)</script>", html, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    policy = f"default-src 'none'; style-src 'unsafe-inline'; img-src data:; script-src 'sha256-{digest}'"
    assert f'http-equiv="Content-Security-Policy" content="{policy}"' in html


def test_the_page_escapes_what_databases_and_models_say(html: str) -> None:
    assert html.count("<script>") == 1
    assert html.count("&lt;script&gt;") >= 6  # question, prompt, reply, error, rows, answer
    assert "\x1b" not in html
    assert "\u202e" not in html


def test_the_page_holds_the_whole_story(html: str) -> None:
    for part in (
        "2 of 3 candidates agree; 1 differs",
        "67 %",
        "SelfRefiner",
        ">prompt</summary>",
        ">reply</summary>",
        "1,200",
        *COLUMNS,
    ):
        assert part in html


def test_a_candidate_of_a_round_that_was_set_aside_is_said_to_have_no_vote(
    workplace: Path, answer: dict[str, Any]
) -> None:
    first = candidate("c0", superseded=True)
    html = finished(workplace, answer | {"candidates": [first, *answer["candidates"]]})
    assert html.count("nothing: a second round voted") == 1
    assert "2 of 3 candidates agree; 1 differs" in html


def test_sql_is_laid_out_as_in_the_terminal(workplace: Path, answer: dict[str, Any]) -> None:
    html = re.sub(r"<[^>]+>", "", finished(workplace, answer | {"sql": LONG}))
    assert "SELECT\n  name,\n  AVG(rating)" in html
    assert LONG not in html


def test_sql_of_a_dialect_that_is_not_known_stays_as_it_is(workplace: Path, answer: dict[str, Any]) -> None:
    trace = Trace.create(workplace / ".quorum", "strange", {"question": "?"})
    trace.record("schema", agent="catalog", database="shop", dialect="cobol", tables=1, tokens=1, left_out=[])
    trace.record("writing", agent="sql_writer", candidate="c1", sql=LONG)
    trace.record("refinement", agent="self_refiner", candidate="c1", sql=SQL, explanation="Shorter.")
    trace.finish(answer | {"sql": LONG, "dialect": "cobol"})
    trace.close()
    report = report_of(RunFolder(trace.folder))
    assert report.answer is not None
    assert report.answer.sql == LONG
    assert LONG in unescape(re.sub(r"<[^>]+>", "", page_of(report)))
    show_answer(report.answer, Console(file=io.StringIO()))


def test_each_answer_of_the_vote_stands_beside_it_with_its_sql_and_rows(
    workplace: Path, answer: dict[str, Any]
) -> None:
    trace = unfinished_run(workplace, "told")
    trace.record(
        "result", agent="action", candidate="c3", sql=RIVAL, columns=COLUMNS, row_count=1, preview=[["x", 9]]
    )
    trace.finish(
        answer | {"candidates": [candidate("c1"), candidate("c2"), candidate("c3", sql=RIVAL, row_count=1)]}
    )
    trace.close()
    report = report_of(RunFolder(trace.folder))
    assert [(each.candidates, each.sql) for each in report.standings] == [
        (["c1", "c2"], SQL),
        (["c3"], RIVAL),
    ]
    vote = page_of(report).partition("<h2>Vote</h2>")[2].partition("<h2>Time</h2>")[0]
    text = re.sub(r"<[^>]+>", "", vote)
    assert "Result 2 33 % of the vote, 1 row, from candidate 3" in text
    assert RIVAL in text
    assert SQL not in text  # it stands above
    assert '<td class=" num">9</td>' in vote


def test_candidates_in_the_vote_link_to_their_steps(html: str) -> None:
    page = _Page(html)
    links = {address for address in page.addresses if address.startswith("#")}
    assert links == {"#candidate-c1", "#candidate-c2", "#candidate-c3"}
    assert {"candidate-c1", "candidate-c2"} <= set(page.ids)


def test_a_repair_shows_what_it_changed(report: Report, html: str) -> None:
    (repair,) = [entry for entry in report.sections[1].entries if entry.step.kind == "refinement"]
    (diff,) = [detail for detail in repair.details if detail.kind == "diff"]
    assert repair.is_telling(diff)
    assert ["-", "  ratng"] in diff.rows
    assert ["+", "  AVG(rating)"] in diff.rows
    assert '<span class="cut">-   ratng</span>' in html


def test_a_repair_that_changes_nothing_says_so(workplace: Path) -> None:
    trace = unfinished_run(workplace, "told")
    trace.record("sql_review", agent="sql_critique", candidate="c1", correct=False, reasoning="No.", sql=SQL)
    trace.flush()
    html = page_of(report_of(RunFolder(trace.folder)))
    trace.close()
    assert html.count("the query stays as it was") == 1


def test_calls_that_failed_and_the_wait_after_them_are_drawn(workplace: Path, answer: dict[str, Any]) -> None:
    trace = unfinished_run(workplace, "told")
    lost = {"agent": "action", "candidate": "c1", "model": "openai:a", "reason": "429"}
    trace.record("model_retry", **lost, seconds=0.5, wait=2.0)
    trace.record("model_failed", **lost, seconds=0.5)
    trace.finish(answer | {"usage": answer["usage"] | {"seconds": 10.0}})
    trace.close()
    html = page_of(report_of(RunFolder(trace.folder)))
    widths = re.findall(r'<i class="(lost|wait)" style="left: [\d.]+%; width: ([\d.]+)%"', html)
    assert ("wait", "20.000") in widths
    assert widths.count(("lost", "5.000")) == 2
    assert "failed call</span>" in html
    assert "waiting to try again</span>" in html


@pytest.mark.parametrize("name", STRATEGIES)
def test_a_word_on_how_the_vote_was_counted(workplace: Path, answer: dict[str, Any], name: str) -> None:
    assert len(strategy_words(name)) > 20
    html = finished(workplace, answer | {"vote": VOTE | {"strategy": name}})
    assert f"<code>{name}</code>: {strategy_words(name)}" in html.replace("&#39;", "'")


def test_readings_assumptions_and_what_is_missing_are_shown(workplace: Path, answer: dict[str, Any]) -> None:
    said = {
        "readings": [{"says": "Paid orders."}],
        "assumptions": ["May is 2024-05."],
        "summary": "Chairs lead.",
    }
    html = finished(workplace, answer | said)
    for head, text in (("The question could also mean", "Paid orders."), ("It assumes", "May is 2024-05.")):
        assert re.search(rf"{head}</p><ul class=\"notes \"><li>{text}", html)
    assert '<p class="says">Chairs lead.</p>' in html
    assert "cannot answer this" in finished(
        workplace, answer | {"status": "unanswerable", "missing": "No NPS."}
    )


def test_what_is_outvoted_by_what_is_missing_is_not_called_the_answer(
    workplace: Path, answer: dict[str, Any]
) -> None:
    assert ">The answer</b>" in finished(workplace, answer | {"vote": VOTE})
    nobody = {"status": "unanswerable", "missing": "No NPS.", "vote": VOTE | {"winner": None}}
    html = finished(workplace, answer | nobody)
    assert ">The answer</b>" not in html
    assert '<span class="good">the answer</span>' not in html


def test_the_badge_follows_the_confidence(workplace: Path, answer: dict[str, Any]) -> None:
    sure = finished(workplace, answer | {"confidence": 0.8})
    assert '<span class="badge good">Answer</span>' in sure
    low = finished(workplace, answer | {"confidence": 0.27})
    assert '<span class="badge bad">Answer of low confidence</span>' in low
    assert '<div class="v bad">probably wrong (27\u00a0%)</div>' in low


def test_equal_failures_are_told_once_on_the_page(workplace: Path, answer: dict[str, Any]) -> None:
    failed = [candidate(f"c{n}", sql="", error="The model refused.", row_count=None) for n in range(1, 10)]
    nothing = {
        "status": "no_answer",
        "sql": "",
        "columns": [],
        "rows": [],
        "vote": None,
        "candidates": failed,
    }
    html = finished(
        workplace, answer | nothing | {"warnings": ["No candidate has a result: The model refused."]}
    )
    assert html.count("The model refused.") == 1
    assert "<b>candidates 1 to 9</b>: The model refused." in html


def test_rows_that_have_a_shape_for_it_are_drawn(workplace: Path, answer: dict[str, Any]) -> None:
    pytest.importorskip("vl_convert", reason="the extra quorum-sql[plots] is not installed")
    trace = unfinished_run(workplace, "drawn")
    table = pa.table({"city": [f"<b>{n}</b>" for n in range(30)], "orders": range(30)})
    kept = write_result(table, trace.folder / "results")
    trace.finish(answer | {"result_file": f"/moved/{kept.name}", "row_count": 30})
    trace.close()
    report = report_of(RunFolder(trace.folder))
    (image,) = re.findall(r'<img src="data:image/svg\+xml;base64,([^"]+)" alt="([^"]+)">', page_of(report))
    assert b"<svg" in base64.b64decode(image[0], validate=True)
    assert image[1] == "orders by city, 24 rows"
    assert "orders by city, 24 rows; the first 24 of 30 rows</figcaption>" in page_of(report)
    assert "<img" not in page_of(report, charts=False)
    kept.unlink()
    assert "No chart: The result " in page_of(report)


def test_rows_without_a_shape_are_not_drawn(workplace: Path, answer: dict[str, Any]) -> None:
    html = finished(workplace, answer | {"columns": ["n"], "rows": [[1]], "row_count": 1})
    assert "<img" not in html
    assert "No chart" not in html


def test_a_single_candidate_has_no_vote_and_a_clarified_question_says_so(
    workplace: Path, answer: dict[str, Any]
) -> None:
    one = {"candidates": ["c1"], "share": 1.0, "weight": 1.0, "key": "a"}
    alone = {"candidates": [candidate("c1")], "vote": VOTE | {"clusters": [one]}}
    meant = "What is the average rating of films?"
    html = finished(workplace, answer | alone | {"question": meant})
    assert "one query, no vote" in html
    assert '<div class="bar">' not in html
    assert "of the vote" not in html
    assert f"<h1>{meant}</h1>" in html
    assert re.search(r"Asked as: What is the average rating\? ", html)


def test_the_head_names_the_database_and_a_call_has_two_links(workplace: Path, report: Report) -> None:
    report.options["database"] = ["sample", "crm.duckdb"]
    html = page_of(report)
    assert " · database sample, crm.duckdb" in html
    calls = [entry for section in report.sections for entry in section.entries if entry.is_low_level]
    assert {
        tuple(each.label for each in entry.details) for entry in calls if entry.step.kind == "model_call"
    } == {("prompt", "reply")}


def test_values_stand_in_tables_as_people_read_them(workplace: Path, answer: dict[str, Any]) -> None:
    shown = {
        "columns": ["month", "total", "region"],
        "types": ["timestamp[us]", "decimal128(38, 2)", "string"],
        "rows": [["2024-01-01 00:00:00", 3444.0, "NULL"], ["2024-02-01 00:00:00", 0.5, None]],
    }
    for text in (finished(workplace, answer | shown), terminal_text(answer | shown)):
        for part in ("2024-01", "3,444.00", "0.50"):
            assert part in text
        assert "00:00:00" not in text.partition("<h2>Every step")[0]
        assert unescape(text).count('"NULL"') == 1


def terminal_text(answer: dict[str, Any]) -> str:
    out = Console(file=io.StringIO(), width=140)
    show_answer(made(answer), out)
    assert isinstance(out.file, io.StringIO)
    return out.file.getvalue()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    path = find_browser()
    if not path:
        pytest.skip("no Chromium is on the PATH (Debian: apt-get install chromium)")
    with running_browser(path) as running:
        yield running


OPEN = "document.querySelectorAll('details').forEach(part => part.open = true)"


@pytest.mark.heavy
@pytest.mark.parametrize("width", [420, 1300])
def test_nothing_is_cut(browser: Browser, workplace: Path, answer: dict[str, Any], width: int) -> None:
    many = [candidate(f"c{n}", model="openai:gpt-4.1-2025-04-14", error="x" * 300) for n in range(1, 9)]
    wordy = {
        "readings": [{"says": "y" * 300, "sql": ""}],
        "disagreement": ["z" * 300],
        "sql": f"SELECT '{'w' * 400}'",
    }
    (workplace / "page.html").write_text(finished(workplace, answer | wordy | {"candidates": many}))
    visit = browser.visit(workplace / "page.html", width=width, script=OPEN)
    assert (visit.messages, visit.requests, visit.width, visit.cut) == ([], [], width, [])


@pytest.mark.heavy
def test_the_search_shows_the_steps_that_hold_its_words(browser: Browser, html: str, workplace: Path) -> None:
    page = workplace / "page.html"
    page.write_text(html)
    search = "{{ const it = document.querySelector('.search'); it.value = '{}'; it.dispatchEvent({}) }}"
    cases = (("MISSPELT", "SelfRefiner", "Planner"), ("rules rules", "rules rules", "SelfRefiner"))
    before = browser.visit(page).text
    for wanted, there, gone in cases:
        script = search.format(wanted, "new Event('input')")
        steps = browser.visit(page, script=script).text.partition("EVERY STEP")[2]
        assert there in steps
        assert gone in before
        assert gone not in steps
    script = search.format("no such words", "new Event('input')")
    nothing = browser.visit(page, script=script).text.partition("EVERY STEP")[2]
    assert "Candidate 1" not in nothing


def test_what_a_database_says_runs_no_script(browser: Browser, workplace: Path, html: str) -> None:
    page = workplace / "page.html"
    page.write_text(html.replace("<main>", "<main><script>document.title = 'taken'</script>"))
    visit = browser.visit(page)
    assert any("Content Security Policy" in message for message in visit.messages)
    assert HOSTILE.partition("\x1b")[0] in visit.text
    assert str(ROWS[0][1]) in visit.text
