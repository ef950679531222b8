"""Fingerprints and clusters of nested and mixed results; ``test_compare`` has the plain kinds."""

from __future__ import annotations

import datetime as dt
import json
import math
import random
from decimal import Decimal
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from quorum.tools.results.compare import cluster_keys, equal, fingerprint, relation

NUMBER = st.integers(-(10**9), 10**9) | st.decimals(-1000, 1000, allow_nan=False, places=2)
WORD = st.text("abcXYZ äß", min_size=1, max_size=6).map(str.strip).filter(bool)
DAY = st.dates(dt.date(1900, 1, 1), dt.date(2100, 1, 1))
LEAF = st.none() | NUMBER | WORD | DAY
NESTED = st.recursive(
    LEAF, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORD, inner, max_size=3), max_leaves=6
).filter(lambda value: isinstance(value, list | dict))


def spelled(value: Any, draw: random.Random) -> Any:
    """The same JSON value, its numbers, days and keys written in another way."""
    if isinstance(value, dict):
        items = draw.sample(list(value.items()), len(value))
        return {key: spelled(inner, draw) for key, inner in items}
    if isinstance(value, list):
        return [spelled(inner, draw) for inner in value]
    if isinstance(value, Decimal | int):
        return draw.choice(
            [
                float(value),
                str(value),
                f"{Decimal(value):.4f}",
                int(value) if value == int(value) else float(value),
            ]
        )
    if isinstance(value, dt.date):
        return draw.choice([f"{value}", f"{value}T00:00:00", f"{value} 00:00:00Z"])
    return value


def as_json(values: list[Any], draw: random.Random) -> pa.Table:
    texts = [json.dumps(spelled(value, draw), indent=draw.choice([None, 2])) for value in values]
    return pa.table({"v": pa.array(texts, pa.string()), "n": list(range(len(texts)))})


@given(st.lists(NESTED, min_size=1, max_size=4), st.randoms(use_true_random=False))
def test_the_spelling_of_nested_values_does_not_count(values: list[Any], draw: random.Random) -> None:
    one, other = as_json(values, draw), as_json(values, draw)
    order = pa.array(draw.sample(range(len(values)), len(values)), pa.int64())
    other = other.take(order).select(draw.sample(["v", "n"], 2)).rename_columns(["x", "x"])
    assert fingerprint(one) == fingerprint(other)
    assert equal(one, other)


@given(NESTED, NESTED, st.randoms(use_true_random=False))
def test_other_nested_values_are_others(a: Any, b: Any, draw: random.Random) -> None:
    assume(json.dumps(a, default=str, sort_keys=True) != json.dumps(b, default=str, sort_keys=True))
    assume(_plain(a) != _plain(b))
    assert fingerprint(as_json([a], draw)) != fingerprint(as_json([b], draw))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [_plain(inner) for inner in value]
    return (
        float(value)
        if isinstance(value, Decimal | int)
        else str(value)
        if isinstance(value, dt.date)
        else value
    )


@given(
    st.lists(st.dictionaries(st.sampled_from("ab"), NUMBER.map(float), min_size=2), min_size=1, max_size=4)
)
def test_a_struct_a_map_and_their_json_are_one(values: list[dict[str, float]]) -> None:
    kind = pa.struct([("b", pa.float64()), ("a", pa.float64())])
    forms = [
        pa.array(values, kind),
        pa.array([list(value.items()) for value in values], pa.map_(pa.string(), pa.float64())),
        pa.array([json.dumps(value) for value in values]),
    ]
    assert len({fingerprint(pa.table({"v": form})) for form in forms}) == 1


ROW_VALUES = st.none() | st.just(math.nan) | NUMBER.map(float) | WORD.map(str)


@given(st.lists(st.floats(-1e5, 1e5) | st.none(), min_size=1, max_size=6), st.data())
def test_nan_is_null_in_every_place(values: list[float | None], data: st.DataObject) -> None:
    with_nan = [math.nan if v is None and data.draw(st.booleans()) else v for v in values]
    assert fingerprint(pa.table({"v": [*values, 1.5]})) == fingerprint(pa.table({"v": [*with_nan, 1.5]}))


@given(st.lists(st.integers(-(10**6), 10**6), min_size=2, max_size=6), st.data())
def test_a_changed_cell_within_text_numbers_changes_the_fingerprint(
    values: list[int], data: st.DataObject
) -> None:
    place = data.draw(st.integers(0, len(values) - 1))
    other = [value + (place == n) for n, value in enumerate(values)]
    texts = pa.table({"v": [f"{value}.0" for value in values], "k": list(range(len(values)))})
    changed = pa.table({"v": [Decimal(value) for value in other], "k": list(range(len(values)))})
    assert fingerprint(texts) != fingerprint(changed)
    assert relation(texts, changed) == "overlaps"


@given(st.lists(st.floats(-1e4, 1e4), min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_rounding_below_the_tolerance_never_splits_a_vote(values: list[float], draw: random.Random) -> None:
    whole = pa.table({"v": values})
    rounded = pa.table({"v": [round(value, 4) if abs(value) >= 1 else value for value in values]})
    keys = cluster_keys([whole, rounded, whole.take(pa.array(draw.sample(range(len(values)), len(values))))])
    assert len(set(keys)) == 1


@pytest.mark.parametrize(
    ("one", "other"), [(1.005, 1.0049), (2.5, 2.495), (100.004, 100.0), (0.12345, 0.123)]
)
def test_rounded_figures_vote_together(one: float, other: float) -> None:
    assert len(set(cluster_keys([pa.table({"v": [one]}), pa.table({"v": [other]})]))) == 1


@given(
    st.lists(st.lists(ROW_VALUES, min_size=2, max_size=2), min_size=1, max_size=5),
    st.randoms(use_true_random=False),
)
def test_mixed_columns_that_arrive_as_text(rows: list[list[Any]], draw: random.Random) -> None:
    def table(order: list[int]) -> pa.Table:
        columns = [[None if _nothing(rows[n][c]) else str(rows[n][c]) for n in order] for c in (0, 1)]
        return pa.Table.from_arrays([pa.array(column, pa.string()) for column in columns], names=["a", "b"])

    straight = list(range(len(rows)))
    assert fingerprint(table(straight)) == fingerprint(table(draw.sample(straight, len(straight))))


def _nothing(value: Any) -> bool:
    return value is None or value != value
