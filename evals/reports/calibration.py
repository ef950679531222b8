"""Calibration: does the confidence say how often answers are right?"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
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
        confidence, accuracy: Means over its ``n`` answers.
    """

    low: float
    high: float
    n: int
    confidence: float
    accuracy: float


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
        bins: Those of ``BINS`` of equal width that have answers, for a reliability diagram.
        curve: Risk by coverage (El-Yaniv and Wiener, 2010), the surest answers first; answers of the same
            confidence come together.
    """

    n: int
    confidence: float
    accuracy: float
    brier: float
    auroc: float | None
    brier_base: float
    bins: tuple[Bin, ...]
    curve: tuple[RiskPoint, ...]


def calibrate(answers: Iterable[Judged]) -> Calibration | None:
    """Return the calibration of the confidences; None if no answer has one within 0 to 1."""
    given = [(sure, right) for sure, right in answers if 0 <= sure <= 1]  # NaN is not
    if not given:
        return None
    accuracy = fmean(right for _, right in given)
    return Calibration(
        n=len(given),
        confidence=fmean(sure for sure, _ in given),
        accuracy=accuracy,
        brier=fmean((sure - right) ** 2 for sure, right in given),
        auroc=auroc(given),
        brier_base=accuracy * (1 - accuracy),
        bins=tuple(_bins(given)),
        curve=tuple(_curve(given)),
    )


def auroc(answers: Sequence[Judged]) -> float | None:
    """Return the area under the receiver operating characteristic (``Calibration.auroc``)."""
    rights, wrongs = ([sure for sure, right in answers if right is kind] for kind in (True, False))
    pairs = [(sure > other) + (sure == other) / 2 for sure in rights for other in wrongs]
    return fmean(pairs) if pairs else None


def _bins(answers: Sequence[Judged]) -> Iterator[Bin]:
    for number in range(BINS):
        low, high = number / BINS, (number + 1) / BINS
        own = [(sure, right) for sure, right in answers if sure <= high and (sure > low or number == 0)]
        if own:
            yield Bin(low, high, len(own), fmean(sure for sure, _ in own), fmean(right for _, right in own))


def _curve(answers: Sequence[Judged]) -> Iterator[RiskPoint]:
    covered = wrong = 0
    for sure, members in groupby(sorted(answers, reverse=True), key=lambda answer: answer[0]):
        flags = [not right for _, right in members]
        covered, wrong = covered + len(flags), wrong + sum(flags)
        yield RiskPoint(sure, covered / len(answers), wrong / covered)
