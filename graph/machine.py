"""Telling a failure of this machine from one of the question."""

from __future__ import annotations

import errno

from quorum.knowledge.errors import MachineFailed

_MACHINE = {
    getattr(errno, name)
    for name in ("ENOSPC", "EDQUOT", "EFBIG", "EROFS", "EIO", "EMFILE", "ENFILE", "ENOMEM")
    if hasattr(errno, name)
}
_SQLITE = ("SQLITE_FULL", "SQLITE_IOERR", "SQLITE_CANTOPEN", "SQLITE_NOMEM", "SQLITE_READONLY")

_FULL = "no space is left for the run's checkpoint"


def check_machine(error: Exception) -> None:
    """Raise ``MachineFailed`` if the machine failed, not the question."""
    sqlite = str(getattr(error, "sqlite_errorname", ""))
    own = isinstance(error, MemoryError) or sqlite.startswith(_SQLITE)
    if own or (isinstance(error, OSError) and error.errno in _MACHINE):
        what = _FULL if sqlite == "SQLITE_FULL" else str(error) or type(error).__name__
        hint = "See to its disk, memory or limit of open files."
        raise MachineFailed(f"This machine cannot go on: {what}.", hint=hint) from error
