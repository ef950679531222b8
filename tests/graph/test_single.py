"""The recipe ``single``: one call, one execution, and nothing else; how results are kept."""

from __future__ import annotations

import asyncio
import threading
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.graph.nodes import results
from quorum.tools.query import QueryResult
from quorum.tools.results.files import write_result
from tests.graph.shop import BROKEN, NOTHING, Run, written


@pytest.mark.parametrize("sql", [BROKEN, "SELECT city FROM customers GROUP BY", "DROP TABLE orders", NOTHING])
async def test_nothing_is_repaired(run: Run, sql: str) -> None:
    ran = await run({"sql_writer": written(sql)}, recipe="single")
    assert (ran.calls(), ran.answer.sql, ran.answer.row_count) == ({"sql_writer": 1}, sql, 0)
    refused = sql in (BROKEN, "DROP TABLE orders")  # by the lint, by the guard
    assert ran.answer.usage["queries"] == (not refused)


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
