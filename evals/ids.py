"""Ids of questions: what may be one, and files that name questions, one id per line."""

from __future__ import annotations

import re
from pathlib import Path

from quorum.knowledge.errors import ConfigurationError

_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,80}")  # what may name a run's folder (graph.trace)
ID_HINT = (
    "It names files: use at most 81 letters, digits, '-', '_', '.', the first of them a letter or digit."
)


def is_id(text: str) -> bool:
    """Whether a text may be a question's id."""
    return _ID.fullmatch(text) is not None


def read_ids(path: Path) -> tuple[str, ...]:
    """The ids in a file, each once, in its order; blank lines and lines that begin with ``#`` are skipped.

    Whether a suite knows them is ``quorum.evals.questions.Suite.chosen``'s to say.

    Raises:
        ConfigurationError: The file cannot be read, is no UTF-8 text, or names nothing.
    """
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise ConfigurationError(
            f"{path} is no UTF-8 text.", hint="Give a text file with one id per line."
        ) from error
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", hint="Give a text file with one id per line."
        ) from error
    lines = (line.strip() for line in text.splitlines())
    ids = tuple(dict.fromkeys(line for line in lines if line and not line.startswith("#")))
    if not ids:
        raise ConfigurationError(f"{path} names no question.", hint="Write one id per line.")
    return ids
