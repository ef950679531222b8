"""Two evaluations compared, question by question."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

from quorum.evals.records import Manifest, Record
from quorum.evals.reports.asking import right_with_question
from quorum.evals.reports.comparison import Comparison, Difference, Flip, Half, Measure, Pair, Side
from quorum.evals.reports.costs import figures, told
from quorum.evals.reports.evaluations import Opened, names
from quorum.evals.reports.format import gist
from quorum.evals.reports.scores import concerns, metric_of, right, unscorable
from quorum.evals.reports.statistics import bootstrap_interval, mcnemar, share_of
from quorum.knowledge.errors import ConfigurationError

Both: TypeAlias = tuple[Record, Record]
"""A question's record in A and in B."""

LINKING = {
    "table_recall": "table recall",
    "table_precision": "table precision",
    "column_recall": "column recall",
    "column_precision": "column precision",
}
"""Fields of ``quorum.evals.records.Linking``, and what tables call them."""

STRICT = {"table_recall": "no table of the gold missed", "column_recall": "no column of the gold missed"}


def compare(a: Opened, b: Opened) -> Comparison:
    """Compare over the questions that both ask for.

    A question that one of them has not asked yet, or not for lack of an endpoint, is left out and counted;
    one whose gold is unusable (by either's verdict) is left out and listed. A question that was asked and has
    no answer is wrong. Where EX is known in neither, valid SQL and linking are compared.

    Raises:
        ConfigurationError: The suites, their rules or their questions are not the same, or none is shared.
    """
    shared = _shared(a, b)
    lacking = [id for id in shared if any(id in it.records and unscorable(it.records[id]) for it in (a, b))]
    recorded = {id: (a.records[id], b.records[id]) for id in shared if id in a.records and id in b.records}
    ended = {id: both for id, both in recorded.items() if both[0].finished and both[1].finished}
    compared = {id: both for id, both in ended.items() if id not in lacking}
    split = {id: (right(one), right(other)) for id, (one, other) in compared.items()}
    ex = _measure("ex", "EX", list(split.values()), flags=True)
    gained, lost = ex.gained or 0, ex.lost or 0
    unscored = [(one, other) for one, other in ended.values() if one.match is other.match is None]
    priced = [(one, other) for one, other in ended.values() if one.usage and other.usage]
    name_a, name_b = names([[a.folder], [b.folder]])
    return Comparison(
        suite=a.manifest.suite,
        rules=a.manifest.rules,
        a=_half(a, name_a, shared, [before for before, _ in split.values()]),
        b=_half(b, name_b, shared, [after for _, after in split.values()]),
        shared=len(shared),
        only_a=len(a.asked) - len(shared),
        only_b=len(b.asked) - len(shared),
        unscorable=tuple(lacking),
        both_right=sum(before and after for before, after in split.values()),
        gained=gained,
        lost=lost,
        both_wrong=sum(not before and not after for before, after in split.values()),
        difference=(gained - lost) / len(compared) if compared else None,
        low=ex.low,
        high=ex.high,
        p_value=mcnemar(gained, lost),
        metrics=(
            *(
                _metric(metric, [both for id, both in compared.items() if concerns(metric, a.asked[id])])
                for metric in a.manifest.metrics
            ),
            *_beside(list(compared.values())),
        ),
        unscored=len(unscored),
        measures=tuple(each for each in _measures(unscored) if each.n),
        costs=tuple(_cost(*cost, priced) for cost in told([figures(it) for both in priced for it in both])),
        priced=len(priced),
        differing=_differing(a.manifest, b.manifest),
        flips=tuple(
            _flip(id, a, b, gained=after) for id, (before, after) in split.items() if before != after
        ),
    )


def _shared(a: Opened, b: Opened) -> list[str]:
    """The ids of the questions that both ask for, in A's order."""
    for what, plural in (("suite", "suites"), ("rules", "rules")):
        left, right = getattr(a.manifest, what), getattr(b.manifest, what)
        if left != right:
            raise ConfigurationError(
                f"The two evaluations have different {plural}: {left!r} and {right!r}.",
                hint="Only answers to the same questions, judged by the same rules, can be compared.",
            )
    ours, theirs = a.asked, b.asked
    shared = [id for id in ours if id in theirs]
    if not shared:
        raise ConfigurationError(
            "The two evaluations have no question in common.", hint="Run both with the same --ids or --limit."
        )
    if other := next((id for id in shared if ours[id] != theirs[id]), ""):  # a digest tells text and gold
        raise ConfigurationError(
            f"Question {other} is not the same in both: its text, gold, knowledge or database differs.",
            hint="Run both on the same edition of the suite.",
        )
    return shared


def _half(half: Opened, name: str, shared: Sequence[str], verdicts: Sequence[bool]) -> Half:
    options, records = half.manifest.options, half.records
    return Half(
        name=name,
        ex=share_of(verdicts),
        asked=len(half.asked),
        unanswered=sum(id not in records or not records[id].finished for id in shared),
        recipe=str(options.get("recipe", "")),
        models=tuple(str(model) for model in options.get("models") or ()),
        shard=half.manifest.shard,
        demonstration=any(record.demonstration for record in records.values()),
    )


def _metric(metric: Mapping[str, str], compared: Sequence[Both]) -> Pair:
    """Means over the questions where both define the metric; an answer that is not there has 0."""
    pairs = _known(compared, lambda record, _: metric_of(record, metric["name"]))
    left, right = (_mean([pair[side] for pair in pairs]) for side in (0, 1))
    return Pair(metric["name"], metric["title"], metric.get("unit", "share"), left, right)


def _beside(compared: Sequence[Both]) -> Iterator[Pair]:
    """What is told beside the scorer's metrics: candidates, readings, and one question to the user."""
    yield _flags("possible", "pass@k", compared, lambda record: record.possible)
    yield _flags(
        "some_reading",
        "answer or a reading shown right",
        compared,
        lambda record: record.some_reading and record.status == "answered",
    )
    if all(any(both[side].asking for both in compared) for side in (0, 1)):
        yield _flags("one_question", "EX with one question", compared, right_with_question)


def _flags(name: str, title: str, compared: Sequence[Both], flag: Callable[[Record], bool | None]) -> Pair:
    left, right = (_mean([float(bool(flag(both[side]))) for both in compared]) for side in (0, 1))
    return Pair(name, title, "share", left, right)


def _cost(name: str, title: str, unit: str, priced: Sequence[Both]) -> Pair:
    left, right = (_mean([figures(both[side]).get(name, 0) for both in priced]) for side in (0, 1))
    return Pair(name, title, unit, left, right, right / left if left and right is not None else None)


def _mean(values: Sequence[float | None]) -> float | None:
    """None without values, or if one is unknown."""
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _measures(unscored: Sequence[Both]) -> Iterator[Measure]:
    """Valid SQL over all of them; linking over those where both sides have the figure.

    A question without SQL is not valid. Where the other side's SQL was compared with gold SQL, it also has a
    recall of 0, and no precision.
    """
    flags = [(bool(one.valid), bool(other.valid)) for one, other in unscored]
    yield _measure("valid", "valid SQL", flags, flags=True)
    linked = {name: _known(unscored, partial(_linking, name)) for name in LINKING}
    for name, title in LINKING.items():
        yield _measure(name, title, linked[name])
    for name, title in STRICT.items():
        whole = [(one >= 1, other >= 1) for one, other in linked[name]]
        yield _measure(f"{name}_strict", title, whole, flags=True)


def _known(
    pairs: Sequence[Both], value: Callable[[Record, Record], float | None]
) -> list[tuple[float, float]]:
    """The values of both sides where both have one; ``value`` gets a record and the other side's record."""
    values = ((value(one, other), value(other, one)) for one, other in pairs)
    return [(left, right) for left, right in values if left is not None and right is not None]


def _linking(name: str, record: Record, other: Record) -> float | None:
    if record.linking is not None:
        value: float | None = getattr(record.linking, name)
        return value
    lost = not record.sql and other.linking is not None and name.endswith("recall")
    return 0.0 if lost else None


def _measure(name: str, title: str, pairs: Sequence[tuple[float, float]], *, flags: bool = False) -> Measure:
    """A measure; where its values are true or false (``flags``), questions flip."""
    if not pairs:
        return Measure(name, title, 0)
    a, b = (sum(pair[side] for pair in pairs) / len(pairs) for side in (0, 1))
    low, high = bootstrap_interval([right - left for left, right in pairs])
    if not flags:
        return Measure(name, title, len(pairs), a, b, low, high)
    gained, lost = (sum(sign * (right - left) > 0 for left, right in pairs) for sign in (1, -1))
    return Measure(name, title, len(pairs), a, b, low, high, gained, lost, mcnemar(gained, lost))


def _differing(a: Manifest, b: Manifest) -> tuple[Difference, ...]:
    """The options that differ; the version counts as one."""
    left, right = ({"version": manifest.version} | dict(manifest.options) for manifest in (a, b))
    named = ((name, left.get(name), right.get(name)) for name in dict.fromkeys([*left, *right]))
    return tuple(Difference(name, one, other) for name, one, other in named if one != other)


def _flip(id: str, a: Opened, b: Opened, *, gained: bool) -> Flip:
    asked = a.asked[id]
    return Flip(
        id=id,
        question=a.records[id].question,
        database=asked.database,
        difficulty=asked.difficulty,
        change="gained" if gained else "lost",
        a=_side(a.records[id], a),
        b=_side(b.records[id], b),
    )


def _side(record: Record, half: Opened) -> Side:
    run = Path(record.run)
    inside = record.run and not run.is_absolute() and ".." not in run.parts
    place = (half.places[record.id] / run).relative_to(half.folder).as_posix() if inside else ""
    return Side(record.sql, record.reason or gist(record.message), record.error, place)
