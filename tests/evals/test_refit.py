"""Refitting the confidence: a fit finds what was put in, and which votes it is made of."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from quorum.evals.recorded.candidates import load_candidates, source_of
from quorum.evals.recorded.refit import KnownVote, fit, refit, votes_of_candidates, votes_of_records
from quorum.evals.records import CandidateRow
from quorum.evals.scorers.spider2 import load_gold
from quorum.graph.confidence import Calibration, features, load, tokens
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import opened, record, write_candidates, write_gold
from tests.quorum.conftest import candidate, made


def test_a_fit_finds_the_odds_that_made_the_outcomes() -> None:
    draw, true = random.Random(4), Calibration(-1.5, 0.8, 1.6, -0.5, -1.0, -0.7, 0.6)
    votes = []
    for number in range(6000):
        first, others = draw.randint(2, 8), draw.randint(0, 6)
        assumed, readings, size = (draw.choice(each) for each in ([0, 1, 2, 3], [0, 1, 2], [20, 60, 200]))
        certainty = draw.choice([None, 0.3, 0.7, 0.9])
        values = features(first, first / (first + others), assumed, readings, size, certainty)
        votes.append(KnownVote(f"q{number}", values, draw.random() < true.probability(values)))
    found = fit(votes)
    assert found.votes == 6000
    for name in ("assumed", "readings", "size", "certainty"):
        assert getattr(found, name) == pytest.approx(getattr(true, name), abs=0.2)
    for vote in votes[:20]:
        assert found.log_odds(vote.features) == pytest.approx(true.log_odds(vote.features), abs=0.25)
    both = refit(votes)
    before, after = both.checks[""]
    assert both.calibration.votes == after.n == 6000
    assert (both.calibration.brier or 1) < (both.calibration.base or 0)
    assert 0.6 < (after.auroc or 0) < 0.9
    assert after.brier <= before.brier + 0.005
    silent = fit([KnownVote(vote.question, features(3, 1.0), vote.right) for vote in votes])
    assert (silent.assumed, silent.certainty) == (
        load().assumed,
        load().certainty,
    )  # nothing said: as it ships
    against = fit([KnownVote(vote.question, vote.features, not vote.right) for vote in votes])
    assert (against.assumed, against.readings, against.size, against.certainty) == (0.0, 0.0, 0.0, 0.0)


def test_each_question_counts_the_same_and_agreement_never_against_an_answer() -> None:
    draws = [KnownVote("often", features(2, 1.0), False)] * 9
    found = fit([*draws, KnownVote("once", features(2, 1.0), True)])
    assert found.probability(features(2, 1.0)) == pytest.approx(0.5, abs=0.01)
    found = fit([KnownVote(f"q{size}", features(size, 1.0), size < 4) for size in range(1, 9)])
    assert (found.agreeing, found.share >= 0) == (0.0, True)


def test_no_question_is_checked_by_a_fit_that_has_seen_it() -> None:
    votes = [KnownVote(id, features(2, 1.0), id == "a") for id in "aaabb"]
    found = refit(votes)
    assert found.calibration.votes == found.checks[""][1].n == 5
    assert found.checks[""][1].brier > 0.9  # each by a fit to the opposite
    with pytest.raises(ConfigurationError, match="two questions"):
        refit(votes[:3])


def test_how_well_right_answers_are_told_is_by_hand_and_by_source() -> None:
    sure, unsure = features(8, 1.0), features(1, 0.2)
    known = [("a", sure, True), ("b", sure, True), ("b", unsure, False), ("c", sure, False)]
    found = refit([KnownVote(*each, source) for source in ("one", "two") for each in known])
    ships = {source: before for source, (before, _) in found.checks.items()}
    assert {source: each.n for source, each in ships.items()} == {"": 8, "one": 4, "two": 4}
    assert [each.auroc for each in ships.values()] == [pytest.approx((1 + 0.5) / 2)] * 3
    assert ships[""].brier_base == 0.25
    alike = refit([KnownVote(id, sure, True) for id in "ab"])
    assert alike.checks[""][1].auroc is None


async def test_of_recorded_candidates_every_number_votes(tmp_path: Path) -> None:
    write_candidates(tmp_path / "runs", "m", {"q1": [1, 1, None], "q2": [None], "other": [5]})
    gold = load_gold(write_gold(tmp_path / "gold", q1=1, q2=2))
    found = await votes_of_candidates(source_of(load_candidates(tmp_path / "runs"), gold))
    assert {vote.question for vote in found} == {"q1"}  # q2 has no winner, of other no gold is known
    assert all(vote.right for vote in found)
    assert max(vote.features for vote in found)[:2] == features(2, 1.0)[:2]
    assert len(found) in (2, 3)  # the failed candidate alone has no winner, where it comes first


def test_of_an_evaluation_the_votes_that_were_kept(tmp_path: Path) -> None:
    rows = tuple(CandidateRow(f"c{n}", "ab"[n % 2], "SELECT 1") for n in range(4))
    clusters = [{"candidates": ["c3"], "share": 0.25}, {"candidates": ["c0", "c1", "c2"], "share": 0.75}]
    vote = {"winner": "c1", "clusters": clusters}
    told = {**vote, "doubt": 1.0, "certainty": 0.9}
    spoke = [candidate(f"c{n}", assumptions=["Paid ones."] * n) for n in range(3)]
    shown = [{"says": "Cheap."}, {"says": "Low."}]
    answer = made({"candidates": spoke, "readings": shown, "readings_tried": 2})
    run = tmp_path / "eval" / "runs" / "doubted"
    records = [
        record("right", candidates=rows, vote=vote),
        record("doubted", candidates=rows, vote=told),
        record("wrong", candidates=rows, vote=vote, match=False),
        record("unknown", candidates=rows, vote=vote, match=None),
        record("single"),
        record("nobody", candidates=rows, vote={"winner": None, "clusters": []}),
    ]
    found = opened(tmp_path / "eval", records)
    run.mkdir(parents=True)
    (run / "answer.json").write_text(answer.model_dump_json())
    values, size = features(3, 0.75, size=tokens(records[0].sql)), tokens(records[0].sql)
    assert list(votes_of_records(found)) == [
        KnownVote("right", values, True, "eval"),
        KnownVote("doubted", features(3, 0.75, 1.0, 2.0, size, 0.9), True, "eval"),
        KnownVote("wrong", values, False, "eval"),
    ]
