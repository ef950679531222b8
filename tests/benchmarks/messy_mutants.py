"""Recall of the checks on careful queries over messy columns from which one care is taken.

    python -m tests.benchmarks.messy_mutants QUESTIONS.jsonl RUN_FOLDER…

RUN_FOLDERs are those of ``quorum eval run`` over the questions; the queries that were judged right are the
careful ones. A mutant counts if it runs and returns something else. No model is asked.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from sqlglot import exp

from quorum.tools.databases import connect
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.query import QueryResult
from quorum.tools.results.compare import equal
from quorum.tools.silent_errors import suspicions
from quorum.tools.silent_errors.cores import conjuncts
from quorum.tools.sql import parse_one_statement
from quorum.tools.sql.writing import write
from tests.engines import opened

_CARES: dict[str, Any] = {
    "trim": exp.Trim,
    "case of letters": (exp.Lower, exp.Upper),
    "replace": (exp.Replace, exp.RegexpReplace),
    "coalesce": exp.Coalesce,
    "nullif": exp.Nullif,
    "distinct": exp.Distinct,
    "branch": (exp.Case, exp.If),
    "filter": exp.Where,
    "spelling": exp.In,
}


MADE, WARNED = Counter[str](), Counter[str]()
"""Queries, and those about which a check warns, by the care that was taken from them."""


def mutants(tree: exp.Expr) -> Iterator[tuple[str, exp.Expr]]:
    """Yield copies without one care each, with its kind."""
    nodes = list(tree.walk())
    for place, node in enumerate(nodes):
        for kind, types in _CARES.items():
            if isinstance(node, types):
                for nth in range(_ways(kind, node)):
                    copy = tree.copy()
                    _drop(kind, list(copy.walk())[place], nth)
                    yield kind, copy


def _ways(kind: str, node: exp.Expr) -> int:
    if kind == "filter":
        return len(conjuncts(node.this))
    if kind == "branch":
        ifs = node.args.get("ifs") or []  # one that gives names is no care
        return 0 if any(each.args["true"].is_string for each in ifs) else len(ifs)
    if kind == "spelling":
        several = len(node.expressions) > 2 or isinstance(node.parent, exp.Not)
        return len(node.expressions) * several * (len(node.expressions) > 1)
    return 1


def _drop(kind: str, node: exp.Expr, nth: int) -> None:
    if kind == "filter":
        part = conjuncts(node.this)[nth]
        if isinstance(part, exp.Not | exp.NEQ):  # what shuts out, not what is asked for
            part.replace(exp.true())
    elif kind == "distinct" and isinstance(node.parent, exp.Select):
        node.parent.set("distinct", None)
    elif kind == "distinct":
        node.replace(node.expressions[0].copy())
    elif kind in ("branch", "spelling"):
        each = (node.args.get("ifs") or node.expressions)[nth]
        if kind == "spelling" or len(node.args["ifs"]) > 1:
            each.pop()
        else:
            node.replace((node.args.get("default") or each.args["true"]).copy())
    else:
        node.replace(node.this.copy())


def careful(folders: list[str]) -> dict[tuple[str, str], set[str]]:
    """Return the queries that were judged right, by question and dialect."""
    found: dict[tuple[str, str], set[str]] = {}
    for folder in folders:
        for line in (Path(folder) / "results.jsonl").read_text().splitlines():
            row = json.loads(line)
            right = {each["sql"] for each in row["candidates"] if each["match"]}
            found.setdefault((row["id"], row["dialect"]), set()).update(right)
    return found


async def judge(database: Database, asked: dict[str, Any], queries: set[str]) -> None:
    """Count what the checks say of a question's careful queries, and of their mutants."""

    async def run(sql: str) -> QueryResult | None:
        outcome = await execute(database, sql, agent="bench")
        return outcome if isinstance(outcome, QueryResult) else None

    async def warns(sql: str, result: QueryResult) -> bool:
        fresh, reading = replace(database, cache=QueryCache()), lambda: result.table
        return bool(await suspicions(fresh, sql, reading, agent="bench", question=asked["question"]))

    for sql in queries:
        if (own := await run(sql)) is None:
            continue
        MADE["careful"] += 1
        WARNED["careful"] += await warns(sql, own)
        seen = set[str]()
        for kind, tree in mutants(parse_one_statement(sql, database.catalog.dialect)):
            text = write(tree, database.catalog.dialect)
            if text in seen or (other := await run(text)) is None or equal(own.table, other.table):
                continue
            seen.add(text)
            MADE[kind] += 1
            WARNED[kind] += await warns(text, other)


async def main(questions: str, *folders: str) -> None:
    right = careful(list(folders))
    for asked in map(json.loads, Path(questions).read_text().splitlines()):
        async with connect(str(Path(questions).parent / asked["database"])) as connector:
            database = await opened(connector)
            await judge(database, asked, right.get((asked["id"], database.catalog.dialect), set()))
    quiet, alarms = MADE.pop("careful", 0), WARNED.pop("careful", 0)
    for kind in MADE:
        print(f"{kind:16} {WARNED[kind]:4} of {MADE[kind]:4}")
    print(f"{'all':16} {WARNED.total():4} of {MADE.total():4}; alarms on {alarms} of {quiet} careful queries")


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
