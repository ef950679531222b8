"""Traces as people see them: in the terminal, and as one page that is safe to open."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from quorum.event_text import step_of
from quorum.graph.runs import RunFolder
from quorum.graph.trace import Trace
from quorum.page import page_of
from quorum.progress import Progress
from quorum.render import show_answer, show_report
from quorum.report import report_of
from tests.quorum.conftest import HOSTILE, SQL, VOTE, candidate, made, unfinished_run


def terminal() -> Console:
    return Console(file=io.StringIO(), width=140, highlight=False)


def printed(console: Console) -> str:
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def test_steps_are_grouped_by_candidate(run: Trace) -> None:
    report = report_of(RunFolder(run.folder))
    titles = [section.title for section in report.sections]
    assert titles == ["Preparation", "Candidate 1", "Candidate 2", "Vote and answer"]
    kinds = [entry.step.kind for entry in report.sections[1].entries]
    assert kinds == ["model_call", "action", "query", "refinement", "result", "candidate"]


def test_voices_tell_who_voted_for_what(run: Trace) -> None:
    report = report_of(RunFolder(run.folder))
    assert [(voice.id, cluster) for voice, cluster in report.voices] == [("c1", 1), ("c2", 1), ("c3", 2)]
    assert report.agreement == "2 of 3 candidates agree; 1 differs"


def test_an_unfinished_run_shows_what_it_has_and_how_to_go_on(workplace: Path) -> None:
    trace = unfinished_run(workplace, "killed")
    report = report_of(RunFolder(trace.folder))
    trace.close()
    assert report.usage["model_calls"] == 3
    assert report.accounts["agent"]["action"]["queries"] == 2
    out = terminal()
    show_report(report, out)
    assert "quorum ask --resume killed" in printed(out)
    assert "no answer yet" in page_of(report)


def test_a_failed_run_shows_why_and_how_to_go_on(workplace: Path) -> None:
    trace = unfinished_run(workplace, "down")
    trace.record("failed", agent="run", message=f"The endpoint is down {HOSTILE}")
    trace.flush()
    report = report_of(RunFolder(trace.folder))
    trace.record("begun", agent="run", run="down", resumed=True)
    trace.close()
    out = terminal()
    show_report(report, out)
    for text in (printed(out), page_of(report)):
        assert "it failed: The endpoint is down" in text
        assert "quorum ask --resume down" in text
        assert "\x1b" not in text
    report = report_of(RunFolder(trace.folder))
    assert report.error == ""
    assert "goes on with down" in report.sections[0].entries[-1].step.gist


@pytest.mark.parametrize(("by", "agent"), [("lint", "Lint"), ("guard", "Guard"), ("database", "Database")])
def test_a_query_that_is_refused_says_by_whom(by: str, agent: str) -> None:
    error = {"kind": "column_not_found", "message": "no column x", "by": by}
    assert step_of({"t": 0.0, "kind": "query", "agent": "action", "error": error}).agent == agent
    assert step_of({"t": 0.0, "kind": "query", "agent": "action", "rows": 1}).agent == "Database"


def test_sql_of_one_long_line_is_laid_out_for_people(answer: dict[str, Any]) -> None:
    out = terminal()
    show_answer(made(answer | {"sql": SQL + " HAVING COUNT(*) > 1 ORDER BY AVG(rating) DESC LIMIT 10"}), out)
    assert "SELECT\n  name,\n" in printed(out)
    out = terminal()
    show_answer(made(answer), out)
    assert SQL in printed(out)


def test_the_terminal_shows_decisions_errors_sql_and_rows_but_no_escapes(run: Trace) -> None:
    out = terminal()
    show_report(report_of(RunFolder(run.folder)), out)
    text = printed(out)
    for part in (
        SQL,
        "column not found: no column ratng",
        "repairs it: misspelt",
        "results differ: 33 % for candidate 3 against 67 % for candidates 1, 2",
    ):
        assert part in text
    assert "rules rules" not in text
    assert "\x1b" not in text
    assert "\u202e" not in text


def test_terminal_and_page_say_where_a_step_comes_from(workplace: Path) -> None:
    trace = unfinished_run(workplace, "told")
    origin = {"node": "validate_winner", "recipe": "quorum", "prompt": "agents/prompts/validator.md"}
    verdict = {"valid_result": True, "accepted": True, "objection": ""}
    trace.record("validation", agent="validator", candidate="c1", **verdict, **origin)
    trace.flush()
    report = report_of(RunFolder(trace.folder))
    trace.close()
    out = terminal()
    show_report(report, out, full=True)
    said = "validate_winner · quorum · agents/prompts/validator.md"
    assert f"the result can be the answer  {said}" in printed(out)
    html = page_of(report)
    assert html.count(said) == 1
    assert "<summary>node</summary>" not in html


def test_a_second_round_stands_below_the_vote_that_called_for_it(workplace: Path) -> None:
    trace = unfinished_run(workplace, "twice")
    probe = "SELECT DISTINCT rating FROM films LIMIT 20"
    trace.record("model_adapted", agent="consensus", model="openai:a", change="no seed")
    for name in ("c3", "c4"):
        about = {"purpose": "What ratings are there?", "sql": probe, "text": "rating", "corrected": False}
        trace.record("finding", agent="column_explorer", candidate=name, **about)
        trace.record("writing", agent="sql_writer", candidate=name, sql=SQL, reasoning="so")
        trace.record("model_retry", agent="run", model="openai:a", reason="slow", wait=1.0)
    trace.record("vote", agent="consensus", **VOTE)
    trace.flush()
    report = report_of(RunFolder(trace.folder))
    trace.close()
    titles = [section.title for section in report.sections]
    rounds = ["Candidate 1", "Candidate 2", "Vote", "Candidate 3", "Candidate 4"]
    assert titles == ["Preparation", *rounds, "Vote and answer"]
    out = terminal()
    show_report(report, out)
    text = printed(out)
    assert text.count(probe) == 2, "what was explored is shown, and by whom"
    tally = "for candidates 1, 2"
    assert text.index(tally) < text.index("Candidate 3\n") < text.rindex(tally)
    assert page_of(report).index("candidate-c2") < page_of(report).index('id="candidate-c3"')


def test_full_shows_whole_prompts(run: Trace) -> None:
    out = terminal()
    show_report(report_of(RunFolder(run.folder)), out, full=True)
    assert printed(out).count("rules rules") > 3


@pytest.mark.parametrize("width", [40, 200])
def test_an_answer_with_many_columns_and_rows_says_what_is_left_out(
    answer: dict[str, Any], width: int
) -> None:
    names = [f"column_{n}" for n in range(30)]
    many = {"columns": names, "rows": [[n] * 30 for n in range(20)], "row_count": 100_000, "truncated": True}
    out = Console(file=io.StringIO(), width=width, highlight=False)
    show_answer(made(answer | many), out)
    text = " ".join(printed(out).split())
    assert "the first 20 of 100,000 rows" in text
    assert "cut off at the limit" in text
    assert "16 more" in text or width == 40


def test_the_answer_names_status_votes_cost_and_trace(answer: dict[str, Any]) -> None:
    out = terminal()
    limits = {"status": "stopped", "stopped_by": "max_calls", "demonstration": True, "warnings": ["odd\x07"]}
    show_answer(made(answer | limits), out)
    text = printed(out)
    for part in (
        "Demonstration",
        "Stopped by a limit; the best so far (max_calls)",
        "2 of 3 candidates agree; 1 differs",
        "3 model calls",
        "quorum trace show 20260102-030405-abcd",
        "Warning: odd␇",
        "NULL",
    ):
        assert part in text


@pytest.mark.parametrize(
    ("readings", "lines"),
    [
        (["Paid orders\x07."], ["The question could also mean: Paid orders␇."]),
        (["Paid.", "Open."], ["The question could also mean:", "  Paid.", "  Open."]),
        ([], []),
    ],
)
def test_the_answer_says_what_else_the_question_could_mean(
    answer: dict[str, Any], readings: list[str], lines: list[str]
) -> None:
    out = terminal()
    show_answer(made(answer | {"readings": [{"says": says} for says in readings]}), out)
    text = printed(out)
    assert "\n".join(lines) in text
    assert ("could also mean" in text) is bool(readings)


def test_no_answer_tells_why_each_candidate_failed(answer: dict[str, Any]) -> None:
    failed = [candidate("c1", sql="", error="no table x"), candidate("c2", sql="", error="timed out")]
    out = terminal()
    nothing = {"status": "no_answer", "sql": "", "columns": [], "rows": [], "vote": None}
    show_answer(made(answer | nothing | {"candidates": failed}), out)
    text = printed(out)
    assert "No answer found" in text
    assert "calibrated" not in text
    assert "candidate 1: no table x" in text
    assert "candidate 2: timed out" in text


def test_progress_has_a_line_for_each_step_and_for_failed_calls(run: Trace) -> None:
    out = terminal()
    with Progress(out) as progress:
        for event in run.events():
            progress(event)
    lines = printed(out).splitlines()
    assert len(lines) == sum(e["kind"] != "model_call" for e in run.events())
    assert sum("column not found" in line for line in lines) == 2
    assert progress.calls == 3
    assert progress.tokens == 3 * 1280
    assert "\x1b" not in printed(out)


def test_equal_failures_are_told_once(answer: dict[str, Any]) -> None:
    failed = [candidate(f"c{n}", sql="", error="The model refused.") for n in range(1, 10)]
    failed[4] |= {"error": "timed out"}
    nothing: dict[str, Any] = {"status": "no_answer", "sql": "", "columns": [], "rows": [], "vote": None}
    warning = "No candidate has a result: The model refused."
    out = terminal()
    show_answer(made(answer | nothing | {"candidates": failed, "warnings": [warning, "Odd."]}), out)
    text = printed(out)
    assert text.count("The model refused.") == 1
    assert "candidates 1 to 4, 6 to 9: The model refused." in text
    assert "candidate 5: timed out" in text
    assert "Warning: Odd." in text
    assert "best effort" not in text  # there is none


@pytest.mark.parametrize(
    ("confidence", "said", "colour"),
    [
        (0.27, "probably wrong (27 %)", "31"),
        (0.5, "may be right (50 %)", "33"),
        (0.8, "likely right (80 %)", "32"),
    ],
)
def test_low_confidence_looks_low(answer: dict[str, Any], confidence: float, said: str, colour: str) -> None:
    out = Console(
        file=io.StringIO(), width=140, highlight=False, force_terminal=True, color_system="standard"
    )
    show_answer(made(answer | {"confidence": confidence}), out)
    text = printed(out)
    assert f"{said}\x1b[0m: 1 candidate gives another answer; no person has checked it" in text
    assert f"\x1b[1;{colour}mAnswer" in text
    assert ("Answer of low confidence" in text) is (confidence < 0.4)


def test_what_other_versions_say_is_shown(answer: dict[str, Any]) -> None:
    said = {"status": "unanswerable", "missing": "There is no NPS.", "assumptions": ["May is 2024-05."]}
    out = terminal()
    show_answer(made(answer | said), out)
    for part in ("The data cannot answer this", "There is no NPS.", "It assumes: May is 2024-05."):
        assert part in printed(out)


def test_the_timeline_counts_in_words_and_leaves_out_what_was_not_set(run: Trace) -> None:
    report = report_of(RunFolder(run.folder))
    report.options.update(votes=None, recipe="recap", models=["a", "b"])
    assert report.sections[1].outcome is not None
    report.sections[1].outcome.repairs = 1
    out = terminal()
    show_report(report, out)
    text = printed(out)
    assert "models a, b · recipe recap" in text or "recipe recap · models a, b" in text
    assert "votes None" not in text
    assert "1 repairs" not in text
    assert "Candidate 1 · openai:a · 1 repair\n" in text


def test_quiet_progress_says_nothing(run: Trace) -> None:
    out = terminal()
    with Progress(out, quiet=True) as progress:
        for event in run.events():
            progress(event)
    assert printed(out) == ""


def test_an_event_of_an_unknown_kind_is_still_told() -> None:
    step = step_of({"t": 1.0, "kind": "new_thing", "agent": "some_agent", "size": 3, "text": HOSTILE})
    assert step.agent == "Some agent"
    assert step.gist.startswith("new thing size=3 text=")
    assert "\x1b" not in step.gist
