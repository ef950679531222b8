"""What is odd in a profile is said, and nothing else."""

from __future__ import annotations

import pytest

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.knowledge.oddities import MOST, oddities


def said(*tables: Table) -> list[str]:
    return oddities(Catalog("shop", "sqlite", tables))


def text(name: str, *samples: str, kind: str = "TEXT") -> Table:
    return Table("t", (Column(name, kind, samples=samples),))


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        (text("price", "$1,200.50", "7"), "t.price is text that holds numbers, such as '$1,200.50'."),
        (
            text("share", "12 %", "3%", kind="varchar(9)"),
            "t.share is text that holds numbers, such as '12 %'.",
        ),
        (text("day", "31/12/2020", "1/2/2021"), "t.day is text that holds dates, such as '31/12/2020'."),
        (text("day", "12-Jan-2020"), "t.day is text that holds dates, such as '12-Jan-2020'."),
        (text("day", "Sept. 3, 2020"), "t.day is text that holds dates, such as 'Sept. 3, 2020'."),
        (text("paid", "12.50"), "t.paid is text that holds numbers, such as '12.50'."),
        (text("city", "Lyon", "lyon "), "t.city spells one value in several ways: 'Lyon', 'lyon '."),
    ],
)
def test_text_that_is_something_else(table: Table, sentence: str) -> None:
    assert said(table) == [sentence]


@pytest.mark.parametrize(
    "table",
    [
        text("day", "2020-12-31", "2021-01-01 10:00:00"),
        text("zip_code", "12345", "00501"),
        text("address", "198.51.100.233"),
        text("favourites", "4040,5310"),
        text("share", "2.4/6"),
        text("active", "1", "0"),
        text("release", "1.2.3", "1.10.0"),
        text("street", "12 Main 99", "Section 12 1999"),
        text("city", "Lyon", "Ghent"),
        text("price", "free", "7"),
        text("price", "1", kind="INTEGER"),
        text("price"),
        Table("t", (), row_count=9),
    ],
)
def test_what_one_expects_is_not_said(table: Table) -> None:
    assert said(table) == []


def test_rows_that_occur_several_times_and_keys_of_another_type() -> None:
    customers = Table("customers", (Column("id", "INTEGER"),), row_count=1000, distinct_rows=998)
    key = ForeignKey(("customer",), "customers", ("id",))
    orders = Table("orders", (Column("customer", "TEXT"),), foreign_keys=(key,))
    assert said(customers, orders) == [
        "customers has 1,000 rows, of which 998 differ.",
        "orders.customer and customers.id, to which it refers, differ in type.",
    ]
    alike = Table("orders", (Column("customer", "BIGINT"),), foreign_keys=(key,))
    assert said(Table("customers", (Column("id", "INTEGER"),)), alike) == []


def test_of_shards_one_is_told() -> None:
    column = Column("price", "TEXT", samples=("7.50",))
    shards = [Table(f"sales_{month}", (column,)) for month in range(1, 40)]
    books = Table("books", (Column("fee", "TEXT", samples=("9.50",)),))
    assert [sentence.partition(" ")[0] for sentence in said(*shards, books)] == ["sales_1.price", "books.fee"]


def test_so_many_and_no_more() -> None:
    columns = tuple(Column(f"price{n}", "TEXT", samples=("7",)) for n in range(2 * MOST))
    assert len(said(Table("t", columns))) == MOST
