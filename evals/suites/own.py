"""A file of one's own questions, on one's own databases."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

from quorum.evals.questions import ID_HINT, EvalQuestion, Suite, is_id
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.tables import SUFFIXES
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


JSON_LINES, CSV = ".jsonl", ".csv"
EXAMPLE = '{"question": "How many users are there?", "sql": "SELECT COUNT(*) FROM users"}'


@dataclass(frozen=True)
class Line:
    """A question as it is written.

    Attributes:
        path, number: Where it begins, from 1.
        values: By the field's name in lower case; what is null or blank is left out.
    """

    path: Path
    number: int
    values: dict[str, Any]

    def error(self, message: str, hint: str = "") -> ConfigurationError:
        """What is wrong with this line, to be raised."""
        return ConfigurationError(f"Line {self.number} of {self.path}: {message}", hint=hint)


def read_rows(path: Path) -> Iterator[Line]:
    """The questions of a file, JSON Lines or CSV by its name; blank lines are skipped.

    Raises:
        ConfigurationError: It cannot be read, is no UTF-8 text, or a line is damaged.
    """
    kind = path.suffix.lower()
    if kind not in (JSON_LINES, CSV):
        raise ConfigurationError(
            f"{path} is neither .jsonl nor .csv.", hint="Own questions are JSON Lines or CSV with a header."
        )
    text = _content(path)
    return _json_lines(path, text) if kind == JSON_LINES else _csv(path, text)


def _content(path: Path) -> str:
    try:
        data = path.read_bytes()
        return data.decode("utf-8-sig")
    except OSError as error:
        raise ConfigurationError(
            f"{path} cannot be read: {error.strerror}.", hint="Name a file with your questions."
        ) from error
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ConfigurationError(
            f"Line {line} of {path} is no UTF-8 text.", hint="Save it as UTF-8."
        ) from error


def _json_lines(path: Path, text: str) -> Iterator[Line]:
    for number, line in enumerate(text.split("\n"), start=1):  # splitlines would cut at U+2028, too
        if not line.strip():
            continue
        empty = Line(path, number, {})
        try:
            item = json.loads(line)
        except (ValueError, RecursionError) as error:
            hint = f"Write one object a line, like {EXAMPLE}."
            raise empty.error(f"this is no JSON: {error}.", hint) from error
        if not isinstance(item, dict):
            raise empty.error("this is no JSON object.", f"Write one a line, like {EXAMPLE}.")
        if not _encodable(item):
            raise empty.error("it holds half a character (\\ud800 to \\udfff).", "Save it as UTF-8 again.")
        yield Line(path, number, _values(empty, item.items()))


def _encodable(item: object) -> bool:
    try:
        json.dumps(item, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _csv(path: Path, text: str) -> Iterator[Line]:
    csv.field_size_limit(sys.maxsize)
    reader = csv.reader(StringIO(text, newline=""), strict=True)
    header: list[str] | None = None
    number = 1
    try:
        for record in reader:
            if any(map(str.strip, record)):
                line = Line(path, number, {})
                if header is None:
                    header = _header(line, record)
                else:
                    yield Line(path, number, _values(line, _fields(line, header, record)))
            number = reader.line_num + 1
    except csv.Error as error:
        hint = "Put texts with commas, quotes or line ends in quotes, and write a quote inside them twice."
        raise Line(path, number, {}).error(f"this is no CSV: {error}.", hint) from error


def _header(line: Line, record: list[str]) -> list[str]:
    names = [name.strip().lower() for name in record]
    if "question" in names:
        return names
    if len(names) == 1 and any(mark in names[0] for mark in ";\t|"):
        raise line.error("the header has no commas.", "Separate the fields by commas.")
    raise line.error("the header has no field question.", "The first line names the fields: question,sql,…")


def _fields(line: Line, header: list[str], record: list[str]) -> Iterator[tuple[str, str]]:
    if len(record) > len(header):
        raise line.error(
            f"there are {len(record)} fields, the header names {len(header)}.",
            "Put texts with commas in quotes.",
        )
    return zip(header, record, strict=False)


def _values(line: Line, items: Any) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in items:
        key = name.strip().lower()
        if value is None or (isinstance(value, str) and not value.strip()):
            continue
        if key in values:
            raise line.error(f"there are two fields {key}.", "Keep one of them.")
        values[key] = value
    return values
