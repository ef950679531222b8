"""Questions that a run asks on the terminal: shown on standard error, answered by a line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

import click
from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from quorum.event_text import title_of
from quorum.knowledge.errors import ConfigurationError
from quorum.progress import Progress
from quorum.render import rows_table, sql_text
from quorum.text import count, laid_out, listed, printable

if TYPE_CHECKING:
    from quorum.graph.approval import Approval
    from quorum.graph.clarification import Clarification
    from quorum.settings import Settings


class Dialog:
    """Asks the user: ``clarify`` and ``approve`` are the command line's ``on_clarify`` and ``on_approve``.

    Both return the user's line, "" where the input ends, and raise ``KeyboardInterrupt`` at once on Ctrl-C,
    which an event loop would put off.

    Args:
        progress: Pauses while the user thinks.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def clarify(self, asked: Clarification) -> str:
        """Ask which of several answers is meant."""
        labels = [choice.label for choice in asked.choices]
        own = ", or say it in your own words" if asked.own_words else ""
        prompt = f"{', '.join(labels)}{own} (Enter: {labels[0]})"
        return self._line(partial(show_clarification, asked), prompt, refused=asked.refused)

    def approve(self, asked: Approval) -> str:
        """Ask before a query runs."""
        show = partial(show_approval, asked)
        return self._line(show, "yes, no, or all (Enter: no)", refused=asked.refused)

    def _line(self, show: Callable[[Console], None], prompt: str, *, refused: str) -> str:
        """Return the user's line.

        Args:
            refused: Why the line before was of no use; shown instead of the question.
        """
        with self._progress.paused():
            if refused:
                click.secho(printable(refused), fg="yellow", err=True)
            else:
                show(self._progress.console)
            before = signal.signal(signal.SIGINT, signal.default_int_handler)
            try:
                return str(click.prompt(prompt, default="", show_default=False, err=True))
            except click.Abort as error:
                if isinstance(error.__context__, KeyboardInterrupt):
                    raise KeyboardInterrupt from None
                return ""
            finally:
                signal.signal(signal.SIGINT, before)


def dialogs(progress: Progress, settings: Settings, *, resumed: bool = False) -> dict[str, Any]:
    """Return ``on_clarify`` and ``on_approve`` as far as the settings need them and a user can be asked.

    Args:
        resumed: The run has settings of its own, which may need both.
    """
    if not on_terminal():
        return {}
    dialog = Dialog(progress)
    asks = {"on_clarify": dialog.clarify} if resumed or settings.clarify != "off" else {}
    return asks | ({"on_approve": dialog.approve} if resumed or settings.approve != "never" else {})


def show_clarification(asked: Clarification, out: Console) -> None:
    """Print the answers and how they differ."""
    out.print()
    out.print(Text("The question can be read in several ways. Which answer is meant?", style="bold yellow"))
    votes = any(choice.candidates > 1 for choice in asked.choices)
    for choice in asked.choices:
        more = choice.row_count - len(choice.rows)
        backing = [count(choice.candidates, "candidate")] if votes else []
        backing += [f"{count(more, 'more row')}"] if more > 0 else []
        shown = f"  ({'; '.join(backing)})" if backing else ""
        out.print()
        out.print(Text.assemble((f"{choice.label}  ", "bold cyan"), printable(choice.says), (shown, "dim")))
        _show_sql(choice.sql, asked.dialect, out)
        out.print(Padding(rows_table(choice.columns, choice.rows, choice.types), (0, 0, 0, 4)))
    out.print()
    for sentence in asked.differences:
        out.print(Text(f"  {printable(sentence)}"))


def show_approval(asked: Approval, out: Console) -> None:
    """Print the query and what it would read."""
    who = " ".join(filter(None, (title_of(asked.agent), listed([asked.candidate]))))
    out.print()
    out.print(Text("May this query run?", style="bold yellow"))
    out.print(Text(f"  {printable(asked.why)}"))
    _show_sql(asked.sql, asked.dialect, out)
    facts = f"Reads: {asked.reads}; database: {asked.database} ({asked.dialect}); for: {who}"
    out.print(Text(f"  {printable(facts)}", style="dim"))


def _show_sql(sql: str, dialect: str, out: Console) -> None:
    text = sql_text(laid_out(sql, dialect))
    text.no_wrap = False  # queries may differ at the end of a line
    out.print(Padding(text, (0, 0, 0, 4)))


def on_terminal() -> bool:
    """Return True if a user can be asked."""
    return sys.stdin.isatty()


def check_terminal(option: str, instead: str) -> None:
    """Raise if no user can be asked.

    Args:
        option: The option that makes a run ask.
        instead: What to do without a terminal.

    Raises:
        ConfigurationError: Standard input is no terminal.
    """
    if not on_terminal():
        raise ConfigurationError(f"{option} asks on the terminal, and standard input is none.", hint=instead)
