"""The tokens of schema text: names, types, values and descriptions, written and read back.

Every ``write_*`` has a ``read_*`` that starts at an index and returns the value and the index
behind it. ``quorum.knowledge.schema_text`` defines the format as a whole.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
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
_AFTER_TYPE = re.compile(r"\[|(?:PK|NOT NULL|->|--)(?:[ ^]|$)|$")
_CACHED = 1 << 16  # the same few names, types and texts come back at every level of detail
_KEYWORDS = frozenset({"primary", "foreign"})
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

    def escape(char: str) -> str:
        if char in _ESCAPES:
            return _ESCAPES[char]
        if char.isprintable() or char == " ":
            return char
        return "".join(f"\\u{unit:04x}" for unit in _utf16(char))

    return '"' + "".join(map(escape, text)) + '"'


def _utf16(char: str) -> Iterable[int]:
    raw = char.encode("utf-16-be", "surrogatepass")
    return (int.from_bytes(raw[i : i + 2]) for i in range(0, len(raw), 2))


def read_quoted(line: str, at: int) -> tuple[str, int]:
    """The inverse of ``quote`` for the quoted token at index ``at``."""
    found = _QUOTED.match(line, at)
    if not found:
        raise SchemaTextError(f"a quoted name has no end: {line[at : at + 60]}")

    def unescape(part: re.Match[str]) -> str:
        if part[1]:
            return chr(int(part[1], 16))
        return _UNESCAPES.get(part[2], part[2]) if part[2] else '"'

    text = _UNESCAPE.sub(unescape, found[1])
    if re.search("[\ud800-\udbff][\udc00-\udfff]", text):
        text = text.encode("utf-16-be", "surrogatepass").decode("utf-16-be", "surrogatepass")
    return text, found.end()


@lru_cache(_CACHED)
def write_name(name: str) -> str:
    """A name, bare where it can be, here and in SQL."""
    plain = BARE_NAME.fullmatch(name) and not name[0].isdigit()
    if plain and name not in _KEYWORDS and name.casefold() not in _RESERVED:
        return name
    return quote(name)


def read_name(line: str, at: int) -> tuple[str, int]:
    """A bare or quoted name at index ``at``."""
    if line[at : at + 1] == '"':
        return read_quoted(line, at)
    found = BARE_NAME.match(line, at)
    if not found:
        raise SchemaTextError(f"a name is expected: {line[at : at + 60]}")
    return found[0], found.end()


def write_full_name(parts: Iterable[str]) -> str:
    """``database.schema.name`` with each part quoted where needed."""
    return ".".join(map(write_name, parts))


def read_full_name(line: str, at: int) -> tuple[tuple[str, ...], int]:
    """The parts of a dotted name at index ``at``."""
    part, at = read_name(line, at)
    parts = [part]
    while line[at : at + 1] == ".":
        part, at = read_name(line, at + 1)
        parts.append(part)
    return tuple(parts), at


def read_names(line: str, at: int) -> tuple[list[str], int]:
    """Names joined by ``, ``."""
    name, at = read_name(line, at)
    names = [name]
    while line.startswith(", ", at):
        name, at = read_name(line, at + 2)
        names.append(name)
    return names, at


@lru_cache(_CACHED)
def write_path(path: str) -> str:
    """A nested path, bare where it can be."""
    return path if BARE_PATH.fullmatch(path) else quote(path)


def read_paths(line: str, at: int) -> tuple[list[str], int]:
    """Nested paths joined by ``, ``."""
    paths = []
    while True:
        if line[at : at + 1] == '"':
            path, at = read_quoted(line, at)
        else:
            found = BARE_PATH.match(line, at)
            if not found:
                raise SchemaTextError(f"a path is expected: {line[at : at + 60]}")
            path, at = found[0], found.end()
        paths.append(path)
        if not line.startswith(", ", at):
            return paths, at
        at += 2


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
def write_type(text: str) -> str:
    """A type in the engine's words; quoted when empty or when it could be misread."""
    plain = text.isprintable() and text == text.strip() and text[:1] not in {"", '"'}
    balanced = text.count("(") == text.count(")") and text.count("<") == text.count(">")
    if plain and balanced and _bare_type_end(text + " PK", 0) == len(text):
        return text
    return quote(text)


def read_type(line: str, at: int) -> tuple[str, int]:
    """A type at index ``at``, up to the first mark behind it."""
    if line[at : at + 1] == '"':
        return read_quoted(line, at)
    end = _bare_type_end(line, at)
    return line[at:end], end


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


def read_values(line: str, at: int) -> tuple[tuple[str, ...], bool, int]:
    """The values of ``[a, b]`` at index ``at``, and whether it says that there are no others."""
    if line.startswith("[NULL only]", at):
        return (), True, at + len("[NULL only]")
    complete = line.startswith("[all: ", at)
    at += len("[all: ") if complete else 1
    values = []
    while True:
        if line[at : at + 1] == '"':
            value, at = read_quoted(line, at)
        else:
            start = at
            while at < len(line) and line[at] not in ",]":
                at += 1
            value = line[start:at]
        values.append(value)
        if line.startswith(", ", at):
            at += 2
        elif line[at : at + 1] == "]":
            return tuple(values), complete, at + 1
        else:
            raise SchemaTextError(f"sample values have no end: {line[:60]}")


@lru_cache(_CACHED)
def one_line(text: str, limit: int | None = None) -> str:
    """The text with every run of blanks as one blank; cut to ``limit`` characters with ``…``."""
    joined = " ".join(text.split())
    if limit is None or len(joined) <= limit:
        return joined
    return joined[: max(limit - 1, 0)].rstrip() + "…"
