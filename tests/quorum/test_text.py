"""Text for people: nothing that a terminal would obey, numbers as one reads them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

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
from tests.quorum.conftest import candidate, made


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


@pytest.mark.parametrize(
    ("answer", "text"),
    [
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
    ],
)
def test_the_vote_in_words(answer: dict[str, Any], text: str) -> None:
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


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_a_shown_number_is_the_number_to_six_digits(value: float) -> None:
    assert float(cell(value)) == pytest.approx(value, rel=5.1e-6, abs=1e-300)


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


@pytest.mark.parametrize(("name", "kind", "values", "shown"), COLUMNS)
def test_a_column_is_shown_by_its_name_type_and_all_its_values(
    name: str, kind: str, values: list[Any], shown: list[str]
) -> None:
    assert cells(name, values, kind) == shown


SPACED = st.text(alphabet='nulNUL"\\ \t', max_size=6).filter(
    lambda text: text.split() == text.strip().split(" ")
)


@given(st.lists(st.none() | SPACED, min_size=2, max_size=2, unique=True))
def test_null_and_texts_that_differ_at_their_ends_look_different(pair: list[str | None]) -> None:
    assert cell(pair[0]) != cell(pair[1])


ALONE = {"candidates": ["c1"], "share": 1.0, "weight": 1.0, "key": "k"}
READ = {"vote": {"strategy": "majority", "stopping": "first", "clusters": [ALONE], "winner": "c1"}}


SURE: dict[str, Any] = READ | {
    "candidates": [candidate("c1")],
    "columns": ["n"],
    "row_count": 1,
    "confidence": 0.76,
}


@pytest.mark.parametrize(
    ("changes", "said", "tone"),
    [
        ({}, "likely right (76 %): ran; nothing suspicious", "good"),
        (
            {"doubts": ["The joins repeat rows. It would be 3.", "Two."], "warnings": ["It is old."]},
            "doubtful (76 %): ran; a check warns: The joins repeat rows (and 1 more check)",
            "warn",
        ),
        ({"warnings": ["a.csv is left out."]}, "ran; 1 warning", "good"),
        ({"candidates": [candidate("c1", approved=False)]}, "ran; the Validator did not accept it", "good"),
        ({"confidence": 0.999}, "likely right (99 %): ran; nothing suspicious", "good"),
        ({"vote": READ["vote"] | {"settled": "user"}}, "ran; nothing suspicious; you chose it", "good"),
        ({"demonstration": True}, "not rated: rules wrote the query, no language model", "warn"),
        ({"vote": READ["vote"] | {"settled": "verified"}}, "verified: a person verified the query", "good"),
    ],
)
def test_the_confidence_never_sounds_surer_than_the_facts(
    changes: dict[str, Any], said: str, tone: str
) -> None:
    answer = SURE | {"confidence": 0.76} | changes
    assert f"{trust(made(answer))[0]}: {grounds(made(answer))}".endswith(said)
    assert trust(made(answer))[1] == tone
