"""Values of a database that words of a question resemble: how they are spelt, and in which columns.

A value is found by its words, whatever their case, accents, plural and typing errors (rapidfuzz); by words
that one is made of (``European``, ``Europe``); two words of a question may be one of a value (``New Mexico``,
``NewMexico``), and capitals those of a name (``United States``, ``US``). What a question has in quotes is
looked for within values. Left out is a value that is hardly meant: one of which the question has a part, if
all of that names a table or a column (who asks for products means no "Product Director"), belongs to another
value (who asks for Sky Radio means no "Sky Music"), or is a plain word, and the column has many values.
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

from quorum.knowledge.catalog import ColumnRef
from quorum.knowledge.search.lexical import COMMON, STOPWORDS, WORD, stem, terms

SHOWN = 20
"""Values shown for one question; ``OF_COLUMN`` of one column."""
OF_COLUMN = 5
LEAST_COVERAGE = 0.5
"""Part of a value's words, weighed by their rarity, that a question must have."""
LEAST_LIKENESS = 84.0
"""Of two words, 0 to 100, to be one word with a typing error; short words must be equal."""
SHORT = 5
FEW = 30
"""Values of a column of which one may be meant by a part that is written as a plain word."""
ALIKE = 0.6
"""How much a word counts that is only alike."""

_QUOTED = re.compile(r"'([^']{2,40})'|\"([^\"]{2,40})\"")
_NAME = re.compile(r"\b[A-Z]\w+(?:[ -][A-Z]\w+)+|\b[A-Z]{2,4}\b")


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
        values: Mapping[ColumnRef, Sequence[str]],
        unread: Iterable[ColumnRef] = (),
        cut: Iterable[ColumnRef] = (),
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

    def match(self, question: str, k: int = SHOWN, within: Container[ColumnRef] | None = None) -> list[Match]:
        """The values that the question seems to name, the likeliest first; of the columns ``within`` only."""
        asked = words(question)
        joined = {a + b for a, b in pairwise(asked)} | set(_capitals(question))
        sought = ({*asked} - STOPWORDS) | joined
        exact = sought & self._postings.keys()
        found = {word: (1.0, word) for word in exact}
        for word in sorted(sought):
            for near in self._alike(word, exact=word in exact):
                found.setdefault(near, (ALIKE, word))
        matches = [*self._quoted(question), *self._sharing(question, asked, found)]
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

    def _alike(self, word: str, *, exact: bool) -> list[str]:
        """Return words of values that this one may be: the same with another ending, or misspelt unless
        ``exact``."""
        if len(word) < SHORT:
            return []
        stems = {word[:length] for length in range(max(SHORT - 1, math.ceil(len(word) * 0.6)), len(word))}
        found = [stem for stem in stems if stem in self._postings]
        if exact:
            return found
        from rapidfuzz import fuzz, process

        words = self._vocabulary.get(word[0], [])
        near = process.extract(word, words, scorer=fuzz.ratio, score_cutoff=LEAST_LIKENESS, limit=3)
        return found + [alike for alike, _, _ in near]

    def _quoted(self, question: str) -> Iterator[Match]:
        for phrase in {(found[1] or found[2]).casefold() for found in _QUOTED.finditer(question)}:
            for (table, column), texts in self.values.items():
                for text in texts:
                    if phrase in text.casefold():
                        yield Match(
                            table, column, text, len(phrase) / len(text), whole=phrase == text.casefold()
                        )

    def _sharing(
        self, question: str, asked: tuple[str, ...], found: Mapping[str, tuple[float, str]]
    ) -> Iterator[Match]:
        """Yield the values that share words with the question, of which ``found`` has the weight and the
        question's own."""
        text = rest = f" {' '.join(asked)} "
        plain, names = _plain(question), _names(question)
        forms = {f" {' '.join(form)} ": form for word in found for form in self._postings[word]}
        for phrase in sorted(forms, key=lambda phrase: (phrase not in text, -len(phrase), phrase)):
            own, whole = {*forms[phrase]}, phrase in text
            shared = own & found.keys()
            score = sum(self._rarity(word) * found[word][0] for word in shared)
            coverage = score / sum(map(self._rarity, own))
            if coverage < LEAST_COVERAGE or (whole and phrase not in rest):
                continue
            rest = rest.replace(phrase, " | ")
            meant = {found[word][1] for word in shared}
            part = not whole and bool(own - found.keys() - STOPWORDS)
            if part and (shared <= self._naming or meant <= {*asked} - {*rest.split()}):
                continue
            few = FEW if part and meant.isdisjoint(names) else math.inf
            for table, column, value in self._forms[forms[phrase]]:
                spelt = not own <= self._naming or _plain(value) <= plain
                if spelt and len(self.values[table, column]) <= few:
                    yield Match(table, column, value, score * coverage, whole)

    def _rarity(self, word: str) -> float:
        """Return a word's rarity in nats. Numbers and stop words count little: people leave them out."""
        weight = math.log(1 + len(self._forms) / len(self._postings[word]))
        return weight / 4 if word in STOPWORDS or word.isdigit() else weight


def _capitals(question: str) -> Iterator[str]:
    """Short names in capitals, and the capitals of longer names."""
    for found in _NAME.findall(question):
        yield (found if found.isupper() else "".join(part[0] for part in re.split("[ -]", found))).casefold()


def _plain(text: str) -> set[str]:
    """Return a text's words as they are, but for case."""
    return {*WORD.findall(text.casefold().replace("_", " "))}


def _names(question: str) -> set[str]:
    """Return the words that a question writes as names: with a capital, or in quotes."""
    quoted = (found[1] or found[2] for found in _QUOTED.finditer(question))
    return {word for part in (*quoted, *re.findall(r"\b[A-Z]\w*", question)) for word in words(part)}


def words(text: str) -> tuple[str, ...]:
    """A text's words without case, accents and commonest endings."""
    plain = text.casefold()
    if not plain.isascii():
        plain = unicodedata.normalize("NFKD", plain)
        plain = "".join(letter for letter in plain if not unicodedata.combining(letter))
    return tuple(map(stem, WORD.findall(plain.replace("_", " "))))
