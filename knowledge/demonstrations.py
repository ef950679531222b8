"""Demonstrations: answered questions whose queries show a model the style of the answers (few-shot).

A file of JSON lines, ``{"question": …, "sql": …, "database": …}``; ``database`` may be absent, other
keys are ignored. Or the training questions of Spider 1.0 (``train_spider.json``) or BIRD (``train.json``)
as they are published: a JSON list with the SQL as ``query`` or ``SQL`` and the database as ``db_id``. SSEV
shows the nine most similar (paper 004, sections 3.1.1 and 4.1.1).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from quorum.knowledge.errors import ConfigurationError, read_errors
from quorum.knowledge.search.index import Embedder, TextIndex

SHOTS = 9  # 004, section 4.1.1: all models, 9-shot
_FORM = 'A line is {"question": "How many orders are there?", "sql": "SELECT COUNT(*) FROM orders"}.'

_PUBLISHED = {"query": "sql", "SQL": "sql", "db_id": "database"}


@dataclass(frozen=True)
class Demonstration:
    """A question and the query that answers it; ``database`` names the one it was asked of, or is empty."""

    question: str
    sql: str
    database: str = ""


@dataclass(eq=False)
class Demonstrations:
    """Answered questions, searched by likeness to a new one.

    Attributes:
        items: In the order of the file, repetitions left out.
    """

    items: tuple[Demonstration, ...]

    @classmethod
    def load(cls, path: Path) -> Demonstrations:
        """Read a file of JSON lines, whose empty lines are skipped, or a benchmark's JSON list.

        Raises:
            ConfigurationError: The file cannot be read, has no demonstration, or a line or entry is none;
                the message gives its number.
        """
        with read_errors(path):
            text = path.read_text(encoding="utf-8-sig")
        items = tuple(dict.fromkeys(_read(path, text)))
        if not items:
            raise ConfigurationError(f"There is no demonstration in {path}.", hint=_FORM)
        return cls(items)

    def nearest(
        self, question: str, k: int = SHOTS, *, embedder: Embedder | None = None
    ) -> list[Demonstration]:
        """The ``k`` demonstrations whose questions are most like ``question``, best first.

        By shared words (BM25), or by embedding with an ``embedder``. Equals keep the order of the file, and
        so do those that share nothing with the question, which come last: a fixed number of shots is part
        of the method. The question itself is never among them, whatever its case, spaces and last mark, and
        whichever database it was asked of: it would show its own answer.

        Raises:
            ConfigurationError: The embedder's package or model is missing.
        """
        asked = _same(question)
        scores = dict(self._index.search(question, len(self.items), embedder))
        others = [i for i, item in enumerate(self.items) if _same(item.question) != asked]
        others.sort(key=lambda i: (-scores.get(i, 0.0), i))
        return [self.items[i] for i in others[:k]]

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex([item.question for item in self.items])


def _same(question: str) -> str:
    """Equal for texts that ask the same words, whatever their case, blanks and last mark."""
    return " ".join(question.casefold().split()).rstrip(" ?.!")


def _read(path: Path, text: str) -> Iterator[Demonstration]:
    if text.lstrip().startswith("["):
        for number, item in enumerate(_json(f"{path}", text), start=1):
            yield _demonstration(f"{path}, entry {number}", _as_line(item))
        return
    for number, line in enumerate(text.split("\n"), start=1):
        if line.strip():
            where = f"{path}, line {number}"
            yield _demonstration(where, _json(where, line))


def _json(where: str, text: str) -> Any:
    with read_errors(f"{where},", hint=_FORM):
        return json.loads(text)


def _as_line(item: Any) -> Any:
    """A published entry with a line's keys; what Spider calls ``sql`` is the parsed query."""
    if not isinstance(item, dict):
        return item
    return {_PUBLISHED.get(name, name): value for name, value in item.items() if name != "sql"}


def _demonstration(where: str, found: Any) -> Demonstration:
    if not isinstance(found, dict):
        raise ConfigurationError(f"{where}, is no JSON object.", hint=_FORM)
    values = {name: found.get(name) for name in ("question", "sql")} | {
        "database": found.get("database") or ""
    }
    for name, value in values.items():
        if not isinstance(value, str) or (name != "database" and not value.strip()):
            wrong = f"{name} is {value!r}" if name in found else f"there is no {name}"
            raise ConfigurationError(f"{where}: {wrong}; it must be text.", hint=_FORM)
    return Demonstration(*(str(values[name]).strip() for name in ("question", "sql", "database")))
