"""The terminal dialog that asks which of the disagreeing answers is meant."""

from __future__ import annotations

import signal
import sys
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from quorum.knowledge.errors import ConfigurationError
from quorum.progress import Progress
from quorum.render import rows_table, sql_text
from quorum.text import count, laid_out, printable

if TYPE_CHECKING:
    from quorum.graph.clarification import Choice, Clarification

_INDENT = (0, 0, 0, 4)


class TerminalClarifier:
    """The ``on_clarify`` of the command line: shows the answers on standard error and reads a line.

    Args:
        progress: Stands still while the user thinks.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def __call__(self, asked: Clarification) -> str:
        """The user's line; empty where the input ends.

        Raises:
            KeyboardInterrupt: At once on Ctrl-C, which an event loop would put off.
        """
        with self._progress.standing_still():
            if asked.refused:
                click.secho(printable(asked.refused), fg="yellow", err=True)
            else:
                show_clarification(asked, self._progress.console)
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                return str(click.prompt(_prompt(asked), default="", show_default=False, err=True))
            except click.Abort as error:
                if isinstance(error.__context__, KeyboardInterrupt):
                    raise KeyboardInterrupt from None
                return ""
            finally:
                signal.signal(signal.SIGINT, before)


def on_terminal() -> bool:
    """Whether a user can be asked."""
    return sys.stdin.isatty()


def check_terminal() -> None:
    """Raise if no user can be asked.

    Raises:
        ConfigurationError: Standard input is no terminal.
    """
    if not on_terminal():
        raise ConfigurationError(
            "clarify asks on the terminal, and standard input is none.",
            hint="Leave it out: how the answers disagree is shown with the answer either way.",
        )


def show_clarification(asked: Clarification, out: Console) -> None:
    """Print the answers and how they differ."""
    out.print()
    out.print(Text("The candidates disagree. Which answer is meant?", style="bold yellow"))
    for sentence in asked.differences:
        out.print(Text(f"  {printable(sentence)}"))
    for choice in asked.choices:
        out.print()
        out.print(
            Text.assemble(
                (f"{choice.label}  ", "bold cyan"), printable(choice.says), (_backing(choice), "dim")
            )
        )
        sql = sql_text(laid_out(choice.sql, asked.dialect))
        sql.no_wrap = False  # what differs may stand at the end of a line
        out.print(Padding(sql, _INDENT))
        out.print(Padding(rows_table(choice.columns, choice.rows), _INDENT))


def _backing(choice: Choice) -> str:
    more = choice.row_count - len(choice.rows)
    return f"  ({count(choice.candidates, 'candidate')}{f'; {more:,} more rows' if more > 0 else ''})"


def _prompt(asked: Clarification) -> str:
    labels = [choice.label for choice in asked.choices]
    own = ", or say it in your own words" if asked.own_words else ""
    return f"{', '.join(labels)}{own} (Enter: {labels[0]})"
