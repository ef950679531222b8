"""How runs went: who explored, and whether the first vote was a tie (paper 000, Table 6)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorum.evals.records import Course
from quorum.evals.running.run_events import RunEvents
from quorum.graph.runs import RunFolder
from tests.graph.shop import BROKEN, GOOD, OTHER, in_turn, make_shop, run_graph, script, taking_turns


async def course(folder: Path, said: Any, **given: Any) -> Course:
    """Return the course of a run of ``reforce`` over the shop."""
    folder.mkdir()
    ran = await run_graph(
        folder / "home", f"sqlite:///{make_shop(folder / 'shop.db')}", said, recipe="reforce", **given
    )
    events = RunEvents()
    for event in RunFolder(Path(ran.answer.trace)).events():
        events.learn(event)
    return events.course


async def test_explorations_and_first_ties_are_known(tmp_path: Path) -> None:
    tied = script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD))
    assert await course(tmp_path / "a", tied, votes=2) == Course(explored=True, first_tie=True)
    repaired = script(sql_writer=in_turn(GOOD, BROKEN))
    assert await course(tmp_path / "b", repaired, votes=2) == Course(explored=False, first_tie=False)
