"""``quorum batch``: a file of questions in, the same file with their answers out."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.eval_run import ask_all
from quorum.commands.options import Command, setting_flags
from quorum.evals.paths import check_no_file, write_bytes
from quorum.knowledge.errors import ConfigurationError, QuorumError
from quorum.settings import Settings
from quorum.suites import database_of, with_sample
from quorum.text import notices, readings_of
from quorum.tools.urls import SAMPLE

if TYPE_CHECKING:
    import pyarrow as pa

    from quorum.evals.questions import Suite
    from quorum.evals.records import Record
    from quorum.graph.answer import Answer
    from quorum.settings import Settings

FILE = click.Path(path_type=Path)
OUT_OF_BUDGET = 3
MOST_ROWS = 1_000
"""Rows of an answer that a cell holds."""

ANSWER = {
    **dict.fromkeys(("status", "sql", "rows"), "string"),
    **{"row_count": "int64", "confidence": "double", "doubts": "string"},
    **{"usd": "double", "model_calls": "int64", "tokens": "int64", "error": "string", "run": "string"},
}
"""Columns that are added, with Arrow's names of their types."""


@click.command(cls=Command)
@click.argument("questions", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", required=True, help="the answers: .csv, .jsonl or .parquet")
@click.option("--column", metavar="NAME", default="question", help="has the questions  [question]")
@click.option("--rows", type=FILE, metavar="DIR", help="write the rows of each answer into a file there")
@click.option(
    "--max-usd-total", type=click.FloatRange(0, min_open=True), metavar="N", help="dollars for all, see above"
)
@click.option("--concurrency", type=click.IntRange(min=1), metavar="C", default=8, help="at a time  [8]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", default=1, help="processes that ask  [1]")
@click.option("--cluster", metavar="ADDRESS", default="", help="ask in the workers of this Dask scheduler")
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
@setting_flags(without=("clarify",))
def command(
    questions: Path,
    out: Path,
    column: str,
    rows: Path | None,
    max_usd_total: float | None,
    concurrency: int,
    workers: int,
    cluster: str,
    quiet: bool,
    **flags: Any,
) -> None:
    """Answer the QUESTIONS of a .csv, .jsonl or .parquet file, a row each.

    Its columns stay as they are. Added are status, sql, rows (JSON, the first 1,000; with --rows the file
    that has all), row_count, confidence, doubts, usd, model_calls, tokens, error and run, which `trace show`,
    `keep` and `correct` take. A column `db` names the row's own database. Two equal rows are two questions.

    Whatever stops it, the same command goes on and asks nothing twice, but for what the endpoint or the
    database failed. The folder FILE.batch beside the answers keeps the batch: delete it to ask all again.

    --max-usd-total: no model is called that the total cannot pay, taking a call for as dear as the dearest
    so far. Questions under way then stay open; with a larger total the same command goes on.

    Exit codes: 0 every row has its final status; 1 some failed for lack of an endpoint; 2 usage or
    configuration; 3 the total is used up; 130 Ctrl-C.
    """
    from quorum.eval_progress import Tally
    from quorum.evals.running.evaluation import Evaluation
    from quorum.files import TABLES, check_file

    settings = Settings(**flags, clarify="off")  # there is nobody to ask
    options = settings.changed(database=[SAMPLE]).run_options()  # each question brings its own
    folder = out.with_name(f"{out.name}.batch")
    for path in (questions, out):
        check_file(path, TABLES)
    if out.exists() and (not folder.is_dir() or out.resolve() == questions.resolve()):
        raise ConfigurationError(f"{out} is there, and no batch wrote it.", hint="Give another --out.")
    if rows:
        check_no_file(rows, hint="Give another --rows.")
    given = _read(questions)
    _made(given, out)  # what the format cannot hold is said before anything is asked
    suite = _suite(given, column, questions, settings)
    batch = _Batch(given, {each.id for each in suite.questions}, out, rows, folder)
    evaluation = Evaluation(suite, options, suite.questions, folder, concurrency, api_key=settings.key)
    evaluation = replace(evaluation, fixed=False, max_usd_total=max_usd_total or math.inf)
    evaluation.check()
    tally = Tally(len(suite.questions), batch=True, max_usd=max_usd_total)
    try:
        status, message = ask_all(evaluation, tally, workers, cluster, quiet=quiet)
    except QuorumError:
        with suppress(QuorumError):  # the first error is the one to tell
            if tally.records:
                batch.write(tally.records)
        raise
    written = batch.write(tally.records)
    if max_usd_total and tally.done < tally.asked and not status:
        status, message = OUT_OF_BUDGET, f"The total of ${max_usd_total:g} cannot pay what is open."
    for line in (*tally.closing(), *filter(None, [message]), f"Written: {out} ({written})"):
        click.echo(line, err=True)
    raise SystemExit(status)


def _read(path: Path) -> pa.Table:
    """Return the rows of a file: with the types of Parquet, as texts of CSV, as JSON Lines have them.

    Raises:
        ConfigurationError: It cannot be read, or has no row, two columns of one name, or one without a type.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    from quorum.evals.suites.own import read_lines

    name = ""
    try:
        if path.suffix.lower() == ".parquet":
            table = pq.ParquetFile(path).read(use_threads=False)
        else:
            lines = [items for _, items in read_lines(path)]
            names = [name for name, _ in lines[0]] if lines else []
            kind, empty = (pa.string(), "") if path.suffix.lower() == ".csv" else (None, None)
            rows = [{n: None if value == empty else value for n, value in line} for line in lines]
            names += {n: None for row in rows for n in row if n not in names}
            columns = []
            for name in names:
                columns.append(pa.array([row.get(name) for row in rows], kind))
            table = pa.table(columns, names)
    except (OSError, OverflowError, pa.ArrowException) as error:
        column = f", column {name!r}," if name else ""
        raise ConfigurationError(f"{path}{column} cannot be read: {error}.") from error
    if twice := [name for name, times in Counter(table.column_names).items() if times > 1]:
        raise ConfigurationError(f"{path} has two columns {twice[0]!r}.", hint="Rename one.")
    if not table.num_rows:
        raise ConfigurationError(f"{path} holds no row.", hint="Write one question a row.")
    return table


def _made(table: pa.Table, out: Path) -> bytes:
    """Return a table in the format of a file."""
    import pyarrow as pa

    from quorum.files import TABLES

    try:
        return TABLES[out.suffix.lower()](table)
    except pa.ArrowException as error:
        raise ConfigurationError(
            f"{out} cannot hold the rows: {error}.", hint="Give an --out of another format."
        ) from error


def _ids(given: pa.Table) -> list[str]:
    """Return the rows' ids: their numbers from 1."""
    return [f"{number:04}" for number in range(1, given.num_rows + 1)]


def _suite(given: pa.Table, column: str, path: Path, settings: Settings) -> Suite:
    """Return the questions of a file as a suite without gold; rows without a question are left out.

    Raises:
        ConfigurationError: There is no such column or no question, or a row's database cannot be used.
    """
    from quorum.evals.questions import Suite
    from quorum.evals.scorers.own import OwnScorer
    from quorum.evals.suites.own import OwnLine, WrongLine, dialect_of, own_question

    if column not in given.column_names:
        raise ConfigurationError(
            f"{path} has no column {column!r}.",
            hint=f"It has {', '.join(given.column_names)}; name the one with the questions: --column. "
            "A .csv file has commas between its columns.",
        )
    database, known, questions = database_of(settings), cache(dialect_of), []
    urls = given["db"].to_pylist() if "db" in given.column_names else [""] * given.num_rows
    for id, text, url in zip(_ids(given), given[column].to_pylist(), urls, strict=True):
        if not isinstance(text, str | None):
            hint = "Name the column with the questions: --column."
            raise ConfigurationError(
                f"Row {int(id)} of {path}: the question is no text but {text!r}.", hint=hint
            )
        if not (text or "").strip():
            continue
        try:
            line = OwnLine(question=text, id=id, db=str(url or ""))
            questions.append(own_question(line, 0, path.parent, database, known))
        except WrongLine as error:
            message, hint = error.args
            raise ConfigurationError(f"Row {int(id)} of {path}: {message}", hint=hint) from error
    if not questions:
        raise ConfigurationError(f"No row of {path} has a question in {column!r}.")
    return with_sample(Suite(path.name, path.parent, tuple(questions), OwnScorer()), settings.home)


@dataclass(frozen=True)
class _Batch:
    """The rows of a batch, the ids of those asked, and its places: answers, their rows, the evaluation."""

    given: pa.Table
    asked: Collection[str]
    out: Path
    rows: Path | None
    folder: Path

    def write(self, records: Mapping[str, Record]) -> str:
        """Write the rows with the answers that there are; returns how many have which status."""
        import pyarrow as pa

        empty = {"status": "failed", "error": "The question is empty."}
        answers = [
            self._answer(records[id]) if id in records else {"status": "open"} if id in self.asked else empty
            for id in _ids(self.given)
        ]
        prefix, table = "", self.given
        while any(prefix + name in table.column_names for name in ANSWER):
            prefix += "answer_"
        for name, kind in ANSWER.items():
            column = pa.array([answer.get(name) for answer in answers], pa.type_for_alias(kind))
            table = table.append_column(prefix + name, column)
        write_bytes(self.out, _made(table, self.out))
        ended = Counter(answer["status"].replace("_", " ") for answer in answers).most_common()
        named = f"; columns {prefix}status and so on" if prefix else ""
        return ", ".join(f"{number:,} {status}" for status, number in ended) + named

    def _answer(self, record: Record) -> dict[str, Any]:
        from quorum.graph.runs import RunFolder

        usage, lines = record.usage, record.message.strip().splitlines()
        found = {
            "status": record.status if record.finished else "open",
            "sql": record.sql or None,
            "row_count": record.rows,
            "confidence": round(record.confidence, 4),
            "usd": usage.get("usd"),
            "model_calls": usage.get("model_calls", 0),
            "tokens": usage.get("input_tokens", 0) + usage.get("output_tokens", 0),
            "error": lines[-1] if lines else None,  # of a traceback the error itself
            "run": str(self.folder / record.run) if record.run else None,
        }
        try:
            answer = RunFolder(self.folder / record.run).answer() if record.run else None
            doubts = _doubts(answer) if answer else []
            if answer and record.result:
                found["rows"] = self._rows(answer, record)
                if not self.rows and answer.row_count > MOST_ROWS:
                    doubts.append(f"`rows` has the first {MOST_ROWS:,}; with --rows a file has all.")
            return found | {"doubts": "\n".join(doubts) or None}
        except QuorumError as error:  # of a file that is gone
            return found | {"error": str(error)}

    def _rows(self, answer: Answer, record: Record) -> str:
        """Return the rows as JSON, or the file into which they are written."""
        from quorum.files import write_rows
        from quorum.tools.results.files import read_result
        from quorum.tools.results.values import plain_rows

        place = self.folder / record.result
        if self.rows:
            file = self.rows / f"{record.id}{self.out.suffix.lower().replace('.jsonl', '.json')}"
            write_rows(answer.model_copy(update={"result_file": str(place)}), file)
            return str(file)
        table = read_result(place).slice(0, MOST_ROWS)
        names = table.column_names
        names = [f"{name}_{n + 1}" if name in names[:n] else name for n, name in enumerate(names)]
        rows = [dict(zip(names, row, strict=True)) for row in plain_rows(table)]
        return json.dumps(rows, ensure_ascii=False)


def _doubts(answer: Answer) -> list[str]:
    """Return what speaks against an answer: found in the data, by other candidates, by other readings."""
    readings = [f"If you meant: {reading.says}" for reading in readings_of(answer)[0]]
    return [*answer.doubts, *answer.disagreement, *readings, *notices(answer)]
