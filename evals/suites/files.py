"""What loaders share: JSON files that say where they are damaged, and questions on SQLite files."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from io import StringIO
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count, listed
from quorum.knowledge.errors import ConfigurationError, read_errors

Item: TypeAlias = dict[str, Any]
"""An entry of a questions' file."""


def read_items(path: Path, *, source: str, strict: bool = True) -> list[Item]:
    """Return the entries of a JSON list or of JSON Lines, or the rows of a CSV file by its header's names.

    Args:
        source: Where to get the file, for errors.
        strict: Refuse a CSV file that is cut within quotes.

    Raises:
        ConfigurationError: The file is missing, cannot be read, or holds something else.
    """
    text, again = read_text(path, source, newline=""), f"Get it again from {source}."
    with read_errors(path, hint=again):
        if path.suffix == ".csv":
            csv.field_size_limit(sys.maxsize)
            return list(csv.DictReader(StringIO(text, newline=""), strict=strict))
        items = json.loads(text) if path.suffix == ".json" else list(_json_lines(text))
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigurationError(f"{path} is no list of questions.", hint=again)
    return items


def _json_lines(text: str) -> Iterator[Any]:
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            try:
                item = json.loads(line)
            except ValueError as error:
                raise ValueError(f"line {number} is no JSON: {error}") from error
            if not isinstance(item, dict):
                raise ValueError(f"line {number} is no object")
            yield item


def read_text(path: Path, source: str, newline: str | None = None) -> str:
    """Read a file of a benchmark.

    Args:
        newline: As of ``open``.

    Raises:
        ConfigurationError: It is missing, or no UTF-8 text.
    """
    if not path.is_file():
        raise ConfigurationError(f"There is no {path}.", hint=f"It is part of what {source} offers.")
    with read_errors(path), path.open(encoding="utf-8-sig", newline=newline) as file:
        return file.read()


def text_of(item: Item, key: str, path: Path, number: int) -> str:
    """A text that an entry must have.

    Raises:
        ConfigurationError: It is missing or no text.
    """
    value = item.get(key)
    if not isinstance(value, str) or not value.strip():
        raise ConfigurationError(f"Entry {number} of {path} has no {key}.", hint="Get the file again.")
    return value


def sqlite_url(path: Path) -> str:
    """The URL of a SQLite file."""
    return f"sqlite:///{quote(str(path.resolve()))}"


def on_sqlite(id: str, question: str, file: Path, gold: Sequence[str], **more: Any) -> EvalQuestion:
    """Return a question on a SQLite file, which names its database.

    Args:
        more: Further fields, which count before these.
    """
    usual: dict[str, Any] = {"database": file.stem, "url": sqlite_url(file), "dialect": "sqlite"}
    return EvalQuestion(id=id, question=question, gold_sql=tuple(gold), **(usual | more))


def on_files(
    path: Path, found: Iterable[tuple[EvalQuestion, Path]], *, source: str
) -> tuple[tuple[EvalQuestion, ...], list[str]]:
    """Return the questions whose database's file is there, and what the folder lacks.

    Args:
        path: The questions' file, for errors.
        source: Where to get all of it.

    Raises:
        ConfigurationError: No question or no database is there, or two questions have one id.
    """
    questions: dict[str, EvalQuestion] = {}
    absent: list[Path] = []
    for question, file in found:
        if not file.is_file():
            absent.append(file)
        elif question.id in questions:
            hint = f"Get it again from {source}."
            raise ConfigurationError(f"{path} has two questions {question.id}.", hint=hint)
        else:
            questions[question.id] = question
    if not questions:
        what = "none of the databases of" if absent else "no question in"
        lacks = f"The first would be {absent[0]}. " if absent else ""
        hint = f"{lacks}Get them from {source}."
        raise ConfigurationError(f"{path.parent} has {what} {path.name}.", hint=hint)
    names = listed(sorted({file.name for file in absent}))
    lacks = f"Left out for want of {names}: {count(len(absent), 'question')}. Get them from {source}."
    return tuple(questions.values()), [lacks] if absent else []
