"""A file of one's own questions, on one's own databases."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from quorum.evals.questions import ID_HINT, EvalQuestion, Suite, is_id
from quorum.evals.reports.format import listed
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.tables import SUFFIXES
from quorum.graph.context import LONGEST_QUESTION
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, first_in_words
from quorum.knowledge.folder import load_folder
from quorum.tools.databases import connect
from quorum.tools.databases.schema import folder_of
from quorum.tools.urls import REDACTED, SAMPLE, anchored, mask_url

KNOWLEDGE = ("knowledge", "evidence", "documents")
EXAMPLE = '{"question": "How many users are there?", "sql": "SELECT COUNT(*) FROM users"}'


class OwnLine(BaseModel):
    """The fields of a question; numbers are taken for the text that they are."""

    model_config = ConfigDict(extra="ignore", str_strip_whitespace=True, coerce_numbers_to_str=True)

    question: str = Field(min_length=1)
    id: str = ""
    sql: tuple[str, ...] = ()
    result: str = ""
    database: str = ""
    db: str = ""
    difficulty: str = ""
    knowledge: str = ""
    evidence: str = ""
    documents: str = ""

    @field_validator("sql", mode="before")
    @classmethod
    def _queries(cls, value: object) -> object:
        queries = [value] if isinstance(value, str) else value
        if not isinstance(queries, list) or not all(
            isinstance(each, str) and each.strip() for each in queries
        ):
            raise ValueError("it is neither a query nor a list of queries")
        return queries


class WrongLine(Exception):
    """A message about a line, and a hint."""


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
    not scored. Other fields are left out; ``missing`` of the suite names them.

    Args:
        database: URL or file of the questions that name none; None if there is none.

    Returns:
        A suite that is called as the file.

    Raises:
        ConfigurationError: The file cannot be read, or a line is wrong; the message names it.
    """
    known = cache(dialect_of)
    questions: dict[str, EvalQuestion] = {}
    unknown: dict[str, None] = {}
    for place, (number, values) in enumerate(_rows(path)):
        try:
            question = own_question(OwnLine.model_validate(values), place, path.parent, database, known)
            if question.id.casefold() in questions:
                raise WrongLine(
                    f"there is a question {question.id} before it.", "Give each an id of its own."
                )
        except ValidationError as error:
            raise _wrong(path, number, f"{first_in_words(error)}.", "Mend the field.") from None
        except WrongLine as error:
            raise _wrong(path, number, *error.args) from error.__cause__
        questions[question.id.casefold()] = question
        unknown |= dict.fromkeys(name for name in values if name not in OwnLine.model_fields)
    if not questions:
        raise ConfigurationError(f"{path} holds no question.", hint="Write one a line.")
    found, missing = tuple(questions.values()), []
    if unknown:
        missing.append(f"Fields left out: {', '.join(unknown)}. Known are {', '.join(OwnLine.model_fields)}.")
    unscored = [question.id for question in found if not question.gold_sql and not question.extra]
    if unscored:
        missing.append(
            f"Without sql and result, so asked and not scored: {len(unscored)} ({listed(unscored)})."
        )
    return Suite(path.name, path.parent, found, OwnScorer(), tuple(missing))


def own_question(
    line: OwnLine, place: int, folder: Path, database: str | None, dialect_of: Callable[[str], str]
) -> EvalQuestion:
    """Return the question of a line, or raise ``WrongLine``; ``folder`` is where relative paths begin."""
    id = line.id or f"{place:04}"
    if not is_id(id):
        raise WrongLine(f"the id {id!r} cannot be used.", ID_HINT)
    if len(line.question) > LONGEST_QUESTION:
        reason = f"the question has {len(line.question):,} characters; {LONGEST_QUESTION:,} is the most."
        raise WrongLine(reason, "Ask in a few sentences.")
    if line.database and line.db:
        raise WrongLine("it names its database twice.", "Fill in database or db, not both.")
    given = line.database or line.db
    url = anchored(given, folder.resolve()) if given else database
    if not url:
        raise WrongLine("it names no database.", "Fill in the field database, or give one with --db.")
    try:
        dialect = dialect_of(url)
    except (ConfigurationError, DatabaseUnavailable) as error:
        raise WrongLine(f"its database cannot be used. {mask_url(error.args[0])}", error.hint) from error
    return EvalQuestion(
        id=id,
        question=line.question,
        database=_name(url),
        url=url,
        dialect=dialect,
        gold_sql=line.sql,
        difficulty=line.difficulty,
        knowledge={name: text for name in KNOWLEDGE if (text := getattr(line, name))},
        extra={"result": str(_result(line.result, folder))} if line.result else {},
    )


def _result(name: str, folder: Path) -> Path:
    file = (folder / Path(name).expanduser()).resolve()
    if file.suffix.lower() not in SUFFIXES:
        raise WrongLine(f"the result {name} is neither .csv nor .parquet.", "Save it as one of them.")
    if not file.is_file():
        raise WrongLine(f"there is no file {file}.", "Its path begins at the folder of the questions.")
    return file


def dialect_of(url: str) -> str:
    if url == SAMPLE:
        return "sqlite"
    if url.startswith("schema://"):
        return load_folder(folder_of(url)).dialect
    return connect(url).dialect


def _name(url: str) -> str:
    """Return the name of a database in reports: its file, or the last part of its URL."""
    if "://" not in url:
        return Path(url).stem
    parts = urlsplit(mask_url(url).replace(REDACTED, ""))  # brackets would be an address
    return Path(unquote(parts.path)).stem or parts.hostname or parts.scheme


def _wrong(path: Path, number: int, message: str, hint: str) -> ConfigurationError:
    return ConfigurationError(f"Line {number} of {path}: {message}", hint=hint)


def _rows(path: Path) -> Iterator[tuple[int, dict[str, Any]]]:
    """Yield where each question begins, from 1, and its fields: by lower-case names, without blank ones.

    Raises:
        ConfigurationError: As ``read_lines``, or a field is there twice.
    """
    for number, items in read_lines(path, needed="question"):
        values: dict[str, Any] = {}
        for name, value in items:
            key = name.strip().lower()
            if value is None or (isinstance(value, str) and not value.strip()):
                continue
            if key in values:
                raise _wrong(path, number, f"there are two fields {key}.", "Keep one of them.")
            values[key] = value
        if values or path.suffix.lower() != ".csv":
            yield number, values


_Fields = Iterator[tuple[int, list[tuple[str, Any]]]]


def read_lines(path: Path, needed: str = "") -> _Fields:
    """Yield where each line begins, from 1, and its fields as they are.

    Args:
        needed: A field that the header of a CSV file must name.

    Raises:
        ConfigurationError: The file cannot be read, is no UTF-8 text, or a line is damaged.
    """
    suffix = path.suffix.lower()
    if suffix not in (".jsonl", ".csv"):
        raise ConfigurationError(
            f"{path} is neither .jsonl nor .csv.", hint="Own questions are JSON Lines or CSV with a header."
        )
    try:
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", hint="Name a file with your questions."
        ) from error
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise _wrong(path, number, "it is no UTF-8 text.", "Save it as UTF-8.") from error
    yield from _csv(path, text, needed) if suffix == ".csv" else _json_lines(path, text)


def _json_lines(path: Path, text: str) -> _Fields:
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would cut at U+2028, too
        if not line.strip():
            continue
        try:
            item = json.loads(line)
            json.dumps(item, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            reason = "it holds half a character (\\ud800 to \\udfff)."
            raise _wrong(path, number, reason, "Save it as UTF-8 again.") from None
        except (ValueError, RecursionError) as error:
            raise _wrong(
                path, number, f"this is no JSON: {error}.", f"Write one object a line, like {EXAMPLE}."
            ) from error
        if not isinstance(item, dict):
            raise _wrong(path, number, "this is no JSON object.", f"Write one a line, like {EXAMPLE}.")
        yield number, list(item.items())


def _csv(path: Path, text: str, needed: str) -> _Fields:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    header: list[str] = []
    number = 1
    try:
        for record in reader:
            if not record or not (header or any(map(str.strip, record))):
                pass
            elif not header:
                header = [name.strip() for name in record]
                if needed and needed not in map(str.lower, header):
                    hint = "The first line names the fields, separated by commas: question,sql,…"
                    raise _wrong(path, number, f"the header has no field {needed}.", hint)
            elif len(record) > len(header):
                reason = f"there are {len(record)} fields, the header names {len(header)}."
                raise _wrong(path, number, reason, "Put texts with commas in quotes.")
            else:
                padded = record + [""] * (len(header) - len(record))
                yield number, list(zip(header, padded, strict=True))
            number = reader.line_num + 1
    except csv.Error as error:
        hint = "Put texts with commas, quotes or line ends in quotes, and write a quote inside them twice."
        raise _wrong(path, number, f"this is no CSV: {error}.", hint) from error
