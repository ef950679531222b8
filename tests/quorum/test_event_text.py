"""An event in a few words: those that are chosen, counted or put together; any role's; an unknown kind's."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from quorum.agents.role import Role, find_role
from quorum.event_text import link_to, step_of, title_of
from tests.quorum.conftest import HOSTILE

ERROR = {"kind": "column_not_found", "message": "no column x", "by": "lint"}
TWO: list[dict[str, Any]] = [
    {"candidates": ["c1", "c2"], "share": 2 / 3},
    {"candidates": ["c3"], "share": 1 / 3},
]
SHOP = {"database": "shop", "dialect": "sqlite"}
OUTCOMES = [{"outcome": "differs"}, {"outcome": "same"}, {"outcome": "failed"}]
USED = {"input_tokens": 1200, "output_tokens": 80, "usd": 0.0}

CASES: dict[str, list[tuple[dict[str, Any], str, str]]] = {
    "schema": [
        (
            SHOP | {"tables": 2, "left_out": ["samples", "notes"]},
            "opened shop (SQLite, 2 tables); too large to show whole, left out: samples, notes",
            "warn",
        ),
    ],
    "retrieval": [
        ({"text": "abc"}, "", "plain"),  # values, which have a step of their own
        (
            {"verified": ["questions/a.md"], "sources": ["terms.md", "notes.md"]},
            "shows the model 2 documents and 1 verified question like this one: terms.md, notes.md",
            "plain",
        ),
    ],
    "query": [
        ({"rows": 2, "seconds": 0.5, "cached": True}, "2 rows in 0.50 s, asked before", "good"),
        ({"error": ERROR}, "column not found: no column x", "bad"),
    ],
    "candidate": [
        ({"result": None, "error": None, "stopped_by": "max_calls"}, "gave up: max_calls", "bad"),
        (
            {"result": {"row_count": 3}, "approved": True, "confirmed": True, "refinements": 2},
            "3 rows, approved by the Validator, 2 repairs, kept for the vote",
            "good",
        ),
    ],
    "readings": [
        (
            {"readings": OUTCOMES},
            "3 other readings: 1 shows something else, 1 the same, 1 no result",
            "warn",
        ),
    ],
    "vote": [
        ({"clusters": []}, "no candidate has a result to vote with", "bad"),
        ({"clusters": [{"candidates": ["c1"], "share": 1.0}]}, "", "plain"),  # a single query is no vote
        (
            {"clusters": [TWO[0] | {"key": "unanswerable"}, TWO[1]]},
            "results differ: 67 % for candidates 1, 2 (the data lacks it) against 33 % for candidate 3",
            "plain",
        ),
        (
            {"clusters": TWO, "tie": True, "weights": {"a": 0.5}},
            "results differ: 67 % for candidates 1, 2 against 33 % for candidate 3, a tie; weights: a 0.50",
            "plain",
        ),
    ],
    "model_call": [
        ({"model": "a", "usage": USED, "seconds": 0.5}, "a: 1,200 tokens in, 80 out, 0.50 s", "faint"),
    ],
    "something_new": [({"size": 3, "text": "a\x1b"}, "something new size=3 text=a␛", "plain")],
}


def test_an_event_is_said_in_a_few_words(subtests: pytest.Subtests) -> None:
    for kind, cases in CASES.items():
        for fields, gist, tone in cases:
            with subtests.test(gist):
                step = step_of({"kind": kind, "agent": "somebody", **fields})
                assert (step.gist, step.tone) == (gist, tone)


def test_each_role_has_a_name_and_words_about_its_own_fields(root: Path) -> None:
    found = [find_role(path.stem) for path in sorted((root / "agents" / "prompts").glob("*.md"))]
    declared: list[Role[Any]] = [role for role in found if role is not None]
    assert len(declared) == len({role.title for role in declared}) >= 19
    for role in declared:
        fields = {name for _, name, _, _ in Formatter().parse(role.gist) if name}
        assert fields <= role.reply.model_fields.keys(), role.name
        assert title_of(role.name) == role.title
        assert (root / role.prompt).is_file()


def test_a_reply_of_any_kind_is_said_by_its_role_and_an_error_by_who_found_it() -> None:
    step = step_of({"kind": "something_new", "agent": "judge", "choice": "A", "reason": "It filters."})
    assert (step.agent, step.gist) == ("Judge", "chooses A: It filters.")
    for by in ("lint", "guard", "database"):
        assert step_of({"kind": "query", "agent": "action", "error": ERROR | {"by": by}}).agent == by.title()
    assert title_of("presql_linker") == "PreSQL Linking"


@pytest.mark.parametrize("kind", ["validation", "plan", "linking", "something_new"])
def test_a_role_without_a_usable_reply_says_so(kind: str) -> None:
    step = step_of({"kind": kind, "agent": "schema_linker", "candidate": "c1", "error": "No JSON."})
    assert (step.agent, step.tone) == ("SchemaLinker", "warn")
    assert step.gist.startswith("No JSON.")


def test_a_step_says_where_it_comes_from() -> None:
    event = {"kind": "validation", "agent": "validator", "accepted": True}
    code = {"code": "graph/nodes/winner.py:40", "declared": "agents/critics.py:72"}
    origin = {"node": "validate_winner", "recipe": "quorum", "prompt": "agents/prompts/validator.md"} | code
    said = ("validate_winner", "quorum", *code.values(), "agents/prompts/validator.md")
    assert step_of(event).origin == ()
    assert step_of(event | origin).origin == said
    assert step_of(event | origin).code == [*code.values()]
    assert step_of(origin | {"kind": "result", "agent": "validator"}).code == [code["code"]], "the database"
    assert step_of(origin | {"kind": "query", "agent": "validator"}).code == [], "the step above has it"
    assert step_of(event | {"node": "a\x1b[31m", "prompt": None}).origin == ("a␛[31m",)
    assert "\x1b" not in step_of({"kind": "new_thing", "agent": "some_agent", "text": HOSTILE}).gist


def test_code_has_a_link_where_it_is_here(root: Path) -> None:
    assert link_to("agents/role.py:99") == (root / "agents" / "role.py").as_uri() + "#99"
    assert link_to("agents/prompts/planner.md") == (root / "agents/prompts/planner.md").as_uri() + "#1"
    for place in ("agents/gone.py:1", "../etc/passwd", "/etc/hosts.py:1", "recap", "a\x1b.py:1", "agents"):
        assert link_to(place) == ""
