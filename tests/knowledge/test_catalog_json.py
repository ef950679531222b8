"""Catalogs as JSON: whatever they hold comes back."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table, from_json, to_json

TEXTS = st.text(st.characters(codec=None), max_size=5)
NAMES = st.lists(TEXTS, max_size=3).map(tuple)
COLUMNS = st.builds(
    Column,
    TEXTS,
    TEXTS,
    TEXTS,
    NAMES,
    st.lists(st.builds(Field, TEXTS, TEXTS, TEXTS, st.booleans()), max_size=2).map(tuple),
    st.booleans(),
    st.booleans(),
    st.booleans(),
    st.lists(st.none() | TEXTS, max_size=3).map(tuple),
)
COUNTS = st.none() | st.integers(0, 2**62)
TABLES = st.builds(
    Table,
    TEXTS,
    st.lists(COLUMNS, max_size=4).map(tuple),
    TEXTS,
    TEXTS,
    TEXTS,
    TEXTS,
    COUNTS,
    NAMES,
    st.lists(st.builds(ForeignKey, NAMES, TEXTS, NAMES), max_size=2).map(tuple),
    COUNTS,
)


@pytest.mark.heavy
@settings(max_examples=150)
@given(st.builds(Catalog, TEXTS, TEXTS, st.lists(TABLES, max_size=4).map(tuple), NAMES, NAMES, NAMES))
def test_a_catalog_comes_back_as_it_was(catalog: Catalog) -> None:
    assert from_json(json.loads(json.dumps(to_json(catalog)))) == catalog


def test_columns_that_are_equal_stand_once() -> None:
    columns = (Column("id", "integer"), Column("name", "text", samples=("Ann",)))
    catalog = Catalog("c", "postgres", tuple(Table(f"t{i}", columns) for i in range(50)))
    assert len(to_json(catalog)["columns"]) == 2


@pytest.mark.parametrize(
    "damaged",
    [{}, {"columns": 1, "tables": []}, {"columns": [["a"]], "tables": []}, {"columns": [], "tables": [[1]]}],
)
def test_what_is_no_catalog_is_refused(damaged: dict[str, object]) -> None:
    with pytest.raises((LookupError, TypeError, ValueError)):
        from_json(damaged)
