"""Snowflake's login in a browser, made fit for programs.

Its client prints to standard output, which may be read by a program, asks at a terminal that may not be
there, and waits for the browser without end. These three are replaced where its modules look for them.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Any

from quorum.tools.databases.server import Gone

WAIT_SECONDS = 120.0
"""For somebody who logs in."""


def tame() -> None:
    """Replace what the client's module prints, asks and waits with; it may be called again."""
    from snowflake.connector.auth import oauth_code, webbrowser

    vars(webbrowser).update(print=_told, input=_asked, select=_Waiting)
    vars(oauth_code).update(print=_told, input=_asked)  # it waits with an end of its own


def _told(*words: Any) -> None:
    print(*words, file=sys.stderr)


def _asked(question: str) -> str:
    """The answer at the terminal.

    Raises:
        Gone: There is none.
    """
    if not sys.stdin.isatty():
        raise Gone("no browser could be opened to log in, and there is no terminal to ask at")
    _told(question)
    return sys.stdin.readline().strip()


class _Waiting:
    """``select`` with an end."""

    @staticmethod
    def select(reading: Sequence[Any], writing: Sequence[Any], failing: Sequence[Any]) -> Any:
        """As ``select.select``.

        Raises:
            Gone: Nobody has logged in.
        """
        import select

        found = select.select(reading, writing, failing, WAIT_SECONDS)
        if not any(found):
            raise Gone(f"nobody has logged in with the browser within {WAIT_SECONDS:g} s")
        return found
