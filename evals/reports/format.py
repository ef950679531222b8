"""Figures and foreign text as people read them, in a terminal, in Markdown and on pages.

What comes from a database or a model may hold terminal escapes and bidirectional overrides; it goes through
``printable`` before anybody sees it.
"""

from __future__ import annotations

import re

_CONTROL = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_MARKUP = re.compile(r"([\\`*\[\]<>#|~&]|(?<!\w)_|_(?!\w))")
NONE = "–"


def printable(text: str) -> str:
    """The text with control characters made visible; line ends and tabs stay."""
    return _CONTROL.sub(_visible, text.replace("\r\n", "\n"))


def one_line(text: str, limit: int = 300) -> str:
    """The text on one line, cut to ``limit`` characters with an ellipsis."""
    line = " ".join(printable(text).split())
    return line if len(line) <= limit else line[: limit - 1].rstrip() + "…"


def gist(message: str) -> str:
    """An error's message on one line; of a traceback its last line, which names no file of the machine."""
    lines = message.strip().splitlines()
    return one_line(lines[-1]) if "Traceback (most recent call last)" in message else one_line(message)


def markdown(text: str, limit: int = 300) -> str:
    """Foreign text for one line or cell of Markdown: nothing in it is markup."""
    return _MARKUP.sub(r"\\\1", one_line(text, limit))


def fenced(text: str, language: str = "sql") -> str:
    """A block of code whose fence is longer than any in it."""
    runs = [len(run) for run in re.findall(r"`+", text)]
    fence = "`" * max(3, 1 + max(runs, default=0))
    return f"{fence}{language}\n{printable(text)}\n{fence}"


def percent(share: float | None) -> str:
    """``45.0 %``."""
    return NONE if share is None else f"{100 * share:.1f} %"


def points(difference: float | None) -> str:
    """A difference of shares in percentage points, with its sign: ``+2.5``."""
    return NONE if difference is None else f"{100 * difference:+.1f}"


def amount(value: float | None) -> str:
    """Three digits of a small number, no fraction of a large one: ``0.812``, ``12.4``, ``2,356``."""
    if value is None:
        return NONE
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.1f}" if abs(value) >= 10 else f"{value:.2f}" if abs(value) >= 1 else f"{value:.3g}"


def dollars(usd: float | None) -> str:
    """``$0.0123``, ``$1.50``, ``price unknown``."""
    if usd is None:
        return "price unknown"
    return f"${usd:,.2f}" if usd >= 1 or usd == 0 else f"${usd:.4f}"


def probability(p: float) -> str:
    """``0.032``, ``< 0.001``."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if p < 0.1 else f"{p:.2f}"


def count(number: int, noun: str, plural: str = "") -> str:
    """``1 row``, ``2 rows``, ``12,345 rows``."""
    return f"{number:,} {noun if number == 1 else plural or noun + 's'}"


def _visible(match: re.Match[str]) -> str:
    code = ord(match[0])
    return chr(0x2400 + code) if code < 0x20 else "␡" if code == 0x7F else f"\\u{code:04x}"
