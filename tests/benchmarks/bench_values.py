"""How much of what gold SQL compares with is among the values shown: ``-m tests.benchmarks.bench_values``.

An argument names the folder of ``spider1``, ``defog`` and ``spider2-local`` (by default ``$QUORUM_DATA``, or
``../shared/data``). No model is asked. Counted are the texts that gold SQL compares a column with (``=``,
``<>``, ``IN``, ``LIKE`` without its ``%``), as far as the database holds them: no other can be found.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean, median

from sqlglot import exp

from quorum.evals.questions import EvalQuestion
from quorum.knowledge.search.values import ValueIndex
from quorum.tools.database_facts import read_values
from quorum.tools.databases import connect
from quorum.tools.sql import SyntaxProblem, dialect_name, parse_statements
from tests.benchmarks.common import DATA, arguments, by_database

SUITES = ("spider1", "defog", "spider2-local")
COMPARISONS = (exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike)


def literals(sql: str, dialect: str) -> Iterator[tuple[str, bool]]:
    """The texts that columns are compared with, and whether as a part of a value."""
    try:
        trees = parse_statements(sql, dialect_name(dialect))
    except SyntaxProblem:
        return
    for node in (found for tree in trees for found in tree.find_all(*COMPARISONS)):
        sides = [node.this, node.args.get("expression"), *node.args.get("expressions", [])]
        sides = [side for side in sides if side is not None]
        if any(side.find(exp.Column) for side in sides):
            partly = isinstance(node, exp.Like | exp.ILike)
            texts = (side.name for side in sides if isinstance(side, exp.Literal) and side.is_string)
            yield from ((text.strip("%") if partly else text, partly) for text in texts)


def among(text: str, values: set[str], *, partly: bool) -> bool:
    """Whether one of ``values``, in lower case, is the text, or holds it."""
    folded = text.casefold()
    return any(folded in value for value in values) if partly else folded in values


class Tally:
    """What was counted."""

    def __init__(self) -> None:
        self.sought = self.shown = self.listed = self.absent = 0
        self.matches: list[int] = []
        self.seconds: list[float] = []
        self.missed: list[str] = []

    def add(self, question: EvalQuestion, index: ValueIndex, complete: set[str]) -> None:
        """Count one question; ``complete`` are values of columns of which the schema text lists all."""
        wanted = {found for sql in question.gold_sql for found in literals(sql, "sqlite")}
        if not wanted:
            return
        started = time.perf_counter()
        found = index.match(question.question)
        self.seconds.append(time.perf_counter() - started)
        self.matches.append(len(found))
        every = {text.casefold() for texts in index.values.values() for text in texts}
        texts = {match.text.casefold() for match in found}
        for text, partly in sorted(wanted):
            if not among(text, every, partly=partly):
                self.absent += 1
                continue
            self.sought += 1
            shown = among(text, texts, partly=partly)
            self.shown += shown
            self.listed += shown or among(text, complete, partly=partly)
            self.missed += [] if shown else [f"{question.id}: {text!r} in {question.question[:90]!r}"]


async def measured(data: Path) -> Tally:
    """All questions with such literals, database by database."""
    tally = Tally()
    for url, questions in by_database(SUITES, data).items():
        async with connect(url) as connector:
            catalog = await connector.catalog()
            index = await read_values(connector, catalog)
        lists = (column.samples for _, column in catalog.columns() if column.complete)
        complete = {text.casefold() for texts in lists for text in texts}
        for question in questions:
            tally.add(question, index, complete)
    return tally


def report(tally: Tally) -> None:
    """Print the figures."""
    for line in tally.missed:
        print(f"missed: {line}")
    ordered = sorted(tally.seconds)
    print(f"questions that compare a column with a text: {len(tally.matches)}")
    print(f"texts that the database holds: {tally.sought}; that it does not: {tally.absent}")
    print(f"among the matched values: {tally.shown} ({tally.shown / tally.sought:.1%})")
    share = tally.listed / tally.sought
    print(f"there, or in a list of all values in the schema text: {tally.listed} ({share:.1%})")
    print(f"values shown for a question: mean {mean(tally.matches):.1f}, most {max(tally.matches)}")
    print(f"seconds: p50 {median(ordered):.5f}, p99 {ordered[int(0.99 * len(ordered))]:.5f}")


if __name__ == "__main__":
    report(asyncio.run(measured(Path(arguments(__doc__, "data").data or DATA))))
