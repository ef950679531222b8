"""A question that the data cannot answer: writers say so, and agreement on it ends the run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.ballots import UNANSWERABLE, Ballot, Rules
from quorum.graph.nodes.finish import executed
from quorum.graph.state import Candidate, Failure
from quorum.graph.stopping import find_stopping
from quorum.graph.strategies import hold_vote
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.experts import ExpertLedger
from tests.graph.shop import GOOD, LACKING, MISSING, OTHER, REJECTED, STOP, Run, script, sql, taking_turns

THREE: dict[str, Any] = {"recipe": "quorum", "votes": 3, "switches": {"validation": "never"}}


async def test_a_few_that_find_it_lacking_are_a_warning_and_most_outvote_an_answer(run: Run) -> None:
    ran = await run(script(sql_writer=taking_turns(GOOD, GOOD, LACKING)), **THREE)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert f"1 of 3 candidates say that the data cannot answer: {MISSING}" in ran.answer.warnings
    assert ran.answer.confidence < (await run(script(), **THREE)).answer.confidence
    ran = await run(script(sql_writer=taking_turns(LACKING, GOOD, LACKING)), **THREE)
    assert (ran.answer.status, ran.answer.missing, ran.answer.columns) == ("unanswerable", MISSING, [])


async def test_after_a_result_the_action_may_still_find_it_lacking(run: Run) -> None:
    said = script(action=[sql(GOOD), STOP | {"missing": MISSING}], validator=REJECTED)
    ran = await run(said, recipe="recap")
    assert (ran.answer.status, ran.answer.missing) == ("unanswerable", MISSING)
    assert [candidate.sql for candidate in ran.answer.candidates] == [""]


async def test_when_enough_have_found_it_lacking() -> None:
    for rule, lacking, agreeing, to_come, enough in (
        ("beta:0.9", 3, 0, 5, True),
        ("beta:0.9", 2, 1, 5, False),
        ("beta:0.9", 1, 0, 7, False),
        ("decided", 3, 0, 2, True),
        ("decided", 3, 1, 2, False),
        ("never", 3, 0, 5, False),
        ("beta:0.9", 2, 3, 3, False),  # as a rival answer
        ("decided", 2, 3, 2, False),  # later ones may still find it lacking
    ):
        silent = [Ballot(f"n{place}", "m", "", error=UNANSWERABLE) for place in range(lacking)]
        others = [Ballot(f"a{place}", "m", OTHER, fingerprint="x") for place in range(agreeing)]
        for by_heads in (True, False):
            vote = await hold_vote([*silent, *others], "majority", Rules(count_heads=by_heads))
            assert vote.unanswerable == tuple(ballot.candidate for ballot in silent)
            assert find_stopping(rule).enough(vote, [1.0] * to_come) is enough, (rule, lacking, agreeing)


SPLIT = taking_turns(LACKING, GOOD, LACKING, OTHER, LACKING, GOOD, OTHER, LACKING)


@pytest.mark.parametrize("switches", [{}, {"model_vote": True}, {"random_selection": False}])
async def test_answers_that_are_outvoted_are_not_drawn_from(run: Run, switches: dict[str, bool]) -> None:
    """Nor is anybody asked to choose one."""
    given: dict[str, Any] = {"recipe": "reforce", "switches": {"exploration": "never", **switches}}
    ran = await run(script(sql_writer=SPLIT), votes=8, clarify="always", **given)
    assert ran.of("clarification") == []
    assert (ran.answer.status, ran.answer.warnings, ran.answer.disagreement) == ("unanswerable", [], [])
    assert ran.vote.winner is None
    assert not any("drawn" in note for note in ran.vote.notes)
    assert ran.calls()["judge"] == 0


async def test_experts_learn_from_their_sql_alone(run: Run, tmp_path: Path) -> None:
    """Not from what the data lacks, nor from an endpoint that is down."""
    replies: dict[str, Any] = {
        "down": script(sql_writer=ModelUnavailable("The endpoint is unreachable.")),
        "lacks": script(sql_writer=LACKING),
        "fine": script(),
        "wrong": script(sql_writer=taking_turns("SELECT nope FROM orders")),
    }
    ran = await run(replies, models=list(replies), votes=4, recipe="single")
    kinds = [each.error_kind for each in ran.answer.candidates]
    assert kinds == ["model_unavailable", UNANSWERABLE, "", "column_not_found"]
    weights = ExpertLedger(tmp_path / "home" / "experts.json").weights(replies)
    assert [weights[name] for name in ("down", "lacks", "fine")] == [1.0, 1.0, 1.0]
    assert weights["wrong"] < 1


def test_an_expert_is_judged_by_its_sql_alone(subtests: pytest.Subtests) -> None:
    for kind, stopped_by, learned in (
        ("model_unavailable", "", {}),
        ("unavailable", "", {}),
        (UNANSWERABLE, "", {}),
        ("stopped", "max_calls", {}),
        ("timeout", "deadline", {}),
        ("timeout", "", {"m": False}),
        ("malformed_reply", "", {"m": False}),
        ("gave_up", "", {"m": False}),
    ):
        with subtests.test(kind=kind):
            candidate = Candidate(
                "c1", "m", 0.0, 0, "SELECT 1", None, Failure(kind, "No."), stopped_by=stopped_by
            )
            assert executed([candidate]) == learned
            other = replace(candidate, error=Failure("syntax", "No."), stopped_by="")
            assert executed([candidate, other]) == {"m": False}
