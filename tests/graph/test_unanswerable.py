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
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import GOOD, OTHER, Run, number, script, written

MISSING = "No table holds answers to surveys."
LACKING: dict[str, Any] = {"reasoning": "Surveys are not stored.", "missing": MISSING, "sql": None}
GIVES_UP = {"thought": "Surveys.", "action": "terminate", "sql": None, "command": None, "missing": MISSING}
THREE: dict[str, Any] = {"recipe": "quorum", "votes": 3, "switches": {"validation": "never"}}
ANSWERS = {"thought": "Surveys.", "action": "answer", "sql": None, "command": None, "missing": MISSING}


def turns(*said: dict[str, Any]) -> Any:
    """A writer whose candidates take turns."""

    def write(prompt: Prompt) -> Any:
        return said[(number(prompt) - 1) % len(said)]

    return write


async def test_a_few_that_find_it_lacking_are_a_warning(run: Run) -> None:
    ran = await run(script(sql_writer=turns(written(GOOD), written(GOOD), LACKING)), **THREE)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert f"1 of 3 candidates say that the data cannot answer: {MISSING}" in ran.answer.warnings
    agreed = await run(script(), **THREE)
    assert ran.answer.confidence < agreed.answer.confidence


async def test_most_that_find_it_lacking_outvote_an_answer(run: Run) -> None:
    ran = await run(script(sql_writer=turns(LACKING, written(GOOD), LACKING)), **THREE)
    assert (ran.answer.status, ran.answer.missing, ran.answer.columns) == ("unanswerable", MISSING, [])


async def test_after_a_result_the_action_may_still_find_it_lacking(run: Run) -> None:
    def act(prompt: Prompt) -> Any:
        return GIVES_UP if prompt.turn else {**GIVES_UP, "action": "sql", "sql": GOOD, "missing": None}

    refused = {"valid_result": False, "columns_not_needed": [], "result_empty": False, "suggest_fix": "No."}
    usual = script(validator=refused)
    ran = await run(
        lambda prompt: act(prompt) if prompt.role == "action" else usual[prompt.role], recipe="recap"
    )
    assert (ran.answer.status, ran.answer.missing) == ("unanswerable", MISSING)
    assert [candidate.sql for candidate in ran.answer.candidates] == [""]


@pytest.mark.parametrize("by_heads", [True, False])
@pytest.mark.parametrize(
    ("rule", "lacking", "agreeing", "to_come", "enough"),
    [
        ("beta:0.9", 3, 0, 5, True),
        ("beta:0.9", 2, 1, 5, False),
        ("beta:0.9", 1, 0, 7, False),
        ("decided", 3, 0, 2, True),
        ("decided", 3, 1, 2, False),
        ("never", 3, 0, 5, False),
        ("beta:0.9", 2, 3, 3, False),  # as a rival answer
    ],
)
async def test_when_enough_have_found_it_lacking(
    rule: str, lacking: int, agreeing: int, to_come: int, enough: bool, by_heads: bool
) -> None:
    silent = [Ballot(f"n{place}", "m", "", error=UNANSWERABLE) for place in range(lacking)]
    others = [Ballot(f"a{place}", "m", OTHER, fingerprint="x") for place in range(agreeing)]
    vote = await hold_vote([*silent, *others], "majority", Rules(count_heads=by_heads))
    assert vote.unanswerable == tuple(ballot.candidate for ballot in silent)
    assert find_stopping(rule).enough(vote, [1.0] * to_come) is enough


@pytest.mark.parametrize("nothing", ["", " ", "null", "None", "N/A"])
async def test_words_for_nothing_are_nothing(run: Run, nothing: str) -> None:
    said = written(GOOD) | {
        "missing": nothing,
        "readings": nothing,
        "assumptions": None,
        "summary": None,
    }
    ran = await run(script(sql_writer=said), recipe="single", votes=None)
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    assert (ran.calls()["sql_writer"], ran.answer.readings, ran.answer.assumptions) == (1, [], [])


async def test_an_empty_query_beside_what_is_missing_is_none(run: Run) -> None:
    ran = await run(script(sql_writer=LACKING | {"sql": ""}), recipe="single", votes=None)
    assert (ran.answer.status, ran.calls()["sql_writer"]) == ("unanswerable", 1)


async def test_a_query_and_what_is_missing_for_one_is_sent_back(run: Run) -> None:
    def write(prompt: Prompt) -> Any:
        both = written(GOOD) | {"missing": "Revenue is not stored; the total stands for it."}
        return written(GOOD) if "only one can be meant" in prompt.text else both

    ran = await run(script(sql_writer=write), recipe="single", votes=None)
    assert (ran.answer.status, ran.calls()["sql_writer"]) == ("answered", 2)


SPLIT = turns(
    LACKING, written(GOOD), LACKING, written(OTHER), LACKING, written(GOOD), written(OTHER), LACKING
)


@pytest.mark.parametrize("switches", [{}, {"model_vote": True}, {"random_selection": False}])
async def test_answers_that_are_outvoted_are_not_drawn_from(run: Run, switches: dict[str, bool]) -> None:
    given: dict[str, Any] = {"recipe": "reforce", "switches": {"exploration": "never", **switches}}
    ran = await run(script(sql_writer=SPLIT), votes=8, **given)
    assert (ran.answer.status, ran.answer.warnings, ran.answer.disagreement) == ("unanswerable", [], [])
    assert ran.vote.winner is None
    assert not any("drawn" in note for note in ran.vote.notes)
    assert ran.calls()["judge"] == 0


async def test_nobody_is_asked_to_choose_an_answer_that_is_outvoted(run: Run) -> None:
    given: dict[str, Any] = {"recipe": "reforce", "switches": {"exploration": "never"}, "clarify": True}
    ran = await run(script(sql_writer=SPLIT), votes=8, **given)
    assert ran.answer.status == "unanswerable"
    assert ran.of("clarification") == []


async def test_experts_learn_nothing_from_what_the_data_lacks(run: Run) -> None:
    replies = {"m:1": script(sql_writer=LACKING), "m:2": script()}
    ran = await run(replies, models=list(replies), votes=2, recipe="single")
    again = await run(replies, models=list(replies), votes=2, recipe="single")
    assert again.vote.weights == ran.vote.weights
    assert set(again.vote.weights.values()) == {1.0}


async def test_experts_learn_nothing_from_an_endpoint_that_is_down(run: Run, tmp_path: Path) -> None:
    down = script(sql_writer=ModelUnavailable("The endpoint is unreachable."))
    broken = script(sql_writer=written("SELECT nope FROM orders"), self_refiner=written("SELECT nope"))
    replies: dict[str, Any] = {"down": down, "fine": script(), "wrong": broken}
    ran = await run(replies, models=list(replies), votes=3, recipe="single")
    assert [each.error_kind for each in ran.answer.candidates] == [
        "model_unavailable",
        "",
        "column_not_found",
    ]
    weights = ExpertLedger(tmp_path / "home" / "experts.json").weights(replies)
    assert (weights["down"], weights["fine"]) == (1.0, 1.0)
    assert weights["wrong"] < 1


@pytest.mark.parametrize(
    ("kind", "stopped_by", "learned"),
    [
        ("model_unavailable", "", {}),
        ("unavailable", "", {}),
        (UNANSWERABLE, "", {}),
        ("stopped", "max_calls", {}),
        ("timeout", "deadline", {}),
        ("timeout", "", {"m": False}),
        ("malformed_reply", "", {"m": False}),
        ("gave_up", "", {"m": False}),
    ],
)
def test_an_expert_is_judged_by_its_sql_alone(kind: str, stopped_by: str, learned: dict[str, bool]) -> None:
    candidate = Candidate("c1", "m", 0.0, 0, "SELECT 1", None, Failure(kind, "No."), stopped_by=stopped_by)
    assert executed([candidate]) == learned
    other = replace(candidate, error=Failure("syntax", "No."), stopped_by="")
    assert executed([candidate, other]) == {"m": False}


@pytest.mark.parametrize(("lacking", "enough"), [(1, True), (2, False)])
async def test_later_ones_may_still_find_it_lacking(lacking: int, enough: bool) -> None:
    silent = [Ballot(f"n{place}", "m", "", error=UNANSWERABLE) for place in range(lacking)]
    agreeing = [Ballot(f"a{place}", "m", OTHER, fingerprint="x") for place in range(3)]
    vote = await hold_vote([*silent, *agreeing], "majority", Rules(count_heads=True))
    assert find_stopping("decided").enough(vote, [1.0, 1.0]) is enough
