"""Several databases as one: the contract over them, and what is their own."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from typing_extensions import override

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.many.connector import ManyConnector
from quorum.tools.query import ErrorKind, Limits
from tests.engines import build
from tests.tools.databases.contract import ENDLESS, ConnectorContract, at_work, children, error, rows
from tests.tools.databases.test_sqlite import TestSqlite
from tests.waiting import until

BESIDE = "CREATE TABLE beside (id INTEGER, word VARCHAR); INSERT INTO beside VALUES (1, 'one'), (2, 'two');"


class Beside(ManyConnector):
    """Several databases of which the contract looks at the first one."""

    @override
    async def catalog(self, *, samples: int = 3) -> Catalog:
        catalog = await super().catalog(samples=samples)
        return replace(catalog, tables=tuple(each for each in catalog.tables if each.name != "beside"))


class TestSqliteBesideDuckdb(ConnectorContract):
    """A database of the contract beside another one."""

    scheme = "sqlite"
    dialect = "duckdb"
    long_text = TestSqlite.long_text

    @override
    def build(self, path: Path, script: str) -> None:
        build("sqlite", path, script)

    @override
    def state(self, path: Path) -> object:
        return path.read_bytes()

    @override
    def connect(self, path: Path) -> Connector:
        other = path.with_name(f"{path.stem}-beside.duckdb")
        if not other.exists():
            build("duckdb", other, BESIDE)
        return Beside([connect(f"sqlite:///{path}"), connect(f"duckdb:///{other}")])

    @override
    def at_work(self, connector: Connector) -> int:
        assert isinstance(connector, ManyConnector)
        return at_work(connector._joiner)

    @override
    async def test_queries_run_at_the_same_time(self, shop: Connector) -> None:
        slow = [asyncio.create_task(shop.run(ENDLESS, Limits(seconds=600))) for _ in range(3)]
        await until(lambda: self.at_work(shop) == 3)
        assert rows(await shop.run("SELECT count(*) FROM customers, beside", Limits())) == [(6,)]
        for task in slow:
            task.cancel()
        await asyncio.gather(*slow, return_exceptions=True)

    @override
    async def test_close_leaves_nothing_behind(self, path: Path) -> None:
        connector = self.connect(path)
        await connector.open()
        query = asyncio.create_task(connector.run(f"{ENDLESS}, customers, beside", Limits(seconds=600)))
        await until(lambda: self.at_work(connector) == 1)
        engines = children()
        await connector.close()
        assert error(await query).kind is ErrorKind.UNAVAILABLE
        assert engines
        assert not any(psutil.pid_exists(engine.pid) for engine in engines)
        with pytest.raises(DatabaseUnavailable, match="closed"):
            await connector.run("SELECT 1", Limits())
