"""The vote: who may vote, what strategies weigh, how ties end, when it is enough, how far it is trusted."""

from __future__ import annotations

import asyncio
import hashlib
import json
import random
from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.graph import strategies
from quorum.graph.ballots import UNANSWERABLE, Ballot, Rules, Vote, rank
from quorum.graph.confidence import BLANK, CHOSEN, LOW, SIGNS, Calibration, confidence, load
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.graph.stopping import find_stopping, lead, next_batch
from quorum.graph.strategies import STRATEGIES, WEIGHTED
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.results.canonical import is_blank
from quorum.tools.results.compare import fingerprint
from quorum.tools.results.files import write_result
from tests.graph.shop import GOOD, OTHER, THIRD, Run, script, sql


def hold_vote(ballots: Iterable[Ballot], strategy: str = "majority", **rules: Any) -> Vote:
    return asyncio.run(strategies.hold_vote(ballots, strategy, Rules(**rules)))


def ballot(candidate: str, fingerprint: str = "", expert: str = "m", **more: object) -> Ballot:
    made = Ballot(candidate, expert, sql=f"SELECT {candidate}", fingerprint=fingerprint)
    return replace(made, **more)  # type: ignore[arg-type]


def test_failed_and_blank_results_do_not_vote() -> None:
    blank = [ballot("b", "empty", blank=True), ballot("c", "empty", blank=True)]
    failed = ballot("a", error="syntax")
    vote = hold_vote([failed, *blank, ballot("d", "y"), ballot("e")], blanks_give_way=True)
    assert (vote.winner, vote.low, vote.blank) == ("d", True, False)
    reasons = {"a": "failed: syntax", "b": "blank result", "c": "blank result", "e": "no result"}
    assert dict(vote.excluded) == reasons
    assert any("Only one candidate" in note for note in vote.notes)
    assert confidence(vote) <= 0.4
    vote = hold_vote([failed, *blank], blanks_give_way=True)
    assert (vote.winner in ("b", "c"), vote.low, vote.blank) == (True, True, True), "there are no others"
    assert dict(vote.excluded) == {"a": "failed: syntax"}
    assert any("empty" in note for note in vote.notes)
    assert confidence(vote) <= BLANK


def test_ties_end_by_approval_then_repairs_and_an_answer_goes_before_none() -> None:
    silent = {"error": UNANSWERABLE, "fingerprint": ""}
    ways: list[tuple[Any, Any]] = [
        ({"approved": True, "repairs": 3}, {"repairs": 0}),
        ({"repairs": 3}, silent),
    ]
    for better, worse in (*ways, ({"repairs": 1}, {"repairs": 2})):
        for good, bad in ("ab", "ba"):
            vote = hold_vote([ballot(bad, **{"fingerprint": bad, **worse}), ballot(good, good, **better)])
            assert (vote.winner, vote.tie, vote.low) == (good, True, True)
            assert "tie" in vote.decision
    vote = hold_vote([ballot(str(n), key, repairs=n) for n, key in enumerate("yxzxzx")])
    assert [cluster.key for cluster in vote.clusters] == ["x", "z", "y"], "the others stand by weight"


def test_the_plainest_of_those_that_agree_stands_for_them() -> None:
    ballots = [
        ballot("long", "x", size=90, named=True),
        ballot("short", "x", size=20),
        ballot("planned", "x", size=30, named=True),
        ballot("repaired", "x", size=5, named=True, repairs=1),
    ]
    for place in range(len(ballots)):
        vote = hold_vote([*ballots[place:], *ballots[:place]])
        assert vote.clusters[0].candidates == ("planned", "long", "short", "repaired")
        assert vote.winner == "planned"


def test_a_tie_between_equals_ends_by_the_sql_alone() -> None:
    ballots = [ballot(name, name) for name in "abcd"]
    renamed = [replace(item, candidate=item.candidate.upper()) for item in ballots[::-1]]
    first, second = hold_vote(ballots), hold_vote(renamed)
    assert second.winner == first.winner.upper()
    orders = [rank(ballot("a", sql=text))[2] for text in ("SELECT 1", " select\n1", "SELECT  1\n", "\ud800")]
    assert orders[0] == orders[2] == hashlib.sha256(b"SELECT 1").hexdigest()
    assert len(set(orders)) == 3, "only white space does not count"


BALLOTS = st.lists(
    st.builds(
        Ballot,
        candidate=st.uuids().map(str),
        expert=st.sampled_from("mno"),
        sql=st.sampled_from(["SELECT 1", "SELECT 2", "select  1", "broken ((", ""]),
        fingerprint=st.sampled_from(["", "x", "y", "z"]),
        blank=st.booleans(),
        error=st.sampled_from(["", "", "syntax", UNANSWERABLE]),
        approved=st.sampled_from([None, True, False]),
        repairs=st.integers(0, 3),
    ),
    max_size=8,
    unique_by=lambda item: item.candidate,
)


@given(BALLOTS, st.sampled_from(sorted(STRATEGIES)), st.randoms(use_true_random=False))
def test_no_strategy_depends_on_the_order_of_arrival(
    ballots: list[Ballot], strategy: str, draw: random.Random
) -> None:
    shuffled = draw.sample(ballots, len(ballots))
    overlaps = ResultOverlaps(dict(zip("xyz", map(pa.table, (BASE, WIDER, OTHER_FIGURES)), strict=True)))
    rules = {"weights": {"m": 0.5}, "dialect": "sqlite", "overlaps": overlaps}
    vote = hold_vote(ballots, strategy, **rules)
    assert hold_vote(shuffled, strategy, **rules) == vote
    assert sum(cluster.share for cluster in vote.clusters) == pytest.approx(1 if vote.winner else 0)
    assert {name for cluster in vote.clusters for name in cluster.candidates}.isdisjoint(dict(vote.excluded))
    assert 0 <= confidence(vote) <= 1
    assert vote.tie == bool(vote.tied)
    assert list(vote.tied) == [cluster.key for cluster in vote.clusters][: len(vote.tied)]
    voting = [each for each in ballots if (each.fingerprint and not each.error) or each.error == UNANSWERABLE]
    assert (vote.winner is None) == (not voting)
    assert vote.cannot_answer == (vote.winner in vote.unanswerable)
    assert (vote.seed is not None) == bool(voting and strategy in ("random", "rwma"))
    if vote.seed is not None:  # a draw can be repeated
        assert hold_vote(ballots, strategy, seed=vote.seed, **rules).winner == vote.winner


def test_sql_majority_counts_texts_not_results() -> None:
    ballots = [
        ballot("a", "x", sql="SELECT a FROM t -- one"),
        ballot("b", "y", sql="select  a\nfrom t;"),
        ballot("c", "x", sql="SELECT b FROM t"),
        ballot("d", "z", sql="SELECT c FROM t"),
    ]
    vote = hold_vote(ballots, "sql_majority", dialect="sqlite")
    assert vote.winner in ("a", "b")
    assert vote.share == 0.5
    assert hold_vote(ballots).winner in ("a", "c")


def test_what_a_strategy_lacks_is_named() -> None:
    known = r"'best'.*majority, sql_majority, wma, rwma, mbr, random"
    for strategy, lacks in (("sql_majority", "dialect"), ("mbr", "mbr"), ("best", known)):
        with pytest.raises(ConfigurationError, match=lacks):
            hold_vote([ballot("a", "x")], strategy)


# Minimum Bayes risk over real results.


Columns = dict[str, list[Any]]
NAMES = ["Ada", "Bo", "Cy"]
BASE: Columns = {"name": NAMES, "total": [3, 2, 1]}
WIDER: Columns = {"who": NAMES, "n": [3.0, 2.0, 1.0], "city": ["x", "y", "z"]}
OTHER_FIGURES: Columns = {"name": NAMES, "total": [30, 20, 10]}


def vote(results: Sequence[Columns], strategy: str = "mbr", experts: str = "", **rules: Any) -> Vote:
    """A vote of candidates ``c0``, ``c1``, … with these results."""
    tables = [pa.table(result) for result in results]
    overlaps = ResultOverlaps({fingerprint(table): table for table in tables})
    ballots = []
    for n, (table, expert) in enumerate(zip(tables, experts or "m" * len(tables), strict=False)):
        mark = fingerprint(table)
        about: dict[str, Any] = {"blank": is_blank(table), "cluster": overlaps.clusters[mark]}
        ballots.append(Ballot(f"c{n}", expert, f"SELECT {n}", mark, **about))
    return hold_vote(ballots, strategy, overlaps=overlaps, **rules)


SUMMED: Columns = {**BASE, "sum": [6, 6, 6]}
NEAR: Columns = {"name": NAMES, "total": [3, 2, 9], "city": ["x", "y", "z"]}
EXTRA: list[Columns] = [BASE, WIDER, OTHER_FIGURES, OTHER_FIGURES, {"total": [1, 2, 3]}]


def test_results_that_differ_in_an_extra_column_support_each_other(subtests: pytest.Subtests) -> None:
    """The form that most have stands for them, so no column is shown that one candidate alone thought of."""
    assert vote(EXTRA, "majority").winner in ("c2", "c3")
    exactly, near = vote([BASE] * 5 + [NEAR] * 4).clusters
    assert exactly.weight < near.weight, "it is near the first in most, and has more to show"
    given: list[tuple[list[Columns], dict[str, Any], str, list[str]]] = [
        (EXTRA, {}, "1", ["014", "23"]),
        ([BASE, WIDER, OTHER_FIGURES], {}, "1", ["01", "2"]),  # of equals the wider
        ([BASE, BASE, SUMMED], {}, "01", ["012"]),
        ([BASE, SUMMED] * 2, {}, "13", ["0123"]),  # as many lack a column as do not
        ([BASE, BASE, SUMMED], {"experts": "AAB", "weights": {"A": 0.4}}, "2", ["012"]),
        ([BASE, OTHER_FIGURES, OTHER_FIGURES], {"experts": "ABB"}, "12", ["12", "0"]),
        ([BASE, *[OTHER_FIGURES] * 2], {"experts": "ABB", "weights": {"B": 0.3}}, "0", ["0", "12"]),
        ([BASE] * 5 + [NEAR] * 4, {}, "01234", ["01234", "5678"]),  # what more than half say exactly
        ([BASE] * 4 + [NEAR] * 4, {}, "4567", ["4567", "0123"]),
    ]
    for results, how, winners, groups in given:
        with subtests.test(groups=groups):
            held = vote(results, **how)
            assert ["".join(sorted(name[1:] for name in each.candidates)) for each in held.clusters] == groups
            assert (held.winner[1:] in winners, held.tie) == (True, False)
            assert held.clusters[0].candidates[0] == held.winner
            assert sum(cluster.share for cluster in held.clusters) == pytest.approx(1)


CELLS = st.sampled_from([0, 1, 2.5, "a", "b", None])


@st.composite
def results(draw: st.DrawFn) -> list[Columns]:
    """Results that often share columns and rows."""
    rows = draw(st.integers(1, 3))
    column = st.lists(CELLS.map(str), min_size=rows, max_size=rows)
    pool = draw(st.lists(column, min_size=1, max_size=4))
    picked = st.lists(st.sampled_from(range(len(pool))), min_size=1, max_size=3)
    return [
        {f"c{place}": pool[index] for place, index in enumerate(picks)}
        for picks in draw(st.lists(picked, min_size=1, max_size=6))
    ]


@pytest.mark.heavy
@settings(max_examples=150)
@given(results(), st.integers(0, 5), st.integers(0, 4), st.sampled_from(list(STRATEGIES)), st.data())
def test_what_is_decided_stays_decided(
    made: list[Columns], same: int, more: int, strategy: str, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(made)))
    now, later = [*made[:cut], *[made[0]] * same], [*made[cut:], *[made[-1]] * more]
    experts = "".join(data.draw(st.sampled_from("AB")) for _ in (*now, *later))
    rules: dict[str, Any] = {"weights": {"A": 1.0, "B": 0.4}, "dialect": "sqlite"}
    weighs = rules["weights"] if strategy in WEIGHTED else {}
    held = vote(now, strategy, experts, **rules)
    if find_stopping("decided").enough(held, [weighs.get(name, 1.0) for name in experts[len(now) :]]):
        after = vote([*now, *later], strategy, experts, **rules)
        assert after.winning.fingerprint == held.winning.fingerprint


def test_evidence_reads_files_as_it_reads_tables(tmp_path: Path) -> None:
    made = [pa.table(BASE), pa.table(WIDER), pa.table({"name": NAMES, "total": [3.001, 2, 1]})]
    tables = {fingerprint(table): table for table in made}
    from_files = ResultOverlaps({mark: write_result(tables[mark], tmp_path) for mark in tables})
    in_memory = ResultOverlaps(tables)
    assert from_files.clusters == in_memory.clusters
    assert len(set(from_files.clusters.values())) == 2  # 3 and 3.001 vote for the same
    one, other = (Ballot(mark, "m", "", mark) for mark in list(tables)[:2])
    found = asyncio.run(from_files.overlap(one, other))
    assert found == asyncio.run(in_memory.overlap(one, other))
    assert found.relation == "within"
    assert asyncio.run(from_files.overlap(other, one)) == found.reversed
    assert ResultOverlaps({}).clusters == {}


# Stopping rules: when the rest cannot change the winner, when the posterior suffices.


def chosen(*choices: str, weights: dict[str, float] | None = None) -> Vote:
    """A vote in which candidate i, of its own expert, chose ``choices[i]``."""
    ballots = [ballot(f"c{i}", choice, f"e{i}") for i, choice in enumerate(choices)]
    return hold_vote(ballots, "wma" if weights else "majority", weights=weights or {})


def test_decided_stops_only_when_the_rest_cannot_change_the_winner() -> None:
    rule = find_stopping("decided")
    for choices, spared in (("xxx", 2), ("xxy", 0), ("xx", 1), ("xy", 0)):
        held = chosen(*choices)
        assert [rule.enough(held, [1.0] * more) for more in (spared, spared + 1)] == [True, False], choices
    held = chosen("x", "y", weights={"e0": 1.0, "e1": 0.2})
    assert rule.enough(held, [0.5])
    assert not rule.enough(held, [0.5, 0.4])
    for strategy in ("random", "rwma"):
        held = hold_vote([ballot(f"c{i}", "x") for i in range(9)], strategy)
        assert [rule.enough(held, rest) for rest in ([1.0], [])] == [False, True], "it may be drawn"


@pytest.mark.parametrize(("first", "second"), [(3, 0), (2, 1), (5, 2), (0, 0), (8, 8)])
def test_the_posterior_is_the_beta_distributions(first: int, second: int) -> None:
    draw = random.Random(first * 31 + second)
    drawn = [draw.betavariate(first + 1, second + 1) > 0.5 for _ in range(40_000)]
    assert lead(first, second) == pytest.approx(sum(drawn) / len(drawn), abs=0.01)


@pytest.mark.parametrize("rule", ["decided", "beta:0.9"])
def test_a_tie_blank_results_and_no_result_are_never_enough(rule: str) -> None:
    """But five blank ones for a posterior: one with values would outvote them all."""

    def of(count: int, **about: Any) -> Vote:
        return hold_vote([ballot(f"c{i}", **about) for i in range(count)], blanks_give_way=True)

    for held in (chosen("x", "y"), of(4, fingerprint="f", blank=True), of(1, error="syntax")):
        assert not find_stopping(rule).enough(held, [0.0])
        assert find_stopping(rule).enough(held, [])
    assert find_stopping(rule).enough(of(5, fingerprint="f", blank=True), [1.0]) is (rule != "decided")


def test_an_unknown_rule_is_named() -> None:
    for name in ("", "always", "beta", "beta:", "beta:0.5", "beta:1", "beta:nan", "gamma:0.9"):
        with pytest.raises(ConfigurationError, match="No stopping rule") as failure:
            find_stopping(name)
        assert "beta:P" in (failure.value.hint or "")


@given(st.integers(1, 30), st.integers(1, 6))
def test_waves_add_up(votes: int, experts: int) -> None:
    sizes: list[int] = []
    while sum(sizes) < votes:
        sizes.append(next_batch(sum(sizes), votes, find_stopping("decided"), experts))
        assert sizes[-1] > 0
    assert sum(sizes) == votes
    assert sizes[0] == min(votes, max(3, experts))
    assert next_batch(0, votes, find_stopping("never")) == votes
    rule = find_stopping("beta:0.9")
    assert [next_batch(asked, 8, rule) for asked in (0, 3, 4, 5, 7)] == [3, 2, 1, 2, 1]


# Whole runs: the vote is held after each batch.

DISPUTED = {"action/c2": sql(OTHER), "action/c3": sql(THIRD), "action/c4": sql(OTHER)}
FAILING = {f"action/c{number}": "no json" for number in (1, 2, 3)}


async def test_agreement_ends_the_sampling(run: Run, subtests: pytest.Subtests) -> None:
    for said, stopping, cast, votes in (
        ({}, "never", 8, 1),
        ({}, "beta:0.9", 3, 1),
        ({}, "decided", 5, 2),
        ({}, "beta:0.99", 7, 3),
        (DISPUTED, "beta:0.9", 8, 4),
        (FAILING, "beta:0.9", 7, 3),
    ):
        with subtests.test(said=said):
            ran = await run(script() | said, votes=8, stopping=stopping)
            assert ran.answer.sql == GOOD
            asked = {candidate.id for candidate in ran.answer.candidates}
            assert (len(asked), len(ran.of("vote"))) == (cast, votes)
            assert (ran.vote.stopping, ran.vote.saved) == (stopping, 8 - cast)


# Confidence: what raises it, and what caps it.


def sized(*sizes: int, **more: object) -> Vote:
    """A vote whose clusters have these many candidates."""
    names = [(f"c{place}.{n}", f"k{place}") for place, size in enumerate(sizes) for n in range(size)]
    return replace(hold_vote([ballot(name, key) for name, key in names]), **more)  # type: ignore[arg-type]


SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=5).map(lambda sizes: sorted(sizes, reverse=True))
CALIBRATIONS = st.builds(
    Calibration, st.floats(-3, 3), *[st.floats(0, 3).map(lambda x, sign=sign: sign * x) for sign in SIGNS]
)


@given(SIZES, CALIBRATIONS, st.sampled_from([None, True, False]))
def test_one_more_that_agrees_never_lowers_and_one_more_that_does_not_never_raises(
    sizes: list[int], calibration: Calibration, approved: bool | None
) -> None:
    first, *others = sizes
    before = confidence(sized(*sizes, approved=approved), calibration=calibration)
    assert 0 <= before <= 1
    assert confidence(sized(first + 1, *others, approved=approved), calibration=calibration) >= before
    if first > 1:
        assert confidence(sized(*sizes, 1, approved=approved), calibration=calibration) <= before


@given(SIZES, CALIBRATIONS)
def test_verdict_and_exploration_move_it_both_ways(sizes: list[int], calibration: Calibration) -> None:
    held = sized(*sizes)
    plain = confidence(held, calibration=calibration)
    by_verdict = [confidence(replace(held, approved=it), calibration=calibration) for it in (False, True)]
    by_finding = [confidence(held, confirmed=it, calibration=calibration) for it in (False, True)]
    for worse, better in (by_verdict, by_finding):
        assert worse <= plain <= better
        assert worse < plain or held.low
        assert plain < better or held.low or len(sizes) > 1  # a dispute has a ceiling


@given(SIZES, CALIBRATIONS, st.sampled_from([None, True]), st.sampled_from([None, 0.0, 0.5, 1.0]))
def test_a_dispute_is_never_trusted_more_than_unanimity(
    sizes: list[int], calibration: Calibration, approved: bool | None, doubt: float | None
) -> None:
    held = sized(*sizes, 1, approved=approved, doubt=doubt, stopping="beta:0.9")
    agreed = max(2, min(3, sizes[0]))  # the first batch, of one mind
    disputed = confidence(held, confirmed=approved, calibration=calibration)
    assert disputed < confidence(sized(agreed, doubt=doubt), calibration=calibration)
    all_at_once = sized(*sizes, 1, approved=approved, doubt=doubt, stopping="never")
    of_as_many = sized(max(2, sizes[0]), doubt=doubt)
    trusted = confidence(all_at_once, confirmed=approved, calibration=calibration)
    assert trusted <= confidence(of_as_many, calibration=calibration)


def test_equal_evidence_gives_equal_confidence_in_every_recipe_and_what_is_open_lowers_it() -> None:
    assert confidence(sized(1, assumed=3)) < confidence(sized(1)) < confidence(sized(1, assumed=0))
    assert confidence(sized(1, doubt=2)) < confidence(sized(1, doubt=1)) == confidence(sized(1))
    assert confidence(sized(1, size=600)) < confidence(sized(1)) < confidence(sized(1, size=20))
    for split in (sized(1, *[1] * 7, size=40), sized(3, 1, size=40), sized(7, 1, size=40)):
        assert confidence(replace(split, certainty=0.99)) <= confidence(split)
        assert confidence(replace(split, certainty=0.1)) < confidence(split)
    told = [confidence(sized(1, size=600, certainty=certainty)) for certainty in (0.3, 0.8, 0.95)]
    assert told == sorted(set(told))
    assert told[1] == confidence(sized(1, size=20, certainty=0.8))  # it has taken the length into account
    ways = [{"stopping": each, "strategy": way} for each in ("first", "never") for way in ("mbr", "majority")]
    assert len({confidence(sized(1, assumed=1, size=30, certainty=0.9, **each)) for each in ways}) == 1


def test_the_rules_cap_it() -> None:
    sure = partial(confidence, calibration=Calibration(9.0, 1.0, 1.0, -1.0, -1.0, -1.0, 1.0))
    assert min(sure(sized(8)), sure(sized(1))) > 0.99
    assert sure(sized(1, cast=3)) == LOW, "the only survivor of three"
    assert sure(sized(8), doubted=True) == sure(sized(4, 4, tie=True)) == LOW
    chosen = sized(4, 4, tie=True, decided="user")
    assert (confidence(chosen), confidence(chosen, doubted=True)) == (CHOSEN, LOW)
    assert sure(sized(8, blank=True, approved=True)) == BLANK
    assert sure(Vote(None, ())) == 0.0


def heads(*names: str) -> dict[str, Any]:
    """Candidates that say that the data cannot answer, and have no vote."""
    return {"unanswerable": names, "excluded": tuple((name, UNANSWERABLE) for name in names)}


def test_that_the_data_cannot_answer_is_trusted_as_an_answer_of_as_many() -> None:
    lacking = Vote(None, (), 0.0, False, "mbr", cast=3, **heads("c1", "c2", "c3"))
    assert confidence(lacking) == confidence(sized(3))
    assert confidence(replace(lacking, cast=5)) < confidence(lacking)
    assert confidence(replace(lacking, cast=1, **heads("c1"))) == LOW < confidence(sized(1))
    disputed = replace(sized(2, stopping="beta:0.9"), cast=8, **heads(*"abcdef"))
    assert disputed.cannot_answer
    for confirmed in (None, True):
        assert confidence(replace(disputed, approved=confirmed), confirmed=confirmed) < confidence(lacking)


def test_what_ships_is_a_checked_fit_and_tells_strong_votes_from_weak() -> None:
    shipped = load()
    assert shipped.votes > 100
    assert shipped.brier < shipped.base
    scale = [
        confidence(sized(*sizes, size=250))
        for sizes in ([1, *[1] * 7], [2, *[1] * 6], [4, 2, 2], [6, 2], [8])
    ]
    assert scale == sorted(scale)
    assert scale[0] < 0.33 <= scale[2], "answers that are better withheld"
    assert 0.7 < scale[-1] < 0.95


def test_a_calibration_is_kept_and_a_damaged_one_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    made = Calibration(-1.0, 0.5, 0.25, 0.0, -0.5, -0.25, 0.5, votes=10, brier=0.2, base=0.25)
    path.write_text(json.dumps(asdict(made)))
    assert load(path) == made
    (tmp_path / "bad.json").write_text('{"intercept": 1}')
    for name in ("bad.json", "missing.json"):
        with pytest.raises(ConfigurationError, match=name):
            load(tmp_path / name)
