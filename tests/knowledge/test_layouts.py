"""Signatures, groups, layouts and member ranges."""

from __future__ import annotations

import hashlib

from hypothesis import example, given
from hypothesis import strategies as st

from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.knowledge.schema.layouts import Layout, find_layouts, select_groups, signature
from quorum.knowledge.schema.name_ranges import fold_names
from tests.schema_reader import Scanner


def table(name: str, *columns: str, **more: object) -> Table:
    made = tuple(Column(*column.split(":")) for column in columns)
    return Table(name, made, **more)  # type: ignore[arg-type]


def layouts(*tables: Table) -> tuple[Layout, ...]:
    return find_layouts(Catalog("c", "sqlite", tables))


def test_the_signature_is_the_md5_of_the_sorted_list_and_ignores_order() -> None:
    wanted = hashlib.md5(b"a:INT|b:TEXT").hexdigest()
    assert signature(table("t", "b:TEXT", "a:INT")) == signature(table("t", "a:INT", "b:TEXT")) == wanted
    assert signature(table("t", "a:INT", "b:INT")) != wanted


def test_groups_come_by_tables_then_fields_and_never_overlap() -> None:
    pairs = [table(f"p{i}", "a:INT", "b:INT") for i in range(2)]
    wide = [table(f"w{i}", "a:INT", "b:INT", "c:INT") for i in range(2)]
    many = [table(f"m{i}", "z:INT") for i in range(3)]
    others = table("alone", "q:INT"), Table("x", ()), Table("y", ())
    groups = select_groups(Catalog("c", "sqlite", (*pairs, *wide, *many, *others)))
    assert [[t.name for t in tables] for tables in groups] == [["m0", "m1", "m2"], ["w0", "w1"], ["p0", "p1"]]


def test_a_near_relative_is_a_difference_from_its_base() -> None:
    shared = [f"c{i}:INT" for i in range(20)]
    base, near = table("t1", *shared, "x:INT"), table("t2", *shared, "x:TEXT", "y:INT")
    one, two, three = layouts(base, table("far", *[f"d{i}:INT" for i in range(8)]), near)
    assert [layout.tables[0].name for layout in (one, two, three)] == ["far", "t2", "t1"]
    assert (one.base, three.base) == (None, two)  # the wider one is the base
    assert ([c.name for c in three.added], three.removed) == (["x"], ("y",))


def test_ranges_over_numbers_days_and_gaps() -> None:
    names = ["E_20201130", "E_20201201", "E_20201202", "Q9", "Q10", "Q11", "Q12", "Q08", "Q20", 'o "x"']
    items = [item for item, _ in fold_names(names)]
    assert items == ["E_{20201130..20201202}", "Q{9, 08, 10..12, 20}", '"o ""x"""']
    (item, _), *_ = fold_names(["e20240228", "e20240229", "e20240302", "e20240303"])
    assert item == "e{20240228, 20240229, 20240302, 20240303}", "none runs over a missing day"


@given(
    st.lists(
        st.one_of(st.from_regex(r"[ab]_?[0-9]{1,8}(_[0-9]{1,2})?", fullmatch=True), st.text()), unique=True
    )
)
@example(["orders", "2orders", "", "7"])
def test_items_expand_to_exactly_the_names(names: list[str]) -> None:
    items = fold_names(names)
    assert sorted(name for _, stands_for in items for name in stands_for) == sorted(names)
    for item, stands_for in items:
        scanner = Scanner(item)
        assert (scanner.item(), scanner.rest) == (stands_for, "")


def test_in_a_small_catalog_only_shards_are_written_as_one_and_narrow_relatives_in_full() -> None:
    shards = [table(f"log_{year}", "id:INT", "name:TEXT") for year in range(2019, 2025)]
    assert len(layouts(*shards)) == 1
    assert len(layouts(table("cities", "id:INT", "name:TEXT"), table("people", "id:INT", "name:TEXT"))) == 2
    key = ForeignKey(("a",), "u", ("id",))
    filled = Table("s_2", (Column("a", "INT", nullable=False),))
    for other in (table("s_2", "a:INT", foreign_keys=(key,)), table("s_2", "a:INT", kind="view"), filled):
        assert len(layouts(table("s_1", "a:INT"), other)) == 2, "what a header or a column says must be alike"
    shared = [f"c{i}:INT" for i in range(8)]
    narrow = layouts(table("t1", *shared, "x:INT"), table("t2", *shared, "x:TEXT"))
    assert [layout.base for layout in narrow] == [None, None]
    (one,) = layouts(*(Table(f"t{n}", (Column("id", "INT", d),)) for n, d in enumerate(("buyer", "seller"))))
    assert (one.columns[0].description, one.disputed) == ("", 2), "what they disagree on is not given"
