"""What checks of silent errors find, and say of right queries: ``-m tests.benchmarks.bench_silent_errors``.

An argument names the folder of ``spider1``, ``defog`` and ``spider2-local`` (by default ``$QUORUM_DATA``, or
``../shared/data``). No model is asked. Wrong queries are made from gold ones (``silent_mutants``), where it
takes one on a copy of the database with a trap (``silent_traps``); those count whose result differs from that
of every accepted query. ``--half tune`` and ``--half kept`` are the two halves of the databases: rules were
chosen by the first alone. ``--engine duckdb`` has the times on DuckDB.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import sqlite3
import tempfile
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from decimal import Decimal
from pathlib import Path
from typing import Any

import pyarrow as pa

from quorum.evals.suites import load_suite
from quorum.knowledge.catalog import Catalog
from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import Limits, QueryResult
from quorum.tools.results.compare import equal
from quorum.tools.silent_errors import Kind, Suspicion, suspicions
from quorum.tools.silent_errors.doubts import Query
from quorum.tools.sql import SyntaxProblem
from tests.benchmarks import silent_traps as traps
from tests.benchmarks.silent_mutants import Link, Mutant, Mutator

SUITES = ("spider1", "defog", "spider2-local")
MOST = 4
"""Mutants of one kind and way that are kept of one question."""


@dataclass(frozen=True)
class Gold:
    """A question with its accepted queries."""

    id: str
    database: str
    path: Path
    question: str
    accepted: tuple[str, ...]


@dataclass
class Found:
    """What was said of one query.

    Attributes:
        said: None of a mutant that is none.
        also: Kinds that were said of the right query on the same data.
    """

    gold: Gold
    mutant: Mutant | None
    said: list[Suspicion]
    also: set[Kind] = field(default_factory=set)
    own: float = 0.0
    checks: float = 0.0
    untrue: list[str] = field(default_factory=list)


def golds(data: Path) -> Iterator[Gold]:
    """All questions that have gold SQL."""
    for suite in SUITES:
        for each in load_suite(suite, data / suite).questions:
            if each.gold_sql:
                path = Path(each.url.removeprefix("sqlite:///"))
                accepted = tuple(sql.strip().rstrip(";") for sql in each.gold_sql)
                yield Gold(f"{suite}/{each.id}", each.database, path, each.question, accepted)


def links(questions: list[Gold], catalog: Catalog) -> set[Link]:
    """Which columns refer to which: as declared, and as gold queries join them to something unique."""
    found = set()
    for table in catalog.tables:
        for key in table.foreign_keys:
            if len(key.columns) == 1:
                parts = (table.name, key.columns[0], key.ref_table.rpartition(".")[2], key.ref_columns[0])
                found.add(tuple(part.lower() for part in parts))
    for sql in {sql for each in questions for sql in each.accepted}:
        try:
            cores = Query(sql, catalog).cores
        except SyntaxProblem:
            continue
        for core in cores:
            for one, other in core.links:
                sides = [core.stored(one), core.stored(other)]
                if None not in sides:
                    a, b = [(s[0].table.name, s[1].name) for s in sides]  # type: ignore[index, union-attr]
                    found |= {tuple(p.lower() for p in (*a, *b)), tuple(p.lower() for p in (*b, *a))}
    return {each for each in found if each[0] != each[2]}


def references(found: set[Link], path: Path) -> set[Link]:
    """Those links whose far side alone is unique in its table."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:

        def unique(table: str, column: str) -> bool:
            sql = f'SELECT COUNT(*) = COUNT(DISTINCT "{column}") FROM "{table}"'
            return bool(connection.execute(sql).fetchone()[0])

        return {each for each in found if unique(each[2], each[3]) and not unique(each[0], each[1])}


class Bench:
    """One database with its traps, on SQLite or as one of DuckDB."""

    def __init__(self, path: Path, questions: list[Gold], folder: Path, engine: str) -> None:
        self.path = path
        self.questions = questions
        self.folder = folder
        self.engine = engine
        self.open: dict[str, Database] = {}

    async def run(self, found: list[Found], only: set[Kind]) -> None:
        async with connect(f"sqlite:///{self.path}") as connector:
            catalog = await connector.catalog()
            joined = references(links(self.questions, catalog), self.path)
        try:
            await self.ask(catalog, joined, found, only)
        finally:
            for database in self.open.values():
                await database.connector.close()

    def spoken(self, sql: str, catalog: Catalog) -> str:
        """A query of SQLite in the engine's dialect."""
        return sql if self.engine == "sqlite" else Query(sql, catalog).tree.sql(self.engine)

    async def ask(self, catalog: Catalog, joined: set[Link], found: list[Found], only: set[Kind]) -> None:
        seen: set[tuple[str, str]] = set()
        for gold in self.questions:
            await self.database("")
            said = await self.checked(gold, None, self.spoken(gold.accepted[0], catalog), "", gold.question)
            if said is None:
                print(f"does not run: {gold.id}")
                continue
            found.append(said)
            counted: Counter[tuple[Kind, str]] = Counter()
            for sql in gold.accepted[:2]:
                try:
                    mutants = list(Mutator(sql, catalog, joined).mutants())
                except SyntaxProblem:
                    continue
                for mutant in mutants:
                    way = (mutant.kind, mutant.how)
                    if (
                        (only and mutant.kind not in only)
                        or (mutant.wrong, mutant.trap) in seen
                        or counted[way] >= MOST
                    ):
                        continue
                    seen.add((mutant.wrong, mutant.trap))
                    texts = [self.spoken(text, catalog) for text in (mutant.right, mutant.wrong)]
                    mutant = replace(mutant, right=texts[0], wrong=texts[1])
                    if each := await self.mutant(gold, mutant):
                        counted[way] += 1
                        found.append(each)

    async def mutant(self, gold: Gold, mutant: Mutant) -> Found | None:
        """What is said of a mutant; None if its result is right."""
        database = await self.database(mutant.trap)
        right, wrong = [
            await execute(fresh(database), sql, agent="bench") for sql in (mutant.right, mutant.wrong)
        ]
        if not isinstance(right, QueryResult) or not isinstance(wrong, QueryResult):
            return None
        if equal(right.table, wrong.table) or same_rows(right.table, wrong.table):
            return None
        if not mutant.trap and mutant.question:
            for sql in gold.accepted if self.engine == "sqlite" else ():
                other = await execute(fresh(database), sql, agent="bench")
                if isinstance(other, QueryResult) and equal(other.table, wrong.table):
                    return None
        question = gold.question if mutant.question else ""
        said = await self.checked(gold, mutant, mutant.wrong, mutant.trap, question)
        if said:
            right_said = await suspicions(
                fresh(database), mutant.right, right, agent="bench", question=question
            )
            said.also = {each.kind for each in right_said}
        return said

    async def checked(
        self, gold: Gold, mutant: Mutant | None, sql: str, trap: str, question: str
    ) -> Found | None:
        database = fresh(self.open[trap])
        started = time.perf_counter()
        result = await execute(database, sql, agent="bench")
        own = time.perf_counter() - started
        if not isinstance(result, QueryResult):
            return None
        started = time.perf_counter()
        said = await suspicions(database, sql, result, agent="bench", question=question)
        found = Found(gold, mutant, said, own=own, checks=time.perf_counter() - started)
        place = Path(database.connector.path)  # type: ignore[attr-defined]
        found.untrue = [text for each in said for text in untrue(each, sql, place)]
        return found

    async def database(self, trap: str) -> Database:
        """The database with a trap, made and opened when first asked for."""
        if trap not in self.open:
            target = self.folder / f"{self.path.stem}.{trap}.sqlite" if trap else self.path
            if trap:
                traps.copy_with(getattr(traps, trap), self.path, target)
            if self.engine == "duckdb":
                target = traps.as_duckdb(target, self.folder / f"{self.path.stem}.{trap}.duckdb")
            connector = connect(f"{self.engine}:///{target}")
            await connector.open()
            catalog = await connector.catalog()
            self.open[trap] = Database(connector, catalog, Linter(catalog), Limits(), Ledger())
        return self.open[trap]


def fresh(database: Database) -> Database:
    """The same database, which has been asked nothing."""
    return replace(database, cache=QueryCache())


def same_rows(one: pa.Table, other: pa.Table) -> bool:
    """Whether two results have the same rows, however often each."""
    sets = [
        set(map(repr, zip(*(c.to_pylist() for c in table.columns), strict=True))) for table in (one, other)
    ]
    return sets[0] == sets[1]


def untrue(said: Suspicion, sql: str, path: Path) -> list[str]:
    """What a suspicion says that its evidence does not show, the engine being asked by its own driver."""
    cells = [cell for row in asked_anew(said.sql, path) for cell in row]
    return unshown(said.says, cells, sql)


def asked_anew(sql: str, path: Path) -> list[tuple[Any, ...]]:
    """The rows of a query as the engine's own driver returns them."""
    if path.suffix == ".duckdb":
        import duckdb

        with duckdb.connect(str(path), read_only=True) as own:
            return list(own.execute(sql).fetchall())
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        return connection.execute(sql).fetchall()


def unshown(says: str, cells: list[Any], sql: str) -> list[str]:
    """The figures and values of a sentence that neither the evidence's cells nor the query have."""
    shown = {shortened(str(cell)) for cell in cells}
    numbers = {round(float(cell), 6) for cell in cells if isinstance(cell, int | float | Decimal)}
    numbers |= {float(text) for text in re.findall(r"\d+(?:\.\d+)?", sql)} | {float(len(cells))}
    quoted = re.findall(r"`([^`]*)`", says)
    rest = re.sub(r"`[^`]*`", "", says)
    figures = re.findall(r"(?<![\w.])-?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?(?![\w])", rest)
    written = squeezed(sql)
    wrong = [text for text in quoted if text not in shown and squeezed(text) not in written]
    parsed = [(text, float(text.rstrip(",").replace(",", ""))) for text in figures]
    return wrong + [t for t, n in parsed if not any(abs(n - m) <= 1e-6 * max(1, abs(m)) for m in numbers)]


def squeezed(sql: str) -> str:
    """A query's text without what rendering changes."""
    return re.sub(r"""[\s"()]|!=""", lambda found: "<>" if found.group() == "!=" else "", sql).casefold()


def shortened(text: str) -> str:
    """A value as sentences show it."""
    text = re.sub(r"[\n\r\t]", " ", text)
    return text if len(text) <= 60 else f"{text[:59]}…"


def halves(names: list[str]) -> dict[str, str]:
    """Every second database, by name, is one that rules were chosen by."""
    return {name: ("tune", "kept")[place % 2] for place, name in enumerate(sorted(names))}


def percentile(values: list[float], share: float) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else 0.0


def report(found: list[Found], title: str, verbose: bool) -> None:
    """Print the figures."""
    right, wrong = [each for each in found if not each.mutant], [each for each in found if each.mutant]
    print(f"\n## {title}: {len(right)} gold queries, {len(wrong)} mutants")
    print("kind, mutants, named, recall, and how many of their right queries get that kind on the same data")
    ways: dict[tuple[str, str], list[Found]] = defaultdict(list)
    for each in wrong:
        assert each.mutant
        ways[each.mutant.kind, ""].append(each)
        ways[each.mutant.kind, each.mutant.how].append(each)
    for (kind, how), group in sorted(ways.items()):
        named = sum(any(s.kind == kind for s in each.said) for each in group)
        also = sum(kind in each.also for each in group)
        print(f"{'  ' + how if how else kind:32} {len(group):5} {named:5} {named / len(group):7.1%} {also:5}")
    claims = Counter(kind.value for each in right for kind in {s.kind for s in each.said})
    claimed = sum(bool(each.said) for each in right)
    share = claimed / max(1, len(right))
    print(f"gold queries with any claim: {claimed} of {len(right)} ({share:.1%}): {dict(claims)}")
    for name, group in (("gold", right), ("mutants", wrong)):
        print(f"ms, {name}: {times(group)}")
    print(f"claims: {sum(len(e.said) for e in found)}; ", end="")
    print(f"not shown by their evidence: {sum(len(e.untrue) for e in found)}")
    if verbose:
        tell_all(right, wrong)


def times(group: list[Found]) -> str:
    """Milliseconds of the queries, of their checks, and of what the checks took longer than their query."""
    own, checks = [each.own * 1e3 for each in group], [each.checks * 1e3 for each in group]
    over = [c - o for c, o in zip(checks, own, strict=True)]
    parts = (("query", own), ("checks", checks), ("checks less query", over))
    return "; ".join(f"{name} p50 {percentile(v, 0.5):.1f} p90 {percentile(v, 0.9):.1f}" for name, v in parts)


def tell_all(right: list[Found], wrong: list[Found]) -> None:
    """Print what is said of gold queries, what is missed, and what is untrue."""
    for each in [*right, *wrong]:
        for text in each.untrue:
            print(
                f"untrue {each.gold.id}: {text!r}", *(f"{s.says}\n   {s.sql}" for s in each.said), sep="\n   "
            )
    for each in right:
        for s in each.said:
            asked = f"{each.gold.question}\n   {each.gold.accepted[0]}"
            print(f"gold {each.gold.id} {each.gold.database}: {s.kind}: {s.says} {s.matters}\n   {asked}")
    for each in wrong:
        made = each.mutant
        if made and not any(s.kind == made.kind for s in each.said):
            print(
                f"missed {each.gold.id} {each.gold.database}: {made.kind}, {made.how}: {each.gold.question}"
            )
            print(f"   {made.wrong}\n   right: {made.right}\n   said {[s.says for s in each.said]}")


async def measured(arguments: argparse.Namespace) -> None:
    """All databases of the halves asked for."""
    groups: dict[Path, list[Gold]] = defaultdict(list)
    for gold in golds(arguments.data):
        groups[gold.path].append(gold)
    half = halves([path.stem for path in groups])
    results: dict[str, list[Found]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for path, questions in groups.items():
            if half[path.stem] in arguments.half and (
                not arguments.database or path.stem in arguments.database
            ):
                await Bench(path, questions, Path(folder), arguments.engine).run(
                    results[half[path.stem]], set(arguments.kind or ())
                )
    for name, found in results.items():
        report(found, f"half {name!r}", arguments.verbose)
    if len(results) > 1:
        report([each for found in results.values() for each in found], "all", False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "data", nargs="?", type=Path, default=Path(os.environ.get("QUORUM_DATA", "../shared/data"))
    )
    parser.add_argument("--half", nargs="*", default=["tune", "kept"])
    parser.add_argument("--engine", choices=("sqlite", "duckdb"), default="sqlite")
    parser.add_argument("--kind", nargs="*", type=Kind)
    parser.add_argument("--database", nargs="*")
    parser.add_argument("--verbose", action="store_true")
    asyncio.run(measured(parser.parse_args()))


if __name__ == "__main__":
    main()
