"""A made-up warehouse for a PostgreSQL server: keys, comments, views, families of tables of one shape."""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.servers.postgres_server import PostgresServer

SCHEMAS = ("sales", "crm", "finance", "logistics", "marketing", "web", "hr", "staging")
THINGS = (
    *("customer", "order", "invoice", "payment", "shipment", "product", "campaign", "session", "employee"),
    *("contract", "supplier", "ticket", "account", "budget", "forecast", "warehouse", "route", "price"),
)
PARTS = ("line", "history", "status", "address", "item", "note", "event", "total", "snapshot", "mapping")
ATTRIBUTES = (
    *("name", "code", "kind", "status", "amount", "quantity", "price", "currency", "country", "city"),
    *("score", "created", "updated", "valid_from", "valid_to", "comment", "rank", "channel", "region"),
)
TYPES = {
    "integer": "i * {n} % 9973",
    "numeric(12,2)": "(i * {n} % 99991) / 100.0",
    "text": "(ARRAY['new', 'open', 'paid', 'late', 'lost'])[1 + (i * {n}) % 5]",
    "varchar(40)": "'{column} ' || (i * {n}) % 1009",
    "date": "DATE '2020-01-01' + (i * {n}) % 1461",
    "timestamp": "TIMESTAMP '2020-01-01' + make_interval(hours => (i * {n}) % 30000)",
    "boolean": "(i * {n}) % 3 = 0",
    "double precision": "sqrt(i * {n} % 7919)",
}
FAMILIES, VIEWS, COLUMNS = 24, 200, 20
"""Families of tables of one shape, to which six tables in ten belong; views; columns of each table."""
ROWS, LARGE_ROWS, LARGE = 60, 20_000, 100
"""Rows of most tables, of large ones, and how many of these there are."""
AT_ONCE = 100
"""Tables made in one transaction."""


Shape = list[tuple[str, str, str]]
"""Columns with their types and comments, which some have."""


def build(server: PostgresServer, tables: int) -> str:
    """Make the warehouse, a fiftieth of it views; the name of its database."""
    name = server.new_database("".join(f"CREATE SCHEMA {schema};" for schema in SCHEMAS))
    scripts = list(_scripts(tables, random.Random(0)))
    for start in range(0, len(scripts), AT_ONCE):
        server.execute("BEGIN;" + "".join(scripts[start : start + AT_ONCE]) + "COMMIT", name)
    server.execute("ANALYZE", name)
    return name


def _scripts(tables: int, chance: random.Random) -> Iterator[str]:
    views = tables * VIEWS // 10_000
    families = [_shape(chance) for _ in range(FAMILIES)]
    made: dict[str, list[str]] = {schema: [] for schema in SCHEMAS}
    for number in range(tables - views):
        member = chance.random() < 0.6
        family = chance.randrange(FAMILIES)
        schema = SCHEMAS[family % len(SCHEMAS)] if member else chance.choice(SCHEMAS)
        thing = THINGS[(family if member else number) % len(THINGS)]
        part = PARTS[family % len(PARTS)] if member else chance.choice(PARTS)
        name = f"{schema}.{thing}_{part}_{20_000 + number if member else number}"
        shape = families[family] if member else _shape(chance)
        yield _table(name, shape, number, chance.choice(made[schema]) if made[schema] else "")
        made[schema].append(name)
    sources = chance.sample([name for names in made.values() for name in names], views)
    yield from (f"CREATE VIEW {name}_view AS SELECT * FROM {name} WHERE id > 3;" for name in sources)


def _shape(chance: random.Random) -> Shape:
    names = [f"{chance.choice(THINGS)}_{chance.choice(ATTRIBUTES)}" for _ in range(COLUMNS - 2)]
    said = [f"The {name.replace('_', ' ')}, as booked." if chance.random() < 0.4 else "" for name in names]
    return [(f"{name}_{i}", chance.choice([*TYPES]), said[i]) for i, name in enumerate(names)]


def _table(name: str, shape: Shape, number: int, other: str) -> str:
    rows = LARGE_ROWS if number % 97 == 0 and number // 97 < LARGE else ROWS
    columns = "".join(f", {column} {kind}" for column, kind, _ in shape)
    refers = f" REFERENCES {other}" if other and number % 3 == 0 else ""
    values = "".join(
        f", {TYPES[kind].format(n=number + place + 1, column=column)}"
        for place, (column, kind, _) in enumerate(shape)
    )
    said = "".join(f"COMMENT ON COLUMN {name}.{c} IS '{text}';" for c, _, text in shape if text)
    return (
        f"CREATE TABLE {name} (id integer PRIMARY KEY, parent_id integer{refers}{columns});"
        f"INSERT INTO {name} SELECT i, 1 + i % {ROWS}{values} FROM generate_series(1, {rows}) AS i;"
        f"COMMENT ON TABLE {name} IS 'Table {number} of the warehouse.';{said}"
    )
