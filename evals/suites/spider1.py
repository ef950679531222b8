"""Spider 1.0: ``dev.json`` and one SQLite file per database (Yu et al., 2018)."""

from __future__ import annotations

from pathlib import Path

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.spider1 import Spider1Scorer
from quorum.evals.scorers.spider1_hardness import hardness
from quorum.evals.suites.files import read_list, sqlite_url, text_of
from quorum.knowledge.errors import ConfigurationError

SOURCE = "https://yale-lily.github.io/spider"
QUESTIONS = "dev.json"
DATABASES = "database"


def load(folder: Path) -> Suite:
    """Spider's folder: ``dev.json`` (``db_id``, ``question``, ``query``) and ``database/<db>/<db>.sqlite``.

    A question's id is its place in ``dev.json``, from ``0000``; its difficulty is Spider's hardness of the
    gold SQL. Further SQLite files of a database, as the distilled test suite has them, are not asked.

    Raises:
        ConfigurationError: ``dev.json`` or every database is missing, or a question is damaged.
    """
    path = folder / QUESTIONS
    items = read_list(path, source=SOURCE)
    questions, absent = [], set()
    for number, item in enumerate(items):
        name = text_of(item, "db_id", path, number)
        file = folder / DATABASES / name / f"{name}.sqlite"
        if not file.is_file():
            absent.add(name)
            continue
        gold = text_of(item, "query", path, number)
        questions.append(
            EvalQuestion(
                id=f"{number:04}",
                question=text_of(item, "question", path, number),
                database=name,
                url=sqlite_url(file),
                dialect="sqlite",
                gold_sql=(gold,),
                difficulty=hardness(gold),
            )
        )
    if not questions:
        raise ConfigurationError(
            f"{folder} has none of the databases of {path.name}.",
            hint=f"They lie in {DATABASES}/<db>/<db>.sqlite of Spider's download ({SOURCE}).",
        )
    missing: tuple[str, ...] = ()
    if absent:
        count, names = len(items) - len(questions), ", ".join(sorted(absent))
        missing = (f"{count} questions are left out: {DATABASES}/ lacks {names}. Get them from {SOURCE}.",)
    return Suite("spider1", folder, tuple(questions), Spider1Scorer(), missing)
