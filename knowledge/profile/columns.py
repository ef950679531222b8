"""Profiles of a table's columns from rows of it.

An oddity is a fact about the values. Where a value may be what it says, it is none: ``NA`` among countries,
99 among ages.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean
from typing import Any

from quorum.knowledge.profile.amounts import Rows, counts_of, of_amounts, order_of, ordered
from quorum.knowledge.profile.forms import DIGITS, LONGEST, UNITS, date_form, number
from quorum.knowledge.profile.model import ColumnProfile, Form, Kind

NEARLY = 0.8
"""Share of the rows with a value that must be numbers (dates, codes) for the column to be one of them."""
LEAST_ROWS = 8
"""Rows with a value below which nothing is said: the samples show them."""
FEW = 12
"""Values of a column that may tell which form another column has."""
PADDED = 0.2
"""Share of the codes without leading zeros that occur with some too, for zeros to say nothing."""

_EMPTY = "|n/a|#n/a|n.a.|null|(null)|<null>|nan|\\n|-|--|---|?|.|not available|not applicable|no data|(blank)"
NO_VALUE = frozenset(_EMPTY.split("|"))
"""Texts that stand for NULL, in small letters."""
PERHAPS = frozenset(("none", "na", "nil", "unknown", "missing", "tbd", "undefined", "pending"))
"""Texts that may be a value of their own: they count beside others, or among numbers and dates."""
YES = frozenset(("yes", "y", "true", "t", "1", "on", "ja", "oui", "si", "sí"))
NO = frozenset(("no", "n", "false", "f", "0", "off", "nein", "non"))
_TOTALS = re.compile(
    r"(?:grand |sub-?)?totals?\b.*|.* (?:sub-?)?totals?|(?:all|overall|sum|gesamt|summe|insgesamt|suma)\b.*",
    re.I,
)
_LETTERS = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "A" * 26 + "a" * 26 + "9" * 10
)
_CODE = re.compile(r"[A-Za-z]{0,6}[-_/. #]?\d+(?:[-_/.]?[A-Za-z0-9]+){0,3}")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")


def profiles(columns: Mapping[str, Sequence[Any]], *, whole: bool) -> dict[str, ColumnProfile]:
    """Return the profiles of columns by name, from the texts of their values; what is no text is NULL.

    Args:
        columns: The values of each in the same rows, in the same order.
        whole: True if these are all rows of the table.
    """
    found = {name: _profile(texts, whole) for name, texts in columns.items()}
    for name, profile in found.items():
        if profile.kind is Kind.DATE and any(form.text.startswith("AA") for form in profile.forms):
            found[name] = _with_order(profile, name, columns)
    numbers = [name for name, each in found.items() if each.kind is Kind.NUMBER]
    regular = {
        name for name, each in found.items() if each.kind in (Kind.NUMBER, Kind.DATE) and not each.forms
    }
    return {
        name: each if name in regular else _with_totals(each, columns[name], [columns[n] for n in numbers])
        for name, each in found.items()
    }


def unpadded(key: str) -> str:
    """Return a key without outer blanks and leading zeros: ``" C00046"`` is ``C46``."""
    return _ZEROS.sub("", key.strip())


def _profile(texts: Sequence[Any], whole: bool) -> ColumnProfile:
    counted, rows = Counter(text for text in texts if isinstance(text, str)), len(texts)
    profile = ColumnProfile(rows, whole, unique=whole and len(counted) == rows > 1)
    folded = {text: text.strip().casefold() for text in counted}
    rest = {text: n for text, n in counted.items() if folded[text] not in NO_VALUE}
    maybe = {text: rest.pop(text) for text in [*rest] if folded[text] in PERHAPS}
    given = sum(rest.values())
    if given >= LEAST_ROWS:
        profile = (
            _of_flags(profile, rest) or of_amounts(profile, rest, NEARLY * given) or _of_texts(profile, rest)
        )
    missing = {text: n for text, n in counted.items() if folded[text] and folded[text] in NO_VALUE}
    empty = {text: n for text, n in counted.items() if not folded[text]}
    if profile.kind in (Kind.NUMBER, Kind.DATE) or missing or len(maybe) > 1:
        missing |= maybe
    if missing or len(empty) > 1 or rows > counted.total():
        missing |= empty
    if given and not any(c.isalnum() for text in rest for c in text):  # + and -
        return profile
    return replace(profile, no_value=counts_of(missing))


def _of_flags(profile: ColumnProfile, rest: Rows) -> ColumnProfile | None:
    """Return the profile of values that all say yes or no, both of them, and not 0 and 1 alone."""
    words = {text.strip().casefold() for text in rest} if len(rest) <= 2 * len(YES | NO) else {""}
    if not words <= YES | NO or words <= YES or words <= NO or words <= {"0", "1"}:
        return None
    usual = sorted(rest, key=lambda text: -rest[text])
    sides = [tuple(text for text in usual if text.strip().casefold() in side) for side in (YES, NO)]
    if max(map(len, sides)) < 2:
        return replace(profile, kind=Kind.FLAG)
    other = sum(rest[text] for side in sides for text in side[1:])
    return replace(profile, kind=Kind.FLAG, variants=tuple(sides), variant_rows=other)


def _with_order(
    profile: ColumnProfile,
    name: str,
    columns: Mapping[str, Sequence[Any]],
) -> ColumnProfile:
    """Return the profile with the column that tells in which order day and month stand, if one does."""
    unsure = next(form for form in profile.forms if form.text.startswith("AA"))
    for other, values in columns.items():
        if other == name or not 2 <= len({*values}) <= FEW:
            continue
        orders = defaultdict[Any, Counter[str]](Counter)
        for text, told in zip(columns[name], values, strict=True):
            if isinstance(text, str) and date_form(text.strip().translate(DIGITS)) == unsure.text:
                orders[told][order_of(text)] += 1
        sure = {told: [order for order in found if order] for told, found in orders.items()}
        if {len(each) for each in sure.values()} != {1} or len({each[0] for each in sure.values()}) != 2:
            continue
        more = Counter[str]()
        for told, found in orders.items():
            more[ordered(unsure.text, sure[told][0])] += found[""]
        forms = [replace(f, rows=f.rows + more[f.text]) for f in profile.forms if f is not unsure]
        return replace(profile, forms=tuple(sorted(forms, key=lambda form: -form.rows)), told_by=other)
    return profile


def _of_texts(profile: ColumnProfile, rest: Rows) -> ColumnProfile:
    """Return the profile of units, codes or other texts."""
    measures = Counter(UNITS.get(text.strip().casefold(), "") for text in rest if len(rest) <= FEW)
    if "" not in measures and max(measures.values(), default=0) > 1 < max(len(text.strip()) for text in rest):
        return replace(profile, units=counts_of(rest))
    codes = {text: n for text, n in rest.items() if len(text) <= LONGEST and _CODE.fullmatch(text.strip())}
    if sum(codes.values()) >= NEARLY * sum(rest.values()):
        return replace(profile, kind=Kind.CODE, forms=_code_forms(codes))
    spellings = defaultdict[str, list[str]](list)
    for text in sorted(rest, key=lambda text: -rest[text]):
        spellings[plain_text(text)].append(text)
    variants = tuple(tuple(each) for each in spellings.values() if len(each) > 1)
    padded = {text: rest[text] for (text, *more) in spellings.values() if not more and text != text.strip()}
    rows = sum(rest[text] for each in variants for text in each[1:])
    return replace(profile, padded=counts_of(padded), variants=variants, variant_rows=rows)


def plain_text(text: str) -> str:
    """Return a text without case, accents and runs of blanks; of words without dots and inner hyphens too."""
    text = " ".join(text.casefold().split())
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    if not text.replace(" ", "").isalpha() and not any(map(str.isdigit, text)):
        text = " ".join(re.sub(r"(?<=\w)[-_](?=\w)", " ", text.replace(".", "")).split())
    return text


def _code_forms(codes: Rows) -> tuple[Form, ...]:
    """Return forms that differ in case, blanks, punctuation or leading zeros alone; () if there is one."""
    padded = defaultdict[str, set[bool]](set)
    for text in codes:
        padded[unpadded(text).casefold()].add(_ZEROS.search(text) is not None)
    bare = sum(False in each for each in padded.values())
    zeros = sum(len(each) > 1 for each in padded.values()) >= PADDED * bare > 0
    of_shape = defaultdict[str, list[str]](list)
    for text in codes:
        shape = re.sub("9+", "9", text.translate(_LETTERS))
        of_shape[shape + "0" * (zeros and _ZEROS.search(text) is not None)].append(text)
    alike = defaultdict[str, list[Form]](list)
    for shape, texts in of_shape.items():
        form = Form(texts[0].translate(_LETTERS), sum(codes[text] for text in texts), texts[0])
        alike[re.sub(r"(?<=A)[^A9]+(?=9)", "", shape.strip("0").strip().upper())].append(form)
    most = max(alike.values(), key=lambda forms: sum(form.rows for form in forms))
    if len(most) < 2 or 2 * sum(form.rows for form in most) < sum(codes.values()):
        return ()
    return tuple(sorted(most, key=lambda form: -form.rows))


def _with_totals(
    profile: ColumnProfile, texts: Sequence[Any], numbers: Sequence[Sequence[Any]]
) -> ColumnProfile:
    """Return the profile with values such as ``Total``, where numbers of their rows are larger."""
    counted = Counter(text for text in texts if isinstance(text, str))
    totals = {text: n for text, n in counted.items() if _TOTALS.fullmatch(text.strip())}
    for amounts in numbers if 0 < len(totals) < len(counted) else ():
        sizes = defaultdict[bool, list[float]](list)
        for text, amount in zip(texts, amounts, strict=True):
            if isinstance(amount, str):
                sizes[text in totals].append(number(amount))
        if sizes[True] and sizes[False] and fmean(sizes[True]) > 1.9 * fmean(sizes[False]) > 0:
            forms = tuple(form for form in profile.forms if form.text not in totals)
            regular = len(forms) == 1 and (forms[0].plain or forms[0].text.startswith("YYYY"))
            return replace(profile, totals=counts_of(totals), forms=() if regular else forms)
    return profile
