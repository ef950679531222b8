"""The switch ``evidence`` of ``quorum``: small queries where the data is odd, or a check fired."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quorum import ask
from quorum.graph.answer import Answer
from quorum.graph.context import Context
from quorum.settings import Settings
from quorum.tools.models.scripted import Prompt, scripted
from tests.graph.reforce_script import BROKEN, replies
from tests.graph.shop import QUESTION, Ran, Run

ASKED = {"purpose": "How are cities spelt?", "sql": "SELECT DISTINCT city FROM customers LIMIT 10"}
WRONG = {"purpose": "Which towns?", "sql": BROKEN}
MISSPELT = {"reasoning": "", "sql": "SELECT name FROM customers WHERE city IN ('lyon', 'Ghent')"}


async def looked(run: Run, said: Any, **switches: Any) -> Ran:
    return await run(said, recipe="quorum", votes=None, switches={"evidence": True, **switches})


async def test_where_nothing_is_odd_nobody_looks(run: Run) -> None:
    ran = await looked(run, replies(prober={"queries": [ASKED]}))
    assert ran.calls() == {"sql_writer": 1}


async def test_a_check_that_fired_is_looked_into_before_the_query_is_revised(run: Run) -> None:
    revised = {"explanation": "It is Lyon.", "sql": MISSPELT["sql"].replace("lyon", "Lyon")}
    said = replies(sql_writer=MISSPELT, prober={"queries": [ASKED, WRONG]}, reviser=revised)
    ran = await looked(run, said)
    assert ran.calls() == {"sql_writer": 1, "prober": 1, "reviser": 1}
    (fact,) = ran.of("suspicion")
    assert fact["says"] in ran.prompt("prober")
    assert f"<sql>\n{MISSPELT['sql']}\n</sql>" in ran.prompt("prober")
    assert "<exploration_purpose>How are cities spelt?" in ran.prompt("reviser")
    assert "Which towns?" not in ran.prompt("reviser")
    assert ran.answer.row_count == 3
    off = await run(said, recipe="quorum", votes=None)
    assert off.calls() == {"sql_writer": 1, "reviser": 1}
    unchecked = await looked(run, said, checks=False)
    assert unchecked.calls() == {"sql_writer": 1}


async def test_a_limit_costs_the_look_alone(run: Run) -> None:
    said = replies(sql_writer=MISSPELT, prober={"queries": [ASKED]})
    ran = await run(said, recipe="quorum", votes=None, switches={"evidence": True}, max_calls=1)
    assert ran.answer.sql == MISSPELT["sql"]
    assert any("was not looked into: max_calls" in warning for warning in ran.answer.warnings)


async def test_where_reading_is_paid_or_asked_about_nobody_looks(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Context, "reads_unasked", False)
    ran = await looked(run, replies(sql_writer=MISSPELT, reviser={"explanation": "", "sql": None}))
    assert ran.calls() == {"sql_writer": 1, "reviser": 1}


async def test_a_reply_of_no_use_costs_only_itself(run: Run) -> None:
    ran = await looked(
        run, replies(sql_writer=MISSPELT, prober="no json", reviser={"explanation": "", "sql": None})
    )
    assert ran.calls()["reviser"] == 1
    assert ran.answer.status == "answered"


async def test_odd_data_is_looked_at_before_the_query_is_written(tmp_path: Path) -> None:
    path = tmp_path / "odd.db"
    with closing(sqlite3.connect(path)) as database:
        database.executescript(
            "CREATE TABLE sales (city TEXT, price TEXT);"
            "INSERT INTO sales VALUES ('Ghent', '1,200'), ('Lyon', '7'), ('Bonn', '3,000'), ('Ulm', '40');"
        )
    prompts: list[str] = []

    def write(prompt: Prompt) -> Any:
        prompts.append(prompt.text)
        return {"reasoning": "", "sql": "SELECT city, price FROM sales"}

    probe = {
        "purpose": "How is it written?",
        "sql": "SELECT price FROM sales WHERE price LIKE '%,%' LIMIT 10",
    }

    async def answered(**switches: Any) -> Answer:
        said = {"m": scripted(replies(sql_writer=write, prober={"queries": [probe]}))}
        settings = Settings(home=tmp_path)
        return await ask(
            QUESTION, db=f"sqlite:///{path}", settings=settings, chat_models=said, switches=switches
        )

    answer = await answered(evidence=True)
    assert answer.usage["model_calls"] == 2
    assert "<exploration_purpose>How is it written?" in prompts[0]
    assert '"1,200"\n"3,000"' in prompts[0]
    assert (await answered()).usage["model_calls"] == 1
    assert "<exploration_purpose>" not in prompts[1]
