"""Whether a question asks for its rows in an order, told from its words.

Where it does, the order of rows counts when results are compared (``tools.compare``, ``ordered``); where it
does not, rows are a multiset. Saying yes wrongly costs more than saying no wrongly: right answers that
sort differently, or not at all, would not vote together. So only plain words count, and what may be a thing
(an order that a customer placed, the rank of a player, a kind or sort) is taken for the thing.

Rows that tie in what they are sorted by may come in any order, and whoever compares results knows no sort
key: where an order was asked for, right answers that arrange such ties differently are two answers. ``mbr``
lets each support the other in part (``quorum.tools.overlap``); in other votes they stand apart.

Limits: English; the order of the whole result is not told from one inside a window ("running total ordered by
date"); a capital letter after "sorted by" is a name ("ordered by Ada") unless a direction follows; a "top 3"
asks for rows, not for their order.
"""

from __future__ import annotations

import re

FAR = 100  # characters within which words belong together, so that a long text takes linear time

_SUPERLATIVE = (
    r"(?:(?:most|least)(?: (?!to\b|first\b)\w+)?|highest|lowest|largest|smallest|biggest|greatest|fewest"
    r"|latest|earliest|newest|oldest|youngest|longest|shortest|best|worst|cheapest|heaviest|lightest|fastest|slowest)"
)
_POLE = rf"(?:{_SUPERLATIVE}|high|low|large|small|big|old|new|young|long|short|cheap|expensive)"
_MANNER = r"(?:alphabetic|lexicographic|chronologic|numeric)(?:al)?"
_END = r"\s*(?:[.,;:?!)]|$|(?:and|then)\b)"
_THEM = r"(?:them|it|these|those|all|the|your|this|rows?|results?|output)\b"
_ORDERING = r"(?:sort|order|rank|arrange)"
_BUYER = (
    r"(?:customer|client|buyer|user|shopper|member|person|employee|agent|agenc(?:y|ie)|manager|supplier|company"
    r"|department|school|staff|doctor|patient|guest|student|owner|teacher|machine)(?:e?s)?"
)
_ATTRIBUTE = (
    r"(?:'s?)?(?: (?:first|last|full))? (?:names?|ids?|ages?|cit(?:y|ies)|countr(?:y|ies)|counts?|surnames?)"
)
_DOER = (
    rf"(?:(?:the|their|our|its|new|all|these|those) )*(?:{_BUYER}\b(?!{_ATTRIBUTE}\b(?! ?\d))"
    r"|(?:women|men|people|who|whom|which|someone|anyone|everyone|nobody|each|every|any|an?|both|more than"
    r"|at least|at most|fewer|only|him|her|them|me|us|\d+)\b)"
)
_NAME = r"(?-i:[A-Z][a-z])"
_KEY = rf"by (?!{_DOER})(?!{_NAME})"
_WAY = rf"(?:by|from|with|on|according to) (?:the )?{_POLE}\b|according to|{_KEY}"

_ASKS = tuple(
    re.compile(pattern, re.IGNORECASE)
    for pattern in (
        r"\b(?:ascending|descending)(?:ly)?\b",
        rf"\b{_MANNER}(?:ly\b| list\b)|(?:,|\b(?:in|by))(?: (?!the\b)\w+)? {_MANNER} order\b",
        r"(?<!\bor )\bin (?:an? |the )?(?:increasing|decreasing|rising|falling|revers(?:e|ed)|sorted|ranked)"
        r" (?:\w+ )?order\b",
        r"\bin (?:revers(?:e|ed) )?order of\b",
        r"\bin (?:date|time|age|size|price|name|year|score) order\b",
        rf"\b(?:sorted|ordered|ranked|arranged),? (?:{_WAY})",
        r",\s*(?:sorted|ordered)\s*[.?!]*$|\bsorted list\b",
        rf"(?:^|[.,;:?!)]\s*|\b(?:and|then|please|also|to) ){_ORDERING}"
        rf" (?:{_WAY}|{_THEM}[^.?!]{{0,{FAR}}}? (?:{_WAY}))",
        rf"(?:^|[.?!]\s*)(?:sort|rank|arrange) (?!of\b|each\b|every\b)[^.?!]{{0,{FAR}}}? (?:{_WAY})",
        r"(?-i:\bORDER BY\b)",
        rf"(?<!\bthe ){_SUPERLATIVE}(?: [\w-]+){{0,2}}? first{_END}",
        rf"\b(?:list(?:ing)?|show(?:ing)?|put(?:ting)?|giv(?:e|ing)|with) the {_SUPERLATIVE}"
        rf"(?: [\w-]+){{0,3}}? first{_END}",
        rf"\b(?:starting|beginning) with the {_SUPERLATIVE}\b",
        r"\b(?:from )?A(?: to |-)Z\b|\b(?:from )?Z(?: to |-)A\b",
    )
)
_FROM_TO = re.compile(rf"\b(?:from (?:the )?)?{_POLE}(?: \w+)? to (?:the )?{_POLE}\b", re.IGNORECASE)
_SPAN = re.compile(
    r"\b(?:differen\w+|rang\w+|chang\w+|drop\w*|fall\w*|fell|r[io]se\w*|gr[eo]w\w*|increas\w+|decreas\w+|gap|ratio"
    r"|distance|span\w*|days|time|compar\w+|went|go\w*|mov\w+|upgrad\w+|switch\w+)\b",
    re.IGNORECASE,
)
_ONE = re.compile(
    rf"\b(?:first|last)(?: (?!names?\b)\w+)? (?:{_MANNER}ly|in {_MANNER} order)\b"
    rf"|\b{_MANNER}ly (?:first|last)\b",
    re.IGNORECASE,
)
_DECLINED = re.compile(
    rf"\b(?:not|without|never|no need to|(?:do|need)n't)(?: \w+){{0,2}} {_ORDERING}(?:e?d|ing)?\b[^.;?!]*",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    rf"\bties?\b[^.;?!)]{{0,{FAR}}}|\b(?:comma|semicolon|pipe)[- ](?:separated|delimited)\b"
    rf"[^.;?!]{{0,{FAR}}}?\b{_MANNER}(?:ly| order)"
    rf"|\blists?\b[^.;,?!(]{{0,{FAR}}}\(\s?(?:sorted|ordered)\b[^)]{{0,{FAR}}}\)",
    re.IGNORECASE,
)
_QUOTED = re.compile(r"\"[^\"]*\"|“[^”]*”|‘[^’]*’|`[^`]*`|(?<!\w)'[^']*'(?!\w)")


def asks_for_order(question: str) -> bool:
    """Whether the question asks for its rows in an order: "sorted by age", "most first", "A to Z".

    What stands in quotes is a value and says nothing; neither does a "top 3", nor an order that was placed.
    """
    text = " ".join(_QUOTED.sub("Quoted", question).split())
    for aside in (_ASIDE, _DECLINED, _ONE):
        text = aside.sub("", text)
    return any(pattern.search(text) for pattern in _ASKS) or _from_to(text)


def _from_to(text: str) -> bool:
    """Whether it says "from highest to lowest", and not of a difference or a way between the two."""
    before = (text[max(0, found.start() - FAR) : found.start()] for found in _FROM_TO.finditer(text))
    return any(not _SPAN.search(re.split(r"[.;,?!]", said)[-1]) for said in before)
