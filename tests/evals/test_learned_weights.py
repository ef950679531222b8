"""Weights learned after an evaluation: three experts of different quality, bounds, reports, the ledger."""

from __future__ import annotations

import asyncio
import json
import math
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.recorded.candidates import POOLED, RecordedBallots, Source, source_of_records
from quorum.evals.recorded.refit import votes_of_records
from quorum.evals.recorded.weights import (
    DRAWN_EXPERT,
    DRAWN_ONCE,
    FEW,
    OVERRULED,
    SEVERAL,
    UNLIKE,
    Feedback,
    OnlineWeights,
    learn,
)
from quorum.evals.reports.evaluations import Opened, open_evaluations
from quorum.evals.running.runner import run_evaluation
from quorum.graph.ballots import UNANSWERABLE, Ballot
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.knowledge.errors import ModelUnavailable
from quorum.tools.experts import ExpertLedger
from tests.evals.running import Knowing, evaluation, questions
from tests.quorum.conftest import quorum

WRONG: dict[str, Any] = {"reasoning": "Count.", "sql": "SELECT -1 AS orders"}
BROKEN: dict[str, Any] = {"reasoning": "Count.", "sql": "SELECT nope FROM orders"}
DOWN = ModelUnavailable("The endpoint is unreachable.")


def expert(said: Mapping[int, Any]) -> Knowing:
    """A model that knows the answers but for what is given."""
    return Knowing(lambda _, number: said.get(number))


EXPERTS = {
    "good": expert(dict.fromkeys(range(0, 30, 10), WRONG)),
    "half": expert(dict.fromkeys(range(1, 30, 2), WRONG) | {2: BROKEN}),
    "poor": expert(dict.fromkeys(range(30), WRONG) | {5: BROKEN}),
}


async def evaluated(
    folder: Path, experts: Mapping[str, Knowing], *, count: int = 30, votes: int = 0
) -> Opened:
    """An evaluation of the recipe ``single``, by default with one candidate of each expert."""
    asked = questions(count)
    await run_evaluation(evaluation(folder, experts, asked, votes=votes or len(experts), strategy="wma"))
    (found,) = open_evaluations([folder])
    return found


async def weights(found: Opened, feedback: Feedback = "gold") -> OnlineWeights:
    """The weights that an evaluation teaches."""
    return await learn(source_of_records(found.records, found.places).as_in_paper(), feedback)


@contextmanager
def answer_of(folder: Path, id: str) -> Iterator[dict[str, Any]]:
    """The answer of a question's run, to be changed."""
    file = folder / "runs" / id / "answer.json"
    answer = json.loads(file.read_text())
    yield answer
    file.write_text(json.dumps(answer))


async def votes(*arguments: str | Path) -> Result:
    return await asyncio.to_thread(quorum, "votes", *arguments)


@pytest.mark.heavy
@pytest.mark.usefixtures("shops")
async def test_an_evaluation_teaches_who_is_the_best_expert(tmp_path: Path) -> None:
    folder, home = tmp_path / "run", tmp_path / "home"
    found = await evaluated(folder, EXPERTS)
    learned = await weights(found)
    assert {name: 30 - sum(lost) for name, lost in learned.experts.items()} == {
        "good": 27, "half": 14, "poor": 0,
    }  # fmt: skip
    assert learned.weights["good"] == 1.0 > learned.weights["half"] > learned.weights["poor"] > 0
    turned = replace(found, records=dict(reversed(found.records.items())))
    assert await weights(turned) == learned, "the order in which questions ended does not count"
    mistakes = {vote: sum(lost) for vote, lost in learned.votes.items()}
    assert mistakes["wma"] == 5 < mistakes["majority"] == mistakes["sql_majority"] == 18
    for vote in ("wma", DRAWN_EXPERT):
        assert mistakes[vote] <= (learned.bound(vote) or 0)
    held = [record.vote["weights"] for record in found.records.values() if record.vote]
    assert held == [dict.fromkeys(EXPERTS, 1.0)] * 30, "in the evaluation itself weights are level"

    by_execution = await weights(found, "execution")
    cost = 1 - by_execution.epsilon(1)
    assert by_execution.weights == pytest.approx({"good": 1, "half": cost, "poor": cost})
    assert by_execution.experts == learned.experts, "mistakes are counted by the gold"
    assert by_execution.no_bound("wma") == UNLIKE.format("30 questions")
    assert by_execution.bound(DRAWN_EXPERT) is None

    shown = await votes("replay", folder, "--json", "--orders", "1", "--out", tmp_path / "curves")
    rows = {(r["model"], r["strategy"]): r for r in json.loads(shown.stdout) if r["stopping"] == "never"}
    assert rows["good", "majority"]["ex"] == pytest.approx(0.9)
    assert rows[POOLED, "wma"]["ex"] == pytest.approx(1 - mistakes["wma"] / 30)
    assert "leave out --gold" in (await votes("replay", folder, "--gold", folder)).stderr

    assert (await votes("teach", folder, "--home", home)).exit_code == 0
    ledger = ExpertLedger(home / "experts.json")
    assert ledger.weights(EXPERTS) == pytest.approx(learned.weights)
    assert (ledger.read().feedback, ledger.read().experts["poor"].mistakes) == ({"gold": 30}, 30)


@pytest.mark.usefixtures("shops")
async def test_an_endpoint_that_is_down_is_no_mistake_and_ends_the_bound(tmp_path: Path) -> None:
    experts = {"fine": expert({}), "down": expert({0: DOWN, 1: DOWN}), "third": expert({1: WRONG})}
    found = await evaluated(tmp_path / "run", experts, count=4)
    feedbacks: tuple[Feedback, ...] = ("gold", "execution")
    for learned in [await weights(found, feedback) for feedback in feedbacks]:
        assert learned.weights["down"] == 1.0
        assert learned.punished["down"] == [None, None, 0, 0]
        assert learned.experts["down"] == [1, 1, 0, 0]
    assert (await weights(found)).no_bound("wma") == UNLIKE.format("2 questions")


@pytest.mark.heavy
@pytest.mark.usefixtures("shops")
async def test_of_several_candidates_the_first_of_each_expert_counts(tmp_path: Path) -> None:
    experts = {name: EXPERTS[name] for name in ("good", "half")}
    found = await evaluated(tmp_path / "run", experts, votes=4, count=6)
    assert {len(record.voters) for record in found.records.values()} == {4}
    assert (await weights(found)).no_bound("wma") == ""
    assert source_of_records(found.records, found.places).several


@pytest.mark.usefixtures("shops")
async def test_what_an_evaluation_does_not_say_of_an_expert_teaches_nothing(tmp_path: Path) -> None:
    """Experts that were not asked, earlier rounds, runs that were cleared, and verified answers."""
    folder = tmp_path / "run"
    whole = await weights(await evaluated(folder, EXPERTS, count=6))
    with answer_of(folder, "q01") as answer:
        poor = next(each for each in answer["candidates"] if each["model"] == "poor")
        answer["candidates"].insert(0, {**poor, "id": "first", "model": "good", "superseded": True})
    (found,) = open_evaluations([folder])
    assert await weights(found) == whole, "only candidates of the last vote teach"
    (folder / "runs" / "q02" / "answer.json").unlink()
    shutil.rmtree(folder / "runs" / "q03" / "results")
    with answer_of(folder, "q04") as answer:
        answer["candidates"] = [each for each in answer["candidates"] if each["model"] != "poor"]
    with answer_of(folder, "q05") as answer:
        answer["vote"]["settled"] = "verified"
        answer["candidates"] = [answer["candidates"][0] | {"model": "verified"}]
    source = source_of_records(found.records, found.places)
    assert source.models == sorted(EXPERTS)
    assert (source.unknown, source.learnable) == (["q02", "q03", "q05"], ["q00", "q01"])
    learned = await weights(found)
    assert learned.questions == learned.rounds == 2
    last = found.records["q05"]
    verified = replace(last, vote={**(last.vote or {}), "settled": "verified"})
    assert list(votes_of_records(replace(found, records={"q05": verified}))) == []


@pytest.mark.usefixtures("shops")
async def test_one_expert_has_no_weights(tmp_path: Path) -> None:
    await evaluated(tmp_path / "run", {"good": EXPERTS["good"]}, count=3)
    assert "Of the experts in" in (await votes("teach", tmp_path / "run")).output


# Bounds, whatever experts say: 0 is right, 1 to 3 are wrong, 4 is right and blank, 5 fails, 6 had no
# endpoint, 7 says that the data cannot answer, 8 gives the result of 0 and is wrong even so


def rounds_of(*answers: int) -> st.SearchStrategy[list[list[int]]]:
    """Up to 40 rounds of two to five experts."""
    said = st.sampled_from(answers)
    return st.integers(2, 5).flatmap(
        lambda experts: st.lists(st.lists(said, min_size=experts, max_size=experts), min_size=1, max_size=40)
    )


FAILED = {5: "syntax", 6: "model_unavailable", 7: UNANSWERABLE}


def source(rounds: Sequence[Sequence[int]]) -> Source:
    """Experts who answered so, one candidate each."""
    names = [f"e{number}" for number in range(len(rounds[0]))]

    def ballots(question: str) -> dict[str, RecordedBallots]:
        said = rounds[int(question)]
        cast = [
            Ballot(
                name, name, f"SELECT {answer}", error=FAILED.get(answer, ""), blank=answer == 4,
                fingerprint="" if answer in FAILED else f"{answer % 8}",
            )
            for name, answer in zip(names, said, strict=True)
        ]  # fmt: skip
        right = frozenset(b.candidate for b, answer in zip(cast, said, strict=True) if answer in (0, 4))
        every = RecordedBallots(question, tuple(cast), ResultOverlaps({}), right)
        own = {b.expert: replace(every, ballots=(b,), right=right & {b.candidate}) for b in cast}
        return {**own, POOLED: every}

    asked = [f"{number:03}" for number in range(len(rounds))]
    return Source(names, asked, True, (), asked, False, ballots)


def learned_of(source: Source) -> OnlineWeights:
    return asyncio.run(learn(source))


def test_one_right_and_two_wrong_experts_are_right_in_the_end() -> None:
    learned = learned_of(source([[0, 1, 1]] * 30))
    assert sum(learned.votes["majority"]) == 30
    assert sum(learned.votes["wma"]) == 4  # 2 (1 - e)^3 > 1 > 2 (1 - e)^4, e = sqrt(ln 3 / 30)


@given(rounds_of(0, 1, 2, 3, 5, 7), st.booleans())
def test_votes_stay_within_their_bounds(rounds: list[list[int]], blank: bool) -> None:
    """Where one answer is right, be it blank: nothing that a recipe of the paper does voids the bound."""
    said = [[4 if blank and answer == 0 else answer for answer in each] for each in rounds]
    learned = learned_of(source(said))
    few = len(rounds) < 4 * math.log(len(rounds[0]))
    for vote in ("wma", DRAWN_EXPERT):
        assert learned.no_bound(vote) == (FEW if few else "")
        for each in () if few else learned.bounds(vote):
            assert each.mistakes <= (each.wma if vote == "wma" else each.rwma) + 1e-9
    assert learned.no_bound("majority")
    assert learned.no_bound(DRAWN_ONCE)


@pytest.mark.parametrize("questions", [1, 2, 3, 4, 5, 30])
def test_an_evaluation_s_weights_are_the_papers(questions: int) -> None:
    """An evaluation knows T: every mistake costs 1 - √(ln N / T), however few questions it has."""
    learned = learned_of(source([[0, 1, 5], *[[0, 2, 0]] * (questions - 1)]))
    cost = max(0.0, 1 - math.sqrt(math.log(3) / questions))
    assert learned.weights == pytest.approx({"e0": 1.0, "e1": cost**questions, "e2": cost})


def test_where_t_is_not_known_it_is_the_questions_so_far() -> None:
    several = replace(source([[0, 1, 1]] * 8), several=True)
    learned = learned_of(several)
    assert learned.history[2]["e1"] == 0.5**2, "a mistake costs half at most"
    assert learned.weights["e1"] == pytest.approx((1 - math.sqrt(math.log(3) / 8)) ** 8)
    assert learned.no_bound("wma") == SEVERAL
    known = learned_of(several.as_in_paper())
    assert known.history[2]["e1"] == pytest.approx((1 - math.sqrt(math.log(3) / 8)) ** 2)


@given(rounds_of(*range(9)))
def test_a_bound_is_shown_only_where_it_holds(rounds: list[list[int]]) -> None:
    learned = learned_of(source(rounds))
    for vote in ("wma", DRAWN_EXPERT):
        limit = learned.bound(vote)
        assert limit is None or sum(learned.votes[vote]) <= limit + 1e-9
        if any(6 in said for said in rounds):
            assert limit is None


def test_right_answers_that_differ_end_the_bound_of_wma() -> None:
    blank = learned_of(source([[4, 4, 1]] * 20))
    assert (sum(blank.votes["wma"]), blank.no_bound("wma")) == (0, "")
    learned = learned_of(source([[0, 4, 1]] * 20))
    assert sum(learned.votes["wma"]) == pytest.approx(1 / 3), "a tie of three, of which two are right"
    assert learned.no_bound("wma") == OVERRULED.format("1 question")
    assert learned.no_bound(DRAWN_EXPERT) == ""


def test_the_draws_of_rwma_are_repeatable_and_near_their_expectation() -> None:
    rounds = [[0, 1, 2]] * 200
    learned, again = (learned_of(source(rounds)) for _ in range(2))
    assert learned == again
    assert sum(learned.votes[DRAWN_ONCE]) == pytest.approx(sum(learned.votes[DRAWN_EXPERT]), abs=15)
