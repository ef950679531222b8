"""Keys seen in semi-structured values."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import Field
from quorum.knowledge.schema.inferred import MAX_FIELDS, infer_fields, merge_fields


def paths(*values: Any) -> dict[str, str]:
    return {f.path: f.type for f in infer_fields([json.dumps(v) for v in values])}


def test_paths_types_and_arrays() -> None:
    seen = paths(
        {"a": {"b": 1}, "c": [{"d": "x"}, {"e": None}]}, {"a": {"b": "1"}, "f": [[1.5]], "g": [], "h": True}
    )
    arrays = {"c[].d": "string", "c[].e": "null", "f[][]": "number", "g": "array"}
    assert seen == {"a.b": "number|string", **arrays, "h": "boolean"}
    assert set(paths({"a.b": {"c d": 1}})) == {'["a.b"]["c d"]'}, "quoted where they must be"
    assert infer_fields(["", "plain", "[cut", "{'a': 1}", None, 5, "[" * 100_000]) == ()


def test_name_value_pairs_list_the_names_seen_and_where_their_value_stands() -> None:
    pairs = [
        {"key": "page", "value": {"string_value": "home", "int_value": None}},
        {"key": "session", "value": {"int_value": 7, "string_value": None}},
    ]
    fields = {f.path: f for f in infer_fields([json.dumps(pairs)])}
    assert fields["[].key"].description == "seen: page (string_value), session (int_value)"
    assert "[].value.int_value" in fields


def test_maps_whose_keys_are_data_are_folded() -> None:
    assert paths({"2024-01-01": {"n": 1}, "2024-01-02": {"n": 2}}) == {"*.n": "number"}
    assert paths({"by_user": {f"{i:032x}": i for i in range(3)}}) == {"by_user.*": "number"}
    many = [{f"word{chr(97 + i)}{chr(97 + j)}": 1 for j in range(26)} for i in range(10)]
    assert paths(*many) == {"*": "number"}
    assert set(paths({"name": 1, "size": 2})) == {"name", "size"}


def test_a_flood_of_paths_is_cut_and_says_so() -> None:
    value = {f"{a}{b}": {"x": {"y": 1}, a: [b]} for a in "abcdefghij" for b in "klmnop"}
    fields = infer_fields([json.dumps({each: {f"{each}{key}": value for key in value} for each in "uvw"})])
    assert len(fields) == MAX_FIELDS + 1
    assert fields[-1].path == "..."


def test_merging_unites_paths_types_and_names_seen() -> None:
    one = (Field("k", "string", "seen: a, b (int)", True), Field("x", "number", inferred=True))
    two = (Field("k", "string", "seen: b, c", True), Field("x", "null", inferred=True), Field("y", "string"))
    assert merge_fields(one, two) == (
        Field("k", "string", "seen: a, b (int), c", True),
        Field("x", "number", inferred=True),
        Field("y", "string"),
    )


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


@given(st.lists(JSON, max_size=3))
def test_any_json_gives_distinct_inferred_paths(values: list[Any]) -> None:
    fields = infer_fields([json.dumps(value) for value in values])
    assert len({f.path for f in fields}) == len(fields)
    assert all(f.inferred and f.path and f.type for f in fields)
