"""What makes two results the same: properties of fingerprints, equality, clusters and relations."""

from __future__ import annotations

import datetime as dt
import random
from decimal import Decimal
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorum.tools.results.canonical import FEW, ISO, NO_DIGITS, NUMERIC, TRUTH, matches
from quorum.tools.results.canonical import NESTED as JSON
from quorum.tools.results.compare import cluster_keys, equal, fingerprint, relation
from quorum.tools.results.files import read_result, write_result

WHOLE = st.integers(-(2**62), 2**62)
FRACTION = st.decimals(-10_000, 10_000, allow_nan=False, places=3)
DAY = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
WORD = st.text(st.characters(codec="utf-8", exclude_characters="[{"), min_size=1).filter(
    lambda word: not any(char.isdigit() for char in word) and word == word.rstrip(" ")
)
KINDS: dict[str, st.SearchStrategy[Any]] = {"whole": WHOLE, "fraction": FRACTION, "day": DAY, "word": WORD}
Columns = list[tuple[str, list[Any]]]


@st.composite
def columns(draw: st.DrawFn) -> Columns:
    """(kind, values) per column, with NULLs."""
    rows = draw(st.integers(0, 6))
    kinds = draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=4))
    return [(kind, draw(st.lists(st.none() | KINDS[kind], min_size=rows, max_size=rows))) for kind in kinds]


def as_table(made: Columns) -> pa.Table:
    arrays = [encode(kind, values, 0) for kind, values in made]
    return pa.Table.from_arrays(arrays, names=[f"c{i}" for i in range(len(arrays))])


def encode(kind: str, values: list[Any], form: int) -> pa.Array:
    """The values in one of their representations; 0 is the plainest."""
    forms = FORMS[kind]
    return forms[form % len(forms)](values)


def each(values: list[Any], change: Any) -> list[Any]:
    return [None if value is None else change(value) for value in values]


def midnight(day: dt.date) -> dt.datetime:
    return dt.datetime(day.year, day.month, day.day)


FORMS: dict[str, list[Any]] = {
    "whole": [
        lambda v: pa.array(v, pa.int64()),
        lambda v: pa.array(each(v, Decimal), pa.decimal128(38, 0)),
        lambda v: pa.array(each(v, str), pa.string()),
        lambda v: pa.array(each(v, lambda x: f" {x}.00"), pa.large_string()),
        lambda v: pa.array(v, pa.decimal128(38, 2)),
        lambda v: pa.array(v, pa.int64()).dictionary_encode(),
        lambda v: pa.array(each(v, lambda x: x if x == int(float(x)) else Decimal(x)), pa.decimal128(38, 0)),
    ],
    "fraction": [
        lambda v: pa.array(each(v, float), pa.float64()),
        lambda v: pa.array(each(v, lambda x: x.quantize(Decimal("0.000"))), pa.decimal128(20, 6)),
        lambda v: pa.array(each(v, str), pa.string()),
        lambda v: pa.array(each(v, lambda x: f"{x:.9f}"), pa.string()),
        lambda v: pa.array([float("nan") if x is None else float(x) for x in v], pa.float64()),
    ],
    "day": [
        lambda v: pa.array(v, pa.date32()),
        lambda v: pa.array(each(v, midnight), pa.timestamp("us")),
        lambda v: pa.array(each(v, midnight), pa.timestamp("s", "UTC")),
        lambda v: pa.array(each(v, str), pa.string()),
        lambda v: pa.array(each(v, lambda x: f"{x} 00:00:00"), pa.string()),
        lambda v: pa.array(each(v, lambda x: f"{x}T00:00:00.000Z"), pa.string()),
        lambda v: pa.array(each(v, lambda x: f"{x} 00:00:00 +0000"), pa.string()),
    ],
    "word": [
        lambda v: pa.array(v, pa.string()),
        lambda v: pa.array(each(v, lambda x: x + "  "), pa.large_string()),
        lambda v: pa.array(v, pa.string()).dictionary_encode(),
        lambda v: pa.array(each(v, str.encode), pa.binary()),
    ],
}


@pytest.mark.heavy
@given(columns(), st.randoms(use_true_random=False))
def test_form_never_changes_the_fingerprint(made: Columns, draw: random.Random) -> None:
    rows = list(range(len(made[0][1])))
    draw.shuffle(rows)
    other: Columns = [(kind, [values[row] for row in rows]) for kind, values in made]
    draw.shuffle(other)
    arrays = [encode(kind, values, draw.randrange(100)) for kind, values in other]
    changed = pa.Table.from_arrays(arrays, names=["same"] * len(arrays))
    plain = as_table(made)
    assert fingerprint(changed) == fingerprint(plain)
    assert equal(changed, plain)
    assert relation(changed, plain) == "equal"


@given(st.floats(-1e6, 1e6), st.floats(1e-3, 0.999), st.booleans())
def test_the_tolerance_has_no_edge_for_equal(number: float, part: float, up: bool) -> None:
    tolerance = min(0.01, 5e-3 * abs(number))
    other = number + part * tolerance * (1 if up else -1)
    a, b = pa.table({"v": [number, 7.5]}), pa.table({"v": [7.5, other]})
    assert equal(a, b) or (number.is_integer() and other.is_integer())
    assert len(set(cluster_keys([a, b]))) == 1


@given(st.floats(1e-9, 1e9), st.floats(1.01, 3))
def test_beyond_the_tolerance_fingerprints_differ(number: float, times: float) -> None:
    other = number + times * max(min(0.01, 5e-3 * number), 1e-12) / (1 - 5e-3 * times)
    a, b = pa.table({"v": [number]}), pa.table({"v": [other]})
    assert fingerprint(a) != fingerprint(b)
    assert not equal(a, b)


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1.005, 1.0049, True),
        (2.684, 2.68, True),
        (100.004, 100.0, True),
        (0.12345, 0.123, True),
        (0.012, 0.021, False),
        (2001, 2002, False),
        (2001.5, 2001, False),
        (2**60, 2**60 + 1, False),
        (2**60, float(2**60), True),
        (Decimal(10**30), Decimal(10**30 + 1), False),
        ("1e23", 1e23, True),
        ("123456789012345678901", "123456789012345678902", False),
        (1e-17, 0, True),
        (float("inf"), float("inf"), True),
        (float("inf"), -float("inf"), False),
        (None, float("nan"), True),
        (None, "", False),
        (True, 1, True),
        ("007", 7, True),
        ("1,000", 1000, False),
        ("A", "a", False),
        (dt.date(2024, 1, 1), "2024-01-01 00:00", True),
        (dt.datetime(2024, 1, 1, 1, tzinfo=dt.UTC), "2024-01-01T02:00:00+01:00", True),
        (dt.date(2024, 1, 1), 20240101, False),
        (dt.date(2024, 1, 1), dt.date(2024, 1, 2), False),
        (dt.datetime(2024, 1, 1, 1, 2, 3), "2024-01-01 01:02:04", False),
        ("2024-02-30", "2024-02-30", True),
        (dt.datetime(2024, 1, 1, 1, 2, 3, 500_000), "2024-01-01 01:02:03.500000000", True),
        ({"b": 1, "a": [1, 2.0]}, '{"a": [1.0, 2], "b": "1"}', True),
        ('{"a": {"b": [-0.50, null, "x"]}}', '{"a": {"b": ["-0.5000", null,\n"x"]}}', True),
        ('[{"a": 1.25}]', '[{"a": 2.25}]', False),
        ([1, 2], [2, 1], False),
        ([dt.date(2024, 1, 1)], '["2024-01-01T00:00:00"]', True),
        (["2024-01-01 00:00:00Z"], ["2024-01-01"], True),
        (b"abc", "abc", True),
    ],
)
def test_what_cells_mean(a: Any, b: Any, same: bool) -> None:
    left, right = (pa.table({"c": [value]}) for value in (a, b))
    assert equal(left, right) is same
    assert equal(right, left) is same
    assert len(set(cluster_keys([left, right]))) == (1 if same else 2)


def test_order_counts_where_it_is_asked_for() -> None:
    a, b = pa.table({"x": [1, 2], "y": [3.0, 4.0]}), pa.table({"y": [4.0, 3.0], "x": [2, 1]})
    assert fingerprint(a) == fingerprint(b)
    assert fingerprint(a, ordered=True) != fingerprint(b, ordered=True)
    assert fingerprint(a, ordered=True) == fingerprint(a.select(["y", "x"]), ordered=True)
    assert not equal(a, b, ordered=True)
    assert equal(a, pa.table({"y": [3.004, 4.0], "x": [1, 2]}), ordered=True)


@pytest.mark.parametrize(
    "other",
    [
        {"x": [1, 1, 2, None], "y": ["a", "a", "b", "d"]},
        {"x": [1, 1, 2, 2], "y": ["a", "a", "b", "c"]},
        {"x": [1, 1, 2, None], "y": ["a", "b", "a", "c"]},  # the same columns, other rows
        {"x": [2, 2, 2, None], "y": ["b", "b", "b", "c"]},  # two equal rows do not cancel each other
        {"x": [1, 1, 2, None], "y": ["a", "a", "b", None]},
        {"x": [1, 1, 2, None], "y": ["a", "a", "b", "c"], "z": [None] * 4},
        {"x": [1, 1, 2], "y": ["a", "a", "b"]},
    ],
)
def test_any_change_changes_the_fingerprint(other: dict[str, Any]) -> None:
    one, changed = pa.table({"x": [1, 1, 2, None], "y": ["a", "a", "b", "c"]}), pa.table(other)
    assert fingerprint(one) != fingerprint(changed)
    assert not equal(one, changed)


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        ({"x": [1, 1]}, {"x": [1]}, "overlaps"),
        ({"a": pa.array([], pa.int64())}, {"b": pa.array([], pa.string())}, "equal"),
        ({"a": pa.array([], pa.int64())}, {"a": pa.nulls(1)}, "differs"),
        (
            {"x": [1, 2, 1, 2], "y": [2, 1, 2, 1], "z": list("abcd")},
            {"x": [2, 1, 1, 2], "y": [1, 2, 2, 1], "z": list("abcd")},
            "overlaps",
        ),
        ({"x": [1, 2], "y": [3, 4]}, {"y": ["4", "3"]}, "contains"),
        ({"y": [3.001]}, {"x": [1], "y": [3.0]}, "within"),
        ({"x": [1, 2], "y": [3, 4]}, {"x": [2, 1], "z": [8, 9]}, "overlaps"),
        ({"x": [1, 2, 3]}, {"x": [3, 4]}, "overlaps"),
        ({"x": [1], "n": [None]}, {"x": [2], "n": [None]}, "differs"),
        ({"x": [1, 2]}, {"x": [3, 4]}, "differs"),
        ({"x": [1, 2], "y": [3, 4]}, {"x": [1, 2], "y": [4, 3], "z": [0, 0]}, "overlaps"),
    ],
)
def test_relations(a: dict[str, Any], b: dict[str, Any], expected: str) -> None:
    assert relation(pa.table(a), pa.table(b)) == expected


def test_near_equal_results_join_whatever_their_order() -> None:
    values = [0.53675, 0.53705, 0.53735]  # neighbours agree; the grid has an edge between them
    tables = [pa.table({"v": [value], "w": ["k"]}) for value in values]
    tables.append(pa.table({"v": [9.0], "w": ["k"]}))
    keys = cluster_keys(tables)
    assert len(set(keys[:3])) == 1
    assert keys[3] != keys[0]
    assert cluster_keys(tables[::-1]) == keys[::-1]
    assert cluster_keys([]) == []


def test_rows_that_swap_places_within_the_tolerance_still_agree() -> None:
    a = pa.table({"v": [0.50001, 0.50002, 0.50003], "w": [7.25, 3.25, 5.25]})
    b = pa.table({"v": [0.50003, 0.50001, 0.50002], "w": [7.2501, 3.2501, 5.2501]})
    assert equal(a, b)
    assert not equal(a, b.set_column(1, "w", pa.array([7.25, 3.25, 7.25])))


@pytest.mark.heavy
def test_many_alike_columns_do_not_take_for_ever() -> None:
    twins = pa.Table.from_arrays([pa.array([0.5, 1.5])] * 30, names=["t"] * 30)
    odd = pa.Table.from_arrays([pa.array([0.501, 1.5])] * 29 + [pa.array([1.5, 0.501])], names=["t"] * 30)
    assert not equal(twins, odd)  # 29! ways to pair them: tried one by one it would not end


@pytest.mark.parametrize(
    "text",
    ["9" * 400, "1e999", "-" + "9" * 5000, "1.e5", "+.5E-3", "\u00a05", "٣", "0000-00-00", "2024-13-01",
     "9999-12-31T23:59:59.999999999", "2024-01-01 25:00", "[" * 5000, '{"a": NaN}', '["\\ud800"]', "[1e999]",
     "[" + "9" * 5000 + "]", "{}", "  ", "\x00"],
)  # fmt: skip
def test_awkward_text(text: str) -> None:
    one, other = pa.table({"t": [text, "k"]}), pa.table({"t": pa.array(["k", text]).dictionary_encode()})
    assert equal(one, other)
    assert not equal(one, pa.table({"t": [text + "x", "k"]}))


ARROW: list[tuple[pa.DataType, list[Any]]] = [
    (pa.string_view(), ["a", "b"]),
    (pa.binary(1), [b"a", b"\xff"]),
    (pa.uuid(), [b"0" * 16, b"1" * 16]),
    (pa.time64("ns"), [dt.time(1), dt.time(2, 0, 0, 5)]),
    (pa.duration("s"), [dt.timedelta(1), dt.timedelta(2)]),
    (pa.float16(), [np.float16(1.5), np.float16(2.5)]),
    (pa.uint64(), [2**64 - 1, 2**64 - 2]),
    (pa.decimal256(70, 3), [Decimal(10**60), Decimal(10**60 + 1)]),
    (pa.list_(pa.float32(), 2), [[1, 2], [2, 1]]),
    (pa.null(), [None]),
    (pa.struct([]), [{}]),
    (pa.month_day_nano_interval(), [(1, 0, 0), (0, 30, 0)]),
    (pa.map_(pa.int8(), pa.date32()), [[(1, dt.date(2024, 1, 1))], [(2, dt.date(2024, 1, 1))]]),
    (pa.run_end_encoded(pa.int32(), pa.int64()), [1, 2]),
]


def _array(kind: pa.DataType, value: Any) -> pa.Array:
    if isinstance(kind, pa.RunEndEncodedType):
        return pa.RunEndEncodedArray.from_arrays(pa.array([1, 2], pa.int32()), pa.array([value, None]), kind)
    return pa.array([value, None], kind)


@pytest.mark.parametrize(("kind", "values"), ARROW, ids=str)
def test_every_arrow_type_can_be_compared_and_kept(
    kind: pa.DataType, values: list[Any], tmp_path: Path
) -> None:
    tables = [pa.table([_array(kind, value)], ["c"]) for value in values]
    assert all(equal(table, table.slice(0)) for table in tables)
    assert len(set(cluster_keys(tables))) == len(tables)
    assert all(equal(read_result(write_result(table, tmp_path)), table) for table in tables)


NAN, INF, NULLS = float("nan"), float("inf"), pa.array([None, None], pa.string())


@pytest.mark.parametrize(
    ("texts", "values", "same"),
    [
        (["NaN", "7.5"], [NAN, 7.5], True),
        ([" NAN", "1"], [None, 1.0], True),
        (["Infinity", "-inf", "0.5"], [INF, -INF, 0.5], True),
        (["+INF", "2"], [INF, 2], True),
        (["True", "false", None], [True, False, None], True),
        (["TRUE"], [True], True),
        (["Ann", "Nan"], ["Ann", None], False),
        (["Nan", None], NULLS, False),
        (["inf"], ["Infinity"], False),
        (["1", "1e999", "nan"], ["1", "1e999", None], False),
        (["true", "maybe"], ["1", "maybe"], False),
        (["true", "maybe"], ["true", "perhaps"], False),
        (["1", "info"], ["1", "inf"], False),
    ],
)
def test_words_for_numbers_and_truth_are_these_where_all_values_are(
    texts: list[str | None], values: Any, same: bool
) -> None:
    one, other = pa.table({"t": texts}), pa.table({"t": values})
    assert equal(one, other) is same
    assert (fingerprint(one) == fingerprint(other)) is same


PIECES = [
    *("1", "007", "+", "-", ".", "e5", "E-12", "2024-01-31", "T12:30", "12:30:00.5", "Z", "UTC", "+01:00"),
    *("true", "FALSE", "nan", "NaN", "inf", "-Infinity", "+INF", "[", "{"),
    *"\t\n\x0b\x0c\r\x1c\x1f \x85\xa0\u2028",
    *"\u0661\u00b2\u017f\u0130",  # a digit, a power, and letters that fold to s and i
]
TEXTS = st.one_of(st.text(max_size=8), st.lists(st.sampled_from(PIECES), max_size=6).map("".join))


@pytest.mark.parametrize("pattern", [NUMERIC, ISO, JSON, TRUTH, NO_DIGITS])
@given(given=st.lists(TEXTS, min_size=1, max_size=8))
@example(given=["1\n", "\x0b1", "\x1c1", "true\n\n"])
def test_few_and_many_mean_the_same(pattern: str, given: list[str]) -> None:
    few = matches(pa.array(given, pa.string()), pattern)
    alone = [matches(pa.array([text], pa.string()), pattern)[0] for text in given]
    many = matches(pa.array(given + ["x"] * (FEW + 1), pa.string()), pattern)[: len(given)]
    assert few.dtype == many.dtype == np.bool_
    assert few.tolist() == many.tolist() == alone
