"""Several databases in one question, from the command line, a script, a variable and a file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorum import ask_sync
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import DatabaseUnavailable
from tests.graph.shop import FINE
from tests.quorum.conftest import quorum as run
from tests.tools.databases import test_duckdb, test_sqlite

SQL = (
    "SELECT c.name, sum(o.amount) AS total FROM shop.main.orders AS o "
    "JOIN crm.main.customers AS c ON c.id = o.customer WHERE o.id > 1 GROUP BY c.name"
)
SAID = {"sql_writer": {"reasoning": "Join.", "sql": SQL, "readings": [], "ordered": False}, "validator": FINE}
QUESTION = "How much did each customer spend?"


@pytest.fixture
def two(workplace: Path) -> list[str]:
    test_sqlite.build(
        workplace / "shop.db",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount REAL);"
        "INSERT INTO orders VALUES (1, 1, 1), (2, 1, 2), (3, 2, 4)",
    )
    test_duckdb.build(
        workplace / "crm.duckdb",
        "CREATE TABLE customers (id INTEGER, name VARCHAR);"
        "INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bo')",
    )
    replies = ({"agent": role, "reply": said} for role, said in SAID.items())
    (workplace / "said.jsonl").write_text("\n".join(map(json.dumps, replies)))
    return ["sqlite:///shop.db", "crm.duckdb"]


def test_a_question_on_the_command_line(two: list[str]) -> None:
    flags = ["--db", two[0], "--db", two[1], "--model", "replay:said.jsonl", "--votes", "1"]
    answered = run("ask", QUESTION, *flags)
    assert answered.exit_code == 0, answered.output
    for said in (
        "Ann",
        "Bo",
        "Read in each database:",
        'shop, 2 rows, 48 B: SELECT "p"."id", "p"."customer"',
        "crm, read in place: main.customers",
    ):
        assert said in answered.stdout
    shown = run("trace", "show", "last").stdout
    assert "2 parts read" in shown
    assert 'FROM "orders" AS "p" WHERE' in shown
    page = run("trace", "show", "last", "--html", "run.html")
    assert page.exit_code == 0
    assert "Read in each database" in Path("run.html").read_text()
    assert "table crm.main.customers" in run("schema", "show", "shop.db", "crm.duckdb").stdout
    assert "\n  crm, read in place: main.customers" in run("guard", SQL, *flags[:4]).stdout
    meta = RunFolder.open(Path(".quorum"), "last").meta()
    assert [Path(url).name for url in meta["options"]["database"]] == ["shop.db", "crm.duckdb"]
    assert run("keep", "last").exit_code == 0
    again = run("ask", QUESTION, "--db", two[0], "--db", two[1], "--model", "offline")
    assert "verified by" in again.stdout


def test_one_that_cannot_be_opened_is_named_and_no_password_is(two: list[str], workplace: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"absent\.db"):
        ask_sync(QUESTION, db=[two[0], "sqlite:///absent.db"], models=["offline"])
    pytest.importorskip("psycopg")
    url = "postgresql://me:hush-hush@127.0.0.1:1/db"
    failed = run("ask", QUESTION, "--db", two[0], "--db", url, "--model", "offline")
    assert failed.exit_code == 2
    assert "127.0.0.1:1/db cannot be opened" in failed.output
    assert "hush-hush" not in failed.output
    assert not list(Path(".quorum").rglob("events.jsonl"))
