"""Cues in an English question: how many rows are wanted, and of what, by the house rules."""

from __future__ import annotations

import re

_COUNTED = re.compile(
    r"\b(?:how many|(?:total )?(?:number|count|amount)s? of(?: the)?(?: total)?)\s+((?:[\w-]+\s*){1,3})",
    re.IGNORECASE,
)
_EXTREME = re.compile(
    r"\b(most|least|fewest|top|best|worst|first|last|maxim(?:um|al)|minim(?:um|al)|max|min"
    r"|(?:high|low|large|small|great|bigg|old|young|long|short|late|earli|new|tall|heavi|light|cheap|fast|slow|rich"
    r"|poor|clos|near|strong|weak|few|thin|thick|deep|wid|bright|dark|dens|busi|hott|cold|warm|stead|broad|farth|furth)est)\b",
    re.IGNORECASE,
)
_WHO = re.compile(
    r"(\w+)\s+(?:(?:that|who|which)\s+(\w+)|(have|has|had|having|with|own|owns|is|are|was|were|\w+ed(?:\s+by)?))"
    r"\s+(?:\w+\s+){0,2}$",
    re.IGNORECASE,
)
"""What has the most of something, before that is said: the noun, and its verb."""
_HEAD = re.compile(r"(?i)\s+(?:(?!(?:of|in|for|from|that|who|by|with|on|at|to)\b)[\w-]+\s*){1,3}")
"""What is the largest, after that is said."""
_ASKED = re.compile(r"(?i)(?:^|[.,;:?!]\s*)(?:which|what)\s+(\w+)")
_QUANTITIES = ("most", "least", "fewest", "top", "first", "last", "maximum", "minimum", "max", "min")
_NUMBER = re.compile(r"(?i)\b(\d+|two|three|four|five|six|seven|eight|nine|ten|twenty|one)\b")
_STOP = re.compile(
    r"(?i)\b(using|with|of|that|who|which|whose|in|by|for|from|and|on|at|to|where|have|has|are|is)\b.*"
)


def asks_how_many(question: str, table: str) -> bool:
    """True if a question counts a table's rows: "how many students" does for ``Students``."""
    return any(_names(found, table) for found in _COUNTED.findall(question))


def _names(words: str, table: str) -> bool:
    """True if the words, up to a preposition, name a table's rows."""
    own = [_stem(word) for word in re.findall(r"[A-Za-z]+", re.sub(r"(?<=[a-z])(?=[A-Z])", " ", table))]
    said = [_stem(word) for word in _STOP.sub("", words).split()]
    return bool(own) and (own[-1] in said or "".join(own) in {"".join(said), *said})


def keeps_ties(question: str) -> bool:
    """True if all that share the last place are wanted: a plural without a number, or an "all".

    "The customer with the most" is one, "the top 3" are three. Without a question all are wanted.
    """
    if not question:
        return True
    found = list(_EXTREME.finditer(question))
    if not found or _NUMBER.search(question):
        return False
    extreme = found[-1]
    if who := _WHO.search(question[: extreme.start()]):
        noun, verb = who.group(1), (who.group(2) or who.group(3)).lower()
        return verb in ("have", "own") or (not verb.endswith("s") and _is_plural(noun))
    head = _HEAD.match(question[extreme.end() :])
    if extreme.group().lower() in _QUANTITIES or head is None:
        asked = _ASKED.search(question)
        return asked is not None and _is_plural(asked.group(1))
    return _is_plural(head.group().split()[-1])


def _is_plural(word: str) -> bool:
    word = word.lower()
    return word == "people" or (word.endswith("s") and not word.endswith(("ss", "us", "is")))


def _stem(word: str) -> str:
    word = word.lower()
    for ending, kept in (("ies", "y"), ("ses", "s"), ("xes", "x"), ("ches", "ch"), ("shes", "sh"), ("s", "")):
        if word.endswith(ending) and len(word) > len(ending) + 2 and not word.endswith("ss"):
            return word.removesuffix(ending) + kept
    return word
