"""AMBROSIA: questions that may have several right readings, on SQLite (Saparina and Lapata, 2024)."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.ambrosia import AMBIGUOUS, PLAIN, AmbrosiaScorer
from quorum.evals.suites.files import on_files, on_sqlite, read_items, text_of
from quorum.knowledge.errors import ConfigurationError

SOURCE = "https://ambrosia-benchmark.github.io"
LINES, TABLE = "questions.jsonl", "ambrosia.csv"
TABLES = ("ambrosia.csv", "data/ambrosia.csv", "ambrosia_resplit.csv", "data/ambrosia_resplit.csv")
"""Where the download's table of questions may lie; the second edition is that of the authors' later work."""
EXAMPLES = "few_shot_examples"
"""The split that is shown to systems and not asked."""
IN_ONE_TABLE = " Show them in one table."
"""What the official program adds to the questions with an ambiguous attachment."""
_NEXT_QUERY = re.compile(r"(?:\r?\n){2,}(?=\s*(?:select|with)\b)", re.IGNORECASE)


def load(folder: Path) -> Suite:
    """``questions.jsonl`` with ``databases/<database>.sqlite``, or the download as it is published.

    The download holds ``data/ambrosia.csv`` (``question``, ``gold_queries`` with blank lines between,
    ``ambig_type``, ``is_ambiguous``, ``db_file``, ``split``) and its databases as
    ``data/<kind>/<domain>/<database>/<database>.sqlite``; the folder is ``data`` or the one around it. Its
    few-shot examples are left out. An id is the row's place in the table, from ``0000``. Its databases'
    names tell what is ambiguous, so the agents see neutral ones, such as ``banking_03``.

    A question's groups are whether it is ambiguous and the kind of ambiguity; its difficulty is both.

    Raises:
        ConfigurationError: The questions or all their databases are missing, or a question is damaged.
    """
    if (path := folder / LINES).is_file():
        found = _of_lines(path)
    else:
        path = next((folder / name for name in TABLES if (folder / name).is_file()), folder / TABLE)
        if not path.is_file():
            message = f"{folder} has neither {LINES} nor {TABLE}."
            raise ConfigurationError(message, hint=f"Get the data from {SOURCE}.")
        found = _of_table(path, read_items(path, source=SOURCE))
    questions, missing = on_files(path, found, source=SOURCE)
    return Suite("ambrosia", folder, questions, AmbrosiaScorer(), tuple(missing))


def _of_lines(path: Path) -> Iterator[tuple[EvalQuestion, Path]]:
    for number, item in enumerate(read_items(path, source=SOURCE), start=1):
        gold = item.get("gold")
        if not isinstance(gold, list) or not all(isinstance(sql, str) for sql in gold):
            raise ConfigurationError(f"Entry {number} of {path} has no gold.")
        id, name, text, kind = (
            text_of(item, key, path, number) for key in ("id", "database", "question", "kind")
        )
        file = path.parent / "databases" / f"{name}.sqlite"
        yield _question(id, text, kind, gold, file, name, ambiguous=item.get("ambiguous") is True), file


def _of_table(path: Path, rows: Sequence[dict[str, Any]]) -> Iterator[tuple[EvalQuestion, Path]]:
    asked = [(number, row) for number, row in enumerate(rows) if row.get("split") != EXAMPLES]
    places = {number: text_of(row, "db_file", path, number) for number, row in asked}
    names = _neutral(sorted(set(places.values())))
    for number, row in asked:
        text, kind, gold = (
            text_of(row, key, path, number) for key in ("question", "ambig_type", "gold_queries")
        )
        if kind == "attachment" and not text.endswith(IN_ONE_TABLE):
            text += IN_ONE_TABLE
        queries = [sql.strip() for sql in _NEXT_QUERY.split(gold.strip())]
        ambiguous = text_of(row, "is_ambiguous", path, number).casefold() == "true"
        file = _file(path.parent, places[number])
        yield _question(f"{number:04}", text, kind, queries, file, names[places[number]], ambiguous), file


def _neutral(places: Sequence[str]) -> dict[str, str]:
    """Return a neutral name for each database's place: its domain with a number."""
    counts: Counter[str] = Counter()
    found = {}
    for place in places:
        parts = Path(place).parts
        domain = re.sub(r"\W+", "_", parts[-3] if len(parts) > 2 else "database").casefold()
        counts[domain] += 1
        found[place] = f"{domain}_{counts[domain]:02}"
    return found


def _file(folder: Path, place: str) -> Path:
    """A database of the download, whose places begin at the folder around ``data``."""
    inner = Path(place)
    inner = inner.relative_to("data") if inner.parts[:1] == ("data",) else inner
    return folder / inner


def _question(
    id: str, text: str, kind: str, gold: Sequence[str], file: Path, name: str, ambiguous: bool
) -> EvalQuestion:
    ambiguity = AMBIGUOUS if ambiguous else PLAIN
    return on_sqlite(
        id,
        text,
        file,
        gold,
        database=name,
        difficulty=f"{ambiguity} {kind}",
        groups={"ambiguity": ambiguity, "kind": kind},
        shown_as=name if file.stem != name else "",
    )
