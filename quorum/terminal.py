"""Questions that a run asks on the terminal: shown on standard error, answered by a line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

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

Request = TypeVar("Request", "Clarification", "Approval")


def dialogs(progress: Progress, settings: Settings, *, resumed: bool = False) -> dict[str, Any]:
    """Return ``on_clarify`` and ``on_approve`` as far as the settings need them and a user can be asked.

    Both return the user's line, "" where the input ends, and raise ``KeyboardInterrupt`` at once on Ctrl-C,
    which an event loop would put off.

    Args:
        progress: Pauses while the user thinks.
        resumed: The run has settings of its own, which may need both.
    """

    def clarify(asked: Clarification) -> str:
        """Ask which of several answers is meant."""
        labels = [choice.label for choice in asked.choices]
        own = ", or say it in your own words" if asked.own_words else ""
        return _line(asked, show_clarification, f"{', '.join(labels)}{own} (Enter: {labels[0]})", progress)

    def approve(asked: Approval) -> str:
        """Ask before a query runs."""
        return _line(asked, show_approval, "yes, no, or all (Enter: no)", progress)

    if not sys.stdin.isatty():
        return {}
    asks = {"on_clarify": clarify} if resumed or settings.clarify != "off" else {}
    return asks | ({"on_approve": approve} if resumed or settings.approve != "never" else {})


def _line(asked: Request, show: Callable[[Request, Console], None], prompt: str, progress: Progress) -> str:
    """Return the user's line; why the line before was of no use is shown instead of the question."""
    with progress.paused():
        if asked.refused:
            click.secho(printable(asked.refused), fg="yellow", err=True)
        else:
            show(asked, progress.console)
        before = signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            return str(click.prompt(prompt, default="", show_default=False, err=True))
        except click.Abort as error:
            if isinstance(error.__context__, KeyboardInterrupt):
                raise KeyboardInterrupt from None
            return ""
        finally:
            signal.signal(signal.SIGINT, before)


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


def check_terminal(option: str, instead: str) -> None:
    """Raise if no user can be asked.

    Args:
        option: The option that makes a run ask.
        instead: What to do without a terminal.

    Raises:
        ConfigurationError: Standard input is no terminal.
    """
    if not sys.stdin.isatty():
        raise ConfigurationError(f"{option} asks on the terminal, and standard input is none.", hint=instead)
