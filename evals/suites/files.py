"""What loaders share: JSON files that say where they are damaged, URLs of database files."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from quorum.knowledge.errors import ConfigurationError


def read_list(path: Path, *, source: str) -> list[dict[str, Any]]:
    """The objects of a JSON list.

    Args:
        source: Where the file is had, for the error.

    Raises:
        ConfigurationError: The file is missing, or is no list of objects.
    """
    try:
        items = json.loads(_text(path, source))
    except ValueError as error:
        raise ConfigurationError(
            f"{path} is no JSON: {error}.", hint=f"Get it again from {source}."
        ) from error
    if not isinstance(items, list) or not all(isinstance(item, dict) for item in items):
        raise ConfigurationError(f"{path} is no list of questions.", hint=f"Get it again from {source}.")
    return items


def read_lines(path: Path, *, source: str) -> list[dict[str, Any]]:
    """The objects of a JSON Lines file; blank lines are skipped.

    Raises:
        ConfigurationError: The file is missing, or a line is no object.
    """
    found = []
    for number, line in enumerate(_text(path, source).split("\n"), start=1):
        if line.strip():
            try:
                item = json.loads(line)
            except ValueError as error:
                raise ConfigurationError(f"Line {number} of {path} is no JSON: {error}.") from error
            if not isinstance(item, dict):
                raise ConfigurationError(f"Line {number} of {path} is no object.")
            found.append(item)
    return found


def _text(path: Path, source: str) -> str:
    if not path.is_file():
        raise ConfigurationError(f"There is no {path}.", hint=f"It is part of what {source} offers.")
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.") from error


def text_of(item: dict[str, Any], key: str, path: Path, number: int) -> str:
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
