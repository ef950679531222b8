"""The tree of a search: which actions fit which states, what is covered, what is shown and told back."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.agents.explorers import SearchAction
from quorum.graph.tree_search import MAX_DEPTH, STATES, SearchTree
from quorum.knowledge.catalog import Catalog, Column, ForeignKey, Table
from quorum.knowledge.triplets import Expansion, Triplet


def table(name: str, *columns: str, **more: Any) -> Table:
    return Table(name, tuple(Column(column, "TEXT") for column in columns), **more)


CUSTOMERS = table("customers", "id", "name", "city")
ORDERS = table(
    "orders",
    *("id", "customer_id", "total"),
    foreign_keys=(ForeignKey(("customer_id",), "customers", ("id",)),),
)
CATALOG = Catalog("shop", "sqlite", (CUSTOMERS, ORDERS))
SHARDS = Catalog(
    "logs",
    "sqlite",
    (*(table(f"day_{n}", "at", "who", "what") for n in range(1, 51)), table("people", "id", "name")),
)


def step(id: int, parent: int, action: str, *columns: str, outcome: Any = "worked", **more: Any) -> Expansion:
    places = tuple((text.split(".")[0], text.split(".")[1]) for text in columns)
    return Expansion(
        id, parent, action, places, more.get("detail", ""), "SELECT 1", outcome, more.get("why", "")
    )


def act(state: int, action: Any, *columns: str, detail: str = "") -> SearchAction:
    return SearchAction(state=state, action=action, columns=list(columns), detail=detail)


TREE = (
    step(1, 0, "select_column", "orders.id", "orders.total"),
    step(2, 1, "join", "orders.customer_id", "customers.id"),
    step(3, 2, "aggregate", "orders.total", detail="SUM"),
    step(4, 1, "add_predicate", "orders.total", outcome="empty", why="The result is empty."),
)


def test_an_action_fits_its_state(subtests: pytest.Subtests) -> None:
    for action, problem in (
        (act(0, "select_column", "customers.name", "customers.city"), ""),
        (act(0, "select_column", "CUSTOMERS.Name"), ""),
        (act(0, "join", "orders.customer_id", "customers.id"), "begins with select_column"),
        (act(0, "select_column", "customers.name", "orders.total"), "on one table"),
        (act(0, "select_column", "customers.town"), "There is no column customers.town."),
        (act(9, "select_column", "orders.total"), "There is no state 9."),
        (act(4, "order_by", "orders.total"), "did not work"),
        (act(1, "select_column", "orders.customer_id"), ""),
        (act(1, "select_column", "orders.total"), "shows these columns already"),
        (act(1, "select_column", "customers.name"), "customers is not in state 1: join it first."),
        (act(2, "select_column", "customers.name"), ""),
        (act(1, "add_predicate", "orders.total", detail="above 10"), ""),
        (act(1, "add_predicate", "orders.total"), "tried already, as state 4"),
        (act(1, "join", "orders.customer_id", "customers.id"), "tried already, as state 2"),
        (act(1, "join", "customers.id", "orders.customer_id"), "then one of a new table"),
        (act(2, "join", "orders.customer_id", "customers.id"), "then one of a new table"),
        (act(1, "join", "orders.customer_id"), "then one of a new table"),
        (act(1, "aggregate", "orders.total", detail="AVG"), ""),
        (act(1, "group_by", "orders.customer_id"), ""),
        (act(1, "order_by", "orders.total", detail="descending"), ""),
        (act(1, "having", "orders.total", detail="sum above 10"), "Having needs groups"),
        (act(3, "having", "orders.total", detail="sum above 10"), ""),
    ):
        with subtests.test(action=action):
            found = SearchTree(CATALOG, TREE).check(action)
            assert isinstance(found, str) == bool(problem)
            assert problem in str(found)


def test_queries_and_states_are_bounded() -> None:
    deep = [step(1, 0, "select_column", "orders.id")]
    deep += [step(n, n - 1, "order_by", "orders.total", detail=str(n)) for n in range(2, MAX_DEPTH + 1)]
    tree = SearchTree(CATALOG, deep)
    assert "actions already" in str(tree.check(act(MAX_DEPTH, "order_by", "orders.id")))
    assert MAX_DEPTH not in tree.open_states()
    wide = [step(n, 0, "select_column", "orders.id", detail=str(n)) for n in range(1, 60)]
    assert len(SearchTree(CATALOG, wide).open_states()) == STATES


def test_names_are_read_as_sql_spells_them() -> None:
    """Those that differ in case alone are two."""
    for name, place in (
        ("T.ID", ("T", "ID")),
        ('T."id"', ("T", "id")),
        ("t.Id", ("T", "id")),
        ('"Order Details"."Unit Price"', ("Order Details", "Unit Price")),
    ):
        odd = Catalog("odd", "snowflake", (table("T", "ID", "id"), table("Order Details", "Unit Price")))
        found = SearchTree(odd).check(act(0, "select_column", name))
        assert found.places == (place,)
        assert place[0] == "T" or found.step == f"select_column {name}"


def test_tables_of_one_group_are_covered_as_one() -> None:
    """The shared field group is what keeps a search over shards from going round in them (Table 13)."""
    used = Triplet(1, "", "", "", {}, tuple(("day_7", column) for column in ("at", "who", "what")))
    grouped, single = SearchTree(SHARDS, (), [used]), SearchTree(SHARDS, (), [used], groups=False)
    assert (len(grouped.fields), len(single.fields)) == (5, 152)
    assert (grouped.coverage, single.coverage) == (3 / 5, 3 / 152)
    assert [each.name for each in grouped.reachable().tables] == ["day_1", "people"]


def test_what_is_shown_is_bounded_and_begins_with_what_is_documented_and_not_used() -> None:
    many = Catalog(
        "many",
        "sqlite",
        (
            *(table(f"t{n}", *(f"c{n}_{m}" for m in range(60))) for n in range(30)),
            Table("told", (Column("a", "TEXT", "What a is."), Column("b", "TEXT", "What b is."))),
        ),
    )
    tree = SearchTree(many)
    shown = tree.reachable()
    assert shown.tables[-1].name == "told", "in the catalog's order"
    assert len(shown.tables) == 8
    assert all(len(each.columns) <= 40 for each in shown.tables)
    tree.cover(Triplet(1, "", "", "", {}, (("told", "a"), ("told", "b"))))
    assert "told" not in [each.name for each in tree.reachable().tables]
    lines = tree.unused(shown)
    assert lines[0].startswith("t0: c0_0, c0_1, ")
    assert lines[0].endswith(" and 40 more")


JOIN = Triplet(3, "", "", "", {}, (("orders", "total"), ("orders", "customer_id"), ("customers", "id")))


def test_outcomes_are_told_of_each_table_and_column_shown() -> None:
    tree = SearchTree(CATALOG, TREE, [JOIN])
    assert tree.feedback(CATALOG) == [
        "customers: 1 worked; id 1 worked",
        "orders: 1 worked, 1 in vain; id 1 in vain; customer_id 1 worked; total 1 worked, 1 in vain",
        "select_column orders.id, orders.total; add_predicate orders.total: The result is empty.",
    ]
    assert tree.feedback(Catalog("shop", "sqlite", (CUSTOMERS,))) == ["customers: 1 worked; id 1 worked"]
    assert SearchTree(CATALOG).feedback(CATALOG) == []


def test_an_outcome_reaches_every_state_above_it() -> None:
    assert SearchTree(CATALOG, TREE).open_states() == [3, 2, 1]
    deep = [step(5, 3, "order_by", "orders.total", outcome="failed"), step(6, 3, "having", "orders.total")]
    states = {state.number: state.note for state in SearchTree(CATALOG, (*TREE, *deep)).state_texts()}
    assert states == {1: "3 worked, 2 in vain", 2: "2 worked, 1 in vain", 3: "1 worked, 1 in vain", 6: ""}


def test_what_fails_is_chosen_later() -> None:
    """A failure lowers the priority of its whole path, and of its table and columns."""
    below = [step(n, 2, "order_by", "customers.name", detail=str(n), outcome="failed") for n in range(10, 13)]
    notes = table("notes", "id")
    catalog = Catalog("shop", "sqlite", (CUSTOMERS, ORDERS, notes))
    tree = SearchTree(catalog, (*TREE[:2], step(7, 0, "select_column", "notes.id"), *below))
    assert tree.open_states() == [7, 1, 2]
    assert tree.unused(catalog)[0] == "customers: city, id, name"
    assert sorted(tree.tables.values(), key=tree._promise)[0] is notes


def test_all_fields_are_to_be_covered_and_those_without_a_row_come_last() -> None:
    never = table("never", *(f"n{m}" for m in range(9)), row_count=0)
    empty = Table("orders", (Column("id", "INTEGER", samples=("1",)), Column("note", "TEXT", complete=True)))
    tree = SearchTree(Catalog("shop", "sqlite", (never, empty)))
    assert len(tree.fields) == 9 + 2
    assert sorted(tree.tables.values(), key=tree._promise)[-1] is never


def test_the_fragment_of_a_state_has_its_tables_and_no_others() -> None:
    wide = Catalog("shop", "sqlite", (CUSTOMERS, ORDERS, table("notes", *(f"n{i}" for i in range(60)))))
    tree = SearchTree(wide, TREE)
    checked = tree.check(act(2, "select_column", "customers.name"))
    assert [each.name for each in tree.fragment(checked).tables] == ["customers", "orders"]
    last = tree.check(act(0, "select_column", "notes.n59"))
    names = [column.name for _, column in tree.fragment(last).columns()]
    assert "n59" in names
    assert len(names) == 41
