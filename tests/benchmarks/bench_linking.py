"""Which schemas of Spider 2.0 are linked, and whether linking by parsing loses anything the gold needs:
``python -m tests.benchmarks.bench_linking [DATA]``.

DATA holds ``spider2-snow`` and ``spider2-lite`` (by default ``$QUORUM_DATA``, or ``../shared/data``). No
model is asked. In the place of drafts and verdicts stands the gold SQL, over every question that has some,
however small its schema: the tables that the drafts use, and the tables and columns that a TableLinker would
name, are cut out of the catalog, written within the budget of schema text and read back. What of the gold's
tables and columns is not there then, or what the lint of the gold SQL finds against that schema and not
against the whole one, has been lost by this project, not by a model.
"""

from __future__ import annotations

import asyncio
from collections.abc import Container, Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import mean, median

from quorum.agents.linkers import ABOVE_TOKENS
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Linking
from quorum.evals.running.linking import golds_of, linking_of_schema
from quorum.graph.nodes.schema_linking import used_by
from quorum.graph.options import RunOptions
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.schema.render import render
from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.databases import connect
from quorum.tools.lint import Linter
from quorum.tools.sql import dialect_name, parse_statements
from quorum.tools.sql.linking import Linked, needed, prune, union, units
from tests.benchmarks.common import DATA, arguments, by_database
from tests.schema_reader import parse_schema

SUITES = ("spider2-snow", "spider2-lite")


@dataclass(frozen=True)
class Case:
    """One question.

    Attributes:
        before: Whether it was linked when the text that the budget had cut was compared; ``now``: the whole
            schema and the question's documents are.
        whole: Tokens of schema, nothing left out; ``drafts``, ``verdicts`` those of the linked text.
        by_drafts, by_verdicts: What linking with gold keeps; None without gold SQL.
    """

    id: str
    url: str
    before: bool
    now: bool
    whole: int
    drafts: int = 0
    verdicts: int = 0
    by_drafts: Linking | None = None
    by_verdicts: Linking | None = None
    problems: tuple[str, ...] = ()


def cases(questions: Iterable[EvalQuestion], catalog: Catalog) -> Iterable[Case]:
    """The questions of one database."""
    budget = RunOptions().schema_tokens
    schema = render(catalog, budget=budget)
    for each in questions:
        documents = Documents.of(dict(each.knowledge)).all_text(RunOptions().document_tokens)
        size = schema.whole + estimate_tokens(documents or "")
        before, now = schema.tokens > ABOVE_TOKENS, size > ABOVE_TOKENS
        case = Case(each.id, each.url, before, now, schema.whole)
        if each.gold_sql:
            found, problems = used_by(catalog, each.gold_sql)
            gold = union(catalog, found)
            problems += [f"unknown name {name}" for name in gold.unknown]
            told = lint(each, catalog)
            for name, linked in (
                ("drafts", Linked(tables=gold.tables)),
                ("verdicts", verdicts_of(catalog, gold)),
            ):
                text = render(prune(catalog, linked), budget=budget)
                shown = parse_schema(text.text)
                kept = Linked(
                    tuple(table.full_name for table in shown.tables),
                    tuple((table.full_name, column.name) for table, column in shown.columns()),
                )
                linking = linking_of_schema(kept, golds_of(each, catalog), each, catalog)
                case = replace(case, **{name: text.tokens, f"by_{name}": linking})
                problems += [f"lint: {found}" for found in lint(each, shown) - told]
            case = replace(case, problems=tuple(problems))
        yield case


def lint(question: EvalQuestion, catalog: Catalog) -> set[str]:
    """What the lint says of the question's gold SQL against a catalog."""
    linter = Linter(catalog)
    parsed = (parse_statements(sql, dialect_name(catalog.dialect)) for sql in question.gold_sql)
    return {problem.message for trees in parsed for tree in trees for problem in linter.problems(tree)}


def verdicts_of(catalog: Catalog, gold: Linked) -> Linked:
    """What a TableLinker leaves that says yes to the gold's tables and names the gold's columns."""
    parts = units(catalog)
    of = {table.full_name: name for name, part in parts.items() for table in part.tables}
    wanted: dict[str, list[str]] = {of[table]: [] for table in gold.tables}
    for table, column in gold.columns:
        wanted[of[table]].append(column)
    return needed(parts, {name: dict.fromkeys(columns) for name, columns in wanted.items()})


async def measured(data: Path, *, databases: Container[str] = ()) -> list[Case]:
    """The questions of the suites, database by database; of all ``databases`` where none is named."""
    found: list[Case] = []
    for url, questions in by_database(SUITES, data).items():
        if not databases or questions[0].database in databases:
            async with connect(url) as connector:
                found += cases(questions, await connector.catalog())
    return found


def report(found: list[Case]) -> None:
    """Print the figures."""
    for name in ("before", "now"):
        linked = [case for case in found if getattr(case, name)]
        schemas, asked = len({case.url for case in linked}), len({case.url for case in found})
        print(f"linked {name}: {schemas} of {asked} schemas, {len(linked)} of {len(found)} questions")
    gold = [case for case in found if case.by_drafts]
    long = [case for case in gold if case.now]
    for title, those in (("with gold SQL", gold), ("with gold SQL, linked now", long)):
        for name in ("drafts", "verdicts"):
            kept = [linking for case in those if (linking := getattr(case, f"by_{name}"))]
            tables = [each.table_recall or 0.0 for each in kept]
            columns = [each.column_recall for each in kept if each.column_recall is not None]
            before, after = (median(getattr(case, of) for case in those) for of in ("whole", name))
            highest = [max(getattr(case, of) for case in those) for of in ("whole", name)]
            print(
                f"{title}, by gold {name}: {len(those)} questions, recall of tables {mean(tables):.4f}, of"
                f" columns {mean(columns):.4f}, median tokens {before:,.0f} -> {after:,.0f},"
                f" most {highest[0]:,} -> {highest[1]:,}"
            )
    for case in found:
        for problem in case.problems:
            print(f"problem: {case.id}: {problem}")


if __name__ == "__main__":
    report(asyncio.run(measured(Path(arguments(__doc__, "data").data or DATA))))
