"""Spider 1.0: a list of questions and one SQLite file per database (Yu et al., 2018)."""

from __future__ import annotations

from pathlib import Path

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.spider1 import Spider1Scorer
from quorum.evals.suites.files import Item, on_files, read_list, sqlite_url, text_of

SOURCE = "https://yale-lily.github.io/spider"


def load(folder: Path) -> Suite:
    """The development split: ``dev.json`` and ``database/``; otherwise as ``load_test``."""
    return _load("spider1", folder, "dev.json", "database")


def load_test(folder: Path) -> Suite:
    """The test split, published in 2024: ``test.json`` (``db_id``, ``question``, ``query``) and
    ``test_database/<db>/<db>.sqlite``.

    A question's id is its place in the file, from ``0000``. Further SQLite files of a database, as the
    distilled test suite has them, are not asked.

    Raises:
        ConfigurationError: The questions' file or every database is missing, or a question is damaged.
    """
    return _load("spider1-test", folder, "test.json", "test_database")


def _load(name: str, folder: Path, questions_file: str, databases: str) -> Suite:
    path = folder / questions_file

    def make(item: Item, number: int, file: Path) -> EvalQuestion:
        return EvalQuestion(
            id=f"{number:04}",
            question=text_of(item, "question", path, number),
            database=file.stem,
            url=sqlite_url(file),
            dialect="sqlite",
            gold_sql=(text_of(item, "query", path, number),),
        )

    items = read_list(path, source=SOURCE)
    questions, missing = on_files(path, items, folder / databases, make, source=SOURCE)
    return Suite(name, folder, questions, Spider1Scorer(), missing)
