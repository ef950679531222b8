"""How questions and names come apart into words, and which words are the same."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.tools.offline.lexicon import split_words, stems


@pytest.mark.parametrize(
    ("one", "other"),
    [("orders", "order"), ("countries", "country"), ("hired", "hiring"), ("boxes", "box"), ("ids", "id"),
     ("people", "person"), ("names", "name"), ("statuses", "status"), ("nationality", "country")],
)  # fmt: skip
def test_forms_of_a_word_and_its_synonyms_have_one_stem(one: str, other: str) -> None:
    assert stems(one) == stems(other)


def test_different_words_keep_different_stems() -> None:
    assert len({stems(word) for word in ("order", "color", "price", "person", "process", "city")}) == 6


@pytest.mark.parametrize("name", ["customer_full_name", "CustomerFullName", "customerFullName"])
def test_identifiers_come_apart(name: str) -> None:
    assert stems(name) == stems("customer") + stems("full") + stems("name")


@pytest.mark.parametrize(
    ("question", "words"),
    [
        ("Show 'Tom Jones' at 12.", ["Show", "'Tom Jones", "at", "12"]),
        ("the singer's total_amt", ["the", "singer", "total_amt"]),
        ("1,000 km, or 2.5?", ["1000", "km", ",", "or", "2.5", "?"]),
        ("they don't", ["they", "do", "not"]),
        ("the owner's dog 'Rex'", ["the", "owner", "dog", "'Rex"]),
        ("the total number of orders", ["how many", "orders"]),
        ("in March 2024", ["in", "2024-03"]),
        ("on March 5th, 2024", ["on", "2024-03-05"]),
        ("Top five books, 'Ten Little Ships'", ["Top", "5", "books", ",", "'Ten Little Ships"]),
        ("from February to May of 2024", ["from", "2024-02", "to", "2024-05"]),
        ("how many may come", ["how", "many", "may", "come"]),
    ],
)
def test_a_question_becomes_words(question: str, words: list[str]) -> None:
    assert " ".join(split_words(question)) == " ".join(words)


@given(text=st.text(max_size=80))
def test_any_text_becomes_words_of_which_none_is_empty(text: str) -> None:
    assert all(split_words(text))
