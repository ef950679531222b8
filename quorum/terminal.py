"""A question on the terminal: shown on standard error, answered by a line."""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable

import click
from rich.console import Console

from quorum.knowledge.errors import ConfigurationError
from quorum.progress import Progress
from quorum.text import printable


class Terminal:
    """Asks the user.

    Args:
        progress: Stands still while the user thinks.
    """

    def __init__(self, progress: Progress) -> None:
        self._progress = progress

    def line(self, show: Callable[[Console], None], prompt: str, *, refused: str = "") -> str:
        """The user's line; empty where the input ends.

        Args:
            show: Prints what is asked about.
            refused: Why the line before was of no use, which is said in place of ``show``.

        Raises:
            KeyboardInterrupt: At once on Ctrl-C, which an event loop would put off.
        """
        with self._progress.standing_still():
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


def on_terminal() -> bool:
    """Whether a user can be asked."""
    return sys.stdin.isatty()


def check_terminal(option: str, instead: str) -> None:
    """Raise if no user can be asked.

    Args:
        option: That asks.
        instead: What to do without.

    Raises:
        ConfigurationError: Standard input is no terminal.
    """
    if not on_terminal():
        raise ConfigurationError(f"{option} asks on the terminal, and standard input is none.", hint=instead)
