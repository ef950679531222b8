"""Plots that several modules look at are drawn once."""

from __future__ import annotations

import pytest

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.plots import Plot, plots_of
from tests.engines import start_no_process
from tests.evals.pictured import pictured


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases are opened in this process."""
    start_no_process(monkeypatch)


@pytest.fixture(scope="session")
def pictured_evaluation(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """An evaluation that has something to draw in every plot."""
    return pictured(tmp_path_factory.mktemp("pictured") / "run")


@pytest.fixture(scope="session")
def pictured_plots(pictured_evaluation: Opened) -> list[Plot]:
    """All plots of it."""
    return plots_of(pictured_evaluation)
