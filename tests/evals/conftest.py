"""Databases of evaluations are opened in this process, and scorers have a small one to run SQL on."""

from __future__ import annotations

import pytest

from tests.engines import start_no_process
from tests.evals.judged import database, question
from tests.evals.running import shops
from tests.evals.shop import Runner

__all__ = ["database", "question", "shops"]


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    start_no_process(monkeypatch)


@pytest.fixture
def run() -> Runner:
    """Runs SQL on a small shop."""
    return Runner()
