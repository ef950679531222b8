"""A catalog in parts, and what judgements on them leave."""

from __future__ import annotations

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.tools.sql.linking import chunks, needed, prune, unit_texts, units
from tests.schema_reader import parse_schema


def table(name: str, *columns: str, schema: str = "") -> Table:
    return Table(name, tuple(Column(column, "TEXT") for column in columns), schema=schema)


SHARDS = tuple(table(f"events_{year}", "id", "kind") for year in range(2001, 2013))
CATALOG = Catalog("shop", "sqlite", (table("orders", "id", "city"), *SHARDS, table("people", "id", "name")))


def names(catalog: Catalog) -> list[str]:
    return [table.name for table in catalog.tables]


def test_a_unit_is_a_table_or_a_family_of_shards() -> None:
    parts = units(CATALOG)
    assert {name: len(part.tables) for name, part in parts.items()} == {
        "orders": 1,
        "events_2001": 12,
        "people": 1,
    }
    for name, text in unit_texts(parts).items():
        assert names(parse_schema(text)) == names(parts[name])


@pytest.mark.parametrize("tokens", [1, 60, 100_000])
def test_chunks_hold_every_table_once(tokens: int) -> None:
    parts = chunks(CATALOG, tokens)
    assert sorted(name for part in parts for name in names(part)) == sorted(names(CATALOG))
    assert len(parts) == {1: 3, 100_000: 1}.get(tokens, len(parts))


def test_units_are_kept_with_the_columns_named_and_whole_without_any() -> None:
    parts = units(CATALOG)
    wanted = {"events_2001": ['"Kind"', "nonsense"], "people": None, "orders": ["nonsense"]}
    kept = prune(CATALOG, needed(parts, wanted))
    columns = {t.name: [c.name for c in t.columns] for t in kept.tables}
    assert columns["events_2005"] == ["kind"]
    assert columns["people"] == ["id", "name"]
    assert columns["orders"] == ["id", "city"]
