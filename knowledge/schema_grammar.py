"""The tokens of schema text: names, types, values and descriptions, written and read back.

What a ``write_*`` function writes, the ``Scanner`` reads. ``quorum.knowledge.schema_text`` defines the
format as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from functools import lru_cache

from quorum.knowledge.errors import QuorumError

BARE_NAME = re.compile(r"\w[\w$]*(?:-[\w$]+)*")
BARE_PATH = re.compile(r"(?:\[\]|\*|\w)(?:[\w$*]|\[\]|[.-](?=[\w$*\[]))*")
_ESCAPES = {"\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t", '"': '""'}
_UNESCAPES = {"n": "\n", "r": "\r", "t": "\t", "\\": "\\"}
_QUOTED = re.compile(r'"((?:[^"\\]|""|\\.)*)"')
_UNESCAPE = re.compile(r'""|\\u([0-9a-f]{4})|\\(.)')
_SPECIAL_VALUE = re.compile(
    r'[,\[\]"\\\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]|^\s|\s$|^$|^all: |^NULL only$'
)
_BARE_VALUE = re.compile(r"[^,\]]*")
_AFTER_TYPE = re.compile(r"\[|(?:PK|NOT NULL|->|--)(?:[ ^]|$)|$")
_CACHED = 1 << 16  # the same few names, types and texts come back at every level of detail
_RESERVED = frozenset(
    """
    all alter and any as asc between by case cast check column constraint create cross current
    default delete desc distinct drop else end except exists false fetch for foreign from full grant
    group having if in index inner insert intersect into is join key left like limit natural not
    null offset on or order outer over partition primary references right row rows select set some
    table then to true union unique update user using values when where window with
    """.split()  # noqa: SIM905 - a list of 90 strings reads worse
)
"""Words that SQL dialects reserve: such a name is written as a query must write it, in quotes."""


class SchemaTextError(QuorumError):
    """A text that should be schema text cannot be read; the message names the line."""


def quote(text: str) -> str:
    """The text in double quotes: a quote doubled, control characters and surrogates escaped."""
    return f'"{"".join(map(_escape, text))}"'


def _escape(char: str) -> str:
    if char in _ESCAPES or char.isprintable():
        return _ESCAPES.get(char, char)
    return re.sub("....", r"\\u\g<0>", char.encode("utf-16-be", "surrogatepass").hex())


def _unescape(escape: re.Match[str]) -> str:
    if escape[1]:
        return chr(int(escape[1], 16))
    return _UNESCAPES.get(escape[2], escape[2]) if escape[2] else '"'


@lru_cache(_CACHED)
def write_name(name: str) -> str:
    """A name, bare where it can be, here and in SQL."""
    plain = BARE_NAME.fullmatch(name) and not name[0].isdigit()
    return name if plain and name.casefold() not in _RESERVED else quote(name)


def write_names(names: Iterable[str]) -> str:
    """Names joined by commas."""
    return ", ".join(map(write_name, names))


def write_full_name(parts: Iterable[str]) -> str:
    """``database.schema.name`` with each part quoted where needed."""
    return ".".join(map(write_name, parts))


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


def write_values(values: Iterable[str], complete: bool = False) -> str:
    """``[a, b]``; when there are no others, ``[all: a, b]`` or ``[NULL only]``."""
    written = ", ".join(map(write_value, values))
    if complete:
        return f"[all: {written}]" if written else "[NULL only]"
    return f"[{written}]"


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

    def _token(self, bare: re.Pattern[str], what: str) -> str:
        quoted = self.line.startswith('"', self.at)
        found = (_QUOTED if quoted else bare).match(self.line, self.at)
        if not found:
            raise SchemaTextError(f"{'a quoted name has no end' if quoted else what}: {self.rest[:60]}")
        self.at = found.end()
        if not quoted:
            return found[0]
        text = _UNESCAPE.sub(_unescape, found[1]).encode("utf-16-be", "surrogatepass")
        return text.decode("utf-16-be", "surrogatepass")  # joins pairs of surrogates

    def _separated(self, read: Callable[[], str], by: str = ", ") -> list[str]:
        found = [read()]
        while self.take(by):
            found.append(read())
        return found

    def name(self) -> str:
        """A name."""
        return self._token(BARE_NAME, "a name is expected")

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
