"""``quorum ask``: a question in, an answer out."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

import click

from quorum.cli import INTERRUPTED
from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import QuorumError
from quorum.pipes import standard_input, until_reader_leaves
from quorum.tools.garbage import rare_collections

if TYPE_CHECKING:
    from quorum.graph.answer import Answer

EXIT_CODES = {"answered": 0, "no_answer": 1, "stopped": 3, "unanswerable": 4}
_BATCH = 5_000  # rows in memory at a time


@click.command(cls=Command, short_help="Ask a database a question in plain language.")
@click.argument("question", required=False)
@click.option("--resume", metavar="RUN", help="go on with a run: its id, a beginning, or last; no QUESTION")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
@click.option("--csv", "as_csv", is_flag=True, help="print the rows as CSV and nothing else")
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
@setting_flags()
def command(
    question: str | None, as_json: bool, as_csv: bool, quiet: bool, resume: str | None, **flags: Any
) -> None:
    """Ask a database a QUESTION in plain language; `-` reads it from standard input.

    Flags win over the environment (QUORUM_…), which wins over quorum.toml.

    Exit codes: 0 answered; 1 no answer found (the best effort is shown); 2 usage or
    configuration; 3 a budget or the time ran out (the best so far is shown); 4 the
    data cannot answer the question (what it lacks is shown); 130 Ctrl-C.
    """
    if as_json and as_csv:
        raise click.UsageError("Choose one of --json and --csv.")
    if resume is not None and question is not None:
        raise click.UsageError("--resume goes on with the run's own question: leave QUESTION out.")
    if question == "-":
        question = standard_input()
    if resume is None and not (question or "").strip():
        raise click.UsageError("Ask something, e.g. quorum ask 'How many orders were there in May?'")
    answer = ask_live(question or "", flags, quiet=quiet or as_json or as_csv, resume=resume)
    with until_reader_leaves():
        print_answer(answer, as_json=as_json, as_csv=as_csv)
    raise SystemExit(EXIT_CODES[answer.status])


@rare_collections()  # importing makes a million objects, of which nearly all stay
def ask_live(question: str, flags: dict[str, Any], *, quiet: bool, resume: str | None = None) -> Answer:
    """Ask with progress on standard error.

    Raises:
        ConfigurationError, DatabaseUnavailable, ModelUnavailable, BudgetExceeded: As ``ask``.
        SystemExit: 130 after Ctrl-C, having said how to go on.
    """
    from quorum.clarify import TerminalClarifier, check_terminal, on_terminal
    from quorum.progress import Progress
    from quorum.render import console
    from quorum.settings import Settings

    settings = Settings(**flags)
    if resume is None and settings.run_options().clarify:
        check_terminal()
    from quorum.api import ask_sync  # heavy: only once the settings are right

    with Progress(console(stderr=True), quiet=quiet) as progress:
        can_ask = on_terminal() and (settings.clarify or resume is not None)
        clarifier = TerminalClarifier(progress) if can_ask else None
        try:
            return ask_sync(
                question, settings=settings, resume=resume, on_event=progress, on_clarify=clarifier
            )
        except KeyboardInterrupt:
            kept = _how_to_go_on(progress.run) or "Nothing was begun."
            click.echo(f"Interrupted. {kept}", err=True)
            raise SystemExit(INTERRUPTED) from None
        except QuorumError as error:
            error.hint = f"{error.hint} {_how_to_go_on(progress.run)}".strip()
            raise


def _how_to_go_on(run: str) -> str:
    return f"What is finished is kept; go on with: quorum ask --resume {run}" if run else ""


def print_answer(answer: Answer, *, as_json: bool = False, as_csv: bool = False) -> None:
    """Print an answer to standard output."""
    if as_json:
        click.echo(answer.model_dump_json(indent=2))
    elif as_csv:
        write_csv(answer, sys.stdout)
        _say_what_csv_leaves_out(answer)
    else:
        from quorum.render import console, show_answer

        show_answer(answer.model_dump(), console())


def _say_what_csv_leaves_out(answer: Answer) -> None:
    from quorum.text import printable

    if answer.status != "answered":
        click.echo(
            f"Not a confirmed answer: {answer.status.replace('_', ' ')} {answer.stopped_by}".rstrip(),
            err=True,
        )
    for warning in answer.warnings:
        click.echo(f"Warning: {printable(warning)}", err=True)
    if answer.demonstration:
        click.echo("Demonstration: the rule-based offline model answered.", err=True)


def result_rows(answer: Answer) -> Iterator[list[Any]]:
    """Every kept row as JSON-ready values; memory stays flat.

    Raises:
        QuorumError: The result's file is gone or broken.
    """
    if not answer.result_file:
        yield from answer.rows
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    from quorum.tools.results import plain_rows

    path = Path(answer.result_file)
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                yield from plain_rows(pa.Table.from_batches([batch]))
    except (OSError, pa.ArrowInvalid) as error:
        raise QuorumError(f"Cannot read the rows in {path}: {error}.") from error


def write_csv(answer: Answer, out: TextIO) -> None:
    """The header and all rows; NULL is an empty field, nested values are JSON."""
    if not answer.columns:
        return
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in result_rows(answer):
        writer.writerow([_field(value) for value in row])


def _field(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
