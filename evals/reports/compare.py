"""Two evaluations compared, question by question; differences are B minus A."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from quorum.evals.records import Record
from quorum.evals.reports.evaluations import Opened, names
from quorum.evals.reports.format import (
    NONE,
    amount,
    count,
    dollars,
    gist,
    listed,
    markdown,
    percent,
    points,
    probability,
    size,
    table,
)  # fmt: skip
from quorum.evals.reports.frame import Figure, right, unscorable
from quorum.evals.reports.statistics import bootstrap_interval, mcnemar, mean_of
from quorum.knowledge.errors import ConfigurationError

ALPHA = 0.05

WITHOUT_SQL = ("valid", "table_recall", "column_recall")
"""Figures that are 0 of a question without SQL whose other side has SQL."""

Change: TypeAlias = Literal["gained", "lost"]


@dataclass(frozen=True)
class PairedFigure:
    """A figure of both evaluations, over the ``n`` questions where both have it.

    Attributes:
        unit: As in ``quorum.evals.reports.frame.Figure``.
        a, b: Means.
        low, high: 95 % interval of B minus A (paired bootstrap), of shares.
        gained, lost: Questions where only B, or only A, has it; None of what is more than yes or no.
        p_value: Of McNemar's exact test, two-sided; None as ``gained``.
    """

    name: str
    title: str
    unit: str
    n: int
    a: float | None
    b: float | None
    low: float | None = None
    high: float | None = None
    gained: int | None = None
    lost: int | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Comparison:
    """Two evaluations compared.

    Attributes:
        a, b: Under names that tell them apart.
        shared: Questions that both ask for.
        unscorable: Ids of shared questions whose gold is unusable: who has them right is not compared.
        compared: Questions that ended in both and can be scored.
        figures: By name, those that both have; ``ex`` first.
        changes: By id, each question that one of the two has right: ``gained`` if B has, ``lost`` if A has.
        differing: The options that differ, and the version, as ``option``, ``a``, ``b``.
    """

    a: Opened
    b: Opened
    shared: tuple[str, ...]
    unscorable: tuple[str, ...]
    compared: int
    figures: dict[str, PairedFigure]
    changes: dict[str, Change]
    differing: tuple[dict[str, Any], ...]

    @property
    def sides(self) -> dict[str, Opened]:
        return {"a": self.a, "b": self.b}

    def ids(self, change: Change) -> list[str]:
        """Return the questions that were ``gained`` or ``lost``."""
        return [id for id, each in self.changes.items() if each == change]

    def only(self, half: Opened) -> int:
        """Return the number of questions that one of the two alone asks for."""
        return len(half.asked) - len(self.shared)

    def waiting(self, half: Opened) -> int:
        """Return the shared questions without a final record (not reached, or no endpoint)."""
        return sum(id not in half.records or not half.records[id].finished for id in self.shared)

    def as_dict(self) -> dict[str, Any]:
        """Return all figures, and the questions that flipped with the SQL of both, ready for JSON."""
        return {
            "suite": self.a.manifest.suite,
            "rules": self.a.manifest.rules,
            **{
                letter: {
                    "name": half.name,
                    "asked": len(half.asked),
                    "only": self.only(half),
                    "unanswered": self.waiting(half),
                    "recipe": half.recipe,
                    "models": half.models,
                }
                for letter, half in self.sides.items()
            },
            "shared": len(self.shared),
            "unscorable": self.unscorable,
            "compared": self.compared,
            "gained": len(self.ids("gained")),
            "lost": len(self.ids("lost")),
            "figures": {name: dataclasses.asdict(pair) for name, pair in self.figures.items()},
            "differing": self.differing,
            "flips": [
                {"id": id, "question": self.a.records[id].question, "change": change}
                | {letter: _flipped(half, half.records[id]) for letter, half in self.sides.items()}
                for id, change in self.changes.items()
            ],
        }


def _flipped(half: Opened, record: Record) -> dict[str, str]:
    """Return what one side said, why it is not right, and its run's folder within the evaluation's."""
    run = half.run_of(record.id)
    place = run.relative_to(half.folder).as_posix() if run else ""
    reason = record.reason or gist(record.message)
    return {"sql": record.sql, "reason": reason, "error": record.error, "run": place}


def compare(a: Opened, b: Opened) -> Comparison:
    """Compare over the questions that both ask for.

    A question that one of them has not asked yet, or not for lack of an endpoint, is left out and counted;
    one whose gold is unusable (by either's verdict) is left out of scores and listed. A question that was
    asked and has no answer is wrong.

    Raises:
        ConfigurationError: The suites, their rules or their questions are not the same, or none is shared.
    """
    shared = _shared(a, b)
    lacking = [id for id in shared if any(id in it.records and unscorable(it.records[id]) for it in (a, b))]
    ended = [id for id in shared if all(id in it.records and it.records[id].finished for it in (a, b))]
    compared = [id for id in ended if id not in lacking]
    rights = {id: (right(a.records[id]), right(b.records[id])) for id in compared}
    columns = {name: it for name, it in a.frame.columns.items() if name in b.frame.columns}
    pairs = [
        _pair(name, figure, _values(a, b, name, compared if figure.everyone else ended))
        for name, figure in columns.items()
        if name != "answered"
    ]
    name_a, name_b = names([[a.folder], [b.folder]])
    return Comparison(
        a=dataclasses.replace(a, name=name_a),
        b=dataclasses.replace(b, name=name_b),
        shared=tuple(shared),
        unscorable=tuple(lacking),
        compared=len(compared),
        figures={pair.name: pair for pair in pairs if pair.n},
        changes={
            id: "gained" if after else "lost" for id, (before, after) in rights.items() if before != after
        },
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


def _values(a: Opened, b: Opened, name: str, ids: Sequence[str]) -> list[tuple[float, float]]:
    """Return both sides' values of a figure, of the questions where both have one.

    Where the other side has a value, no SQL is not valid and links nothing (``WITHOUT_SQL``).
    """
    found = []
    for id in ids:
        known = [half.frame.columns[name].value(half.asked[id], half.records[id]) for half in (a, b)]
        if name in WITHOUT_SQL and known != [None, None]:
            known = [
                0.0 if value is None and not half.records[id].sql else value
                for half, value in zip((a, b), known, strict=True)
            ]
        left, right = known
        if left is not None and right is not None:
            found.append((left, right))
    return found


def _pair(name: str, figure: Figure, values: Sequence[tuple[float, float]]) -> PairedFigure:
    """Return a figure of both, of shares with its interval, of yes and no with the test."""
    left, right = (mean_of(pair[side] for pair in values).mean for side in (0, 1))
    made = PairedFigure(name, figure.title, figure.unit, len(values), left, right)
    if figure.unit != "share" or not values:
        return made
    changes = [after - before for before, after in values]
    low, high = bootstrap_interval(changes)
    made = dataclasses.replace(made, low=low, high=high)
    if any(value not in (0.0, 1.0) for pair in values for value in pair):
        return made
    gained, lost = changes.count(1.0), changes.count(-1.0)
    return dataclasses.replace(made, gained=gained, lost=lost, p_value=mcnemar(gained, lost))


def _differing(a: Opened, b: Opened) -> Iterator[dict[str, Any]]:
    left, right = ({"version": it.manifest.version} | it.manifest.options for it in (a, b))
    for name in dict.fromkeys([*left, *right]):
        if left.get(name) != right.get(name):
            yield {"option": name, "a": left.get(name), "b": right.get(name)}


# As Markdown


def markdown_of(comparison: Comparison) -> str:
    """Return the comparison as Markdown, for the terminal or a pull request; questions that flipped by id."""
    a, b = comparison.a, comparison.b
    parts = [
        f"# {markdown(a.manifest.suite)}: {markdown(a.name)} against {markdown(b.name)}",
        f"**{result(comparison)}**",
    ]
    if remarks := [f"- {markdown(note, 1_000)}" for note in notes(comparison)]:
        parts.append("\n".join(remarks))
    head = "figure | >questions | >A | >B | >B − A, costs B / A | >95 % interval | >only A | >only B | >p"
    parts += [
        f"## A: {markdown(a.name)}, B: {markdown(b.name)}",
        table(head, map(_row, comparison.figures.values())),
        "Scores over the questions that ended in both and can be scored. Intervals are paired bootstraps, p "
        "is McNemar's exact test.",
    ]
    if comparison.differing:
        rows = [(f"`{it['option']}`", _option(it["a"]), _option(it["b"])) for it in comparison.differing]
        parts += ["## Options that differ", table("option | A | B", rows)]
    judged = f"Judged by: {markdown(a.manifest.rules)}"
    return "\n\n".join([*parts, judged, *_flips(comparison)]) + "\n"


def result(comparison: Comparison) -> str:
    """Return the difference of EX, with its interval, p-value and meaning."""
    ex = comparison.figures.get("ex")
    if ex is None or ex.a is None or ex.b is None or ex.p_value is None:
        return "EX cannot be compared: no question has it in both."
    said = (
        f"EX of B minus A: {points(ex.b - ex.a)} percentage points (95 % interval {points(ex.low)} to "
        f"{points(ex.high)}, over {count(ex.n, 'question')}; McNemar's p {probability(ex.p_value)})."
    )
    gained, lost = len(comparison.ids("gained")), len(comparison.ids("lost"))
    if not gained + lost:
        return f"{said} No question that is compared tells them apart."
    better = "B is better" if gained > lost else "A is better"
    better = "The difference may be chance" if ex.p_value >= ALPHA else better
    flipped = count(gained + lost, "question")
    return f"{said} {better}: of {flipped} that only one has right, B has {gained:,} and A {lost:,}."


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what a reader must know before trusting the figures, most important first."""
    for letter, half in (("A", comparison.a), ("B", comparison.b)):
        if half.frame.count(lambda record: record.demonstration):
            yield f"{letter} holds answers of the rule-based demonstration model, no language model."
        if waiting := comparison.waiting(half):
            yield (
                f"{letter} has not asked {count(waiting, 'question')} that both ask for yet "
                "(not reached, or no endpoint): they are not compared."
            )
        if half.lacks:
            yield f"{letter} is not whole: {half.lacks}."
        if only := comparison.only(half):
            yield f"Left out: {count(only, 'question')} that only {letter} asks for."
    if lacking := comparison.unscorable:
        yield f"Left out of EX for want of gold: {count(len(lacking), 'question')}: {listed(lacking)}."


def _row(it: PairedFigure) -> tuple[str | int | None, ...]:
    """Return the cells of a figure: A, B, and their difference (scores) or ratio (costs)."""
    shown = {"share": percent, "dollars": dollars, "bytes": size}.get(it.unit, amount)
    between, span = NONE, NONE
    if it.a is None or it.b is None:
        pass
    elif it.unit == "share":
        between, span = points(it.b - it.a), f"{points(it.low)} to {points(it.high)}"
    elif it.a:
        between = f"×{it.b / it.a:.2f}"
    p_value = NONE if it.p_value is None else probability(it.p_value)
    return (markdown(it.title), it.n, shown(it.a), shown(it.b), between, span, it.lost, it.gained, p_value)


def _option(value: Any) -> str:
    """Return an option's value as one line."""
    if value is None or value == "":
        return NONE
    return markdown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _flips(comparison: Comparison) -> Iterator[str]:
    titles: dict[Change, str] = {
        "gained": "Gained: B is right, A is not",
        "lost": "Lost: A is right, B is not",
    }
    for change, title in titles.items():
        if ids := comparison.ids(change):
            yield f"## {title} ({count(len(ids), 'question')})"
            records = map(comparison.a.records.__getitem__, ids)
            rows = [(f"`{it.id}`", markdown(it.database), markdown(it.question)) for it in records]
            yield table("id | database | question", rows)
