"""What stands in backticks on the dialect cards, as queries over one table ``t``."""

from __future__ import annotations

import re

from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.knowledge.syntax import ODD, card, idioms

DOC = '{"a": {"b": "c"}, "n": 7, "items": [{"sku": "A"}, {"sku": "B"}]}'
COLUMNS = ["d", "d2", "ts", "s", "g", "a", "b", "v", "n", "doc", "arr"]
MORE = {"snowflake": ["created_at"], "postgres": ["createdAt"], "bigquery": ["items", "params", "place"]}

TOPICS = ("number forms", "date forms", "text variants", "flag variants", "no_value", "keys")
READ: dict[str, dict[str, object]] = {
    "number forms": {"$1,234.50": 1234.5, "(50)": -50.0, "7": 7.0},
    "units": {"2 kg": 2000.0, "1.5 kg": 1500.0, "300 g": 300.0},
    "flag variants": {"Yes": True, " TRUE": True, "no": False},
    "text variants": {" GHENT ": True, "ghent": True, "Lund": False},
    "no_value": {"n/a": None, " NULL ": None, "": None, "x": "x"},
}
"""Values, and what the dialects read in them."""
DATES = {"sqlite": "12/31/2024", "other": "31.12.2024"}

_NAMED = "d DATE, d2 DATE, ts TIMESTAMP, s {text}, g {text}, a INT, b INT, v {float}, n INT, doc {json}"
_ROWS = """;
    INSERT INTO t VALUES
    ('2024-01-15', '2024-02-15', '2024-01-15 10:00:00', 'ab-12', 'x', 1, 2, 1.5, 20240115, '{doc}'{rest}),
    ('2024-03-01', '2024-03-31', '2024-03-01 10:00:00', 'cd-34', 'y', 3, 4, 2.5, 20240301, '{doc}'{rest});
"""


def _script(columns: str, rest: str, **types: str) -> str:
    return f"CREATE TABLE t ({_NAMED.format(**types)}{columns}){_ROWS.format(doc=DOC, rest=rest)}"


SCRIPTS = {
    "sqlite": f"CREATE TABLE t ({', '.join(COLUMNS)}){_ROWS.format(doc=DOC, rest=', NULL')}",
    "duckdb": _script(", arr TEXT[]", ", ['x', 'y']", text="TEXT", float="DOUBLE", json="TEXT"),
    "postgres": _script(
        ', arr text[], "createdAt" date',
        ", '{x,y}', '2024-01-01'",
        text="text",
        float="double precision",
        json="jsonb",
    ),
    "mysql": _script("", "", text="VARCHAR(40)", float="DOUBLE", json="JSON"),
}
"""The table on the engines that run here, with its rows."""


def catalog(dialect: str) -> Catalog:
    """The table that the examples ask, and what BigQuery's wildcard stands for."""
    names = [c.upper() if dialect == "snowflake" else c for c in COLUMNS] + MORE.get(dialect, [])
    nested = {
        "items": (Field("[].sku", "STRING"),),
        "params": (Field("[].key", "STRING"), Field("[].value.int_value", "INT64")),
        "place": (Field("city", "STRING"),),
    }
    columns = tuple(Column(name, "TEXT", fields=nested.get(name, ())) for name in names)
    where = ("dataset", "project") if dialect == "bigquery" else ("", "")
    table = Table("T" if dialect == "snowflake" else "t", columns, *where)
    events = Table("events_20240101", columns, *where)
    return Catalog("c", dialect, (table, events))


def topic_of(dialect: str, topic: str) -> str:
    """The topic of a dialect's line; SQLite has one for each form of dates."""
    return "date MM/DD/YYYY" if (dialect, topic) == ("sqlite", "date forms") else topic


def examples(dialect: str) -> list[str]:
    """The examples of a card, and of what it says of odd values."""
    text = card(dialect) + "\n" + "\n".join(ODD[dialect].splitlines())
    found = [text.strip() for _, text in re.findall(r"(?<!`)(`+)(.+?)\1(?!`)", text)]
    sql = (text for text in found if text != "/" and not text.endswith("_"))
    return [text if re.match(r"SELECT|WITH", text) else f"SELECT {text} FROM t" for text in sql]


def read_by(dialect: str, topic: str) -> str:
    """The expression that reads a value ``s`` of this topic."""
    name, before = ("number forms", "with units `") if topic == "units" else (topic, "`")
    (line,) = idioms(dialect, [topic_of(dialect, name)])
    return line.split(before)[1].split("`")[0]


def claims(dialect: str) -> list[tuple[str, str]]:
    """Expressions, and the values that a card says they have."""
    return re.findall(r"`([^`]+)` is ([0-9.]*[0-9])", card(dialect))
