"""The recipe ``single``: one call, one execution, and nothing else."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.graph.nodes import results
from quorum.graph.options import RunOptions
from quorum.tools.query import QueryResult
from quorum.tools.results.files import write_result
from tests.graph.shop import GOOD, Run, run_options

BAD = "SELECT town FROM customers"


def wrote(sql: str) -> dict[str, Any]:
    return {"sql_writer": {"reasoning": "So.", "sql": sql}}


async def test_it_sees_the_schema_the_rules_and_the_question_only(run: Run) -> None:
    prompt = (await run(wrote(GOOD), recipe="single")).prompt("sql_writer")
    assert "House rules" in prompt
    assert "table orders" in prompt
    for tag in ("<plan>", "<sample_rows>", "<example_sql>", "<expected_format>", "<syntax>"):
        assert tag not in prompt


async def test_a_result_that_several_wait_for_is_described_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    described, came, read = list[str](), threading.Barrier(3), results.canonical

    def written(*of: Any) -> Path:
        came.wait(60)
        return write_result(*of)

    def noted(*of: Any) -> Any:
        described.append("once")
        return read(*of)

    monkeypatch.setattr(results, "SMALL_BYTES", 0)  # so each is a thread's
    monkeypatch.setattr(results, "_known", {})
    monkeypatch.setattr(results, "write_result", written)
    monkeypatch.setattr(results, "canonical", noted)
    result = QueryResult(pa.table({"n": [1, 2]}), 0.0)
    kept = await asyncio.gather(*(results.keep_result(result, tmp_path) for _ in range(3)))
    assert kept[0] is kept[1] is kept[2]
    assert described == ["once"]


@pytest.mark.parametrize(
    "sql",
    [BAD, "SELECT city FROM customers GROUP BY", "DROP TABLE orders", "SELECT city FROM customers WHERE 0"],
)
async def test_nothing_is_repaired(run: Run, sql: str) -> None:
    ran = await run(wrote(sql), recipe="single")
    assert ran.calls() == {"sql_writer": 1}
    assert ran.answer.sql == sql
    assert ran.answer.row_count == 0


async def test_the_guard_refuses_what_does_not_read(run: Run) -> None:
    ran = await run(wrote("DELETE FROM orders"), recipe="single")
    assert ran.answer.status == "no_answer"
    assert ran.answer.usage["queries"] == 0


async def test_more_votes_make_it_self_consistency(run: Run) -> None:
    other = wrote("SELECT COUNT(*) FROM orders")["sql_writer"]
    ran = await run({**wrote(GOOD), "sql_writer/c2": other}, recipe="single", votes=3)
    assert ran.calls() == {"sql_writer": 3}
    assert ran.answer.sql == GOOD


@pytest.mark.heavy
async def test_the_offline_model_has_no_answer_where_it_understands_nothing(tmp_path: Path) -> None:
    ran = await run_options(RunOptions(recipe="single", home=str(tmp_path)), "Will it rain in the alps?")
    assert ran.answer.status == "unanswerable"
