"""How many answers are right: over all questions asked for, and group by group."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from quorum.evals.records import Asked, Record
from quorum.evals.reports.asking import right_with_question
from quorum.evals.reports.statistics import Mean, Share, mean_of, share_of
from quorum.evals.scorers.base import EX

Pair: TypeAlias = tuple[Asked, Record | None]
"""A question asked for and its record, if it has one."""

UNGRADED = "not graded"
GRADES = ("easy", "simple", "medium", "moderate", "hard", "challenging", "extra", "extra hard")
"""Difficulties that benchmarks use, in their order; others follow by name."""

WHY = {
    "missing": "the suite has no gold",
    "fails": "no gold SQL runs",
    "differs": "the gold SQL no longer gives the published result",
    "empty": "the gold SQL returns no row",
    "not_live": "no live database",
}
"""``quorum.evals.scorers.base.GoldState`` in words."""

GROUPS: dict[str, Callable[[Asked], str]] = {
    "difficulty": lambda asked: asked.difficulty or UNGRADED,
    "dialect": lambda asked: asked.dialect,
    "database": lambda asked: asked.database,
    "external knowledge": lambda asked: "with" if asked.external_knowledge else "without",
}


@dataclass(frozen=True)
class MetricScore:
    """A declared metric of the scorer.

    Attributes:
        unit: ``share`` (0 to 1, shown as percent) or ``points`` (0 to 100 and above, shown as it is).
        asked: Over all questions asked for, as ``Score.ex``: what is missing, unanswered or unscorable
            counts as 0. Left out are scored answers for which the metric is not defined.
        answered: Over those answered where the metric is defined.
    """

    name: str
    title: str
    meaning: str
    unit: str
    asked: Mean
    answered: Mean


@dataclass(frozen=True)
class Score:
    """How many answers of a group of questions are right.

    A question is right if it has an answer that meets the gold. A best effort that was withheld, or that
    a limit cut off, is no answer; ``ex_effort`` says what counting it would give.

    Attributes:
        label: The group: ``hard``, ``sqlite``, a database, ``with``; ``all`` for all questions.
        questions: Asked for in this group.
        recorded: Those of them that have a record; the others were not reached yet.
        answered: Those with an answer.
        unscorable: Those with a record whose gold is unusable, so nobody knows whether they are right.
        ex: Execution accuracy over all questions asked for: what is missing, unanswered or unscorable
            counts as wrong. None if nothing was recorded, or nothing of it can be scored.
        ex_answered: Over the questions answered that can be scored.
        ex_sound: Over the questions with a record whose gold is sound; without an answer: wrong.
        ex_effort: As ``ex``, best efforts counted as answers.
        possible: pass@k: some candidate is right; over all questions asked for, None as ``ex``.
        some_reading: The answer, or another reading that it shows with its result, is right; likewise. The
            queries of readings are no candidates, unless they voted.
        with_question: EX with one question to a simulated user; likewise, None where none was simulated.
        metrics: All that the scorer declares besides ``ex``.
    """

    label: str
    questions: int
    recorded: int
    answered: int
    unscorable: int
    ex: Share | None
    ex_answered: Share
    ex_sound: Share
    ex_effort: Share | None
    possible: Share | None
    some_reading: Share | None
    with_question: Share | None
    metrics: tuple[MetricScore, ...] = ()


@dataclass(frozen=True)
class GoldGroup:
    """Questions whose gold is not sound; they count in ``Score.ex`` all the same.

    Attributes:
        state: ``quorum.evals.scorers.base.GoldState``, not ``ok``.
        right: Of ``ids``, as far as they could be scored.
        scored: Of ``ids``, those that could be scored.
    """

    state: str
    ids: tuple[str, ...]
    right: int
    scored: int


def right(record: Record | None) -> bool:
    """Whether a question has an answer that meets the gold; a best effort does not count (``Score``)."""
    return record is not None and record.status == "answered" and record.match is True


def unscorable(record: Record) -> bool:
    """Whether rightness is unknown because the gold is unusable."""
    return record.match is None and record.gold != "ok"


def score(label: str, pairs: Sequence[Pair], metrics: Sequence[Mapping[str, str]]) -> Score:
    """The score of a group of questions.

    Args:
        metrics: As declared in the manifest.
    """
    records = [record for _, record in pairs if record is not None]
    answered = [record for record in records if record.status == "answered"]
    lost = sum(unscorable(record) for record in records)
    measurable = any(record.match is not None for record in records) or (
        not lost and any(record.finished for record in records)
    )

    def over_all(flag: Callable[[Record], bool | None]) -> Share | None:
        """Over all questions asked for."""
        return share_of(bool(record and flag(record)) for _, record in pairs) if measurable else None

    return Score(
        label=label,
        questions=len(pairs),
        recorded=len(records),
        answered=len(answered),
        unscorable=lost,
        ex=over_all(right),
        ex_answered=share_of(right(record) for record in answered if record.match is not None),
        ex_sound=share_of(right(record) for record in records if record.gold == "ok"),
        ex_effort=over_all(lambda record: record.match),
        possible=over_all(lambda record: record.possible),
        some_reading=over_all(lambda record: record.some_reading if record.status == "answered" else False),
        with_question=over_all(right_with_question) if any(record.asking for record in records) else None,
        metrics=tuple(
            MetricScore(
                **{name: metric[name] for name in ("name", "title", "meaning", "unit")},
                asked=mean_of(
                    metric_of(record, metric["name"])
                    for asked, record in pairs
                    if measurable and concerns(metric, asked)
                ),
                answered=mean_of(record.metrics.get(metric["name"]) for record in answered),
            )
            for metric in metrics
            if metric["name"] != EX
        ),
    )


def concerns(metric: Mapping[str, str], asked: Asked) -> bool:
    """Whether a metric of a manifest is defined for a question."""
    only = metric.get("only", "")
    return not only or only in asked.groups.values()


def metric_of(record: Record | None, name: str) -> float | None:
    """A question's value in a metric's mean; None leaves it out."""
    if record is None or record.status != "answered" or record.match is None:
        return 0.0
    return record.metrics.get(name)


def slices(pairs: Sequence[Pair], metrics: Sequence[Mapping[str, str]]) -> dict[str, tuple[Score, ...]]:
    """Scores by difficulty, the suite's own groups, dialect, database and external knowledge, each where it
    tells questions apart."""
    found = {}
    own = dict.fromkeys(name for asked, _ in pairs for name in asked.groups)
    groups = {"difficulty": GROUPS["difficulty"], **{name: _of_group(name) for name in own}, **GROUPS}
    for name, group in groups.items():
        members: dict[str, list[Pair]] = {}
        for pair in pairs:
            members.setdefault(group(pair[0]), []).append(pair)
        if len(members) > 1:
            labels = sorted(members, key=_rank)
            found[name] = tuple(score(label, members[label], metrics) for label in labels)
    return found


def _of_group(name: str) -> Callable[[Asked], str]:
    return lambda asked: asked.groups.get(name, UNGRADED)


def _rank(label: str) -> tuple[int, str]:
    if label == UNGRADED:
        return len(GRADES) + 1, label
    return (GRADES.index(label) if label in GRADES else len(GRADES)), label


def gold_groups(records: Sequence[Record]) -> tuple[GoldGroup, ...]:
    """The questions whose gold is not sound, by state."""
    members: dict[str, list[Record]] = {}
    for record in records:
        if record.gold != "ok":
            members.setdefault(record.gold, []).append(record)
    return tuple(
        GoldGroup(
            state=state,
            ids=tuple(record.id for record in own),
            right=sum(right(record) for record in own),
            scored=sum(record.match is not None for record in own),
        )
        for state, own in sorted(members.items())
    )
