"""What loaders share: JSON files that say where they are damaged, and questions on SQLite files."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, TypeAlias
from urllib.parse import quote

from quorum.evals.questions import EvalQuestion
from quorum.evals.reports.format import count, listed
from quorum.knowledge.errors import ConfigurationError

Item: TypeAlias = dict[str, Any]
"""An entry of a questions' file."""


def read_list(path: Path, *, source: str) -> list[Item]:
    """The objects of a JSON list.

    Args:
        source: Where to get the file, for the error.

    Raises:
        ConfigurationError: The file is missing, or is no list of objects.
    """
    try:
        items = json.loads(read_text(path, source))
    except ValueError as error:
        raise ConfigurationError(
            f"{path} is no JSON: {error}.", hint=f"Get it again from {source}."
        ) from error
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigurationError(f"{path} is no list of questions.", hint=f"Get it again from {source}.")
    return items


def read_lines(path: Path, *, source: str) -> list[Item]:
    """The objects of a JSON Lines file; blank lines are skipped.

    Raises:
        ConfigurationError: The file is missing, or a line is no object.
    """
    found = []
    for number, line in enumerate(read_text(path, source).split("\n"), start=1):
        if line.strip():
            try:
                item = json.loads(line)
            except ValueError as error:
                raise ConfigurationError(f"Line {number} of {path} is no JSON: {error}.") from error
            if not isinstance(item, dict):
                raise ConfigurationError(f"Line {number} of {path} is no object.")
            found.append(item)
    return found


def read_table(path: Path, *, source: str, strict: bool = True) -> list[Item]:
    """Return the rows of a CSV file by the names in its header.

    Args:
        strict: Refuse a file that is cut within quotes.

    Raises:
        ConfigurationError: The file cannot be read, or is damaged.
    """
    csv.field_size_limit(sys.maxsize)
    try:
        with path.open(encoding="utf-8-sig", newline="") as lines:
            return list(csv.DictReader(lines, strict=strict))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error}.", hint=f"Get it again from {source}."
        ) from error


def read_text(path: Path, source: str) -> str:
    """Read a file of a benchmark.

    Raises:
        ConfigurationError: It is missing, or no UTF-8 text.
    """
    if not path.is_file():
        raise ConfigurationError(f"There is no {path}.", hint=f"It is part of what {source} offers.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error


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
