"""Comments in a CREATE TABLE statement: SQLite keeps its text, so ``-- euros`` beside a column lives on."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

_TOKEN = re.compile(
    r"""
      (?P<comment>--[^\n]*|/\*.*?(?:\*/|$))
    | (?P<newline>\n)
    | (?P<blank>[^\S\n]+)
    | (?P<name>"(?:[^"]|"")*"|`(?:[^`]|``)*`|\[[^\]]*\]|'(?:[^']|'')*'|\w+)
    | (?P<mark>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_CONSTRAINTS = {"constraint", "primary", "foreign", "unique", "check"}


@dataclass
class Comments:
    """A table's comment and its columns' comments, by name in lower case."""

    table: str = ""
    columns: dict[str, str] = field(default_factory=dict)


def comments_of(sql: str) -> Comments:
    """Read the comments of a CREATE TABLE statement.

    A comment on a line of a column's definition is that column's. One on a line of its own belongs
    to the column that follows. The table's stand before the opening parenthesis or on its line.
    """
    reader = _Reader()
    for token in _TOKEN.finditer(sql):
        kind, text = token.lastgroup, token.group()
        if kind == "comment":
            reader.comment(text)
        elif kind == "newline":
            reader.newline()
        elif kind == "name":
            reader.name(text)
        elif kind == "mark":
            reader.mark(text)
    columns = {name: " ".join(words) for name, words in reader.columns.items()}
    return Comments(" ".join(reader.table), columns)


class _Reader:
    """Where in the statement we are, and what was found."""

    def __init__(self) -> None:
        self.table: list[str] = []
        self.columns: dict[str, list[str]] = {}
        self._waiting: list[str] = []  # comments on lines of their own
        self._depth = 0
        self._at_name = False  # the next name begins a definition
        self._column: str | None = None  # the definition under way; None in a table constraint
        self._line_of: str | None = None  # the column whose definition this line shows
        self._opening = True  # up to the end of the parenthesis's line

    def comment(self, text: str) -> None:
        words = " ".join(text.removeprefix("--").removeprefix("/*").removesuffix("*/").split())
        if self._line_of:
            self.columns.setdefault(self._line_of, []).append(words)
        elif self._opening or self._depth == 0:
            self.table.append(words)
        else:
            self._waiting.append(words)

    def newline(self) -> None:
        self._line_of = None
        self._opening = self._depth == 0

    def mark(self, text: str) -> None:
        if text == "(":
            self._depth += 1
            self._at_name = self._at_name or (self._depth == 1)
        elif text == ")":
            self._depth -= 1
        elif text == "," and self._depth == 1:
            self._at_name = True

    def name(self, text: str) -> None:
        if self._depth == 1 and self._at_name:
            self._at_name = False
            self._column = None if text.lower() in _CONSTRAINTS else _unquoted(text).lower()
            if self._column and self._waiting:
                self.columns.setdefault(self._column, []).extend(self._waiting)
            self._waiting.clear()
        if self._depth:
            self._line_of = self._column


def _unquoted(name: str) -> str:
    if name[0] == "[":
        return name[1:-1]
    quote = name[0]
    return name[1:-1].replace(quote * 2, quote) if quote in "\"`'" else name
