"""Spider 2.0-Lite and -Snow (Lei et al., 2024), and the part of Lite that runs on SQLite files.

The folder is ``spider2-lite`` or ``spider2-snow`` of the repository (``SOURCE``):

    spider2-lite.jsonl                      questions (Snow: spider2-snow.jsonl)
    resource/databases/ENGINE/DATABASE/     schemas; ENGINE bigquery, snowflake, sqlite (Snow has none)
    resource/databases/spider2-localdb/     SQLite files, a download of their own
    resource/documents/                     external knowledge
    evaluation_suite/gold/                  exec_result/, sql/, *_eval.jsonl
    ../methods/gold-tables/                 which tables each question needs, for ``--gold tables``

Questions for BigQuery and Snowflake are asked over their schemas (``schema://``); so are, in Lite, those for
SQLite files that are not there. Where there is no schema either, a question is left out.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.spider2 import Spider2Scorer
from quorum.evals.scorers.spider2_rules import Edition
from quorum.evals.suites.files import read_lines, text_of
from quorum.evals.suites.spider2_folder import (
    DATABASES,
    DOCUMENT,
    DOCUMENTS,
    GOLD,
    SOURCE,
    ExternalKnowledge,
    Gold,
    Places,
    absent_documents,
    amount,
    gold_tables,
    listed,
)
from quorum.knowledge.errors import ConfigurationError

LITE, SNOW = "spider2-lite.jsonl", "spider2-snow.jsonl"
ENGINES = {"bq": "bigquery", "ga": "bigquery", "sf": "snowflake", "local": "sqlite"}
"""How the ids of Lite's questions begin, and where the official program runs them."""

EDITIONS: dict[str, Edition] = {"spider2-lite": "lite", "spider2-local": "lite", "spider2-snow": "snow"}
"""By suite, the edition that its gold is of."""

ARCHIVE = (
    f"Their archive is linked in spider2-lite/README.md of {SOURCE}; unzip it into"
    f" {DATABASES}/spider2-localdb."
)


@dataclass(frozen=True)
class _Asked:
    """One line of the questions' file; ``engine`` is empty if the id tells none."""

    id: str
    question: str
    database: str
    engine: str
    document: str


Locate = Callable[[Places, _Asked], str]
"""The URL of a question's database; empty if that is not there."""


def load_lite(folder: Path) -> Suite:
    """Spider 2.0-Lite: SQLite questions on their files, all others over schemas.

    ``Suite.missing`` tells what is left out, what runs over schemas only, and what gold or external
    knowledge lacks. How difficult a question is, ``spider2_folder.Gold.difficulty`` says.

    Raises:
        ConfigurationError: No database is there, the questions' file is missing, or a file is damaged.
    """
    return _load("spider2-lite", folder, _read(folder / LITE, _engine_of_lite), _file_or_schema)


def load_local(folder: Path) -> Suite:
    """The questions of Spider 2.0-Lite that run on SQLite files; the rest as ``load_lite``.

    Raises:
        ConfigurationError: As ``load_lite``.
    """
    asked = [each for each in _read(folder / LITE, _engine_of_lite) if each.engine == "sqlite"]
    return _load("spider2-local", folder, asked, lambda places, each: places.file_url(each.database))


def load_snow(folder: Path) -> Suite:
    """Spider 2.0-Snow, over schemas; the rest as ``load_lite``.

    Raises:
        ConfigurationError: As ``load_lite``.
    """
    return _load("spider2-snow", folder, _read(folder / SNOW, lambda _: "snowflake"), _schema)


def _engine_of_lite(id: str) -> str:
    return next((engine for prefix, engine in ENGINES.items() if id.startswith(prefix)), "")


def _file_or_schema(places: Places, asked: _Asked) -> str:
    file = places.file_url(asked.database) if asked.engine == "sqlite" else ""
    return file or _schema(places, asked)


def _schema(places: Places, asked: _Asked) -> str:
    return places.schema_url(asked.engine, asked.database) if asked.engine else ""


def _read(path: Path, engine: Callable[[str], str]) -> list[_Asked]:
    """The questions in either form: Lite has ``db`` and ``question``, Snow ``db_id`` and ``instruction``.

    Raises:
        ConfigurationError: The file is missing, a line lacks what a question must have, or an id recurs.
    """
    found: dict[str, _Asked] = {}
    for number, item in enumerate(read_lines(path, source=f"{SOURCE} ({path.stem}/)"), start=1):
        id = text_of(item, "instance_id", path, number)
        if id in found or not re.fullmatch(r"\w[\w.-]*", id, re.ASCII):
            raise ConfigurationError(
                f"Entry {number} of {path}: the id {id!r} recurs, or is none.", hint="Get the file again."
            )
        question = text_of(item, "question" if "question" in item else "instruction", path, number)
        database = text_of(item, "db" if "db" in item else "db_id", path, number)
        document = str(item.get("external_knowledge") or "")
        found[id] = _Asked(id, question, database, engine(id), document)
    return list(found.values())


def _load(name: str, folder: Path, asked: Sequence[_Asked], locate: Locate) -> Suite:
    places, knowledge = Places(folder), ExternalKnowledge(folder / DOCUMENTS)
    gold = Gold(folder / GOLD, EDITIONS[name])
    tables = gold_tables(folder, EDITIONS[name])
    urls = {each.id: locate(places, each) for each in asked}
    nowhere = [each for each in asked if not urls[each.id]]
    left_out = _left_out(nowhere, files=name == "spider2-local")
    if len(nowhere) == len(asked):
        what = f"no database of {name}'s {len(asked)} questions" if asked else f"no question of {name}"
        raise ConfigurationError(f"{folder} has {what}.", hint=" ".join(left_out))
    questions = tuple(
        replace(_question(each, urls[each.id], knowledge, gold), gold_tables=tables.get(each.id, ()))
        for each in asked
        if urls[each.id]
    )
    missing = (*left_out, *_lacking(questions, gold))
    return Suite(name, folder, questions, Spider2Scorer(gold.results), missing)


def lacking(suite: Suite, questions: Sequence[EvalQuestion]) -> tuple[str, ...]:
    """What some questions of a suite of Spider 2.0 lack: databases, documents, gold.

    Raises:
        ConfigurationError: The gold is damaged.
    """
    return _lacking(questions, Gold(suite.folder / GOLD, EDITIONS[suite.name]))


def _lacking(questions: Sequence[EvalQuestion], gold: Gold) -> tuple[str, ...]:
    return (*_schema_only(questions), *absent_documents(questions), *gold.missing(questions))


def _question(asked: _Asked, url: str, knowledge: ExternalKnowledge, gold: Gold) -> EvalQuestion:
    gold_sql = gold.sql(asked.id)
    return EvalQuestion(
        id=asked.id,
        question=asked.question,
        database=asked.database,
        url=url,
        dialect=asked.engine,
        gold_sql=gold_sql,
        difficulty=gold.difficulty(asked.id, gold_sql),
        knowledge=knowledge.of(asked.document),
        extra={DOCUMENT: Path(asked.document).name} if asked.document else {},
    )


def _left_out(nowhere: Sequence[_Asked], *, files: bool) -> list[str]:
    """The questions whose database is not there, and where to get it."""
    sentences = []
    for engine in dict.fromkeys(each.engine for each in nowhere):
        those = [each for each in nowhere if each.engine == engine]
        names = listed(sorted({each.database for each in those}))
        if not engine:
            ids = listed([each.id for each in those])
            why = f"{amount(those)}, whose ids begin with none of {', '.join(ENGINES)}: {ids}."
        elif files:
            why = f"{amount(those)} on SQLite files that are not there: {names}. {ARCHIVE}"
        else:
            why = f"{amount(those)}, for {DATABASES} has no {engine} schema of {names}. {SOURCE} has them."
        sentences.append(f"Left out: {why}")
    return sentences


def _schema_only(questions: Sequence[EvalQuestion]) -> list[str]:
    """Which questions cannot execute, and what they would need."""
    bare = [question for question in questions if not question.live]
    local = [question for question in bare if question.dialect == "sqlite"]
    remote = [question for question in bare if question.dialect != "sqlite"]
    only = "nothing executes, so linking and lint validity are all that is scored"
    sentences = []
    if local:
        names = listed(sorted({question.database for question in local}))
        sentences.append(
            f"Schemas only: {amount(local)} on SQLite files that are not there ({names}): {only}. {ARCHIVE}"
        )
    if remote:
        counts = ", ".join(f"{n} on {engine}" for engine, n in Counter(q.dialect for q in remote).items())
        sentences.append(
            f"Schemas only: {amount(remote)} ({counts}): {only}. Accounts for the live databases are had by"
            f" the guidelines in assets/ of {SOURCE}."
        )
    return sentences
