"""The index over a catalog's columns: its texts, what it finds by words and by meaning, groups once."""

from __future__ import annotations

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.search.columns import ColumnIndex, units
from tests.knowledge.letters import Letters


def table(name: str, /, schema: str = "main", description: str = "", **columns: str) -> Table:
    made = tuple(Column(column, "TEXT", description=text) for column, text in columns.items())
    return Table(name, made, schema, description=description)


SHARDS = tuple(table(f"sales_{year}", day="", amount="money received") for year in range(2019, 2024))
SHOP = Catalog(
    "shop",
    "duckdb",
    (
        *SHARDS,
        table("customers", name="", city="where they live"),
        table("stock", description="Goods in the warehouse", item="", pieces=""),
        table("sales_2019", "archive", day="", amount="money received"),
        table("empty"),
    ),
)


def test_texts_are_the_papers() -> None:
    """Tables that share their columns have one."""
    index = ColumnIndex(SHOP)
    paper = "[Name]: amount; [Type]: TEXT; [Desc]: money received"
    assert index.unnamed.texts[1] == paper
    assert index.texts[1] == f"[Table]: sales_{{2019..2023}}; {paper}"
    names = [[t.full_name for t in unit] for unit in units(SHOP)]
    alone = ["main.customers", "main.stock", "archive.sales_2019", "main.empty"]
    assert names == [[t.full_name for t in SHARDS], *([name] for name in alone)]
    assert (len(index.texts), len(ColumnIndex(SHOP, groups=False).texts)) == (8, 16)


@pytest.mark.parametrize(
    ("query", "columns", "tables"),
    [
        ("Where do they live?", {"main.customers.city"}, ["main.customers"]),
        ("warehouses", {"main.stock.item", "main.stock.pieces"}, ["main.stock"]),
        ("[Type]: TEXT", set(), []),  # what all texts have tells nothing
        ("nothing alike", set(), []),
        ("Show all names", {"main.customers.name"}, ["main.customers"]),  # words of every question alone
        ("pieces in stock", {"main.stock.pieces", "main.stock.item"}, ["main.stock"]),
    ],
)
def test_columns_and_tables_are_found_by_their_words(
    query: str, columns: set[str], tables: list[str]
) -> None:
    index = ColumnIndex(SHOP)
    hits = index.search(query, 9)
    assert {f"{hit.table}.{hit.column}" for hit in hits if hit.score > 0} == columns
    assert (len(hits), index.tables(query, 9)) == (len(columns), tables)


def test_the_best_come_first_and_a_group_stands_for_its_tables() -> None:
    index = ColumnIndex(SHOP)
    assert index.tables("What was received in 2021?", 1) == ["main.sales_2019"]
    assert [hit.column for hit in index.search("amount", 1)] == ["amount"]
    assert index.search("Show the name of each item", 9)[0].column == "item", "others count more"
    wide, fitting = table("w", **{f"city_{c}": "" for c in "abcdef"}), table("p", person="", city="")
    others = table("o", **{f"x{n}": "" for n in range(50)})
    both = ColumnIndex(Catalog("c", "duckdb", (wide, fitting, others)))
    assert both.tables("person and city", 1) == ["main.p"], "a term counts once for a table"
    for tables in ((), (table("empty"),)):
        nothing = ColumnIndex(Catalog("none", "duckdb", tables))
        assert (nothing.search("any", 3), nothing.tables("any", 3)) == ([], [])


@pytest.mark.parametrize("name", ["orders", "Order", "values"])
def test_a_word_of_every_question_counts_where_a_table_bears_it(name: str) -> None:
    columns = ({"customer_id": "", f"note_{n}": ""} for n in range(3))
    others = [table(other, **each) for other, each in zip("abc", columns, strict=True)]
    index = ColumnIndex(Catalog("shop", "sqlite", (*others, table(name, id="", placed=""))))
    for question in (f"How many {name} does each customer have?", f"customers and their {name}"):
        assert index.tables(question, 4)[0] == f"main.{name}"
    assert index.search(f"Show all {name}, in total", 9) == index.search(name, 9)


def test_columns_and_tables_are_found_by_meaning() -> None:
    pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")
    index, letters = ColumnIndex(SHOP), Letters()
    wanted = "[Name]: pieces; [Type]: TEXT; [Desc]: "
    (hit,) = index.unnamed.search(wanted, 1, embedder=letters)
    assert (hit.column, round(hit.score, 3)) == ("pieces", 1.0)
    hits = index.search(f"[Table]: stock; {wanted}", 3, embedder=letters)
    assert (hits[0].table, hits[0].column) == ("main.stock", "pieces")
    assert hits[0].score >= hits[1].score >= hits[2].score
    assert index.tables("stock pieces", 1, embedder=letters) == ["main.stock"]
    (fused,) = index.search("where they live", 1, embedder=letters, hybrid=True)
    assert (fused.table, fused.column, fused.score) == ("main.customers", "city", pytest.approx(2 / 61))
    tables = index.tables("where they live", 9, embedder=letters, hybrid=True)
    assert (tables[0], len(tables)) == ("main.customers", 4)
    nothing = ColumnIndex(Catalog("none", "duckdb", (table("empty"),)))
    assert nothing.search("any", 3, embedder=letters) == nothing.tables("any", 3, embedder=letters) == []
