"""A comparison in sentences and tables: as Markdown, and as a page that shows the same."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

from quorum.evals.records import Record
from quorum.evals.reports.compare import Comparison, Pair, reason_of
from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.format import (
    NONE,
    amount,
    count,
    dollars,
    fenced,
    level,
    listed,
    markdown,
    percent,
    points,
    probability,
    size,
    table,
)  # fmt: skip

ALPHA = 0.05
UNSCORED = (
    "Over the questions that ended in both with EX known in neither; linking over those of them where the "
    "SQL of at least one side could be compared with gold SQL. Intervals are paired bootstraps, p is "
    "McNemar's exact test. Without SQL a question is not valid and uses nothing."
)
TITLES = {"gained": "Gained: B is right, A is not", "lost": "Lost: A is right, B is not"}

Link: TypeAlias = Callable[[Path], str]
"""The address of a run's trace from the file that shows it; empty without one."""


def markdown_of(comparison: Comparison, link: Link | None = None) -> str:
    """Return the comparison as Markdown: short for the terminal, or whole for a pull request.

    Args:
        link: With it every question that flipped is shown with the SQL of both sides and the address of its
            traces; without it they are listed by id.
    """
    a, b = markdown(comparison.a.name), markdown(comparison.b.name)
    head = [f"# {markdown(comparison.a.manifest.suite)}: {a} against {b}"]
    head.append(f"**{result(comparison)}** {reading(comparison)}")
    if remarks := [f"- {markdown(note, 1_000)}" for note in notes(comparison)]:
        head.append("\n".join(remarks))
    return "\n\n".join([*head, *_tables(comparison), *_flips(comparison, link)]) + "\n"


def result(comparison: Comparison) -> str:
    """Return the difference with its interval and p-value, in one sentence."""
    ex = comparison.ex
    if comparison.difference is None:
        known = "EX cannot be compared: it is known in neither."
        return known if comparison.measures else "No question can be compared."
    p_value = probability(comparison.p_value)
    return (
        f"EX of B minus A: {points(comparison.difference)} percentage points (95 % interval "
        f"{points(ex.low)} to {points(ex.high)}, paired bootstrap over {count(ex.n, 'question')}); "
        f"McNemar's exact test p {p_value if p_value.startswith('<') else f'= {p_value}'}."
    )


def reading(comparison: Comparison) -> str:
    """Return the meaning of the result, in one sentence."""
    gained, lost = comparison.counts["gained"], comparison.counts["lost"]
    flipped = gained + lost
    if not flipped and comparison.split:
        return (
            "No question that is compared tells them apart; an interval without width is the method's, "
            "no proof that they are equal."
        )
    if not flipped and comparison.measures:
        return "What is known of the SQL that nothing could execute is compared below."
    if not flipped:
        return "Nothing tells them apart."
    split = f"of {count(flipped, 'question')} that only one has right, B has {gained:,} and A {lost:,}"
    if comparison.p_value >= ALPHA:
        return f"The difference may be chance: {split}."
    return f"{'B' if gained > lost else 'A'} is better: {split}."


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what a reader must know before trusting the figures, most important first."""
    halves = {"A": comparison.a, "B": comparison.b}
    if shown := [letter for letter, half in halves.items() if half.demonstration]:
        yield (
            f"{' and '.join(shown)} {'hold' if len(shown) > 1 else 'holds'} answers of the rule-based "
            "demonstration model: they say nothing of a language model."
        )
    for letter, half in halves.items():
        if waiting := comparison.waiting(half):
            yield (
                f"{letter} has not asked {count(waiting, 'question')} that both ask for yet "
                "(not reached, or no endpoint): they are not compared."
            )
        shards, whole = half.shards
        if missing := [str(number) for number in range(1, whole + 1) if number not in shards]:
            yield f"{letter} is not whole: shard {', '.join(missing)} of {whole} is missing."
    for letter, half in halves.items():
        if only := comparison.only(half):
            yield f"{count(only, 'question')} that only {letter} asks for {_are(only)} left out."
    if lacking := comparison.unscorable:
        left_out = f"{count(len(lacking), 'question')} whose gold cannot be had {_are(len(lacking))} left out"
        yield f"{left_out} of EX, for it is not known who is right: {listed(lacking)}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _tables(comparison: Comparison) -> Iterator[str]:
    """Yield headings, each followed by its tables."""
    a, b, counts = comparison.a, comparison.b, comparison.counts
    yield f"## Scores over {count(len(comparison.split), 'question')}"
    yield table(
        " | >A | >B | >B − A",
        [
            ("evaluation", markdown(a.name), markdown(b.name), ""),
            ("recipe", markdown(a.recipe), markdown(b.recipe), ""),
            ("models", markdown(", ".join(a.models)), markdown(", ".join(b.models)), ""),
            *((markdown(pair.title), *_figures(pair)) for pair in comparison.metrics),
        ],
    )
    if comparison.split or not comparison.measures:
        yield table(
            " | >B right | >B wrong",
            [
                ("A right", counts["both_right"], counts["lost"]),
                ("A wrong", counts["gained"], counts["both_wrong"]),
            ],
        )
    if comparison.measures:
        yield f"## Without EX: {count(comparison.unscored, 'question')}"
        head = " | >questions | >A, % | >B, % | >B − A | >95 % interval | >only A | >only B | >p"
        yield table(head, map(_measured, comparison.measures))
        yield UNSCORED
    yield f"## Cost per question, over the {comparison.priced:,} that both asked"
    yield table(
        " | >A | >B | >B / A",
        [(f"{it.title}, s" if it.unit == "seconds" else it.title, *_figures(it)) for it in comparison.costs],
    )
    if comparison.differing:
        yield "## Options that differ"
        rows = [(f"`{it['option']}`", _option(it["a"]), _option(it["b"])) for it in comparison.differing]
        yield table("option | A | B", rows)
    yield f"Judged by: {markdown(a.manifest.rules)}"


def _figures(pair: Pair) -> tuple[str, str, str]:
    """Return the cells of A, of B, and of their difference (scores) or ratio (costs)."""
    shown = {"share": percent, "dollars": dollars, "bytes": size}.get(pair.unit, amount)
    between = NONE
    if pair.unit not in ("share", "points"):
        between = f"×{pair.b / pair.a:.2f}" if pair.a and pair.b is not None else NONE
    elif pair.a is not None and pair.b is not None:
        between = points(pair.b - pair.a) if pair.unit == "share" else f"{pair.b - pair.a:+.1f}"
    return shown(pair.a), shown(pair.b), between


def _measured(it: Pair) -> tuple[str | int | None, ...]:
    difference = None if it.a is None or it.b is None else it.b - it.a
    p_value = NONE if it.p_value is None else probability(it.p_value)
    span = f"{points(it.low)} to {points(it.high)}"
    return (it.title, it.n, level(it.a), level(it.b), points(difference), span, it.lost, it.gained, p_value)


def _option(value: Any) -> str:
    """Return an option's value as one line."""
    if value is None or value == "":
        return NONE
    return markdown(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _flips(comparison: Comparison, link: Link | None) -> Iterator[str]:
    for change, title in TITLES.items():
        flips = [flip for flip in comparison.flips if flip.change == change]
        if not flips:
            continue
        yield f"## {title} ({count(len(flips), 'question')})"
        if link is None:
            records = (flip.a for flip in flips)
            rows = [(f"`{it.id}`", markdown(it.database), markdown(it.question)) for it in records]
            yield table("id | database | question", rows)
            continue
        for flip in flips:
            place = ", ".join(part for part in (flip.a.database, flip.a.difficulty) if part)
            yield f"### `{flip.a.id}` ({markdown(place)})"
            yield markdown(flip.a.question, 1_000)
            yield from _side("A", comparison.a, flip.a, link, right=flip.change == "lost")
            yield from _side("B", comparison.b, flip.b, link, right=flip.change == "gained")


def _side(letter: str, half: Opened, record: Record, link: Link, *, right: bool) -> Iterator[str]:
    head = f"**{letter}, {'right' if right else 'wrong'}**"
    run = half.run_of(record.id)
    if target := link(run) if run else "":
        head += f" ([trace]({target}))"
    why = " ".join(part for part in (record.error.replace("_", " "), reason_of(record)) if part)
    yield f"{head}: {markdown(why)}" if why else head
    yield fenced(record.sql) if record.sql else "No SQL."
