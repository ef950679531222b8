"""Where a Spider 2.0 folder keeps databases, external knowledge and gold, and what of it is missing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase
from urllib.parse import quote

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.spider2_rules import STANDARDS, Edition, Spider2Gold, load_gold
from quorum.evals.submissions.predictions import read_sql
from quorum.evals.suites.files import read_lines, sqlite_url, text_of
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.folder import find_database_folders

SOURCE = "https://github.com/xlang-ai/Spider2"
DATABASES = Path("resource", "databases")
DOCUMENTS = Path("resource", "documents")
GOLD = Path("evaluation_suite", "gold")
GOLD_TABLES = Path("methods", "gold-tables")
"""Beside the edition's folder: the tables that each question needs, for runs with "oracle tables"."""

FILES = (
    "resource/databases/spider2-localdb/*.sqlite",
    "resource/databases/*.sqlite",
    "resource/databases/*/*.sqlite",
    "resource/*/*.sqlite",
)
"""Where SQLite files are looked for, best place first."""

DOCUMENT = "document"
"""Key of ``EvalQuestion.extra``: the name of the question's document, whether or not that is there."""

MEDIUM, HARD = 80, 160
"""Least tokens of the gold SQL of a medium and of a hard question (Spider 2.0's paper)."""

NAMED = 12
"""Names that a remark on what is missing lists."""


@dataclass
class Places:
    """Where databases lie. A name's case, and what stands between its letters, may differ on disk.

    Attributes:
        folder: Of the edition.
    """

    folder: Path
    _schemas: dict[str, dict[str, Path]] = field(default_factory=dict)

    def file_url(self, database: str) -> str:
        """Of the database's SQLite file; empty if there is none."""
        file = self._files.get(_key(database))
        return sqlite_url(file) if file else ""

    def schema_url(self, engine: str, database: str) -> str:
        """Of the folder that describes the database; empty if there is none."""
        if engine not in self._schemas:
            self._schemas[engine] = self._described(engine)
        schema = self._schemas[engine].get(_key(database))
        return f"schema://{quote(str(schema.absolute()))}" if schema else ""

    @cached_property
    def _files(self) -> dict[str, Path]:
        found = [path for pattern in FILES for path in sorted(self.folder.glob(pattern))]
        return {_key(path.stem): path for path in reversed(found)}

    def _described(self, engine: str) -> dict[str, Path]:
        databases = self.folder / DATABASES
        own = databases / engine
        try:
            found = find_database_folders(own if own.is_dir() else databases)
        except ConfigurationError:  # none at all: said of the questions that want one
            return {}
        return {_key(path.name): path for path in reversed(found) if path.parent in (own, databases)}


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.casefold())


@dataclass
class ExternalKnowledge:
    """The documents that questions come with, each read once.

    Attributes:
        folder: Holds them.
    """

    folder: Path
    _texts: dict[str, str | None] = field(default_factory=dict)

    def of(self, name: str) -> dict[str, str]:
        """The document of that file name by it; none where there is no name or no such file.

        Raises:
            ConfigurationError: It cannot be read.
        """
        name = Path(name).name
        if name and name not in self._texts:
            path = self.folder / name
            self._texts[name] = _text(path) if path.is_file() else None
        text = self._texts.get(name)
        return {} if text is None else {name: text}


def gold_tables(folder: Path, edition: Edition) -> dict[str, tuple[str, ...]]:
    """The tables that questions need, by id, as the benchmark publishes them; empty if they are not there.

    Args:
        folder: Of the edition, as it lies in the repository.

    Raises:
        ConfigurationError: The file is damaged.
    """
    path = folder.absolute().parent / GOLD_TABLES / f"spider2-{edition}-gold-tables.jsonl"
    lines = read_lines(path, source=SOURCE) if path.is_file() else []
    found = {}
    for number, item in enumerate(lines, start=1):
        names = item.get("gold_tables")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"Entry {number} of {path} names no tables.", hint="Get the file again.")
        found[text_of(item, "instance_id", path, number)] = tuple(dict.fromkeys(names))
    return found


def absent_documents(questions: Sequence[EvalQuestion]) -> tuple[str, ...]:
    """Of the documents that the questions come with, those that are not there."""
    named = ((question.extra.get(DOCUMENT), question) for question in questions)
    absent = list(dict.fromkeys(name for name, question in named if name and name not in question.knowledge))
    where = f"{DOCUMENTS} of {SOURCE} has them."
    return (f"No external knowledge, for want of {listed(absent)}: {where}",) if absent else ()


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(f"{path} cannot be read: {error}.", hint=f"Get it from {SOURCE}.") from error


class Gold:
    """The gold of an edition; a folder that is not there has none.

    Args:
        folder: ``evaluation_suite/gold``.

    Attributes:
        results: The gold results.

    Raises:
        ConfigurationError: The folder is there, and is damaged.
    """

    def __init__(self, folder: Path, edition: Edition) -> None:
        self.folder = folder
        self.there = folder.is_dir()
        self.results = load_gold(folder) if self.there else Spider2Gold(folder, edition, {}, {})
        self._tokens = _tokens(folder) if self.there else {}

    def sql(self, id: str) -> tuple[str, ...]:
        """``<id>.sql``, and ``<id>_a.sql``, … if there are such.

        Raises:
            ConfigurationError: One cannot be read.
        """
        names = [f"{id}.sql", *(f"{id}_{letter}.sql" for letter in ascii_lowercase)]
        paths = (self.folder / "sql" / name for name in names)
        return tuple(sql for path in paths if path.is_file() and (sql := read_sql(path)))

    def difficulty(self, id: str, gold_sql: Sequence[str]) -> str:
        """``easy``, ``medium`` or ``hard`` by the gold SQL's number of tokens; empty if that is not known.

        The benchmark states the number for Lite (``toks`` in ``spider2lite_eval.jsonl``), for questions too
        whose gold SQL it keeps back, and counts what blanks separate: so the number is counted here where
        it states none.
        """
        counted = len(gold_sql[0].split()) if gold_sql else 0
        tokens = self._tokens.get(id, counted)
        if not tokens:
            return ""
        return "easy" if tokens < MEDIUM else "medium" if tokens < HARD else "hard"

    def missing(self, questions: Sequence[EvalQuestion]) -> tuple[str, ...]:
        """What these questions lack."""
        if not self.there:
            return (f"Nothing can be scored: there is no {GOLD}. {SOURCE} has it.",)
        unscored = [q.id for q in questions if not self.results.files.get(q.id)]
        unlinked = [q.id for q in questions if not q.gold_sql]
        sentences = []
        if unscored:
            sentences.append(
                f"No gold result, so not scored: {amount(unscored)} ({listed(unscored)}). {SOURCE} may have"
                f" it in {GOLD}/exec_result."
            )
        if unlinked:
            sentences.append(
                f"No gold SQL, so linking is not scored: {amount(unlinked)}. {SOURCE} has it for a part of"
                f" the questions only, in {GOLD}/sql."
            )
        return tuple(sentences)


def _tokens(folder: Path) -> dict[str, int]:
    """The numbers of tokens that the benchmark states."""
    lines = read_lines(next(folder.glob(STANDARDS)), source=SOURCE)
    return {
        item["instance_id"]: int(toks) for item in lines if (toks := str(item.get("toks", ""))).isdecimal()
    }


def amount(questions: Sequence[object]) -> str:
    """How many questions, in words."""
    return "1 question" if len(questions) == 1 else f"{len(questions)} questions"


def listed(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more
