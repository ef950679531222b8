"""Schema linking by parsing: what a query uses, and the catalog pruned to it."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.knowledge.schema.render import render
from quorum.tools.lint import Linter
from quorum.tools.sql.linking import (
    Linked,
    chunks,
    named,
    needed,
    prune,
    union,
    unit_texts,
    units,
    used,
)
from tests.schema_reader import parse_schema
from tests.tools.case_files import cases
from tests.tools.lint_tables import EVENTS, SNOW
from tests.tools.test_gold_sql import catalog_of, gold
from tests.tools.test_guard import passed


def table(name: str, columns: str, key: str = "", **refers: str) -> Table:
    """A table with its primary key; ``refers`` says to whose ``id`` a column refers."""
    made = tuple(Column(column, "TEXT") for column in columns.split())
    foreign = tuple(ForeignKey((column,), other, ("id",)) for column, other in refers.items())
    return Table(name, made, primary_key=tuple(key.split()), foreign_keys=foreign)


def names(linked: Linked) -> list[str]:
    """``table.column`` of all columns, and ``table`` of a table without one."""
    bare = [name for name in linked.tables if name not in dict(linked.columns)]
    return sorted([f"{table}.{column}" for table, column in linked.columns] + bare)


def columns(catalog: Catalog) -> dict[str, str]:
    return {t.name: " ".join(c.name for c in t.columns) for t in catalog.tables}


LINES = {"order_id": "orders", "product_id": "products"}
SHOP = Catalog(
    "shop",
    "sqlite",
    (
        table("customers", "id name region rank", "id"),
        table("orders", "id customer_id placed total status", "id", customer_id="customers"),
        table("lines", "order_id line product_id quantity", "order_id line", **LINES),
        table("products", "id name price", "id"),
        table("notes", "body author"),
    ),
)


CATALOGS = {
    "shop": (SHOP, ""),
    "events": (Catalog("events", "bigquery", EVENTS), "proj."),
    "snow": (Catalog("SHOP", "snowflake", SNOW), "SHOP.PUBLIC."),
}


@pytest.mark.parametrize("catalog", CATALOGS)
def test_columns_are_those_that_the_query_reads(catalog: str) -> None:
    known, prefix = CATALOGS[catalog]
    for name, sql, expected in cases("sql_cases/linking", 3):
        if name == catalog:
            linked = used(sql, known)
            found = [each.removeprefix(prefix) for each in names(linked)]
            found = [each.split(".", 1)[1] for each in found] if name == "events" else found
            assert sorted(found) == sorted(expected.split()), sql
            assert linked.unknown == (), sql


def test_unknown_names_are_listed_and_the_rest_is_linked() -> None:
    linked = used("SELECT o.total, o.colour, x.y, label FROM orders o JOIN ordrs ON 1 = 1", SHOP)
    assert names(linked) == ["orders.total"]
    assert set(linked.unknown) == {"ordrs", "o.colour", "x.y"}  # the unknown table may have a label
    assert used("SELECT colour FROM notes", SHOP).unknown == ("colour",)


def test_pruning_keeps_used_columns_and_the_keys_that_join_kept_tables() -> None:
    pruned = prune(SHOP, used("SELECT name, quantity FROM customers, orders, lines", SHOP))
    assert pruned.name == SHOP.name
    assert columns(pruned) == {
        "customers": "id name",
        "orders": "id customer_id placed total status",  # none of its columns is used, so all stay
        "lines": "order_id line quantity",
    }
    keys = {t.name: [key.ref_table for key in t.foreign_keys] for t in pruned.tables}
    assert keys == {"customers": [], "orders": ["customers"], "lines": ["orders"]}


@pytest.mark.parametrize(
    ("text", "linked"),
    [
        ("orders(id:INTEGER, total:REAL[1, 2])", [("orders", "id"), ("orders", "total")]),
        ('"ORDERS" (`ID`:TEXT); customers(name:VARCHAR(20))', [("customers", "name"), ("orders", "id")]),
        ("orders(id, price); towns(name)", [("orders", "id")]),
        ("reorders(id); other_orders (id)", []),
        ("", []),
    ],
)
def test_a_linked_schema_is_read_by_the_catalogs_names(text: str, linked: list[tuple[str, str]]) -> None:
    found = named(text, SHOP)
    assert list(found.columns) == linked
    assert set(found.tables) == {name for name, _ in linked}


def test_a_table_whose_name_ends_like_another_s_is_read_as_itself() -> None:
    catalog = Catalog("shop", "sqlite", (table("big orders", "id total"), table("orders", "id total")))
    for text in ('"big orders"(total)', "big orders(total)"):
        assert named(text, catalog).columns == (("big orders", "total"),)
        assert named(f"{text}; orders(id)", catalog).columns == (("big orders", "total"), ("orders", "id"))


LINKED = st.builds(
    lambda pairs: Linked(
        tuple({t.full_name for t, _ in pairs}), tuple((t.full_name, c.name) for t, c in pairs)
    ),
    st.lists(st.sampled_from(list(SHOP.columns()))),
)


@given(LINKED, LINKED)
def test_a_pruned_catalog_has_what_is_linked_and_is_whole(one: Linked, other: Linked) -> None:
    pruned = prune(SHOP, one, other)
    left = {(t.full_name, c.name) for t, c in pruned.columns()}
    assert set(one.columns) | set(other.columns) <= left <= {(t.full_name, c.name) for t, c in SHOP.columns()}
    for part in pruned.tables:
        assert part.columns
        assert all(part.column(name) for name in part.primary_key)
        for key in part.foreign_keys:
            target = pruned.table(key.ref_table) or SHOP.table(key.ref_table)  # what a column refers to
            assert all(part.column(name) for name in key.columns)
            assert all(target.column(name) for name in key.ref_columns)
    assert prune(pruned, one, other) == pruned
    assert named(str(union(SHOP, [one])), SHOP) == union(SHOP, [one]), "written out, it is read back"
    assert any("part of a larger database" in note for note in pruned.notes) == (pruned.tables != SHOP.tables)
    read = parse_schema(render(pruned).text)
    assert {t.full_name: t.foreign_keys for t in read.tables} == {
        t.full_name: t.foreign_keys for t in pruned.tables
    }
    assert read.notes == pruned.notes


def test_notes_on_what_is_gone_go_too() -> None:
    notes = (
        "No sample values are shown, for privacy, of: customers.rank, notes.author and 3 more.",
        "Not counted for lack of time: notes.",
        "A foreign key of orders refers to shops, which does not fit.",
        "The view best cannot be read and is left out: no such column: x.",
    )
    pruned = prune(replace(SHOP, notes=notes), used("SELECT name, rank FROM customers", SHOP))
    assert pruned.notes == (
        "No sample values are shown, for privacy, of: customers.rank.",
        notes[3],
        "This is a part of a larger database: 1 of 5 tables and 3 of 18 columns.",
    )


def test_a_table_that_is_only_counted_may_keep_its_key_alone() -> None:
    counted = [used(f"SELECT COUNT(*) FROM {name}", SHOP) for name in ("orders", "lines", "notes")]
    pruned = prune(SHOP, *counted, bare="key")
    assert columns(pruned) == {"orders": "id", "lines": "order_id line", "notes": "body"}
    assert len(prune(SHOP, *counted).tables[0].columns) == 5


def test_every_gold_query_still_resolves_in_its_pruned_catalog(shared: Path) -> None:
    every, smaller = gold(shared / "data", "spider1"), 0
    for each in every:
        catalog = catalog_of(each.schema)
        pruned = prune(catalog, used(each.sql, catalog))
        assert Linter(pruned).lint(passed(each.sql).tree) is None, each.sql
        smaller += sum(1 for _ in pruned.columns()) < sum(1 for _ in catalog.columns())
    assert smaller > 0.9 * len(every)


SHARDS = tuple(table(f"events_{year}", "id kind") for year in range(2001, 2013))
SHARDED = Catalog("shop", "sqlite", (table("orders", "id city"), *SHARDS, table("people", "id name")))


def test_a_unit_is_a_table_or_a_family_of_shards() -> None:
    parts = units(SHARDED)
    sizes = {name: len(part.tables) for name, part in parts.items()}
    assert sizes == {"orders": 1, "events_2001": 12, "people": 1}
    for name, text in unit_texts(parts).items():
        assert columns(parse_schema(text)) == columns(parts[name])
    wanted = {"events_2001": ['"Kind"', "nonsense"], "people": None, "orders": ["nonsense"]}
    kept = columns(prune(SHARDED, needed(parts, wanted)))
    assert (kept["events_2005"], kept["people"], kept["orders"]) == ("kind", "id name", "id city")


@pytest.mark.parametrize(("tokens", "count"), [(1, 3), (120, 2), (100_000, 1)])
def test_chunks_hold_every_table_once(tokens: int, count: int) -> None:
    parts = chunks(SHARDED, tokens)
    assert sorted(name for part in parts for name in columns(part)) == sorted(columns(SHARDED))
    assert len(parts) == count
