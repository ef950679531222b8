"""Whole runs of the graph over a small shop."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import pytest

from tests.graph.shop import Run, make_shop, run_graph


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A SQLite file with customers and orders."""
    return make_shop(tmp_path / "shop.db")


@pytest.fixture
def run(shop: Path, tmp_path: Path) -> Run:
    """Run the graph over the shop: ``await run(script(…), votes=…)``."""
    return partial(run_graph, tmp_path / "home", f"sqlite:///{shop}")
