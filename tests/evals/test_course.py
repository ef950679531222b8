"""How runs went: who explored, what repairs cost, what rounds are worth (paper 000, Tables 6 and 7)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.evals.records import Course
from quorum.evals.running.run_events import RunEvents
from quorum.graph.runs import RunFolder
from tests.engines import start_no_process
from tests.graph.shop import BROKEN, GOOD, OTHER, in_turn, make_shop, run_graph, script, taking_turns


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    start_no_process(monkeypatch)


async def course(folder: Path, said: Any, **given: Any) -> Course:
    """Return the course of a run of ``reforce`` over the shop."""
    ran = await run_graph(
        folder / "home", f"sqlite:///{make_shop(folder / 'shop.db')}", said, recipe="reforce", **given
    )
    events = RunEvents()
    for event in RunFolder(Path(ran.answer.trace)).events():
        events.learn(event)
    return events.course


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
