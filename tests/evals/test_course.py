"""How runs went: who explored, what repairs cost, what rounds are worth (paper 000, Tables 6 and 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.evals.records import CandidateRow, Course, Effort
from quorum.evals.reports.courses import courses
from quorum.evals.running.run_events import course_of
from quorum.graph.runs import RunFolder
from tests.engines import start_no_process
from tests.evals.evaluations import record
from tests.graph.shop import BROKEN, GOOD, OTHER, in_turn, make_shop, run_graph, script, taking_turns


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    start_no_process(monkeypatch)


async def course(folder: Path, said: Any, **given: Any) -> Course:
    """Of a run of ``reforce`` over the shop."""
    ran = await run_graph(
        folder / "home", f"sqlite:///{make_shop(folder / 'shop.db')}", said, recipe="reforce", **given
    )
    return course_of(RunFolder(Path(ran.answer.trace)))


async def test_a_run_that_explored(tmp_path: Path) -> None:
    found = await course(tmp_path, script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD)), votes=2)
    assert found.explored
    assert found.first_tie
    assert [(it.repairs, it.explored, it.calls) for it in found.efforts] == [(0, False, 1)] * 2 + [
        (0, True, 2)
    ] * 2
    assert all(effort.tokens > 0 for effort in found.efforts)
    assert sum(effort.queries for effort in found.efforts) == 3, "two answers, and what both explored"


async def test_a_run_with_repairs(tmp_path: Path) -> None:
    found = await course(tmp_path, script(sql_writer=in_turn(GOOD, BROKEN)), votes=2)
    assert not found.explored
    assert found.first_tie is False
    assert sorted((it.repairs, it.calls) for it in found.efforts) == [(0, 1), (1, 2)]


def effort(repairs: int, *, explored: bool = False, calls: int = 1) -> Effort:
    return Effort(repairs, explored, calls=calls, tokens=100 * calls, queries=2)


def row(name: str, match: bool | None, *, superseded: bool = False) -> CandidateRow:
    return CandidateRow(name, "m", "SELECT 1", match, superseded=superseded)


TWO_ROUNDS = (row("c1", False, superseded=True), row("c2", True))
ONLY_THE_FIRST = (row("c1", True, superseded=True), row("c2", False))


def test_pass_at_k_is_of_the_last_round() -> None:
    assert record("a", candidates=TWO_ROUNDS).possible is True
    assert record("a", candidates=ONLY_THE_FIRST).possible is False


def test_what_rounds_are_worth_and_what_candidates_took() -> None:
    explored = Course(True, first_tie=True, efforts=(effort(0, explored=True, calls=4),))
    plain = Course(False, first_tie=False, efforts=(effort(0), effort(2, calls=3), effort(4, calls=5)))
    records = [
        record("a", course=explored, candidates=TWO_ROUNDS),
        record("b", course=explored, candidates=ONLY_THE_FIRST),
        record("c", course=plain),
        record("d"),
    ]
    found = courses(records)
    assert found is not None
    assert (found.explored.count, found.explored.n) == (2, 3)
    assert (found.first_ties.count, found.first_ties.n) == (2, 3)
    assert (found.first_round.count, found.last_round.count, found.last_round.n) == (1, 1, 2)
    told = {each.title: (each.candidates, each.calls.mean, each.tokens) for each in found.levels}
    assert told == {
        "no repair": (1, 1.0, 100.0),
        "one or two repairs": (1, 3.0, 100.0),
        "three repairs or more": (1, 5.0, 100.0),
        "with an exploration": (2, 4.0, 100.0),
    }


def test_nothing_is_said_where_nothing_was_explored_or_repaired() -> None:
    assert courses([record("a", course=Course(efforts=(effort(0),))), record("b")]) is None
