"""A comparison in sentences and tables: as Markdown, and as a page that shows the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from quorum.evals.reports.compare import Change, Comparison, Flip, Letter, Link, Pair, Side
from quorum.evals.reports.evaluations import shards_of
from quorum.evals.reports.format import (
    NONE,
    amount,
    count,
    dollars,
    fenced,
    level,
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
TITLES: dict[Change, str] = {"gained": "Gained: B is right, A is not", "lost": "Lost: A is right, B is not"}

_LISTED = 10


def markdown_of(comparison: Comparison, link: Link | None = None) -> str:
    """Return the comparison as Markdown: short for the terminal, or whole for a pull request.

    Args:
        link: With it every question that flipped is shown with the SQL of both sides and the address of its
            traces; without it they are listed by id.
    """
    a, b = markdown(comparison.a.name), markdown(comparison.b.name)
    head = [f"# {markdown(comparison.suite)}: {a} against {b}"]
    head.append(f"**{result(comparison)}** {reading(comparison)}")
    if listed := [f"- {markdown(note, 1_000)}" for note in notes(comparison)]:
        head.append("\n".join(listed))
    return "\n\n".join([*head, *_tables(comparison), *_flips(comparison, link)]) + "\n"


def result(comparison: Comparison) -> str:
    """Return the difference with its interval and p-value, in one sentence."""
    if comparison.difference is None or comparison.low is None or comparison.high is None:
        known = "EX cannot be compared: it is known in neither."
        return known if comparison.measures else "No question can be compared."
    p_value = probability(comparison.p_value)
    return (
        f"EX of B minus A: {points(comparison.difference)} percentage points (95 % interval "
        f"{points(comparison.low)} to {points(comparison.high)}, paired bootstrap over "
        f"{count(comparison.compared, 'question')}); "
        f"McNemar's exact test p {p_value if p_value.startswith('<') else f'= {p_value}'}."
    )


def reading(comparison: Comparison) -> str:
    """Return the meaning of the result, in one sentence."""
    flipped = comparison.gained + comparison.lost
    if not flipped and comparison.compared:
        return (
            "No question that is compared tells them apart; an interval without width is the method's, "
            "no proof that they are equal."
        )
    if not flipped and comparison.measures:
        return "What is known of the SQL that nothing could execute is compared below."
    if not flipped:
        return "Nothing tells them apart."
    split = (
        f"of {count(flipped, 'question')} that only one has right, B has {comparison.gained:,} and A "
        f"{comparison.lost:,}"
    )
    if comparison.p_value >= ALPHA:
        return f"The difference may be chance: {split}."
    return f"{'B' if comparison.gained > comparison.lost else 'A'} is better: {split}."


def notes(comparison: Comparison) -> Iterator[str]:
    """Yield what a reader must know before trusting the figures, most important first."""
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
        shards, whole = shards_of(half.shard)
        if missing := [str(number) for number in range(1, whole + 1) if number not in shards]:
            yield f"{letter} is not whole: shard {', '.join(missing)} of {whole} is missing."
    for letter, only in (("A", comparison.only_a), ("B", comparison.only_b)):
        if only:
            yield f"{count(only, 'question')} that only {letter} asks for {_are(only)} left out."
    if lacking := comparison.unscorable:
        more = f" and {len(lacking) - _LISTED} more" if len(lacking) > _LISTED else ""
        left_out = f"{count(len(lacking), 'question')} whose gold cannot be had {_are(len(lacking))} left out"
        yield f"{left_out} of EX, for it is not known who is right: {', '.join(lacking[:_LISTED])}{more}."


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def _tables(comparison: Comparison) -> Iterator[str]:
    """Yield headings, each followed by its tables."""
    a, b = comparison.a, comparison.b
    yield f"## Scores over {count(comparison.compared, 'question')}"
    yield table(
        " | >A | >B | >B − A",
        [
            ("evaluation", markdown(a.name), markdown(b.name), ""),
            ("recipe", markdown(a.recipe), markdown(b.recipe), ""),
            ("models", markdown(", ".join(a.models)), markdown(", ".join(b.models)), ""),
            *((markdown(pair.title), *_figures(pair)) for pair in comparison.metrics),
        ],
    )
    if comparison.compared or not comparison.measures:
        yield table(
            " | >B right | >B wrong",
            [
                ("A right", comparison.both_right, comparison.lost),
                ("A wrong", comparison.gained, comparison.both_wrong),
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
    yield f"Judged by: {markdown(comparison.rules)}"


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
            rows = [(f"`{flip.id}`", markdown(flip.database), markdown(flip.question)) for flip in flips]
            yield table("id | database | question", rows)
            continue
        for flip in flips:
            yield from _flip(flip, link)


def _flip(flip: Flip, link: Link) -> Iterator[str]:
    place = ", ".join(part for part in (flip.database, flip.difficulty) if part)
    yield f"### `{flip.id}` ({markdown(place)})"
    yield markdown(flip.question, 1_000)
    yield from _side("a", flip.a, link, right=flip.change == "lost")
    yield from _side("b", flip.b, link, right=flip.change == "gained")


def _side(letter: Letter, side: Side, link: Link, *, right: bool) -> Iterator[str]:
    head = f"**{letter.upper()}, {'right' if right else 'wrong'}**"
    if target := link(letter, side):
        head += f" ([trace]({target}))"
    why = " ".join(part for part in (side.error.replace("_", " "), side.reason) if part)
    yield f"{head}: {markdown(why)}" if why else head
    yield fenced(side.sql) if side.sql else "No SQL."
