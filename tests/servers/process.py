"""What the tests' own database servers share: a port, a user who is not root, what a missing one means."""

from __future__ import annotations

import os
import pwd
import socket
from collections.abc import Sequence
from typing import NoReturn

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
