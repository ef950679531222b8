"""Lexical search: terms of a text and BM25 over them. Numbers and identifiers count as words."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

_STOPWORDS = """
a an and are as at be been but by can could did do does for from had has have how i if in into is it
its me my no not of on or our out please shall should so such than that the their them then there
these they this those to up us was we were what when where which who whom whose why will with would
you your
"""

_COMMON = """
all any average between calculate compute count different display each every find first get give
greater high highest last least less list low lowest many max maximum mean min minimum month more
most much name number only order out over per percentage return report show sort sum table tell time
top total under use value year day date data column row query result answer question
"""

STOPWORDS = frozenset(_STOPWORDS.split())

WORD = re.compile(r"\w+")
PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_A-Za-z]+")
UNSPACED = re.compile(r"[぀-ヿ㐀-䶿一-鿿가-힯]")  # kana, Han, Hangul


def terms(text: str) -> list[str]:
    """Terms of a text in order: lower case, stemmed, no stop words.

    ``order_total2`` and ``OrderTotal2`` give the identifier in lower case and each of its parts;
    scripts that set no blanks give their characters two by two.
    """
    found: list[str] = []
    for word in WORD.findall(text):
        if UNSPACED.search(word):
            found += [word[i : i + 2] for i in range(max(1, len(word) - 1))]
            continue
        parts = PART.findall(word)
        if len(parts) > 1:
            found.append(word.lower())
        found += [stem(part.lower()) for part in parts if part.lower() not in STOPWORDS]
    return found


def distinctive(words: Iterable[str]) -> set[str]:
    """The terms that mean something when shared: no numbers, no words of almost every question."""
    return {word for word in words if not word.isdigit()} - COMMON


def stem(word: str) -> str:
    """An English word without its commonest endings; short and other words stay as they are."""
    if len(word) < 4 or not word.isascii() or not word.isalpha():
        return word
    if word.endswith("ies"):
        return word[:-3] + "y"
    if word.endswith("s") and not word.endswith(("ss", "us", "is")):
        word = word[:-1]
    for ending in ("ing", "ed"):
        if word.endswith(ending) and len(word) - len(ending) >= 4:
            word = word[: -len(ending)]
            break
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "sl":
        word = word[:-1]
    return word[:-1] if word.endswith("e") and len(word) > 3 else word


COMMON = frozenset(stem(word) for word in _COMMON.split())


class Bm25:
    """BM25 (Lucene's variant, k1 1.5, b 0.75) over texts given as terms."""

    def __init__(self, texts: Sequence[Sequence[str]]) -> None:
        import bm25s

        # It sets its own logger to DEBUG, which any plain logging set-up would then print.
        logging.getLogger("bm25s").setLevel(logging.WARNING)
        self.texts = [frozenset(text) for text in texts]
        self._index = bm25s.BM25() if any(self.texts) else None  # it cannot index a corpus without words
        if self._index:
            self._index.index([list(text) for text in texts], show_progress=False)

    def scores(self, query: Sequence[str]) -> npt.NDArray[np.float32]:
        """A score per text, 0 where it has none of the query's terms."""
        import numpy as np

        wanted = sorted(set(query) - {""})
        if not wanted or not self._index:
            return np.zeros(len(self.texts), dtype=np.float32)
        return np.asarray(self._index.get_scores(wanted), dtype=np.float32)
