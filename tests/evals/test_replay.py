"""Replaying recorded candidates: expectations by hand, weights learned online, curves."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import product
from pathlib import Path

import pytest

from quorum.evals.recorded.candidates import load_candidates, source_of
from quorum.evals.recorded.expected import ReplayedVote, arrivals
from quorum.evals.recorded.replay import STOPPINGS, Replay, ReplayRow, replay
from quorum.evals.scorers.spider2 import load_gold
from quorum.graph.ballots import Rules
from quorum.graph.stopping import find_stopping
from quorum.graph.strategies import STRATEGIES, hold_vote
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import Result, write_candidates, write_gold

Answers = Mapping[str, Sequence[Result]]


async def replayed(tmp_path: Path, *, orders: int = 20, paper: bool = False, **models: Answers) -> Replay:
    """A replay of models whose answers to q1, q2, … should be 1, 2, …"""
    for model, answers in models.items():
        write_candidates(tmp_path / "runs", model, answers)
    known = write_gold(tmp_path / "gold", **{f"q{number}": number for number in range(1, 9)})
    recorded = load_candidates(tmp_path / "runs")
    source = source_of(recorded, load_gold(known))
    return await replay(source.as_in_paper() if paper else source, orders=orders)


def row(found: Replay, strategy: str, stopping: str = "never", model: str = "m") -> ReplayRow:
    (one,) = [r for r in found.rows if (r.model, r.strategy, r.stopping) == (model, strategy, stopping)]
    return one


async def test_ties_and_draws_count_at_their_expectation(tmp_path: Path) -> None:
    found = await replayed(tmp_path, m={"q1": [1, 7, 7, 1], "q2": [2, 7, 8, 8, 8], "q3": [3, 3, 3, 9]})
    majority, drawn = row(found, "majority"), row(found, "random")
    assert majority.ex == pytest.approx((0.5 + 0 + 1) / 3)
    assert majority.ties == pytest.approx(1)
    assert drawn.ex == pytest.approx((0.5 + 0.2 + 0.75) / 3)
    assert drawn.ties == 0
    assert (majority.questions, majority.pass_at_k) == (3, 1.0)
    assert found.learned is None, "a model by itself is one expert"
    assert (row(found, "wma").ex, row(found, "rwma").ex) == (majority.ex, drawn.ex)
    assert majority.samples_mean == pytest.approx(13 / 3)


async def test_every_strategy_without_a_model_meets_every_stopping_rule_once(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="pooled"):
        await replayed(tmp_path / "pool", pooled={"q1": [1]})
    found = await replayed(tmp_path, a={"q1": [1]}, b={"q1": [1]})
    expected = product(("a", "b", "pooled"), STRATEGIES, STOPPINGS)
    assert sorted((r.model, r.strategy, r.stopping) for r in found.rows) == sorted(expected)


async def test_failed_results_are_samples_and_do_not_vote_and_blank_ones_not_in_mbr(tmp_path: Path) -> None:
    found = await replayed(tmp_path, m={"q1": [None, 1, "", 1, 7, "", ""]})
    assert (row(found, "majority").ex, row(found, "mbr").ex) == (0, 1)
    assert row(found, "random").ex == pytest.approx(2 / 6)
    assert row(found, "majority").samples_mean == 7


@pytest.mark.parametrize(("paper", "ex"), [(False, 1), (True, 0)])
async def test_as_in_the_paper_blank_results_vote_too(tmp_path: Path, paper: bool, ex: int) -> None:
    found = await replayed(tmp_path, paper=paper, a={"q1": [""]}, b={"q1": [""]}, c={"q1": [1]})
    assert row(found, "mbr", model="pooled").ex == ex


async def test_all_models_count_all_questions_of_the_folder_and_of_the_gold_none_more(tmp_path: Path) -> None:
    found = await replayed(tmp_path, a={"q1": [1], "q2": [2], "other": [5]}, b={"q1": [1]}, c={"q1": [None]})
    assert row(found, "majority", model="c").ex == 0, "who never answers has rows, too"
    assert found.without_gold == ["other"]
    assert {r.questions for r in found.rows} == {3}
    assert row(found, "majority", model="a").ex == pytest.approx(2 / 3)
    assert row(found, "majority", model="b").ex == pytest.approx(1 / 3)
    assert row(found, "majority", model="b").samples_mean == pytest.approx(1 / 3)
    assert found.learned.questions == 2


async def test_stopping_saves_samples_in_the_mean_over_orders_of_arrival(tmp_path: Path) -> None:
    found = await replayed(tmp_path, m={"q1": [1] * 8})
    asked = {rule: row(found, "majority", rule).samples_mean for rule in STOPPINGS}
    assert asked == pytest.approx({"never": 8, "decided": 5, "beta:0.8": 3, "beta:0.9": 3, "beta:0.95": 5})
    assert [row(found, "majority", rule).ex for rule in STOPPINGS] == pytest.approx([1] * len(STOPPINGS))
    found = await replayed(tmp_path / "a", m={"q1": [1, 1, 1, 7]}, orders=1000)
    # three of the first batch agree in one order of four, and only then is there nothing more to ask
    assert row(found, "majority", "beta:0.9").samples_mean == pytest.approx(3.75, abs=0.05)
    found = await replayed(tmp_path / "b", m={"q1": [1, 7, 7, 7]}, orders=1000)
    assert row(found, "random", "beta:0.9").ex == pytest.approx(0.75 * 0.25, abs=0.02)
    found = await replayed(tmp_path / "c", m={"q1": [1, 1, 1, 1, 1, 7]}, orders=1000)
    # three agree in half of the orders; of five, a draw of the four that agree is enough, else one of six
    assert row(found, "random", "beta:0.8").ex == pytest.approx(0.5 + 0.5 * (4 / 5 + 1 / 5 * 5 / 6), abs=0.01)


async def test_what_a_draw_is_expected_to_give_is_what_many_draws_give(tmp_path: Path) -> None:
    write_candidates(tmp_path, "a", {"q1": [1, 7, 7, None]})
    write_candidates(tmp_path, "b", {"q1": [1, 1, 8, 9, 9, ""]})
    recorded = load_candidates(tmp_path)
    ballots = source_of(recorded, load_gold(write_gold(tmp_path / "gold", q1=1))).ballots("q1")["pooled"]
    assert ballots.right == {"a/0", "b/0", "b/1"}
    for strategy, chance in (("random", 3 / 9), ("rwma", 0.75 / 3 + 0.25 * 2 / 6)):
        rules = Rules({"a": 0.75, "b": 0.25}, seed=0, dialect="sqlite", overlaps=ballots.overlaps)
        outcome = await ReplayedVote(ballots, strategy, rules).outcome(
            find_stopping("never"), [ballots.ballots]
        )
        assert outcome.right == pytest.approx(chance)
        votes = [
            await hold_vote(ballots.ballots, strategy, Rules(rules.weights, seed)) for seed in range(2000)
        ]
        often = sum(vote.winner in ballots.right for vote in votes) / len(votes)
        assert often == pytest.approx(chance, abs=0.04)


def test_experts_take_turns_in_every_order_of_arrival(tmp_path: Path) -> None:
    write_candidates(tmp_path, "a", {"q1": [1, 2, 3]})
    write_candidates(tmp_path, "b", {"q1": [1, 2, 3, 4, 5]})
    ballots = source_of(load_candidates(tmp_path)).ballots("q1")["pooled"].ballots
    orders = arrivals(ballots, "q1", 50)
    assert orders == arrivals(ballots, "q1", 50)
    assert {"".join(ballot.expert for ballot in order) for order in orders} == {"abababbb", "babababb"}
    assert len({tuple(ballot.candidate for ballot in order) for order in orders}) > 30
    assert {frozenset(order) for order in orders} == {frozenset(ballots)}


async def test_pooled_weights_move_to_the_better_model(tmp_path: Path) -> None:
    right = {f"q{number}": [number] for number in range(1, 5)}
    wrong = {f"q{number}": [99] for number in range(1, 5)}
    found = await replayed(tmp_path, bad=wrong, good=right)
    assert row(found, "majority", model="pooled").ex == 0.5
    assert row(found, "wma", model="pooled").ex == pytest.approx((0.5 + 3) / 4)
    assert row(found, "mbr", model="pooled").ex == pytest.approx((0.5 + 3) / 4)
    weights = [(1 - math.sqrt(math.log(2) / 4)) ** rounds for rounds in range(5)]
    assert found.learned.weights == pytest.approx({"good": 1, "bad": weights.pop()})
    assert row(found, "rwma", model="pooled").ex == pytest.approx(sum(1 / (1 + w) for w in weights) / 4)


async def test_half_a_mistake_costs_the_root_and_what_no_gold_knows_costs_nothing(tmp_path: Path) -> None:
    answers: dict[str, Answers] = {"tied": {"q1": [1, 7], "x": [1]}, "right": {"q1": [1, 1], "x": [2]}}
    found = await replayed(tmp_path, **answers)
    assert found.learned.weights == pytest.approx({"right": 1, "tied": 0.5**0.5})  # epsilon is 0.5 at most
    assert found.learned.experts == {"right": [0], "tied": [0.5]}


def test_what_files_say_of_candidates(tmp_path: Path) -> None:
    question = tmp_path / "runs" / "model-x" / "q1"
    question.mkdir(parents=True)
    (tmp_path / "runs" / "model-x" / "q2").mkdir()
    for name, text in {
        "0.sql": "SELECT 1 AS n\n",
        "0.csv": "n\n1\n",
        "2.sql": "SELECT broken",
        "10.csv": "n,code,when,ok\n1.0,NA,2020-01-01,True\n,x,,\n",
        "final.sql": "SELECT 1",
        "final.csv": "m\n1.0\n",
        "3.csv": "",
        "03.csv": "n\n1\n",
        "log.txt": "noise",
    }.items():
        (question / name).write_text(text, encoding="utf-8")
    recorded = load_candidates(tmp_path / "runs")
    zero, two, three, ten, final = recorded["model-x"]["q1"]
    assert None is not zero.table is zero.table  # read once
    assert (two.table, three.table) == (None, None)  # no file, and an empty one
    assert (ten.name, final.final) == ("10", True)
    assert ten.table.to_pylist() == [
        {"n": 1.0, "code": "NA", "when": "2020-01-01", "ok": True},
        {"n": None, "code": "x", "when": None, "ok": None},
    ]
    assert recorded["model-x"]["q2"] == []
    assert source_of(recorded).questions == ["q1", "q2"]
