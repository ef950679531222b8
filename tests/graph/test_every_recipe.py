"""Every recipe answers questions of public benchmarks from question to rows, offline and scripted."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.options import RunOptions
from quorum.graph.recipes import RECIPES
from quorum.tools.models.scripted import Prompt, scripted
from tests.graph.questions import Asked, spider1, spider2_local
from tests.graph.shop import FINE, PLAN, run_options, script, written

SIMPLE = (0, 463)
"""Questions that the rules of the offline model understand."""

WHOLE: dict[str, dict[str, Any]] = {"sqlagent": {"max_tables": 12}}
"""The rules call a question unanswerable of whose words a part of the schema names too few."""


def asked_of(shared: Path, suite: str) -> list[Asked]:
    return spider1(shared, *SIMPLE) if suite == "spider1" else spider2_local(shared, 2)


def knows(asked: Asked) -> Any:
    """A model that writes the published SQL, whichever role is asked for a query."""
    step = {"thought": "Run it.", "action": "sql", "sql": asked.gold, "command": None}
    usual = script(
        planner=PLAN,
        plan_critique={"update_plan": False, "feedback": ""},
        syntax_retriever={"features": []},
        action=step,
        sql_critique={"reasoning": "Right.", "correct": True, "sql": None},
        validator=FINE,
        sql_writer=written(asked.gold),
        gen_agent=written(asked.gold),
        self_refiner={"explanation": "As before.", "sql": asked.gold},
    )

    def reply(prompt: Prompt) -> Any:
        if prompt.role == "tool_user":
            return step | ({"action": "answer", "sql": None} if prompt.turn else {})
        return usual(prompt)

    return reply


@pytest.mark.heavy
@pytest.mark.parametrize("suite", ["spider1", "spider2-local"])
@pytest.mark.parametrize("recipe", list(RECIPES))
async def test_a_model_that_knows_the_query_gives_its_rows(
    recipe: str, suite: str, shared: Path, tmp_path: Path
) -> None:
    for asked in asked_of(shared, suite):
        options = RunOptions(
            database=asked.database, recipe=recipe, home=str(tmp_path), models=["m"], votes=2
        )
        ran = await run_options(options, asked.question, {"m": scripted(knows(asked))})
        assert ran.answer.status == "answered", ran.answer.warnings
        with closing(sqlite3.connect(asked.database.removeprefix("sqlite:///"))) as database:
            expected = database.execute(asked.gold).fetchall()
        assert ran.answer.row_count == len(expected) > 0
        assert ran.answer.rows[0] == [pytest.approx(value) for value in expected[0]]
        assert ran.answer.vote is not None
        assert len(ran.answer.vote.clusters) == 1


@pytest.mark.parametrize("recipe", list(RECIPES))
async def test_the_offline_model_goes_all_the_way(recipe: str, shared: Path, tmp_path: Path) -> None:
    for asked in asked_of(shared, "spider1"):
        options = RunOptions(
            database=asked.database,
            recipe=recipe,
            home=str(tmp_path),
            models=["offline"],
            votes=2,
            switches=WHOLE.get(recipe, {}),
        )
        ran = await run_options(options, asked.question)
        assert ran.answer.demonstration
        assert ran.answer.status == "answered"
        assert ran.answer.row_count > 0
