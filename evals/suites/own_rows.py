"""The lines of a file with own questions: JSON Lines, or CSV with a header, as fields by name."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

from quorum.knowledge.errors import ConfigurationError

JSON_LINES, CSV = ".jsonl", ".csv"
EXAMPLE = '{"question": "How many users are there?", "sql": "SELECT COUNT(*) FROM users"}'


@dataclass(frozen=True)
class Line:
    """A question as it is written.

    Attributes:
        path, number: Where it begins, from 1.
        values: By the field's name in lower case; what is null or blank is left out.
    """

    path: Path
    number: int
    values: dict[str, Any]

    def error(self, message: str, hint: str = "") -> ConfigurationError:
        """What is wrong with this line, to be raised."""
        return ConfigurationError(f"Line {self.number} of {self.path}: {message}", hint=hint)


def read_rows(path: Path) -> Iterator[Line]:
    """The questions of a file, JSON Lines or CSV by its name; blank lines are skipped.

    Raises:
        ConfigurationError: It cannot be read, is no UTF-8 text, or a line is damaged.
    """
    kind = path.suffix.lower()
    if kind not in (JSON_LINES, CSV):
        raise ConfigurationError(
            f"{path} is neither .jsonl nor .csv.", hint="Own questions are JSON Lines or CSV with a header."
        )
    text = _text(path)
    return _json_lines(path, text) if kind == JSON_LINES else _csv(path, text)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", hint="Name a file with your questions."
        ) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            f"Line {line} of {path} is no UTF-8 text.", hint="Save it as UTF-8."
        ) from error


def _json_lines(path: Path, text: str) -> Iterator[Line]:
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would cut at U+2028, too
        if not line.strip():
            continue
        empty = Line(path, number, {})
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            hint = f"Write one object a line, like {EXAMPLE}."
            raise empty.error(f"this is no JSON: {error}.", hint) from error
        if not isinstance(item, dict):
            raise empty.error("this is no JSON object.", f"Write one a line, like {EXAMPLE}.")
        if not _encodable(item):
            raise empty.error("it holds half a character (\\ud800 to \\udfff).", "Save it as UTF-8 again.")
        yield Line(path, number, _values(empty, item.items()))


def _encodable(item: object) -> bool:
    try:
        json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _csv(path: Path, text: str) -> Iterator[Line]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    number = 1
    try:
        for record in reader:
            if any(map(str.strip, record)):
                line = Line(path, number, {})
                if header is None:
                    header = _header(line, record)
                else:
                    yield Line(path, number, _values(line, _fields(line, header, record)))
            number = reader.line_num + 1
    except csv.Error as error:
        hint = "Put texts with commas, quotes or line ends in quotes, and write a quote inside them twice."
        raise Line(path, number, {}).error(f"this is no CSV: {error}.", hint) from error


def _header(line: Line, record: list[str]) -> list[str]:
    names = [name.strip().lower() for name in record]
    if "question" in names:
        return names
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise line.error("the header has no commas.", "Separate the fields by commas.")
    raise line.error("the header has no field question.", "The first line names the fields: question,sql,…")


def _fields(line: Line, header: list[str], record: list[str]) -> Iterator[tuple[str, str]]:
    if len(record) > len(header):
        raise line.error(
            f"there are {len(record)} fields, the header names {len(header)}.",
            "Put texts with commas in quotes.",
        )
    return zip(header, record, strict=False)


def _values(line: Line, items: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in items:
        key = name.strip().lower()
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if key in values:
            raise line.error(f"there are two fields {key}.", "Keep one of them.")
        values[key] = value
    return values
