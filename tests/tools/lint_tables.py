"""The cases of ``lint_cases``, and the tables that they ask: as catalogs, and as scripts for engines.

A case is a line, its fields separated by tabs: ``right`` and a query that the lint leaves alone, or
``wrong``, what its first message says, and a query with a name that is not there.
"""

from __future__ import annotations

from pathlib import Path

from quorum.knowledge.catalog import Catalog, Column, Field, Table
from tests.tools import case_files

FOLDER = Path(__file__).parent / "lint_cases"


def cases(dialect: str) -> list[tuple[str, str, str]]:
    """Kind, what the message holds (of a right query nothing), and the query."""
    rows = case_files.cases(f"lint_cases/{dialect}")
    return [(kind, rest[0] if rest[1:] else "", rest[-1]) for kind, *rest in rows]


def table(name: str, columns: str, schema: str = "", database: str = "", **fields: str) -> Table:
    """``columns`` are names with their types, such as ``id:INT64 name``; ``fields`` likewise, by column."""
    return Table(name, tuple(_columns(columns, fields)), schema, database)


def _columns(text: str, fields: dict[str, str]) -> list[Column]:
    found = []
    for part in text.split():
        name, _, kind = part.partition(":")
        inner = (word.partition(":") for word in fields.get(name, "").split())
        found.append(
            Column(name, kind or "TEXT", fields=tuple(Field(path, k or "STRING") for path, _, k in inner))
        )
    return found


def catalog(dialect: str) -> Catalog:
    """The tables as the engine's catalog tells them."""
    return Catalog("shop", dialect, TABLES[dialect])


ORDERS = "id:integer customer_id:integer ordered_on:date amount:integer status doc:jsonb tags:text[]"
CUSTOMERS = "id:integer name region createdAt"
_EVENTS = (
    "user_id:INT64 d:DATE ts:TIMESTAMP items:ARRAY<STRUCT> params:ARRAY<STRUCT> place:STRUCT"
    " tags:ARRAY<STRING> doc:JSON"
)
NESTED = {
    "items": "[].sku [].qty:INT64",
    "params": "[].key [].value.int_value:INT64 [].value.string_value",
    "place": "city",
}
TABLES = {
    "sqlite": (table("orders", ORDERS), table("customers", CUSTOMERS)),
    "duckdb": (
        table("orders", f"{ORDERS} place:STRUCT", "main", place="city:VARCHAR"),
        table("customers", CUSTOMERS, "main"),
    ),
    "postgres": (
        table("orders", ORDERS, "public"),
        table("customers", CUSTOMERS, "public"),
        table("invoices", "id:integer order_id:integer", "sales"),
    ),
    "mysql": (
        table("orders", ORDERS, "shop"),
        table("customers", CUSTOMERS, "shop"),
        table("invoices", "id:integer order_id:integer", "other"),
    ),
    "snowflake": (
        table("ORDERS", "ID CUSTOMER_ID ORDERED_ON amount STATUS META:VARIANT", "PUBLIC", "SHOP"),
        table("CUSTOMERS", "ID NAME REGION", "PUBLIC", "SHOP"),
        table("Mixed", "Key", "PUBLIC", "SHOP"),
        table("INVOICES", "ID ORDER_ID PAID_ON", "SALES", "SHOP"),
    ),
    "bigquery": (
        table("events_20240101", _EVENTS, "web", "proj", **NESTED),
        table("events_20240102", _EVENTS, "web", "proj", **NESTED),
        table("users", "user_id:INT64 country", "crm", "proj"),
    ),
}


EVENTS = (
    table("events_20200101", "user_id name items", "web", "proj"),
    table("events_20200102", "user_id name items device", "web", "proj"),
    table("users", "user_id country", "crm", "proj"),
)
SNOW = (
    table("ORDERS", "ID CUSTOMER_ID amount META", "PUBLIC", "SHOP"),
    table("CUSTOMERS", "ID REGION", "PUBLIC", "SHOP"),
    table("Mixed", "Key Other", "PUBLIC", "SHOP"),
    table("CASED", "Key KEY", "PUBLIC", "SHOP"),
)
"""Without types: shards of BigQuery, and names of Snowflake that differ in case only."""


def script(dialect: str) -> str:
    """Return the tables and rows as SQL of an engine."""
    return (FOLDER / f"{dialect}.sql").read_text("utf-8")
