"""How long the guard takes per query: ``python tests/benchmarks/bench_guard.py [repeats]``.

The queries are written by a grammar at 600 tokens and more each, in every dialect. Times are processor time
of the verdict itself, so that other work on the machine does not count; beside it the wall clock of
``check``, which asks the guard's process.
"""

from __future__ import annotations

import sys
import time

from quorum.tools.guard import Passed, check
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.sql import DIALECTS, sqlglot_dialect

TOKENS = 600


def query(dialect: str, seed: int) -> str:
    """A report of common table expressions, joins, CASE and windows, at least ``TOKENS`` tokens long."""
    steps: list[str] = []
    while True:
        number = len(steps)
        source = f"step_{number - 1}" if steps else "orders"
        steps.append(
            f"step_{number} AS (SELECT a.id, a.customer_id, SUM(a.total * {seed + 1}) AS total,"
            f" COUNT(DISTINCT b.name) AS names,"
            f" CASE WHEN MAX(a.total) > {number} THEN 'high; DROP' ELSE 'low' END AS label,"
            f" ROW_NUMBER() OVER (PARTITION BY a.customer_id ORDER BY SUM(a.total) DESC) AS place"
            f" FROM {source} AS a LEFT JOIN customers AS b ON a.customer_id = b.id AND b.region IN ('n', 's')"
            f" WHERE a.total BETWEEN {number} AND 1000 AND COALESCE(b.name, '') <> 'x' -- part {number}\n"
            f" GROUP BY a.id, a.customer_id HAVING COUNT(*) > 0)"
        )
        last = f"SELECT * FROM step_{number} WHERE place <= 3 ORDER BY total DESC LIMIT 50"
        sql = f"WITH {', '.join(steps)} {last}"
        if len(sqlglot_dialect(dialect).tokenize(sql)) >= TOKENS:
            return sql


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


def main(repeats: int = 300) -> None:
    """Print p50 and p99 in milliseconds for each dialect."""
    print(f"{'dialect':<10} {'tokens':>6} {'p50 ms':>7} {'p99 ms':>7} {'p99 wall':>8}")
    for dialect in DIALECTS:
        spent: list[float] = []
        wall: list[float] = []
        for judge in (check, verdict_on):
            judge(query(dialect, 0), dialect)  # imports and word lists are loaded once, by the first query
        tokens = len(sqlglot_dialect(dialect).tokenize(query(dialect, 0)))
        for seed in range(repeats):
            sql = query(dialect, seed)
            cpu = time.process_time()
            verdict_on(sql, dialect)
            spent.append((time.process_time() - cpu) * 1e3)
            clock = time.perf_counter()
            verdict = check(sql, dialect)
            wall.append((time.perf_counter() - clock) * 1e3)
            if not isinstance(verdict, Passed):
                sys.exit(f"{dialect}: {verdict.reason}")
        p50, p99, late = percentile(spent, 0.5), percentile(spent, 0.99), percentile(wall, 0.99)
        print(f"{dialect:<10} {tokens:>6} {p50:>7.1f} {p99:>7.1f} {late:>8.1f}")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:2]))
