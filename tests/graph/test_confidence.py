"""Confidence: what raises it, and what caps it."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.graph.ballots import UNANSWERABLE, Cluster, Vote
from quorum.graph.confidence import BLANK, CHOSEN, LOW, SIGNS, Calibration, confidence, load
from quorum.knowledge.errors import ConfigurationError


def vote(*sizes: int, **more: object) -> Vote:
    """A vote whose clusters have these many candidates."""
    total = sum(sizes)
    clusters = tuple(
        Cluster(
            key=f"k{place}",
            fingerprint=f"k{place}",
            candidates=tuple(f"c{place}.{n}" for n in range(size)),
            experts=("m",),
            weight=float(size),
            share=size / total,
        )
        for place, size in enumerate(sizes)
    )
    made = Vote(clusters[0].candidates[0], clusters, sizes[0] / total, cast=total)
    return replace(made, **more)  # type: ignore[arg-type]


SIZES = st.lists(st.integers(1, 8), min_size=1, max_size=5).map(lambda sizes: sorted(sizes, reverse=True))
CALIBRATIONS = st.builds(
    Calibration, st.floats(-3, 3), *[st.floats(0, 3).map(lambda x, sign=sign: sign * x) for sign in SIGNS]
)


@given(SIZES, CALIBRATIONS, st.sampled_from([None, True, False]))
def test_one_more_that_agrees_never_lowers_and_one_more_that_does_not_never_raises(
    sizes: list[int], calibration: Calibration, approved: bool | None
) -> None:
    first, *others = sizes
    before = confidence(vote(*sizes, approved=approved), calibration=calibration)
    assert 0 <= before <= 1
    assert confidence(vote(first + 1, *others, approved=approved), calibration=calibration) >= before
    if first > 1:
        assert confidence(vote(*sizes, 1, approved=approved), calibration=calibration) <= before


@given(SIZES, CALIBRATIONS)
def test_verdict_and_exploration_move_it_both_ways(sizes: list[int], calibration: Calibration) -> None:
    held = vote(*sizes)
    plain = confidence(held, calibration=calibration)
    by_verdict = [confidence(replace(held, approved=it), calibration=calibration) for it in (False, True)]
    by_finding = [confidence(held, explored=it, calibration=calibration) for it in (False, True)]
    for worse, better in (by_verdict, by_finding):
        assert worse <= plain <= better
        assert worse < plain or held.low
        assert plain < better or held.low or len(sizes) > 1  # a dispute has a ceiling


@given(SIZES, CALIBRATIONS, st.sampled_from([None, True]), st.sampled_from([None, 0.0, 0.5, 1.0]))
def test_a_dispute_is_never_trusted_more_than_unanimity(
    sizes: list[int], calibration: Calibration, approved: bool | None, doubt: float | None
) -> None:
    held = vote(*sizes, 1, approved=approved, doubt=doubt, stopping="beta:0.9")
    agreed = max(2, min(3, sizes[0]))  # the first batch, of one mind
    disputed = confidence(held, explored=approved, calibration=calibration)
    assert disputed < confidence(vote(agreed, doubt=doubt), calibration=calibration)
    all_at_once = vote(*sizes, 1, approved=approved, doubt=doubt, stopping="never")
    of_as_many = vote(max(2, sizes[0]), doubt=doubt)
    trusted = confidence(all_at_once, explored=approved, calibration=calibration)
    assert trusted <= confidence(of_as_many, calibration=calibration)


def test_equal_evidence_gives_equal_confidence_in_every_recipe_and_what_is_open_lowers_it() -> None:
    assert confidence(vote(1, assumed=3)) < confidence(vote(1)) < confidence(vote(1, assumed=0))
    assert confidence(vote(1, doubt=2)) < confidence(vote(1, doubt=1)) == confidence(vote(1))
    assert confidence(vote(1, size=600)) < confidence(vote(1)) < confidence(vote(1, size=20))
    ways = [{"stopping": each, "strategy": way} for each in ("first", "never") for way in ("mbr", "majority")]
    assert len({confidence(vote(1, assumed=1, size=30, **each)) for each in ways}) == 1


def test_the_rules_cap_it() -> None:
    sure = partial(confidence, calibration=Calibration(9.0, 1.0, 1.0, -1.0, -1.0, -1.0))
    assert min(sure(vote(8)), sure(vote(1))) > 0.99
    assert sure(vote(1, cast=3)) == LOW, "the only survivor of three"
    assert sure(vote(8), doubted=True) == sure(vote(4, 4, tie=True)) == LOW
    chosen = vote(4, 4, tie=True, decided="user")
    assert (confidence(chosen), confidence(chosen, doubted=True)) == (CHOSEN, LOW)
    assert sure(vote(8, blank=True, approved=True)) == BLANK
    assert sure(Vote(None, ())) == 0.0


def heads(*names: str) -> dict[str, Any]:
    """Candidates that say that the data cannot answer, and have no vote."""
    return {"unanswerable": names, "excluded": tuple((name, UNANSWERABLE) for name in names)}


def test_that_the_data_cannot_answer_is_trusted_as_an_answer_of_as_many() -> None:
    lacking = Vote(None, (), 0.0, False, "mbr", cast=3, **heads("c1", "c2", "c3"))
    assert confidence(lacking) == confidence(vote(3))
    assert confidence(replace(lacking, cast=5)) < confidence(lacking)
    assert confidence(replace(lacking, cast=1, **heads("c1"))) == LOW < confidence(vote(1))
    disputed = replace(vote(2, stopping="beta:0.9"), cast=8, **heads(*"abcdef"))
    assert disputed.cannot_answer
    for explored in (None, True):
        assert confidence(replace(disputed, approved=explored), explored=explored) < confidence(lacking)


def test_what_ships_is_a_checked_fit_and_tells_strong_votes_from_weak() -> None:
    shipped = load()
    assert shipped.votes > 100
    assert shipped.brier is not None
    assert shipped.base is not None
    assert shipped.brier < shipped.base
    scale = [
        confidence(vote(*sizes, size=250)) for sizes in ([1, *[1] * 7], [2, *[1] * 6], [4, 2, 2], [6, 2], [8])
    ]
    assert scale == sorted(scale)
    assert scale[0] < 0.31 <= scale[2], "answers that are better withheld"
    assert 0.7 < scale[-1] < 0.95


def test_a_calibration_is_kept_and_a_damaged_one_is_said_to_be_so(tmp_path: Path) -> None:
    path = tmp_path / "own.json"
    made = Calibration(-1.0, 0.5, 0.25, 0.0, -0.5, -0.25, votes=10, brier=0.2, base=0.25)
    path.write_text(json.dumps(asdict(made)))
    assert load(path) == made
    (tmp_path / "bad.json").write_text('{"intercept": 1}')
    for name in ("bad.json", "missing.json"):
        with pytest.raises(ConfigurationError, match=name):
            load(tmp_path / name)
