"""Folders that are read and files that are written, with messages for people where that fails."""

from __future__ import annotations

from pathlib import Path

from quorum.knowledge.atomic import replace_file
from quorum.knowledge.errors import ConfigurationError


def check_folder(path: Path, *, hint: str) -> None:
    """Check that there is such a folder.

    Raises:
        ConfigurationError: There is none, or it is a file.
    """
    if path.is_dir():
        return
    if path.exists():
        raise ConfigurationError(f"{path} is a file, not a folder.", hint=hint)
    raise ConfigurationError(f"There is no folder {path}.", hint=hint)


def check_no_file(path: Path, *, hint: str) -> None:
    """Check that ``path`` can be a folder that is written to.

    Raises:
        ConfigurationError: It, or a folder that it would lie in, is a file.
    """
    for place in (path, *path.parents):
        if place.exists() and not place.is_dir():
            raise ConfigurationError(f"{place} is a file, not a folder.", hint=hint)


def write_bytes(path: Path, made: bytes) -> None:
    """Write a file and its folder, the file whole or not at all.

    Raises:
        ConfigurationError: It cannot be written.
    """
    if path.is_dir():
        raise ConfigurationError(f"{path} is a folder, not a file.", hint="Name a file to write.")
    check_no_file(path.parent, hint="Name another file to write.")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, made)
    except OSError as error:
        message = f"Cannot write {path}: {error.strerror}."
        raise ConfigurationError(message, hint="Name another file to write.") from error


def write_text(path: Path, text: str) -> None:
    """Write a file in UTF-8 as ``write_bytes``."""
    write_bytes(path, text.encode())
