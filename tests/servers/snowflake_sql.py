"""What the tests' Snowflake makes of SQL: fakesnow, but stricter, and able to be interrupted.

Runs in the environment of ``snowflake_app``. Names are as exact as Snowflake's, and errors have its codes;
SHOW, EXPLAIN and INFORMATION_SCHEMA answer as far as an introspection asks. Bytes are made up: 8 a value.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import duckdb
import pyarrow as pa
import sqlglot
from fakesnow.arrow import to_ipc, to_sf
from fakesnow.conn import FakeSnowflakeConnection
from fakesnow.instance import FakeSnow
from fakesnow.rowtype import describe_as_rowtype
from sqlglot import exp
from sqlglot.errors import OptimizeError
from sqlglot.optimizer.qualify import qualify
from sqlglot.schema import MappingSchema

DATABASES = ("SHOP", "OTHER")
TABLES = """
    CREATE OR REPLACE VIEW {database}._fs_information_schema._fs_tables AS
    SELECT database_name AS "TABLE_CATALOG", schema_name AS "TABLE_SCHEMA", table_name AS "TABLE_NAME",
        'BASE TABLE' AS "TABLE_TYPE", e.comment AS "COMMENT", estimated_size AS "ROW_COUNT",
        estimated_size * column_count * 8 AS "BYTES", clustering AS "CLUSTERING_KEY"
    FROM duckdb_tables() LEFT JOIN _fs_global.main.described d
        ON d.path = database_name || '.' || schema_name || '.' || table_name
        LEFT JOIN _fs_global._fs_information_schema._fs_tables_ext e
        ON (ext_table_catalog, ext_table_schema, ext_table_name) = (database_name, schema_name, table_name)
    WHERE database_name = '{database}' AND schema_name != '_fs_information_schema'
        AND schema_name NOT IN (FROM _fs_global.main.closed)
    UNION ALL
    SELECT database_name, schema_name, view_name, 'VIEW', comment, NULL, NULL, NULL FROM duckdb_views()
    WHERE database_name = '{database}' AND schema_name != '_fs_information_schema' AND NOT internal
"""
KEYS = """
    SELECT now() AS created_on, database_name, schema_name, table_name,
        unnest(constraint_column_names) AS column_name,
        generate_subscripts(constraint_column_names, 1) AS key_sequence, constraint_name
    FROM duckdb_constraints() WHERE constraint_type = 'PRIMARY KEY' AND database_name = ?
        AND schema_name = coalesce(?, schema_name)
"""
IMPORTED = """
    SELECT database_name AS pk_database_name, schema_name AS pk_schema_name,
        referenced_table AS pk_table_name, unnest(referenced_column_names) AS pk_column_name,
        database_name AS fk_database_name, schema_name AS fk_schema_name, table_name AS fk_table_name,
        unnest(constraint_column_names) AS fk_column_name,
        generate_subscripts(constraint_column_names, 1) AS key_sequence, constraint_name AS fk_name
    FROM duckdb_constraints() WHERE constraint_type = 'FOREIGN KEY' AND database_name = ?
        AND schema_name = coalesce(?, schema_name)
"""
SIZES = """
    SELECT database_name, schema_name, table_name, estimated_size, column_count FROM duckdb_tables()
"""
VIEWS = "SELECT database_name, schema_name, view_name FROM duckdb_views() WHERE NOT internal"
COMPILATION = "SQL compilation error:\n"


@dataclass
class SqlError(Exception):
    """Snowflake's answer to a text that fails."""

    code: str
    state: str
    message: str


@dataclass
class Answer:
    """Rows and what is told of their columns."""

    table: pa.Table
    rowtype: list[dict[str, Any]]
    as_json: bool = False


@dataclass
class Query:
    """A statement, its answer, and how it is stopped."""

    sql: str
    parameters: dict[str, Any]
    id: str
    done: threading.Event = field(default_factory=threading.Event)
    stopped: str = ""
    answer: Answer | None = None
    error: SqlError | None = None
    connection: Any = None

    def stop(self, why: str) -> None:
        """End it; DuckDB forgets an interrupt that comes before it has begun."""
        self.stopped = why
        while not self.done.wait(0.02):
            if self.connection is not None:
                self.connection.interrupt()


class Engine:
    """Databases in memory.

    Attributes:
        denied: Full names of tables that nobody may read.
        grants: What roles may, as SHOW GRANTS tells: privilege, kind and name.
        role: Who asks.
    """

    def __init__(self) -> None:
        self.fakesnow = FakeSnow()
        self.denied: set[str] = set()
        self.grants: dict[str, list[list[str]]] = {}
        self.role = "READER"
        self.fakesnow.duck_conn.execute(
            "CREATE TABLE _fs_global.main.described (path VARCHAR PRIMARY KEY, clustering VARCHAR);"
            "CREATE TABLE _fs_global.main.closed (name VARCHAR)"
        )
        for database in DATABASES:
            self.fakesnow.connect(database, "PUBLIC").close()
            self.fakesnow.duck_conn.execute(TABLES.format(database=database))

    def exists(self, database: str, schema: str | None) -> bool:
        """Return True if a schema is there and open, by its exact name."""
        found = self.schemas(database)
        return schema in found if schema else bool(found)

    def schemas(self, database: str) -> list[str]:
        """Those that the role may use."""
        sql = """SELECT schema_name FROM duckdb_schemas() WHERE database_name = ?
            AND schema_name NOT IN (FROM _fs_global.main.closed)"""
        return [row[0] for row in self._asked(sql, [database])]

    def administer(self, sql: str, database: str, schema: str) -> list[list[Any]]:
        """Run statements as somebody who may do everything; the rows of the last one."""
        rows: list[list[Any]] = []
        connection = self.fakesnow.connect(database, schema)
        for tree in sqlglot.parse(sql, read="snowflake"):
            if tree is not None:
                cursor = connection.cursor().execute(tree.sql("snowflake"))
                rows = [[str(value) for value in row] for row in cursor.fetchall()]
        connection.close()
        return rows

    def run(self, query: Query, database: str, schema: str) -> None:
        """Answer a query; returns when it is done, whatever became of it."""
        limit = float(query.parameters.get("STATEMENT_TIMEOUT_IN_SECONDS") or 0)
        timer = threading.Timer(limit, query.stop, ("time",)) if limit else None
        if timer:
            timer.start()
        try:
            query.answer = self._answer(query, database, schema)
        except SqlError as error:
            query.error = error
        except Exception as error:  # noqa: BLE001 DuckDB's, or what fakesnow does not know
            query.error = _complaint(error)
        finally:
            if timer:
                timer.cancel()
            query.done.set()
        if query.stopped == "time":
            reached = f"Statement reached its statement or warehouse timeout of {limit:g} second(s)"
            query.error = SqlError("000630", "57014", f"{reached} and was canceled.")
        elif query.stopped:
            query.error = SqlError("000604", "57014", "SQL execution canceled")

    def _answer(self, query: Query, database: str, schema: str) -> Answer:
        sql = query.sql
        if own := self._own(sql):
            return own
        explained = re.match(r"\s*EXPLAIN\s+USING\s+JSON\s+", sql, re.IGNORECASE)
        tree = _parsed(sql[explained.end() :] if explained else sql, query.parameters)
        self._look_up(tree, database, schema, str(query.parameters.get("SEARCH_PATH", "$current, $public")))
        self._check(tree, database, schema)
        if explained:
            return _texts(["content"], [[json.dumps(self._plan(tree, database, schema))]])
        tree = self._with_functions(tree)
        rows = int(query.parameters.get("ROWS_PER_RESULTSET") or 0)
        if rows and isinstance(tree, exp.Select) and not tree.args.get("limit"):
            tree = tree.limit(rows)  # for speed
        connection = self.fakesnow.connect(database, schema)
        query.connection = connection._duck_conn
        try:
            answer = _result(connection, tree.sql("snowflake"))
            return replace(answer, table=answer.table.slice(0, rows)) if rows else answer
        finally:
            query.connection = None
            connection.close()

    # What is no query of data

    def _own(self, sql: str) -> Answer | None:
        """The answer to a SHOW, or of a function of INFORMATION_SCHEMA."""
        name = r'"?([^".]+)"?'
        if found := re.fullmatch(rf"SHOW GRANTS TO ROLE {name}", sql):
            names = ["privilege", "granted_on", "name"]
            return _texts(names, self.grants.get(found[1], []))
        if found := re.fullmatch(rf"SHOW SCHEMAS IN DATABASE {name}", sql):
            return _texts(["name"], [[each] for each in self.schemas(found[1]) if each.isupper()])
        place = rf"(?:DATABASE|SCHEMA) {name}(?:\.{name})?"
        if found := re.fullmatch(rf"SHOW (PRIMARY|IMPORTED) KEYS IN {place}", sql):
            cursor = self.fakesnow.duck_conn.cursor()
            cursor.execute(KEYS if found[1] == "PRIMARY" else IMPORTED, [found[2], found[3]])
            return _texts([column[0] for column in cursor.description], cursor.fetchall())
        return None

    def _with_functions(self, tree: exp.Expr) -> exp.Expr:
        """The tree with what functions say of who asks."""
        told = {"CURRENT_USER": "ANALYST", "CURRENT_ROLE": self.role}
        told["CURRENT_SECONDARY_ROLES"] = '{"roles":""}'

        def replaced(node: exp.Expr) -> exp.Expr:
            name = node.name.upper() if isinstance(node, exp.Anonymous) else getattr(node, "sql_name", str)()
            if isinstance(node, exp.Func) and name in told:
                return exp.Literal.string(told[name])
            return node

        return tree.transform(replaced)

    # Names

    def _plan(self, tree: exp.Expr, database: str, schema: str) -> dict[str, Any]:
        sizes = {".".join(path): rows * columns * 8 for *path, rows, columns in self._asked(SIZES)}
        read = {".".join(path) for _, path in _tables(tree, database, schema)} & set(sizes)
        stats = {"partitionsTotal": len(read), "partitionsAssigned": len(read)}
        stats["bytesAssigned"] = sum(sizes[path] for path in read)
        return {"GlobalStats": stats}

    def _look_up(self, tree: exp.Expr, database: str, schema: str, path: str) -> None:
        """Qualify tables that the current schema lacks by the next one of the search path that has them."""
        known = self._columns().get(database, {})
        for node, (_, place, name) in _tables(tree, database, schema):
            if len(node.parts) == 1 and name not in known.get(place, {}):
                others = (each.strip().replace("$public", "PUBLIC") for each in path.split(",")[1:])
                if found := next((each for each in others if name in known.get(each, {})), None):
                    node.set("db", exp.to_identifier(found, quoted=True))

    def _check(self, tree: exp.Expr, database: str, schema: str) -> None:
        """See to it that all names are exact.

        Raises:
            SqlError: One is not.
        """
        if not isinstance(tree, exp.Query):
            return
        known, views = self._columns(), set(self._asked(VIEWS))
        for node, (base, place, name) in _tables(tree, database, schema):
            if place == "INFORMATION_SCHEMA":
                return
            if name not in known.get(base, {}).get(place, {}):
                said = f"Object '{node.sql('snowflake')}' does not exist or not authorized."
                raise SqlError("002003", "42S02", COMPILATION + said)
            if (base, place, name) in views and (problem := self._broken(base, place, name)):
                said = f"Failure during expansion of view '{name}': {problem}"
                raise SqlError("002037", "42601", COMPILATION + said)
            if f"{base}.{place}.{name}" in self.denied:
                raise SqlError("003001", "42501", f"Insufficient privileges to operate on table '{name}'")
        if not any(tree.find_all(exp.Lateral, exp.TableFromRows, exp.Unnest)):  # sqlglot knows little of them
            mapping = MappingSchema(known, dialect="snowflake", normalize=False)
            names = {"catalog": database, "db": schema, "expand_stars": False}
            try:
                qualify(tree.copy(), schema=mapping, dialect="snowflake", **names)
            except OptimizeError as error:
                raise SqlError("000904", "42000", f"{COMPILATION}invalid identifier: {error}") from None

    def _broken(self, *path: str) -> str:
        """Return why a view cannot be read; empty if it can."""
        name = ".".join('"' + part.replace('"', '""') + '"' for part in path)
        try:
            self._asked(f"SELECT * FROM {name} LIMIT 0")
        except duckdb.Error as error:
            return str(error).splitlines()[0]
        return ""

    def _columns(self) -> dict[str, dict[str, dict[str, dict[str, str]]]]:
        """Types of all columns, by exact names; a view that is broken has none."""
        found: dict[str, Any] = {}
        sql = """
            SELECT database_name, schema_name, table_name, column_name, data_type FROM duckdb_columns()
            WHERE NOT internal AND database_name != '_fs_global' AND schema_name != '_fs_information_schema'
        """
        for database, schema, table, column, kind in self._asked(sql):
            columns = found.setdefault(database, {}).setdefault(schema, {}).setdefault(table, {})
            columns[column] = "VARIANT" if kind == "JSON" else kind
        return found

    def _asked(self, sql: str, values: list[Any] | None = None) -> list[Any]:
        return list(self.fakesnow.duck_conn.cursor().execute(sql, values).fetchall())


def _parsed(sql: str, parameters: dict[str, Any]) -> exp.Expr:
    trees = [tree for tree in sqlglot.parse(sql, read="snowflake") if tree is not None]
    count = int(parameters.get("MULTI_STATEMENT_COUNT") or 1)
    if len(trees) != count:
        message = f"Actual statement count {len(trees)} did not match the desired statement count {count}."
        raise SqlError("000008", "0A000", message)
    return trees[0]


def _result(connection: FakeSnowflakeConnection, sql: str) -> Answer:
    cursor = connection.cursor()
    cursor.execute(sql, server=True)
    table, rowtype = cursor._arrow_table, describe_as_rowtype(cursor._describe_last_sql())
    return Answer(table, rowtype)


def _texts(names: list[str], rows: list[Any]) -> Answer:
    columns = [[None if row[i] is None else str(row[i]) for row in rows] for i in range(len(names))]
    table = pa.table([pa.array(column, pa.string()) for column in columns], names=names)
    described = describe_as_rowtype([(name, "VARCHAR", None, None, None, None) for name in names])
    return Answer(table, described, as_json=True)


def encoded(answer: Answer, start: int, count: int) -> bytes:
    """Some rows as Snowflake's Arrow stream."""
    return to_ipc(to_sf(answer.table.slice(start, count), answer.rowtype)).to_pybytes()


def _tables(tree: exp.Expr, database: str, schema: str) -> Iterator[tuple[exp.Table, tuple[str, str, str]]]:
    """Tables of a query with their full, exact names; CTEs are none."""
    own = {_exact(cte.args["alias"].this) for cte in tree.find_all(exp.CTE)}
    for node in tree.find_all(exp.Table):
        if isinstance(node.this, exp.Identifier):
            names = [_exact(part) for part in node.parts]
            if len(names) > 1 or names[0] not in own:
                base, place, name = ([database, schema][: 3 - len(names)] + names)[-3:]
                yield node, (base, place, name)


def _exact(name: exp.Expr) -> str:
    return name.name if name.args.get("quoted") else name.name.upper()


def _complaint(error: Exception) -> SqlError:
    """Return what DuckDB or fakesnow says, as Snowflake would."""
    number = getattr(error, "errno", None) or 603
    state = str(getattr(error, "sqlstate", None) or "42000")
    return SqlError(f"{number:06d}", state, str(getattr(error, "raw_msg", None) or error))
