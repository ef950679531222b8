"""What stands behind answers: confidence, schema linking, votes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from quorum.evals.reports.calibration import Calibration, RiskPoint
from quorum.evals.reports.format import amount, count, markdown
from quorum.evals.reports.summary import Summary
from quorum.evals.reports.tables import level, mean_cells, table, whole

COVERAGES = (0.25, 0.5, 0.75, 1.0)
"""Where the risk-coverage curve is read off."""


def confidence(summary: Summary) -> Iterator[str]:
    """Whether the confidence says how often answers are right."""
    found = summary.calibration
    yield "### Confidence"
    if found is None:
        yield "Not measurable: no answer is known to be right or wrong."
        return
    yield (
        f"Over {count(found.n, 'answer')} known to be right or wrong: mean confidence "
        f"{found.confidence:.3f}, accuracy {found.accuracy:.3f}."
    )
    yield table(
        ("measure (lower is better)", "here", "for comparison"),
        [
            ("Brier score", f"{found.brier:.3f}", f"{found.brier_base:.3f} if always {found.accuracy:.3f}"),
            ("expected calibration error", f"{found.ece:.3f}", "0 is perfect"),
            (
                "area under the risk-coverage curve",
                f"{found.aurc:.3f}",
                f"{found.aurc_best:.3f} in the best order, {1 - found.accuracy:.3f} in a random one",
            ),
        ],
        right=(1,),
    )
    yield _reliability(found)
    yield _risks(found)


def _reliability(found: Calibration) -> str:
    filled = [each for each in found.bins if each.n]
    return table(
        ("confidence", "answers", "mean confidence", "accuracy"),
        [
            (
                f"{each.low:.1f} – {each.high:.1f}",
                f"{each.n:,}",
                f"{each.confidence:.3f}",
                f"{each.accuracy:.3f}",
            )
            for each in filled
        ],
        right=(1, 2, 3),
    )


def _risks(found: Calibration) -> str:
    points = dict.fromkeys(_at(found.curve, coverage) for coverage in COVERAGES)
    return table(
        ("given only if the confidence is at least", "answers given, %", "of them wrong, %"),
        [(_least(point.threshold), level(point.coverage), level(point.risk)) for point in points],
        right=(0, 1, 2),
    )


def _at(curve: Sequence[RiskPoint], coverage: float) -> RiskPoint:
    return next((point for point in curve if point.coverage >= coverage), curve[-1])


def linking(summary: Summary) -> Iterator[str]:
    """Tables and columns against those of the gold SQL."""
    found = summary.linking
    if found is None:
        return
    yield "### Schema linking"
    yield (
        "Tables and columns that the SQL uses against those of the gold SQL, in "
        f"{count(found.questions, 'question')} with both.{_without_sql(found.without_sql)}"
    )
    rows = [
        ("tables", found.table_recall, found.table_precision, found.table_strict),
        ("columns", found.column_recall, found.column_precision, found.column_strict),
    ]
    yield table(
        ("", "mean recall, %", "s.e.", "n", "mean precision, %", "s.e.", "n", "recall is 100 %, %", "of"),
        [
            (what, *mean_cells(recall), *mean_cells(precision), level(strict.share), f"{strict.n:,}")
            for what, recall, precision, strict in rows
        ],
        right=range(1, 9),
    )


def _without_sql(number: int) -> str:
    if not number:
        return ""
    return f" {count(number, 'question')} without SQL {'is' if number == 1 else 'are'} in no mean."


def votes(summary: Summary) -> Iterator[str]:
    """How candidates voted."""
    found = summary.votes
    if found is None:
        return
    settled = [(f"settled by {markdown(how)}", f"{number:,}") for how, number in found.settled.items()]
    yield "### Votes"
    yield table(
        (f"over {count(found.questions, 'question')} with a vote", ""),
        [
            ("candidates per question, mean", amount(found.candidates.mean)),
            ("candidates that agree with the answer, mean share, %", level(found.agreeing.mean)),
            ("votes that were a tie", f"{found.ties.count:,}"),
            *settled,
            ("candidates that the stopping rule spared, per question", amount(found.saved.mean)),
            ("candidates that the stopping rule spared, in all", whole(found.saved.known_total)),
        ],
        right=(1,),
    )


def _least(threshold: float) -> str:
    """Rounded down, so that who sets it as ``abstain_below`` gets these answers."""
    return f"{math.floor(1000 * threshold) / 1000:.3f}"
