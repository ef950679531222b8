"""What ``quorum.tools.databases.base.Connector`` promises, as tests that every connector runs.

A connector's test module subclasses ``ConnectorContract`` and supplies the engine's own ways to
write a database and to misbehave; one of an engine that reads a file in child processes, ``FileContract``.
"""

from __future__ import annotations

import asyncio
import gc
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import ClassVar
from unittest.mock import AsyncMock
from urllib.parse import quote

import psutil
import pytest

from quorum.knowledge.catalog import Catalog, ForeignKey
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.knowledge.schema.render import render
from quorum.tools.databases import connect, introspection
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import Introspection
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult
from tests.engines import build, start_no_process
from tests.waiting import until, wait_until

SHOP = '''
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR NOT NULL, credit DOUBLE);
INSERT INTO customers VALUES (1, 'Ann', 1.5), (2, 'Bob', NULL), (3, 'Ann', 2.5);
CREATE TABLE "order ""x""" (
    id INTEGER, line INTEGER, customer INTEGER REFERENCES customers(id), PRIMARY KEY (id, line)
);
INSERT INTO "order ""x""" VALUES (1, 1, 1), (1, 2, 1), (2, 1, 2);
CREATE TABLE returns (
    "order" INTEGER, line INTEGER, reason VARCHAR,
    FOREIGN KEY ("order", line) REFERENCES "order ""x"""(id, line)
);
CREATE TABLE "Größe" ("Fläche m²" DOUBLE, 名前 VARCHAR);
INSERT INTO "Größe" VALUES (2.5, '東京');
CREATE TABLE events (id INTEGER, payload VARCHAR);
INSERT INTO events VALUES (1, '{"user": {"name": "Ann"}, "tags": ["a"]}'), (2, '{"user": {"age": 7}}');
CREATE VIEW rich AS SELECT name, credit * 2 AS doubled FROM customers WHERE credit > 1;
CREATE TABLE gone (x INTEGER);
CREATE VIEW broken AS SELECT x FROM gone;
DROP TABLE gone;
'''
SOON = Limits(seconds=0.3)
ENDLESS = "WITH RECURSIVE spin(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM spin) SELECT count(*) FROM spin"
MILLION = """
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
    SELECT a.i, b.i AS j, 'row ' || a.i AS text FROM n AS a CROSS JOIN n AS b
"""


def result(outcome: QueryResult | QueryError) -> QueryResult:
    """The result of a query that must have succeeded."""
    assert isinstance(outcome, QueryResult), outcome
    return outcome


def rows(outcome: QueryResult | QueryError) -> list[tuple[object, ...]]:
    """The rows of a query that must have succeeded."""
    columns = [column.to_pylist() for column in result(outcome).table.columns]
    return list(zip(*columns, strict=True))


def error(outcome: QueryResult | QueryError) -> QueryError:
    """The error of a query that must have failed."""
    assert isinstance(outcome, QueryError), rows(outcome)
    return outcome


async def check_errors(connector: Connector, lines: Iterable[Sequence[str]]) -> None:
    """See to it that each query fails: its kind, line:column or "-", the query, names suggested."""
    for kind, place, sql, *suggestions in lines:
        failed = error(await connector.run(sql, Limits()))
        found = ":".join(str(each) for each in (failed.line, failed.column) if each) or "-"
        assert (failed.kind.value, found) == (kind, place), (sql, failed)
        assert [", ".join(failed.suggestions)] == (suggestions or [""]), (sql, failed)
        assert re.fullmatch(r"(?!.*Error:).+[.!]", failed.message), failed  # one line, a sentence


def listed(shared: Path, dialect: str, verdict: str) -> list[str]:
    """The queries of the shared lists that a guard must ``pass`` or ``refuse``."""
    files = (shared / "security" / name for name in (f"{verdict}.jsonl", f"{verdict}2.jsonl"))
    entries = (json.loads(line) for file in files for line in file.read_text().splitlines())
    return [entry["sql"] for entry in entries if entry["dialect"] == dialect]


def nulls(catalog: Catalog) -> set[str]:
    """Columns that are said to hold NULLs."""
    return {f"{table.name}.{column.name}" for table, column in catalog.columns() if column.nulls}


def children() -> list[psutil.Process]:
    """The engines' processes that this process has started."""
    return [
        child for child in psutil.Process().children() if "quorum.tools.databases.worker" in child.cmdline()
    ]


def ended(process: psutil.Process) -> bool:
    """Return True if it is gone, or nobody has asked for its status yet."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def at_work(connector: Connector) -> int:
    """Return how many queries the connector's processes have been sent and have not answered."""
    pool = connector._pool  # type: ignore[attr-defined]
    return sum(child.ready and child not in pool._idle for child in pool._children)


class OnServer:
    """What asks a server: ``server`` is the fixture of that name."""

    server_name: ClassVar[str] = ""

    @pytest.fixture(autouse=True)
    def _server(self, request: pytest.FixtureRequest) -> None:
        self.names: dict[Path, str] = {}
        if self.server_name:
            self.server = request.getfixturevalue(self.server_name)


class RightsContract(OnServer):
    """The contract on an account that sees no table: the schema is absent or closed, or the tables are."""

    hides: ClassVar[bool] = True  # whether the engine shows no schema that the account may not use

    def urls(self) -> tuple[dict[str, str], dict[str, str]]:
        """URL and schema's name by "absent" (spelt nearly as "unread"), "closed" and "unread"."""
        raise NotImplementedError

    def grants(self, schema: str) -> tuple[str, ...]:
        """The statements that let the account use a schema, and last the one that lets it read the tables."""
        raise NotImplementedError

    async def test_three_ways_to_see_no_table(self) -> None:
        urls, names = self.urls()
        found = []
        for case in ("absent", "closed", "unread"):
            with pytest.raises(DatabaseUnavailable) as caught:
                async with connect(urls[case]) as connector:
                    await connector.catalog()
            found.append((str(caught.value), caught.value.hint))
        (absent, there), (closed, open_it), (unread, grant) = found
        assert f"holds no schema {names['absent']}" in absent
        assert f"There are: {names['unread']}" in there, "the nearest first"
        if self.hides:
            assert f"holds no schema {names['closed']}, or hides it from " in closed
        else:
            assert f"has no right to use the schema {names['closed']} of" in closed
        assert all(statement in open_it for statement in self.grants(names["closed"]))
        assert f"may read none of the 1 tables of the schema {names['unread']} of" in unread
        *others, read = self.grants(names["unread"])
        assert read in grant
        assert not any(other in grant for other in others)


VALUES = (
    *("test_catalog", "test_what_is_said_of_all", "test_result", "test_column_names", "test_caps"),
    *("test_an_estimate", "test_text_that_cannot", "test_opens_"),
)
"""Beginnings of tests of what is read, not of the process that reads: embedded engines are in this one."""


class ConnectorContract(OnServer):
    """Subclass it per engine; test functions get an open connector on the shop."""

    scheme: ClassVar[str]
    long_text: ClassVar[str]  # SQL for 100,000 characters
    whole_double: ClassVar[str] = "{}.0"  # how the engine writes a whole number that is a double
    shop_script: ClassVar[str] = SHOP
    scans: ClassVar[bool] = True  # whether a catalog may read all rows, and views; not where that is billed

    def said(self, sql: str) -> str:
        """A query of the contract in the engine's own words."""
        return sql

    @property
    def dialect(self) -> str:
        return self.scheme

    def build(self, path: Path, script: str) -> None:
        """Write a database with the engine's own driver."""
        raise NotImplementedError

    def at_work(self, connector: Connector) -> int:
        """Return how many queries have been sent and not answered."""
        raise NotImplementedError

    def running(self, connector: Connector, path: Path) -> object:
        """Return what the engine works at; a server by its own word."""
        return self.at_work(connector)

    def state(self, path: Path) -> object:
        """Whatever a write to the database would change."""
        raise NotImplementedError

    @pytest.fixture(autouse=True)
    def _engine(self, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
        if request.node.name.startswith(VALUES):
            start_no_process(monkeypatch)

    @pytest.fixture
    def path(self, tmp_path: Path) -> Path:
        path = tmp_path / f"shop.{self.scheme}"
        self.build(path, self.shop_script)
        return path

    @pytest.fixture
    async def shop(self, path: Path):
        async with self.connect(path) as connector:
            yield connector

    def connect(self, path: Path) -> Connector:
        raise NotImplementedError

    def made(self, folder: Path, script: str) -> Connector:
        """A connector to a database that the script has filled."""
        self.build(folder / "made.db", script)
        return self.connect(folder / "made.db")

    # Catalog

    async def test_catalog(self, shop: Connector) -> None:
        catalog = await shop.catalog()
        assert catalog.dialect == self.dialect
        names = {table.name for table in catalog.tables}
        assert names == {"customers", 'order "x"', "returns", "Größe", "events", "rich"}
        (left_out,) = catalog.left_out
        assert "broken cannot be read and is left out: " in left_out
        assert left_out in catalog.notes
        assert catalog.hash == (await shop.catalog()).hash
        customers, order = table(catalog, "customers"), table(catalog, 'order "x"')
        assert [column.name for column in customers.columns] == ["id", "name", "credit"]
        assert [column.nullable for column in customers.columns] == [False, False, True]
        assert customers.row_count == 3
        assert customers.columns[1].samples == ("Ann", "Bob")  # the most frequent first
        assert table(await shop.catalog(samples=1), "customers").columns[1].samples == ("Ann",)
        assert table(catalog, "Größe").columns[1].samples == ("東京",)
        assert order.primary_key == ("id", "line")
        assert order.foreign_keys == (ForeignKey(("customer",), customers.full_name, ("id",)),)
        key = ForeignKey(("order", "line"), order.full_name, ("id", "line"))
        assert table(catalog, "returns").foreign_keys == (key,)
        rich, payload = table(catalog, "rich"), table(catalog, "events").columns[1]
        assert (rich.kind, rich.row_count) == ("view", None)
        assert rich.columns[1].type  # an expression, typed nonetheless
        if self.scans:
            assert rich.columns[1].samples == tuple(map(self.whole_double.format, (3, 5)))
        assert {field.path for field in payload.fields} == {"user.name", "user.age", "tags[]"}
        assert all(field.inferred for field in payload.fields)

    async def test_catalog_samples_of_small_tables(self, tmp_path: Path) -> None:
        letters = ", ".join(f"({i}, '{'abcdefgh'[i % 8]}', 'hash{i}', {i})" for i in range(40))
        script = f"""
            CREATE TABLE people (id INTEGER, grade VARCHAR, "userPassword" VARCHAR, mark INTEGER);
            INSERT INTO people VALUES {letters};
            CREATE TABLE small (
                id INTEGER, kind VARCHAR, mixed VARCHAR, none VARCHAR, blank VARCHAR, pad VARCHAR,
                "long" VARCHAR, password VARCHAR, bytes BLOB, nobytes BLOB, price DOUBLE
            );
            INSERT INTO small VALUES
                (1, 'a', '', NULL, '', ' ', {self.long_text}, 'k', CAST('x' AS BLOB), NULL, 0.5),
                (2, 'b', 'x', NULL, '', ' ', NULL, 'k', NULL, NULL, 1),
                (3, NULL, 'x', NULL, '', NULL, NULL, 'k', NULL, NULL, 1),
                (4, 'a', NULL, NULL, '', ' ', NULL, 'k', NULL, NULL, 1);
            CREATE TABLE settings (name VARCHAR, value VARCHAR);
            INSERT INTO settings VALUES ('color', 'red'), ('smtp_password', 'hunter2');
            CREATE TABLE thirteen AS SELECT id FROM people WHERE id < 13;
            CREATE TABLE empty (x INTEGER);
            CREATE VIEW seen AS SELECT kind FROM small;
        """
        async with self.made(tmp_path, script) as connector:
            catalog = await connector.catalog()
            none = await connector.catalog(samples=0)
        people, small, seen = (table(catalog, name) for name in ("people", "small", "seen"))
        assert sorted(people.columns[1].samples) == list("abcdefgh")
        assert people.columns[2].samples == ()
        assert len(people.columns[3].samples) == 3, "a value each: some are enough"
        assert any("people.userPassword" in note for note in catalog.notes)
        assert {c.name: c.samples for c in small.columns if c.complete} == {
            **{"kind": ("a", "b"), "mixed": ("x", ""), "none": (), "blank": ("",), "nobytes": ()},
            "price": small.columns[10].samples,
        }
        cells = {c.name: c.cells for c in small.columns}
        one = self.whole_double.format(1)
        assert (cells["id"], cells["kind"]) == (("1", "2", "3", "4"), ("a", "b", None, "a"))
        assert (cells["price"], cells["password"], cells["bytes"]) == (("0.5", one, one, one), (), ())
        assert str(cells["long"][0]).endswith("…"), "long values are cut"
        assert not any(c.cells for c in table(catalog, "settings").columns), "a row may be a private one"
        assert table(catalog, "thirteen").columns[0].cells == ()
        assert not table(catalog, "empty").columns[0].complete
        assert (seen.columns[0].complete, seen.columns[0].cells) == (
            (True, cells["kind"]) if self.scans else (False, ())
        )
        assert not any(column.complete or column.cells for _, column in none.columns())

    async def test_what_is_said_of_all_values_is_true_of_rows_that_no_sample_saw(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        rare = "CASE WHEN i = 4321 THEN 'rare' ELSE 'common' END"
        script = f"""
            CREATE TABLE big (
                id INTEGER, kind VARCHAR, rare VARCHAR, none VARCHAR, hardly VARCHAR, twin INTEGER);
            INSERT INTO big WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
            SELECT i, CASE WHEN i % 2 = 0 THEN 'even' ELSE 'odd' END, {rare}, NULL, nullif({rare}, 'common'),
                CASE WHEN i = 4321 THEN 4320 ELSE i END FROM n;
            CREATE VIEW seen AS SELECT kind FROM big;
        """
        async with self.made(tmp_path, script) as connector:
            catalog = await connector.catalog()
            complete = {c.name for c in table(catalog, "big").columns if c.complete}
            assert complete == ({"kind", "none"} if self.scans else set())
            assert table(catalog, "big").column("rare").samples == ("common",)  # type: ignore[union-attr]
            unique = {c.name: c.profile.unique for c in table(catalog, "big").columns if c.profile}
            asked = connector.owner(table(catalog, "big"))[0].dialect in introspection.COMPARED_ROWS
            assert (unique["id"], unique["twin"]) == ((True, False) if asked else (None, None))
            assert ("unique: not looked for in large tables" in render(catalog).text) != asked
            if not self.scans:
                return
            seen = table(catalog, "seen").columns[0]
            assert (sorted(seen.samples), seen.complete) == (["even", "odd"], False), "a view is not counted"
            monkeypatch.setattr(Introspection, "count", AsyncMock(return_value=None))
            late = table(await connector.catalog(), "big").columns[1]
        assert (sorted(late.samples), late.complete) == (["even", "odd"], False), "not known for lack of time"

    async def test_catalog_tells_nulls_and_duplicates(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        script = """
            CREATE TABLE few (id INTEGER, kind VARCHAR, none VARCHAR);
            INSERT INTO few VALUES (1, 'a', NULL), (1, 'a', NULL), (2, NULL, NULL), (2, 'a', NULL);
            CREATE TABLE pictures (id INTEGER, picture BLOB);
            INSERT INTO pictures VALUES (1, CAST('x' AS BLOB)), (1, CAST('y' AS BLOB));
            CREATE TABLE many (id INTEGER, kind VARCHAR, rare VARCHAR);
            INSERT INTO many WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 4999)
            SELECT i % 1000, 'k', CASE WHEN i = 4321 THEN NULL ELSE 'r' END FROM n;
            CREATE TABLE keyed (id INTEGER PRIMARY KEY, kind VARCHAR);
            INSERT INTO keyed
            SELECT max(id) * 1000 + row_number() OVER (), kind FROM many GROUP BY id, kind, rare;
            CREATE VIEW seen AS SELECT * FROM few;
        """
        async with self.made(tmp_path, script) as connector:
            catalog = await connector.catalog()
            monkeypatch.setattr(introspection, "SCANNED_ROWS", 4_999)
            bounded = await connector.catalog()
            monkeypatch.setattr(introspection, "SCANNED_ROWS", 5_000)
            monkeypatch.setattr(introspection, "SCANNED_BYTES", 1_000)
            light = await connector.catalog()
        distinct = {t.name: t.distinct_rows for t in catalog.tables if t.distinct_rows}
        if not self.scans:
            assert (distinct, nulls(catalog)) == ({"few": 3}, {"few.kind"})
            return
        assert distinct == {"few": 3, "many": 1001}
        assert nulls(catalog) == {"few.kind", "many.rare", "seen.kind"}
        assert nulls(bounded) == {"few.kind", "seen.kind"}
        assert table(bounded, "many").distinct_rows is None
        assert nulls(light) == nulls(catalog)
        assert table(light, "many").distinct_rows is None

    async def test_catalog_tells_how_values_are_written(self, tmp_path: Path) -> None:
        script = """
            CREATE TABLE log (id INTEGER, day VARCHAR, paid VARCHAR, code VARCHAR);
            INSERT INTO log WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 2999)
            SELECT i,
            CASE WHEN i = 1777 THEN '2031-05-06' WHEN i = 1778 THEN '1999-01-02' ELSE '2024-01-05' END,
            CASE WHEN i % 10 = 0 THEN 'USD 1,234' ELSE '$5,678.90' END,
            CASE WHEN i % 10 = 0 THEN 'a0001 ' WHEN i % 5 = 0 THEN 'A0007' WHEN i % 2 = 0 THEN 'A0003'
            WHEN i % 3 = 0 THEN 'A0005' WHEN i % 7 = 0 THEN 'A0009' ELSE 'A0001' END FROM n;
            CREATE TABLE codes (code VARCHAR);
            INSERT INTO codes VALUES ('A0001'), ('A0003'), ('A0005'), ('A0007'), ('A0009'), ('A0011');
        """
        async with self.made(tmp_path, script) as connector:
            log = table(await connector.catalog(), "log")
        _, day, paid, code = (column.profile for column in log.columns)
        assert {form.text for form in paid.forms} == {"$9,999.99", "USD 9,999"}
        assert code.variants == (("A0001", "a0001 "),)
        (key,) = code.keys
        assert (key.table.rpartition(".")[2], key.after) == ("codes", ("trim", "case"))
        if self.scans:
            assert (day.low, day.high, day.exact) == ("1999-01-02", "2031-05-06", True)

    async def test_catalog_without_tables(self, tmp_path: Path) -> None:
        async with self.made(tmp_path, "CREATE TABLE t (x INTEGER); DROP TABLE t;") as connector:
            with pytest.raises(DatabaseUnavailable, match="holds no table"):
                await connector.catalog()

    # Results

    async def test_result(self, shop: Connector) -> None:
        sql = self.said("SELECT id, name, credit FROM customers ORDER BY id")
        outcome = result(await shop.run(sql, Limits()))
        assert rows(outcome) == [(1, "Ann", 1.5), (2, "Bob", None), (3, "Ann", 2.5)]
        assert outcome.columns == ["id", "name", "credit"]
        assert len(outcome.column_types) == 3
        assert (outcome.sql, outcome.truncated) == (sql, "")
        assert 0 < outcome.seconds < Limits().seconds
        bare = result(await shop.run(self.said("SELECT id, name FROM customers WHERE id < 0"), Limits()))
        assert (rows(bare), bare.columns) == ([], ["id", "name"])
        assert rows(await shop.run(self.said('SELECT count(*) FROM "order ""x"""'), Limits())) == [(3,)]
        odd = self.said('SELECT "Fläche m²", 名前 FROM "Größe"')
        assert rows(await shop.run(odd, Limits())) == [(2.5, "東京")]

    async def test_column_names_may_repeat(self, shop: Connector) -> None:
        twice = self.said("SELECT a.id, b.id FROM customers a JOIN customers b USING (id)")
        outcome = result(await shop.run(twice, Limits()))
        assert outcome.columns == ["id", "id"]

    # Limits

    async def test_caps(self, shop: Connector) -> None:
        for cap, kept, truncated in ((1, 1, "rows"), (2, 2, "rows"), (3, 3, ""), (4, 3, "")):
            outcome = result(await shop.run(self.said("SELECT * FROM customers"), Limits(rows=cap)))
            assert (outcome.row_count, outcome.truncated) == (kept, truncated)
        outcome = result(await shop.run(self.said(MILLION), Limits(rows=10**6, bytes=100_000)))
        assert outcome.truncated == "bytes"
        assert 50_000 < outcome.table.nbytes <= 100_000
        outcome = await shop.run(self.said("SELECT name FROM customers"), Limits(bytes=1))
        assert (rows(outcome), outcome.truncated) == ([], "bytes")

    async def test_million_rows_in_flat_memory(self, shop: Connector) -> None:
        await shop.run(self.said(MILLION), Limits(rows=100_000))
        processes = [psutil.Process(), *children()]
        before = [process.memory_info().rss for process in processes]
        for _ in range(3):
            outcome = result(await shop.run(self.said(MILLION), Limits(rows=100_000)))
            assert (outcome.row_count, outcome.truncated) == (100_000, "rows")
        after = [process.memory_info().rss for process in processes]
        grown = [(now - then) / 2**20 for then, now in zip(before, after, strict=True)]
        assert max(grown) < 48, grown

    async def test_endless_query_is_stopped(self, shop: Connector, path: Path) -> None:
        began = time.monotonic()
        outcome = error(await shop.run(ENDLESS, SOON))
        assert outcome.kind is ErrorKind.TIMEOUT
        assert time.monotonic() - began < 2.5
        await until(lambda: not self.running(shop, path))
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]

    async def test_an_estimate_runs_nothing(self, shop: Connector) -> None:
        found = await shop.estimate(ENDLESS, Limits(seconds=5))
        assert not isinstance(found, QueryError), found
        assert (found is not None) == shop.estimates
        assert self.at_work(shop) == 0
        said = self.said("SELECT * FROM customers")
        known = await shop.estimate(said, Limits())
        assert isinstance(known, Estimate) == shop.estimates
        if isinstance(known, Estimate):
            assert known.bytes is not None
            assert known.bytes > 0
            wrong = error(await shop.estimate(self.said("SELECT nope FROM customers"), Limits()))
            assert wrong.kind is ErrorKind.COLUMN_NOT_FOUND

    async def test_cancelling_the_task_cancels_the_query(self, shop: Connector, path: Path) -> None:
        await shop.run("SELECT 1", Limits())
        query = asyncio.create_task(shop.run(ENDLESS, Limits()))
        await until(lambda: self.at_work(shop) and self.running(shop, path))
        query.cancel()
        with pytest.raises(asyncio.CancelledError):
            await query
        assert self.at_work(shop) == 0
        await until(lambda: not self.running(shop, path))
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]

    async def test_queries_run_at_the_same_time(self, shop: Connector) -> None:
        slow = [asyncio.create_task(shop.run(ENDLESS, Limits(seconds=600))) for _ in range(3)]
        await until(lambda: self.at_work(shop) == 3)
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]
        assert not any(task.done() for task in slow)
        assert len(children()) in (0, 4)
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)
        ended = await asyncio.gather(*(shop.run(ENDLESS, SOON) for _ in range(3)))
        assert {error(outcome).kind for outcome in ended} == {ErrorKind.TIMEOUT}

    # Closing

    async def test_close_leaves_nothing_behind(self, path: Path) -> None:
        here = psutil.Process()
        async with self.connect(path) as connector:  # the loop's own descriptors come with first use
            await connector.run("SELECT 1", Limits())
        before = here.num_fds()
        connector = self.connect(path)
        await connector.close()
        await connector.open()
        queries = [asyncio.create_task(connector.run(ENDLESS, Limits(seconds=600))) for _ in range(3)]
        await until(lambda: self.at_work(connector) == 3)
        engines = children()
        await connector.close()
        await connector.close()
        assert {error(outcome).kind for outcome in await asyncio.gather(*queries)} == {ErrorKind.UNAVAILABLE}
        assert len(engines) in (0, 3)
        assert not any(psutil.pid_exists(engine.pid) for engine in engines)  # no zombie either

        def closed() -> bool:
            gc.collect()  # urllib3 closes its pools when they are, and a thread may hold one a moment longer
            return here.num_fds() <= before

        await until(closed)  # a server in this process closes its own ends
        with pytest.raises(DatabaseUnavailable, match="closed"):
            await connector.run("SELECT 1", Limits())

    # Safety, with the guard out of the way

    async def test_refuses_to_write(self, shop: Connector, path: Path) -> None:
        before = self.state(path)
        for sql in (
            "INSERT INTO customers VALUES (9, 'Eve', 0)",
            "UPDATE customers SET name = 'Eve'",
            "DELETE FROM customers",
            "DROP TABLE customers",
            "CREATE TABLE loot AS SELECT * FROM customers",
            "CREATE TEMP TABLE loot AS SELECT * FROM customers",
            "CREATE VIEW loot AS SELECT * FROM customers",
            "CREATE INDEX loot ON customers(name)",
            "ALTER TABLE customers ADD COLUMN loot INTEGER",
            "INSERT INTO customers VALUES (9, 'Eve', 0) RETURNING id",
            f"ATTACH '{path.parent}/evil.db' AS evil",
            f"VACUUM INTO '{path.parent}/evil.db'",
            "BEGIN",
            "SELECT 1; DROP TABLE customers",
        ):
            outcome = error(await shop.run(sql, Limits()))
            assert outcome.kind in (ErrorKind.PERMISSION, ErrorKind.SYNTAX, ErrorKind.OTHER), sql
        assert rows(await shop.run(self.said("SELECT count(*) FROM customers"), Limits())) == [(3,)]
        assert self.state(path) == before

    async def test_text_that_cannot_be_encoded(self, shop: Connector) -> None:
        for sql in ("SELECT '\ud800'", "SELECT '\ud800' FROM nowhere", "SELECT 1\0"):
            error(await shop.run(sql, Limits()))
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]

    # The event loop

    async def test_never_blocks_the_event_loop(self, path: Path) -> None:
        blockbuster = pytest.importorskip("blockbuster")
        async with self.connect(path) as connector:  # imports come with first use
            await connector.catalog()
        connector = self.connect(path)
        with blockbuster.blockbuster_ctx():
            async with connector:
                await connector.catalog()
                await connector.run(self.said(MILLION), Limits(rows=1000))
                await connector.run(ENDLESS, SOON)


class FileContract(ConnectorContract):
    """The contract of an engine that reads a file, in child processes."""

    odd_names: ClassVar[tuple[str, ...]] = ("with space.db", "50%.db", "a#b.db", "ä'ö\".db")

    def build(self, path: Path, script: str) -> None:
        build(self.scheme, path, script)

    def connect(self, path: Path) -> Connector:
        return connect(f"{self.scheme}:///{quote(str(path))}")

    def at_work(self, connector: Connector) -> int:
        return at_work(connector)

    def state(self, path: Path) -> object:
        return path.read_bytes(), sorted(path.parent.iterdir())

    async def test_opens_by_url_and_by_path(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(path.parent)
        monkeypatch.setenv("HOME", str(path.parent))
        for url in (f"{self.scheme}:///{path.name}", f"{self.scheme}:///{path}", path.name, f"~/{path.name}"):
            async with connect(url) as connector:
                assert rows(await connector.run("SELECT count(*) FROM customers", Limits())) == [(3,)]
                assert connector.dialect == self.scheme

    async def test_opens_files_of_odd_names(self, tmp_path: Path) -> None:
        for name in self.odd_names:
            path = tmp_path / name
            self.build(path, "CREATE TABLE t (x INTEGER);")
            async with self.connect(path) as connector:
                assert (await connector.catalog()).name == path.stem

    @pytest.mark.parametrize("rest", ["", "/", "/:memory:", "host/file.db", "file.db", "/a.db?mode=rw"])
    def test_malformed_url(self, rest: str) -> None:
        with pytest.raises(ConfigurationError):
            connect(f"{self.scheme}://{rest}")

    async def test_what_is_no_database(self, tmp_path: Path, path: Path) -> None:
        whole = path.read_bytes()
        hole = whole[:150] + b"\xff" * (16_384 - 150) + whole[16_384:]
        cases = (
            *((b"", "empty"), (b"id,name\n" * 99, "not a"), (whole[: len(whole) // 2], "damaged")),
            (hole, "is damaged"),
        )
        for text, message in cases:
            (tmp_path / "broken").write_bytes(text)
            with pytest.raises(DatabaseUnavailable, match=message):
                await self.connect(tmp_path / "broken").open()
        with pytest.raises(DatabaseUnavailable, match="folder"):
            await self.connect(tmp_path).open()
        before = sorted(tmp_path.iterdir())
        for missing in (tmp_path / "none.db", tmp_path / "nowhere" / "none.db"):
            with pytest.raises(DatabaseUnavailable, match="no file"):
                await self.connect(missing).open()
        assert (children(), sorted(tmp_path.iterdir())) == ([], before)

    async def test_deaf_engine_is_killed(self, shop: Connector) -> None:
        await shop.run("SELECT 1", Limits())
        (child,) = children()
        os.kill(child.pid, signal.SIGSTOP)
        outcome = error(await shop.run("SELECT 1", SOON))
        assert outcome.kind is ErrorKind.TIMEOUT
        assert not child.is_running()
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]

    @pytest.mark.parametrize(
        ("how", "kind"), [(signal.SIGABRT, ErrorKind.RESOURCES), (signal.SIGKILL, ErrorKind.TIMEOUT)]
    )
    async def test_engine_that_dies_is_replaced(
        self, shop: Connector, how: signal.Signals, kind: ErrorKind
    ) -> None:
        """What the system kills, where another process has used up the memory, is asked again."""
        await shop.run("SELECT 1", Limits())
        query = asyncio.create_task(shop.run(ENDLESS, SOON if how is signal.SIGKILL else Limits()))
        await until(lambda: at_work(shop))
        (child,) = children()
        child.send_signal(how)
        assert error(await query).kind is kind
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]

    async def test_memory_is_limited(self, shop: Connector) -> None:
        hungry = f"SELECT {self.long_text} || text AS long FROM ({MILLION}) AS m ORDER BY long"
        limits = Limits(memory=64 * 2**20)
        outcome = error(await shop.run(hungry, limits))
        assert outcome.kind is ErrorKind.RESOURCES
        assert rows(await shop.run("SELECT 1", limits)) == [(1,)]

    async def test_short_queries_share_a_process(
        self, shop: Connector, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("quorum.tools.databases.process.PATIENCE", 1000)
        outcomes = await asyncio.gather(*(shop.run(f"SELECT {i}", Limits()) for i in range(10)))
        assert [rows(outcome) for outcome in outcomes] == [[(i,)] for i in range(10)]
        assert len(children()) == 1

    @pytest.mark.parametrize("busy", [True, False])
    def test_children_die_with_their_parent(self, path: Path, root: Path, busy: bool) -> None:
        query = ENDLESS if busy else "SELECT 1"
        program = f"""
import asyncio
import gc
import os
from quorum.tools.databases import connect
from quorum.tools.query import Limits

async def main():
    connector = connect({str(path)!r})
    await connector.open()
    await connector.run("SELECT 1", Limits())
    query = asyncio.create_task(connector.run({query!r}, Limits()))
    while not query.done() and connector._pool._idle:
        await asyncio.sleep(0)
    {"" if busy else "await query"}
    print("ready", flush=True)
    await asyncio.sleep(60)

asyncio.run(main())
"""
        command = [sys.executable, "-c", program]
        with subprocess.Popen(command, cwd=root, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == "ready\n"
            (child,) = psutil.Process(process.pid).children()
            process.kill()
        wait_until(lambda: ended(child))

    async def test_child_sees_no_secret_and_no_interrupt(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
        async with self.connect(path):
            (child,) = children()
            assert not {"OPENAI_API_KEY", "HOME", "PATH"} & set(child.environ())
            assert os.getpgid(child.pid) != os.getpgid(0)

    async def test_modules_of_the_working_directory_are_not_loaded(
        self, path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = path.parent / "elsewhere"
        (folder / "tools").mkdir(parents=True)
        for decoy in ("tools/__init__.py", "json.py", "sqlite3.py", "duckdb.py"):
            (folder / decoy).write_text("raise SystemExit('decoy')")
        monkeypatch.chdir(folder)
        async with self.connect(path) as connector:
            assert rows(await connector.run("SELECT 1", Limits())) == [(1,)]

    async def test_session_stops_an_endless_query_by_itself(
        self, shop: Connector, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr("quorum.tools.databases.process.GRACE_SECONDS", 60.0)
        await shop.run("SELECT 1", Limits())
        child = children()
        outcome = error(await shop.run(ENDLESS, SOON))
        assert outcome.kind is ErrorKind.TIMEOUT
        assert rows(await shop.run("SELECT 1", Limits())) == [(1,)]
        assert children() == child  # the session stopped by itself


def table(catalog: Catalog, name: str):
    found = catalog.table(name)
    assert found is not None, name
    return found
