"""Many questions at once: the wall clock of an evaluation against the ideal, and its behaviour in a storm.

Runs ``evals.running.runner.run_evaluation`` over a suite made up on the spot, with a simulated model that
takes ``--latency`` seconds a call: ``here``, in this process, and ``http``, behind a chat-completions server
that has a process of its own. The ideal is

    questions / concurrency x sequential model calls of a question x latency

where the sequential calls are measured on one question that is asked alone: the wall clock during which it
waits for at least one call, over the latency. Each case runs in a fresh process, with ``--workers`` of its
own if they are more than one; CPU is that of this process, and of all that it started, its databases' and
workers' (their start included). ``cold`` is what the first question, one for each worker, costs more than
its model calls: imports, opening a database. It is no part of the wall clock.

``session`` asks the same questions of one database by ``quorum.Quorum.ask_many`` instead, to be compared with
``--databases 1 --form here``.

``quorum/plan`` is the recipe on questions that are long enough for it to plan. ``--storm`` asks sixty
questions, forty at once, of a server that takes eight at once, or fails for two seconds, and tells whether a
question was lost and how many requests were refused.

    python -m tests.benchmarks.bench_concurrency [--questions 200] [--concurrency 100] [--latency 1.0]
                                                 [--databases 5] [--workers 1] [--recipe NAME ...]
                                                 [--form here|http|session]
    python -m tests.benchmarks.bench_concurrency --storm
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
from contextlib import ExitStack
from dataclasses import dataclass
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

from tests.benchmarks.common import arguments
from tests.servers.slow_server import SlowServer

RECIPES = ("single", "quorum", "quorum/plan", "recap")
FORMS = ("here", "http", "session")


@dataclass(frozen=True)
class Case:
    """One measurement; ``url`` is the server's, empty for the model in this process."""

    recipe: str
    questions: int
    concurrency: int
    latency: float
    databases: int
    url: str = ""
    session: bool = False
    alone: bool = True
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
    lost: int


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
    calls, waited = await _calls(case, suite, alone, folder / "alone", workers) if case.alone else (0, 0.0)
    cold = time.perf_counter() - start - waited
    start, cpu = time.perf_counter(), _cpu()[0]
    if case.session:
        right, finished = await _ask_many(case, questions, folder / "together")
    else:
        records = (await _run(case, suite, questions, folder / "together", workers)).values()
        right, finished = sum(bool(it.match) for it in records), sum(it.finished for it in records)
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
        lost=case.questions - finished,
    )


async def _ask_many(case: Case, questions: Sequence[Any], folder: Path) -> tuple[int, int]:
    """Questions with the rows of one that is right, and those with an answer."""
    from quorum import Quorum
    from tests.evals.simulated import CITIES, slow_model

    recipe, found = case.recipe.partition("/")[0], list[Any]()
    models = [slow_model(case.latency)]
    async with Quorum(db=questions[0].url, models=models, recipe=recipe, home=folder) as quorum:
        texts = (question.question for question in questions)
        async for answer in quorum.ask_many(texts, concurrency=case.concurrency):
            found.append(answer)
    answered = [answer for answer in found if answer.status == "answered"]
    return sum(answer.row_count == len(CITIES) for answer in answered), len(answered)


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

    spec = "openai:simulated" if case.url else "simulated"
    return await run_evaluation(
        Evaluation(
            suite,
            RunOptions(recipe=case.recipe.partition("/")[0], models=[spec], base_url=case.url),
            questions,
            folder,
            concurrency=case.concurrency,
            chat_models={} if case.url else {spec: slow_model(case.latency)},
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
    for form in given.form or FORMS[:2]:
        for recipe in given.recipe or RECIPES:
            with ExitStack() as stack:
                url = stack.enter_context(SlowServer(latency=given.latency)).url if form == "http" else ""
                size = (given.questions, given.concurrency, given.latency, given.databases)
                about = {"workers": given.workers, "session": form == "session"}
                found = in_fresh_process(Case(recipe, *size, url, **about))
            ideal = math.ceil(given.questions / given.concurrency) * found.sequential * given.latency
            print(f"{recipe:<11} {form:<7} {found.calls:>5} {found.sequential:>3} {ideal:>7.1f}", end=" ")
            print(f"{found.wall:>6.2f} {found.wall / ideal:>5.2f} {found.own_cpu:>8.1f}", end=" ")
            print(f"{found.child_cpu:>6.1f}", end=" ")
            print(f"{found.cold:>6.2f} {found.memory / 2**20:>5.0f} {found.right:>5}", flush=True)


def storms() -> None:
    """Print a line for each kind of trouble that an endpoint may be in."""
    print("60 questions in one call each, 40 at once; the endpoint takes 0.2 s a call")
    print(f"{'trouble':<34} wall s served refused most right lost")
    troubles: dict[str, dict[str, Any]] = {
        "none": {},
        "takes 8 at once": {"capacity": 8},
        "takes 8 at once, says: in 1 s": {"capacity": 8, "retry_after": 1.0},
        "fails for 2 s": {"away": (0.1, 2.1)},
    }
    for name, conduct in troubles.items():
        with SlowServer(latency=0.2, **conduct) as server:
            found = in_fresh_process(Case("single", 60, 40, 0.2, 2, server.url, alone=False))
            counts = server.counts()
        print(f"{name:<34} {found.wall:>6.2f} {counts.served:>6} {counts.refused:>7}", end=" ")
        print(f"{counts.most:>4} {found.right:>5} {found.lost:>4}", flush=True)


if __name__ == "__main__":
    counts: dict[str, Any] = {"questions": 200, "concurrency": 100, "databases": 5, "workers": 1}
    chosen: dict[str, Any] = {"recipe": [], "form": [], "storm": False}
    given = arguments(__doc__, **counts, latency=1.0, **chosen)
    storms() if given.storm else compare(given)
