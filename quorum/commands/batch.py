"""``quorum batch``: a file of questions in, the same file with their answers out."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.eval_run import allow_files, ask_all, check_workers, place_of
from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import ConfigurationError, QuorumError

if TYPE_CHECKING:
    from quorum.batch_files import Rows
    from quorum.evals.questions import Suite
    from quorum.evals.records import Record
    from quorum.graph.answer import Answer
    from quorum.settings import Settings

FILE = click.Path(path_type=Path)
STATE = ".batch"
"""Ends the name of the folder that keeps a batch, beside the file of its answers."""
OPEN, OUT_OF_BUDGET = 1, 3


@click.command(cls=Command, short_help="Answer a file of questions, a row each.")
@click.argument("questions", type=FILE)
@click.option("--out", type=FILE, metavar="FILE", required=True, help="the answers: .csv, .jsonl or .parquet")
@click.option("--column", metavar="NAME", default="question", help="has the questions  [question]")
@click.option("--rows", type=FILE, metavar="DIR", help="write each answer's rows there, all of them")
@click.option("--max-usd-total", type=click.FloatRange(min=0, min_open=True), metavar="N", help="dollars")
@click.option("--concurrency", type=click.IntRange(min=1), metavar="C", default=8, help="at a time  [8]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", default=1, help="processes that ask  [1]")
@click.option("--cluster", metavar="ADDRESS", default="", help="ask in the workers of this Dask scheduler")
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
@setting_flags(without=("clarify", "approve"))
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

    Each row is a question of its own, also where two are alike. Its columns stay as they are. Added are
    status, sql, rows (JSON, the first 1,000; with --rows the file that has all), row_count, confidence,
    doubts, usd, model_calls, tokens, error and run, which `quorum trace show`, `keep` and `correct` take. A
    column `db` names the row's own database.

    Whatever stops it, the same command goes on: what is finished stays, what was under way goes on, and
    nothing is asked twice but what the endpoint or the database failed. The batch is kept in a folder beside
    the file, FILE.batch: delete it to ask all again.

    --max-usd-total: each question gets a limit out of what is left, at least twice what the dearest so far
    has cost, and half of it again is set aside for replies that are under way when it is reached. Where the
    total cannot pay that, no question is begun; with a larger total the same command goes on.

    Exit codes: 0 every row has its final status; 1 some are open or failed for lack of an endpoint; 2 usage
    or configuration; 3 the total is used up; 130 Ctrl-C.
    """
    from quorum.batch_files import check_out, read_rows
    from quorum.eval_progress import BatchTally
    from quorum.evals.running.evaluation import Evaluation
    from quorum.evals.running.total_budget import TotalBudget
    from quorum.settings import Settings
    from quorum.suites import with_sample
    from quorum.text import count
    from quorum.tools.urls import SAMPLE

    check_workers(workers, cluster, concurrency)
    settings = Settings(**flags)
    options = settings.changed(database=[SAMPLE]).run_options()  # each question brings its own
    given, folder = read_rows(questions), out.with_name(out.name + STATE)
    check_out(out, given, begun=(folder / "eval.json").is_file())
    allow_files(concurrency)  # before there are workers, which inherit it
    suite, wrong = _suite(given, column, settings)
    suite = with_sample(suite, settings.home)
    evaluation = Evaluation(
        suite, options, suite.questions, folder, concurrency, api_key=settings.key, fixed=False
    )
    evaluation.check()
    total = TotalBudget(max_usd_total, concurrency, options.max_usd) if max_usd_total else None
    if not quiet:
        where = f"{concurrency} at a time{place_of(workers, cluster)} · {', '.join(options.models)}"
        click.echo(f"{questions} · {count(len(suite.questions), 'question')} · {where}", err=True)
        click.echo(f"Kept in {folder}; the same command goes on.", err=True)
    tally = BatchTally(len(suite.questions), total)
    batch = _Batch(given, out, rows, folder, wrong)
    try:
        status, message = ask_all(evaluation, tally, workers, cluster, quiet=quiet, total=total)
    except QuorumError:
        if tally.records:
            with suppress(QuorumError):  # the first error is the one to tell
                batch.write(tally.records)
        raise
    ended = batch.write(tally.records)
    for line in (*tally.closing(), *([message] if message else [])):
        click.echo(line, err=True)
    click.echo(f"Written: {out} ({ended})", err=True)
    if total and total.closed and not status:
        click.echo(
            f"The total of ${total.usd:g} cannot pay the open ones: ${total.spent:.4f} is spent.", err=True
        )
        raise SystemExit(OUT_OF_BUDGET)
    left = len(suite.questions) - sum(record.finished for record in tally.records.values())
    raise SystemExit(status or (OPEN if left else 0))


def _suite(given: Rows, column: str, settings: Settings) -> tuple[Suite, dict[str, str]]:
    """Return the questions of a file, and by the ids of other rows why they are not asked.

    Raises:
        ConfigurationError: There is no such column, or a row names no database that can be used.
    """
    from quorum.evals.questions import Suite
    from quorum.evals.scorers.own import OwnScorer
    from quorum.evals.suites.own import OwnLine, WrongLine, dialect_of, own_question
    from quorum.graph.context import LONGEST_QUESTION
    from quorum.suites import database_of

    path, database, known = given.path, database_of(settings), cache(dialect_of)
    if column not in given.columns:
        raise ConfigurationError(
            f"{path} has no column {column!r}.",
            hint=f"It has {', '.join(given.columns)}; name the one with the questions: --column.",
        )
    texts = [_text(value) for value in given.values(column)]
    named = map(_text, given.values("db")) if "db" in given.columns else [""] * len(texts)
    questions, wrong = [], {}
    for id, text, db in zip(_ids(given), texts, named, strict=True):
        if not text:
            wrong[id] = "The question is empty."
        elif len(text) > LONGEST_QUESTION:
            wrong[id] = f"The question has {len(text):,} characters; {LONGEST_QUESTION:,} is the most."
        else:
            try:
                line = OwnLine(question=text, id=id, db=db)
                questions.append(own_question(line, 0, path.parent, database, known))
            except WrongLine as error:
                message, hint = error.args
                raise ConfigurationError(f"Row {int(id)} of {path}: {message}", hint=hint) from error
    if not questions:
        raise ConfigurationError(f"No row of {path} has a question in {column!r}.")
    return Suite(path.name, path.parent, tuple(questions), OwnScorer()), wrong


def _ids(given: Rows) -> list[str]:
    """Return the rows' ids: their numbers from 1."""
    return [f"{number:04}" for number, _ in enumerate(given.values(given.columns[0]), 1)]


def _text(value: object) -> str:
    return "" if value is None else str(value).strip()


@dataclass(frozen=True)
class _Batch:
    """The file of a batch's answers.

    Attributes:
        rows: Folder for the rows of each answer; None if they go into the file.
        folder: Of the evaluation.
        wrong: By the ids of rows that are not asked, the reason.
    """

    given: Rows
    out: Path
    rows: Path | None
    folder: Path
    wrong: Mapping[str, str]

    def write(self, records: Mapping[str, Record]) -> str:
        """Write all rows, with the answers that there are; returns how many have which status."""
        from quorum.batch_files import write_answers

        answers = [self._answer(id, records.get(id)) for id in _ids(self.given)]
        prefix = write_answers(self.out, self.given, answers)
        ended = Counter(str(answer["status"]).replace("_", " ") for answer in answers)
        named = f"; the columns are called {prefix}status and so on" if prefix else ""
        return ", ".join(f"{number:,} {status}" for status, number in ended.most_common()) + named

    def _answer(self, id: str, record: Record | None) -> dict[str, Any]:
        if record is None:
            return {"status": "failed" if id in self.wrong else "open", "error": self.wrong.get(id)}
        usage = record.usage
        lines = record.message.strip().splitlines()
        found: dict[str, Any] = {
            "status": record.status if record.finished else "open",
            "sql": record.sql or None,
            "row_count": record.rows,
            "usd": usage.get("usd"),
            "model_calls": usage.get("model_calls"),
            "error": lines[-1] if lines else None,  # of a traceback the error itself
        }
        if usage:
            found["tokens"] = usage.get("input_tokens", 0) + usage.get("output_tokens", 0)
        if record.run:
            found["run"] = str(self.folder / record.run)
            try:
                found |= self._of_run(record)
            except QuorumError as error:
                found["error"] = str(error)
        return found

    def _of_run(self, record: Record) -> dict[str, Any]:
        """Return what the run's answer says beside its record."""
        from quorum.batch_files import MOST_ROWS
        from quorum.files import ROWS, write_file
        from quorum.graph.runs import RunFolder
        from quorum.tools.results.files import read_result
        from quorum.tools.results.values import plain_rows

        answer = RunFolder(self.folder / record.run).answer()
        if answer is None:
            return {}
        doubts = _doubts(answer)
        found: dict[str, Any] = {"confidence": answer.confidence}
        if record.result and self.rows:
            file = self.rows / f"{record.id}{self.out.suffix.lower().replace('.jsonl', '.json')}"
            write_file(
                answer.model_copy(update={"result_file": str(self.folder / record.result)}), file, ROWS
            )
            found["rows"] = str(file)
        elif record.result:
            table = read_result(self.folder / record.result)
            values = [
                dict(zip(_distinct(table.column_names), row, strict=True))
                for row in plain_rows(table.slice(0, MOST_ROWS))
            ]
            found["rows"] = json.dumps(values, ensure_ascii=False)
            if table.num_rows > MOST_ROWS:
                doubts.append(f"`rows` holds the first {MOST_ROWS:,}; --rows writes all {table.num_rows:,}.")
        return found | {"doubts": "\n".join(doubts) or None}


def _doubts(answer: Answer) -> list[str]:
    """Return what speaks against an answer: found in the data, by other candidates, by other readings."""
    from quorum.text import notices, readings_of

    readings = [f"If you meant: {reading.says}" for reading in readings_of(answer)[0]]
    return [*answer.doubts, *answer.disagreement, *readings, *notices(answer)]


def _distinct(names: list[str]) -> list[str]:
    """Return column names with the number of their use behind those that were used before: ``name_2``."""
    return [
        f"{name}_{names[:n].count(name) + 1}" if name in names[:n] else name for n, name in enumerate(names)
    ]
