"""What a child process and its parent agree on: the messages and what a session can do.

A message is a head (two lengths), a JSON header and an optional binary payload, an Arrow IPC
stream; a request has a payload where it hands over rows. The parent asks one thing at a time; the child
answers each request once.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    import pyarrow as pa

HEAD = struct.Struct(">IQ")
"""Length of the header and of the payload, in bytes."""

Load: TypeAlias = tuple[Mapping[str, Any], bytes | memoryview]
"""What a session is handed before a query (``Loading.load``): what it is, and an Arrow IPC stream if any."""


@dataclass(frozen=True)
class Fetched:
    """Rows that a session fetched.

    Attributes:
        table: Plain Arrow types only; no extension type crosses the pipe.
        truncated: Empty, or the cap that cut the rows: ``rows`` or ``bytes``.
        types: The engine's own name of each column's type.
        scanned: Bytes that the engine says it read; None where it does not say.
        slot_seconds: As ``QueryResult.slot_seconds``.
    """

    table: pa.Table
    truncated: str
    types: tuple[str, ...]
    scanned: int | None = None
    slot_seconds: float | None = None


class Session(Protocol):
    """One hardened, read-only connection inside the child process.

    It is made from the database's absolute path, the engine's memory in bytes and the absolute paths of the
    other files that it may read, raising ``DatabaseUnavailable`` if that fails, and has proven when it is
    made that it cannot write.
    """

    def __init__(self, path: str, memory: int, files: Sequence[str] = ()) -> None: ...

    def warm_up(self) -> None:
        """Load in advance what the first query needs."""

    def run(self, sql: str, rows: int, size: int, seconds: float) -> Fetched:
        """Run one statement; keep at most ``rows`` rows and ``size`` bytes, stop after ``seconds``.

        Raises the driver's own errors, which the parent classifies.
        """


class Loading(Session, Protocol):
    """A session whose queries read what it was handed before."""

    def load(self, what: Mapping[str, Any], payload: bytes) -> None:
        """Take one part; ``payload`` is an Arrow IPC stream. Raises the driver's own errors."""


def pack(header: dict[str, Any], payload: int = 0) -> bytes:
    """A message up to its payload of so many bytes."""
    text = json.dumps(header).encode()
    return HEAD.pack(len(text), payload) + text
