"""A suite of three questions on one SQLite file, with a scorer that shows the contract at its plainest."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.base import EX, GoldCheck, Metric, Prediction, RunSql, Scorer, Verdict
from quorum.evals.suites.files import sqlite_url
from quorum.tools.query import QueryError

GOLDS = {"q1": "SELECT COUNT(*) FROM pet", "q2": "SELECT name FROM pet WHERE age > 3", "q3": "SELECT 1"}


class SumScorer(Scorer):
    """A result is right if its first cell is the gold's; ``points`` is ten times that."""

    metrics = (Metric(EX, "EX", "first cell"), Metric("points", "Points", "ten times EX"))
    rules = "the first cell"

    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        if run is None:
            return self.unscorable("no database", "not_live")
        gold = await run(question.gold_sql[0])
        if isinstance(gold, QueryError):
            return self.unscorable("the gold fails", "fails")
        result = prediction.result
        if result is None or prediction.truncated:
            return self.wrong("there is no whole result")
        expected = str(gold.table.column(0)[0])
        cell = result.read_text().splitlines()[1] if isinstance(result, Path) else str(result.column(0)[0])
        right = float(cell == expected)
        return Verdict({EX: right, "points": 10 * right}, "as the gold" if right else f"not {expected}")

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        if run is None:
            return GoldCheck("not_live", "no database")
        gold = await run(question.gold_sql[0])
        if isinstance(gold, QueryError):
            return GoldCheck("fails", gold.describe())
        return GoldCheck("ok" if gold.row_count else "empty", rows=gold.row_count)


def write_database(path: Path) -> Path:
    """Three pets."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with sqlite3.connect(path) as connection:
        connection.execute("CREATE TABLE pet (name TEXT, age INTEGER)")
        connection.executemany("INSERT INTO pet VALUES (?, ?)", [("Ada", 3), ("Bo", 5), ("Cy", None)])
    connection.close()
    return path


def write_spider1(folder: Path) -> Path:
    """Two questions in Spider 1.0's layout."""
    write_database(folder / "database" / "pets" / "pets.sqlite")
    entries = [
        {"db_id": "pets", "question": "How many pets?", "query": "SELECT COUNT(*) FROM pet"},
        {"db_id": "pets", "question": "Whose age is known?", "query": "SELECT name FROM pet WHERE age > 0"},
    ]
    (folder / "dev.json").write_text(json.dumps(entries))
    return folder


def small_suite(folder: Path, *, golds: dict[str, str] | None = None) -> Suite:
    """The suite; ``golds`` by question id."""
    url = sqlite_url(write_database(folder / "pets.sqlite"))
    questions = [
        EvalQuestion(id, f"What is {id}?", "pets", url, "sqlite", (sql,))
        for id, sql in (golds or GOLDS).items()
    ]
    return Suite("small", folder, tuple(questions), SumScorer())
