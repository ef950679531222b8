"""Tokens, stems, likeness, and periods."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tools.offline.dates import find_period, following
from tools.offline.lexicon import fit, likeness, name_stems, stem, tokenize


@pytest.mark.parametrize(
    ("one", "other"),
    [("orders", "order"), ("countries", "country"), ("hired", "hiring"), ("boxes", "box"), ("ids", "id"),
     ("people", "person"), ("names", "name"), ("statuses", "status")],
)  # fmt: skip
def test_forms_of_a_word_meet_in_their_stem(one: str, other: str) -> None:
    assert stem(one) == stem(other)


@pytest.mark.parametrize(
    "name", ["customer_full_name", "CustomerFullName", "customerFullName", "CUSTOMER_FULL_NAME"]
)
def test_identifiers_come_apart(name: str) -> None:
    assert name_stems(name) == (stem("customer"), stem("full"), stem("name"))


@pytest.mark.parametrize(
    ("question", "kinds"),
    [
        ("Show 'Tom Jones' at 12", ["word", "quoted", "word", "number"]),
        ("the singer's total_amt", ["word", "word", "identifier"]),
        ("since 2024-02-03, 1,000 km", ["word", "date", "mark", "number", "word"]),
        ("three people don't", ["number", "word", "word", "word"]),
    ],
)
def test_tokens_have_their_kind(question: str, kinds: list[str]) -> None:
    assert [token.kind for token in tokenize(question)] == kinds


def test_a_possessive_and_a_quote_are_told_apart() -> None:
    assert [token.text for token in tokenize("the owner's dog 'Rex'")] == ["the", "owner", "dog", "Rex"]


def test_likeness_goes_from_same_over_synonym_to_prefix() -> None:
    same, synonym = likeness("pric", "pric"), likeness(stem("cost"), stem("price"))
    prefix, stranger = likeness(stem("desc"), stem("described")), likeness("order", "color")
    assert same > synonym > prefix > stranger == 0


def test_fit_is_the_share_of_the_name_that_was_said() -> None:
    assert fit(("full", "nam"), ("full", "nam")) == 1
    assert fit(("nam",), ("full", "nam")) == 0.5
    assert fit(("nam", "color"), ("full", "nam")) == 0


@given(word=st.text(st.characters(categories=["L"]), min_size=1, max_size=30))
def test_any_word_has_a_stem_no_longer_than_itself(word: str) -> None:
    assert 0 < len(stem(word)) <= len(word.lower()) + 1  # people: person


@given(text=st.text(max_size=80))
def test_any_text_has_tokens_and_each_holds_something(text: str) -> None:
    assert all(token.text for token in tokenize(text))


@pytest.mark.parametrize(
    ("question", "low", "high"),
    [
        ("in 2014", "2014", "2015"),
        ("after 2014", "2015", ""),
        ("before 2014", "", "2014"),
        ("since 2014", "2014", ""),
        ("in 2014 or after", "2014", ""),
        ("in 2014 or 2015", "2014", "2016"),
        ("between 2014 and 2016", "2014", "2017"),
        ("in March 2024", "2024-03", "2024-04"),
        ("in December of 2023", "2023-12", "2024-01"),
        ("from February to May 2024", "2024-02", "2024-06"),
        ("in Q4 2023", "2023-10", "2024-01"),
        ("on 2024-02-03", "2024-02-03", "2024-02-04"),
        ("after 2024-12-31", "2025-01-01", ""),
    ],
)
def test_periods_are_half_open(question: str, low: str, high: str) -> None:
    period = find_period([token.text.lower() for token in tokenize(question)])
    assert period is not None
    assert (period.low, period.high) == (low, high)


@pytest.mark.parametrize("question", ["", "room 2014", "how many may come", "1234 orders", "id 2000"])
def test_a_lone_number_or_a_modal_is_no_period(question: str) -> None:
    assert find_period([token.text.lower() for token in tokenize(question)]) is None


@pytest.mark.parametrize(
    ("shard", "covered"),
    [("events_2024_01", False), ("events_2024_02", True), ("events_202405", True), ("events_20240601", False),
     ("events_20240531", True), ("events_2024", True), ("events_2023", False), ("events_old", False)],
)  # fmt: skip
def test_a_period_covers_the_shards_that_hold_part_of_it(shard: str, covered: bool) -> None:
    period = find_period(["from", "february", "to", "may", "2024"])
    assert period is not None
    assert period.covers(shard) is covered


@given(st.dates())
def test_what_follows_a_month_comes_later(day: object) -> None:
    month = str(day)[:7]
    assert following(month) > month
