"""A comparison as Markdown: short for the terminal, or whole for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from quorum.evals.reports.compare_text import (
    MEASURES,
    UNSCORED,
    figures,
    measured,
    notes,
    option,
    reading,
    result,
    titled,
)
from quorum.evals.reports.comparison import Change, Comparison, Flip, Letter, Link, Side
from quorum.evals.reports.format import count, fenced, markdown
from quorum.evals.reports.tables import table

_TITLES: dict[Change, str] = {"gained": "Gained: B is right, A is not", "lost": "Lost: A is right, B is not"}


def markdown_of(comparison: Comparison, link: Link | None = None) -> str:
    """The comparison as Markdown.

    Args:
        link: Where traces are found. With it every question that flipped is shown with the SQL of both
            sides; without it they are listed by id.
    """
    return "\n\n".join([*_head(comparison), *_tables(comparison), *_flips(comparison, link)]) + "\n"


def _head(comparison: Comparison) -> Iterator[str]:
    a, b = markdown(comparison.a.name), markdown(comparison.b.name)
    yield f"# {markdown(comparison.suite)}: {a} against {b}"
    yield f"**{result(comparison)}** {reading(comparison)}"
    if listed := [f"- {markdown(note, 1_000)}" for note in notes(comparison)]:
        yield "\n".join(listed)


def _tables(comparison: Comparison) -> Iterator[str]:
    a, b = comparison.a, comparison.b
    rows = [
        ["evaluation", markdown(a.name), markdown(b.name), ""],
        ["recipe", markdown(a.recipe), markdown(b.recipe), ""],
        ["models", markdown(", ".join(a.models)), markdown(", ".join(b.models)), ""],
        *([markdown(pair.title), *figures(pair)] for pair in comparison.metrics),
    ]
    yield table(["", "A", "B", "B − A"], rows, right=(1, 2, 3))
    if comparison.compared or not comparison.measures:
        yield table(
            ["", "B right", "B wrong"],
            [
                ["A right", f"{comparison.both_right:,}", f"{comparison.lost:,}"],
                ["A wrong", f"{comparison.gained:,}", f"{comparison.both_wrong:,}"],
            ],
            right=(1, 2),
        )
    if comparison.measures:
        yield f"## Without EX: {count(comparison.unscored, 'question')}"
        yield table(list(MEASURES), map(measured, comparison.measures), right=range(1, len(MEASURES)))
        yield UNSCORED
    yield f"## Cost per question, over the {comparison.priced:,} that both asked"
    yield table(
        ["", "A", "B", "B / A"],
        ([titled(pair), *figures(pair)] for pair in comparison.costs),
        right=(1, 2, 3),
    )
    if comparison.differing:
        yield "## Options that differ"
        rows = [
            [f"`{it.option}`", markdown(option(it.a)), markdown(option(it.b))] for it in comparison.differing
        ]
        yield table(["option", "A", "B"], rows)
    yield f"Judged by: {markdown(comparison.rules)}"


def _flips(comparison: Comparison, link: Link | None) -> Iterator[str]:
    for change, title in _TITLES.items():
        flips = [flip for flip in comparison.flips if flip.change == change]
        if not flips:
            continue
        yield f"## {title} ({count(len(flips), 'question')})"
        if link is not None:
            for flip in flips:
                yield from _flip(flip, link)
        else:
            rows = [[f"`{flip.id}`", markdown(flip.database), markdown(flip.question)] for flip in flips]
            yield table(["id", "database", "question"], rows)


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
    said = " ".join(part for part in (side.error.replace("_", " "), side.reason) if part)
    yield f"{head}: {markdown(said)}" if said else head
    yield fenced(side.sql) if side.sql else "No SQL."
