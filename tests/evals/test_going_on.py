"""Going on: whether it is still the same question, and what earlier processes leave to later ones."""

from __future__ import annotations

import asyncio
import dataclasses
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record
from quorum.evals.running.attempts import Attempts
from quorum.evals.running.run_events import RunEvents
from quorum.evals.running.runner import run_evaluation
from quorum.evals.scorers.own import OwnScorer
from quorum.graph.nodes.voting import ASKED_ANEW
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.backend import Backend
from quorum.tools.models.failures import FailureKind, NoReply
from tests.evals.evaluations import differing
from tests.evals.running import Knowing, evaluation, questions

pytestmark = pytest.mark.usefixtures("shops")


async def run(folder: Path, asked: tuple[EvalQuestion, ...], **how: Any) -> dict[str, Record]:
    return await run_evaluation(evaluation(folder, Knowing(), asked, **how))


async def test_what_changed_of_a_question_is_named(tmp_path: Path) -> None:
    own: dict[str, Any] = {"knowledge": {"a.md": "Orders are large."}, "extra": {"category": "a"}}
    asked = dataclasses.replace(questions(1)[0], **own)
    await run(tmp_path, (asked,))
    for changes, said in (
        ({"question": "How many orders exceed 30?"}, r"its text changed\."),
        ({"gold_sql": ("SELECT 1",)}, r"its gold SQL changed\."),
        ({"knowledge": {"a.md": "Orders are few."}}, r"its knowledge a\.md changed\."),
        ({"extra": {"category": "b"}}, r"its category changed\."),
        ({"difficulty": "hard"}, "its difficulty was '' and is 'hard'"),
        ({"knowledge": {}, "extra": {}}, r"its category changed; its knowledge a\.md changed\."),
    ):
        with pytest.raises(ConfigurationError, match=f"asks another question q00: {said}"):
            await run(tmp_path, (dataclasses.replace(asked, **changes),))
    with pytest.raises(ConfigurationError, match="q00 is not among"):
        await run(tmp_path, questions(2)[1:])


async def test_a_gold_file_that_changed_is_named_and_one_that_moved_is_the_same(tmp_path: Path) -> None:
    def asked(folder: str) -> tuple[EvalQuestion, ...]:
        file = tmp_path / folder / "gold.csv"
        return (dataclasses.replace(questions(1)[0], extra={"result": str(file)}),)

    (tmp_path / "here").mkdir()
    (tmp_path / "here" / "gold.csv").write_text("orders\n40\n")
    await run(tmp_path / "out", asked("here"), scorer=OwnScorer())
    (tmp_path / "here").rename(tmp_path / "there")
    model = Knowing()
    again = await run_evaluation(evaluation(tmp_path / "out", model, asked("there"), scorer=OwnScorer()))
    assert again["q00"].match
    assert not model.asked
    (tmp_path / "there" / "gold.csv").write_text("orders\n41\n")
    with pytest.raises(ConfigurationError, match=r"question q00: its gold file gold\.csv changed\."):
        await run(tmp_path / "out", asked("there"), scorer=OwnScorer())
    (tmp_path / "there" / "gold.csv").unlink()
    with pytest.raises(ConfigurationError, match=r"gold\.csv cannot be read"):
        await run(tmp_path / "out", asked("there"), scorer=OwnScorer())


class Refused(Exception):
    """An endpoint's refusal of a request."""


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> None:
    """A model that raises ``Refused`` has refused the request, ``GONE`` is a server's error."""
    failure = NoReply(FailureKind.REQUEST, "It is too odd.")
    monkeypatch.setattr(Backend, "errors", (Refused,))
    monkeypatch.setattr(Backend, "failure", lambda *_: failure)


@pytest.mark.usefixtures("refusing")
async def test_a_refused_request_is_remembered_by_a_run_that_goes_on(tmp_path: Path) -> None:
    """One of three candidates is refused, two fail: asking again would not help."""
    bad = {"reasoning": "Guess.", "sql": "SELECT nothing FROM nowhere"}

    def model() -> Knowing:
        turns = iter([Refused(), bad, bad])
        return Knowing(lambda role, number: next(turns, bad))

    first = await run_evaluation(evaluation(tmp_path, model(), questions(1), votes=3, concurrency=1))
    assert (first["q00"].error, first["q00"].finished) == ("request", True)
    for lost in ("results.jsonl", "runs/q00/answer.json"):  # the process was killed after this, or before
        (tmp_path / "results.jsonl").write_text("")
        (tmp_path / lost).unlink()
        later = model()
        again = await run_evaluation(evaluation(tmp_path, later, questions(1), votes=3, concurrency=1))
        assert differing(again, first) == {}
        assert again["q00"].resumed
        assert not later.asked


@pytest.mark.usefixtures("refusing")
async def test_a_refused_request_that_ends_the_run_is_final(tmp_path: Path) -> None:
    model = Knowing(lambda role, number: Refused())
    for _ in range(2):
        records = await run_evaluation(evaluation(tmp_path, model, questions(1), recipe="recap"))
        assert (records["q00"].status, records["q00"].error) == ("failed", "request")
    assert model.asked.total() == 1


def heard(*events: tuple[str, str, str]) -> set[str]:
    """Return why calls failed, by events of kind, candidate and failure."""
    listener = RunEvents()
    for kind, candidate, failure in events:
        listener.learn({"kind": kind, "candidate": candidate, "failure": failure})
    return listener.refusals


def test_what_a_run_that_goes_on_makes_up_for_is_forgotten() -> None:
    lost, planner = ("model_failed", "c1", "request"), ("model_failed", "", "server")
    begun, asked_anew = ("begun", "", ""), (ASKED_ANEW, "", "")
    assert heard(begun, planner, lost) == {"server", "request"}
    assert heard(begun, planner, begun, lost) == {"request"}, "the planner is asked again"
    assert heard(begun, lost, begun) == {"request"}, "a lost candidate stays lost"
    assert heard(begun, lost, begun, asked_anew) == set()


async def test_a_run_that_is_cut_short_leaves_its_trace_to_whoever_goes_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What closes it otherwise runs in a thread, which a second interruption cuts short."""

    async def cut_short(*_: Any, **__: Any) -> Any:
        raise asyncio.CancelledError

    monkeypatch.setattr("quorum.evals.running.attempts.answer_question", cut_short)
    given = evaluation(tmp_path, Knowing(), questions(1))
    attempts = Attempts(given)
    try:
        with pytest.raises(asyncio.CancelledError):
            await attempts.record(given.questions[0])
    finally:
        await attempts.end()
    Trace.resume(tmp_path, "q00").close()
