"""Databases of evaluations are opened in this process."""

from __future__ import annotations

import pytest

from tests.engines import start_no_process


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    start_no_process(monkeypatch)
