"""A comparison in sentences and figures, the same in Markdown and on its page."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from quorum.evals.reports.comparison import Comparison, Half, Measure, Pair
from quorum.evals.reports.format import NONE, amount, count, dollars, percent, points, probability
from quorum.evals.reports.tables import level, size

ALPHA = 0.05
NOTHING = "No question can be compared."
MEASURES = ("", "questions", "A, %", "B, %", "B − A", "95 % interval", "only A", "only B", "p")
"""Columns of the table of measures."""

UNSCORED = (
    "Over the questions that ended in both with EX known in neither; linking over those of them where the "
    "SQL of at least one side could be held against gold SQL. Intervals are paired bootstraps, p is "
    "McNemar's exact test. Without SQL a question is not valid and uses nothing."
)

_LISTED = 10


def result(comparison: Comparison) -> str:
    """The difference with its interval and p-value, in one sentence."""
    if comparison.difference is None or comparison.low is None or comparison.high is None:
        return "EX cannot be compared: it is known in neither." if comparison.measures else NOTHING
    span = f"{points(comparison.low)} to {points(comparison.high)}"
    return (
        f"EX of B minus A: {points(comparison.difference)} percentage points "
        f"(95 % interval {span}, paired bootstrap over {count(comparison.compared, 'question')}); "
        f"McNemar's exact test p {_is(comparison.p_value)}."
    )


def reading(comparison: Comparison) -> str:
    """What that means, in one sentence."""
    if not comparison.gained + comparison.lost:
        if comparison.measures and not comparison.compared:
            return "What is known of the SQL that nothing could execute is compared below."
        if not comparison.compared:
            return "Nothing tells them apart."
        return (
            "No question that is compared tells them apart; an interval without width is the method's, "
            "no proof that they are equal."
        )
    split = f"of {count(comparison.gained + comparison.lost, 'question')} that only one has right, B has "
    split += f"{comparison.gained:,} and A {comparison.lost:,}"
    if comparison.p_value >= ALPHA:
        return f"The difference may be chance: {split}."
    return f"{'B' if comparison.gained > comparison.lost else 'A'} is better: {split}."


def notes(comparison: Comparison) -> Iterator[str]:
    """What a reader must know before trusting the figures, most important first."""
    halves = {"A": comparison.a, "B": comparison.b}
    if shown := [letter for letter, half in halves.items() if half.demonstration]:
        yield (
            f"{' and '.join(shown)} {'hold' if len(shown) > 1 else 'holds'} answers of the rule-based "
            "demonstration model: they say nothing of a language model."
        )
    for letter, half in halves.items():
        if half.unanswered:
            yield (
                f"{letter} has not asked {count(half.unanswered, 'question')} that both ask for yet "
                "(not reached, or no endpoint): they are not compared."
            )
        if shards := _shards_missing(half):
            yield f"{letter} is not whole: {shards}."
    for letter, only in (("A", comparison.only_a), ("B", comparison.only_b)):
        if only:
            yield f"{count(only, 'question')} that only {letter} asks for {_are(only)} left out."
    if lacking := comparison.unscorable:
        more = f" and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
        left_out = f"{count(len(lacking), 'question')} whose gold cannot be had {_are(len(lacking))} left out"
        yield f"{left_out} of EX, for nobody knows who is right: {', '.join(lacking[:_LISTED])}{more}."


def figures(pair: Pair) -> tuple[str, str, str]:
    """A, B and how they stand to each other: a difference of scores, a ratio of costs."""
    shown = {"share": percent, "dollars": dollars, "bytes": size}.get(pair.unit, amount)
    if pair.unit not in ("share", "points"):
        return shown(pair.a), shown(pair.b), NONE if pair.ratio is None else f"×{pair.ratio:.2f}"
    if pair.a is None or pair.b is None:
        return shown(pair.a), shown(pair.b), NONE
    difference = pair.b - pair.a
    return shown(pair.a), shown(pair.b), points(difference) if pair.unit == "share" else f"{difference:+.1f}"


def measured(measure: Measure) -> tuple[str, ...]:
    """A row of the table ``MEASURES``."""
    if measure.a is None or measure.b is None or measure.low is None or measure.high is None:
        return (measure.title, f"{measure.n:,}", *[NONE] * (len(MEASURES) - 2))
    span = f"{points(measure.low)} to {points(measure.high)}"
    flips = (NONE if flips is None else f"{flips:,}" for flips in (measure.lost, measure.gained))
    p_value = NONE if measure.p_value is None else probability(measure.p_value)
    shares = (level(measure.a), level(measure.b), points(measure.b - measure.a), span)
    return (measure.title, f"{measure.n:,}", *shares, *flips, p_value)


def titled(pair: Pair) -> str:
    """Its title, with the unit where the figures do not show it."""
    return pair.title + (", s" if pair.unit == "seconds" else "")


def option(value: Any) -> str:
    """An option's value as one line."""
    if value is None or value == "":
        return NONE
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _is(p: float) -> str:
    shown = probability(p)
    return shown if shown.startswith("<") else f"= {shown}"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _shards_missing(half: Half) -> str:
    """Which shards are not there; empty if all are."""
    found = [shard.partition("/") for shard in half.shard.split(", ")]
    count_ = int(found[0][2])
    missing = sorted(set(range(1, count_ + 1)) - {int(number) for number, _, _ in found})
    return f"shard {', '.join(map(str, missing))} of {count_} is missing" if missing else ""
