"""How much of what gold SQL compares with is among the values shown: ``-m tests.benchmarks.bench_values``.

An argument names the folder of ``spider1``, ``defog`` and ``spider2-local`` (by default ``$QUORUM_DATA``, or
``../shared/data``). No model is asked. Counted are the texts that gold SQL compares a column with (``=``,
``<>``, ``IN``, ``LIKE`` without its ``%``), as far as the database holds them: no other can be found.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator
from pathlib import Path
from statistics import mean

from sqlglot import exp

from quorum.knowledge.search.values import ValueIndex
from quorum.tools.database_facts import read_values
from quorum.tools.databases import connect
from quorum.tools.sql import SyntaxProblem, dialect_name, parse_statements
from tests.benchmarks.common import DATA, LOCAL_SUITES, arguments, by_database

COMPARISONS = (exp.EQ, exp.NEQ, exp.In, exp.Like, exp.ILike)


def literals(sql: str) -> Iterator[tuple[str, bool]]:
    """The texts that columns are compared with, and whether as a part of a value."""
    try:
        trees = parse_statements(sql, dialect_name("sqlite"))
    except SyntaxProblem:
        return
    for node in (found for tree in trees for found in tree.find_all(*COMPARISONS)):
        sides = [node.this, node.args.get("expression"), *node.args.get("expressions", [])]
        sides = [side for side in sides if side is not None]
        if any(side.find(exp.Column) for side in sides):
            partly = isinstance(node, exp.Like | exp.ILike)
            texts = (side.name for side in sides if isinstance(side, exp.Literal) and side.is_string)
            yield from ((text.strip("%") if partly else text, partly) for text in texts)


def among(text: str, partly: bool, values: Iterable[str]) -> bool:
    """Whether one of the values is the text, or holds it."""
    text, folded = text.casefold(), {value.casefold() for value in values}
    return any(text in value for value in folded) if partly else text in folded


async def index_of(url: str) -> ValueIndex:
    async with connect(url) as connector:
        return await read_values(connector, await connector.catalog())


def main(data: Path) -> None:
    matches, sought, shown = list[int](), 0, 0
    for url, questions in by_database(LOCAL_SUITES, data).items():
        index = asyncio.run(index_of(url))
        every = [text for texts in index.values.values() for text in texts]
        for question in questions:
            wanted = {found for sql in question.gold_sql for found in literals(sql)}
            if not wanted:
                continue
            texts = [match.text for match in index.match(question.question)]
            matches.append(len(texts))
            for text, partly in sorted(wanted):
                if not among(text, partly, every):
                    continue
                sought += 1
                if among(text, partly, texts):
                    shown += 1
                else:
                    print(f"missed: {question.id}: {text!r} in {question.question[:90]!r}")
    print(f"texts that the database holds: {sought}; among the matched values: {shown / sought:.1%}")
    print(f"values shown for a question: mean {mean(matches):.1f}, most {max(matches)}")


if __name__ == "__main__":
    main(Path(arguments(__doc__, "data").data or DATA))
