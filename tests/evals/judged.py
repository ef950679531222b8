"""Answers made by hand, and their judgement on a shop (fixtures ``database``, ``question`` and ``shops``)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.evals.questions import EvalQuestion
from quorum.evals.running.databases import DatabasePool, OpenDatabase
from quorum.graph.answer import Answer, AnswerCandidate
from quorum.tools.results.files import write_result
from tests.evals.running import GOLD, Knowing, ShopConnector, evaluation, questions

SQL = GOLD.format(number=0)
RIGHT, WRONG = {"orders": [40]}, {"orders": [7]}


@pytest.fixture
def question() -> EvalQuestion:
    return questions(1)[0]


@pytest.fixture
async def database(
    shops: type[ShopConnector], question: EvalQuestion, tmp_path: Path
) -> AsyncIterator[OpenDatabase]:
    given = evaluation(tmp_path, Knowing(), [question])
    databases = DatabasePool(given.options, chat_models=given.chat_models)
    yield await databases.of(question)
    await databases.aclose()


def candidate(id: str, sql: str = SQL, file: str = "", error: str = "", **more: Any) -> AnswerCandidate:
    kind: dict[str, Any] = {"error": error and f"It is {error}.", "error_kind": error, "row_count": None}
    usual = kind | {"model": "test", "fingerprint": "", "approved": None, "repairs": 0}
    return AnswerCandidate(id=id, sql=sql, result_file=file, **(usual | more))


def answer(*candidates: AnswerCandidate, **values: Any) -> Answer:
    usual: dict[str, Any] = {"status": "answered", "sql": SQL, "candidates": list(candidates)}
    usual |= {"question": "How many?", "database": "shop0", "dialect": "sqlite", "recipe": "single"}
    return Answer(**(usual | values))


def kept(folder: Path, values: dict[str, list[Any]]) -> str:
    """A result of the run; its file as an answer of another machine names it."""
    file = write_result(pa.table(values), folder / "runs" / "q00" / "results")
    return f"/elsewhere/runs/q00/results/{file.name}"
