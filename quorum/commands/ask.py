"""``quorum ask``: a question in, an answer out."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from knowledge.errors import BudgetExceeded, ConfigurationError, QuorumError

if TYPE_CHECKING:
    from graph.answer import Answer

EXIT_CODES = {"answered": 0, "no_answer": 1, "stopped": 3}
CONFIGURATION, OUT_OF_BUDGET, INTERRUPTED = 2, 3, 130

NO_MODEL = """No model is configured. Name one in any of these ways:
  a flag            --model openai:gpt-4.1   (and OPENAI_API_KEY in the environment)
  the environment   QUORUM_MODELS=openai:gpt-4.1   (a comma list makes an ensemble)
  quorum.toml       models = ["openai:gpt-4.1"]
Any OpenAI-compatible endpoint works: add --base-url, e.g. http://localhost:11434/v1.
`--model offline` needs no key, but is a rule-based demonstration and no language model."""

NO_DATABASE = """No database is given. Name one in any of these ways:
  a flag            --db sqlite:///shop.db   (or duckdb:///sales.duckdb)
  the environment   QUORUM_DATABASE=sqlite:///shop.db
  quorum.toml       database = "sqlite:///shop.db"
`--db sample` is the sample database that `quorum demo` asks."""


@click.command(short_help="Ask a database a question in plain language.")
@click.argument("question", required=False)
@click.option("--db", "database", metavar="URL", help="sqlite:///shop.db, duckdb:///…, or sample")
@click.option(
    "--model", "models", multiple=True, metavar="SPEC", help="provider:name; repeat for an ensemble"
)
@click.option("--recipe", metavar="NAME", help="see `quorum recipes`  [recap]")
@click.option("--votes", type=int, metavar="N", help="candidates that vote  [3]")
@click.option("--strategy", metavar="NAME", help="how they vote  [auto]")
@click.option("--docs", "documents", metavar="DIR", help="folder of documents that define business terms")
@click.option("--base-url", metavar="URL", help="an OpenAI-compatible endpoint")
@click.option("--temperature", type=float, metavar="T", help="of all candidates of a model after its first")
@click.option("--max-calls", type=int, metavar="N", help="stop after N model calls")
@click.option("--max-usd", type=float, metavar="X", help="stop after X dollars")
@click.option("--deadline", metavar="TIME", help="stop after that long: 90, 90s, 5m")
@click.option("--resume", metavar="RUN", help="go on with an interrupted run: its id, a beginning, or last")
@click.option("--json", "as_json", is_flag=True, help="print one JSON object and nothing else")
@click.option("--csv", "as_csv", is_flag=True, help="print the rows as CSV and nothing else")
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
def command(
    question: str | None, as_json: bool, as_csv: bool, quiet: bool, resume: str | None, **flags: Any
) -> None:
    """Ask a database a QUESTION in plain language; `-` reads it from standard input.

    Flags win over the environment (QUORUM_…), which wins over quorum.toml.

    Exit codes: 0 answered; 1 no answer found (the best effort is shown); 2 usage or
    configuration; 3 a budget or the time ran out (the best so far is shown).
    """
    if as_json and as_csv:
        raise click.UsageError("Choose one of --json and --csv.")
    if question == "-":
        question = sys.stdin.read()
    if not resume and not (question or "").strip():
        raise click.UsageError("Ask something, e.g. quorum ask 'How many orders were there in May?'")
    try:
        answer = ask_live(question or "", flags, quiet=quiet or as_json or as_csv, resume=resume)
    except QuorumError as error:
        if as_json:
            click.echo(json.dumps(error_object(error), ensure_ascii=False))
        code = OUT_OF_BUDGET if isinstance(error, BudgetExceeded) else CONFIGURATION
        click.echo(f"Error: {error}", err=True)
        raise SystemExit(code) from error
    print_answer(answer, as_json=as_json, as_csv=as_csv)
    raise SystemExit(EXIT_CODES[answer.status])


def ask_live(question: str, flags: dict[str, Any], *, quiet: bool, resume: str | None = None) -> Answer:
    """Ask with progress on standard error.

    Raises:
        ConfigurationError, DatabaseUnavailable, ModelUnavailable, BudgetExceeded: As ``ask``.
        SystemExit: 130 after Ctrl-C, having said how to go on.
    """
    from quorum.progress import Progress
    from quorum.render import console
    from quorum.settings import Settings

    settings = Settings.load(**flags)
    if not resume and not settings.models:
        raise ConfigurationError(NO_MODEL)
    if not resume and not settings.database:
        raise ConfigurationError(NO_DATABASE)
    from quorum.api import ask_sync  # heavy: only once the settings are right

    with Progress(console(stderr=True), quiet=quiet) as progress:
        try:
            return ask_sync(question, settings=settings, resume=resume, on_event=progress)
        except KeyboardInterrupt:
            click.echo(_interrupted(settings.home, resume, begun=progress.events > 0), err=True)
            raise SystemExit(INTERRUPTED) from None


def _interrupted(home: Path, resume: str | None, *, begun: bool) -> str:
    if not begun:
        return "Interrupted before anything was done."
    from graph.runs import RunFolder

    run = RunFolder.open(home, resume or "last").run_id
    return f"Interrupted; what is finished is kept. Go on with: quorum ask --resume {run}"


def print_answer(answer: Answer, *, as_json: bool = False, as_csv: bool = False) -> None:
    """Print an answer to standard output."""
    if as_json:
        click.echo(answer.model_dump_json(indent=2))
    elif as_csv:
        from quorum.rows import write_csv

        write_csv(answer, sys.stdout)
        _say_what_csv_leaves_out(answer)
    else:
        from quorum.render import console, show_answer

        show_answer(answer.model_dump(), console())


def error_object(error: QuorumError) -> dict[str, Any]:
    """A failure as ``--json`` prints it."""
    return {"status": "error", "error": {"kind": type(error).__name__, "message": str(error)}}


def _say_what_csv_leaves_out(answer: Answer) -> None:
    if answer.status != "answered":
        click.echo(
            f"Not a confirmed answer: {answer.status.replace('_', ' ')} {answer.stopped_by}".rstrip(),
            err=True,
        )
    if answer.truncated:
        click.echo(f"Cut off after {answer.row_count:,} rows; there are more.", err=True)
    if answer.demonstration:
        click.echo("Demonstration: the rule-based offline model answered.", err=True)
