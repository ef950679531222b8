"""An evaluation that has something to draw in every plot, and its plots, which are drawn once."""

from __future__ import annotations

import pytest

from quorum.evals.reports.evaluations import Opened
from quorum.evals.reports.plots import Plot, plots_of
from tests.engines import start_no_process
from tests.evals.evaluations import asked, linking, opened, record, unanswered, usage

HOSTILE = '<script>alert("x")</script><img src="http://outside.invalid/a.png">'


@pytest.fixture(autouse=True)
def _engines(monkeypatch: pytest.MonkeyPatch) -> None:
    """Databases are opened in this process."""
    start_no_process(monkeypatch)


@pytest.fixture(scope="session")
def pictured_evaluation(tmp_path_factory: pytest.TempPathFactory) -> Opened:
    """24 questions of three difficulties and two databases, the first 16 of them right; the last three have
    no answer.
    """
    places = [
        {"difficulty": ("easy", "medium", "hard")[n % 3], "database": ("shop", "$x$ <b>bank</b>")[n % 2]}
        for n in range(24)
    ]
    answers = [
        record(
            f"q{n:02}",
            question=f"{HOSTILE} {n}?",
            match=n < 16,
            reason="" if n < 16 else f"a value differs {HOSTILE}",
            confidence=(97 - 4 * n) / 100,
            linking=linking(1.0, 1.0),
            gold_rows=3,
            usage=usage(model_calls=1 + n % 5, input_tokens=1_000 * (n + 1), output_tokens=100),
            **places[n],
        )
        for n in range(21)
    ]
    lost = [
        unanswered("q21", "endpoint", message=HOSTILE),
        unanswered("q22", "syntax"),
        unanswered("q23", "syntax", gold="differs"),
    ]
    questions = [asked(f"q{n:02}", **place) for n, place in enumerate(places)]
    return opened(tmp_path_factory.mktemp("pictured") / "run", [*answers, *lost], questions)


@pytest.fixture(scope="session")
def pictured_plots(pictured_evaluation: Opened) -> list[Plot]:
    """All plots of it."""
    return plots_of(pictured_evaluation)
