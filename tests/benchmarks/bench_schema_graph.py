"""Time and memory of schema graphs by tables: ``python -m tests.benchmarks.bench_schema_graph``.

Catalogs are made up: of ten tables nine are shards of one of ten column lists, one has columns of its own.
"""

from __future__ import annotations

import time
import tracemalloc

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.schema.graph import schema_graph

COLUMNS = 20


def catalog(tables: int) -> Catalog:
    """A catalog of so many tables."""

    def columns(number: int) -> tuple[Column, ...]:
        kind = f"own{number}" if number % 10 == 0 else f"shard{number % 10}"
        return tuple(Column(f"{kind}_{place}", "TEXT") for place in range(COLUMNS))

    return Catalog("made", "duckdb", tuple(Table(f"t{n}", columns(n), "main") for n in range(tables)))


def main() -> None:
    """Print a line for each size and form."""
    for tables in (10**3, 10**4, 10**5):
        made = catalog(tables)
        for groups in (True, False):
            started = time.perf_counter()
            nodes = len(schema_graph(made, groups=groups).nodes)
            seconds = time.perf_counter() - started
            tracemalloc.start()
            graph = schema_graph(made, groups=groups)
            size = tracemalloc.get_traced_memory()[0] / 2**20
            tracemalloc.stop()
            del graph
            form = "with groups" if groups else "without"
            each = f"{1e6 * seconds / tables:.0f} us a table"
            print(
                f"{tables:>7,} tables {form:<11} {nodes:>9,} nodes {seconds:6.2f} s ({each}) {size:.0f} MiB"
            )


if __name__ == "__main__":
    main()
