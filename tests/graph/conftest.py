"""Whole runs of the graph over a small shop."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from functools import partial
from pathlib import Path

import pytest

from tests.engines import start_no_process
from tests.graph.shop import Opened, Run, make_shop, run_graph


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases are opened in this process."""
    start_no_process(monkeypatch)


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A SQLite file with customers and orders."""
    return make_shop(tmp_path / "shop.db")


@pytest.fixture
async def run(shop: Path, tmp_path: Path) -> AsyncIterator[Run]:
    """Run the graph over the shop: ``await run(script(…), votes=…)``."""
    async with AsyncExitStack() as closing:
        yield partial(run_graph, tmp_path / "home", f"sqlite:///{shop}", opened=Opened(closing))
