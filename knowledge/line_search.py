"""Searching lines with patterns a model writes, in time that cannot explode.

Python's ``re`` can take exponential time on a hostile pattern, and a thread cannot stop it. So
only a part of the grep notation is taken: text, ``.``, ``[...]``, ``\\d \\w \\s``, one ``*``, ``+``
or ``?`` between two ``.*``, ``^``, ``$`` and ``|``. Pieces between ``.*`` are looked for one after the
other, which is linear; any other pattern is searched as plain text, and the caller is told.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

MAX_LINE = 2_000
"""Characters of a line that are searched for a pattern; plain text is searched in all of it."""

_ATOM = re.compile(r"\\[dwsDWSb.*+?^$|()\[\]{}\\/\"'-]|\[\^?\]?[^\]\[\\]+\]|[^\\\[\](){}*+?|^$]")
_QUANTIFIER = re.compile(r"[*+?]")


@dataclass(frozen=True)
class Search:
    """A compiled pattern: ``matches`` decides a line; ``plain`` says it is searched as text."""

    matches: Callable[[str], bool]
    plain: bool = False


def compile_search(pattern: str, *, ignore_case: bool = False, fixed: bool = False) -> Search:
    """Compile a grep pattern (basic or extended notation).

    Args:
        pattern: What to look for in a line.
        ignore_case: As ``grep -i``.
        fixed: As ``grep -F``: the pattern is plain text.
    """
    if not fixed:
        parts = [_alternative(part, ignore_case) for part in re.split(r"\\?\|", pattern)]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return Search(lambda line: any(part(line[:MAX_LINE]) for part in known))
    wanted = pattern.casefold() if ignore_case else pattern
    if ignore_case:
        return Search(lambda line: wanted in line.casefold(), plain=not fixed)
    return Search(lambda line: wanted in line, plain=not fixed)


def _alternative(text: str, ignore_case: bool) -> Callable[[str], bool] | None:
    start, end = text.startswith("^"), text.endswith("$") and not text.endswith("\\$")
    text = text[1 if start else 0 : len(text) - 1 if end else None]
    pieces = re.split(r"(?<!\\)\.\*", re.sub(r"(?<!\\)\.\+", "..*", text))
    if not all(map(_linear, pieces)):
        return None
    flags = re.IGNORECASE if ignore_case else 0
    compiled = [re.compile(piece, flags) for piece in pieces]
    last = re.compile(f"(?:{pieces[-1]})$", flags) if end else None

    def matches(line: str) -> bool:
        at = 0
        for i, piece in enumerate(compiled):
            search = last if last is not None and i == len(compiled) - 1 else piece
            found = search.match(line, at) if start and i == 0 else search.search(line, at)
            if not found:
                return False
            at = found.end()
        return True

    return matches


def _linear(piece: str) -> bool:
    """Whether a piece is a row of single characters with at most one quantifier."""
    at, quantifiers = 0, 0
    while at < len(piece):
        found = _ATOM.match(piece, at)
        if not found:
            return False
        at = found.end()
        if _QUANTIFIER.match(piece, at):
            quantifiers += 1
            at += 1
    try:
        re.compile(piece)
    except re.error:  # a class that no engine takes, such as [z-a]
        return False
    return quantifiers <= 1
