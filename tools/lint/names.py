"""How a dialect compares names, and which names are close to each other."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from difflib import SequenceMatcher
from typing import TYPE_CHECKING

from quorum.knowledge.naming import write_name
from quorum.tools.sql import STRICT_DIALECTS

if TYPE_CHECKING:
    from sqlglot import exp

_EXACT: dict[str, Callable[[str], str]] = {
    **dict.fromkeys(("snowflake", "oracle", "exasol"), str.upper),
    "postgres": str.lower,
}
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|\d+")
_CLOSE = 0.6
_LONGEST = 200
"""Characters of a name that are compared; engines allow 63 to 300."""


class Names:
    """Case rules of a dialect.

    Snowflake, Oracle and Exasol fold an unquoted name to upper case, PostgreSQL to lower case, and compare
    exactly; the others ignore case. ``key`` maps equal names to equal strings.

    Attributes:
        strict: Whether a name that the catalog lacks is one too many, for no session forbids what it may do.

    Args:
        exact: False to ignore case in these two as well, to find what a faulty query means.
    """

    def __init__(self, dialect: str, exact: bool = True) -> None:
        self.dialect = dialect
        self.strict = dialect in STRICT_DIALECTS
        self._fold = _EXACT.get(dialect) if exact else None

    def key(self, identifier: exp.Expr) -> str:
        """The key of a name as written in a query."""
        if self._fold is None:
            return identifier.name.casefold()
        return identifier.name if identifier.args.get("quoted") else self._fold(identifier.name)

    def stored(self, name: str) -> str:
        """The key of a name in the catalog's true case."""
        return name.casefold() if self._fold is None else name

    def unquoted(self, name: str) -> str:
        """The key that ``name`` has when it is written without quotes."""
        return name.casefold() if self._fold is None else self._fold(name)

    def written(self, name: str) -> str:
        """``name`` as a query must write it, and as schema text has it."""
        return write_name(name, self.dialect)


def nearest(name: str, known: Iterable[str], limit: int = 3) -> list[str]:
    """The names most like ``name``, best first: by spelling, by shared words, by containment."""
    name = name[:_LONGEST]
    scored = [(likeness(name, other), other) for other in dict.fromkeys(known)]
    close = sorted((pair for pair in scored if pair[0] >= _CLOSE), key=lambda pair: (-pair[0], pair[1]))
    return [other for _, other in close[:limit]]


def likeness(one: str, other: str) -> float:
    """Likeness of two names, 0 to 1; case and underscores do not count."""
    left, right = _bare(one), _bare(other)
    if left == right:
        return 1.0
    if not left or not right:
        return 0.0
    spelling = 0.0
    if 2 * min(len(left), len(right)) >= _CLOSE * (len(left) + len(right)):
        matcher = SequenceMatcher(None, left, right, autojunk=False)
        spelling = matcher.ratio() if matcher.quick_ratio() >= _CLOSE else 0.0
    ours, theirs = _words(one), _words(other)
    shared = 2 * len(ours & theirs) / (len(ours) + len(theirs)) if ours and theirs else 0.0
    contained = 0.65 if min(len(left), len(right)) >= 3 and (left in right or right in left) else 0.0
    return max(spelling, 0.95 * shared, contained)


def _bare(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).casefold()


def _words(name: str) -> frozenset[str]:
    return frozenset(word.casefold().rstrip("s") for word in _WORD.findall(name))
