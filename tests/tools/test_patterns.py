"""Few texts are matched by Python, many by Arrow: the same text must mean the same in both."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from quorum.tools.results.canonical import FEW, ISO, NESTED, NO_DIGITS, NUMERIC, TRUTH, matches

PATTERNS = (NUMERIC, ISO, NESTED, TRUTH, NO_DIGITS)
BLANKS = "\t\n\x0b\x0c\r\x1c\x1f \x85\xa0\u2028"
NUMBERS = ["1", "007", "+", "-", ".", "e5", "E-12"]
MOMENTS = ["2024-01-31", "T12:30", "12:30:00.5", "Z", "UTC", "+01:00"]
WORDS = ["true", "FALSE", "nan", "NaN", "inf", "-Infinity", "+INF", "[", "{"]
STRANGE = ["\u0661", "\u00b2", "\u017f", "\u0130"]  # a digit, a power, and letters that fold to s and i
PIECES = [*NUMBERS, *MOMENTS, *WORDS, *STRANGE, *BLANKS]

texts = st.one_of(
    st.text(max_size=8),
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
)


@pytest.mark.parametrize("pattern", PATTERNS)
@given(given=st.lists(texts, min_size=1, max_size=8))
@example(given=["1\n"])
@example(given=["\x0b1", "\x1c1"])
@example(given=["true\n\n"])
def test_few_and_many_mean_the_same(pattern: str, given: list[str]) -> None:
    few = matches(pa.array(given, pa.string()), pattern)
    alone = [matches(pa.array([text], pa.string()), pattern)[0] for text in given]
    many = matches(pa.array(given + ["x"] * (FEW + 1), pa.string()), pattern)[: len(given)]
    assert few.dtype == many.dtype == np.bool_
    assert few.tolist() == many.tolist() == alone


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_text_at_all(pattern: str) -> None:
    assert matches(pa.array([], pa.string()), pattern).tolist() == []
