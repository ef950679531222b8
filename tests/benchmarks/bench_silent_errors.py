"""What checks of silent errors say of right queries: ``-m tests.benchmarks.bench_silent_errors [DATA]``.

DATA is the folder of ``spider1``, ``defog`` and ``spider2-local`` (by default ``$QUORUM_DATA``, or
``../shared/data``). No model is asked. Whatever is said of a gold query is printed.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from dataclasses import replace
from pathlib import Path

from quorum.evals.questions import EvalQuestion
from quorum.tools.databases import connect
from quorum.tools.execute import QueryCache, execute
from quorum.tools.query import QueryResult
from quorum.tools.silent_errors import Suspicion, suspicions
from tests.benchmarks.common import DATA, LOCAL_SUITES, arguments, by_database
from tests.engines import opened


async def claims(url: str, questions: list[EvalQuestion]) -> list[tuple[Suspicion, ...]]:
    """Return what is said of each gold query that runs."""
    found: list[tuple[Suspicion, ...]] = []
    async with connect(url) as connector:
        every = await opened(connector)
        for question in (each for each in questions if each.gold_sql):
            sql = question.gold_sql[0].strip().rstrip(";")
            database = replace(every, cache=QueryCache())
            result = await execute(database, sql, agent="bench")
            if not isinstance(result, QueryResult):
                print(f"does not run: {question.id}")
                continue
            reading = lambda result=result: result.table  # noqa: E731
            said = await suspicions(database, sql, reading, agent="bench", question=question.question)
            for each in said:
                print(f"{question.database} {question.id}: {each.kind}: {each.says} {each.matters}\n   {sql}")
            found.append(tuple(said))
    return found


def main() -> None:
    groups = by_database(LOCAL_SUITES, Path(arguments(__doc__, "data").data or DATA))
    found = [said for url, own in groups.items() for said in asyncio.run(claims(url, own))]
    kinds = Counter(each.kind for said in found for each in said)
    print(f"{sum(map(bool, found))} of {len(found)} gold queries with a claim: {dict(kinds)}")


if __name__ == "__main__":
    main()
