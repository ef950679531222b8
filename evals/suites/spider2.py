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
from functools import cache
from pathlib import Path
from string import ascii_lowercase
from urllib.parse import quote

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.reports.format import count, listed
from quorum.evals.scorers.spider2 import STANDARDS, Edition, Spider2Gold, Spider2Scorer, load_gold
from quorum.evals.submissions import read_sql
from quorum.evals.suites.files import read_items, read_text, sqlite_url, text_of
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
class _QuestionLine:
    """One line of the questions' file; ``engine`` is empty if the id names none."""

    id: str
    question: str
    database: str
    engine: str
    document: str


def load_lite(folder: Path) -> Suite:
    """Read Spider 2.0-Lite: SQLite questions on their files, all others over schemas.

    ``Suite.missing`` says what is left out, what runs over schemas only, and what gold or external
    knowledge the folder lacks.

    Raises:
        ConfigurationError: The questions or all their databases are missing, or a file is damaged.
    """
    return _load("spider2-lite", folder, _read(folder / LITE, _engine_of_lite), files=True, schemas=True)


def load_local(folder: Path) -> Suite:
    """Read the questions of Spider 2.0-Lite that run on SQLite files; else as ``load_lite``."""
    asked = [each for each in _read(folder / LITE, _engine_of_lite) if each.engine == "sqlite"]
    return _load("spider2-local", folder, asked, files=True, schemas=False)


def load_snow(folder: Path) -> Suite:
    """Read Spider 2.0-Snow, over schemas; else as ``load_lite``."""
    asked = _read(folder / SNOW, lambda _: "snowflake")
    return _load("spider2-snow", folder, asked, files=False, schemas=True)


def _engine_of_lite(id: str) -> str:
    return next((engine for prefix, engine in ENGINES.items() if id.startswith(prefix)), "")


def _read(path: Path, engine: Callable[[str], str]) -> list[_QuestionLine]:
    """Read the questions: Lite has ``db`` and ``question``, Snow ``db_id`` and ``instruction``.

    Raises:
        ConfigurationError: The file is missing, a line lacks what a question must have, or an id recurs.
    """
    found: dict[str, _QuestionLine] = {}
    for number, item in enumerate(read_items(path, source=f"{SOURCE} ({path.stem}/)"), start=1):
        id = text_of(item, "instance_id", path, number)
        if id in found or not re.fullmatch(r"\w[\w.-]*", id, re.ASCII):
            raise ConfigurationError(
                f"Entry {number} of {path}: the id {id!r} recurs, or is none.", hint="Get the file again."
            )
        question = text_of(item, "question" if "question" in item else "instruction", path, number)
        database = text_of(item, "db" if "db" in item else "db_id", path, number)
        document = Path(str(item.get("external_knowledge") or "")).name
        found[id] = _QuestionLine(id, question, database, engine(id), document)
    return list(found.values())


def _urls(folder: Path, asked: Sequence[_QuestionLine], *, files: bool, schemas: bool) -> dict[str, str]:
    """Return the URL of each question's database, "" where it is not there.

    A name's case, and what is between its letters, may differ on disk.
    """
    places = [path for pattern in FILES if files for path in sorted(folder.glob(pattern))]
    sqlite = {_key(path.stem): path for path in reversed(places)}
    engines = {each.engine for each in asked if schemas and each.engine}
    described = {engine: _described(folder / DATABASES, engine) for engine in engines}
    found = {}
    for each in asked:
        key = _key(each.database)
        if each.engine == "sqlite" and key in sqlite:
            found[each.id] = sqlite_url(sqlite[key])
        else:
            schema = described.get(each.engine, {}).get(key)
            found[each.id] = f"schema://{quote(str(schema.absolute()))}" if schema else ""
    return found


def _described(databases: Path, engine: str) -> dict[str, Path]:
    own = databases / engine
    try:
        found = find_database_folders(own if own.is_dir() else databases)
    except ConfigurationError:  # none at all: said of the questions that want one
        return {}
    return {_key(path.name): path for path in reversed(found) if path.parent in (own, databases)}


def _key(name: str) -> str:
    return re.sub(r"[\W_]+", "_", name.casefold())


def _load(name: str, folder: Path, asked: Sequence[_QuestionLine], *, files: bool, schemas: bool) -> Suite:
    urls, gold = _urls(folder, asked, files=files, schemas=schemas), _gold(folder, name)
    tables, toks = _gold_tables(folder, EDITIONS[name]), _tokens(gold.folder)
    left_out = _left_out([each for each in asked if not urls[each.id]], schemas=schemas)
    if not any(urls.values()):
        what = f"no database of {name}'s {len(asked)} questions" if asked else f"no question of {name}"
        raise ConfigurationError(f"{folder} has {what}.", hint=" ".join(left_out))

    @cache
    def document(name: str) -> dict[str, str]:
        path = folder / DOCUMENTS / name
        return {name: read_text(path, SOURCE)} if name and path.is_file() else {}

    def question(each: _QuestionLine) -> EvalQuestion:
        names = [f"{each.id}.sql", *(f"{each.id}_{letter}.sql" for letter in ascii_lowercase)]
        paths = (gold.folder / "sql" / name for name in names)
        sql = tuple(text for path in paths if path.is_file() and (text := read_sql(path)))
        return EvalQuestion(
            id=each.id,
            question=each.question,
            database=each.database,
            url=urls[each.id],
            dialect=each.engine,
            gold_sql=sql,
            difficulty=_difficulty(toks.get(each.id, len(sql[0].split()) if sql else 0)),
            gold_tables=tables.get(each.id, ()),
            knowledge=document(each.document),
            extra={DOCUMENT: each.document} if each.document else {},
        )

    questions = tuple(question(each) for each in asked if urls[each.id])
    suite = Suite(name, folder, questions, Spider2Scorer(gold))
    return replace(suite, missing=(*left_out, *lacking(suite, questions)))


def _difficulty(tokens: int) -> str:
    """Return ``easy``, ``medium`` or ``hard`` by the gold SQL's number of tokens; "" if that is not known.

    The benchmark states the number for Lite (``toks`` in ``spider2lite_eval.jsonl``), for questions too
    whose gold SQL it keeps back, and counts what blanks separate. Where it states none it is counted so here.
    """
    return "" if not tokens else "easy" if tokens < MEDIUM else "medium" if tokens < HARD else "hard"


def _gold(folder: Path, name: str) -> Spider2Gold:
    """Return the gold of a suite; none if the folder has none.

    Raises:
        ConfigurationError: It is there, and is damaged.
    """
    gold = folder / GOLD
    return load_gold(gold) if gold.is_dir() else Spider2Gold(gold, EDITIONS[name], {}, {})


def _tokens(gold: Path) -> dict[str, int]:
    """Return the numbers of tokens that the benchmark states."""
    lines = [line for path in gold.glob(STANDARDS) for line in read_items(path, source=SOURCE)]
    stated = {item["instance_id"]: str(item.get("toks", "")) for item in lines}
    return {id: int(tokens) for id, tokens in stated.items() if tokens.isdecimal()}


def _gold_tables(folder: Path, edition: Edition) -> dict[str, tuple[str, ...]]:
    """Return the tables that questions need, by id, as the benchmark publishes them; none if it does not.

    Args:
        folder: Of the edition, as it lies in the repository.

    Raises:
        ConfigurationError: The file is damaged.
    """
    path = folder.absolute().parent / GOLD_TABLES / f"spider2-{edition}-gold-tables.jsonl"
    found = {}
    for number, item in enumerate(read_items(path, source=SOURCE) if path.is_file() else [], start=1):
        names = item.get("gold_tables")
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise ConfigurationError(f"Entry {number} of {path} names no tables.", hint="Get the file again.")
        found[text_of(item, "instance_id", path, number)] = tuple(dict.fromkeys(names))
    return found


def _left_out(nowhere: Sequence[_QuestionLine], *, schemas: bool) -> list[str]:
    """Return which questions have no database, and where to get it."""
    sentences = []
    for engine in dict.fromkeys(each.engine for each in nowhere):
        those = [each for each in nowhere if each.engine == engine]
        names, number = listed(sorted({each.database for each in those})), count(len(those), "question")
        if not engine:
            ids = listed([each.id for each in those])
            why = f"{number}, whose ids begin with none of {', '.join(ENGINES)}: {ids}."
        elif not schemas:
            why = f"{number} on SQLite files that are not there: {names}. {ARCHIVE}"
        else:
            why = f"{number}, for {DATABASES} has no {engine} schema of {names}. {SOURCE} has them."
        sentences.append(f"Left out: {why}")
    return sentences


def lacking(suite: Suite, questions: Sequence[EvalQuestion]) -> tuple[str, ...]:
    """Return what some questions of a suite of Spider 2.0 lack: live databases, documents, gold.

    Raises:
        ConfigurationError: The gold is damaged.
    """
    gold, found = _gold(suite.folder, suite.name), []
    local = [each for each in questions if not each.live and each.dialect == "sqlite"]
    remote = [each for each in questions if not each.live and each.dialect != "sqlite"]
    only = "nothing executes, so linking and lint validity are all that is scored"
    if local:
        names = listed(sorted({each.database for each in local}))
        files = f"{count(len(local), 'question')} on SQLite files that are not there ({names})"
        found.append(f"Schemas only: {files}: {only}. {ARCHIVE}")
    if remote:
        counts = ", ".join(f"{n} on {engine}" for engine, n in Counter(q.dialect for q in remote).items())
        found.append(
            f"Schemas only: {count(len(remote), 'question')} ({counts}): {only}. Accounts for the live "
            f"databases are had by the guidelines in assets/ of {SOURCE}."
        )
    named = [(each.extra.get(DOCUMENT), each.knowledge) for each in questions]
    if absent := list(dict.fromkeys(name for name, known in named if name and name not in known)):
        where = f"{DOCUMENTS} of {SOURCE} has them."
        found.append(f"No external knowledge, for want of {listed(absent)}: {where}")
    if not gold.folder.is_dir():
        return (*found, f"Nothing can be scored: there is no {GOLD}. {SOURCE} has it.")
    if unscored := [each.id for each in questions if not gold.files.get(each.id)]:
        found.append(
            f"No gold result, so not scored: {count(len(unscored), 'question')} ({listed(unscored)}). "
            f"{SOURCE} may have it in {GOLD}/exec_result."
        )
    if unlinked := [each.id for each in questions if not each.gold_sql]:
        found.append(
            f"No gold SQL, so linking is not scored: {count(len(unlinked), 'question')}. {SOURCE} has it "
            f"for a part of the questions only, in {GOLD}/sql."
        )
    return tuple(found)
