"""BigQuery's SQL run by DuckDB, as far as tests need it, with BigQuery's own words for what is wrong.

Laxer than BigQuery in names of tables and columns; bytes are rows times eight times the columns that a query
names.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass, field
from typing import Any

import duckdb
import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

PROJECT = "proj"
NAMES = {
    "VARCHAR": "STRING",
    "UUID": "STRING",
    "DOUBLE": "FLOAT",
    "FLOAT": "FLOAT",
    "BOOLEAN": "BOOLEAN",
    "DATE": "DATE",
    "TIMESTAMP WITH TIME ZONE": "TIMESTAMP",
    "TIMESTAMP": "DATETIME",
    "TIME": "TIME",
    "BLOB": "BYTES",
    "JSON": "JSON",
}
"""BigQuery's type by DuckDB's; what is not here is a whole number."""


class ApiError(Exception):
    """What the server answers instead of a result."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message


@dataclass
class Plan:
    """A query that may run.

    Attributes:
        kind: BigQuery's statement type; empty ``sql`` where it is no SELECT.
        tables: (dataset, table) that it reads.
        size: Bytes that it reads.
    """

    kind: str
    sql: str = ""
    tables: list[tuple[str, str]] = field(default_factory=list)
    size: int = 0


class Engine:
    """The data: DuckDB's schemas are the datasets."""

    def __init__(self) -> None:
        self.connection = duckdb.connect(config={"lambda_syntax": "ENABLE_SINGLE_ARROW"})
        self.connection.execute("SET TimeZone='UTC'")
        self.lock = threading.RLock()
        self.described: dict[tuple[str, str], dict[str, Any]] = {}
        """What DuckDB does not know of a table: partitions, clusters, descriptions."""
        self.closed: set[str] = set()
        """Datasets that the account may not look into."""
        self.unread: set[str] = set()
        """Datasets of which the account may list the tables and read none."""

    def execute(self, script: str, dataset: str) -> list[tuple[Any, ...]]:
        """Run DuckDB's own SQL in a dataset, which is made if it is not there."""
        with self.lock:
            self.connection.execute(f'CREATE SCHEMA IF NOT EXISTS "{dataset}"; USE memory."{dataset}"')
            return self.connection.execute(script).fetchall()

    def datasets(self) -> list[str]:
        sql = "SELECT schema_name FROM duckdb_schemas() WHERE database_name = 'memory' AND NOT internal"
        return sorted(row[0] for row in self._ask(sql) if row[0] != "main")

    def tables(self, dataset: str) -> dict[str, str]:
        """Kind by name."""
        if dataset in self.closed:
            name = f"{PROJECT}:{dataset}"
            message = f"Dataset {name}: Permission bigquery.datasets.get denied on dataset {name}"
            raise ApiError(403, "accessDenied", f"Access Denied: {message} (or it may not exist).")
        if dataset not in self.datasets():
            raise ApiError(404, "notFound", f"Not found: Dataset {PROJECT}:{dataset}")
        found = {}
        for kind in ("table", "view"):
            sql = f"SELECT {kind}_name FROM duckdb_{kind}s() WHERE schema_name = ? AND NOT internal"
            found |= {row[0]: kind.upper() for row in self._ask(sql, dataset)}
        return found

    def resource(self, dataset: str, table: str) -> dict[str, Any]:
        """A table as ``tables.get`` tells it."""
        kind = self.tables(dataset)[table]
        if dataset in self.unread:
            name = f"{PROJECT}:{dataset}.{table}"
            message = f"Table {name}: Permission bigquery.tables.get denied on table {name}"
            raise ApiError(403, "accessDenied", f"Access Denied: {message} (or it may not exist).")
        with self.lock:
            cursor = self.connection.cursor()
            try:
                described = cursor.execute(f"SELECT * FROM {_quoted(dataset, table)} LIMIT 0").description
            except duckdb.Error as error:
                raise ApiError(403, "accessDenied", f"The view cannot be read: {error}") from error
        constraints = self._constraints(dataset, table)
        required = {name for kind, names, *_ in constraints if kind == "NOT NULL" for name in names}
        fields = [
            field_of(name, kind) | ({"mode": "REQUIRED"} if name in required else {})
            for name, kind, *_ in described
        ]
        resource: dict[str, Any] = {"type": kind, "schema": {"fields": fields}}
        if kind == "TABLE":
            ((rows,),) = self._ask(f"SELECT count(*) FROM {_quoted(dataset, table)}")
            resource |= {"numRows": str(rows), "numBytes": str(rows * 8 * len(fields))}
            resource |= self._keys(dataset, table, constraints)
        return resource | self.described.get((dataset, table), {})

    def plan(self, sql: str, default: str) -> Plan:
        """Judge and translate a text as BigQuery would.

        Raises:
            ApiError: It is wrong.
        """
        try:
            trees = [tree for tree in sqlglot.parse(sql, read="bigquery") if tree]
        except SqlglotError as error:
            raise invalid("Syntax error: Unexpected identifier at [1:1]") from error
        (tree, *others) = trees
        if others or not isinstance(tree, exp.Query):
            return Plan("SCRIPT")
        plan = Plan("SELECT")
        for table in list(tree.find_all(exp.Table)):
            self._place(tree, table, default, plan)
        plan.sql = tree.sql("duckdb")
        named = {column.name.casefold() for column in tree.find_all(exp.Column)}
        whole = any(True for _ in tree.find_all(exp.Star))
        for dataset, name in plan.tables:
            resource = self.resource(dataset, name)
            columns = [each["name"] for each in resource["schema"]["fields"]]
            used = len(columns) if whole else sum(each.casefold() in named for each in columns)
            plan.size += int(resource.get("numRows", 0)) * 8 * used
        self._explain(plan)
        return plan

    def _place(self, tree: exp.Expression, table: exp.Table, default: str, plan: Plan) -> None:
        """Point a table of the query at DuckDB's; a wildcard becomes the union of its shards."""
        if not isinstance(table.this, exp.Identifier):
            return
        names = {cte.alias for cte in tree.find_all(exp.CTE)}
        aliases = {other.alias_or_name for other in tree.find_all(exp.Table)}
        if (not table.db and table.name in names) or (table.db and table.db in aliases and not table.catalog):
            return  # FROM orders, orders.items
        dataset = table.db or default
        if table.catalog and table.catalog != PROJECT:
            place = f"{table.catalog}:{dataset}.{table.name}"
            raise ApiError(403, "accessDenied", f"Access Denied: Table {place}")
        known = self.tables(dataset)
        if table.name.endswith("*"):
            shards = sorted(name for name in known if name.startswith(table.name[:-1]))
            plan.tables += [(dataset, name) for name in shards]
            start = len(table.name) - 1
            parts = " UNION ALL BY NAME ".join(
                f"SELECT *, '{name[start:]}' AS _TABLE_SUFFIX FROM {_quoted(dataset, name)}"
                for name in shards
            )
            union = exp.Subquery(this=sqlglot.parse_one(parts, read="duckdb"))
            table.replace(exp.alias_(union, table.alias or "shards", table=True))
            return
        if table.name not in known:
            where = f"{PROJECT}:{dataset}.{table.name}"
            raise ApiError(404, "notFound", f"Not found: Table {where} was not found in location US")
        plan.tables.append((dataset, table.name))
        table.set("db", exp.to_identifier(dataset, quoted=True))
        table.set("catalog", None)

    def _explain(self, plan: Plan) -> None:
        """Let DuckDB find what is wrong, without running it."""
        try:
            with self.lock:
                self.connection.cursor().execute(f"EXPLAIN {plan.sql}")
        except duckdb.Error as error:
            raise complaint(str(error)) from error

    def _constraints(self, dataset: str, table: str) -> list[tuple[Any, ...]]:
        sql = """SELECT constraint_type, constraint_column_names, referenced_table, referenced_column_names
            FROM duckdb_constraints() WHERE schema_name = ? AND table_name = ?"""
        return self._ask(sql, dataset, table)

    def _keys(self, dataset: str, table: str, constraints: list[tuple[Any, ...]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for kind, columns, other, others in constraints:
            if kind == "PRIMARY KEY":
                found["primaryKey"] = {"columns": columns}
            elif kind == "FOREIGN KEY":
                pairs = [
                    {"referencingColumn": own, "referencedColumn": that}
                    for own, that in zip(columns, others, strict=True)
                ]
                place = {"projectId": PROJECT, "datasetId": dataset, "tableId": other}
                key = {"name": f"{table}.{columns[0]}", "referencedTable": place, "columnReferences": pairs}
                found.setdefault("foreignKeys", []).append(key)
        return {"tableConstraints": found} if found else {}

    def _ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self.lock:
            return self.connection.cursor().execute(sql, list(values)).fetchall()


def field_of(name: str, kind: Any) -> dict[str, Any]:
    """A column of DuckDB as a field of BigQuery."""
    if kind.id in ("list", "array"):
        return field_of(name, kind.children[0][1]) | {"mode": "REPEATED"}
    if kind.id == "struct":
        parts = [field_of(part, inner) for part, inner in kind.children]
        return {"name": name, "type": "RECORD", "mode": "NULLABLE", "fields": parts}
    text = str(kind)
    known = "NUMERIC" if text.startswith("DECIMAL") else NAMES.get(text, "INTEGER")
    return {"name": name, "type": known, "mode": "NULLABLE"}


def invalid(message: str) -> ApiError:
    return ApiError(400, "invalidQuery", message)


def complaint(text: str) -> ApiError:
    """DuckDB's error, in BigQuery's words where a column is missing."""
    if found := re.search(r'(?:Referenced column|does not have a column named) "([^"]+)"', text):
        return invalid(f"Unrecognized name: {found[1]}")
    return invalid(re.sub(r"^[\w ]+ Error: ", "", text.split("\n")[0]))


def _quoted(*names: str) -> str:
    return ".".join('"' + name.replace('"', '""') + '"' for name in names)
