"""What the tests' own database servers share: a port, a user who is not root, what a missing one means."""

from __future__ import annotations

import os
import pwd
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import NoReturn, TypeVar

import pytest

REQUIRED = os.environ.get("QUORUM_SERVERS") == "required"
"""Whether a missing server fails its tests; read here, because tests do not see such variables."""


def missing(message: str) -> NoReturn:
    """Skip, or fail where servers are required."""
    if REQUIRED:
        pytest.fail(message)
    pytest.skip(message)


def user_of(names: Sequence[str]) -> pwd.struct_passwd | None:
    """Who runs a server where the tests are root's, which it refuses to be: the first that is here."""
    if os.geteuid() != 0:
        return None
    known = {user.pw_name: user for user in pwd.getpwall()}
    return next(known[name] for name in names if name in known)


def unprivileged(names: Sequence[str]) -> list[str]:
    """How a command begins that one of these users runs."""
    user = user_of(names)
    if user is None:
        return []
    return ["setpriv", f"--reuid={user.pw_uid}", f"--regid={user.pw_gid}", "--clear-groups"]


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return int(one.getsockname()[1])


Server = TypeVar("Server")


def serve(running: AbstractContextManager[Server], told: Callable[[Server], str]) -> None:
    """Start a server, print what is told of it on a line, and serve until somebody interrupts."""
    ends = {signal.SIGINT, signal.SIGTERM}
    signal.pthread_sigmask(signal.SIG_BLOCK, ends)
    try:
        with running as server:
            print(told(server), flush=True)
            signal.sigwait(ends)
    except pytest.skip.Exception as reason:
        raise SystemExit(str(reason)) from None


def script() -> str:
    """What fills a server's first database: the file that the command line names, else nothing."""
    return Path(sys.argv[1]).read_text("utf-8") if sys.argv[1:] else ""
