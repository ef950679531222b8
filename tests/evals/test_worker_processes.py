"""Processes that ask their share of an evaluation's questions: nothing changes but the time it takes."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import pickle
import signal
import sys
import threading
from collections.abc import AsyncIterator
from multiprocessing import forkserver
from pathlib import Path
from typing import Any

import pytest
import pytest_asyncio
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.records import Record
from quorum.evals.running import cluster, runner
from quorum.evals.running.cluster import MOST_LOST, AskingActor, RemoteAsker, Shares, Workers, workers_of
from quorum.evals.running.evaluation import Evaluation
from quorum.evals.running.runner import run_evaluation
from quorum.graph.options import RunOptions
from quorum.knowledge import errors
from quorum.knowledge.errors import ConfigurationError, MachineFailed
from quorum.tools.models.scripted import ScriptedChatModel, scripted
from tests.evals.evaluations import differing
from tests.evals.simulated import make_suite, slow_model


@pytest.fixture(scope="module")
def suite(tmp_path_factory: pytest.TempPathFactory) -> Suite:
    return make_suite(tmp_path_factory.mktemp("shops"), 12, 2)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def workers() -> AsyncIterator[Workers]:
    """Two for the whole module: they take seconds to load."""
    async with workers_of(2) as started:
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
    record = RemoteAsker.record

    async def noted(asker: RemoteAsker, question: EvalQuestion) -> Record:
        ids.append(question.id)
        return await record(asker, question)

    monkeypatch.setattr(RemoteAsker, "record", noted)
    return ids


@pytest.mark.heavy
@pytest.mark.asyncio(loop_scope="module")
async def test_two_processes_do_what_one_does(
    suite: Suite, workers: Workers, elsewhere: list[str], tmp_path: Path
) -> None:
    alone = await run_evaluation(evaluation(suite, tmp_path / "alone"))
    assert elsewhere == []
    shared = await run_evaluation(evaluation(suite, tmp_path / "shared"), workers=workers)
    assert sorted(elsewhere) == sorted(shared)
    assert list(shared) == list(alone)
    assert all(record.match for record in shared.values())
    assert differing(alone, shared) == {}


@pytest.mark.asyncio(loop_scope="module")
async def test_a_wrong_setting_or_what_a_worker_cannot_be_told_shows_before_anything_is_written(
    suite: Suite, workers: Workers, tmp_path: Path
) -> None:
    options = RunOptions(recipe="single", models=["openai:unpriced"], base_url="http://127.0.0.1:9/v1")
    unpriced = evaluation(suite, tmp_path / "out", options=options, api_key="k", max_usd_total=1.0)
    with pytest.raises(ConfigurationError, match="price"):
        await run_evaluation(unpriced, workers=workers)
    lock = threading.Lock()
    untold = evaluation(
        suite, tmp_path / "out", chat_models={"simulated": scripted(lambda prompt: str(lock))}
    )
    with pytest.raises(ConfigurationError, match=r"cannot be handed to another process.*Use one worker"):
        await run_evaluation(untold, workers=workers)
    assert not (tmp_path / "out").exists()


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_interrupted_goes_on(
    suite: Suite, workers: Workers, elsewhere: list[str], tmp_path: Path
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
    assert {id for id, record in records.items() if record.resumed} >= begun
    assert len(begun) == 4


async def processes_of(workers: Workers) -> list[int]:
    """The ids of the workers' processes."""
    return list((await workers.client.run(os.getpid)).values())


@pytest.mark.heavy
@pytest.mark.asyncio(loop_scope="module")
async def test_what_a_killed_worker_had_under_way_another_one_goes_on_with(
    suite: Suite, workers: Workers, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    models = {"simulated": Gated(script=slow_model(0).script, source="simulated", gate=gate)}
    given = evaluation(suite, tmp_path / "out", chat_models=models)
    asked = asyncio.ensure_future(run_evaluation(given, workers=workers))
    while not [*tmp_path.glob("asked-*")] or len([*tmp_path.glob("out/runs/*/checkpoint.sqlite")]) < 4:
        await asyncio.sleep(0.02)  # until each waits for its model
    gone = int(next(tmp_path.glob("asked-*")).name.removeprefix("asked-"))
    os.kill(gone, signal.SIGKILL)
    gate.touch()
    records = await asked
    assert len(records) == 12
    assert all(record.match for record in records.values())
    # a question whose checkpoint held nothing yet is begun anew, and says so
    assert any(record.resumed or record.discarded for record in records.values())
    assert gone not in await processes_of(workers)


@pytest.mark.heavy
@pytest.mark.asyncio(loop_scope="module")
async def test_a_question_that_ends_every_worker_ends_the_evaluation_and_loses_nothing(
    suite: Suite,
    workers: Workers,
    tmp_path: Path,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Want of memory, say: the system kills whatever asks it. The key is in no file and in no log."""
    models = {"simulated": Deadly(script=str, source="simulated")}
    given = evaluation(suite, tmp_path / "out", chat_models=models, api_key="sk-secret")
    with pytest.raises(MachineFailed, match=f"{MOST_LOST} worker processes have ended"):
        await run_evaluation(given, workers=workers)
    assert "worker" in caplog.text.lower()
    assert "sk-secret" not in "".join([*capfd.readouterr(), caplog.text])
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert files
    assert not any(b"sk-secret" in path.read_bytes() for path in files)
    records = await run_evaluation(evaluation(suite, tmp_path / "out"))
    assert all(record.match for record in records.values())


class Gated(ScriptedChatModel):
    """Says which process is asked, and replies once a file is there."""

    gate: Path

    async def _agenerate(self, messages: Any, *given: Any, **more: Any) -> Any:
        self.gate.with_name(f"asked-{os.getpid()}").touch()
        while not self.gate.exists():
            await asyncio.sleep(0.02)
        return await super()._agenerate(messages, *given, **more)


class Deadly(ScriptedChatModel):
    """Ends the process that asks it."""

    async def _agenerate(self, *_: Any, **__: Any) -> Any:
        os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.heavy
@pytest.mark.asyncio(loop_scope="module")
async def test_a_terminals_ctrl_c_does_not_reach_workers(
    suite: Suite, workers: Workers, tmp_path: Path
) -> None:
    before = await processes_of(workers)
    for process in before:
        os.kill(process, signal.SIGINT)
        os.kill(process, signal.SIGTERM)
    assert await run_evaluation(evaluation(suite, tmp_path / "out"), workers=workers)
    assert await processes_of(workers) == before


@pytest.mark.heavy
@pytest.mark.asyncio(loop_scope="module")
async def test_a_sigterm_to_the_group_does_not_end_the_process_that_forks_workers(workers: Workers) -> None:
    """As ``timeout`` and systemd send it: with that process the workers would go."""
    assert workers.count == 2
    status = Path(f"/proc/{forkserver._forkserver._forkserver_pid}/status").read_text()
    ignored = next(int(line.split()[1], 16) for line in status.splitlines() if line.startswith("SigIgn"))
    assert ignored >> signal.SIGTERM - 1 & 1


@pytest.mark.heavy
@pytest.mark.asyncio(loop_scope="module")
async def test_a_worker_has_the_environment_of_its_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUM_OF_NOW", "here")
    async with workers_of(1) as later:
        assert await later.client.submit(os.environ.get, "QUORUM_OF_NOW") == "here"


@pytest.mark.heavy
@pytest.mark.asyncio(loop_scope="module")
async def test_an_existing_cluster_is_used(suite: Suite, tmp_path: Path) -> None:
    from distributed import LocalCluster

    async with (
        LocalCluster(n_workers=1, threads_per_worker=1, dashboard_address=":0", asynchronous=True) as there,
        workers_of(address=there.scheduler_address) as workers,
    ):
        assert workers.count == 1
        records = await run_evaluation(evaluation(suite, tmp_path / "out"), workers=workers)
    assert all(record.match for record in records.values())


async def test_what_lacks_for_a_cluster_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "START_SECONDS", 0.4)
    with pytest.raises(ConfigurationError, match=r"No cluster with a worker answers at tcp://127\.0\.0\.1:9"):
        async with workers_of(address="tcp://127.0.0.1:9"):
            pass
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(ConfigurationError, match=r"pip install .*distributed"):
        async with workers_of(2):
            pass


async def test_an_error_arrives_whole(suite: Suite, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Errors of ours as they are; of others, which may not be fit to travel, their traceback."""
    asking = AskingActor(evaluation(suite, tmp_path))
    try:
        for error in (ConfigurationError("It is wrong.", hint="Mend it."), ValueError(threading.Lock())):

            async def fails(_: EvalQuestion, error: Exception = error) -> Record:
                raise error

            monkeypatch.setattr(asking._attempts, "record", fails)
            await asking.ask(suite.questions[0])
            ((_, outcome, _),) = pickle.loads(await asking.outcomes())
            found = pickle.loads(outcome)
            said = "It is wrong. Mend it." if isinstance(error, ConfigurationError) else "ValueError"
            assert said in str(found)
    finally:
        await asking.end()


def test_every_error_can_be_handed_on() -> None:
    for kind in [
        e
        for e in vars(errors).values()
        if getattr(e, "__module__", "") == errors.__name__ and isinstance(e, type)
    ]:
        given = kind("It is wrong.", hint="Mend it.") if issubclass(kind, errors.QuorumError) else kind()
        given.__dict__ |= {"limit": "deadline"}
        handed = pickle.loads(pickle.dumps(given))
        assert type(handed) is kind
        assert (str(handed), vars(handed)) == (str(given), vars(given))


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
