"""A simulated user who knows the gold and may be asked one question: what it is worth, and what stays EX."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.folder import EvalFolder
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record, SimulatedUser
from quorum.evals.running.attempts import Attempts, user_of
from quorum.evals.running.runner import Evaluation, run_evaluation
from quorum.evals.scorers.ambrosia import AmbrosiaScorer
from tests.evals.running import GOLD, Knowing, evaluation, questions
from tests.graph.shop import written

pytestmark = pytest.mark.usefixtures("shops")

LESS, MORE = "SELECT 7 AS orders", "SELECT 8 AS orders"


def disputed(folder: Path, asked: Sequence[EvalQuestion], *queries: str, **how: Any) -> Evaluation:
    """An evaluation in which each of several models writes one of the queries, and so all disagree."""
    models = {
        f"m:{place}": Knowing(lambda role, _, sql=sql: written(sql) if role == "sql_writer" else None)
        for place, sql in enumerate(queries)
    }
    return replace(evaluation(folder, models, asked, **({"clarify": True} | how)), simulated=True)


async def answered(given: Evaluation) -> Record:
    return (await run_evaluation(given))[given.questions[0].id]


async def test_the_user_chooses_what_meets_the_gold_and_the_answer_stays_what_it_was(tmp_path: Path) -> None:
    asked = questions(1)
    right = GOLD.format(number=0)
    record = await answered(disputed(tmp_path / "asked", asked, LESS, right))
    alone = await answered(
        replace(disputed(tmp_path / "alone", asked, LESS, right, clarify=False), simulated=False)
    )
    assert {choice.sql: choice.match for choice in record.asking.choices} == {LESS: False, right: True}
    chosen = next(each for each in record.asking.choices if each.label == record.asking.chosen)
    assert chosen.sql == right
    assert alone.asking is None
    for name in ("sql", "match", "confidence", "metrics", "status", "candidates"):
        assert getattr(record, name) == getattr(alone, name)


async def test_where_no_choice_is_right_none_is_made_and_who_agrees_is_not_asked(tmp_path: Path) -> None:
    asking = (await answered(disputed(tmp_path / "no", questions(1), LESS, MORE))).asking
    assert ([choice.match for choice in asking.choices], asking.chosen) == ([False, False], "")
    agreed = await answered(disputed(tmp_path / "yes", questions(1), LESS, LESS))
    assert agreed.asking == SimulatedUser()


async def test_a_run_that_had_asked_is_judged_so_after_a_kill(tmp_path: Path) -> None:
    """Between the answer and its record: the choices are read from its trace."""
    given = disputed(tmp_path, questions(1), LESS, GOLD.format(number=0))
    before = await answered(given)
    attempts = Attempts(given)
    again = await attempts.record(given.questions[0])
    await attempts.end()
    assert again.resumed
    assert again.asking == before.asking
    assert before.asking == EvalFolder(tmp_path).records()["q00"].asking


async def test_of_several_readings_the_user_means_the_one_that_the_seed_draws(tmp_path: Path) -> None:
    golds = (LESS, MORE)
    asked = [replace(questions(1)[0], gold_sql=golds, groups={"ambiguity": "ambiguous"})]
    meant = {}
    for seed in range(6):
        given = disputed(tmp_path / str(seed), asked, *golds, scorer=AmbrosiaScorer(), seed=seed)
        record = await answered(given)
        asking = record.asking
        assert (asking.readings, asking.intent) == (2, user_of(asked[0], AmbrosiaScorer(), seed).intent)
        chosen = next(each for each in asking.choices if each.label == asking.chosen)
        assert chosen.met == (asking.intent,)
        meant[seed] = asking.intent
    assert set(meant.values()) == {0, 1}
