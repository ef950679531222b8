"""Time, memory and disk of a catalog of 10,000 tables: ``python -m tests.benchmarks.bench_catalogs``.

Starts a PostgreSQL server, fills it with a made-up warehouse (200,000 columns, keys,
comments, eight schemas, six tables in ten of families of one shape, rows in all), and reads its catalog, each
time in a process of its own: for the first time, and from disk. Seconds are of the wall clock unless they are
said to be of the processor. It ends with 1 where a bound does not hold.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.benchmarks.common import ROOT, arguments
from tests.servers.postgres_server import PostgresServer, running_postgres

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


BOUNDS = {
    "first reading, seconds": 60.0,
    "first reading, peak MiB": 600.0,
    "second start, seconds": 2.0,
    "on disk, MiB": 20.0,
}
"""For 10,000 tables."""


def reading(url: str, folder: Path) -> dict[str, Any]:
    """Read in a process of its own; ``whole`` is its time until it has the catalog."""
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "tests.benchmarks.bench_catalogs", url, str(folder)]
    begun = time.time()
    done = subprocess.run(
        command, cwd=ROOT, env=env | {"PYTHONPATH": str(ROOT)}, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"whole": found["at"] - begun}


async def read(url: str, folder: Path) -> dict[str, Any]:
    """Connect, and take the catalog, kept or not."""
    from quorum.tools.databases import connect
    from quorum.tools.databases.catalog_cache import CatalogCache

    async with connect(url) as connector:
        begun = time.perf_counter()
        cache = CatalogCache(folder, 3600)
        catalog = await cache.catalog(connector)
        seconds, at = time.perf_counter() - begun, time.time()
        file, _ = cache.file(connector, await connector.identity(), 3)
        used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds,
        "at": at,
        "processor": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / 1024,
        "tables": len(catalog.tables),
        "columns": sum(len(table.columns) for table in catalog.tables),
        "sampled": sum(any(column.samples for column in table.columns) for table in catalog.tables),
        "size": file.stat().st_size / 2**20,
    }


def main(tables: int) -> int:
    """Print the figures, and whether the bounds hold."""
    with running_postgres() as server, tempfile.TemporaryDirectory() as name:
        begun, folder = time.perf_counter(), Path(name) / "catalogs"
        database = build(server, tables)
        print(f"made {tables:,} tables in {time.perf_counter() - begun:.0f} s", flush=True)
        url = f"{server.admin_url}/{database}"
        first = reading(url, folder)
        show("first reading", first)
        second = min((reading(url, folder) for _ in range(3)), key=lambda each: each["whole"])
        show("second start, best of three", second)
        measured = (first["seconds"], first["peak"], second["whole"], second["size"])
        return judged(dict(zip(BOUNDS, measured, strict=True)), tables)


def show(what: str, found: dict[str, Any]) -> None:
    """One line for a reading."""
    print(
        f"{what:<30} {found['seconds']:6.2f} s; the process {found['whole']:6.2f} s "
        f"({found['processor']:.2f} s of the processor), peak {found['peak']:.0f} MiB; "
        f"{found['tables']:,} tables, {found['columns']:,} columns, values of {found['sampled']:,} tables, "
        f"{found['size']:.1f} MiB on disk",
        flush=True,
    )


def judged(found: dict[str, float], tables: int) -> int:
    """Print each bound and whether it holds; 1 if one does not."""
    broken = [what for what, bound in BOUNDS.items() if found[what] > bound]
    for what, bound in BOUNDS.items():
        holds = "DOES NOT HOLD" if what in broken else "holds"
        print(f"{what:<36} {found[what]:8.2f} of {bound:6.0f}  {holds}")
    print(f"{len(broken)} bounds broken for {tables:,} tables")
    return int(bool(broken))


if __name__ == "__main__":
    given = arguments(__doc__, "url", "folder", tables=10_000)
    if given.url:
        print(json.dumps(asyncio.run(read(given.url, Path(given.folder)))))
    else:
        sys.exit(main(given.tables))
