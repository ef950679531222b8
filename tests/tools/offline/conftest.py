"""The sample shop as the offline model meets it: its schema text and its rows."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from quorum.knowledge.schema.render import render
from quorum.tools.databases.sqlite.connector import SqliteConnector
from quorum.tools.sample import sample_database

Rows = Counter[tuple[str, ...]]


@pytest.fixture(scope="session")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return sample_database(tmp_path_factory.mktemp("shop"))


@pytest.fixture(scope="session")
def schema_text(shop: Path) -> str:
    async def introspect() -> str:
        async with SqliteConnector.from_url(f"sqlite:///{shop}") as connector:
            return render(await connector.catalog()).text

    return asyncio.run(introspect())


@pytest.fixture(scope="session")
def result_of(shop: Path) -> Callable[[str], Rows]:
    """Runs SQL on the shop, read-only; rows as a multiset, columns in any order, numbers to six places."""
    connection = sqlite3.connect(f"{shop.as_uri()}?mode=ro", uri=True, check_same_thread=False)
    return lambda sql: Counter(
        tuple(sorted(str(round(v, 6) if isinstance(v, float) else v) for v in row))
        for row in connection.execute(sql).fetchall()
    )
