"""What the guard lets run gives what the original gives: on real databases, both ways of making the text."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from quorum.tools.guard import Passed, check
from quorum.tools.guard.output import render
from quorum.tools.sql import parse_statements
from tests.tools.gold import defog, spider1


def rows(connection: sqlite3.Connection, sql: str) -> list[Any] | str:
    """The rows, or what the database says."""
    try:
        return connection.execute(sql).fetchall()
    except sqlite3.Error as error:
        return str(error)


@pytest.mark.heavy
@pytest.mark.parametrize("way", ["rebuilt", "rendered"])
def test_gold_gives_the_same_rows(shared: Path, way: str) -> None:
    different: list[tuple[str, str]] = []
    connections: dict[Path, sqlite3.Connection] = {}
    for gold in [*spider1(shared / "data"), *defog(shared / "data")]:
        path, sql = gold.schema, gold.sql
        if path not in connections:
            connections[path] = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True)
        verdict = check(sql, "sqlite")
        assert isinstance(verdict, Passed)
        text = verdict.sql if way == "rebuilt" else render(parse_statements(sql, "sqlite"), "sqlite")
        if not isinstance(text, str):
            continue  # it would be refused, not run
        if rows(connections[path], text) != rows(connections[path], sql):
            different.append((sql, text))
    for connection in connections.values():
        connection.close()
    assert different == []


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT 'it''s', \"a b\", [a b], `a b` FROM t",
        "SELECT a -> 'x', a ->> '$.x.y', json_extract(a, '$[0]') FROM t",
        "SELECT -1 - -1, - (-1), 1e3, 0x1F, x'4142', .5, 1.",
        "SELECT 'tab\\t', 'new\nline', 'null' IS NULL, ''",
        "SELECT +\"a b\" COLLATE NOCASE FROM t ORDER BY 1 COLLATE BINARY DESC NULLS LAST",
        "SELECT iif(1 < 2, 'y', 'n'), CASE 1 WHEN 1 THEN 2 END, 1 IS NOT 2",
        "SELECT 7 / 2, 7.0 / 2, 7 % 4, 1 << 3, ~5, 1 || 2",
        "SELECT substr('abcdef', -3, 2), instr('abc', 'c'), trim('  x '), printf('%05.1f|%s', 2.25, 'z')",
        "SELECT date('2024-01-31', '+1 month'), strftime('%Y-%m', '2024-05-06'), julianday('2024-01-01')",
        "SELECT count(*) FILTER (WHERE 1), group_concat(x, '-') FROM (SELECT 1 AS x UNION ALL SELECT 2)",
        "SELECT sum(column1) OVER (ORDER BY column1 ROWS BETWEEN 1 PRECEDING AND CURRENT ROW)"
        " FROM (VALUES (1), (2))",
        "WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 5) SELECT i FROM n LIMIT 2, 2",
        "SELECT 5 LIMIT 4 - 1 % 2",
        "SELECT 1 WHERE NOT 1 IN (2) AND NOT 'a' LIKE 'b' AND 3 NOT BETWEEN 1 AND 2",
    ],
)  # fmt: skip
def test_awkward_forms_mean_the_same(sql: str) -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('CREATE TABLE t(a, "a b")')
        connection.execute("INSERT INTO t VALUES ('{\"x\": {\"y\": 1}}', 'v')")
        verdict = check(sql, "sqlite")
        assert isinstance(verdict, Passed), verdict
        expected = connection.execute(sql).fetchall()
        assert connection.execute(verdict.sql).fetchall() == expected
        rendered = render(parse_statements(sql, "sqlite"), "sqlite")
        if isinstance(rendered, str):
            assert connection.execute(rendered).fetchall() == expected
