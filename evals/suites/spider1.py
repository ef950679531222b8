"""Spider 1.0: a list of questions and one SQLite file per database (Yu et al., 2018)."""

from __future__ import annotations

from pathlib import Path

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.spider1 import Spider1Scorer
from quorum.evals.suites.files import Item, on_files, on_sqlite, read_items, text_of

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

    def question(item: Item, number: int) -> tuple[EvalQuestion, Path]:
        database, text, gold = (text_of(item, key, path, number) for key in ("db_id", "question", "query"))
        file = folder / databases / database / f"{database}.sqlite"
        return on_sqlite(f"{number:04}", text, file, [gold]), file

    found = (question(item, number) for number, item in enumerate(read_items(path, source=SOURCE)))
    questions, missing = on_files(path, found, source=SOURCE)
    return Suite(name, folder, questions, Spider1Scorer(), tuple(missing))
