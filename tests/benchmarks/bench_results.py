"""How long results take to compare: ``python -m tests.benchmarks.bench_results [ROWS]``.

Makes one result of ROWS x 10 cells (four columns of integers, four of doubles, two of text; a million
rows by default) and a copy with its rows and columns in another order and one column more, and prints
the seconds of each step.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable

import numpy as np
import pyarrow as pa

from quorum.tools.results.canonical import canonical
from quorum.tools.results.compare import equal, fingerprint, relation
from quorum.tools.results.overlap import overlap


def made(rows: int) -> pa.Table:
    """The result; columns 4 to 7 are doubles, 8 and 9 texts."""
    draw = np.random.default_rng(1)
    columns = {f"n{i}": pa.array(draw.integers(0, 10**9, rows)) for i in range(4)}
    columns |= {f"f{i}": pa.array(draw.random(rows) * 1000) for i in range(4)}
    columns |= {f"t{i}": pa.array(draw.integers(0, 10**6, rows)).cast(pa.string()) for i in range(2)}
    return pa.table(columns)


def timed(name: str, work: Callable[[], object]) -> None:
    """Run it once and print its seconds and what it said."""
    start = time.perf_counter()
    said = work()
    shown = said if isinstance(said, str | bool | float) else ""
    print(f"{name:<34} {time.perf_counter() - start:7.2f} s  {shown}")


def main(rows: int) -> None:
    """Print the seconds of each step."""
    draw = np.random.default_rng(2)
    table = made(rows)
    moved = table.take(draw.permutation(rows)).select(table.column_names[::-1])
    wider = moved.append_column("extra", pa.array(draw.integers(0, 9, rows)))
    off = table.set_column(4, "f0", pa.array(np.where(np.arange(rows) % 2, table["f0"], -1.0)))
    print(f"{rows:,} rows x {table.num_columns} columns")
    timed("canonical form", lambda: canonical(table))
    timed("fingerprint", lambda: fingerprint(table))
    forms = [canonical(result) for result in (table, moved, wider, off)]
    timed("equal, rows and columns moved", lambda: equal(forms[0], forms[1]))
    timed("relation, a column more", lambda: relation(forms[2], forms[0]))
    timed("overlap, half a column otherwise", lambda: round(overlap(forms[0], forms[3]).support, 3))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000)
