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
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from string import ascii_lowercase
from typing import TypeAlias
from urllib.parse import quote

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.spider2 import STANDARDS, Edition, Spider2Gold, Spider2Scorer, load_gold
from quorum.evals.submissions import read_sql
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


Locate: TypeAlias = "Callable[[Places, _Asked], str]"
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
