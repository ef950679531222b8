"""Many questions at once: the wall clock of an evaluation against the ideal.

Runs ``evals.running.runner.run_evaluation`` over a suite made up on the spot, with a simulated model in this
process that takes ``--latency`` seconds a call. The ideal is

    questions / concurrency x sequential model calls of a question x latency

where the sequential calls are measured on one question that is asked alone: the wall clock during which it
waits for at least one call, over the latency. Each case runs in a fresh process, with ``--workers`` of its
own if they are more than one; CPU is that of this process, and of all that it started, its databases' and
workers' (their start included). ``cold`` is what the first question, one for each worker, costs more than
its model calls: imports, opening a database. It is no part of the wall clock.

``--form session`` asks the same questions of one database by ``quorum.Quorum.ask_many`` instead, to be
compared with ``--databases 1 --form here``.

``quorum/plan`` is the recipe on questions that are long enough for it to plan.

    python -m tests.benchmarks.bench_concurrency [--questions 200] [--concurrency 100] [--latency 1.0]
                                                 [--databases 5] [--workers 1] [--recipe NAME ...]
                                                 [--form here|session]
"""

from __future__ import annotations

import asyncio
import dataclasses
import math
import multiprocessing
import resource
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from tests.benchmarks.common import arguments

RECIPES = ("single", "quorum", "quorum/plan", "recap")


@dataclass(frozen=True)
class Case:
    """One measurement."""

    recipe: str
    questions: int
    concurrency: int
    latency: float
    databases: int
    session: bool = False
    workers: int = 1


@dataclass(frozen=True)
class Figures:
    """Its outcome: counts, seconds, bytes; ``own_cpu`` and ``child_cpu`` are milliseconds a question.

    ``sequential`` calls are rounded to whole ones.
    """

    sequential: int
    calls: int
    cold: float
    wall: float
    own_cpu: float
    child_cpu: float
    memory: int
    right: int


def measure(case: Case) -> Figures:
    """Run the case in this process, which should be a fresh one."""
    with tempfile.TemporaryDirectory() as name:
        found = asyncio.run(_in_workers(case, Path(name)))
    if case.workers > 1:  # only a process that has ended is counted, and what it waited for
        forkserver._forkserver._stop()
    return dataclasses.replace(found, child_cpu=1000 * _cpu()[1] / case.questions)


async def _in_workers(case: Case, folder: Path) -> Figures:
    from quorum.evals.running.cluster import workers_of

    if case.workers == 1:
        return await _measure(case, folder, None)
    async with workers_of(case.workers) as workers:
        return await _measure(case, folder, workers)


def _peak_memory() -> int:
    """Return the peak resident bytes of this process and of its largest child."""
    peaks = (resource.getrusage(who).ru_maxrss for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    return 1024 * sum(peaks)


async def _measure(case: Case, folder: Path, workers: Any) -> Figures:
    from tests.evals.simulated import make_suite

    at_length = case.recipe.endswith("/plan")
    suite = make_suite(folder, case.questions + case.workers, case.databases, at_length=at_length)
    alone, questions = suite.questions[: case.workers], suite.questions[case.workers :]
    start = time.perf_counter()
    calls, waited = await _calls(case, suite, alone, folder / "alone", workers)
    cold = time.perf_counter() - start - waited
    start, cpu = time.perf_counter(), _cpu()[0]
    if case.session:
        right = await _ask_many(case, questions, folder / "together")
    else:
        records = await _run(case, suite, questions, folder / "together", workers)
        right = sum(bool(record.match) for record in records.values())
    wall, spent = time.perf_counter() - start, _cpu()[0] - cpu
    return Figures(
        sequential=round(waited / case.latency),
        calls=calls,
        cold=cold,
        wall=wall,
        own_cpu=1000 * spent / case.questions,
        child_cpu=0.0,
        memory=_peak_memory(),
        right=right,
    )


async def _ask_many(case: Case, questions: Sequence[Any], folder: Path) -> int:
    """Questions with the rows of one that is right."""
    from quorum import Quorum
    from tests.evals.simulated import CITIES, slow_model

    recipe, models = case.recipe.partition("/")[0], [slow_model(case.latency)]
    async with Quorum(db=questions[0].url, models=models, recipe=recipe, home=folder) as quorum:
        texts = (question.question for question in questions)
        answers = [each async for each in quorum.ask_many(texts, concurrency=case.concurrency)]
    return sum(each.status == "answered" and each.row_count == len(CITIES) for each in answers)


async def _calls(
    case: Case, suite: Any, questions: Sequence[Any], folder: Path, workers: Any
) -> tuple[int, float]:
    """Model calls of the first question, and the seconds during which it waits for any."""
    from quorum.graph.runs import RunFolder

    await _run(case, suite, questions, folder, workers)
    calls = [e for e in RunFolder(folder / "runs" / questions[0].id).events() if e["kind"] == "model_call"]
    return len(calls), _covered([(call["t"] - call["seconds"], call["t"]) for call in calls])


async def _run(case: Case, suite: Any, questions: Sequence[Any], folder: Path, workers: Any) -> Any:
    from quorum.evals.running.runner import Evaluation, run_evaluation
    from quorum.graph.options import RunOptions
    from tests.evals.simulated import slow_model

    return await run_evaluation(
        Evaluation(
            suite,
            RunOptions(recipe=case.recipe.partition("/")[0], models=["simulated"]),
            questions,
            folder,
            concurrency=case.concurrency,
            chat_models={"simulated": slow_model(case.latency)},
        ),
        workers=workers,
    )


def _covered(spans: list[tuple[float, float]]) -> float:
    """Seconds that lie in at least one of the spans."""
    total, reached = 0.0, -math.inf
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total


def _cpu() -> tuple[float, float]:
    """CPU seconds of this process, and of its children that have ended."""
    used = (resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    own, children = (each.ru_utime + each.ru_stime for each in used)
    return own, children


def in_fresh_process(case: Case) -> Figures:
    """``measure`` in a process of its own, so that memory and imports are this case's."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(measure, case).result()


def compare(given: Any) -> None:
    """Print a line for each recipe and form."""
    print(f"{given.questions} questions, {given.concurrency} at once, {given.databases} databases, ", end="")
    print(f"{given.latency:g} s a call, {given.workers} worker(s)")
    print("recipe      model   calls seq ideal s wall s ratio cpu ms/q  child cold s    MB right")
    for form in given.form or ["here"]:
        for recipe in given.recipe or RECIPES:
            size = (given.questions, given.concurrency, given.latency, given.databases)
            found = in_fresh_process(Case(recipe, *size, form == "session", given.workers))
            ideal = math.ceil(given.questions / given.concurrency) * found.sequential * given.latency
            print(f"{recipe:<11} {form:<7} {found.calls:>5} {found.sequential:>3} {ideal:>7.1f}", end=" ")
            print(f"{found.wall:>6.2f} {found.wall / ideal:>5.2f} {found.own_cpu:>8.1f}", end=" ")
            print(f"{found.child_cpu:>6.1f}", end=" ")
            print(f"{found.cold:>6.2f} {found.memory / 2**20:>5.0f} {found.right:>5}", flush=True)


if __name__ == "__main__":
    counts: dict[str, Any] = {"questions": 200, "concurrency": 100, "databases": 5, "workers": 1}
    compare(arguments(__doc__, **counts, latency=1.0, recipe=[], form=[]))
