"""Files that are written whole or not at all, and locks that end with their process."""

from __future__ import annotations

import fcntl
import os
import threading
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import FileDescriptorLike


def replace_file(
    path: Path, content: bytes | memoryview, *, private: bool = False, durable: bool = False
) -> None:
    """Write a file whole or not at all: readers see the earlier content or the new one.

    Args:
        private: Only the owner may read it.
        durable: It survives a crash of the machine, too.

    Raises:
        OSError: It cannot be written. No draft is left, which would fill a full disk further.
    """
    draft, left = f"{path}.{os.getpid()}-{threading.get_ident()}.part", memoryview(content)
    try:
        file = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600 if private else 0o666)
        try:
            while left:
                left = left[os.write(file, left) :]
            if durable:
                os.fsync(file)
        finally:
            os.close(file)
        Path(draft).replace(path)
    except BaseException:
        Path(draft).unlink(missing_ok=True)
        raise


def write_once(path: Path, content: bytes, *, private: bool = False) -> bool:
    """Write a file whole unless there is one, which stays: of several processes one writes it.

    Return True in that one.

    Args:
        private: Only the owner may read it.

    Raises:
        OSError: It cannot be written.
    """
    draft = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.part")
    try:
        draft.touch(mode=0o600 if private else 0o666)
        draft.write_bytes(content)
        path.hardlink_to(draft)
    except FileExistsError:
        return False
    else:
        return True
    finally:
        draft.unlink(missing_ok=True)


def lock(file: FileDescriptorLike) -> bool:
    """Lock an open file for this process, until it is closed. Return False if another process has locked it.

    Raises:
        OSError: The file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True
