"""Two evaluations held against each other, question by question."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from quorum.evals.folder import EvalFolder, merged
from quorum.evals.records import Asked, Manifest, Record
from quorum.evals.reports.compare_unscored import measures
from quorum.evals.reports.comparison import Comparison, Difference, Flip, Half, Pair, Side
from quorum.evals.reports.costs import COSTS
from quorum.evals.reports.format import gist
from quorum.evals.reports.names import members_of, names
from quorum.evals.reports.paired import bootstrap_interval, mcnemar
from quorum.evals.reports.scores import right, unscorable
from quorum.evals.reports.statistics import share_of
from quorum.knowledge.errors import ConfigurationError


@dataclass(frozen=True)
class Opened:
    """An evaluation that was read, its shards put together.

    Attributes:
        folder: As it was named.
        places: The folder that holds a question's run, by id: ``folder`` itself, or a shard in it.
    """

    folder: Path
    manifest: Manifest
    records: Mapping[str, Record]
    places: Mapping[str, Path]

    @property
    def asked(self) -> dict[str, Asked]:
        return {item.id: item for item in self.manifest.asked}


def open_evaluation(folder: Path) -> Opened:
    """Read an evaluation: its own folder, or one whose subfolders are the shards of one evaluation.

    Raises:
        ConfigurationError: The folder holds no evaluation, a damaged one, or several.
    """
    members = members_of(folder)
    found = list(merged(members))
    if len(found) > 1:
        raise ConfigurationError(
            f"{folder} holds {len(found)} evaluations.",
            hint="Name one of them, or a folder with the shards of one: "
            + ", ".join(path.name for path in members[:5])
            + ".",
        )
    ((manifest, records, _),) = found
    places = {item.id: member for member in members for item in EvalFolder(member).manifest().asked}
    return Opened(folder, manifest, records, places)


def compare(a: Opened, b: Opened) -> Comparison:
    """Compare over the questions that both ask for.

    A question that one of them has not asked yet, or not for want of an endpoint, is left out and counted;
    one whose gold cannot be had (by either's verdict) is left out and listed. A question that was asked and
    has no answer is wrong. Where EX is known in neither, valid SQL and linking are compared.

    Raises:
        ConfigurationError: The suites, their rules or their questions are not the same, or none is shared.
    """
    shared = _shared(a, b)
    lacking = {id for id in shared if any(_lost(half.records.get(id)) for half in (a, b))}
    ended = {id for id in shared if all(_ended(half.records.get(id)) for half in (a, b))}
    compared = [id for id in shared if id in ended - lacking]
    split = {id: (right(a.records.get(id)), right(b.records.get(id))) for id in compared}
    counts = Counter(split.values())
    gained, lost = counts[False, True], counts[True, False]
    low, high = (
        bootstrap_interval([after - before for before, after in split.values()]) if split else (None, None)
    )
    unscored = [id for id in shared if id in ended and a.records[id].match is b.records[id].match is None]
    priced = [id for id in shared if _priced(a.records.get(id)) and _priced(b.records.get(id))]
    name_a, name_b = names([[a.folder], [b.folder]])
    return Comparison(
        suite=a.manifest.suite,
        rules=a.manifest.rules,
        a=_half(a, name_a, shared, [before for before, _ in split.values()]),
        b=_half(b, name_b, shared, [after for _, after in split.values()]),
        shared=len(shared),
        only_a=len(a.asked) - len(shared),
        only_b=len(b.asked) - len(shared),
        unscorable=tuple(id for id in shared if id in lacking),
        both_right=counts[True, True],
        gained=gained,
        lost=lost,
        both_wrong=counts[False, False],
        difference=(gained - lost) / len(compared) if compared else None,
        low=low,
        high=high,
        p_value=mcnemar(gained, lost),
        metrics=tuple(_metric(metric, a, b, compared) for metric in a.manifest.metrics),
        unscored=len(unscored),
        measures=measures(a.records, b.records, unscored),
        costs=tuple(_cost(*cost, a, b, priced) for cost in COSTS),
        priced=len(priced),
        differing=_differing(a.manifest, b.manifest),
        flips=tuple(_flip(id, a, b, split[id][1]) for id in compared if split[id][0] != split[id][1]),
    )


def _shared(a: Opened, b: Opened) -> list[str]:
    """The ids of the questions that both ask for, in A's order.

    Raises:
        ConfigurationError: They cannot be compared.
    """
    for what in ("suite", "rules"):
        left, right = getattr(a.manifest, what), getattr(b.manifest, what)
        if left != right:
            raise ConfigurationError(
                f"The two evaluations have different {'suites' if what == 'suite' else 'rules'}: "
                f"{left!r} and {right!r}.",
                hint="Only answers to the same questions, judged by the same rules, can be compared.",
            )
    theirs = b.asked
    shared = [id for id in a.asked if id in theirs]
    if not shared:
        raise ConfigurationError(
            "The two evaluations have no question in common.", hint="Run both with the same --ids or --limit."
        )
    for id in shared:
        _check_same(id, a, b)
    return shared


def _check_same(id: str, a: Opened, b: Opened) -> None:
    """Raise where an id names two different questions; text, gold and knowledge are told by their digest."""
    if a.asked[id] != b.asked[id]:
        raise ConfigurationError(
            f"Question {id} is not the same in both: its text, gold, knowledge or database differs.",
            hint="Run both on the same edition of the suite.",
        )


def _ended(record: Record | None) -> bool:
    return record is not None and record.finished


def _priced(record: Record | None) -> bool:
    return record is not None and record.finished and bool(record.usage)


def _lost(record: Record | None) -> bool:
    return record is not None and unscorable(record)


def _half(half: Opened, name: str, shared: Sequence[str], verdicts: Sequence[bool]) -> Half:
    options = half.manifest.options
    return Half(
        name=name,
        ex=share_of(verdicts),
        asked=len(half.asked),
        unanswered=sum(not _ended(half.records.get(id)) for id in shared),
        recipe=str(options.get("recipe", "")),
        models=tuple(str(model) for model in options.get("models") or ()),
        shard=half.manifest.shard,
        demonstration=any(record.demonstration for record in half.records.values()),
    )


def _metric(metric: Mapping[str, str], a: Opened, b: Opened, compared: Sequence[str]) -> Pair:
    """Means over the questions where both define the metric; an answer that is not there has 0."""

    def value(record: Record | None) -> float | None:
        if record is None or record.status != "answered" or record.match is None:
            return 0.0
        return record.metrics.get(metric["name"])

    pairs = [(value(a.records.get(id)), value(b.records.get(id))) for id in compared]
    known = [(left, right) for left, right in pairs if left is not None and right is not None]
    left, right = (_mean([pair[side] for pair in known]) for side in (0, 1))
    return Pair(metric["name"], metric["title"], metric.get("unit", "share"), left, right)


def _cost(name: str, title: str, unit: str, a: Opened, b: Opened, priced: Sequence[str]) -> Pair:
    def mean(half: Opened) -> float | None:
        amounts = [half.records[id].usage.get(name, 0) for id in priced]
        return None if None in amounts else _mean([float(amount) for amount in amounts])

    left, right = mean(a), mean(b)
    ratio = right / left if left and right is not None else None
    return Pair(name, title, unit, left, right, ratio)


def _mean(values: Sequence[float]) -> float | None:
    return sum(values) / len(values) if values else None


def _differing(a: Manifest, b: Manifest) -> tuple[Difference, ...]:
    """The options that differ; the version counts as one."""
    left, right = ({"version": manifest.version} | dict(manifest.options) for manifest in (a, b))
    names = dict.fromkeys([*left, *right])
    return tuple(
        Difference(name, left.get(name), right.get(name))
        for name in names
        if left.get(name) != right.get(name)
    )


def _flip(id: str, a: Opened, b: Opened, gained: bool) -> Flip:
    asked, known = a.asked[id], a.records.get(id) or b.records[id]
    return Flip(
        id=id,
        question=known.question,
        database=asked.database,
        difficulty=asked.difficulty,
        change="gained" if gained else "lost",
        a=_side(id, a),
        b=_side(id, b),
    )


def _side(id: str, half: Opened) -> Side:
    record = half.records.get(id)
    if record is None:
        return Side("", "It was not answered.", "", "")
    return Side(record.sql, record.reason or gist(record.message), record.error, _run(half, record))


def _run(half: Opened, record: Record) -> str:
    """The run's folder within the evaluation's; empty where a record names none, or a place outside."""
    run = Path(record.run)
    if not record.run or run.is_absolute() or ".." in run.parts:
        return ""
    return (half.places[record.id] / run).relative_to(half.folder).as_posix()
