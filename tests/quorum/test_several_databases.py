"""Several databases in one question, from the command line, a script, a variable and a file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from quorum import ask_sync
from quorum.cli import cli
from quorum.graph.runs import RunFolder
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.settings import Settings, resumed_options
from quorum.tools.urls import locations, urls_in
from tests.graph.shop import FINE
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
    (workplace / "said.json").write_text(json.dumps(SAID))
    return ["sqlite:///shop.db", "crm.duckdb"]


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, list(arguments))
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


def test_a_question_on_the_command_line(two: list[str]) -> None:
    flags = ["--db", two[0], "--db", two[1], "--model", "scripted:said.json", "--votes", "1"]
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
    meta = RunFolder.open(Path(".quorum"), "last").meta()
    assert [Path(url).name for url in meta["options"]["database"]] == ["shop.db", "crm.duckdb"]
    assert run("keep", "last").exit_code == 0
    again = run("ask", QUESTION, "--db", two[0], "--db", two[1], "--model", "offline")
    assert "verified by" in again.stdout


def test_a_variable_and_a_file_name_several(
    two: list[str], workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (workplace / "quorum.toml").write_text('database = ["shop.db", "duckdb:///crm.duckdb"]')
    (workplace / "below").mkdir()
    monkeypatch.chdir(workplace / "below")
    assert Settings().database == [str(workplace / "shop.db"), f"duckdb:///{workplace}/crm.duckdb"]
    monkeypatch.setenv("QUORUM_DATABASE", "a.db, postgresql://u@h/db?schema=a,b,mysql://h/x?schema=y,sample")
    assert Settings().database == [
        "a.db",
        "postgresql://u@h/db?schema=a,b",
        "mysql://h/x?schema=y",
        "sample",
    ]


@pytest.mark.parametrize(
    ("text", "urls"),
    [
        ("", []),
        ("a.db", ["a.db"]),
        ("a.db,b.csv", ["a.db", "b.csv"]),
        ("sqlite:///a.db,b.csv", ["sqlite:///a.db", "b.csv"]),
        ("postgresql://h1,h2/db", ["postgresql://h1,h2/db"]),
        ("bigquery://p?dataset=a,b , snowflake://acc/db", ["bigquery://p?dataset=a,b", "snowflake://acc/db"]),
    ],
)
def test_commas_of_a_url_are_its_own(text: str, urls: list[str]) -> None:
    assert urls_in(text) == urls


def test_doctor_and_schema_see_all_of_them(two: list[str]) -> None:
    checks = json.loads(run("doctor", "--db", two[0], "--db", two[1], "--model", "offline", "--json").stdout)
    found: list[Any] = checks["checks"] if isinstance(checks, dict) else checks
    texts = [check["text"] for check in found if check["name"] in ("database", "databases")]
    assert [text.split()[0] for text in texts] == [two[0], two[1], "2"]
    assert "joined by DuckDB as crm, shop" in texts[2]
    shown = run("schema", "show", "shop.db", "crm.duckdb").stdout
    assert "table shop.main.orders" in shown
    assert "table crm.main.customers" in shown
    judged = run("guard", SQL, "--db", two[0], "--db", two[1]).stdout
    assert "\n  shop: SELECT" in judged
    assert "\n  crm, read in place: main.customers" in judged


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


def test_passwords_of_all_of_them_are_secrets_and_are_to_be_given_again(workplace: Path) -> None:
    urls = ["postgresql://me:first-one@h/a", "mysql://me:other-one@h/b"]
    settings = Settings(database=urls)
    assert {"first-one", "other-one"} <= set(settings.secrets())
    assert settings.shown()["database"] == "postgresql://me:[redacted]@h/a, mysql://me:[redacted]@h/b"
    meta = {"question": "q", "options": {"database": urls, "models": ["offline"]}}
    trace = Trace.create(workplace / "q", meta=meta, redact=settings.secrets())
    trace.close()
    kept = trace.meta()
    assert "-one" not in json.dumps(kept)
    with pytest.raises(ConfigurationError, match="database held a password"):
        resumed_options(kept, Settings())
    with pytest.raises(ConfigurationError, match="Give it as it was"):
        resumed_options(kept, Settings(database=urls[:1]))
    assert resumed_options(kept, Settings(database=urls)).database == urls


def test_what_is_explored_of_several_is_kept_for_these_places(workplace: Path) -> None:
    both = locations(["sqlite:///a.db", "postgresql://me@h/b"])
    assert both == f"{workplace}/a.db\npostgresql://h/b"
    assert both != locations(["sqlite:///a.db"])


def test_an_evaluations_own_questions_are_on_one_database_each(two: list[str], workplace: Path) -> None:
    (workplace / "asked.jsonl").write_text('{"question": "q", "sql": "SELECT 1"}\n')
    (workplace / "quorum.toml").write_text('database = ["shop.db", "crm.duckdb"]')
    failed = run("eval", "run", "asked.jsonl", "--model", "offline")
    assert failed.exit_code == 2
    assert "one database each" in failed.output
