"""The command line. A command's module is imported only when that command is called."""

from __future__ import annotations

import gc
import importlib
import json
import sys
import traceback
from itertools import takewhile
from typing import Any

import click

from quorum import __version__
from quorum.knowledge.errors import BudgetExceeded, QuorumError
from quorum.shell import until_reader_leaves, write_anything
from quorum.text import printable
from quorum.tools.garbage import YOUNG

COMMANDS = {
    "ask": "Ask a database a question in plain language.",
    "chat": "Talk with a database: a turn may refer to those before.",
    "batch": "Answer a file of questions, a row each.",
    "serve": "Serve questions over HTTP, with a page to ask on.",
    "mcp": "Give an assistant a database as tools (MCP).",
    "demo": "Answer three questions on the sample database; needs no key.",
    "doctor": "Say what is configured, from where, and what is missing.",
    "explore": "Learn a database before anybody asks.",
    "keep": "Keep a run's answer as verified.",
    "correct": "Keep the right query for a run's question.",
    "kb": "Look at, check and prune what was verified.",
    "schema": "Show a schema as the models see it.",
    "guard": "Judge whether SQL is a pure read.",
    "history": "List the runs, the latest first.",
    "trace": "Show a run step by step.",
    "votes": "Replay votes over recorded candidates.",
    "eval": "Measure recipes on benchmarks or own questions; report, compare, score.",
    "recipes": "List the recipes, or one with its switches.",
}

USAGE_ERROR = 2
OUT_OF_BUDGET = 3
INTERRUPTED = 130  # as shells report SIGINT
FAULT = 70  # EX_SOFTWARE of sysexits.h

_AS_JSON = "quorum.as_json"
_DATA = ("--json", "--csv", "--file")  # options with which standard output is for programs


class CliError(click.ClickException):
    """Something that the user can mend: a setting, the database, the model's endpoint."""

    exit_code = USAGE_ERROR


class OverLimit(CliError):
    """A limit that was reached before there was anything to show."""

    exit_code = OUT_OF_BUDGET


class LazyGroup(click.Group):
    """A group that knows its commands' names and help, and imports them one by one.

    Args:
        known: The help of each command by its name, which is that of its module.
        prefix: Of the modules' names.
    """

    def __init__(self, *, known: dict[str, str], prefix: str = "", **more: Any) -> None:
        super().__init__(**more)
        self.known, self.prefix = known, prefix

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 (click's signature)
        return list(self.known)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in self.known:
            return None
        module = f"quorum.commands.{self.prefix}{cmd_name.replace('-', '_')}"
        command: click.Command = importlib.import_module(module).command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(self.known.items()))


class _Cli(LazyGroup):
    """Ends all commands alike: an error is one JSON object if the command was asked for JSON."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        given = [arg.partition("=")[0] for arg in takewhile(lambda arg: arg != "--", args)]
        ctx.meta[_AS_JSON] = "--json" in given
        write_anything(utf8=any(option in given for option in _DATA))
        return super().parse_args(ctx, args)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            with until_reader_leaves():
                return super().invoke(ctx)
        except (QuorumError, click.ClickException) as error:
            if ctx.meta[_AS_JSON]:
                click.echo(json.dumps(_error_object(error), ensure_ascii=False))
            if isinstance(error, click.ClickException):
                raise
            kind = OverLimit if isinstance(error, BudgetExceeded) else CliError
            raise kind(printable(str(error))) from error  # an endpoint's words may hold escapes
        except KeyboardInterrupt:
            raise interrupted("" if ctx.invoked_subcommand else NOTHING_BEGUN) from None
        except (click.exceptions.Exit, click.Abort):  # click's own ways to end
            raise
        except Exception as error:  # a fault of ours, which main reports: whoever reads JSON hears of it too
            if ctx.meta[_AS_JSON]:
                click.echo(json.dumps(_error_object(error), ensure_ascii=False))
            raise


NOTHING_BEGUN = "Nothing was begun."


def interrupted(kept: str = "") -> SystemExit:
    """Say on standard error that Ctrl-C ended the command and what is ``kept``; return how it exits."""
    click.echo(f"Interrupted. {kept}".rstrip(), err=True)
    return SystemExit(INTERRUPTED)


def _error_object(error: Exception) -> dict[str, Any]:
    """A failure as ``--json`` prints it."""
    message = error.format_message() if isinstance(error, click.ClickException) else str(error)
    return {"status": "error", "error": {"kind": type(error).__name__, "message": printable(message)}}


@click.group(cls=_Cli, known=COMMANDS, context_settings={"help_option_names": ["-h", "--help"]})
@click.version_option(__version__, prog_name="quorum")
def cli() -> None:
    """Quorum answers questions about a database with SQL that several agents write, check and vote on.

    Start with `quorum demo`, then `quorum ask "…" --db sqlite:///shop.db --model openai:gpt-4.1`.

    Exit codes: 0 answered; 1 no answer; 2 usage or configuration; 3 a budget or the time ran out; 4 the data
    cannot answer; 130 Ctrl-C.
    """


def main() -> None:
    """The entry point of the ``quorum`` script."""
    # imported objects stay: default collections would take a tenth of the time of importing
    gc.set_threshold(YOUNG)
    sys.setswitchinterval(0.0001)  # the event loop does not wait for the thread that imports the graph
    try:
        cli(prog_name="quorum")
    except Exception:  # noqa: BLE001 - a fault of ours must not end with Python's own 1, which means: no answer
        click.echo(printable(traceback.format_exc()), err=True)
        sys.exit(FAULT)
