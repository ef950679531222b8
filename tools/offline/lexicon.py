"""Words: how a question is cut up, and which words stand for each other."""

from __future__ import annotations

import re
from functools import cache

_WORD = re.compile(r"""(?<!\w)["'“‘]([^"“”]+?)["'”’](?!\w)|[0-9][0-9,.]*(?![\w-])|\w+(?:-\w+)*|[?;:,.]""")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"(?i)\b({'|'.join(_MONTHS)})[a-z]*"
AGGREGATES = {"average": "AVG", "mean": "AVG", "total": "SUM", "maximum": "MAX", "minimum": "MIN"}
_SYNONYMS = """country nation nationality | people person | employee worker | customer client | price cost
salary wage | product item | song track | type kind | student pupil | name title | rating score
maker producer manufacturer | code abbreviation | birth born | location place | enrolment enroll"""
_STOP = """a an the of in on at to for from by with and or is are was were be do does did has have had that
who what which whose where when how many list show give find return all each every any there than as not no"""
STOP = frozenset(re.findall(r"\w+", _STOP))


def split_words(question: str) -> list[str]:
    """The words, numbers, marks and quoted texts of a question; a quoted text keeps a ``'`` in front."""
    question = re.sub(r"(?<=\w)[’']s\b", "", re.sub(r"n[’']t\b", " not", question))
    question = re.sub(r"(?i)(\bthe )?(\btotal )?\bnumbers? of\b|\bcount( of)?\b", "how many", question)
    question = re.sub(rf"{_MONTH} (?:of )?([0-9]{{4}})\b", _iso_month, question)
    question = re.sub(rf"{_MONTH}(?= (?:to|and|until) ([0-9]{{4}})-)", _iso_month, question)
    found = _WORD.finditer(question)
    return [f"'{m[1]}" if m[1] else m[0].replace(",", "").rstrip(".") or m[0] for m in found]


def _iso_month(match: re.Match[str]) -> str:
    return f"{match[2]}-{_MONTHS.index(match[1].lower()) + 1:02d}"


def _cut(word: str) -> str:
    word = re.sub(r"(?<=\w\w)ies$", "y", word.lower())
    word = re.sub(r"(?<=ss|sh|ch)es$|(?<=x)es$|(?<=\w[^sui])s$", "", word)
    return re.sub(r"(?<=\w\w\w)(?:ing|ed|e)$", "", word)


_SAME = {_cut(w): _cut(group.split()[0]) for group in re.split(r"[|\n]", _SYNONYMS) for w in group.split()}


@cache
def stems(name: str) -> tuple[str, ...]:
    """The crude stems inside a word or identifier, ``snake_case`` or ``CamelCase``; one for all synonyms."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])|_|\W|(?<=[A-Za-z])(?=\d)", " ", name)
    return tuple(_SAME.get(_cut(part), _cut(part)) for part in spaced.split())
