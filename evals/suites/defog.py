"""defog's sql-eval: questions on SQLite or PostgreSQL, several accepted queries each (defog.ai)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import count
from pathlib import Path
from urllib.parse import quote

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.defog import DefogScorer, accepted_queries
from quorum.evals.suites.files import Item, on_files, read_items, sqlite_url, text_of
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
    lines = folder / LINES
    paths = [lines] if lines.is_file() else _tables(folder, FILES)
    found = []
    for id, item, path, number in _entries(paths):
        name = text_of(item, "db_name", path, number)
        places = [folder / pattern.format(name) for pattern in DATABASES]
        file = next((place for place in places if place.is_file()), places[0])
        found.append((_question(id, item, path, number, sqlite_url(file)), file))
    questions, missing = on_files(paths[0], found, source=f"{SOURCE}; databases are made with {DATA_SOURCE}")
    if paths != [lines]:
        missing = [*_lacking(paths, FILES), *missing]
    return Suite("defog", folder, questions, DefogScorer(), tuple(missing))


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
    paths = _tables(folder, ON_POSTGRES)
    questions = []
    for id, item, path, number in _entries(paths):
        url = pattern.replace(PLACE, quote(text_of(item, "db_name", path, number), safe=""))
        questions.append(_question(id, item, path, number, url, dialect="postgres"))
    missing = _lacking(paths, ON_POSTGRES)
    return Suite("defog-postgres", folder, tuple(questions), DefogScorer(), tuple(missing))


def _tables(folder: Path, names: Sequence[str]) -> list[Path]:
    """Return the files of questions of a checkout of sql-eval."""
    for inner in FOLDERS:
        if found := [path for name in names if (path := folder / inner / name).is_file()]:
            return found
    raise ConfigurationError(
        f"{folder} has neither {LINES} nor data/{names[0]}.", hint=f"Name a checkout of {SOURCE}."
    )


def _lacking(paths: Sequence[Path], names: Sequence[str]) -> list[str]:
    """Say which files of questions are not there."""
    there = {path.name for path in paths}
    return [f"Without {name}: get it from {SOURCE}." for name in names if name not in there]


def _entries(paths: Sequence[Path]) -> Iterator[tuple[str, Item, Path, int]]:
    """Yield each entry with its id, its place among all, and its file and number there."""
    place = count()
    for path in paths:
        strict = path.name not in ON_POSTGRES  # defog's own has a quote that is not doubled
        for number, item in enumerate(read_items(path, source=SOURCE, strict=strict)):
            yield f"{next(place):04}", item, path, number


def _question(
    id: str, item: Item, path: Path, number: int, url: str, dialect: str = "sqlite"
) -> EvalQuestion:
    database, text, query, category = (
        text_of(item, key, path, number) for key in ("db_name", "question", "query", "query_category")
    )
    instructions = str(item.get("instructions") or "").strip()
    return EvalQuestion(
        id=id,
        question=text,
        database=database,
        url=url,
        dialect=dialect,
        gold_sql=tuple(accepted_queries(query)),
        difficulty=category,
        knowledge={"instructions": instructions} if instructions else {},
        extra={"category": category, "query": query},
    )
