"""Many questions at once: the wall clock of an evaluation against the ideal.

Runs ``evals.running.runner.run_evaluation`` over a suite made up on the spot, with a simulated model in this
process that takes ``--latency`` seconds a call. The ideal is

    questions / concurrency x sequential model calls of a question x latency

where the sequential calls are measured on one question (for each worker) that is asked alone beforehand. Each
case runs in a fresh process, with ``--workers`` of its own if they are more than one; CPU is that of this
process, and of all that it started, its databases' and workers' (their start included).

``--form session`` asks the same questions of one database by ``quorum.Quorum.ask_many`` instead, to be
compared with ``--databases 1 --form here``.

    python -m tests.benchmarks.bench_concurrency [--questions 200] [--concurrency 100] [--latency 1.0]
                                                 [--databases 5] [--workers 1] [--recipe NAME ...]
                                                 [--form here|session]
"""

from __future__ import annotations

import asyncio
import math
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from tests.benchmarks.common import arguments

RECIPES = ("single", "quorum", "recap")


def measure(given: Any, recipe: str, form: str) -> dict[str, Any]:
    """Run a case in this process, which should be a fresh one; the figures of its line."""
    with tempfile.TemporaryDirectory() as name:
        found = asyncio.run(_measure(given, recipe, form, Path(name)))
    if given.workers > 1:  # only a process that has ended is counted, and what it waited for
        forkserver._forkserver._stop()
    return found | {"child": 1000 * _cpu(resource.RUSAGE_CHILDREN) / given.questions}


async def _measure(given: Any, recipe: str, form: str, folder: Path) -> dict[str, Any]:
    from quorum import Quorum
    from quorum.evals.running.cluster import workers_of
    from quorum.evals.running.runner import Evaluation, run_evaluation
    from quorum.graph.options import RunOptions
    from quorum.graph.runs import RunFolder
    from tests.evals.simulated import CITIES, make_suite, slow_model

    suite = make_suite(folder, given.questions + given.workers, given.databases)
    first, others = suite.questions[: given.workers], suite.questions[given.workers :]
    model = slow_model(given.latency)

    async def evaluate(questions: Sequence[Any], out: Path) -> int:
        """Questions answered rightly by an evaluation."""
        options, models = RunOptions(recipe=recipe, models=["simulated"]), {"simulated": model}
        asked = Evaluation(suite, options, questions, out, concurrency=given.concurrency, chat_models=models)
        records = await run_evaluation(asked, workers=workers)
        return sum(bool(record.match) for record in records.values())

    async def ask_many() -> int:
        """Questions answered with the rows of a right answer in a session."""
        async with Quorum(db=others[0].url, models=[model], recipe=recipe, home=folder) as quorum:
            texts = (question.question for question in others)
            answers = [each async for each in quorum.ask_many(texts, concurrency=given.concurrency)]
        return sum(each.status == "answered" and each.row_count == len(CITIES) for each in answers)

    async with workers_of(given.workers) if given.workers > 1 else nullcontext() as workers:
        await evaluate(first, folder / "alone")
        events = RunFolder(folder / "alone" / "runs" / first[0].id).events()
        calls = [(event["t"], event["seconds"]) for event in events if event["kind"] == "model_call"]
        start, cpu = time.perf_counter(), _cpu(resource.RUSAGE_SELF)
        right = await (ask_many() if form == "session" else evaluate(others, folder / "together"))
        wall, spent = time.perf_counter() - start, _cpu(resource.RUSAGE_SELF) - cpu
    own = 1000 * spent / given.questions
    return {"calls": len(calls), "sequential": _in_a_row(calls), "wall": wall, "own": own, "right": right}


def _in_a_row(calls: Sequence[tuple[float, float]]) -> int:
    """The longest row of calls (their end and seconds) that wait for each other."""
    count, reached = 0, -math.inf
    for end, seconds in sorted(calls):
        if end - seconds / 2 > reached:
            count, reached = count + 1, end
    return count


def _cpu(whose: int) -> float:
    """CPU seconds of this process, or of its children that have ended."""
    used = resource.getrusage(whose)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """Print a line for each recipe and form."""
    counts: dict[str, Any] = {"questions": 200, "concurrency": 100, "databases": 5, "workers": 1}
    given = arguments(__doc__, **counts, latency=1.0, recipe=[], form=[])
    print(f"{given.questions} questions, {given.concurrency} at once, {given.databases} databases, ", end="")
    print(f"{given.latency:g} s a call, {given.workers} worker(s)")
    print("recipe      model   calls seq ideal s wall s ratio cpu ms/q  child right")
    for form in given.form or ["here"]:
        for recipe in given.recipe or RECIPES:
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                found = pool.submit(measure, given, recipe, form).result()
            calls, sequential, wall = found["calls"], found["sequential"], found["wall"]
            ideal = math.ceil(given.questions / given.concurrency) * sequential * given.latency
            print(f"{recipe:<11} {form:<7} {calls:>5} {sequential:>3} {ideal:>7.1f} {wall:>6.2f}", end=" ")
            print(f"{wall / ideal:>5.2f} {found['own']:>8.1f} {found['child']:>6.1f} {found['right']:>5}")


if __name__ == "__main__":
    main()
