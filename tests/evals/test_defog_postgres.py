"""defog's databases on a PostgreSQL server: types as defog has them, questions in its own SQL for it."""

from __future__ import annotations

import csv
import sqlite3
from contextlib import closing
from pathlib import Path

from quorum.evals.questions import read_ids
from quorum.evals.scoring import verify_gold
from quorum.evals.suites.defog import PLACE, load_on_server
from tests.servers.defog_postgres import load, write_ids
from tests.servers.postgres_server import PostgresServer

GOLD = {
    "shop": "SELECT DATE_TRUNC('month', day), SUM(amount) FILTER (WHERE mfa_enabled) FROM sales GROUP BY 1",
    "elsewhere": "SELECT 1",
    "wallet": "SELECT name FROM sales WHERE name ILIKE 'ANN%' AND day + INTERVAL '1 day' > '2024-01-01'",
}


def write_questions(folder: Path) -> None:
    file = folder / "data" / "questions_gen_postgres.csv"
    file.parent.mkdir(parents=True)
    with file.open("w", newline="") as lines:
        writer = csv.writer(lines)
        writer.writerow(["db_name", "query_category", "query", "question", "instructions"])
        writer.writerows([name, "ratio", sql, "How?", ""] for name, sql in GOLD.items())


def write_database(file: Path) -> None:
    with closing(sqlite3.connect(file)) as database, database:
        database.execute("CREATE TABLE sales (name TEXT, day DATE, amount REAL(10, 2), mfa_enabled INTEGER)")
        database.execute("INSERT INTO sales VALUES ('Anna', '2024-01-31', 1.5, 1), (NULL, NULL, 2, 0)")


async def test_gold_for_postgres_reproduces_on_the_loaded_databases(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    write_questions(tmp_path)
    for name in ("shop", "wallet"):
        write_database(tmp_path / f"{name}.sqlite")
    names = load(tmp_path, postgres.admin_url)
    assert write_ids(tmp_path, names, tmp_path / "ids.txt") == 2
    suite = load_on_server(tmp_path, f"{postgres.admin_url}/{PLACE}")
    chosen = suite.chosen(ids=read_ids(tmp_path / "ids.txt"))
    assert [(question.id, question.database) for question in chosen] == [("0000", "shop"), ("0002", "wallet")]
    found = await verify_gold(suite, chosen)
    assert [(check.state, check.rows) for check in found.values()] == [("ok", 2), ("ok", 1)]
