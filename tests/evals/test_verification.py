"""Gold that no longer reproduces is found, named and kept."""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import get_args

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.base import GoldCheck, GoldState
from quorum.evals.scoring import MEANINGS, Verification, verify_gold
from tests.evals.small_suite import small_suite

GOLDS = {"q1": "SELECT COUNT(*) FROM pet", "q2": "SELECT nope FROM pet", "q3": "SELECT 1 WHERE 1 = 0"}


async def test_every_question_is_checked_on_its_database(tmp_path: Path) -> None:
    suite = small_suite(tmp_path, golds=GOLDS)
    apart = EvalQuestion("q4", "Here?", "pets", "schema://pets", "sqlite")
    lost = dataclasses.replace(suite.questions[0], id="q5", url=f"sqlite:///{tmp_path}/nowhere.sqlite")
    questions = (lost, *suite.questions, apart)
    told: list[tuple[int, int]] = []
    found = await verify_gold(
        dataclasses.replace(suite, questions=questions),
        questions,
        on_done=lambda done, total: told.append((done, total)),
    )
    states = {id: check.state for id, check in found.checks.items()}
    assert list(states.items()) == [
        ("q5", "fails"),
        ("q1", "ok"),
        ("q2", "fails"),
        ("q3", "empty"),
        ("q4", "not_live"),
    ]
    assert list(found.counts.items()) == [("ok", 1), ("fails", 2), ("empty", 1), ("not_live", 1)]
    assert not found.reproduces
    assert list(found.apart()) == ["fails", "empty", "not_live"]
    assert list(found.apart()["fails"]) == ["q5", "q2"]
    assert "nowhere.sqlite" in found.checks["q5"].reason
    assert "nope" in found.checks["q2"].reason
    assert found.as_json()["q1"] == {"state": "ok", "reason": "", "rows": 1}
    assert sorted(told)[-1] == (5, 5)


async def test_gold_is_whole_if_all_that_runs_is_ok(tmp_path: Path) -> None:
    suite: Suite = small_suite(tmp_path)
    found = await verify_gold(suite, suite.chosen(limit=2))
    assert list(found.checks) == ["q1", "q2"]
    assert found.reproduces
    assert found.apart() == {}


def test_every_state_is_told_and_only_what_ran_counts() -> None:
    states: tuple[GoldState, ...] = get_args(GoldState)
    assert set(MEANINGS) == set(states)
    spoilt = {state for state in states if not Verification({"q": GoldCheck(state)}).reproduces}
    assert spoilt == {"fails", "differs", "empty"}


def test_sound_gold_may_have_a_remark() -> None:
    checks = {
        "q1": GoldCheck("ok", "depends on the date"),
        "q2": GoldCheck("ok"),
        "q3": GoldCheck("fails", "no"),
    }
    assert Verification(checks).remarks() == {"q1": "depends on the date"}
