"""The lint where no session forbids to write: a table or column that the catalog lacks is one too many."""

from __future__ import annotations

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.query import QueryError


def said(sql: str, dialect: str) -> QueryError | None:
    """What the lint says of a text that the guard passes."""
    fold = str.upper if dialect == "oracle" else str

    def table(name: str, *columns: str) -> Table:
        return Table(fold(name), tuple(Column(fold(column), "int") for column in columns), schema=fold("s"))

    catalog = Catalog("db", dialect, (table("t", "a", "b", "doc", "arr"), table("u", "a", "c")))
    verdict = verdict_on(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    return Linter(catalog).lint(verdict.tree)


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("tsql", "SELECT a FROM t"),  # whose default schema may hold another t
        ("tsql", "SELECT a FROM other.s.t"),
        ("tsql", "SELECT * FROM s.t WHERE a IN (SELECT a FROM dbo.secret)"),
        ("trino", "SELECT * FROM elsewhere.s.t"),
        ("trino", 'SELECT * FROM s."t$files"'),
        ("clickhouse", "SELECT a FROM s.secret FINAL"),
        ("databricks", "SELECT * FROM delta.x"),
        ("databricks", "SELECT * FROM (s.secret) AS z"),
        ("redshift", "SELECT * FROM stl_query"),
        ("redshift", "SELECT * FROM s.t x, secret.arr y"),
        ("oracle", "SELECT * FROM all_users"),
        ("oracle", "WITH x AS (SELECT a FROM other.t) SELECT a FROM x"),
    ],
)
def test_only_tables_of_the_catalog_are_read(dialect: str, sql: str) -> None:
    found = said(sql, dialect)
    assert found is not None
    assert (found.by, found.message.startswith("There is no ")) == ("lint", True)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT my_func FROM dual",
        "SELECT my_func FROM s.t my_func",
        "SELECT my_func FROM (SELECT 1 + 1 FROM dual) x",
        "SELECT 1 AS my_func, my_func FROM dual",
        "SELECT 1 AS my_func FROM dual ORDER BY (SELECT my_func FROM dual)",
        "SELECT pkg.f FROM s.t",
        "SELECT pkg.sysdate FROM s.t",
        "SELECT a FROM s.t GROUP BY my_func",
        "WITH x AS (SELECT a, count(*) FROM s.t GROUP BY a) SELECT my_func FROM x",
        "SELECT my_func FROM s.t, JSON_TABLE(t.doc, '$' COLUMNS (a NUMBER PATH '$.a')) j",
        "SELECT a FROM s.t START WITH my_func = 1 CONNECT BY PRIOR a = b",
        "SELECT a FROM s.t UNION SELECT my_func FROM dual",
        "SELECT SUM(a) OVER (ORDER BY my_func) FROM s.t",
        "SELECT a FROM s.t AS OF TIMESTAMP my_func",
        "SELECT a FROM s.t OFFSET my_func ROWS",
        "SELECT * FROM (s.t JOIN s.u ON my_func = 1)",
        "SELECT * FROM (VALUES (my_func)) v",
        'SELECT "my_func" FROM dual',
    ],
)
def test_a_bare_name_on_oracle_calls_no_function(sql: str) -> None:
    found = said(sql, "oracle")
    assert found is not None
    assert found.by == "lint"


@pytest.mark.parametrize(
    ("dialect", "sql"),
    [
        ("oracle", "SELECT t.rowid, rownum, user, sysdate FROM s.t t"),
        ("oracle", "SELECT 1 AS n FROM dual ORDER BY n"),
        (
            "oracle",
            "WITH r(n) AS (SELECT 1 FROM dual UNION ALL SELECT n + 1 FROM r WHERE n < 5) SELECT n FROM r",
        ),
        ("oracle", "SELECT j.x FROM s.t, JSON_TABLE(t.doc, '$' COLUMNS (x NUMBER PATH '$.a')) j"),
        ("oracle", "SELECT a, level FROM s.t CONNECT BY PRIOR a = b"),
        ("tsql", "WITH t AS (SELECT 1 AS a) SELECT a FROM t"),
        ("tsql", "SELECT [1] FROM (SELECT a, b FROM s.t) x PIVOT (SUM(a) FOR b IN ([1])) AS p"),
        ("trino", "SELECT x, doc.y.z FROM s.t CROSS JOIN UNNEST(arr) AS v(x)"),
        ("clickhouse", "SELECT a, x FROM s.t FINAL ARRAY JOIN arr AS x"),
        ("databricks", "SELECT x FROM s.t LATERAL VIEW explode(arr) e AS x"),
        ("redshift", "SELECT doc.x[0].y FROM s.t"),
    ],
)
def test_what_the_catalog_has_passes(dialect: str, sql: str) -> None:
    assert said(sql, dialect) is None
