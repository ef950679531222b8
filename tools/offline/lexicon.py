"""Words: how a question is cut up, and which words stand for each other."""

from __future__ import annotations

import re
from functools import cache

_WORD = re.compile(r"""(?<!\w)["'“‘]([^"“”]+?)["'”’](?!\w)|[0-9][0-9,.]*(?![\w-])|\w+(?:-\w+)*|[?;:,.]""")
_MONTHS = ["jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"]
_MONTH = rf"(?i)\b({'|'.join(_MONTHS)})[a-z]*"
_COUNTED = ["two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
_DIGITS = {word: str(n) for n, word in enumerate(_COUNTED, 2)}
AGGREGATES = {"average": "AVG", "mean": "AVG", "total": "SUM", "maximum": "MAX", "minimum": "MIN"}
_SYNONYMS = """country nation nationality | people person | employee worker | customer client | price cost
salary wage | product item | song track | type kind | student pupil | name title | rating score
maker producer manufacturer | code abbreviation | birth born | location place | enrolment enroll
amount revenue sales turnover earn"""
_STOP = """a an the of in on at to for from by with and or is are was were be do does did has have had that
who what which whose where when how many list show give find return all each every any there than as not no"""
STOP = frozenset(re.findall(r"\w+", _STOP))

# The cues of the rules, as patterns of a question's gist
AGGREGATE, NUMBER = f"(?:{'|'.join(AGGREGATES)})", "[0-9]+(?:[.][0-9]+)?"
TABLE, COLUMN, MEASURE = "T[0-9]+", "[CDMY][0-9]+", "[DMY][0-9]+"
THE = "(?:(?:the|a|an|all|of|any|each|different|distinct|their|its|for|in|amount|how many) )*"
IS = "(?:(?:is|are|was|were|of|named|called|equal|to|the|as|by|in|from|for|that|with|not) )*"
_DAY = "(?:0[1-9]|[12][0-9]|3[01])"
POINT = f"(?:1[89]|20)[0-9]{{2}}(?:-(?:0[1-9]|1[0-2])(?:-{_DAY})?)?"  # a year, a month or a day
COMPARISONS = {
    "at least": ">=",
    "at most|(?:not|no) more than": "<=",
    "(?:more|greater|larger|higher|older|longer|heavier|taller) than|above|over|after": ">",
    "(?:less|fewer|smaller|lower|younger|shorter|lighter|cheaper) than|below|under|before": "<",
}
MOST = (
    "most recent|(?:most|least) expensive|most|least|best|"
    "(?:high|larg|bigg|old|tall|low|small|few|young|cheap|new|lat|earli)est"
)
ASCENDING = ("least", "low", "small", "few", "young", "cheap", "earli", "bottom")
WHEN = {"recent": False, "lat": False, "new": False, "young": False, "earli": True, "old": True}  # ascending?
ABOUT = {"old": "ag", "young": "ag", "tall": "height", "expensive": "pric", "cheap": "pric"}  # stems
ASKING = re.findall(r"\S+", "what show list give find return tell how who which display ; .")
CUED = frozenset(re.findall("[a-z]+", " ".join([THE, IS, MOST, *COMPARISONS, *ASKING, *AGGREGATES])))
CUTS = re.findall(r"\S+", "whose that where with having have has had when while from in by without if not")


def split_words(question: str) -> list[str]:
    """The words, numbers, marks and quoted texts of a question; a quoted text keeps a ``'`` in front."""
    question = re.sub(r"(?<=\w)[’']s\b", "", re.sub(r"n[’']t\b", " not", question))
    question = re.sub(r"(?i)(\bthe )?(\btotal )?\bnumbers? of\b|\bcount( of)?\b", "how many", question)
    day = "(?: ([0-9]{1,2})(?:st|nd|rd|th)?,?)?"
    question = re.sub(rf"{_MONTH}{day} (?:of )?([0-9]{{4}})\b", _iso, question)
    question = re.sub(rf"{_MONTH}{day}(?= (?:to|and|until) ([0-9]{{4}})-)", _iso, question)
    found = _WORD.finditer(question)
    words = [f"'{m[1]}" if m[1] else m[0].replace(",", "").rstrip(".") or m[0] for m in found]
    return [_DIGITS.get(word.lower(), word) for word in words]


def _iso(match: re.Match[str]) -> str:
    day = f"-{match[2]:0>2}" if match[2] else ""
    return f"{match[3]}-{_MONTHS.index(match[1].lower()) + 1:02d}{day}"


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
