"""Three experts of known quality for weighted votes: recordings of a benchmark's gold, or of another query.

    python -m tests.benchmarks.write_experts spider1 DATA experts
    quorum eval run spider1 --data DATA --recipe single --votes 3 --strategy wma --concurrency 1 \\
        --model replay:experts/good.jsonl --model replay:experts/half.jsonl \\
        --model replay:experts/poor.jsonl --out RUN
    quorum votes replay RUN --paper

A recording's replies are used up one by one, in the order in which an evaluation asks: one at a time, the
questions of one database after each other. A wrong reply is one of two that all experts share, or (one in
five) SQL that does not run.
"""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.evals.suites import load_suite
from tests.benchmarks.common import arguments

SKILL = {"good": 0.8, "half": 0.5, "poor": 0.15}
"""How often each is right."""

WRONG = ("SELECT -1 AS number", "SELECT -2 AS number")
BROKEN = "SELECT number FROM nowhere"


def replies(questions: list[EvalQuestion], name: str) -> list[dict[str, Any]]:
    """The recording of an expert."""
    draw = random.Random(name)

    def reply(question: EvalQuestion) -> str:
        if draw.random() < SKILL[name]:
            return question.gold_sql[0]
        return BROKEN if draw.random() < 0.2 else draw.choice(WRONG)

    said = ({"reasoning": "Scripted.", "sql": reply(question)} for question in questions)
    return [{"agent": "sql_writer", "reply": each} for each in said]


def main() -> None:
    given = arguments(__doc__, "suite", "data", "folder", limit=int)
    folder = Path(given.folder)
    asked = load_suite(given.suite, Path(given.data)).chosen(limit=given.limit)
    places = {url: place for place, url in reversed([*enumerate(question.url for question in asked)])}
    in_order = sorted(asked, key=lambda question: places[question.url])
    folder.mkdir(parents=True, exist_ok=True)
    for name in SKILL:
        lines = "".join(f"{json.dumps(event)}\n" for event in replies(in_order, name))
        (folder / f"{name}.jsonl").write_text(lines, encoding="utf-8")


if __name__ == "__main__":
    main()
