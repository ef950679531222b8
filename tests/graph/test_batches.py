"""Candidates in batches: the vote is held after each, and the stopping rule ends the sampling."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.knowledge.errors import ModelUnavailable
from tests.graph.shop import GOOD, OTHER, THIRD, Run, script, sql

DISPUTED = {"action/c2": sql(OTHER), "action/c3": sql(THIRD), "action/c4": sql(OTHER)}
FAILING = {f"action/c{number}": "no json" for number in (1, 2, 3)}


@pytest.mark.parametrize(
    ("said", "stopping", "cast", "votes"),
    [
        ({}, "never", 8, 1),
        ({}, "beta:0.9", 3, 1),
        ({}, "decided", 5, 2),
        ({}, "beta:0.99", 7, 3),
        (DISPUTED, "beta:0.9", 8, 4),
        (FAILING, "beta:0.9", 7, 3),
    ],
)
async def test_agreement_ends_the_sampling(
    run: Run, said: dict[str, Any], stopping: str, cast: int, votes: int
) -> None:
    ran = await run(script() | said, votes=8, stopping=stopping)
    assert ran.answer.sql == GOOD
    asked = {candidate.id for candidate in ran.answer.candidates}
    assert (len(asked), len(ran.of("vote"))) == (cast, votes)
    assert (ran.vote.stopping, ran.vote.saved) == (stopping, 8 - cast)


async def test_an_unreachable_model_ends_the_run_after_its_first_wave(run: Run) -> None:
    with pytest.raises(ModelUnavailable):
        await run({**script(), "action": ModelUnavailable("Unreachable.")}, votes=8, stopping="beta:0.9")
