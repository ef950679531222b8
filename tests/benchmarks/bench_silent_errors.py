"""What checks of silent errors say of right queries: ``-m tests.benchmarks.bench_silent_errors [DATA]``.

DATA is the folder of ``spider1``, ``defog`` and ``spider2-local`` (by default ``$QUORUM_DATA``, or
``../shared/data``). No model is asked. Whatever is said of a gold query is printed, and what of it the
evidence does not show, the engine being asked by its own driver.
"""

from __future__ import annotations

import asyncio
import re
import sqlite3
import time
from collections import Counter
from contextlib import closing
from dataclasses import replace
from decimal import Decimal
from pathlib import Path
from statistics import quantiles
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.tools.databases import connect
from quorum.tools.execute import QueryCache, execute
from quorum.tools.query import QueryResult
from quorum.tools.silent_errors import Suspicion, suspicions
from tests.benchmarks.common import DATA, arguments, by_database
from tests.engines import opened

SUITES = ("spider1", "defog", "spider2-local")


def untrue(said: Suspicion, sql: str, path: Path) -> list[str]:
    """Return the figures and values of a sentence that neither the evidence's cells nor the query have."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        cells = [cell for row in connection.execute(said.sql) for cell in row]
    shown = {shortened(str(cell)) for cell in cells}
    numbers = {round(float(cell), 6) for cell in cells if isinstance(cell, int | float | Decimal)}
    numbers |= {float(text) for text in re.findall(r"\d+(?:\.\d+)?", sql)} | {float(len(cells))}
    quoted, rest = re.findall(r"`([^`]*)`", said.says), re.sub(r"`[^`]*`", "", said.says)
    figures = re.findall(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])", rest)
    wrong = [text for text in quoted if text not in shown and squeezed(text) not in squeezed(sql)]
    parsed = [(text, float(text.rstrip(",").replace(",", ""))) for text in figures]
    return wrong + [t for t, n in parsed if not any(abs(n - m) <= 1e-6 * max(1, abs(m)) for m in numbers)]


def squeezed(sql: str) -> str:
    """Return a query's text without what rendering changes."""
    return re.sub(r"""[\s"()]|!=""", lambda found: "<>" if found.group() == "!=" else "", sql).casefold()


def shortened(text: str) -> str:
    """Return a value as sentences show it."""
    text = re.sub(r"[\n\r\t]", " ", text)
    return text if len(text) <= 60 else f"{text[:59]}…"


async def checked(url: str, questions: list[EvalQuestion]) -> list[tuple[int, int, float, float]]:
    """Return of each gold query how many claims there are and how many untrue ones, and the milliseconds."""
    found: list[tuple[int, int, float, float]] = []
    path = Path(url.removeprefix("sqlite:///"))
    async with connect(url) as connector:
        every = await opened(connector)
        for question in (each for each in questions if each.gold_sql):
            sql = question.gold_sql[0].strip().rstrip(";")
            database, started = replace(every, cache=QueryCache()), time.perf_counter()
            result = await execute(database, sql, agent="bench")
            own, started = time.perf_counter() - started, time.perf_counter()
            if not isinstance(result, QueryResult):
                print(f"does not run: {question.id}")
                continue
            reading = lambda result=result: result.table  # noqa: E731
            said = await suspicions(database, sql, reading, agent="bench", question=question.question)
            checks = time.perf_counter() - started
            wrong = [text for each in said for text in untrue(each, sql, path)]
            for each in said:
                KINDS[each.kind] += 1
                print(f"{question.database} {question.id}: {each.kind}: {each.says} {each.matters}\n   {sql}")
            for text in wrong:
                print(f"   not shown by its evidence: {text!r}")
            found.append((len(said), len(wrong), 1000 * own, 1000 * checks))
    return found


KINDS: Counter[Any] = Counter()


def main() -> None:
    groups = by_database(SUITES, Path(arguments(__doc__, "data").data or DATA))
    found = [row for url, own in groups.items() for row in asyncio.run(checked(url, own))]
    claims, wrong, own, checks = zip(*found, strict=True)
    print(f"{sum(map(bool, claims))} of {len(found)} gold queries with a claim: {dict(KINDS)}")
    print(f"not shown by their evidence: {sum(wrong)}")
    for name, values in (("query", own), ("checks", checks)):
        print(f"ms, {name}: p50 {quantiles(values, n=10)[4]:.1f}, p90 {quantiles(values, n=10)[8]:.1f}")


if __name__ == "__main__":
    main()
