"""Shared fixtures and the rules of the suite: deterministic, no network beyond loopback."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,  # wall-clock deadlines flake on shared machines
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

ROOT = Path(__file__).resolve().parent.parent


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of evaluation data and security lists, which is not part of the project."""
    folder = Path(os.environ.get("QUORUM_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the shared evaluation data is not here (set QUORUM_SHARED)")
    return folder


@pytest.fixture(autouse=True)
def _own_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's own keys or settings, and none traces to a service."""
    for name in list(os.environ):
        if name.startswith(("QUORUM_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_")) and name != "QUORUM_SHARED":
            monkeypatch.delenv(name)
