"""Candidates in batches: the vote is held after each, and the stopping rule ends the sampling."""

from __future__ import annotations

import pytest

from quorum.knowledge.errors import ModelUnavailable
from tests.graph.shop import GOOD, Run, script, sql

OTHER = (
    "SELECT c.name, COUNT(*) AS orders FROM orders o JOIN customers c ON c.id = o.customer_id GROUP BY c.name"
)
THIRD = "SELECT COUNT(*) AS orders FROM orders"


def asked(ran: object) -> int:
    return len(ran.answer.candidates)  # type: ignore[attr-defined]


async def test_never_asks_all_at_once(run: Run) -> None:
    ran = await run(script(), votes=8)
    assert asked(ran) == 8
    assert len(ran.of("vote")) == 1


@pytest.mark.parametrize(
    ("stopping", "cast", "votes"), [("beta:0.9", 3, 1), ("decided", 5, 2), ("beta:0.99", 7, 3)]
)
async def test_agreement_ends_the_sampling(run: Run, stopping: str, cast: int, votes: int) -> None:
    ran = await run(script(), votes=8, stopping=stopping)
    assert asked(ran) == cast
    assert len(ran.of("vote")) == votes
    assert (ran.vote.stopping, ran.vote.saved) == (stopping, 8 - cast)
    assert ran.calls()["action"] == cast


async def test_disagreement_asks_on(run: Run) -> None:
    said = {**script(), "action/c2": sql(OTHER), "action/c3": sql(THIRD), "action/c4": sql(OTHER)}
    ran = await run(said, votes=8, stopping="beta:0.9")
    assert asked(ran) == 8
    assert ran.vote.saved == 0
    assert ran.answer.sql == GOOD
    assert len({candidate.id for candidate in ran.answer.candidates}) == 8


async def test_candidates_that_fail_do_not_end_it(run: Run) -> None:
    wrong = {f"action/c{i}": "no json" for i in (1, 2, 3)}
    ran = await run({**script(), **wrong}, votes=6, stopping="beta:0.9")
    assert asked(ran) == 6
    assert ran.answer.sql == GOOD


async def test_the_weights_of_those_to_come_count(run: Run) -> None:
    """Two models that disagree: neither is decided before the other's second candidate."""
    said = {"a": script(), "b": script(action=sql(OTHER))}
    ran = await run(said, models=["a", "b"], votes=5, stopping="decided")
    assert asked(ran) == 5


async def test_an_unreachable_model_ends_the_run_after_its_first_wave(run: Run) -> None:
    with pytest.raises(ModelUnavailable):
        await run({**script(), "action": ModelUnavailable("Unreachable.")}, votes=8, stopping="beta:0.9")
