"""defog's sql-eval: questions on SQLite or PostgreSQL, several accepted queries each (defog.ai)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import quote

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.defog import DefogScorer, accepted_queries
from quorum.evals.suites.files import read_lines, read_table, sqlite_url, text_of
from quorum.knowledge.errors import ConfigurationError

SOURCE = "https://github.com/defog-ai/sql-eval"
DATA_SOURCE = "https://github.com/defog-ai/defog-data"
LINES = "questions.jsonl"
FILES = ("questions_gen_sqlite.csv", "instruct_basic_sqlite.csv", "instruct_advanced_sqlite.csv")
"""sql-eval's files of questions for SQLite, in the order in which their questions are numbered."""
ON_POSTGRES = tuple(name.replace("_sqlite", "_postgres") for name in FILES)
"""The same files for PostgreSQL, which the questions were first written for."""
PLACE = "{database}"
"""What a URL has in place of a database's name."""
FOLDERS = ("data", ".", "sql-eval/data")
DATABASES = (
    "databases/{}.sqlite",
    "sqlite_dbs/{}.db",
    "defog-data/sqlite_dbs/{}.db",
    "../defog-data/sqlite_dbs/{}.db",
)
"""Where the database of a name may lie."""


def load(folder: Path) -> Suite:
    """defog's questions: ``questions.jsonl`` and ``databases/<db>.sqlite``, or a checkout of sql-eval.

    A checkout holds the questions in ``data/*_sqlite.csv`` (``db_name``, ``query_category``, ``query``,
    ``question``, ``instructions``). The databases are made by ``python translate_ddl_dialect.py`` in a
    checkout of defog-data, which writes ``sqlite_dbs/<db>.db``: that checkout, or ``sqlite_dbs`` alone, is
    to lie in the folder or beside it.

    A question's id is its place among all questions, from ``0000``; its difficulty is its category, by
    which sql-eval groups its scores. Its instructions are external knowledge.

    Raises:
        ConfigurationError: The questions or all their databases are missing, or a question is damaged.
    """
    paths = _question_files(folder)
    questions, absent, count = [], set(), 0
    for path in paths:
        for number, item in enumerate(_items(path)):
            name = text_of(item, "db_name", path, number)
            if file := _database(folder, name):
                questions.append(_question(f"{count:04}", sqlite_url(file), item, path, number))
            else:
                absent.add(name)
            count += 1
    if not count:
        raise ConfigurationError(f"{paths[0]} holds no question.", hint=f"Get it again from {SOURCE}.")
    if not questions:
        raise ConfigurationError(
            f"{folder} has none of the databases of {paths[0].name}.",
            hint=f"They are {DATABASES[0].format('<db>')}, or {DATABASES[1].format('<db>')} as {DATA_SOURCE} "
            "makes them with translate_ddl_dialect.py.",
        )
    missing = tuple(_missing(paths, count - len(questions), absent))
    return Suite("defog", folder, tuple(questions), DefogScorer(), missing)


def load_on_server(folder: Path, pattern: str) -> Suite:
    """defog's questions on a PostgreSQL server, whose databases bear defog's names.

    Args:
        folder: A checkout of sql-eval, with ``data/*_postgres.csv``.
        pattern: The databases' URL, with ``{database}`` for the name.

    Raises:
        ConfigurationError: The URL is another engine's, or the questions are missing or damaged.
    """
    if not pattern.startswith(("postgresql://", "postgres://")):
        raise ConfigurationError(
            "defog's questions are written for SQLite and PostgreSQL.",
            hint=f"Write --db 'postgresql://user@host:5432/{PLACE}', or leave it out for SQLite.",
        )
    paths = [path for name in ON_POSTGRES if (path := _found(folder, name))]
    if not paths:
        raise ConfigurationError(
            f"{folder} has no data/{ON_POSTGRES[0]}.", hint=f"Name a checkout of {SOURCE}."
        )
    questions: list[EvalQuestion] = []
    for path in paths:
        for number, item in enumerate(_items(path)):
            url = pattern.replace(PLACE, quote(text_of(item, "db_name", path, number), safe=""))
            question = _question(f"{len(questions):04}", url, item, path, number)
            questions.append(replace(question, dialect="postgres"))
    lacking = [name for name in ON_POSTGRES if not _found(folder, name)]
    missing = tuple(f"Without {name}: get it from {SOURCE}." for name in lacking)
    return Suite("defog-postgres", folder, tuple(questions), DefogScorer(), missing)


def _found(folder: Path, name: str) -> Path | None:
    places = (folder / inner / name for inner in FOLDERS)
    return next((place for place in places if place.is_file()), None)


def _question(id: str, url: str, item: dict[str, Any], path: Path, number: int) -> EvalQuestion:
    query = text_of(item, "query", path, number)
    category = text_of(item, "query_category", path, number)
    instructions = str(item.get("instructions") or "").strip()
    return EvalQuestion(
        id=id,
        question=text_of(item, "question", path, number),
        database=text_of(item, "db_name", path, number),
        url=url,
        dialect="sqlite",
        gold_sql=tuple(accepted_queries(query)),
        difficulty=category,
        knowledge={"instructions": instructions} if instructions else {},
        extra={"category": category, "query": query},
    )


def _question_files(folder: Path) -> list[Path]:
    if (folder / LINES).is_file():
        return [folder / LINES]
    for inner in FOLDERS:
        if found := [path for name in FILES if (path := folder / inner / name).is_file()]:
            return found
    raise ConfigurationError(
        f"{folder} has neither {LINES} nor data/{FILES[0]}.", hint=f"Name a checkout of {SOURCE}."
    )


def _items(path: Path) -> list[dict[str, Any]]:
    if path.name == LINES:
        return read_lines(path, source=SOURCE)
    strict = path.name not in ON_POSTGRES  # defog's own has a quote that is not doubled
    return read_table(path, source=SOURCE, strict=strict)


def _database(folder: Path, name: str) -> Path | None:
    places = (folder / pattern.format(name) for pattern in DATABASES)
    return next((place for place in places if place.is_file()), None)


def _missing(paths: list[Path], count: int, absent: set[str]) -> Iterator[str]:
    """Say what the folder lacks."""
    names = {path.name for path in paths}
    lacking = [] if LINES in names else [name for name in FILES if name not in names]
    if lacking:
        yield f"Without {' and '.join(lacking)}: get {'them' if len(lacking) > 1 else 'it'} from {SOURCE}."
    if absent:
        left_out = "1 question is" if count == 1 else f"{count} questions are"
        files = ", ".join(DATABASES[0].format(name) for name in sorted(absent))
        yield f"{left_out} left out: {files} cannot be found. Databases are made with {DATA_SOURCE}."
