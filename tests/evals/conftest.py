"""Databases of evaluations are opened in this process, and scorers have a small one to run SQL on."""

from __future__ import annotations

import pytest

from tests.engines import start_no_process
from tests.evals.shop import Runner


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    start_no_process(monkeypatch)


@pytest.fixture
def run() -> Runner:
    """Runs SQL on a small shop."""
    return Runner()
