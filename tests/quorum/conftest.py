"""A run folder as a real run leaves it, made by hand, and a working directory without settings."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorum.cli import cli
from quorum.graph.answer import Answer
from quorum.graph.trace import Trace
from quorum.tools.ledger import Usage
from tests.engines import start_no_process
from tests.graph.shop import make_shop

SQL = "SELECT name, AVG(rating) FROM reviews GROUP BY name"
HOSTILE = "<script>alert(1)</script>\x1b[31m\u202e"
COLUMNS = ["name", "avg"]
ROWS = [["Garden", 4.25], [HOSTILE, None]]
CALL = Usage(
    model_calls=1, input_tokens=1200, output_tokens=80, cached_tokens=900, usd=0.003, model_seconds=0.5
)
RUN = {"database": "shop", "dialect": "sqlite", "recipe": "recap"}
VOTE = {
    "strategy": "majority",
    "winner": "c1",
    "tie": False,
    "notes": [],
    "clusters": [
        {"candidates": ["c3"], "share": 1 / 3, "weight": 1.0, "key": "b"},
        {"candidates": ["c1", "c2"], "share": 2 / 3, "weight": 2.0, "key": "a"},
    ],
}


def quorum(*arguments: str | Path, given: str | None = None) -> Result:
    """Run a command in this process; a fault of ours fails the test."""
    result = CliRunner().invoke(cli, [*map(str, arguments)], input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def python(root: Path, *arguments: str, **how: Any) -> subprocess.CompletedProcess[str]:
    """Run Python on this checkout in a process of its own; ``env`` adds variables."""
    env = os.environ | {"PYTHONPATH": str(root)} | how.pop("env", {})
    how = {"capture_output": True, "text": True, "timeout": 120, "check": False} | how
    return subprocess.run([sys.executable, *arguments], env=env, **how)


@pytest.fixture
def shop(workplace: Path) -> str:
    """The URL of a small shop in the working directory."""
    return f"sqlite:///{make_shop(workplace / 'shop.db')}"


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases are opened in this process; commands that run in one of their own start engines as always."""
    start_no_process(monkeypatch)


@pytest.fixture(autouse=True)
def workplace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty working directory: no quorum.toml, no .env, no traces."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def answer() -> dict[str, Any]:
    """An answer: two of three candidates agree, one differs."""
    return {
        "question": "What is the average rating?",
        "status": "answered",
        **RUN,
        "sql": SQL,
        "columns": COLUMNS,
        "rows": ROWS,
        "row_count": 2,
        "confidence": 0.67,
        "vote": VOTE,
        "candidates": [candidate("c1"), candidate("c2"), candidate("c3", sql="SELECT 1")],
        "usage": (CALL.as_dict() | {"model_calls": 3, "queries": 1, "rows": 2, "seconds": 1.5}),
        "run_id": "20260102-030405-abcd",
        "trace": ".quorum/runs/20260102-030405-abcd",
    }


def made(fields: Mapping[str, Any]) -> Answer:
    """An answer with these fields; the others have values that say nothing."""
    usual: dict[str, Any] = {"question": "?", "status": "answered", **RUN}
    return Answer.model_validate(usual | fields)


def candidate(name: str, **changes: Any) -> dict[str, Any]:
    """A candidate of an answer."""
    made = {"id": name, "model": "openai:a", "sql": SQL, "error": "", "row_count": 2, "fingerprint": "a"}
    return made | {"approved": True, "repairs": 0, "weight": 1.0} | changes


@pytest.fixture
def run(workplace: Path, answer: dict[str, Any]) -> Trace:
    """A finished run in ``.quorum``."""
    trace = unfinished_run(workplace, answer["run_id"])
    trace.finish(answer)
    trace.close()
    return trace


def unfinished_run(workplace: Path, run_id: str) -> Trace:
    """A run that was killed before its answer; still open for writing."""
    question, options = f"What is the average rating? {HOSTILE}", {"database": "sqlite:///shop.db"}
    trace = Trace.create(workplace / ".quorum", run_id, {"question": question, "options": options})
    opened = {"database": "shop", "dialect": "sqlite", "tables": 12, "tokens": 1840, "left_out": []}
    trace.record("schema", agent="catalog", **opened)
    prompt = {"system": "rules " * 300, "user": f"<task> {HOSTILE}"}
    call: dict[str, Any] = {"usage": CALL, "seconds": 0.5, "model": "openai:a", "reply": f"{{}} {HOSTILE}"}
    call["messages"] = [{"role": role, "content": text} for role, text in prompt.items()]
    trace.record("model_call", role="planner", candidate="", **call)
    trace.record("plan", agent="planner", steps=["join", "group"], expected_format="name, avg")
    error = {"kind": "column_not_found", "message": f"no column ratng {HOSTILE}", "suggestions": ["rating"]}
    result = {"columns": COLUMNS, "row_count": 2, "preview": ROWS, "truncated": "", "fingerprint": "a"}
    for name in ("c1", "c2"):
        who = {"candidate": name}
        trace.record("model_call", role="action", **who, **call)
        trace.record("action", agent="action", **who, action="sql", sql=SQL, thought="clear", command=None)
        trace.record("query", agent="action", **who, sql="SELECT ratng", error=error, usage=Usage(queries=1))
        trace.record("refinement", agent="self_refiner", **who, error=error, explanation="misspelt", sql=SQL)
        trace.record("result", agent="action", **who, sql=SQL, **result)
        ended = {"sql": SQL, "result": result, "approved": True, "refinements": 1}
        trace.record("candidate", agent="candidate", **who, **ended)
    trace.record("vote", agent="consensus", **VOTE)
    trace.flush()
    return trace
