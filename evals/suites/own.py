"""A file of one's own questions, on one's own databases."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit

from quorum.evals.questions import ID_HINT, EvalQuestion, Suite, is_id
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.suites.own_rows import Line, read_rows
from quorum.evals.tabular.tables import SUFFIXES
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.knowledge.folder import load_folder
from quorum.tools.databases import connect
from quorum.tools.databases.schema import folder_of
from quorum.tools.urls import REDACTED, SAMPLE, anchored, mask_url

KNOWLEDGE = ("knowledge", "evidence", "documents")
FIELDS = ("question", "id", "sql", "result", "database", "db", "difficulty", *KNOWLEDGE)


def load_own(path: Path, database: str | None) -> Suite:
    """Read own questions from JSON Lines or CSV with a header.

    ==========================================  =========================================================
    ``question``                                the question; required
    ``id``                                      as ``questions.is_id``; else its place, from ``0000``
    ``sql``                                     an accepted query; in JSON Lines also a list of them
    ``result``                                  a CSV or Parquet file with the accepted result
    ``database`` or ``db``                      URL or file; else ``database``
    ``difficulty``                              groups the scores of reports
    ``knowledge``, ``evidence``, ``documents``  texts that belong to the question
    ==========================================  =========================================================

    Relative paths begin at the folder of ``path``. Questions with neither SQL nor a result are asked and
    not scored. Other fields are left out, which ``missing`` of the suite tells.

    Args:
        database: URL or file of the questions that name none; None if there is none.

    Returns:
        A suite that is called as the file.

    Raises:
        ConfigurationError: The file cannot be read, or a line is wrong; the message names it.
    """
    dialect_of = cache(_dialect)
    questions: dict[str, EvalQuestion] = {}
    unknown: dict[str, None] = {}
    for place, line in enumerate(read_rows(path)):
        question = _question(line, place, database, dialect_of)
        if question.id.casefold() in questions:
            raise line.error(f"there is a question {question.id} before it.", "Give each an id of its own.")
        questions[question.id.casefold()] = question
        unknown |= dict.fromkeys(name for name in line.values if name not in FIELDS)
    if not questions:
        raise ConfigurationError(f"{path} holds no question.", hint="Write one a line.")
    found = tuple(questions.values())
    return Suite(path.name, path.parent, found, OwnScorer(), tuple(_missing(found, list(unknown))))


def _question(line: Line, place: int, database: str | None, dialect_of: Callable[[str], str]) -> EvalQuestion:
    url = _url(line, database)
    file = _result(line)
    return EvalQuestion(
        id=_id(line, place),
        question=_text(line, "question"),
        database=_name(url),
        url=url,
        dialect=_known_dialect(line, url, dialect_of),
        gold_sql=_sql(line),
        difficulty=_text(line, "difficulty", required=False),
        knowledge={name: text for name in KNOWLEDGE if (text := _text(line, name, required=False))},
        extra={"result": str(file)} if file else {},
    )


def _text(line: Line, name: str, *, required: bool = True) -> str:
    """A text field; numbers are taken for the text that they are."""
    value = line.values.get(name)
    if value is None:
        if required:
            raise line.error(f"there is no {name}.", f"Fill in the field {name}.")
        return ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str):
        raise line.error(f"{name} is no text.", f"Write {name} as a text.")
    return value.strip()


def _id(line: Line, place: int) -> str:
    id = _text(line, "id", required=False) or f"{place:04}"
    if not is_id(id):
        raise line.error(f"the id {id!r} cannot be used.", ID_HINT)
    return id


def _sql(line: Line) -> tuple[str, ...]:
    value = line.values.get("sql", [])
    queries = [value] if isinstance(value, str) else value
    if not isinstance(queries, list) or not all(isinstance(q, str) and q.strip() for q in queries):
        raise line.error("sql is neither a query nor a list of queries.", "Write it as text.")
    return tuple(query.strip() for query in queries)


def _result(line: Line) -> Path | None:
    name = _text(line, "result", required=False)
    if not name:
        return None
    file = (line.path.parent / Path(name).expanduser()).resolve()
    if file.suffix.lower() not in SUFFIXES:
        raise line.error(f"the result {name} is neither .csv nor .parquet.", "Save it as one of them.")
    if not file.is_file():
        raise line.error(f"there is no file {file}.", "Its path begins at the folder of the questions.")
    return file


def _url(line: Line, default: str | None) -> str:
    given = [name for name in ("database", "db") if name in line.values]
    if len(given) > 1:
        raise line.error("it names its database twice.", "Fill in database or db, not both.")
    if given:
        return anchored(_text(line, given[0]), line.path.parent.resolve())
    if not default:
        raise line.error("it names no database.", "Fill in the field database, or give one with --db.")
    return default


def _known_dialect(line: Line, url: str, dialect_of: Callable[[str], str]) -> str:
    try:
        return dialect_of(url)
    except (ConfigurationError, DatabaseUnavailable) as error:
        raise line.error(f"its database cannot be used. {mask_url(error.args[0])}", error.hint) from error


def _dialect(url: str) -> str:
    if url == SAMPLE:
        return "sqlite"
    if url.startswith("schema://"):
        return load_folder(folder_of(url)).dialect
    return connect(url).dialect


def _name(url: str) -> str:
    """What a database is called in reports: its file, or the last part of its URL."""
    if "://" not in url:
        return Path(url).stem
    parts = urlsplit(mask_url(url).replace(REDACTED, ""))  # brackets would be an address
    return Path(unquote(parts.path)).stem or parts.hostname or parts.scheme


def _missing(questions: Sequence[EvalQuestion], unknown: Sequence[str]) -> Iterator[str]:
    """What of the file does not count, for people."""
    if unknown:
        yield f"Fields left out: {', '.join(unknown)}. Known are {', '.join(FIELDS)}."
    unscored = [question.id for question in questions if not question.gold_sql and not question.extra]
    if unscored:
        one = len(unscored) == 1
        named = ", ".join(unscored[:3]) + (" and others" if len(unscored) > 3 else "")
        yield (
            f"{'1 question has' if one else f'{len(unscored)} questions have'} neither sql nor result, "
            f"so {'it is' if one else 'they are'} asked and not scored: {named}."
        )
