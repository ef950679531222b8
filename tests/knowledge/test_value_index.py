"""Values that a question names, however it spells them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.search.lexical import STOPWORDS
from quorum.knowledge.search.values import FEW, OF_COLUMN, ValueIndex, words

SHOP = ValueIndex(
    {
        ("customers", "city"): ["São Paulo", "New York", "NewMexico", "Zürich", "Lyon"],
        ("customers", "country"): ["Germany", "United States", "US", "Europe"],
        ("orders", "status"): ["delivered", "returned", "in transit"],
        ("orders", "code"): ["A-1", "A-2", "VM5X", "M5"],
        ("products", "name"): [f"Garden chair {number}" for number in range(40)],
    }
)


def test_one_column_does_not_crowd_out_the_others() -> None:
    found = SHOP.match("Garden chairs sold in Lyon and New York")
    assert sum(match.column == "name" for match in found) == OF_COLUMN
    assert {"Lyon", "New York"} <= {match.text for match in found if match.whole}
    assert len(SHOP.match("Garden chairs sold in Lyon and New York", k=3)) == 3
    cities = SHOP.match("Garden chairs sold in Lyon", 9, {("customers", "city")})
    assert [match.column for match in cities] == ["city"]


def test_whole_names_come_first_and_parts_of_long_names_not_at_all() -> None:
    index = ValueIndex({("a", "b"): ["Florence", "Lyon 2", "Lyon", "The Great Lyon Water Works Company"]})
    assert [match.text for match in index.match("Orders from Florense and Lyon")] == ["Lyon", "Florence"]
    short = ValueIndex({("a", "b"): ["Bone", "Cost"]})
    assert short.match("Is one lost?") == [], "short words are not guessed"


MANY = [f"Absolute zero {number}" for number in range(FEW)]
WORLD = ValueIndex(
    {
        ("tv", "series"): ["Sky Radio", "Sky Music", "Sky", "Sky1"],
        ("country", "region"): ["Asia", "Eastern Asia", "Africa", "Central African Republic"],
        ("country", "code"): ["NAM", "COD", "ASI"],
        ("tracks", "title"): ["Absolute Zero", *MANY, "Warm Water", "Cold Water"],
        ("tracks", "genre"): ["Warm Jazz", "Cold Jazz"],
    }
)
STAFF = ValueIndex(
    {
        ("products", "productName"): ["Name tag", "Red wine"],
        ("staff", "title"): ["Product Director", "Product"],
        ("credit_cards", "kind"): ["Credit Card"],
        ("sales_manager", "title"): ["Sales Manager"],
    }
)


@pytest.mark.parametrize(
    ("index", "question", "found"),
    [
        (SHOP, "Which customers live in sao paulo?", ["São Paulo"]),
        (SHOP, "Which customers live in ZURICH?", ["Zürich"]),
        (SHOP, "Which customers live in New Mexico?", ["NewMexico", "New York"]),
        (SHOP, "How many orders were delivred?", ["delivered"]),
        (SHOP, "How many German customers are there?", ["Germany"]),
        (SHOP, "How many European customers are there?", ["Europe"]),
        (SHOP, "How many customers from the United States?", ["United States", "US"]),
        (SHOP, "How many customers from the US?", ["US"]),
        (SHOP, "How many of us bought it? What is the total? '?! 'x'", []),
        (SHOP, "Which codes contain 'M5'?", ["M5", "VM5X"]),
        (SHOP, "How many orders are in transit?", ["in transit"]),
        (WORLD, "What is the content of Sky Radio?", ["Sky Radio"]),
        (WORLD, "How many countries are in Asia?", ["Asia"]),
        (WORLD, "Which Asian countries are large?", ["Asia"]),
        (WORLD, "Which African countries are large?", ["Africa"]),
        (WORLD, "What are the names and codes?", []),
        (WORLD, "What is the code COD?", ["COD"]),
        (WORLD, "How many zero plays did the album have?", []),
        (WORLD, "How many plays did warm tracks have?", ["Warm Jazz"]),
        (WORLD, 'How many plays did "Warm" have?', ["Warm Jazz", "Warm Water"]),
        (STAFF, "Which product has the longest name?", ["Product"]),
        (STAFF, "Which wine is red?", ["Red wine"]),
        (STAFF, "Orders paid by card on credit", ["Credit Card"]),
        (STAFF, "Who is the manager of sales?", ["Sales Manager"]),
    ],
)
def test_a_value_is_found_as_people_write_it_and_what_is_hardly_meant_left_out(
    index: ValueIndex, question: str, found: list[str]
) -> None:
    assert [match.text for match in index.match(question)] == found


VALUES = st.dictionaries(
    st.tuples(st.sampled_from("ab"), st.sampled_from("cd")), st.lists(st.text(max_size=12), max_size=12)
)


@given(VALUES, st.data())
def test_who_asks_for_a_value_finds_it(values: dict[tuple[str, str], list[str]], data: st.DataObject) -> None:
    every = [
        (*place, text) for place, kept in values.items() for text in kept if set(words(text)) - STOPWORDS
    ]
    if not every:
        return
    table, column, text = data.draw(st.sampled_from(every))
    same = {(table, column, other) for other in values[table, column] if words(other) == words(text)}
    found = {(match.table, match.column, match.text) for match in ValueIndex(values).match(text, 1000)}
    assert found & same
