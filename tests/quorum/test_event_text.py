"""What happened, in a few words: of each kind of event, of any role, and where it comes from."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import Any

import pytest

from quorum.agents.role import Role, find_role
from quorum.event_text import WORDS, step_of, title_of

ERROR = {"kind": "column_not_found", "message": "no column x", "by": "lint"}
CLUSTERS = [{"candidates": ["c1", "c2"], "share": 2 / 3}, {"candidates": ["c3"], "share": 1 / 3}]

EVENTS: list[tuple[str, dict[str, Any], str, str]] = [
    ("begun", {"run": "r1"}, "r1", "faint"),
    ("begun", {"run": "r1", "resumed": True}, "goes on with r1", "faint"),
    ("failed", {"message": "It is down."}, "It is down.", "bad"),
    ("stopped", {"message": "Too many calls."}, "Too many calls.", "bad"),
    ("answer", {"status": "answered"}, "answered", "good"),
    ("answer", {"status": "no_answer"}, "no answer", "bad"),
    (
        "schema",
        {"database": "shop", "dialect": "sqlite", "tables": 1, "tokens": 1840, "left_out": []},
        "opened shop (SQLite, 1 table)",
        "plain",
    ),
    (
        "schema",
        {
            "database": "shop",
            "dialect": "sqlite",
            "tables": 2,
            "tokens": 9,
            "whole": 12,
            "left_out": ["samples", "notes"],
        },
        "opened shop (SQLite, 2 tables); too large to show whole, left out: samples, notes",
        "warn",
    ),
    (
        "long_context",
        {"schema": 61000, "documents": 2000, "above": 60000},
        "the schema is long: first those tables are chosen that fit the question",
        "plain",
    ),
    ("schema_shown", {"tokens": 1234}, "the model now sees a schema of 1,234 tokens", "plain"),
    (
        "values",
        {"values": ["orders.status: Returned"], "missing": []},
        "found in the data, and maybe meant: orders.status: Returned",
        "plain",
    ),
    (
        "recall",
        {"credit": "verified by jane on 2026-11-22", "file": "questions/a.md"},
        "this very question was verified by jane on 2026-11-22: questions/a.md",
        "good",
    ),
    (
        "retrieval",
        {"text": "abc", "verified": ["questions/a.md"], "sources": ["terms.md", "notes.md"]},
        "shows the model 2 documents and 1 verified question like this one: terms.md, notes.md",
        "plain",
    ),
    ("retrieval", {"text": "abc"}, "", "plain"),  # values, which have a step of their own
    ("retrieval", {"text": "abc", "triplets": [1, 2]}, "shows the model 2 explored queries", "plain"),
    ("retrieval", {"text": ""}, "nothing fits the question", "faint"),
    ("linking", {"tables": ["orders", "customers"]}, "keeps 2 tables: orders, customers", "plain"),
    ("linking", {"linked_schema": "orders(id)"}, "orders(id)", "plain"),
    ("linking", {"tables": []}, "found nothing", "plain"),
    ("sample_rows", {"tables": 1, "notes": []}, "of 1 table", "plain"),
    ("sample_rows", {"tables": 2, "notes": ["One failed."]}, "of 2 tables; One failed.", "warn"),
    ("demonstrations", {"shots": [{}]}, "1 similar question as examples", "plain"),
    ("syntax", {"features": ["Dates", "JSON"]}, "looked up Dates, JSON", "plain"),
    ("syntax", {"features": []}, "none needed", "faint"),
    ("plan_review", {"update_plan": True, "feedback": "No join."}, "asks for another plan: No join.", "warn"),
    ("plan_review", {"update_plan": False, "feedback": ""}, "the plan passes", "good"),
    ("action", {"action": "sql", "sql": "SELECT 1"}, "SELECT 1", "plain"),
    (
        "action",
        {"action": "terminate", "missing": "No NPS."},
        "says that the data cannot answer: No NPS.",
        "warn",
    ),
    ("action", {"action": "look", "command": "ls"}, "looks: ls", "plain"),
    ("action", {"action": "answer", "thought": "Done.", "sql": "SELECT 1"}, "ends: Done.", "plain"),
    ("writing", {"sql": "SELECT 1"}, "SELECT 1", "plain"),
    (
        "writing",
        {"sql": "", "missing": "There is no NPS."},
        "says that the data cannot answer: There is no NPS.",
        "warn",
    ),
    ("sql_review", {"correct": True}, "the query is right", "good"),
    ("sql_review", {"correct": False, "reasoning": "A typo."}, "corrects it: A typo.", "warn"),
    ("query", {"rows": 1, "seconds": 0.5}, "1 row in 0.50 s", "good"),
    ("query", {"rows": 2, "seconds": 0.5, "cached": True}, "2 rows in 0.50 s, asked before", "good"),
    ("query", {"error": ERROR}, "column not found: no column x", "bad"),
    ("result", {"row_count": 2, "columns": ["a", "b"]}, "2 rows: a, b", "good"),
    ("result", {"row_count": 0, "columns": ["a"], "truncated": "rows"}, "0 rows (cut): a", "warn"),
    ("not_run", {"message": "It was done before."}, "It was done before.", "warn"),
    ("refinement", {"error": ERROR, "explanation": "A typo."}, "repairs it: A typo.", "warn"),
    ("second_answer", {"reasoning": "It fits."}, "looks again: It fits.", "plain"),
    ("unconfirmed", {}, "no result came twice; it is treated as empty", "warn"),
    ("stage", {"name": "placed"}, "ran stage placed", "plain"),
    ("stage_review", {"name": "p", "accept": True, "reasoning": "Fine."}, "accepts stage p: Fine.", "good"),
    ("stage_review", {"name": "p", "accept": False, "reasoning": "No."}, "rewrites stage p: No.", "warn"),
    ("candidate", {"result": {}, "error": ERROR}, "gave up: no column x", "bad"),
    ("candidate", {"result": None, "error": None, "stopped_by": "max_calls"}, "gave up: max_calls", "bad"),
    (
        "candidate",
        {"result": {"row_count": 3}, "approved": True, "confirmed": True},
        "3 rows, approved by the Validator, kept for the vote",
        "good",
    ),
    ("candidate", {"result": {"row_count": 3}}, "3 rows, kept for the vote", "good"),
    (
        "candidate",
        {"result": {"row_count": 1}, "refinements": 2},
        "1 row, 2 repairs, kept for the vote",
        "good",
    ),
    (
        "candidate",
        {"result": {"row_count": 3}, "confirmed": True},
        "3 rows, its result came twice, kept for the vote",
        "good",
    ),
    (
        "candidate",
        {"result": {"row_count": 3}, "confirmed": False},
        "3 rows, no result came twice, kept for the vote",
        "good",
    ),
    ("candidate_failed", {"message": "No reply."}, "No reply.", "bad"),
    ("exploration", {"queries": [{}]}, "wants to run 1 query", "plain"),
    ("finding", {"purpose": "Cities.", "corrected": True}, "learns (corrected): Cities.", "good"),
    ("finding", {"purpose": "Cities.", "corrected": False}, "learns: Cities.", "good"),
    (
        "asked_anew",
        {"message": "The endpoint was down."},
        "asks all candidates anew: The endpoint was down.",
        "warn",
    ),
    ("correction", {"sql": "SELECT 1", "fault": "A typo.", "later": []}, "corrects it: A typo.", "warn"),
    ("correction", {"sql": None, "fault": "No such row."}, "finds nothing to correct: No such row.", "plain"),
    (
        "correction",
        {"sql": "SELECT 1", "fault": "A typo.", "later": [{}, {}]},
        "corrects it, and 2 similar queries with it: A typo.",
        "warn",
    ),
    ("exploration_given_up", {"message": "No such column."}, "gives a query up: No such column.", "warn"),
    ("exploration_ended", {"message": "Unreachable."}, "ends early: Unreachable.", "bad"),
    ("format", {"header": "n:integer", "rows": "one row"}, "expects n:integer; one row", "plain"),
    ("format", {"header": "n:integer", "rows": ""}, "expects n:integer", "plain"),
    ("plan", {"steps": ["a", "b"], "expected_format": "n"}, "2 steps, to give n", "plain"),
    (
        "suspicion",
        {"says": "2 share a name.", "matters": "1 row more."},
        "2 share a name. 1 row more.",
        "warn",
    ),
    ("first_answer", {"why": ""}, "one query is enough", "good"),
    ("first_answer", {"why": "it failed"}, "asks for more candidates: it failed", "plain"),
    (
        "readings",
        {"readings": [{"outcome": "differs"}, {"outcome": "same"}, {"outcome": "failed"}]},
        "3 other readings: 1 shows something else, 1 the same, 1 no result",
        "warn",
    ),
    (
        "readings",
        {"readings": [{"outcome": "blank"}]},
        "1 other reading: 0 show something else, 1 nothing",
        "good",
    ),
    ("vote", {"strategy": "mbr", "clusters": [{"candidates": ["c1"], "share": 1.0}]}, "", "plain"),
    (
        "vote",
        {"strategy": "mbr", "clusters": [{"candidates": ["c1", "c2", "c3"], "share": 1.0}]},
        "candidates 1 to 3 agree",
        "plain",
    ),
    (
        "vote",
        {"strategy": "majority", "clusters": CLUSTERS},
        "results differ: 67 % for candidates 1, 2 against 33 % for candidate 3",
        "plain",
    ),
    (
        "vote",
        {"strategy": "wma", "clusters": CLUSTERS, "tie": True, "weights": {"a": 0.5}},
        "results differ: 67 % for candidates 1, 2 against 33 % for candidate 3, a tie; weights: a 0.50",
        "plain",
    ),
    (
        "grounding",
        {"tables": ["orders", "customers"], "columns": 12, "embedder": "lexical"},
        "2 tables, 12 columns: orders, customers (lexical)",
        "plain",
    ),
    (
        "examples",
        {"triplets": [3, 9], "embedder": "lexical"},
        "2 explored queries as examples (lexical)",
        "plain",
    ),
    ("examples", {"triplets": [], "embedder": "lexical"}, "no explored query as example", "faint"),
    (
        "expansion",
        {"number": 7, "outcome": "worked", "step": "order_by a.b", "message": "Which is first?"},
        "7. Which is first?",
        "good",
    ),
    (
        "expansion",
        {"number": 8, "outcome": "empty", "step": "order_by a.b", "message": "The result is empty."},
        "8. empty: order_by a.b: The result is empty.",
        "warn",
    ),
    (
        "explored",
        {"ended": "coverage", "coverage": 0.912},
        "ends by coverage: 91% of the fields covered",
        "good",
    ),
    ("vote", {"clusters": []}, "no candidate has a result to vote with", "bad"),
    (
        "draw",
        {"winner": "c2", "among": "tied", "seed": 7},
        "draws candidate 2 by lot among the tied answers, seed 7",
        "warn",
    ),
    ("tie_left_open", {}, "leaves the tie open: random selection is off", "warn"),
    (
        "judgement",
        {"answers": {"A": ["c1", "c2"]}, "choice": "A", "reason": "It filters."},
        "chooses the answer of candidates 1, 2: It filters.",
        "good",
    ),
    (
        "judgement",
        {"answers": {}, "choice": "cannot tell", "reason": "Both fit."},
        "cannot tell: Both fit.",
        "warn",
    ),
    (
        "approval_asked",
        {"agent": "action", "reads": "12 GiB"},
        "asks before its query runs (it reads: 12 GiB)",
        "warn",
    ),
    ("approval", {"reply": "yes"}, "approves the query", "good"),
    ("approval", {"reply": "all"}, "approves the query, and all that follow", "good"),
    ("approval", {"reply": "no"}, "does not approve the query", "warn"),
    ("clarification", {"reply": "label", "text": "A"}, "chooses answer A", "good"),
    ("clarification", {"reply": "words", "text": "Paid."}, "says more: Paid.", "plain"),
    ("clarification", {"reply": "none", "text": ""}, "keeps the answer", "plain"),
    ("validation", {"valid_result": True, "accepted": True}, "the result can be the answer", "good"),
    (
        "validation",
        {"valid_result": True, "accepted": False, "objection": "Columns not needed: id."},
        "sends it back: Columns not needed: id.",
        "warn",
    ),
    ("vote_weighed", {"confidence": 0.456}, "after that verdict, likely to be right: 46%", "plain"),
    (
        "other_readings",
        {"readings": [{}], "reasoning": "A word is open."},
        "writes 1 other reading: A word is open.",
        "warn",
    ),
    (
        "other_readings",
        {"readings": [], "reasoning": "It is plain."},
        "finds nothing open: It is plain.",
        "good",
    ),
    ("revision", {"sql": "SELECT 1", "explanation": "It holds."}, "revises the query: It holds.", "warn"),
    ("revision", {"sql": None, "explanation": "No."}, "lets the query stand: No.", "plain"),
    (
        "model_call",
        {"model": "a:b", "usage": {"input_tokens": 1200, "output_tokens": 80, "usd": 0.0}, "seconds": 0.5},
        "a:b: 1,200 tokens in, 80 out, 0.50 s",
        "faint",
    ),
    (
        "model_call",
        {"model": "a:b", "problem": "no_json", "seconds": 0},
        "a:b: 0 tokens in, 0 out, 0.00 s; no_json",
        "bad",
    ),
    (
        "model_retry",
        {"model": "a:b", "reason": "429", "wait": 2.0},
        "a:b: 429; tries again in 2.00 s",
        "warn",
    ),
    ("model_failed", {"model": "a:b", "reason": "gone"}, "a:b: gone", "bad"),
    ("model_replaced", {"model": "a:b", "message": "a:b: gone"}, "asks another model: a:b: gone", "warn"),
    ("model_adapted", {"model": "a:b", "change": "no seed"}, "a:b: no seed", "faint"),
]
AGENTS = {
    "format": "format_writer",
    "plan": "planner",
    "exploration": "column_explorer",
    "correction": "exploration_corrector",
    "second_answer": "self_checker",
    "refinement": "self_refiner",
}


@pytest.mark.parametrize(("kind", "fields", "gist", "tone"), EVENTS)
def test_an_event_is_told_in_a_few_words(kind: str, fields: dict[str, Any], gist: str, tone: str) -> None:
    step = step_of({"kind": kind, "agent": AGENTS.get(kind, "somebody"), **fields})
    assert (step.gist, step.tone) == (gist, tone)


def test_every_kind_that_has_words_of_its_own_is_told_here() -> None:
    assert WORDS.keys() <= {kind for kind, *_ in EVENTS}


def roles(root: Path) -> list[Role[Any]]:
    found = [find_role(path.stem) for path in sorted((root / "agents" / "prompts").glob("*.md"))]
    return [role for role in found if role is not None]


def test_each_role_has_a_name_and_words_about_its_own_fields(root: Path) -> None:
    declared = roles(root)
    assert len(declared) == len({role.title for role in declared}) >= 19
    for role in declared:
        fields = {name for _, name, _, _ in Formatter().parse(role.gist) if name}
        assert fields <= role.reply.model_fields.keys(), role.name
        assert title_of(role.name) == role.title
        assert (root / role.prompt).is_file()


def test_a_reply_of_any_kind_is_told_by_its_role() -> None:
    step = step_of({"kind": "something_new", "agent": "judge", "choice": "A", "reason": "It filters."})
    assert (step.agent, step.gist) == ("Judge", "chooses A: It filters.")


@pytest.mark.parametrize("kind", ["validation", "plan", "linking", "something_new"])
def test_a_role_without_a_usable_reply_is_told_alike(kind: str) -> None:
    step = step_of({"kind": kind, "agent": "schema_linker", "candidate": "c1", "error": "No JSON."})
    assert (step.agent, step.tone) == ("SchemaLinker", "warn")
    assert step.gist.startswith("No JSON.")


def test_who_is_no_role_has_a_name_too() -> None:
    names = ("user", "presql_linker", "os.path", "turns", "prompting", "")
    assert [title_of(name) for name in names] == [
        "User",
        "PreSQL Linking",
        "Os.path",
        "Turns",
        "Prompting",
        "",
    ]


def test_a_step_says_where_it_comes_from() -> None:
    event = {"kind": "validation", "agent": "validator", "accepted": True}
    origin = {"node": "validate_winner", "recipe": "quorum", "prompt": "agents/prompts/validator.md"}
    assert step_of(event).origin == ""
    assert step_of(event | origin).origin == "validate_winner · quorum · agents/prompts/validator.md"
    assert step_of(event | {"node": "validate", "prompt": None}).origin == "validate"
    assert step_of(event | {"node": "a\x1b[31m"}).origin == "a␛[31m"
