"""SQLite by the contract, and what is its own."""

from __future__ import annotations

import sqlite3
from collections.abc import AsyncIterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import ForeignKey
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.sqlite.catalog import comments_of
from quorum.tools.databases.sqlite.values import SqliteCollector
from quorum.tools.query import ErrorKind, Limits
from tests.engines import build, start_no_process
from tests.tools.case_files import cases
from tests.tools.databases.contract import FileContract, check_errors, error, rows, table

ODD = """
CREATE TABLE parents (a INT, b INT, PRIMARY KEY (a, b)) WITHOUT ROWID;
CREATE TABLE texts (a TEXT PRIMARY KEY);
INSERT INTO texts VALUES (NULL);
CREATE TABLE pairs (a INTEGER, b INT NOT NULL, PRIMARY KEY (a, b));
CREATE TABLE children (
    id INTEGER PRIMARY KEY,
    a INT, b INT, -- whose child
    older INT REFERENCES Children, -- implicit, and in another case
    lost INT REFERENCES nowhere(x),
    twice INT GENERATED ALWAYS AS (id * 2) STORED,
    FOREIGN KEY (a, b) REFERENCES parents
);
INSERT INTO children (id, a) VALUES (1, 10), (2, 20);
CREATE VIRTUAL TABLE docs USING fts5(title, body);
INSERT INTO docs VALUES ('Tea', 'how to brew'), ('Coffee', 'how to roast');
CREATE VIRTUAL TABLE boxes USING rtree(id, low, high);
INSERT INTO boxes VALUES (1, 0, 5), (2, 6, 9);
CREATE TABLE mixed (v);
INSERT INTO mixed VALUES (1), ('one'), (NULL), (1.5), (x'00FF');
CREATE TABLE broken_text (v TEXT);
INSERT INTO broken_text VALUES ('fine'), (CAST(x'61FF62' AS TEXT));
"""


class TestSqlite(FileContract):
    scheme = "sqlite"
    long_text = "hex(zeroblob(50000))"
    odd_names = (*FileContract.odd_names, "a?b.db")  # DuckDB itself cannot open this one


@pytest.fixture
async def odd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Connector]:
    start_no_process(monkeypatch)
    async with connect(build("sqlite", tmp_path / "odd.db", ODD)) as connector:
        yield connector


async def only(connector: Connector, sql: str) -> object:
    """The single value of a query."""
    return rows(await connector.run(sql, Limits()))[0][0]


async def test_keys_comments_and_odd_tables(odd: Connector) -> None:
    catalog = await odd.catalog()
    assert set(table(catalog, "children").foreign_keys) == {
        ForeignKey(("a", "b"), "parents", ("a", "b")),
        ForeignKey(("older",), "children", ("id",)),
    }
    assert table(catalog, "parents").primary_key == ("a", "b")
    assert any("nowhere" in note for note in catalog.notes)
    children, docs, mixed = (table(catalog, name) for name in ("children", "docs", "mixed"))
    twice = children.column("twice")
    assert (twice.type, twice.samples) == ("INT", ("2", "4"))
    assert children.column("b").description == "whose child"
    virtual = {item.name for item in catalog.tables if item.name.startswith(("docs", "boxes"))}
    assert virtual == {"docs", "boxes"}, "no virtual one's storage"
    nullable = {item.name: [column.nullable for column in item.columns[:2]] for item in catalog.tables}
    assert nullable["texts"] == [True], "a key that is no row number may be NULL"
    assert [nullable[name] for name in ("pairs", "parents")] == [[True, False], [False, False]]
    assert nullable["children"] == [False, True]
    assert (docs.kind, [column.name for column in docs.columns]) == ("virtual", ["title", "body"])
    assert await only(odd, "SELECT title FROM docs WHERE docs MATCH 'brew'") == "Tea"
    assert await only(odd, "SELECT id FROM boxes WHERE low > 5") == 2
    assert mixed.columns[0].type == "BLOB|INTEGER|REAL|TEXT"
    assert mixed.columns[0].samples == ("1", "one", "1.5")


async def test_samples_come_from_all_over_the_table(tmp_path: Path) -> None:
    script = """CREATE TABLE log (at INTEGER PRIMARY KEY, kind TEXT);
        WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5000)
        INSERT INTO log SELECT i, CASE WHEN i < 2000 THEN 'old' ELSE 'new' END FROM n;"""
    async with connect(build("sqlite", tmp_path / "log.db", script)) as connector:
        log = table(await connector.catalog(), "log")
    assert (log.row_count, log.columns[1].samples) == (5000, ("new", "old"))


async def test_mixed_values_lose_nothing(odd: Connector) -> None:
    outcome = await odd.run("SELECT v FROM mixed", Limits())
    assert rows(outcome) == [("1",), ("one",), (None,), ("1.5",), ("X'00FF'",)]
    assert outcome.column_types == ("INTEGER|REAL|TEXT|BLOB",)
    broken = await odd.run("SELECT v FROM broken_text", Limits())
    assert rows(broken) == [("fine",), ("a\\xffb",)], "it is not UTF-8"


async def test_errors(odd: Connector) -> None:
    await check_errors(odd, cases("databases/cases/sqlite_errors", 3))


async def test_pragmas_that_only_describe_pass(odd: Connector) -> None:
    assert await only(odd, "SELECT count(*) FROM pragma_table_info('children')") == 5
    assert await only(odd, "SELECT count(*) FROM json_each('[1, 2]')") == 2
    assert await only(odd, "SELECT count(*) FROM pragma_table_list WHERE name = 'children'") == 1
    assert await only(odd, "SELECT count(*) > 0 FROM pragma_function_list") == 1


@pytest.mark.heavy
async def test_locked(tmp_path: Path) -> None:
    path = tmp_path / "busy.db"
    build("sqlite", path, "CREATE TABLE t (x);")
    async with connect(str(path)) as connector:
        writer = sqlite3.connect(path, isolation_level=None)
        writer.execute("BEGIN EXCLUSIVE")
        assert error(await connector.run("SELECT * FROM t", Limits())).kind is ErrorKind.UNAVAILABLE
        with pytest.raises(DatabaseUnavailable, match="locked"):
            await connect(f"sqlite:///{path}").open()
        with pytest.raises(DatabaseUnavailable, match="locked"):
            await connect(str(path)).open()  # looking at the file must not break the writer's lock
        writer.execute("COMMIT")
        assert rows(await connector.run("SELECT * FROM t", Limits())) == []
        writer.close()


def folder(path: Path) -> dict[str, tuple[int, int]]:
    """Size and time of each file beside a database."""
    return {file.name: (file.stat().st_size, file.stat().st_mtime_ns) for file in path.parent.iterdir()}


@pytest.fixture
def logged(tmp_path: Path) -> Path:
    """A database with a write-ahead log that no program has open."""
    path = tmp_path / "wal.db"
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript("PRAGMA journal_mode = WAL; CREATE TABLE t (x); INSERT INTO t VALUES (1);")
    return path


async def test_asking_leaves_nothing_beside_a_log_and_sees_who_begins_to_write(logged: Path) -> None:
    before = folder(logged)
    async with connect(str(logged)) as connector:
        assert await only(connector, "SELECT count(*) FROM t") == 1
        assert folder(logged) == before == {"wal.db": before["wal.db"]}
        with closing(sqlite3.connect(logged)) as writer:
            writer.executescript("INSERT INTO t VALUES (2);")
            assert await only(connector, "SELECT count(*) FROM t") == 2, "it lies in the log"
            writer.executescript("INSERT INTO t VALUES (3);")
            assert await only(connector, "SELECT count(*) FROM t") == 3
        with closing(sqlite3.connect(logged)) as writer:
            writer.executescript("INSERT INTO t VALUES (4); PRAGMA wal_checkpoint(TRUNCATE);")
        assert await only(connector, "SELECT count(*) FROM t") == 4


async def test_what_a_dead_writer_left_in_its_log_is_read_and_left(logged: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy" / "wal.db"
    copy.parent.mkdir()
    with closing(sqlite3.connect(logged)) as writer:
        writer.executescript("INSERT INTO t VALUES (2);")
        for file in (logged, *logged.parent.glob("wal.db-*")):
            (copy.parent / file.name).write_bytes(file.read_bytes())
    before = folder(copy)
    async with connect(str(copy)) as connector:
        assert await only(connector, "SELECT count(*) FROM t") == 2
    assert folder(copy) == before


async def test_what_does_not_open(tmp_path: Path) -> None:
    path, hot, other = (tmp_path / f"{name}.db" for name in ("whole", "hot", "other"))
    with closing(sqlite3.connect(path)) as writer:
        writer.executescript("""CREATE TABLE t (x);
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000)
            INSERT INTO t SELECT hex(zeroblob(500)) FROM n;
            PRAGMA cache_size = 5; BEGIN; UPDATE t SET x = 'y' || x;""")
        for end in ("", "-journal"):  # as a writer that dies leaves them
            Path(f"{hot}{end}").write_bytes(Path(f"{path}{end}").read_bytes())
    with pytest.raises(DatabaseUnavailable, match="journal"):
        await connect(str(hot)).open()
    other.write_bytes(b"\0" * 8 + b"DUCK" + b"\0" * 20_000)
    with pytest.raises(DatabaseUnavailable, match="duckdb:///"):
        await connect(f"sqlite:///{other}").open()


def test_comments_find_their_columns() -> None:
    found = comments_of(
        """CREATE TABLE orders ( -- what was bought
            -- the number
            -- on the invoice
            id INTEGER PRIMARY KEY,
            amount DECIMAL(10, 2) DEFAULT (1 + 2), -- in euros, incl. tax
            "the, day" TEXT /* local
                time */ NOT NULL,
            note TEXT DEFAULT '-- no comment', plain INT,
            state TEXT CHECK (state IN ('a', 'b')) -- a: open
                -- b: closed
                ,
            /* keys */
            FOREIGN KEY (id) REFERENCES others (id) -- not a column
        ) -- the end"""
    )
    assert found == {
        "": "what was bought the end",
        "id": "the number on the invoice",
        "amount": "in euros, incl. tax",
        "the, day": "local time",
        "state": "a: open b: closed",
    }


@given(st.text(alphabet="ab(),-/*'\"`[]\n "))
def test_any_text_is_read(text: str) -> None:
    found = comments_of(f"CREATE TABLE t ({text}")
    assert all(isinstance(words, str) for words in found.values())


VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.floats(allow_nan=False),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary(),
)


@given(st.lists(VALUES), st.integers(1, 5))
def test_nothing_is_lost(values: list[Any], cuts: int) -> None:
    collector = SqliteCollector(["v"], rows=10**6, size=2**30)
    for start in range(0, len(values), cuts):
        collector.add([(value,) for value in values[start : start + cuts]])
    table, _ = collector.finish()
    assert collector.truncated == ""
    found = table["v"].to_pylist()
    assert [value is None for value in found] == [value is None for value in values]
    if not pa.types.is_string(table["v"].type):
        assert found == values  # an integer equals the double that stands for it
        return
    for value, text in zip(values, found, strict=True):
        if isinstance(value, float):
            assert float(text) == value
        elif isinstance(value, bytes):
            assert bytes.fromhex(text[2:-1]) == value
        elif value is not None:
            assert text == str(value)


def test_whole_numbers_among_reals_are_doubles_where_none_is_lost() -> None:
    for whole, kind in ((1, pa.float64()), (2**53 + 1, pa.string())):
        collector = SqliteCollector(["v"], rows=10, size=10**6)
        collector.add([(whole,), (0.5,)])
        assert collector.finish()[0]["v"].type == kind
