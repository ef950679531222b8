"""Choosing a connector by URL or by the file's mark."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases import CONNECTORS, connect
from quorum.tools.databases.embedded import file_of


def test_unknown_scheme_lists_the_known() -> None:
    with pytest.raises(ConfigurationError) as raised:
        connect("cobol://host/db")
    assert all(f"{scheme}://" in str(raised.value) for scheme in CONNECTORS)


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("sqlite:///shop.db", "shop.db"),
        ("sqlite:///data/shop.db", "data/shop.db"),
        ("sqlite:////var/shop.db", "/var/shop.db"),
        ("sqlite:///~/shop.db", "~/shop.db"),
        ("sqlite:///a%20b%3F%23%25.db", "a b?#%.db"),
        ("sqlite:///50%.db", "50%.db"),
        ("sqlite:///größe.db", "größe.db"),
    ],
)
def test_file_of(url: str, path: str) -> None:
    assert file_of(url, "sqlite") == path


def test_host_is_explained() -> None:
    with pytest.raises(ConfigurationError, match=r"sqlite:///relative"):
        connect("sqlite://shop.db")


def test_plain_paths(tmp_path: Path) -> None:
    for content, message in ((None, "no file"), (b"", "neither"), (b"name,price\n", "neither")):
        if content is not None:
            (tmp_path / "shop.db").write_bytes(content)
        with pytest.raises(DatabaseUnavailable, match=message):
            connect(str(tmp_path / "shop.db"))
    for path in ("~nobody-at-all/shop.db", "a\0b", "x" * 5000, ""):
        with pytest.raises(DatabaseUnavailable):
            connect(path)


def test_looking_at_a_file_keeps_the_locks_of_this_process(tmp_path: Path) -> None:
    """Closing a file drops all POSIX locks that the process holds on it."""
    path = tmp_path / "shop.db"
    connection = sqlite3.connect(path, isolation_level=None)
    connection.executescript("CREATE TABLE t (x); BEGIN EXCLUSIVE;")
    connect(str(path))
    program = "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT * FROM t')"
    other = subprocess.run(
        [sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=False
    )
    connection.close()
    assert "database is locked" in other.stderr


def test_drivers_are_not_imported_before_they_are_needed(root: Path) -> None:
    program = """
import sys
from quorum.tools.databases import connect
connect("sqlite:///a.db"), connect("duckdb:///a.db")
print(sorted({"sqlite3", "duckdb", "pyarrow", "sqlglot"} & set(sys.modules)))
"""
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
