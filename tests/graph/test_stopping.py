"""Stopping rules: when the rest cannot change the winner, when the posterior suffices."""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.graph.ballots import Ballot, Rules, Vote
from quorum.graph.stopping import find_stopping, lead, next_batch
from quorum.graph.strategies import hold_vote
from quorum.knowledge.errors import ConfigurationError
from tests.graph.shop import GOOD, OTHER, THIRD, Run, script, sql


def vote(*choices: str, weights: dict[str, float] | None = None) -> Vote:
    """A vote in which candidate i (of expert ``m`` or of its own name) chose ``choices[i]``."""
    ballots = [
        Ballot(f"c{i}", f"e{i}", sql=f"SELECT {i}", fingerprint=choice) for i, choice in enumerate(choices)
    ]
    return asyncio.run(hold_vote(ballots, "wma" if weights else "majority", Rules(weights or {})))


def test_decided_stops_only_when_the_rest_cannot_change_the_winner() -> None:
    rule = find_stopping("decided")
    for choices, spared in (("xxx", 2), ("xxy", 0), ("xx", 1), ("xy", 0)):
        held = vote(*choices)
        assert [rule.enough(held, [1.0] * more) for more in (spared, spared + 1)] == [True, False], choices
    held = vote("x", "y", weights={"e0": 1.0, "e1": 0.2})
    assert rule.enough(held, [0.5])
    assert not rule.enough(held, [0.5, 0.4])


@pytest.mark.parametrize("strategy", ["random", "rwma"])
def test_a_draw_is_decided_when_none_is_to_come(strategy: str) -> None:
    ballots = [Ballot(f"c{i}", "m", sql=f"SELECT {i}", fingerprint="x") for i in range(9)]
    held = asyncio.run(hold_vote(ballots, strategy))
    assert not find_stopping("decided").enough(held, [1.0])  # it may be drawn
    assert find_stopping("decided").enough(held, [])


@pytest.mark.parametrize(("first", "second"), [(3, 0), (2, 1), (5, 2), (0, 0), (8, 8)])
def test_the_posterior_is_the_beta_distributions(first: int, second: int) -> None:
    draw = random.Random(first * 31 + second)
    drawn = [draw.betavariate(first + 1, second + 1) > 0.5 for _ in range(40_000)]
    assert lead(first, second) == pytest.approx(sum(drawn) / len(drawn), abs=0.01)


def test_beta_stops_at_its_posterior() -> None:
    rule = find_stopping("beta:0.9")
    assert lead(3, 0) == 0.9375
    assert rule.enough(vote(*"xxx"), [1.0] * 5)
    assert not rule.enough(vote(*"xxy"), [1.0] * 5)
    assert not rule.enough(vote(*"xx"), [1.0] * 6)
    assert find_stopping("beta:0.95").enough(vote(*"xxxx"), [1.0])


@pytest.mark.parametrize("rule", ["decided", "beta:0.9"])
def test_a_tie_blank_results_and_no_result_are_never_enough(rule: str) -> None:
    """But five blank ones for a posterior: one with values would outvote them all."""

    def of(count: int, **about: Any) -> Vote:
        cast = [Ballot(f"c{i}", "m", f"SELECT {i}", **about) for i in range(count)]
        return asyncio.run(hold_vote(cast, rules=Rules(blanks_give_way=True)))

    for held in (vote("x", "y"), of(4, fingerprint="f", blank=True), of(1, error="syntax")):
        assert not find_stopping(rule).enough(held, [0.0])
        assert find_stopping(rule).enough(held, [])
    assert find_stopping(rule).enough(of(5, fingerprint="f", blank=True), [1.0]) is (rule != "decided")


@pytest.mark.parametrize(
    "name", ["", "always", "beta", "beta:", "beta:0.5", "beta:1", "beta:nan", "gamma:0.9"]
)
def test_an_unknown_rule_is_named(name: str) -> None:
    with pytest.raises(ConfigurationError, match="No stopping rule") as failure:
        find_stopping(name)
    assert "beta:P" in (failure.value.hint or "")


@given(st.integers(1, 30), st.integers(1, 6))
def test_waves_add_up(votes: int, experts: int) -> None:
    sizes: list[int] = []
    while sum(sizes) < votes:
        sizes.append(next_batch(sum(sizes), votes, find_stopping("decided"), experts))
        assert sizes[-1] > 0
    assert sum(sizes) == votes
    assert sizes[0] == min(votes, max(3, experts))
    assert next_batch(0, votes, find_stopping("never")) == votes
    rule = find_stopping("beta:0.9")
    assert [next_batch(asked, 8, rule) for asked in (0, 3, 4, 5, 7)] == [3, 2, 1, 2, 1]


# Whole runs: the vote is held after each batch.

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
