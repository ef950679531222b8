"""BIRD: ``dev.json`` or mini-dev's file, and one SQLite file per database (Li et al., 2023)."""

from __future__ import annotations

from pathlib import Path

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.bird import BirdScorer
from quorum.evals.suites.files import Item, on_files, on_sqlite, read_items, text_of
from quorum.knowledge.errors import ConfigurationError

SOURCE = "https://bird-bench.github.io"
LAYOUTS = {
    "dev.json": "dev_databases",
    "mini_dev_sqlite.json": "dev_databases",
    "mini_dev_sqlite.jsonl": "dev_databases",
    "train.json": "train_databases",
}
"""Files of questions, and the folder beside each that holds its databases."""

NO_EVIDENCE = "False"
"""What BIRD's first release wrote where a question has no evidence."""


def load(folder: Path) -> Suite:
    """BIRD's folder, or the one folder in it that holds the questions, as the downloads unpack to.

    Questions have ``db_id``, ``question``, ``evidence``, ``SQL`` and ``difficulty``; databases lie in
    ``dev_databases/<db>/<db>.sqlite``, the descriptions of their columns in ``database_description/*.csv``
    next to them, read when the database is opened (``quorum.knowledge.definitions``). A
    question's id is its ``question_id``, or its place where the first release has none.

    Raises:
        ConfigurationError: The questions or every database is missing, or a question is damaged.
    """
    path = _questions_file(folder)
    databases = path.parent / LAYOUTS[path.name]

    def question(item: Item, number: int) -> tuple[EvalQuestion, Path]:
        database, text, gold = (text_of(item, key, path, number) for key in ("db_id", "question", "SQL"))
        file = databases / database / f"{database}.sqlite"
        evidence = str(item.get("evidence") or "").strip()
        more = {
            "difficulty": str(item.get("difficulty") or ""),
            "knowledge": {"evidence": evidence} if evidence not in ("", NO_EVIDENCE) else {},
        }
        return on_sqlite(str(item.get("question_id", number)), text, file, [gold], **more), file

    found = (question(item, number) for number, item in enumerate(read_items(path, source=SOURCE)))
    questions, missing = on_files(path, found, source=SOURCE)
    return Suite("bird", folder, questions, BirdScorer(), tuple(missing))


def _questions_file(folder: Path) -> Path:
    """The file of questions in the folder, else in a folder of it."""
    for places in ([folder], sorted(path for path in folder.iterdir() if path.is_dir())):
        found = [place / name for place in places for name in LAYOUTS if (place / name).is_file()]
        if len(found) > 1:
            raise ConfigurationError(
                f"{folder} holds several sets of questions: {', '.join(map(str, found))}.",
                hint="Give the folder of one; put the others, with a link to the databases, elsewhere.",
            )
        if found:
            return found[0]
    raise ConfigurationError(
        f"{folder} has none of {', '.join(LAYOUTS)}.", hint=f"They are part of what {SOURCE} offers."
    )
