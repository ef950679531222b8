"""Values of a database that words of a question resemble: how they are spelt, and in which columns.

A value is found by its words, whatever their case, accents, plural and typing errors (rapidfuzz); by words
that one is made of (``European``, ``Europe``); two words of a question may be one of a value (``New Mexico``,
``NewMexico``), and capitals those of a name (``United States``, ``US``). What a question has in quotes is
looked for within values. A value of which the question has a part is none if all of that names a table or a
column: who asks for products means no "Product Director".
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import defaultdict
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

from quorum.knowledge.search.lexical import COMMON, STOPWORDS, WORD, stem, terms

SHOWN = 20
"""Values shown for one question; ``OF_COLUMN`` of one column."""
OF_COLUMN = 5
LEAST_COVERAGE = 0.5
"""Part of a value's words, weighed by their rarity, that a question must have."""
LEAST_LIKENESS = 84.0
"""Of two words, 0 to 100, to be one word with a typing error; short words must be equal."""
SHORT = 5
ALIKE = 0.6
"""How much a word counts that is only alike."""

_QUOTED = re.compile(r"'([^']{2,40})'|\"([^\"]{2,40})\"")
_NAME = re.compile(r"\b[A-Z]\w+(?:[ -][A-Z]\w+)+|\b[A-Z]{2,4}\b")


Place: TypeAlias = tuple[str, str]
"""A table's full name, and a column's."""


@dataclass(frozen=True)
class Match:
    """A value that a question seems to name.

    Attributes:
        score: The rarity of the words that it shares with the question, times the part of it that they are.
        whole: The question has all of its words, in its order.
    """

    table: str
    column: str
    text: str
    score: float
    whole: bool


class ValueIndex:
    """Distinct values of text columns, by their words.

    Attributes:
        unread, cut: Columns of which no value was read, or only some.
    """

    def __init__(
        self,
        values: Mapping[Place, Sequence[str]],
        unread: Iterable[Place] = (),
        cut: Iterable[Place] = (),
    ) -> None:
        self.values = values
        self.unread, self.cut = frozenset(unread), frozenset(cut)

    @cached_property
    def _forms(self) -> dict[tuple[str, ...], list[tuple[str, str, str]]]:
        """The places of values whose words are the same."""
        forms: dict[tuple[str, ...], list[tuple[str, str, str]]] = defaultdict(list)
        for (table, column), texts in self.values.items():
            for text in texts:
                if form := words(text):
                    forms[form].append((table, column, text))
        return forms

    @cached_property
    def _postings(self) -> dict[str, list[tuple[str, ...]]]:
        """The forms that have a word."""
        postings: dict[str, list[tuple[str, ...]]] = defaultdict(list)
        for form in self._forms:
            for word in set(form):
                postings[word].append(form)
        return postings

    @cached_property
    def _naming(self) -> frozenset[str]:
        """Words of almost every question, and of names: a question that has one may mean what they name."""
        return COMMON.union(*(terms(name) for place in self.values for name in place))

    @cached_property
    def _vocabulary(self) -> dict[str, list[str]]:
        """Longer words by their first letter, which people seldom miss: one in fifteen is then compared."""
        vocabulary: dict[str, list[str]] = defaultdict(list)
        for word in self._postings:
            if len(word) >= SHORT:
                vocabulary[word[0]].append(word)
        return vocabulary

    def match(self, question: str, k: int = SHOWN, within: Container[Place] | None = None) -> list[Match]:
        """The values that the question seems to name, the likeliest first; of the columns ``within`` only."""
        asked = words(question)
        joined = {a + b for a, b in pairwise(asked)} | set(_capitals(question))
        sought = ({*asked} - STOPWORDS) | joined
        found = dict.fromkeys(sought & self._postings.keys(), 1.0)
        for word in sought - found.keys():
            for near in self._alike(word):
                found[near] = max(found.get(near, 0.0), ALIKE)
        matches = [*self._quoted(question), *self._sharing(asked, found)]
        matches.sort(key=lambda match: (-match.whole, -match.score, match.table, match.column, match.text))
        kept: dict[tuple[str, str, str], Match] = {}
        of_column = defaultdict[tuple[str, str], int](int)
        for match in matches:
            place = (match.table, match.column)
            if (
                (within is None or place in within)
                and of_column[place] < OF_COLUMN
                and (*place, match.text) not in kept
            ):
                of_column[place] += 1
                kept[*place, match.text] = match
        return list(kept.values())[:k]

    def _alike(self, word: str) -> list[str]:
        """Words of values that this one may be: misspelt, or the same with another ending."""
        if len(word) < SHORT:
            return []
        from rapidfuzz import fuzz, process

        known = self._vocabulary.get(word[0], [])
        near = process.extract(word, known, scorer=fuzz.ratio, score_cutoff=LEAST_LIKENESS, limit=3)
        stems = {word[:length] for length in range(max(SHORT, math.ceil(len(word) * 0.6)), len(word))}
        return [alike for alike, _, _ in near] + [stem for stem in stems if stem in self._postings]

    def _quoted(self, question: str) -> Iterator[Match]:
        for phrase in {(found[1] or found[2]).casefold() for found in _QUOTED.finditer(question)}:
            for (table, column), texts in self.values.items():
                for text in texts:
                    if phrase in text.casefold():
                        yield Match(
                            table, column, text, len(phrase) / len(text), whole=phrase == text.casefold()
                        )

    def _sharing(self, asked: tuple[str, ...], found: Mapping[str, float]) -> Iterator[Match]:
        text = f" {' '.join(asked)} "
        rarity = {word: self._rarity(word) for word in found}
        for form in {form for word in found for form in self._postings[word]}:
            own = set(form)
            shared = sum(rarity[word] * found[word] for word in own if word in found)
            coverage = shared / sum(map(self._rarity, own))
            if coverage >= LEAST_COVERAGE:
                whole = f" {' '.join(form)} " in text
                part = not whole and not own <= found.keys()
                if part and all(word in self._naming for word in own if word in found):
                    continue
                yield from (Match(*place, shared * coverage, whole) for place in self._forms[form])

    def _rarity(self, word: str) -> float:
        """Return a word's rarity in nats. Numbers and stop words count little: people leave them out."""
        weight = math.log(1 + len(self._forms) / len(self._postings[word]))
        return weight / 4 if word in STOPWORDS or word.isdigit() else weight


def _capitals(question: str) -> Iterator[str]:
    """Short names in capitals, and the capitals of longer names."""
    for found in _NAME.findall(question):
        yield (found if found.isupper() else "".join(part[0] for part in re.split("[ -]", found))).casefold()


def words(text: str) -> tuple[str, ...]:
    """A text's words without case, accents and commonest endings."""
    plain = text.casefold()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
        plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return tuple(map(stem, WORD.findall(plain.replace("_", " "))))
