"""ReFoRCE's steps in words."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.exploring_steps import GISTS
from quorum.steps import step_of

EVENTS: dict[str, tuple[dict[str, Any], str, str]] = {
    "schema_shown": ({"tokens": 1234}, "1,234 tokens of schema are shown", "plain"),
    "format": ({"header": "n:integer", "rows": "one row"}, "expects n:integer; one row", "plain"),
    "exploration": ({"queries": [{}]}, "wants to run 1 query", "plain"),
    "finding": ({"purpose": "Cities.", "corrected": True}, "learns (corrected): Cities.", "good"),
    "correction": (
        {"fault": "A typo.", "later": [{}, {}]},
        "corrects it, and 2 similar queries with it: A typo.",
        "warn",
    ),
    "exploration_given_up": ({"message": "No such column."}, "gives a query up: No such column.", "warn"),
    "exploration_ended": ({"message": "Unreachable."}, "ends early: Unreachable.", "bad"),
    "second_answer": ({"reasoning": "It fits."}, "looks again: It fits.", "plain"),
    "unconfirmed": ({}, "no result came twice; it is treated as empty", "warn"),
    "stage": ({"name": "placed"}, "ran stage placed", "plain"),
    "stage_review": (
        {"name": "placed", "accept": False, "reasoning": "No rows."},
        "rewrites stage placed: No rows.",
        "warn",
    ),
    "draw": (
        {"winner": "c2", "among": "tied", "seed": 7},
        "draws c2 among the tied answers, seed 7",
        "warn",
    ),
    "tie_left_open": ({}, "leaves the tie open: random selection is off", "warn"),
}


def test_every_kind_is_told_here() -> None:
    assert GISTS.keys() == EVENTS.keys()


@pytest.mark.parametrize("kind", EVENTS)
def test_a_step_is_told_in_a_few_words(kind: str) -> None:
    fields, gist, tone = EVENTS[kind]
    step = step_of({"kind": kind, "agent": "column_explorer", **fields})
    assert (step.gist, step.tone, step.agent) == (gist, tone, "ColumnExplorer")


def test_linked_tables_are_named() -> None:
    step = step_of({"kind": "linking", "agent": "table_linker", "tables": ["orders", "customers"]})
    assert (step.gist, step.agent) == ("keeps 2 tables: orders, customers", "TableLinker")
