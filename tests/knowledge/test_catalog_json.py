"""Catalogs as JSON: whatever they hold comes back."""

from __future__ import annotations

import json
from dataclasses import fields
from typing import Any, TypeVar

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, Field, ForeignKey, Table, from_json, to_json

T = TypeVar("T")


def any_of(kind: type[T], **fixed: Any) -> st.SearchStrategy[T]:
    """Objects of a dataclass with whatever fits its fields' types, those with defaults too."""
    free = {each.name: ... for each in fields(kind) if each.name not in fixed}  # type: ignore[arg-type]
    return st.builds(kind, **free, **fixed)  # type: ignore[arg-type]


for kind in (Field, ForeignKey, Column, Table):
    st.register_type_strategy(kind, any_of(kind))


@pytest.mark.heavy
@settings(max_examples=150)
@given(any_of(Catalog, withheld=st.none()))  # what rules withhold is not written
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
