"""Text for people: nothing that a terminal would obey, numbers as one reads them."""

from __future__ import annotations

from pathlib import Path
from string import Formatter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.agents.role import Role, find_role
from quorum.event_text import link_to, step_of, title_of
from quorum.graph.confidence import grounds
from quorum.text import (
    agreement,
    cell,
    cells,
    count,
    dollars,
    duration,
    listed,
    one_line,
    printable,
    trust,
)
from tests.quorum.conftest import HOSTILE, candidate, made


@given(st.text(st.characters(codec=None)))
def test_nothing_printable_moves_a_cursor_or_turns_the_text(text: str) -> None:
    shown = printable(text)
    assert not [c for c in shown if (ord(c) < 32 and c not in "\n\t") or 0x7F <= ord(c) < 0xA0]
    assert not set(shown) & set("\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    assert printable(shown) == shown


@given(st.text(), st.integers(min_value=2, max_value=50))
def test_one_line_is_one_line_of_that_length(text: str, limit: int) -> None:
    line = one_line(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


def test_numbers_as_one_reads_them() -> None:
    assert [count(1, "row"), count(0, "row"), count(12345, "row")] == ["1 row", "0 rows", "12,345 rows"]
    assert count(2, "query", "queries") == "2 queries"
    prices = ["price unknown", "$0.00", "$0.0123", "$12.30"]
    assert [dollars(usd) for usd in (None, 0, 0.0123, 12.3)] == prices
    assert [duration(0.42), duration(12.34), duration(245)] == ["0.42 s", "12.3 s", "4 min 05 s"]
    names = (["c1"], ["c1", "c2", "c3", "c7"], ["r2"], ["verified"])
    assert [*map(listed, names)] == ["candidate 1", "candidates 1 to 3, 7", "reading 2", "verified"]


def voted(*clusters: list[str], total: int, first_two: Any = (), **more: Any) -> dict[str, Any]:
    share = [
        {"candidates": names, "share": len(names) / total, "weight": 1.0, "key": "k"} for names in clusters
    ]
    names = [f"c{n + 1}" for n in range(total)]
    candidates = [candidate(n, **dict(first_two if n in ("c1", "c2") else ())) for n in names]
    vote = {"strategy": "majority", "clusters": share, "tie": False, "winner": None} | more
    return {"sql": "", "candidates": candidates, "vote": vote}


def test_the_vote_in_words(subtests: pytest.Subtests) -> None:
    for answer, text in (
        (voted(["c2"], ["c1", "c3"], total=3), "2 of 3 candidates agree; 1 differs"),
        (voted(["c1"], total=3), "1 of 3 candidates agrees; 2 did not vote"),
        (voted(["c1"], ["c2"], total=2, tie=True), "1 of 2 candidates agrees; 1 differs; a tie"),
        (voted(total=3), "none of 3 candidates has a result to vote with"),
        (voted(["c1"], total=1), "one query, no vote"),
        (voted(["c1", "c2"], ["c3"], total=3, winner="c3"), "1 of 3 candidates agrees; 2 differ"),  # drawn
        ({"candidates": [], "vote": None}, ""),
        (
            voted(total=3, first_two={"error_kind": "unanswerable"}) | {"status": "unanswerable"},
            "2 of 3 candidates say that the data cannot answer this",
        ),
        (
            voted(["c3"], ["c4"], total=4, first_two={"superseded": True}),
            "1 of 2 candidates agrees; 1 differs",
        ),
    ):
        with subtests.test(answer=answer):
            assert agreement(made(answer)) == text


VALUES = [
    *((257624.10000000003, "257624.1"), (0.1 + 0.2, "0.3"), (3.5145631067961167, "3.514563")),
    *((0.000012345678, "0.0000123457"), (1.23e-15, "1.23e-15"), (5.0, "5"), (-0.0, "0"), (1e22, "1e+22")),
    *((2.0**53 + 2, "9007199254740994"), (2**63 + 1, "9223372036854775809"), (float("nan"), "NaN")),
    *((True, "true"), (None, "NULL"), ("a\nb", "a b"), ("257624.10000000003", "257624.10000000003")),
    ([{"sum": 257624.10000000003, "ok": True, "x": None}], '[{"sum": 257624.1, "ok": true, "x": null}]'),
]


def test_values_print_as_people_read_them() -> None:
    assert [cell(value) for value, _ in VALUES] == [shown for _, shown in VALUES]


DAYS = ["2023-01-01 00:00:00", "2023-02-01 00:00:00"]
COLUMNS: list[tuple[str, str, list[Any], list[str]]] = [
    ("n", "", [3444, None, -0.5, 1e22, True], ["3,444", "NULL", "-0.5", "1e+22", "true"]),
    *((name, "", [12345], ["12345"]) for name in ("customer_id", "customerId", "zip", "order_number")),
    ("paid", "", [12345], ["12,345"]),
    ("date_part('year', d)", "", [2023, 2024], ["2023", "2024"]),
    ("orders_per_year", "", [20231], ["20,231"]),
    ("total", "decimal128(38, 2)", [3444.0, 0.5, None], ["3,444.00", "0.50", "NULL"]),
    ("total", "decimal128(38, 2)", ["12345678901234567.89"], ["12,345,678,901,234,567.89"]),
    ("avg", "decimal128(38, 10)", [31.8947368421, 12345.0], ["31.894737", "12,345"]),
    ("date_trunc", "", [*DAYS, None], ["2023-01", "2023-02", "NULL"]),
    ("month", "", ["2023-01-01"], ["2023-01"]),
    ("d", "", ["2023-01-01 00:00:00+00:00", "2023-01-05 00:00:00+00:00"], ["2023-01-01", "2023-01-05"]),
    ("start_date", "", ["2023-01-01", "2023-02-01"], ["2023-01-01", "2023-02-01"]),
    ("first", "", DAYS[:1], ["2023-01-01"]),  # one day is not known to be a month
    ("at", "", [DAYS[0], "2023-01-01 10:00:00"], [DAYS[0], "2023-01-01 10:00:00"]),
    ("region", "", ["north ", "north", "", " "], ['"north "', "north", '""', '" "']),
    ("status", "", ["NULL", None, "null", '"NULL"'], ['"NULL"', "NULL", '"null"', '"\\"NULL\\""']),
]


def test_a_column_is_shown_by_its_name_type_and_all_its_values(subtests: pytest.Subtests) -> None:
    for name, kind, values, shown in COLUMNS:
        with subtests.test(name, values=values):
            assert cells(name, values, kind) == shown


ALONE = {"candidates": ["c1"], "share": 1.0, "weight": 1.0, "key": "k"}
READ = {"vote": {"strategy": "majority", "stopping": "first", "clusters": [ALONE], "winner": "c1"}}


SURE: dict[str, Any] = READ | {
    "candidates": [candidate("c1")],
    "columns": ["n"],
    "row_count": 1,
    "confidence": 0.76,
}


def test_the_confidence_never_sounds_surer_than_the_facts(subtests: pytest.Subtests) -> None:
    for changes, said, tone in (
        ({}, "likely right (76 %): ran; nothing suspicious", "good"),
        (
            {"doubts": ["The joins repeat rows. It would be 3.", "Two."], "warnings": ["It is old."]},
            "doubtful (76 %): ran; a check warns: The joins repeat rows (and 1 more check)",
            "warn",
        ),
        ({"warnings": ["a.csv is left out."]}, "ran; 1 warning", "good"),
        ({"candidates": [candidate("c1", approved=False)]}, "ran; the Validator did not accept it", "good"),
        ({"confidence": 0.5}, "may be right (50 %): ran; nothing suspicious", "warn"),
        ({"confidence": 0.999}, "likely right (99 %): ran; nothing suspicious", "good"),
        ({"vote": READ["vote"] | {"settled": "user"}}, "ran; nothing suspicious; you chose it", "good"),
        ({"demonstration": True}, "not rated: rules wrote the query, no language model", "warn"),
        ({"vote": READ["vote"] | {"settled": "verified"}}, "verified: a person verified the query", "good"),
    ):
        with subtests.test(changes=changes):
            answer = SURE | {"confidence": 0.76} | changes
            assert f"{trust(made(answer))[0]}: {grounds(made(answer))}".endswith(said)
            assert trust(made(answer))[1] == tone


# An event in a few words: chosen, counted or put together; any role's; an unknown kind's.


ERROR = {"kind": "column_not_found", "message": "no column x", "by": "lint"}
TWO: list[dict[str, Any]] = [
    {"candidates": ["c1", "c2"], "share": 2 / 3},
    {"candidates": ["c3"], "share": 1 / 3},
]
SHOP = {"database": "shop", "dialect": "sqlite"}

DIFFER = "results differ: 67 % for candidates 1, 2{} against 33 % for candidate 3"
EVENTS: list[tuple[str, str, str, dict[str, Any]]] = [
    (
        *("schema", "opened shop (SQLite, 2 tables); too large to show whole, left out: samples", "warn"),
        SHOP | {"tables": 2, "left_out": ["samples"]},
    ),
    ("retrieval", "", "plain", {"text": "abc"}),  # values, which have a step of their own
    ("query", "2 rows in 0.50 s, asked before", "good", {"rows": 2, "seconds": 0.5, "cached": True}),
    ("candidate", "gave up: max_calls", "bad", {"result": None, "error": None, "stopped_by": "max_calls"}),
    (
        *("readings", "3 other readings: 1 shows something else, 1 the same, 1 no result", "warn"),
        {"readings": [{"outcome": each} for each in ("differs", "same", "failed")]},
    ),
    ("vote", "", "plain", {"clusters": [{"candidates": ["c1"], "share": 1.0}]}),  # a single query is no vote
    ("vote", "no candidate has a result to vote with", "bad", {"clusters": []}),
    (
        *("candidate", "3 rows, approved by the Validator, 2 repairs, kept for the vote", "good"),
        {"result": {"row_count": 3}, "approved": True, "confirmed": True, "refinements": 2},
    ),
    (
        *("vote", DIFFER.format(" (the data lacks it)"), "plain"),
        {"clusters": [TWO[0] | {"key": "unanswerable"}, TWO[1]]},
    ),
    (
        *("vote", f"{DIFFER.format('')}, a tie; weights: a 0.50", "plain"),
        {"clusters": TWO, "tie": True, "weights": {"a": 0.5}},
    ),
    ("something_new", "something new size=3 text=a␛", "plain", {"size": 3, "text": "a\x1b"}),
]


def test_an_event_is_said_in_a_few_words(subtests: pytest.Subtests) -> None:
    for kind, gist, tone, fields in EVENTS:
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
    for kind in ("validation", "plan", "linking", "something_new"):  # there is no usable reply
        step = step_of({"kind": kind, "agent": "schema_linker", "candidate": "c1", "error": "No JSON."})
        assert (step.agent, step.gist[:8], step.tone) == ("SchemaLinker", "No JSON.", "warn")


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
