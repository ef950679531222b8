"""Which engine a file belongs to and whether it is whole, from its first bytes, before an engine opens it.

These functions run in child processes only. A process that closes a file loses all its POSIX locks
on it, so looking into a SQLite file from the user's own process could break a transaction that the
same process has open there (sqlite.org/howtocorrupt.html, 2.2).
"""

from __future__ import annotations

import os
import struct

from quorum.knowledge.errors import DatabaseUnavailable

SQLITE_MAGIC = b"SQLite format 3\x00"
DUCKDB_MAGIC = b"DUCK"
DUCKDB_HEADERS = (4096, 8192)
"""Offsets of DuckDB's two database headers; the one with the greater iteration is valid."""
DUCKDB_BLOCKS = 12_288
"""Offset of its first block."""


def engine_of(header: bytes) -> str:
    """``sqlite`` or ``duckdb`` by the file's mark, or empty."""
    if header.startswith(SQLITE_MAGIC):
        return "sqlite"
    return "duckdb" if header[8:12] == DUCKDB_MAGIC else ""


def check(path: str, engine: str) -> None:
    """Look at a file before ``engine`` does.

    Raises:
        DatabaseUnavailable: It is missing, unreadable, empty, another engine's, or cut short.
    """
    header, size = _read(path)
    if not header:
        raise DatabaseUnavailable(f"{path} is empty: 0 bytes.", hint="Was it ever written?")
    found = engine_of(header)
    if not found:
        hint = "It may be encrypted, damaged, or something else."
        raise DatabaseUnavailable(f"{path} is not a {engine} database.", hint=hint)
    if found != engine:
        raise DatabaseUnavailable(f"{path} is a {found} file.", hint=f"Write {found}:/// before its path.")
    expected = _sqlite_size(header) if engine == "sqlite" else _duckdb_size(header)
    if size < expected:
        hint = "Copy it again from its source."
        raise DatabaseUnavailable(f"{path} is truncated: {size} of {expected} bytes are there.", hint=hint)


def _read(path: str) -> tuple[bytes, int]:
    folder = os.path.dirname(path)  # noqa: PTH120 - pathlib costs start time
    try:
        with open(path, "rb") as file:  # noqa: PTH123
            return file.read(DUCKDB_BLOCKS), os.fstat(file.fileno()).st_size
    except FileNotFoundError as error:
        there = os.path.isdir(folder)  # noqa: PTH112
        hint = "Is the path right?" if there else f"There is no folder {folder} either."
        raise DatabaseUnavailable(f"There is no file {path}.", hint=hint) from error
    except IsADirectoryError as error:
        raise DatabaseUnavailable(f"{path} is a folder.", hint="Name the database's file.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise DatabaseUnavailable(f"{path} cannot be read: {reason}.") from error


def _sqlite_size(header: bytes) -> int:
    """Bytes that the header promises (sqlite.org/fileformat.html, 1.3); 0 where it may be outdated."""
    if len(header) < 100 or header[24:28] != header[92:96]:
        return 0
    page = int.from_bytes(header[16:18], "big")
    return (65_536 if page == 1 else page) * int.from_bytes(header[28:32], "big")


def _duckdb_size(header: bytes) -> int:
    """The file's size by the newer database header: number of blocks times their size."""
    if len(header) < DUCKDB_BLOCKS:
        return DUCKDB_BLOCKS
    headers = [struct.unpack_from("<6Q", header, start) for start in DUCKDB_HEADERS]
    _, _, _, _, blocks, block_size = max(headers, key=lambda fields: fields[1])
    plausible = 2**14 <= block_size <= 2**18
    return DUCKDB_BLOCKS + (blocks * block_size if plausible else 0)
