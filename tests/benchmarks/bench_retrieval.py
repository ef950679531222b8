"""How well the search over column texts finds the tables and columns of gold SQL; no chat model is asked.

A shared field group counts as found where the table that represents it is: gold ``sales_20240105`` if its
group is. Of several accepted queries the one counts that is found best. Each cell has the mean recall, then
the share of questions with all of it, in %. The search is by words; with an embedding model by meaning and
by both, too.

    python -m tests.benchmarks.bench_retrieval [SUITE [DATA]] [--embedding-model MODEL] [--budget TOKENS]
                                               [--no-groups] [--all-databases]
"""

from __future__ import annotations

import asyncio
import time
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.evals.running.linking import golds_of
from quorum.evals.suites import load_suite
from quorum.graph.resources import open_embedder, read_catalog
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.schema.render import render
from quorum.knowledge.search.columns import ColumnIndex
from quorum.settings import Settings
from quorum.tools.databases import connect
from quorum.tools.sql.linking import Linked, prune
from quorum.tools.urls import SAMPLE
from tests.benchmarks.common import DATA, arguments, spread

TABLES_AT, COLUMNS_AT = (1, 3, 5, 10, 20), (10, 30, 100)


class Fitting:
    """How many ranked tables' schema text, whole tables with all of their groups, is within the budget."""

    def __init__(self, index: ColumnIndex, catalog: Catalog, budget: int) -> None:
        self._catalog, self._budget = catalog, budget
        names = [[table.full_name for table in fields.tables] for fields in index.fields]
        self._members = {members[0]: members for members in names}
        self.whole = self.count([*self._members]) == len(self._members)

    def count(self, ranked: Sequence[str]) -> int:
        def exceeds(last: int) -> bool:
            names = tuple(name for table in ranked[: last + 1] for name in self._members[table])
            return render(prune(self._catalog, Linked(names)), budget=self._budget).tokens > self._budget

        return bisect_left(range(len(ranked)), True, key=exceeds)


def recall(found: Collection[object], golds: Sequence[Collection[object]]) -> float:
    return max(len(set(found) & set(gold)) / len(gold) for gold in golds)


def ask(
    index: ColumnIndex,
    fitting: Fitting,
    question: EvalQuestion,
    golds: Sequence[Linked],
    how: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the recall of a question's tables and columns, whether its tables fit, and the milliseconds."""
    first = index.first
    tables_of = [{first[table] for table in gold.tables} for gold in golds]
    columns_of = [{(first[table], name) for table, name in gold.columns} for gold in golds if gold.columns]
    query = "\n".join((question.question, *question.knowledge.values()))
    start = time.perf_counter()
    tables = index.tables(query, len(index.fields), **how)
    seconds = time.perf_counter() - start
    tables = [*dict.fromkeys((*tables, *first.values()))]  # those nothing speaks for come last
    columns = [(hit.table, hit.column) for hit in index.search(query, COLUMNS_AT[-1], **how)]
    shown = set(tables[: fitting.count(tables)])
    return {
        "tables": [recall(tables[:k], tables_of) for k in TABLES_AT],
        "columns": [recall(columns[:k], columns_of) for k in COLUMNS_AT] if columns_of else None,
        "within": any(gold <= shown for gold in tables_of),
        "large": not fitting.whole,
        "ms": 1000 * seconds,
    }


async def catalog_of(url: str) -> Catalog:
    async with connect(url) as connector:
        return await read_catalog(connector, None)


def show(way: str, found: Sequence[Mapping[str, Any]], built: float, budget: int) -> None:
    cells = []
    for what in ("tables", "columns"):
        for at in zip(*(row[what] for row in found if row[what]), strict=True):
            cells.append(f"{100 * sum(at) / len(at):.1f} / {100 * at.count(1.0) / len(at):.1f}")
    large = [row["within"] for row in found if row["large"]]
    within = 100 * sum(row["within"] for row in found) / len(found)
    print(f"{way:<8}", " | ".join(cells))
    print(f"{'':<8} all gold tables within {budget:,} tokens: {within:.1f} %, of large schemas", end=" ")
    print(f"{sum(large)} of {len(large)}; built in {built:.1f} s; {spread(row['ms'] for row in found)} ms")


def main() -> None:
    flags: dict[str, Any] = {"no_groups": False, "all_databases": False, "embedding_model": str}
    given = arguments(__doc__, "suite", "data", budget=8_000, **flags)
    name = given.suite or "spider1"
    suite = load_suite(name, Path(given.data or DATA / name))
    settings = Settings(database=[SAMPLE], models=["offline"], embedding_model=given.embedding_model)
    embedder = open_embedder(settings.run_options(), api_key=settings.key)
    asked = [question for question in suite.questions if question.gold_sql]
    ways: dict[str, dict[str, Any]] = {"words": {}}
    if embedder:  # a query's text is embedded anew for each way
        meaning = {"embedder": embedder.inner}
        ways |= {"meaning": meaning, "both": meaning | {"hybrid": True}}
    found, built, texts = defaultdict[str, list[Any]](list), defaultdict[str, float](float), 0
    for url in dict.fromkeys(each.url for each in (suite.questions if given.all_databases else asked)):
        catalog = asyncio.run(catalog_of(url))
        index = ColumnIndex(catalog, groups=not given.no_groups)
        for way in (each for each in ways if each != "both"):
            start = time.perf_counter()
            index.search("amount", 1, embedder=embedder if way == "meaning" else None)  # builds it
            built[way] += time.perf_counter() - start
        texts += len(index.texts)
        fitting = Fitting(index, catalog, given.budget)
        for question in (each for each in asked if each.url == url):
            if golds := golds_of(question, catalog):
                for way, how in ways.items():
                    found[way].append(ask(index, fitting, question, golds, how))
    print(
        f"{suite.name}: {len(found['words'])} questions, {texts:,} column texts; tables @{TABLES_AT},",
        end=" ",
    )
    print(f"columns @{COLUMNS_AT}, mean recall / all found, %")
    for way, rows in found.items():
        show(way, rows, built[way], given.budget)


if __name__ == "__main__":
    main()
