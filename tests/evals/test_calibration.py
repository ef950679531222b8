"""Calibration by hand, and what holds of all answers."""

from __future__ import annotations

import math
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.reports.calibration import BINS, Calibration, Judged, calibrate

ANSWERS = st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=1, max_size=15)
TIED = st.lists(st.tuples(st.sampled_from([0.2, 0.5, 0.7]), st.booleans()), min_size=1, max_size=5)


def calibrated(answers: list[Judged]) -> Calibration:
    found = calibrate(answers)
    assert found is not None
    return found


def test_by_hand() -> None:
    found = calibrated([(0.9, True), (0.8, False), (0.6, True), (0.2, False)])
    assert (found.n, found.accuracy) == (4, 0.5)
    assert found.confidence == pytest.approx(2.5 / 4)
    assert found.brier == pytest.approx((0.01 + 0.64 + 0.16 + 0.04) / 4)
    assert found.brier_base == 0.25
    assert found.auroc == 3 / 4
    assert found.ece == pytest.approx((0.1 + 0.8 + 0.4 + 0.2) / 4)
    assert [(p.threshold, p.coverage, p.risk) for p in found.curve] == [
        (0.9, 0.25, 0.0),
        (0.8, 0.5, 0.5),
        (0.6, 0.75, pytest.approx(1 / 3)),
        (0.2, 1.0, 0.5),
    ]
    assert found.aurc == pytest.approx((0 + 1 / 2 + 1 / 3 + 1 / 2) / 4)
    assert found.aurc_best == pytest.approx((0 + 0 + 1 / 3 + 1 / 2) / 4)


def test_bins_hold_their_upper_edge_and_the_first_one_zero() -> None:
    found = calibrated([(0.0, False), (0.1, False), (0.3, True), (0.30001, True), (1.0, True)])
    assert [each.n for each in found.bins] == [2, 0, 1, 1, 0, 0, 0, 0, 0, 1]
    first, empty = found.bins[:2]
    assert (first.low, first.high, first.confidence, first.accuracy) == (0.0, 0.1, 0.05, 0.0)
    assert (empty.confidence, empty.accuracy) == (None, None)


def test_a_bin_weighs_as_much_as_its_answers() -> None:
    found = calibrated([(0.75, True), (0.75, True), (0.75, False), (0.25, False)])
    assert found.ece == pytest.approx((3 * abs(0.75 - 2 / 3) + 1 * 0.25) / 4)


def test_perfect_confidence() -> None:
    found = calibrated([(1.0, True), (0.0, False)])
    assert (found.brier, found.ece, found.aurc) == (0.0, 0.0, found.aurc_best)


def test_no_answers_and_confidences_that_are_none() -> None:
    assert calibrate([]) is None
    assert calibrate([(math.nan, True), (1.5, True), (-0.1, False)]) is None
    assert calibrated([(math.nan, False), (0.5, True)]).n == 1


@given(ANSWERS)
def test_every_figure_is_within_its_range(answers: list[Judged]) -> None:
    found = calibrated(answers)
    assert 0 <= found.brier <= 1
    assert 0 <= found.brier_base <= 0.25
    assert 0 <= found.ece <= 1
    assert found.aurc_best - 1e-9 <= found.aurc <= 1
    assert len(found.bins) == BINS
    assert sum(each.n for each in found.bins) == found.n == len(answers)


@given(ANSWERS)
def test_a_risk_coverage_curve_covers_more_and_more_until_all(answers: list[Judged]) -> None:
    curve = calibrated(answers).curve
    coverages = [point.coverage for point in curve]
    thresholds = [point.threshold for point in curve]
    assert coverages == sorted(set(coverages))
    assert thresholds == sorted(set(thresholds), reverse=True)
    assert (coverages[-1], curve[-1].risk) == (1.0, pytest.approx(1 - calibrated(answers).accuracy))
    for point in curve:
        given_out = [right for sure, right in answers if sure >= point.threshold]
        assert point.risk == pytest.approx(given_out.count(False) / len(given_out))


@given(TIED)
def test_the_area_is_the_expectation_over_the_orders_of_ties(answers: list[Judged]) -> None:
    areas = []
    for order in permutations(answers):
        if [sure for sure, _ in order] == sorted((sure for sure, _ in order), reverse=True):
            wrong = [
                sum(not right for _, right in order[:count]) / count for count in range(1, len(order) + 1)
            ]
            areas.append(sum(wrong) / len(wrong))
    assert calibrated(answers).aurc == pytest.approx(sum(areas) / len(areas))


@given(st.lists(st.booleans(), min_size=1))
def test_one_confidence_for_all_is_a_random_order(rights: list[bool]) -> None:
    found = calibrated([(0.5, right) for right in rights])
    assert found.aurc == pytest.approx(1 - found.accuracy)


@given(ANSWERS)
def test_the_base_rate_is_the_best_constant(answers: list[Judged]) -> None:
    accuracy = calibrated(answers).accuracy
    constant = calibrated([(accuracy, right) for _, right in answers])
    assert constant.brier == pytest.approx(constant.brier_base)
