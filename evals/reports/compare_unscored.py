"""What two evaluations say of each other where EX is known in neither: valid SQL and schema linking."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from quorum.evals.records import Record
from quorum.evals.reports.comparison import Measure
from quorum.evals.reports.paired import bootstrap_interval, mcnemar

LINKING = (
    ("table_recall", "table recall"),
    ("table_precision", "table precision"),
    ("column_recall", "column recall"),
    ("column_precision", "column precision"),
)
"""Fields of ``quorum.evals.records.Linking``, and what tables call them."""

STRICT = (("table_recall", "no table of the gold missed"), ("column_recall", "no column of the gold missed"))


def measures(a: Mapping[str, Record], b: Mapping[str, Record], ids: Sequence[str]) -> tuple[Measure, ...]:
    """Valid SQL over all of ``ids``; linking over those where both sides have the figure.

    A question without SQL is not valid. Where the other side's SQL was held against gold SQL, it also has a
    recall of 0, and no precision.
    """
    pairs = [(a[id], b[id]) for id in ids]
    found = [_flags("valid", "valid SQL", [(bool(one.valid), bool(other.valid)) for one, other in pairs])]
    for name, title in LINKING:
        found.append(_shares(name, title, _linked(pairs, name)))
    for name, title in STRICT:
        whole = [(one >= 1, other >= 1) for one, other in _linked(pairs, name)]
        found.append(_flags(f"{name}_strict", title, whole))
    return tuple(each for each in found if each.n)


def _linked(pairs: Sequence[tuple[Record, Record]], name: str) -> list[tuple[float, float]]:
    values = ((_value(one, other, name), _value(other, one, name)) for one, other in pairs)
    return [(left, right) for left, right in values if left is not None and right is not None]


def _value(record: Record, other: Record, name: str) -> float | None:
    if record.linking is not None:
        value: float | None = getattr(record.linking, name)
        return value
    lost = not record.sql and other.linking is not None and name.endswith("recall")
    return 0.0 if lost else None


def _flags(name: str, title: str, pairs: Sequence[tuple[bool, bool]]) -> Measure:
    """A measure that is true or false, so that questions flip."""
    gained = sum(right and not left for left, right in pairs)
    lost = sum(left and not right for left, right in pairs)
    shares = _shares(name, title, [(float(left), float(right)) for left, right in pairs])
    return replace(shares, gained=gained, lost=lost, p_value=mcnemar(gained, lost))


def _shares(name: str, title: str, pairs: Sequence[tuple[float, float]]) -> Measure:
    if not pairs:
        return Measure(name, title, 0, None, None, None, None)
    a, b = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
    low, high = bootstrap_interval([right - left for left, right in pairs])
    return Measure(name, title, len(pairs), a, b, low, high)
