"""Time, memory and disk of a catalog of 10,000 tables: ``python -m tests.benchmarks.bench_catalogs``.

Starts a PostgreSQL server, fills it with a made-up warehouse (``warehouse.py``: 200,000 columns, keys,
comments, eight schemas, six tables in ten of families of one shape, rows in all), and reads its catalog, each
time in a process of its own: for the first time, and from disk. Seconds are of the wall clock unless they are
said to be of the processor. It ends with 1 where a bound does not hold.
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
        database = warehouse.build(server, tables)
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
