"""Time, memory and disk of a catalog of 10,000 tables: ``python -m tests.benchmarks.bench_catalogs``.

Starts a PostgreSQL server, fills it with a made-up warehouse (``warehouse.py``: 200,000 columns, keys,
comments, eight schemas, six tables in ten of families of one shape, rows in all), and reads its catalog, each
time in a process of its own: for the first time, and from disk. Then what a question does with it: schema
text, lint, search. Seconds are of the wall clock unless they are said to be of the processor. It ends with 1
where a bound does not hold.
"""

from __future__ import annotations

import asyncio
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.benchmarks import warehouse
from tests.benchmarks.common import ROOT, arguments
from tests.servers.postgres_server import running_postgres

BOUNDS = {
    "first reading, seconds": 60.0,
    "first reading, peak MiB": 600.0,
    "second start, seconds": 2.0,
    "on disk, MiB": 20.0,
}
"""For 10,000 tables."""


def step(what: str, url: str, folder: Path) -> dict[str, Any]:
    """Run one step in a process of its own; what it tells, with wall clock, processor and memory.

    The time of the whole process ends with the catalog in hand.
    """
    env = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "tests.benchmarks.bench_catalogs", "--step", what]
    begun = time.time()
    done = subprocess.run(
        [*command, url, str(folder)],
        cwd=ROOT,
        env=env | {"PYTHONPATH": str(ROOT)},
        stdout=subprocess.PIPE,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found | {"whole": found["at"] - begun}


async def read(url: str, folder: Path) -> dict[str, Any]:
    """Connect, and take the catalog, kept or not."""
    from quorum.tools.databases import connect
    from quorum.tools.databases.catalog_cache import CatalogCache, CatalogFile

    async with connect(url) as connector:
        begun = time.perf_counter()
        catalog = await CatalogCache(folder, 3600).catalog(connector)
        seconds, at = time.perf_counter() - begun, time.time()
        file = CatalogFile.of(folder, connector, await connector.identity(), 3)
        used = resource.getrusage(resource.RUSAGE_SELF)
    return {
        "seconds": seconds,
        "at": at,
        "processor": used.ru_utime + used.ru_stime,
        "peak": used.ru_maxrss / 1024,
        "tables": len(catalog.tables),
        "columns": sum(len(table.columns) for table in catalog.tables),
        "sampled": sum(any(column.samples for column in table.columns) for table in catalog.tables),
        "size": file.path.stat().st_size / 2**20,
    }


async def use(url: str, folder: Path) -> dict[str, Any]:
    """Do with the cached catalog what a question does."""
    from quorum.knowledge.schema.files import SchemaFiles
    from quorum.knowledge.schema.render import render
    from quorum.knowledge.search.columns import ColumnIndex
    from quorum.tools.databases import connect
    from quorum.tools.databases.catalog_cache import CatalogCache
    from quorum.tools.guard.process import PROCESS
    from quorum.tools.lint import Linter

    async with connect(url) as connector:
        catalog = await CatalogCache(folder, 3600).catalog(connector)
    table = next(table for table in catalog.tables if table.columns)
    sql, linter = f"SELECT id FROM {table.full_name}", Linter(catalog)
    index, told = ColumnIndex(catalog), render(catalog, budget=30_000)

    def timed(work: Callable[[], Any]) -> float:
        begun = time.perf_counter()
        work()
        return time.perf_counter() - begun

    return {
        "at": time.time(),
        "tokens": told.tokens,
        "all tokens": told.whole,
        "schema text": timed(lambda: render(catalog, budget=30_000)),
        "schema files": timed(lambda: SchemaFiles(catalog, None)),
        "first lint": timed(lambda: PROCESS.ask(sql, "postgres", linter)),
        "second lint": timed(lambda: PROCESS.ask(sql, "postgres", linter)),
        "first search": timed(lambda: index.tables("customer status", 10)),
        "second search": timed(lambda: index.tables("order amount", 10)),
    }


def main(tables: int) -> int:
    """Print the figures, and whether the bounds hold."""
    with running_postgres() as server, tempfile.TemporaryDirectory() as name:
        begun, folder = time.perf_counter(), Path(name) / "catalogs"
        database = warehouse.build(server, tables)
        print(f"made {tables:,} tables in {time.perf_counter() - begun:.0f} s", flush=True)
        url = f"{server.admin_url}/{database}"
        first = step("read", url, folder)
        show("first reading", first)
        second = min((step("read", url, folder) for _ in range(3)), key=lambda each: each["whole"])
        show("second start, best of three", second)
        for what, value in list(step("use", url, folder).items())[1:-1]:
            print(f"  {what:<16} {value:12,.0f}" if "tokens" in what else f"  {what:<16} {value:12.2f} s")
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
    given = arguments(__doc__, "url", "folder", tables=10_000, step=str)
    if given.step:
        work = {"read": read, "use": use}[given.step]
        print(json.dumps(asyncio.run(work(given.url, Path(given.folder)))))
    else:
        sys.exit(main(given.tables))
