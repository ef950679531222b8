"""The sample database: the same everywhere, whole, full of its traps, and never written over a stranger."""

from __future__ import annotations

import hashlib
import re
import sqlite3
from pathlib import Path

import pytest

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.sample import build_sample, sample_database


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_database(tmp_path_factory.mktemp("shop"))


def content_hash(path: Path) -> str:
    dump = "\n".join(sqlite3.connect(path).iterdump())
    return hashlib.sha256(dump.encode()).hexdigest()


def test_it_has_the_promised_size_and_shape(shop: Path) -> None:
    connection = sqlite3.connect(f"{shop.as_uri()}?mode=ro", uri=True)
    names = [name for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    shards = [name for name in names if re.fullmatch(r"events_2024_0[1-6]", name)]
    assert (len(shards), len(names)) == (6, 18)
    rows = sum(connection.execute(f"SELECT COUNT(*) FROM {name}").fetchone()[0] for name in names)
    assert 90_000 < rows < 130_000
    assert len({tuple(connection.execute(f"PRAGMA table_info({name})")) for name in shards}) == 1
    assert connection.execute("PRAGMA foreign_key_check").fetchall() == []


@pytest.mark.heavy
def test_a_current_database_is_reused_and_an_outdated_one_rebuilt(shop: Path, tmp_path: Path) -> None:
    path = sample_database(tmp_path)
    before = path.stat()
    assert sample_database(tmp_path) == path
    assert (path.stat().st_ino, path.stat().st_mtime_ns) == (before.st_ino, before.st_mtime_ns)
    assert [entry.name for entry in tmp_path.iterdir()] == ["shop.db"]
    fresh = content_hash(path)
    assert fresh == content_hash(shop), "two builds have the same content"
    with sqlite3.connect(path) as connection:
        connection.execute("DELETE FROM orders")
        connection.execute("PRAGMA user_version = 1")
    connection.close()
    build_sample(path)
    assert content_hash(path) == fresh


@pytest.mark.parametrize("content", [b"", b"my notes"])
def test_a_strangers_file_is_left_alone(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "shop.db"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="not Quorum's sample database"):
        sample_database(tmp_path)
    assert path.read_bytes() == content
