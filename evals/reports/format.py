"""Figures, tables and foreign text as people read them, in a terminal, in Markdown and on pages.

What comes from a database or a model may hold terminal escapes and bidirectional overrides; it goes through
``printable`` first.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from quorum.evals.reports.statistics import Mean

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_MARKUP = re.compile(r"([\\`*\[\]<>#|~&]|(?<!\w)_|_(?!\w))")
NONE = "–"
LISTED = 5
"""Questions that are named; more are counted."""


def printable(text: str) -> str:
    """Return the text with control characters made visible; line ends and tabs stay."""
    return _CONTROL.sub(_visible, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 300) -> str:
    """Return the text on one line, cut to ``limit`` characters with an ellipsis."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def gist(message: str) -> str:
    """Return an error's message on one line; of a traceback its last line, which names no file."""
    lines = message.strip().splitlines()
    return one_line(lines[-1]) if "Traceback (most recent call last)" in message else one_line(message)


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"\\u{code:04x}"


# Markdown


def markdown(text: str, limit: int = 300) -> str:
    """Return foreign text for one line or cell of Markdown: nothing in it is markup."""
    return _MARKUP.sub(r"\\\1", one_line(text, limit))


def fenced(text: str, language: str = "sql") -> str:
    """Return a block of code whose fence is longer than any in it."""
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    return f"{fence}{language}\n{printable(text)}\n{fence}"


def table(head: str, rows: Iterable[Sequence[str | int | None]]) -> str:
    """Return a table of GitHub's Markdown.

    Args:
        head: The columns' names with `` | `` between them; a column of figures has ``>`` before its name.
        rows: Texts are Markdown already; whole numbers get commas, None a dash.
    """
    names = head.split(" | ")
    line = ["--:" if name.startswith(">") else "---" for name in names]
    shown = [[cell if isinstance(cell, str) else whole(cell) for cell in row] for row in rows]
    lines = [[name.removeprefix(">") for name in names], line, *shown]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def listed(ids: Sequence[str]) -> str:
    """Return the first ids, and how many more there are."""
    more = len(ids) - LISTED
    return ", ".join(ids[:LISTED]) + (f" and {more:,} more" if more > 0 else "")


# Figures


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 row``, ``2 rows``, ``12,345 rows``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def whole(value: float | None) -> str:
    """A number that is counted: ``12,658``."""
    return NONE if value is None else f"{value:,.0f}"


def amount(value: float | None) -> str:
    """Three digits of a small number, no fraction of a large one: ``0.812``, ``12.4``, ``2,356``."""
    if value is None or value == 0 or abs(value) >= 100:
        return whole(value)
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def percent(share: float | None) -> str:
    """``45.0 %``."""
    return NONE if share is None else f"{100 * share:.1f} %"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign: ``+2.5``."""
    return NONE if difference is None else f"{100 * difference:+.1f}"


def probability(p: float) -> str:
    """``0.032``, ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def dollars(usd: float | None) -> str:
    """``$0.0123``, ``$1.50``, ``price unknown``."""
    if usd is None:
        return "price unknown"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def size(value: float | None) -> str:
    """``812 B``, ``1.2 kB``, ``210 MB``, by thousands."""
    if value is None:
        return NONE
    for unit in ("B", "kB", "MB", "GB"):
        if abs(value) < 1000 or unit == "GB":
            break
        value /= 1000
    return f"{value:,.0f} B" if unit == "B" else f"{amount(value)} {unit}"


def clock(time: str) -> str:
    """A time of ISO 8601 in UTC, to the second; another text as it is."""
    try:
        found = datetime.fromisoformat(time)
    except ValueError:
        return markdown(time)
    return f"{found.astimezone(UTC):%Y-%m-%d %H:%M:%S}"


def level(value: float | None) -> str:
    """A share in percent, without the sign: ``45.0``."""
    return NONE if value is None else f"{100 * value:.1f}"


def mean_plus_minus(mean: Mean) -> str:
    """A share in percent with its standard error in percentage points: ``45.0 ± 6.5``."""
    return level(mean.mean) + ("" if mean.se is None else f" ± {level(mean.se)}")


def interval(mean: Mean) -> str:
    """Return a share's 95 % interval in percent: ``33.1 – 57.5``."""
    return NONE if mean.low is None else f"{level(mean.low)} – {level(mean.high)}"


def mean_and_median(mean: Mean, unit: str) -> str:
    """A cost per question: ``4.30 / 4.00``, ``$0.0123 / $0.0100``."""
    if mean.mean is None:
        return NONE
    shown = {"dollars": dollars, "bytes": size}.get(unit, amount)
    return f"{shown(mean.mean)} / {shown(mean.median)}"
