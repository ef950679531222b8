"""``quorum ask``: a question in, an answer out."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO, TypeAlias

import click

from quorum.cli import NOTHING_BEGUN, interrupted
from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import QuorumError
from quorum.settings import Settings
from quorum.shell import standard_input, until_reader_leaves
from quorum.text import printable
from quorum.tools.garbage import rare_collections
from quorum.tools.urls import mask_url

if TYPE_CHECKING:
    from quorum.graph.answer import Answer
    from quorum.graph.runs import RunFolder

FILE = click.Path(path_type=Path)
Write: TypeAlias = "Callable[[Answer, Path], str]"
NOTHING = f"{NOTHING_BEGUN} `last` still means an earlier run."

EXIT_CODES = {"answered": 0, "no_answer": 1, "stopped": 3, "unanswerable": 4}
_UNSEEN = re.compile("[\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069]")
"""Characters that JSON leaves as they are and a terminal obeys."""


@click.command(cls=Command)
@click.argument("question", required=False)
@click.option("--resume", metavar="RUN", help="go on with a run: its id, first letters, last or last~2")
@click.option(
    "--continue",
    "go_on",
    is_flag=False,
    flag_value="last",
    metavar="[RUN]",
    help="ask in the conversation of a run  [last]",
)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
@click.option(
    "--csv", "as_csv", is_flag=True, help="print the rows as CSV, exactly as they are, and nothing else"
)
@click.option(
    "--out",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="write all rows: .csv, .json or .parquet; may be repeated",
)
@click.option(
    "--chart",
    type=FILE,
    multiple=True,
    metavar="FILE",
    help="draw the rows: .svg, .png, .pdf; .json for Vega-Lite; may be repeated",
)
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
@setting_flags()
def command(
    question: str | None,
    as_json: bool,
    as_csv: bool,
    out: tuple[Path, ...],
    chart: tuple[Path, ...],
    quiet: bool,
    resume: str | None,
    go_on: str | None,
    **flags: Any,
) -> None:
    """Ask a database a QUESTION in plain language; `-` reads it from standard input.

    `--continue` takes what the run before was about: quorum ask "and by month?" --continue

    Flags win over the environment (QUORUM_…), which wins over quorum.toml.

    Exit codes: 0 answered; 1 no answer found (the best effort is shown); 2 usage or
    configuration; 3 a budget or the time ran out (the best so far is shown); 4 the
    data cannot answer the question (what it lacks is shown); 130 Ctrl-C.
    """
    if as_json and as_csv:
        raise click.UsageError("Choose one of --json and --csv.")
    if resume is not None and (question is not None or go_on is not None):
        raise click.UsageError(
            "--resume goes on with the run's own question: leave QUESTION out, or --continue."
        )
    if question is None and go_on and " " in go_on:  # it is the question: `--continue "and by month?"`
        question, go_on = go_on, "last"
    answer: Answer | None = None
    try:
        if question == "-":
            question = standard_input()
        if resume is None and not (question or "").strip():
            raise click.UsageError("Ask something, e.g. quorum ask 'How many orders were there in May?'")
        wanted = _wanted(out, chart)
        answer = ask_live(question or "", flags, quiet=quiet or as_json or as_csv, resume=resume, go_on=go_on)
        with until_reader_leaves():
            print_answer(answer, as_json=as_json, as_csv=as_csv)
        _write_files(answer, wanted)
    except KeyboardInterrupt:
        kept = f"The answer is kept; show it with: quorum ask --resume {answer.run_id}" if answer else NOTHING
        raise interrupted(kept) from None
    raise SystemExit(EXIT_CODES[answer.status])


def _wanted(out: tuple[Path, ...], chart: tuple[Path, ...]) -> list[tuple[Path, Write]]:
    """Return the files and what writes each, checked before anything is asked."""
    if not out + chart:
        return []
    from quorum.files import CHARTS, ROWS, check_file, write_chart, write_rows

    if len({*out, *chart}) < len(out + chart):
        raise click.UsageError("--out and --chart name the same file twice.")
    for path in out:
        check_file(path, ROWS)
    for path in chart:
        check_file(path, CHARTS)
    return [*((path, write_rows) for path in out), *((path, write_chart) for path in chart)]


def _write_files(answer: Answer, wanted: list[tuple[Path, Write]]) -> None:
    if not wanted:
        return
    from quorum.files import NoChart

    for path, write in wanted:
        if not answer.columns:
            click.echo(f"There is no result: {path} is not written.", err=True)
            continue
        try:
            click.echo(f"Written: {path} ({write(answer, path)})", err=True)
        except NoChart as none:  # the answer is there all the same
            click.echo(f"{none} {path} is not written.", err=True)
    _say_what_is_left_out(answer)


@rare_collections()  # importing makes a million objects, of which nearly all stay
def ask_live(
    question: str, flags: dict[str, Any], *, quiet: bool, resume: str | None = None, go_on: str | None = None
) -> Answer:
    """Ask with progress on standard error; ``go_on`` is the run in whose conversation it is asked.

    Raises:
        ConfigurationError, DatabaseUnavailable, ModelUnavailable, BudgetExceeded: As ``ask``.
        SystemExit: 130 after Ctrl-C at any point, having said how to go on, or that nothing was begun.
    """
    run, progress = None, None
    try:
        from quorum.graph.runs import RunFolder, new_run_id
        from quorum.progress import Progress
        from quorum.render import console
        from quorum.terminal import check_terminal, dialogs

        settings = Settings(**flags)
        if go_on is not None:
            from quorum.chat import settings_of

            settings = settings_of(go_on, settings)
        given: dict[str, Any] = {"settings": settings}
        if resume is None:
            options = settings.run_options()
            if options.clarify != "off":
                check_terminal(
                    "clarify", "Leave it out: other readings are shown with the answer either way."
                )
            if options.approve != "never":
                check_terminal(
                    "approve", "Say --approve never; max_bytes and max_run_bytes limit what is read."
                )
            given["run_id"] = new_run_id()
            run = RunFolder(settings.home / "runs" / given["run_id"])
        else:
            given["resume"] = resume
            run = RunFolder.open(settings.home, resume)
            _say_what_goes_on(run)
        from quorum.api import ask  # heavy: only once the settings are right

        with Progress(console(stderr=True), quiet=quiet) as progress:
            given |= dialogs(progress, settings, resumed=resume is not None)
            return asyncio.run(ask(question, talk=go_on or "", on_event=progress, **given))
    except KeyboardInterrupt:
        raise interrupted(_how_to_go_on(run) or NOTHING) from None
    except QuorumError as error:
        if progress and progress.run:
            error.hint = f"{error.hint} {_how_to_go_on(run)}".strip()
        raise


def _say_what_goes_on(run: RunFolder) -> None:
    """Say which question of which database goes on, or has ended and is answered from its folder."""
    meta = run.meta()
    asked = meta.get("options", {}).get("database") or []
    named = ", ".join(map(mask_url, [asked] if isinstance(asked, str) else asked))
    click.echo(f"Run {run.run_id}: {printable(str(meta.get('question', '')))}", err=True)
    click.echo(f"Database: {printable(named)}", err=True)
    if run.answer() is not None:
        click.echo("This run has ended; nothing is asked again. Its answer:", err=True)


def _how_to_go_on(run: RunFolder | None) -> str:
    begun = run is not None and (run.folder / "run.json").is_file()
    return f"What is finished is kept; go on with: quorum ask --resume {run.run_id}" if run and begun else ""


def print_answer(answer: Answer, *, as_json: bool = False, as_csv: bool = False) -> None:
    """Print an answer to standard output."""
    if as_json:
        text = answer.model_dump_json(indent=2)
        click.echo(_UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text))  # as JSON may write them
    elif as_csv:
        write_csv(answer, sys.stdout)
        _say_what_is_left_out(answer)
    else:
        from quorum.render import console, show_answer

        show_answer(answer, console())


def _say_what_is_left_out(answer: Answer) -> None:
    if answer.status != "answered":
        click.echo(
            f"Not a confirmed answer: {answer.status.replace('_', ' ')} {answer.stopped_by}".rstrip(),
            err=True,
        )
    for warning in answer.warnings:
        click.echo(f"Warning: {printable(warning)}", err=True)
    if answer.demonstration:
        click.echo("Demonstration: the rule-based offline model answered.", err=True)


def write_csv(answer: Answer, out: TextIO) -> None:
    """Write the header and all rows; NULL is an empty field, nested values are JSON.

    Values stand as they are, but on a terminal, where control characters are made visible.

    Raises:
        QuorumError: The result's file is gone or damaged.
    """
    from quorum.tools.results.files import csv_lines

    if answer.columns:
        lines = csv_lines(answer.to_arrow(), end="\n")
        out.writelines(map(printable, lines) if out.isatty() else lines)
