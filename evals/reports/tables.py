"""Tables of GitHub's Markdown, and figures as their cells show them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from datetime import UTC, datetime
from typing import Literal, TypeAlias, get_args

from quorum.evals.reports.format import NONE, amount, dollars, markdown
from quorum.evals.reports.statistics import Mean, Share, Spread

LISTED = 5
"""Questions that are named; more are counted."""

LONG = 12
"""Rows above which a table is folded."""

Part: TypeAlias = Literal["mean", "p50", "p95", "high", "total"]
PARTS: tuple[Part, ...] = get_args(Part)
"""Of a spread, in the order of columns."""


def table(head: Sequence[str], rows: Iterable[Sequence[str]], right: Collection[int] = ()) -> str:
    """A table whose cells are Markdown already.

    Args:
        right: Columns of figures, by place.
    """
    line = ["--:" if place in right else "---" for place in range(len(head))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (head, line, *rows))


def folded(title: str, text: str) -> str:
    """Text that is shown when its title is clicked."""
    return f"<details><summary>{title}</summary>\n\n{text}\n\n</details>"


def listed(ids: Sequence[str]) -> str:
    """The first ids, and how many more there are."""
    more = len(ids) - LISTED
    return ", ".join(markdown(id) for id in ids[:LISTED]) + (f" and {more:,} more" if more > 0 else "")


def interval(share: Share) -> str:
    """In percent: ``33.1 – 57.5``."""
    if share.low is None or share.high is None:
        return NONE
    return f"{100 * share.low:.1f} – {100 * share.high:.1f}"


def error(value: Share | Mean, unit: str = "share") -> str:
    """A standard error, that of a share in percentage points."""
    if value.se is None:
        return NONE
    return f"{100 * value.se:.1f}" if unit == "share" else f"{value.se:.2f}"


def level(value: float | None, unit: str = "share") -> str:
    """A metric in its unit, a share in percent without the sign."""
    if value is None:
        return NONE
    return f"{100 * value:.1f}" if unit == "share" else f"{value:.2f}"


def mean_cells(mean: Mean, unit: str = "share") -> tuple[str, str, str]:
    """A mean, its standard error, and over how many."""
    return level(mean.mean, unit), error(mean, unit), f"{mean.n:,}"


def plus_minus(share: Share | None) -> str:
    """``45.0 ± 6.5``, in percent."""
    if share is None or share.share is None:
        return "not measurable"
    return level(share.share) + (f" ± {error(share)}" if share.se is not None else "")


def whole(value: float | None) -> str:
    """A number that is counted: ``12,658``."""
    return NONE if value is None else f"{value:,.0f}"


def size(value: float | None) -> str:
    """``812 B``, ``1.2 kB``, ``210 MB``, by thousands."""
    if value is None:
        return NONE
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:,.0f} B" if unit == "B" else f"{amount(value)} {unit}"


def price(spread: Spread, part: Part) -> str:
    """Dollars; ``unknown`` as soon as the price of one question is, for the others say nothing of it."""
    value = getattr(spread, part)
    if spread.unknown:
        return "unknown"
    return NONE if value is None else dollars(value)


def clock(time: str) -> str:
    """A time of ISO 8601 in UTC, to the second; another text as it is."""
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return markdown(time)
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S}"
