"""The tokens of schema text: names, types, values and descriptions, written and read back.

What a ``write_*`` function writes, the ``Scanner`` reads. ``quorum.knowledge.schema_text`` defines the
format as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache
from types import EllipsisType
from typing import TypeAlias, TypeVar

from quorum.knowledge.errors import QuorumError

BARE_NAME = re.compile(r"\w[\w$]*(?:-[\w$]+)*")
BARE_PATH = re.compile(r"(?:\[\]|\*|\w)(?:[\w$*]|\[\]|[.-](?=[\w$*\[]))*")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
_QUOTED = {mark: re.compile(rf"{mark}((?:[^{mark}\\]|{mark}{mark}|\\.)*){mark}") for mark in '"`'}
_UNESCAPE = re.compile(r"\\u([0-9a-f]{4})|\\(.)")
_SPECIAL_VALUE = re.compile(
    r'[,\[\]"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^\s|\s$|^$|^all: |^NULL(?: only)?$'
)
_BARE_VALUE = re.compile(r"[^,\]]*")
_AFTER_TYPE = re.compile(r"\[|(?:PK|NOT NULL|:NULLs|->|--)(?:[ ^]|$)|$")
_CACHED = 1 << 16  # the same few names, types and texts come back at every level of detail

T = TypeVar("T")
Cell: TypeAlias = str | EllipsisType | None
"""A value in a row: None for NULL, ``...`` where it is withheld."""


class SchemaTextError(QuorumError):
    """A text that should be schema text cannot be read; the message names the line."""


def quote(text: str, mark: str = '"') -> str:
    """The text in quotes: a quote doubled, control characters and surrogates escaped."""
    return mark + "".join(map(_escape, text)).replace(mark, mark * 2) + mark


def _escape(char: str) -> str:
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    return re.sub("....", r"\\u\g<0>", char.encode("utf-16-be", "surrogatepass").hex())


def _unescape(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return _UNESCAPES.get(escape[2], escape[2])


@lru_cache(_CACHED)
def write_path(path: str) -> str:
    """A nested path, bare where it can be."""
    return path if BARE_PATH.fullmatch(path) else quote(path)


@lru_cache(_CACHED)
def write_type(text: str) -> str:
    """A type in the engine's words; quoted when empty or when it could be misread."""
    plain = text.isprintable() and text == text.strip() and text[:1] not in {"", '"'}
    balanced = text.count("(") == text.count(")") and text.count("<") == text.count(">")
    if plain and balanced and _bare_type_end(text + " PK", 0) == len(text):
        return text
    return quote(text)


def _bare_type_end(line: str, at: int) -> int:
    depth = 0
    for i in range(at, len(line)):
        char = line[i]
        if char in "(<":
            depth += 1
        elif char in ")>":
            depth -= 1
        elif char == " " and depth == 0 and _AFTER_TYPE.match(line, i + 1):
            return i
    return len(line)


@lru_cache(_CACHED)
def write_value(value: str) -> str:
    """A sample value, quoted where it could be misread."""
    return quote(value) if _SPECIAL_VALUE.search(value) else value


def write_expression(text: str) -> str:
    """A metric's formula; quoted where it could be misread."""
    plain = text.isprintable() and text == text.strip() and text[:1] != '"' and " --" not in text
    return text if plain else quote(text)


def write_values(values: Iterable[str], complete: bool = False) -> str:
    """``[a, b]``; when there are no others, ``[all: a, b]`` or ``[NULL only]``."""
    written = ", ".join(map(write_value, values))
    if complete:
        return f"[all: {written}]" if written else "[NULL only]"
    return f"[{written}]"


def write_row(cells: Iterable[Cell]) -> str:
    """``a, NULL, *``: the values of a row."""
    return ", ".join(map(_write_cell, cells))


def _write_cell(cell: Cell) -> str:
    if not isinstance(cell, str):
        return "NULL" if cell is None else "*"
    return quote(cell) if cell in ("NULL", "*") else write_value(cell)


class Scanner:
    """Reads the tokens of a line from left to right.

    Every method moves ``at``, the index of what comes next, and raises ``SchemaTextError`` where that is
    something else.
    """

    def __init__(self, line: str, at: int = 0) -> None:
        self.line, self.at = line, at

    @property
    def rest(self) -> str:
        """What has not been read."""
        return self.line[self.at :]

    def take(self, text: str) -> bool:
        """Pass over ``text`` if it comes next; whether it does."""
        found = self.line.startswith(text, self.at)
        self.at += len(text) if found else 0
        return found

    def _token(self, bare: re.Pattern[str], what: str, marks: str = '"') -> str:
        mark = next((mark for mark in marks if self.line.startswith(mark, self.at)), "")
        found = (_QUOTED[mark] if mark else bare).match(self.line, self.at)
        if not found:
            raise SchemaTextError(f"{'a quoted name has no end' if mark else what}: {self.rest[:60]}")
        self.at = found.end()
        if not mark:
            return found[0]
        text = _UNESCAPE.sub(_unescape, found[1].replace(mark * 2, mark)).encode("utf-16-be", "surrogatepass")
        return text.decode("utf-16-be", "surrogatepass")  # joins pairs of surrogates

    def _separated(self, read: Callable[[], T], by: str = ", ") -> list[T]:
        found = [read()]
        while self.take(by):
            found.append(read())
        return found

    def name(self) -> str:
        """A name."""
        return self._token(BARE_NAME, "a name is expected", '"`')

    def names(self) -> list[str]:
        """Names joined by commas."""
        return self._separated(self.name)

    def full_name(self) -> tuple[str, ...]:
        """The parts of a dotted name."""
        return tuple(self._separated(self.name, "."))

    def paths(self) -> list[str]:
        """Nested paths joined by commas."""
        return self._separated(lambda: self._token(BARE_PATH, "a path is expected"))

    def type(self) -> str:
        """A type, up to the first mark behind it."""
        if self.line.startswith('"', self.at):
            return self.name()
        start, self.at = self.at, _bare_type_end(self.line, self.at)
        return self.line[start : self.at]

    def expression(self) -> str:
        """A metric's formula, up to its description."""
        if self.line.startswith('"', self.at):
            return self.name()
        text = self.rest.partition(" --")[0]
        self.at += len(text)
        return text

    def row(self) -> list[Cell]:
        """The values of a row."""
        return self._separated(self._cell)

    def _cell(self) -> Cell:
        marks: dict[str, Cell] = {"NULL": None, "*": ...}
        quoted = self.line.startswith('"', self.at)
        text = self._token(_BARE_VALUE, "")
        return text if quoted else marks.get(text, text)

    def values(self) -> tuple[tuple[str, ...], bool]:
        """The values in brackets, and whether the text says that there are no others."""
        if self.take("[NULL only]"):
            return (), True
        complete = self.take("[all: ")
        if not complete:
            self.take("[")
        values = self._separated(lambda: self._token(_BARE_VALUE, ""))
        if not self.take("]"):
            raise SchemaTextError(f"sample values have no end: {self.line[:60]}")
        return tuple(values), complete


@lru_cache(_CACHED)
def one_line(text: str, limit: int | None = None) -> str:
    """The text with every run of blanks as one blank; cut to ``limit`` characters with ``…``."""
    joined = " ".join(text.split())
    if limit is None or len(joined) <= limit:
        return joined
    return joined[: max(limit - 1, 0)].rstrip() + "…"
