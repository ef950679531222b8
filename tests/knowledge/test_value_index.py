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


def texts(question: str) -> list[str]:
    return [match.text for match in SHOP.match(question)]


@pytest.mark.parametrize(
    ("question", "text"),
    [
        ("Which customers live in sao paulo?", "São Paulo"),
        ("Which customers live in ZURICH?", "Zürich"),
        ("Which customers live in New Mexico?", "NewMexico"),
        ("How many orders were delivred?", "delivered"),
        ("How many German customers are there?", "Germany"),
        ("How many European customers are there?", "Europe"),
        ("How many customers from the United States?", "US"),
        ("How many customers from the US?", "US"),
        ("Which codes contain 'M5'?", "VM5X"),
        ('Which codes contain "vm"?', "VM5X"),
        ("How many orders are in transit?", "in transit"),
    ],
)
def test_a_value_is_found_as_people_write_it(question: str, text: str) -> None:
    assert text in texts(question)


@pytest.mark.parametrize("question", ["How many of us bought it?", "What is the total?", "", "?!", "'x'"])
def test_words_of_every_question_are_no_values(question: str) -> None:
    assert texts(question) == []


def test_what_names_a_table_or_a_column_names_no_part_of_a_value() -> None:
    shop = ValueIndex(
        {
            ("products", "productName"): ["Name tag", "Red wine"],
            ("staff", "title"): ["Product Director", "Product"],
        }
    )
    assert [match.text for match in shop.match("Which product has the longest name?")] == ["Product"]
    assert [match.text for match in shop.match("Which wine is red?")] == ["Red wine"]
    card = ValueIndex(
        {("credit_cards", "kind"): ["Credit Card"], ("sales_manager", "title"): ["Sales Manager"]}
    )
    assert [match.text for match in card.match("Orders paid by card on credit")] == ["Credit Card"]
    assert [match.text for match in card.match("Who is the manager of sales?")] == ["Sales Manager"]


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


@pytest.mark.parametrize(
    ("question", "shown"),
    [
        ("What is the content of Sky Radio?", ["Sky Radio"]),
        ("How many countries are in Asia?", ["Asia"]),
        ("Which Asian countries are large?", ["Asia"]),
        ("Which African countries are large?", ["Africa"]),
        ("What are the names and codes?", []),
        ("What is the code COD?", ["COD"]),
        ("How many zero plays did the album have?", []),
        ("How many plays did warm tracks have?", ["Warm Jazz"]),
        ("How many plays did 'Warm' have?", ["Warm Jazz", "Warm Water"]),
    ],
)
def test_what_is_hardly_meant_is_left_out(question: str, shown: list[str]) -> None:
    assert sorted(match.text for match in WORLD.match(question)) == shown


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
