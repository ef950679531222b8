"""The vote of every recipe of a paper is SSEV's Algorithms 1 and 2, or ReFoRCE's majority, as written."""

from __future__ import annotations

import asyncio
import math
from collections import Counter
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.graph.ballots import UNANSWERABLE, Vote
from quorum.graph.confidence import confidence
from quorum.graph.nodes import voting
from quorum.graph.nodes.results import keep_result
from quorum.graph.recipes import RECIPES
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.state import Candidate, Failure, Result, RunState
from quorum.graph.stopping import find_stopping
from quorum.tools.experts import ExpertLedger
from quorum.tools.query import QueryResult
from tests.graph.shop import GOOD, STOP, Run, script, taking_turns, writing, written

PAPERS = ("ssev", "recap", "team", "sqlagent", "reforce")
LACKING, FAILED = "cannot answer", "failed"
TABLES = {"zero": [0], "null": [None], "no rows": [], "one": [1], "two": [2], "three": [3]}

Results = tuple[Path, dict[str, Result]]
"""A run folder, and the results that it holds."""

Said = tuple[str, str]
"""An expert, and what its candidate has: a key of ``TABLES``, ``LACKING`` or ``FAILED``."""


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> Results:
    folder = tmp_path_factory.mktemp("run")

    async def kept() -> dict[str, Result]:
        tables = {name: pa.table({"n": pa.array(values, pa.int64())}) for name, values in TABLES.items()}
        return {name: await keep_result(QueryResult(table, 0.0), folder) for name, table in tables.items()}

    return folder, asyncio.run(kept())


def vote_of(
    recipe: Recipe,
    said: list[Said],
    results: Results,
    *,
    strategy: str = "wma",
    weights: dict[str, float] | None = None,
    seed: int = 0,
) -> Vote:
    """The vote that the recipe holds over candidates ``c0``, ``c1``, …"""
    folder, kept = results
    lacks, fails = Failure(UNANSWERABLE, "Not stored."), Failure("syntax", "No.")
    errors = {LACKING: lacks, FAILED: fails}
    candidates = [
        Candidate(f"c{n}", expert, 0.0, 0, f"SELECT {n}", kept.get(what), errors.get(what))
        for n, (expert, what) in enumerate(said)
    ]
    context: Any = SimpleNamespace(
        recipe=recipe,
        strategy=strategy,
        stopping=find_stopping("never"),
        weights=weights or {},
        dialect="sqlite",
        votes=len(said),
        models=sorted({expert for expert, _ in said}),
        live=True,
        options=SimpleNamespace(seed=seed),
        trace=SimpleNamespace(folder=folder, record=lambda *_, **__: None),
    )
    state = RunState(question="How many?", candidates=candidates, dispatched=len(said))
    vote: Vote = asyncio.run(voting.consensus(state, context))["vote"]
    return vote


def reference(said: list[Said], weights: dict[str, float]) -> set[str]:
    """Algorithm 1: the weight of each unique answer is the sum of its experts' weights; the heaviest wins.

    What failed is no answer. Naive voting is the same with level weights. Of answers that tie any may win.
    """
    total: Counter[str] = Counter()
    for expert, what in said:
        if what != FAILED:
            total[what] += weights[expert]
    most = max(total.values(), default=0.0)
    best = {what for what, weight in total.items() if math.isclose(weight, most, rel_tol=1e-9)}
    return {f"c{n}" for n, (_, what) in enumerate(said) if what in best}


EXPERTS = [f"m{n}" for n in range(6)]
SAID = st.lists(st.sampled_from([*TABLES, "zero", "three", LACKING, LACKING, FAILED]), min_size=1, max_size=6)
WEIGHTS = st.fixed_dictionaries({name: st.floats(1e-6, 1.0) for name in EXPERTS})


@given(recipe=st.sampled_from(PAPERS), said=SAID, weights=WEIGHTS, weighted=st.booleans())
def test_the_winner_is_the_papers(
    results: Results, recipe: str, said: list[str], weights: dict[str, float], weighted: bool
) -> None:
    cast_ = list(zip(EXPERTS, said, strict=False))
    strategy = "wma" if weighted else "majority"
    vote = vote_of(RECIPES[recipe], cast_, results, strategy=strategy, weights=weights)
    winners = reference(cast_, weights if weighted else dict.fromkeys(EXPERTS, 1.0))
    assert (vote.winner in winners) if winners else vote.winner is None
    lacking = vote.winner is not None and cast_[int(vote.winner[1:])][1] == LACKING
    assert vote.cannot_answer == lacking
    assert vote.tie == (len({said[int(name[1:])] for name in winners}) > 1)
    assert 0 <= confidence(vote) <= 1


def test_algorithm_2_draws_an_expert_by_weight_whatever_it_says(results: Results) -> None:
    said = list(zip(EXPERTS, ["zero", LACKING, "three", FAILED], strict=False))
    weights = {"m0": 0.5, "m1": 0.3, "m2": 0.2, "m3": 1.0}
    drawn = Counter(
        vote_of(RECIPES["ssev"], said, results, strategy="rwma", weights=weights, seed=seed).winner
        for seed in range(300)
    )
    assert {name: count / 300 for name, count in drawn.items()} == pytest.approx(
        {"c0": 0.5, "c1": 0.3, "c2": 0.2}, abs=0.07
    )


ZEROS = [("a", "zero"), ("b", "zero"), ("c", "three")]
LACKS = [("a", LACKING), ("b", LACKING), ("c", "one")]
WEAK = {"a": 0.06, "b": 0.06, "c": 1.0}


@pytest.mark.parametrize("name", [*PAPERS, "quorum"])
def test_the_rules_of_quorum_are_switches(name: str, results: Results) -> None:
    strategy, recipe = "mbr" if name == "quorum" else "wma", RECIPES[name]
    for ours in (True, False):
        switched = recipe.switched({"blanks_give_way": ours, "count_heads": ours})
        assert switched == recipe or ours == (name != "quorum"), "the default"
        zeros = vote_of(switched, ZEROS, results, strategy=strategy)
        lacks = vote_of(switched, LACKS, results, strategy=strategy, weights=WEAK)
        assert zeros.winner in (("c2",) if ours else ("c0", "c1"))
        assert lacks.cannot_answer == ours
        assert ours or lacks.winner == "c2"


def test_each_candidate_has_its_experts_weight(results: Results) -> None:
    """With one candidate of each expert this is the paper's sum; a single expert's would tie by it."""
    said = [("a", "one"), ("a", "one"), ("a", "two"), ("b", "two")]
    vote = vote_of(RECIPES["recap"], said, results, weights={"a": 0.5, "b": 0.25})
    assert [cluster.weight for cluster in vote.clusters] == [1.0, 0.75]


ZERO, THREE = "SELECT COUNT(*) AS n FROM orders WHERE id > 99", "SELECT COUNT(*) AS n FROM customers"


def writes(query: str, *, lacks: bool = False) -> dict[str, Any]:
    """A model whose every writer writes this query, or says that the data cannot answer."""
    if not lacks:
        return writing(query)
    missing = {"missing": "Not stored.", "sql": None}
    said = written(query) | missing
    return writing(query, action=STOP | missing, sql_writer=said, gen_agent=said)


@pytest.mark.parametrize("recipe", ["ssev", "recap", "team", "sqlagent"])
@pytest.mark.parametrize("weights", [(1.0, 1.0, 1.0), (1.0, 0.0004, 0.007)])
async def test_a_zero_that_weighs_most_wins(
    run: Run, tmp_path: Path, recipe: str, weights: tuple[float, float, float]
) -> None:
    """Two experts find zero and one three; or the one whose zero it is has almost all the weight."""
    level = len(set(weights)) == 1
    said = {"a": writes(ZERO), "b": writes(ZERO if level else THREE), "c": writes(THREE)}
    weigh(tmp_path, dict(zip(said, weights, strict=True)))
    switches = {"exploration": False} if recipe == "team" else {}
    ran = await run(said, models=list(said), votes=3, recipe=recipe, strategy="wma", switches=switches)
    assert ran.answer.rows == [[0]]
    assert ran.vote.weights == pytest.approx(dict(zip(said, weights, strict=True)), rel=1e-6)


@pytest.mark.parametrize("recipe", ["ssev", "recap", "team", "sqlagent"])
async def test_two_weak_experts_that_find_it_lacking_lose_to_a_strong_ones_answer(
    run: Run, tmp_path: Path, recipe: str
) -> None:
    weak = writes(GOOD, lacks=True)
    said = {"a": weak, "b": weak, "c": writes(GOOD)}
    weigh(tmp_path, {"a": 0.06, "b": 0.06, "c": 1.0})
    given: dict[str, Any] = {"models": list(said), "votes": 3, "recipe": recipe}
    ran = await run(said, **given, strategy="wma")
    assert (ran.answer.status, ran.answer.sql) == ("answered", GOOD)
    plain = await run(said, **given, strategy="majority")
    assert (plain.answer.status, plain.answer.missing) == ("unanswerable", "Not stored.")
    assert plain.vote.winner is None
    assert [cluster.share for cluster in plain.vote.clusters] == pytest.approx([2 / 3, 1 / 3])


async def test_in_reforce_seven_votes_of_eight_for_zero_win(run: Run) -> None:
    said = script(sql_writer=taking_turns(*[ZERO] * 7, "SELECT 1 AS n"))
    ran = await run(said, recipe="reforce", votes=8)
    assert ran.answer.rows == [[0]]
    assert ran.calls()["column_explorer"] == 0


def weigh(tmp_path: Path, weights: dict[str, float]) -> None:
    """Keep the experts' weights for the runs to come."""
    ledger = ExpertLedger(tmp_path / "home" / "experts.json")
    ledger.update(dict.fromkeys(weights, True), feedback="gold")
    book = ledger.read()
    for name, weight in weights.items():
        book.experts[name].weight = weight
    ledger.path.write_text(book.model_dump_json())
