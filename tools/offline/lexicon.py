"""Words: how a question is cut into tokens, and when two words mean the same."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

_TOKEN = re.compile(
    r"""(?<!\w)["'“‘`](?P<quoted>[^"“”]+?)["'”’`](?!\w)
    | (?P<date>\d{4}-\d\d-\d\d)
    | (?P<number>\d[\d,]*\.?\d*(?![\w.]*[A-Za-z_]))
    | (?P<identifier>[^\W\d]\w*_\w+)
    | (?P<word>\w+(?:[-./]\w+)*)
    | (?P<mark>[?;:,.()])""",
    re.VERBOSE,
)
_NUMBERS = {
    word: str(n) for n, word in enumerate(["two", "three", "four", "five", "six", "seven", "eight"], 2)
}
_IRREGULAR = {"people": "person", "men": "man", "women": "woman", "children": "child", "ids": "id"}

# words that stand for each other; a word may stand in several groups
_SYNONYMS = """country nation nationality | citizenship nationality | city town | person people individual
employee worker staff | customer client buyer | price cost | salary pay wage earnings | product item article
order purchase | song track | name title | id identifier identification | phone telephone | email mail
zip postal | creation created | birth born birthday | begin start | end finish | location place venue
type kind category | student pupil | teacher instructor professor | car vehicle automobile | movie film
author writer | description detail information | abbreviation short code | amount sum | sex gender
producer maker manufacturer | department division | rating score | quantity qty | charge fee cost
enrolment enroll register | attendance audience | departure depart origin source | county state province
arrival arrive destination"""


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


STOP = word_set(
    """a an the of in on at to for from by with and or is are was were be been do does did has have had their
    its his her that which who whose what where when how many much list show give find return tell me all each
    every any there this these those it they them than as also please you i we my our can could would will not
    no into among between per if so"""
)


@dataclass(frozen=True)
class Token:
    """A piece of a question: what was written, its stem, and what it looks like.

    ``kind`` is ``word``, ``number``, ``date``, ``quoted``, ``identifier`` (snake_case) or ``mark``.
    """

    text: str
    stem: str
    kind: str

    @property
    def capital(self) -> bool:
        return self.kind == "word" and self.text[:1].isupper()


def tokenize(question: str) -> list[Token]:
    """Cut a question into tokens; possessives lose their ``'s``, ``n't`` becomes ``not``."""
    text = re.sub(r"(?<=\w)[’']s\b", "", re.sub(r"n[’']t\b", " not", question))
    text = re.sub(r"(?i)\b(least|than|exactly|only) one\b", r"\1 1", text)
    tokens = []
    for match in _TOKEN.finditer(text):
        kind = str(match.lastgroup)
        word = match.group(kind)
        if kind == "word" and word.lower() in _NUMBERS:
            kind, word = "number", _NUMBERS[word.lower()]
        if kind == "number":
            word = word.replace(",", "").rstrip(".")
        tokens.append(Token(word, stem(word), kind))
    return tokens


@lru_cache(maxsize=20_000)
def stem(word: str) -> str:
    """A crude stem: enough that ``hired``, ``hiring`` and ``hire`` meet."""
    word = _IRREGULAR.get(word.lower(), word.lower())
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif re.search(r"(ss|sh|ch|x|z)es$", word):
        word = word[:-2]
    elif len(word) > 3 and re.search(r"[^sui]s$", word):
        word = word[:-1]
    if len(word) > 4:
        word = re.sub(r"(?<=\w{3})(ing|ed)$", "", word)
    return word.removesuffix("e") if len(word) > 3 else word


@lru_cache(maxsize=20_000)
def name_stems(name: str) -> tuple[str, ...]:
    """The stems inside an identifier: snake_case, CamelCase and digits are taken apart."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_|\W|(?<=[A-Za-z])(?=\d)", " ", name)
    return tuple(stem(part) for part in spaced.split())


_GROUPS: dict[str, set[str]] = {}
for _group in re.split(r"[|\n]", _SYNONYMS):
    _stems = {stem(word) for word in _group.split()}
    for _stem in _stems:
        _GROUPS.setdefault(_stem, set()).update(_stems)


@lru_cache(maxsize=100_000)
def likeness(asked: str, name: str) -> float:
    """How well a stem of the question fits a stem of a name, from 0 to 1."""
    if asked == name:
        return 1.0
    if name in _GROUPS.get(asked, ()):
        return 0.7
    short, long = sorted((asked, name), key=len)
    return 0.6 if len(short) >= 4 and long.startswith(short) else 0.0


def fit(asked: tuple[str, ...], names: tuple[str, ...]) -> float:
    """Share of ``names`` that the asked stems cover, if every asked stem finds its place; else 0."""
    left, total = list(names), 0.0
    for word in asked:
        best = max(left, key=lambda name: likeness(word, name), default="")
        if not best or not likeness(word, best):
            return 0.0
        total += likeness(word, best)
        left.remove(best)
    return total / max(len(names), 1)
