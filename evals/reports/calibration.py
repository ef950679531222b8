"""Calibration: does the confidence say how often answers are right?"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from statistics import fmean

BINS = 10

Judged = tuple[float, bool]
"""An answer's confidence, 0 to 1, and whether it is right."""


@dataclass(frozen=True)
class Bin:
    """Answers of one tenth of the confidences: ``low`` < confidence ≤ ``high`` (the first holds 0 too).

    Attributes:
        confidence, accuracy: Means over its ``n`` answers; None of an empty bin.
    """

    low: float
    high: float
    n: int
    confidence: float | None
    accuracy: float | None


@dataclass(frozen=True)
class RiskPoint:
    """Coverage and risk if only answers of at least this confidence are given.

    Attributes:
        threshold: The least confidence of an answer that is given.
        coverage: Share of the answers that are given, above 0.
        risk: Share of wrong ones among those.
    """

    threshold: float
    coverage: float
    risk: float


@dataclass(frozen=True)
class Calibration:
    """Confidence against rightness, over ``n`` answers known to be right or wrong.

    Attributes:
        confidence, accuracy: Means.
        brier: Mean squared distance of confidence and rightness (Brier, 1950), 0 to 1, 0 is perfect.
        auroc: How probably a right answer has more confidence than a wrong one; 0.5 is chance, None where all
            are right or all wrong.
        brier_base: Of one who always says ``accuracy``: a confidence that tells answers apart is below.
        ece: Expected calibration error (Naeini, Cooper and Hauskrecht, 2015): mean distance of a bin's
            confidence and accuracy, weighted by its answers, 0 to 1.
        bins: ``BINS`` of equal width, for a reliability diagram.
        curve: Risk by coverage (El-Yaniv and Wiener, 2010), the surest answers first; answers of the same
            confidence come together.
        aurc: Area under the curve, 0 to 1: mean risk over the coverages 1/n … 1 (Geifman, Uziel and
            El-Yaniv, 2019); where answers share a confidence, the expectation over their orders.
        aurc_best: Of the best order, all right answers first. A random order's is 1 - ``accuracy``.
    """

    n: int
    confidence: float
    accuracy: float
    brier: float
    auroc: float | None
    brier_base: float
    ece: float
    bins: tuple[Bin, ...]
    curve: tuple[RiskPoint, ...]
    aurc: float
    aurc_best: float


def calibrate(answers: Iterable[Judged]) -> Calibration | None:
    """Return the calibration of the confidences; None if no answer has one within 0 to 1."""
    given = [(sure, right) for sure, right in answers if 0 <= sure <= 1]  # NaN is not
    if not given:
        return None
    accuracy = fmean(right for _, right in given)
    bins = tuple(_bin(number, given) for number in range(BINS))
    curve, area = _curve(given)
    return Calibration(
        n=len(given),
        confidence=fmean(sure for sure, _ in given),
        accuracy=accuracy,
        brier=fmean((sure - right) ** 2 for sure, right in given),
        auroc=auroc(given),
        brier_base=accuracy * (1 - accuracy),
        ece=math.fsum(it.n * abs((it.confidence or 0.0) - (it.accuracy or 0.0)) for it in bins) / len(given),
        bins=bins,
        curve=curve,
        aurc=area,
        aurc_best=_curve([(float(right), right) for _, right in given])[1],
    )


def auroc(answers: Sequence[Judged]) -> float | None:
    """Return the area under the receiver operating characteristic (``Calibration.auroc``)."""
    rights, wrongs = ([sure for sure, right in answers if right is kind] for kind in (True, False))
    pairs = [(sure > other) + (sure == other) / 2 for sure in rights for other in wrongs]
    return fmean(pairs) if pairs else None


def _bin(number: int, answers: Sequence[Judged]) -> Bin:
    low, high = number / BINS, (number + 1) / BINS
    own = [(sure, right) for sure, right in answers if sure <= high and (sure > low or number == 0)]
    if not own:
        return Bin(low, high, 0, None, None)
    return Bin(low, high, len(own), fmean(sure for sure, _ in own), fmean(right for _, right in own))


def _curve(answers: Sequence[Judged]) -> tuple[tuple[RiskPoint, ...], float]:
    """Return the risk-coverage curve and its area: the mean of the expected risk at each coverage."""
    points: list[RiskPoint] = []
    risks: list[float] = []
    covered = wrong = 0
    for sure, members in groupby(sorted(answers, reverse=True), key=lambda answer: answer[0]):
        flags = [not right for _, right in members]
        size, errors = len(flags), sum(flags)
        risks += [(wrong + errors * more / size) / (covered + more) for more in range(1, size + 1)]
        covered, wrong = covered + size, wrong + errors
        points.append(RiskPoint(sure, covered / len(answers), wrong / covered))
    return tuple(points), fmean(risks)
