"""Nested DuckDB types as field paths, checked against types that DuckDB itself writes."""

from __future__ import annotations

import duckdb
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.tools.databases.duckdb.catalog import fields_of
from quorum.tools.databases.duckdb.session import _plain_type

NAMES = st.text("aB _\"',()[]é.", min_size=1, max_size=5)
FLAT = st.sampled_from(["INTEGER", "DECIMAL(4,2)", "TIME WITH TIME ZONE", "ENUM('a', 'it''s, (b)')"])


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _struct(members: dict[str, tuple[str, list[str]]]) -> tuple[str, list[str]]:
    text = ", ".join(f"{_quoted(name)} {kind}" for name, (kind, _) in members.items())
    return f"STRUCT({text})", [leaf for _, leaves in members.values() for leaf in leaves]


TYPES = st.recursive(
    FLAT.map(lambda kind: (kind, [kind])),
    lambda inner: st.one_of(
        inner.map(lambda pair: (f"{pair[0]}[]", pair[1])),
        inner.map(lambda pair: (f"{pair[0]}[3]", pair[1])),
        inner.map(lambda pair: (f"MAP(VARCHAR, {pair[0]})", pair[1])),
        st.dictionaries(NAMES, inner, min_size=1, max_size=3)
        .filter(lambda members: len({name.casefold() for name in members}) == len(members))
        .map(_struct),
    ),
    max_leaves=6,
)


@given(TYPES)
def test_every_leaf_is_found(pair: tuple[str, list[str]]) -> None:
    kind, leaves = pair
    written = str(duckdb.sqltype(kind))
    found = fields_of(written)
    assert len({field.path for field in found}) == len(found)
    if "STRUCT(" in written or "MAP(" in written:
        assert [field.type for field in found] == [str(duckdb.sqltype(leaf)) for leaf in leaves]
    else:
        assert found == ()


@pytest.mark.parametrize(
    ("kind", "plain"),
    [
        ("INTEGER", "INTEGER"),
        ("ENUM('BIT', 'x, ''y')[]", "VARCHAR[]"),
        ("STRUCT(\"BIT\" BIT, e ENUM('a'))", 'STRUCT("BIT" VARCHAR, e VARCHAR)'),
        ("TIME WITH TIME ZONE", "VARCHAR"),
        ("TIMESTAMP WITH TIME ZONE", "TIMESTAMP WITH TIME ZONE"),
        ("MAP(VARCHAR, UNION(n DECIMAL(4,1), s VARCHAR))", "VARCHAR"),
    ],
)
def test_types_that_arrow_lacks_become_text(kind: str, plain: str) -> None:
    assert _plain_type(kind) == plain
