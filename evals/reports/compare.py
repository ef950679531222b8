"""Two evaluations compared, question by question; differences are B minus A."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, TypeAlias

from quorum.evals.records import Record
from quorum.evals.reports.evaluations import Opened, names
from quorum.evals.reports.format import gist
from quorum.evals.reports.frame import (
    COSTS,
    SHARES,
    concerns,
    cost_of,
    costs_known,
    metric_of,
    right,
    unscorable,
)
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
"""Fields of ``quorum.evals.records.Linking``, and their titles."""

STRICT = {"table_recall": "no table of the gold missed", "column_recall": "no column of the gold missed"}


@dataclass(frozen=True)
class Pair:
    """A figure of both evaluations.

    Attributes:
        unit: ``share`` or ``points`` of a metric; of a cost as in ``quorum.evals.reports.frame.COSTS``.
        n: Questions where both have it.
        a, b: Means; None if unknown.
        low, high: 95 % interval of B minus A (paired bootstrap), where it was asked for.
        gained, lost: Questions where only B, or only A, has it; None of what is more than yes or no.
        p_value: Of McNemar's exact test, two-sided; None as ``gained``.
    """

    name: str
    title: str
    unit: str
    n: int
    a: float | None = None
    b: float | None = None
    low: float | None = None
    high: float | None = None
    gained: int | None = None
    lost: int | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Flip:
    """A question that one of the two has right. ``gained``: B has, A has not."""

    change: Literal["gained", "lost"]
    a: Record
    b: Record


@dataclass(frozen=True)
class Comparison:
    """Two evaluations compared.

    Attributes:
        a, b: Under names that tell them apart.
        shared: Questions that both ask for.
        unscorable: Ids of shared questions whose gold is unusable: they are not compared.
        split: Of each question compared, whether A and B are right.
        ex: Over these questions.
        metrics: Means over them where both define the metric; ``ex`` first. After them pass@k, some reading
            right, and EX with one question where both simulated a user.
        unscored: Questions that ended in both with EX known in neither, as over schemas.
        measures: Valid SQL and linking of those; empty without any.
        costs: Means per question, over the ``priced`` questions that ended in both.
        differing: The options that differ, and the version, as ``option``, ``a``, ``b``.
    """

    a: Opened
    b: Opened
    shared: tuple[str, ...]
    unscorable: tuple[str, ...]
    split: dict[str, tuple[bool, bool]]
    ex: Pair
    metrics: tuple[Pair, ...]
    unscored: int
    measures: tuple[Pair, ...]
    costs: tuple[Pair, ...]
    priced: int
    differing: tuple[dict[str, Any], ...]

    @property
    def counts(self) -> dict[str, int]:
        """Return the questions compared, by who has them right."""
        parts = {(True, True): "both_right", (False, True): "gained", (True, False): "lost"}
        found = dict.fromkeys(("both_right", "gained", "lost", "both_wrong"), 0)
        for rights in self.split.values():
            found[parts.get(rights, "both_wrong")] += 1
        return found

    @property
    def difference(self) -> float | None:
        """Return the difference of EX, -1 to 1; None if nothing is compared."""
        counts, compared = self.counts, len(self.split)
        return (counts["gained"] - counts["lost"]) / compared if compared else None

    @property
    def p_value(self) -> float:
        return 1.0 if self.ex.p_value is None else self.ex.p_value

    @property
    def flips(self) -> list[Flip]:
        return [
            Flip("gained" if after else "lost", self.a.records[id], self.b.records[id])
            for id, (before, after) in self.split.items()
            if before != after
        ]

    def only(self, half: Opened) -> int:
        """Return the number of questions that one of the two alone asks for."""
        return len(half.asked) - len(self.shared)

    def waiting(self, half: Opened) -> int:
        """Return the shared questions without a final record (not reached, or no endpoint)."""
        return sum(id not in half.records or not half.records[id].finished for id in self.shared)

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, ready for JSON."""
        return {
            "suite": self.a.manifest.suite,
            "rules": self.a.manifest.rules,
            "a": self._half(self.a, 0),
            "b": self._half(self.b, 1),
            "shared": len(self.shared),
            "only_a": self.only(self.a),
            "only_b": self.only(self.b),
            "unscorable": self.unscorable,
            "compared": len(self.split),
            **self.counts,
            "difference": self.difference,
            "low": self.ex.low,
            "high": self.ex.high,
            "p_value": self.p_value,
            "metrics": list(map(dataclasses.asdict, self.metrics)),
            "unscored": self.unscored,
            "measures": list(map(dataclasses.asdict, self.measures)),
            "costs": list(map(dataclasses.asdict, self.costs)),
            "priced": self.priced,
            "differing": self.differing,
            "flips": [
                {
                    "id": flip.a.id,
                    "question": flip.a.question,
                    "database": flip.a.database,
                    "difficulty": flip.a.difficulty,
                    "change": flip.change,
                    "a": _side(self.a, flip.a),
                    "b": _side(self.b, flip.b),
                }
                for flip in self.flips
            ],
        }

    def _half(self, half: Opened, side: int) -> dict[str, Any]:
        return {
            "name": half.name,
            "ex": dataclasses.asdict(share_of(rights[side] for rights in self.split.values())),
            "asked": len(half.asked),
            "unanswered": self.waiting(half),
            "recipe": half.recipe,
            "models": half.models,
            "shard": half.manifest.shard,
            "demonstration": bool(half.demonstration),
        }


def _side(half: Opened, record: Record) -> dict[str, str]:
    run = half.run_of(record.id)
    place = run.relative_to(half.folder).as_posix() if run else ""
    return {"sql": record.sql, "reason": reason_of(record), "error": record.error, "run": place}


def reason_of(record: Record) -> str:
    """Return why a question is not right, in words."""
    return record.reason or gist(record.message)


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
    unscored = [(one, other) for one, other in ended.values() if one.match is other.match is None]
    priced = [(one, other) for one, other in ended.values() if one.usage and other.usage]
    name_a, name_b = names([[a.folder], [b.folder]])
    return Comparison(
        a=dataclasses.replace(a, name=name_a),
        b=dataclasses.replace(b, name=name_b),
        shared=tuple(shared),
        unscorable=tuple(lacking),
        split=split,
        ex=_measure("ex", "EX", list(split.values()), flags=True),
        metrics=tuple(_metrics(a, compared)),
        unscored=len(unscored),
        measures=tuple(each for each in _measures(unscored) if each.n),
        costs=tuple(
            _pair(name, *COSTS[name], [tuple(_cost(it, name) for it in both) for both in priced])
            for name in costs_known(record for both in priced for record in both)
        ),
        priced=len(priced),
        differing=tuple(_differing(a, b)),
    )


def _shared(a: Opened, b: Opened) -> list[str]:
    """Return the ids of the questions that both ask for, in A's order."""
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
    if other := next((id for id in shared if ours[id] != theirs[id]), ""):  # their parts cover text and gold
        raise ConfigurationError(
            f"Question {other} is not the same in both: its text, gold, knowledge or database differs.",
            hint="Run both on the same edition of the suite.",
        )
    return shared


def _metrics(a: Opened, compared: dict[str, Both]) -> Iterator[Pair]:
    """Yield the scorer's metrics where both define them, then shares. Without an answer a metric is 0."""
    for metric in a.manifest.metrics:
        concerned = [both for id, both in compared.items() if concerns(metric, a.asked[id])]
        known = _known(concerned, partial(_metric, metric["name"]))
        yield _pair(metric["name"], metric["title"], metric.get("unit", "share"), known)
    titles = {"possible": "pass@k", "some_reading": "answer or a reading shown right"}
    if all(any(both[side].asking for both in compared.values()) for side in (0, 1)):
        titles["with_question"] = "EX with one question"
    for name, title in titles.items():
        holds = SHARES[name].holds
        flags = [(float(bool(holds(one))), float(bool(holds(other)))) for one, other in compared.values()]
        yield _pair(name, title, "share", flags)


def _metric(name: str, record: Record, _: Record) -> float | None:
    return metric_of(record, name)


def _pair(name: str, title: str, unit: str, values: Sequence[Sequence[float | None]]) -> Pair:
    left, right = (_mean([pair[side] for pair in values]) for side in (0, 1))
    return Pair(name, title, unit, len(values), left, right)


def _mean(values: Sequence[float | None]) -> float | None:
    """Return the mean; None without values, or if one is unknown."""
    known = [float(value) for value in values if value is not None]
    return sum(known) / len(known) if known and len(known) == len(values) else None


def _cost(record: Record, name: str) -> float | None:
    """Return a cost; 0 where the ledger, as an engine that does not report it, has no such key."""
    return 0.0 if name not in record.usage and name != "tokens_per_call" else cost_of(record, name)


def _measures(unscored: Sequence[Both]) -> Iterator[Pair]:
    """Yield valid SQL over all of them, and linking over those where both sides have the figure.

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
    """Return both sides' values where both have one; ``value`` gets a record and the other side's record."""
    values = ((value(one, other), value(other, one)) for one, other in pairs)
    return [(left, right) for left, right in values if left is not None and right is not None]


def _linking(name: str, record: Record, other: Record) -> float | None:
    if record.linking is not None:
        value: float | None = getattr(record.linking, name)
        return value
    lost = not record.sql and other.linking is not None and name.endswith("recall")
    return 0.0 if lost else None


def _measure(name: str, title: str, pairs: Sequence[tuple[float, float]], *, flags: bool = False) -> Pair:
    """Return a figure with its interval; if the values are true or false (``flags``), with the flips."""
    found = _pair(name, title, "share", pairs)
    if not pairs:
        return found
    low, high = bootstrap_interval([right - left for left, right in pairs])
    found = dataclasses.replace(found, low=low, high=high)
    if not flags:
        return found
    gained, lost = (sum(sign * (right - left) > 0 for left, right in pairs) for sign in (1, -1))
    return dataclasses.replace(found, gained=gained, lost=lost, p_value=mcnemar(gained, lost))


def _differing(a: Opened, b: Opened) -> Iterator[dict[str, Any]]:
    left, right = ({"version": it.manifest.version} | it.manifest.options for it in (a, b))
    for name in dict.fromkeys([*left, *right]):
        if left.get(name) != right.get(name):
            yield {"option": name, "a": left.get(name), "b": right.get(name)}
