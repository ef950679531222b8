"""Processes that ask their share of an evaluation's questions: nothing changes but the time it takes."""

from __future__ import annotations

import asyncio
import dataclasses
import pickle
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.records import Record
from quorum.evals.running import runner
from quorum.evals.running.evaluation import Evaluation
from quorum.evals.running.failures import MachineFailed
from quorum.evals.running.frames import pack, unpack
from quorum.evals.running.processes import Shares, WorkerProcess, worker_processes
from quorum.evals.running.runner import run_evaluation
from quorum.graph.options import RunOptions
from quorum.knowledge import errors
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.scripted import scripted
from tests.evals.evaluations import differing
from tests.evals.simulated import make_suite, slow_model


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return make_suite(tmp_path_factory.mktemp("shops"), 12, 2)


@pytest.fixture(scope="module")
def workers() -> Iterator[list[WorkerProcess]]:
    """One for the whole module: it takes seconds to load."""
    with worker_processes(1) as started:
        yield started


def evaluation(suite: Suite, folder: Path, latency: float = 0.01, **changes: Any) -> Evaluation:
    options = RunOptions(recipe="single", models=["simulated"])
    models = {"simulated": slow_model(latency)}
    made = Evaluation(suite, options, suite.questions, folder, concurrency=4, chat_models=models)
    return dataclasses.replace(made, **changes)


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Ids of the questions that another process was asked."""
    ids: list[str] = []
    record = WorkerProcess.record

    async def noted(worker: WorkerProcess, question: EvalQuestion) -> Record:
        ids.append(question.id)
        return await record(worker, question)

    monkeypatch.setattr(WorkerProcess, "record", noted)
    return ids


@pytest.mark.asyncio(loop_scope="module")
async def test_two_processes_do_what_one_does(
    suite: Suite, workers: list[WorkerProcess], elsewhere: list[str], tmp_path: Path
) -> None:
    alone = await run_evaluation(evaluation(suite, tmp_path / "alone"))
    assert elsewhere == []
    shared = await run_evaluation(evaluation(suite, tmp_path / "shared"), workers=workers)
    assert 0 < len(elsewhere) < 12
    assert list(shared) == list(alone)
    assert all(record.match for record in shared.values())
    assert differing(alone, shared) == {}


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_interrupted_goes_on(
    suite: Suite, workers: list[WorkerProcess], elsewhere: list[str], tmp_path: Path
) -> None:
    """The other process ends what it has under way so that any process can go on with it."""
    slow = asyncio.ensure_future(
        run_evaluation(evaluation(suite, tmp_path / "out", latency=60), workers=workers)
    )
    while len(list((tmp_path / "out").glob("runs/*/checkpoint.sqlite"))) < 4:
        await asyncio.sleep(0.02)
    slow.cancel()
    with pytest.raises(asyncio.CancelledError):
        await slow
    begun = set(elsewhere)
    records = await run_evaluation(evaluation(suite, tmp_path / "out"))
    assert all(record.match for record in records.values())
    assert {id for id, record in records.items() if record.resumed} > begun
    assert begun


@pytest.mark.asyncio(loop_scope="module")
async def test_what_another_process_cannot_be_told_is_refused(
    suite: Suite, workers: list[WorkerProcess], tmp_path: Path
) -> None:
    models = {"simulated": scripted(lambda prompt: "no such thing")}
    given = evaluation(suite, tmp_path / "out", chat_models=models)
    with pytest.raises(ConfigurationError, match=r"cannot be handed to another process.*Use one worker"):
        await run_evaluation(given, workers=workers)


async def test_a_process_that_is_gone_ends_the_evaluation_and_loses_nothing(
    suite: Suite, tmp_path: Path
) -> None:
    def killing(_: Record) -> None:
        worker.kill()

    with worker_processes(1) as (worker,), pytest.raises(MachineFailed, match="exit status -9"):
        await run_evaluation(
            evaluation(suite, tmp_path / "out", latency=0.2), workers=[worker], on_record=killing
        )
    finished: list[Record] = []
    records = await run_evaluation(evaluation(suite, tmp_path / "out"), on_begin=finished.extend)
    assert finished
    assert all(record.match for record in records.values())


async def test_a_process_ends_with_the_one_that_began_it() -> None:
    worker = WorkerProcess()
    assert worker._process.stdin is not None
    worker._process.stdin.close()
    assert await asyncio.to_thread(worker._process.wait, 30) == 0
    worker.kill()


async def test_an_error_arrives_whole() -> None:
    stream = asyncio.StreamReader()
    stream.feed_data(pack(("failed", "q1", ConfigurationError("It is wrong.", hint="Mend it."))))
    stream.feed_eof()
    _, _, error = await unpack(stream)
    assert str(error) == "It is wrong. Mend it."
    with pytest.raises(EOFError):
        await unpack(stream)


@pytest.mark.parametrize("kind", [each for each in vars(errors).values() if isinstance(each, type)])
def test_every_error_can_be_handed_on(kind: type[Exception]) -> None:
    given = kind("It is wrong.", hint="Mend it.") if issubclass(kind, errors.QuorumError) else kind()
    given.__dict__ |= {"limit": "deadline"}
    handed = pickle.loads(pickle.dumps(given))
    assert type(handed) is kind
    assert (str(handed), vars(handed)) == (str(given), vars(given))


async def test_what_cannot_be_read_is_not_waited_for_for_ever(suite: Suite, tmp_path: Path) -> None:
    with worker_processes(1) as (worker,):
        await worker.begin(evaluation(suite, tmp_path), lambda: None)
        worker._hear = None  # type: ignore[assignment,method-assign]
        with pytest.raises(MachineFailed, match="has ended"):
            await asyncio.wait_for(worker.record(suite.questions[0]), 30)


def test_the_rate_of_requests_is_shared(suite: Suite, tmp_path: Path) -> None:
    options = RunOptions(recipe="single", models=["simulated"], requests_per_second=5.0)
    given = evaluation(suite, tmp_path, options=options)
    assert runner._for_one_of(2, given).options.requests_per_second == 2.5
    assert runner._for_one_of(1, given) is given


@given(st.integers(0, 30), st.lists(st.integers(0, 3), max_size=40), st.integers(1, 4))
def test_every_question_is_asked_once(count: int, order: list[int], askers: int) -> None:
    questions: Any = list(range(count))
    shares = Shares(questions, askers)
    parts = [shares.of(number) for number in range(askers)]
    first = [next(part, None) for part in parts]
    if count >= askers:  # each begins with its own part
        assert first == [count * number // askers for number in range(askers)]
    asked = [*first, *(next(parts[each % askers], None) for each in order), *parts[0]]
    assert sorted(each for each in asked if each is not None) == questions
