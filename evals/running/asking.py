"""A simulated user, who knows the gold and may be asked one question where a run asks which answer is meant.

A user who chooses an answer gets it (``quorum.graph.nodes.clarifying``), so what a choice leads to is known
without making it. The run is told nothing and keeps its answer: accuracy, confidence and cost are those of a
run without a question, and what each of several readings would have led to is known from one run.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Asking, ChoiceRow
from quorum.evals.scorers.base import Scorer
from quorum.graph.clarification import Clarification


def user_of(question: EvalQuestion, scorer: Scorer, seed: int) -> Asking:
    """The user of a question before they are asked: of several readings they mean one, drawn by the seed."""
    readings = len(question.gold_sql) if scorer.by_reading else 0
    intent = random.Random(f"{seed} {question.id}").randrange(readings) if readings else None
    return Asking(readings, intent)


def asked(user: Asking, choices: Sequence[Mapping[str, Any]]) -> Asking:
    """The user with what the run asked them, as its trace has it; nobody has judged it yet."""
    rows = (ChoiceRow(str(each["label"]), str(each["says"]), str(each["sql"])) for each in choices)
    return replace(user, choices=tuple(rows))


def no_reply(_: Clarification) -> str:
    """What the run hears: the vote stands as it is."""
    return ""
