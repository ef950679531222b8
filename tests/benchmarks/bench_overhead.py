"""Orchestration overhead of a question: wall clock less the time inside the model and the database.

Runs ``quorum`` with scripted replies (which take no time worth mentioning, and are subtracted all the
same) over a small SQLite file, with checkpoints and trace as in a real run. Reports milliseconds a
question, on the clock and of this process's processor time, which a busy machine disturbs less; opening the
database (with its process, which else starts while the model writes the first query) and reading its
catalog is reported apart, as it is paid once. ``in a session`` is all that the second and later questions
of a ``quorum.Quorum`` take over the model's time, one candidate each.

    python -m tests.benchmarks.bench_overhead [--votes 3] [--questions 40]
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from pathlib import Path
from typing import Any

from quorum import Quorum
from quorum.graph.builder import build_graph
from quorum.graph.checkpoints import open_checkpoints
from quorum.graph.context import open_context
from quorum.graph.options import RunOptions
from quorum.graph.recipes import recipe_of
from quorum.tools.models.scripted import scripted
from quorum.tools.query import Limits
from tests.benchmarks.common import arguments, spread
from tests.graph.shop import QUESTION, make_shop, script


async def one_question(folder: Path, votes: int) -> tuple[float, float, int, float]:
    """Overhead, time to open the context, model calls and processor time of one question; milliseconds."""
    options = RunOptions(
        database=f"sqlite:///{folder / 'shop.db'}", home=str(folder), models=["scripted:bench"], votes=votes
    )
    begun = time.perf_counter()
    models = {"scripted:bench": scripted(script())}
    context = await open_context(options, recipe_of(options), QUESTION, chat_models=models)
    await context.database.connector.run("SELECT 1", Limits())  # the database's process has started
    opened = time.perf_counter() - begun
    try:
        async with open_checkpoints(context.trace.checkpoint) as saver:
            graph = build_graph(context.recipe, checkpointer=saver)
            config: Any = {"configurable": {"thread_id": context.trace.run_id}}
            begun, before = time.perf_counter(), time.process_time()
            await graph.ainvoke({"question": QUESTION}, config, context=context, durability="sync")
            spent, processor = time.perf_counter() - begun, time.process_time() - before
        total = context.ledger.total
        beside = spent - total.query_seconds - total.model_seconds
        return 1000 * beside, 1000 * opened, total.model_calls, 1000 * processor
    finally:
        await context.aclose()


async def in_a_session(folder: Path, questions: int) -> list[float]:
    """Milliseconds that each further question takes over the model's time."""
    found = []
    async with Quorum(
        db=str(folder / "shop.db"), home=folder, chat_models={"scripted:bench": scripted(script())}
    ) as quorum:
        for number in range(questions + 1):
            begun = time.perf_counter()
            answer = await quorum.ask(f"{QUESTION} {number}")
            found.append(1000 * (time.perf_counter() - begun - answer.usage["model_seconds"]))
    return found[1:]


async def main(votes: int, questions: int) -> None:
    """Run the questions one after the other and print the figures."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_shop(folder / "shop.db")
        await one_question(folder, votes)  # imports and compiled templates
        runs = [await one_question(folder, votes) for _ in range(questions)]
        further = await in_a_session(folder, questions)
    overhead, opening, calls, processor = zip(*runs, strict=True)
    print(f"{questions} questions, {votes} votes, {calls[0]} model calls each")
    print(f"overhead per question: {spread(overhead)} ms")
    print(f"processor: {spread(processor)} ms")
    print(f"opening database, catalog and models: {spread(opening)} ms")
    print(f"in a session: {spread(further)} ms, second {further[0]:.1f} ms")


if __name__ == "__main__":
    asyncio.run(main(**vars(arguments(__doc__, votes=3, questions=40))))
