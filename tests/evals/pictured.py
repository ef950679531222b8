"""An evaluation that has something to draw in every plot."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from quorum.evals.records import Record
from quorum.evals.reports.evaluations import Opened, open_evaluations
from tests.evals.evaluations import asked, linking, manifest, record, unanswered, usage, write

HOSTILE = '<script>alert("x")</script><img src="http://outside.invalid/a.png">'
GRADES = ("easy", "medium", "hard")


def write_pictured(folder: Path, *, right: int = 16, tokens: int = 1_000, **values: Any) -> Path:
    """24 questions of three difficulties and two databases, the first ``right`` of them right; the last
    three have no answer.

    Args:
        tokens: Of the first question; they rise.
        values: Of the manifest.
    """
    questions = [
        asked(f"q{n:02}", difficulty=GRADES[n % 3], database=("shop", "$x$ <b>bank</b>")[n % 2])
        for n in range(24)
    ]
    return write(folder, manifest(questions, **values), list(_records(right, tokens)))


def _records(right: int, tokens: int) -> Iterator[Record]:
    for n in range(21):
        yield record(
            f"q{n:02}",
            question=f"{HOSTILE} {n}?",
            match=n < right,
            reason="" if n < right else f"a value differs {HOSTILE}",
            confidence=(97 - 4 * n) / 100,
            linking=linking(1.0, 1.0),
            gold_rows=3,
            usage=usage(model_calls=1 + n % 5, input_tokens=tokens * (n + 1), output_tokens=100),
            database=("shop", "$x$ <b>bank</b>")[n % 2],
            difficulty=GRADES[n % 3],
        )
    yield unanswered("q21", "endpoint", message=HOSTILE)
    yield unanswered("q22", "syntax")
    yield unanswered("q23", "syntax", gold="differs")


def pictured(folder: Path, **values: Any) -> Opened:
    """Such an evaluation."""
    (found,) = open_evaluations([write_pictured(folder, **values)])
    return found
