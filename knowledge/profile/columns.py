"""Profiles of a table's columns from rows of it.

An oddity is a fact about the values. Where a value may be what it says, it is none: ``NA`` among countries,
99 among ages.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeAlias

from quorum.knowledge.profile.forms import DIGITS, LONGEST, UNITS, Number, date_form, number, number_form
from quorum.knowledge.profile.model import ColumnProfile, Counts, Form, Kind

NEARLY = 0.8
"""Share of the rows with a value that must be numbers (dates, codes) for the column to be one of them."""
LEAST_ROWS = 8
"""Rows with a value below which nothing is said: the samples show them."""
TRIED = 100
"""Values that are tried; where few of them are numbers or dates, the others are not read."""
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
_STRANGE = re.compile(
    r"0|(?:-[19]|-?9{2,}|-9+|-?8{3,})(?:\.[09]+)?"
    r"|(?:1900-01-01|1899-12-3[01]|1970-01-01|000\d-\d\d-\d\d|1[78]00-01-01|[2-9]\d99-12-31|1111-11-11).*"
    r"|0?1[/.]0?1[/.](?:1900|1970|0001).*|(?:31[/.]12|12[/.]31)[/.][2-9]\d99.*"
)
"""Numbers and days that often stand for something else."""
_LETTERS = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789", "A" * 26 + "a" * 26 + "9" * 10
)
_CODE = re.compile(r"[A-Za-z]{0,6}[-_/. #]?\d+(?:[-_/.]?[A-Za-z0-9]+){0,3}")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")

Rows: TypeAlias = Mapping[str, int]
"""How many rows have each value."""


def profiles(columns: Mapping[str, Sequence[Any]], *, whole: bool) -> dict[str, ColumnProfile]:
    """Return the profiles of columns by name, from the texts of their values; what is no text is NULL.

    Args:
        columns: The values of each in the same rows, in the same order.
        whole: True if these are all rows of the table.
    """
    counted = {
        name: Counter(text for text in texts if isinstance(text, str)) for name, texts in columns.items()
    }
    found = {name: _profile(each, len(columns[name]), whole) for name, each in counted.items()}
    for name, profile in found.items():
        if any(form.text.startswith("AA") for form in profile.forms) and profile.kind is Kind.DATE:
            found[name] = _with_order(profile, name, columns, counted)
    numbers = [name for name, each in found.items() if each.kind is Kind.NUMBER]
    return {name: _with_totals(each, name, columns, counted, numbers) for name, each in found.items()}


def unpadded(key: str) -> str:
    """Return a key without outer blanks and leading zeros: ``" C00046"`` is ``C46``."""
    return _ZEROS.sub("", key.strip())


def _profile(counted: Counter[str], rows: int, whole: bool) -> ColumnProfile:
    profile = ColumnProfile(rows, whole, unique=len(counted) == rows > 1)
    folded = {text: text.strip().casefold() for text in counted}
    rest = {text: n for text, n in counted.items() if folded[text] not in NO_VALUE}
    maybe = {text: rest.pop(text) for text in [*rest] if folded[text] in PERHAPS}
    given = sum(rest.values())
    if given >= LEAST_ROWS:
        profile = (
            _of_flags(profile, rest) or _of_amounts(profile, rest, NEARLY * given) or _of_texts(profile, rest)
        )
    missing = {text: n for text, n in counted.items() if folded[text] and folded[text] in NO_VALUE}
    empty = {text: n for text, n in counted.items() if not folded[text]}
    if profile.kind in (Kind.NUMBER, Kind.DATE) or missing or len(maybe) > 1:
        missing |= maybe
    if missing or len(empty) > 1 or rows > counted.total():
        missing |= empty
    if given and not any(c.isalnum() for text in rest for c in text):  # + and -
        return profile
    return replace(profile, no_value=_counts(missing))


def _counts(rows: Rows) -> Counts:
    return tuple(Counter(rows).most_common())


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


def _of_amounts(profile: ColumnProfile, rest: Rows, sure: float) -> ColumnProfile | None:
    """Return the profile of numbers or dates; None if fewer rows than ``sure`` have one."""
    groups = defaultdict[str, list[str]](list)
    for place, text in enumerate(rest):
        skeleton = text.strip().translate(DIGITS)
        if "9" in skeleton and len(skeleton) <= LONGEST and (date_form(skeleton) or number_form(skeleton)):
            groups[skeleton].append(text)
        if place == TRIED and 3 * sum(map(len, groups.values())) < TRIED:
            return None
    dates = {text: form for each, texts in groups.items() if (form := date_form(each)) for text in texts}
    if any(re.search("BB.YY$", form) for form in dates.values()):  # versions, unless all could be days
        dates = dates if all(text in dates or not re.search(r"\d", text) for text in rest) else {}
    if dates and sum(rest[text] for text in dates) >= sure and _are_days(dates):
        shapes = _settled({text: _ordered(form, _order(text)) for text, form in dates.items()})
        plain = {form for form in shapes.values() if form.startswith("YYYY-MM-DD")}
        return _formed(replace(profile, kind=Kind.DATE), rest, shapes, plain, {text: text for text in dates})
    numbers = {each: found for each in groups if (found := number_form(each))}
    given = {each: sum(rest[text] for text in groups[each]) for each in numbers}
    if not numbers or sum(given.values()) < sure or _are_codes(numbers, groups):
        return None
    marked = _shapes(numbers, given)
    shapes = {text: marked[each][0] for each in numbers for text in groups[each]}
    plain = {*shapes.values()} - {marked[each][0] for each, form in numbers.items() if not form.plain}
    amounts = {text: number(text, marked[each][1]) for each in numbers for text in groups[each]}
    return _formed(replace(profile, kind=Kind.NUMBER), rest, shapes, plain, amounts)


def _formed(
    profile: ColumnProfile, rest: Rows, shapes: Mapping[str, str], plain: Set[str], sizes: Mapping[str, Any]
) -> ColumnProfile:
    """Return the profile with forms, sentinels and ends.

    Args:
        shapes: The form of each value that has one.
        plain: The forms that a CAST reads.
        sizes: What the values are sorted by.
    """
    of_shape = defaultdict[str, list[str]](list)
    for text, shape in shapes.items():
        of_shape[shape].append(text)
    for text in (text for text in rest if text not in shapes):
        of_shape[text.translate(DIGITS)].append(text)
    others = [shape for shape, texts in of_shape.items() if texts[0] not in shapes]
    if len(others) > 3:
        of_shape["other text"] = [text for shape in others for text in of_shape.pop(shape)]
    forms = []
    for shape, texts in of_shape.items():
        kept = (
            sorted(texts, key=sizes.__getitem__)
            if profile.kind is Kind.NUMBER and texts[0] in sizes
            else [""]
        )
        rows = sum(rest[text] for text in texts)
        forms.append(Form(shape, rows, max(texts, key=rest.__getitem__), shape in plain, kept[0], kept[-1]))
    forms.sort(key=lambda form: -form.rows)
    profile = replace(profile, sentinels=_sentinels(rest, sizes))
    if len(forms) > 1 or not (forms[0].plain or forms[0].text.startswith("YYYY")):
        return replace(profile, forms=tuple(forms))
    strange = dict(profile.sentinels)
    kept = sorted((text for text in sizes if text not in strange), key=sizes.__getitem__)
    return replace(profile, low=kept[0], high=kept[-1], exact=profile.whole)


def _sentinels(rest: Rows, sizes: Mapping[str, Any]) -> Counts:
    """Return repeated numbers of nines, 0 or below, or days as 1900-01-01, that are far from all others."""
    strange = [text for text in sizes if rest[text] > 1 and _STRANGE.fullmatch(text.strip())]
    days = any(isinstance(sizes[text], str) for text in strange)
    size = {text: int((re.findall(r"\d{4}", text) or [2000])[0]) for text in sizes} if days else sizes
    others = [size[text] for text in sizes if text not in strange] if strange else []
    if len(others) < 5:
        return ()
    low, high = min(others), max(others)
    often = 5 * max(1, fmean(rest[text] for text in sizes if text not in strange))

    def far(amount: float, rows: int) -> bool:
        if days or abs(amount - low) > 3 * (high - low) > 0:
            return amount < low - 10 * days or amount > high + 10 * days
        if amount <= 0:
            return low >= 0 and (amount < 0 < high - 10 * (rows < often) or low >= max(10, high / 3))
        return amount > 2 * high or (amount > 1.1 * high and rows >= often)

    return _counts({text: rest[text] for text in strange if far(size[text], rest[text])})


def _are_days(dates: Mapping[str, str]) -> bool:
    """True if nearly all are days of a calendar."""

    def fits(text: str, form: str) -> bool:
        if form == "YYYYMMDD":
            return "1900" <= text[:4] <= "2100" and "01" <= text[4:6] <= "12" and "01" <= text[6:8] <= "31"
        first, second = (int(part) for part in [*re.findall(r"\d+", text), 0, 0][:2])
        if form.startswith("AA"):
            return min(first, second) <= 12 and max(first, second) <= 31
        return second <= 12 or not form.startswith("YYYY")

    return sum(fits(text.strip(), form) for text, form in dates.items()) >= 0.95 * len(dates)


def _order(text: str) -> str:
    """Return ``DM`` if only day first makes a date, as in 13/02/2024, ``MD`` if only month first."""
    first, second = (int(part) for part in [*re.findall(r"\d+", text), 0, 0][:2])
    return "DM" if first > 12 else "MD" if second > 12 else ""


def _ordered(form: str, order: str) -> str:
    ordered = order and form.startswith("AA")
    return form.replace("AA", 2 * order[0]).replace("BB", 2 * order[1]) if ordered else form


def _settled(shapes: dict[str, str]) -> dict[str, str]:
    """Return the forms; a date of either order has the only order that others have, with dots day first."""
    seen = {*shapes.values()}
    for unsure in [form for form in seen if form.startswith("AA")]:
        orders = [order for order in ("DM", "MD") if _ordered(unsure, order) in seen] or ["DM"] * (
            "." in unsure
        )
        if len(orders) == 1:
            shapes = {t: _ordered(f, orders[0]) if f == unsure else f for t, f in shapes.items()}
    return shapes


def _with_order(
    profile: ColumnProfile,
    name: str,
    columns: Mapping[str, Sequence[Any]],
    counted: Mapping[str, Counter[str]],
) -> ColumnProfile:
    """Return the profile with the column that tells in which order day and month stand, if one does."""
    unsure = next(form for form in profile.forms if form.text.startswith("AA"))
    for other, values in counted.items():
        if other == name or not 2 <= len(values) <= FEW:
            continue
        orders = defaultdict[Any, Counter[str]](Counter)
        for text, told in zip(columns[name], columns[other], strict=True):
            if isinstance(text, str) and date_form(text.strip().translate(DIGITS)) == unsure.text:
                orders[told][_order(text)] += 1
        sure = {told: [order for order in found if order] for told, found in orders.items()}
        if {len(each) for each in sure.values()} != {1} or len({each[0] for each in sure.values()}) != 2:
            continue
        more = Counter[str]()
        for told, found in orders.items():
            more[_ordered(unsure.text, sure[told][0])] += found[""]
        forms = [replace(f, rows=f.rows + more[f.text]) for f in profile.forms if f is not unsure]
        return replace(profile, forms=tuple(sorted(forms, key=lambda form: -form.rows)), told_by=other)
    return profile


def _are_codes(numbers: Mapping[str, Number], groups: Mapping[str, Sequence[str]]) -> bool:
    """True for whole numbers with leading zeros, phones, and groups all alike: ``00017``, ``555 123 456``."""
    whole = (text for each in numbers if each.isdigit() and len(each) > 1 for text in groups[each])
    phones = any(each[0] == "+" and len(each) > 8 and each[1:].isdigit() for each in numbers)
    alike = len(numbers) == 1 and all(
        form.groups in (" ", "'", "’") and not form.decimal for form in numbers.values()
    )
    return phones or alike or any(text.strip()[0] == "0" for text in whole)


def _shapes(numbers: Mapping[str, Number], rows: Rows) -> dict[str, tuple[str, str]]:
    """Return each skeleton's shape and its mark before decimals: ``$9,999.99`` and ``.`` for ``$9.9``.

    A number that says nothing of its marks, such as 1.234 or 12, has those that are most frequent around it.
    """

    def own(form: Number) -> str:
        by_groups = {",": ".", ".": ","}.get(form.groups, "")
        return form.decimal if form.decimal in (",", ".") else by_groups if form.decimal != "?" else ""

    seen = defaultdict[tuple[str, str], Counter[str]](Counter)
    for each, form in numbers.items():
        if mark := own(form):
            seen[form.before, form.after][mark] += rows[each]
    for each, form in numbers.items():  # a comma before just three digits is seldom one before decimals
        if form.decimal == "?" and form.groups == "," and (form.before, form.after) not in seen:
            seen[form.before, form.after]["."] = rows[each]
    anywhere = sum(seen.values(), Counter[str]())
    decimals, groups, fractions = {}, dict[Any, str](), set[Any]()
    for each, form in numbers.items():
        usual = seen.get((form.before, form.after)) or anywhere or {".": 1}
        mark = decimals[each] = own(form) or max(usual, key=usual.__getitem__)
        around = form.before, form.after, mark
        if form.groups and form.groups != mark:
            groups[around] = form.groups + "999"
        if mark in (form.decimal, form.groups):
            fractions.add(around)
    found = {}
    for each, form in numbers.items():
        around = form.before, form.after, (mark := decimals[each])
        body = "9" + groups.get(around, "") + (f"{mark}99" if around in fractions else "")
        shape = f"{form.before}{body}{form.after}"
        found[each] = f"({shape})" if form.brackets else shape, mark
    return found


def _of_texts(profile: ColumnProfile, rest: Rows) -> ColumnProfile:
    """Return the profile of units, codes or other texts."""
    measures = (
        Counter(UNITS.get(text.strip().casefold(), "") for text in rest) if len(rest) <= FEW else Counter("")
    )
    if (
        "" not in measures
        and max(measures.values(), default=0) > 1
        and any(len(text.strip()) > 1 for text in rest)
    ):
        return replace(profile, units=_counts(rest))
    codes = {text: n for text, n in rest.items() if len(text) <= LONGEST and _CODE.fullmatch(text.strip())}
    if sum(codes.values()) >= NEARLY * sum(rest.values()):
        return replace(profile, kind=Kind.CODE, forms=_code_forms(codes))
    spellings = defaultdict[str, list[str]](list)
    for text in sorted(rest, key=lambda text: -rest[text]):
        spellings[_plain(text)].append(text)
    variants = tuple(tuple(each) for each in spellings.values() if len(each) > 1)
    padded = {text: rest[text] for (text, *more) in spellings.values() if not more and text != text.strip()}
    rows = sum(rest[text] for each in variants for text in each[1:])
    return replace(profile, padded=_counts(padded), variants=variants, variant_rows=rows)


def _plain(text: str) -> str:
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
    profile: ColumnProfile,
    name: str,
    columns: Mapping[str, Sequence[Any]],
    counted: Mapping[str, Counter[str]],
    numbers: Iterable[str],
) -> ColumnProfile:
    """Return the profile with values such as ``Total``, where numbers of their rows are larger."""
    if profile.kind in (Kind.NUMBER, Kind.DATE) and not profile.forms:
        return profile
    totals = {text: n for text, n in counted[name].items() if _TOTALS.fullmatch(text.strip())}
    for other in numbers if 0 < len(totals) < len(counted[name]) else ():
        sizes = defaultdict[bool, list[float]](list)
        for text, amount in zip(columns[name], columns[other], strict=True):
            if isinstance(amount, str):
                sizes[text in totals].append(number(amount))
        if sizes[True] and sizes[False] and fmean(sizes[True]) > 1.9 * fmean(sizes[False]) > 0:
            forms = tuple(form for form in profile.forms if form.text not in totals)
            regular = len(forms) == 1 and (forms[0].plain or forms[0].text.startswith("YYYY"))
            return replace(profile, totals=_counts(totals), forms=() if regular else forms)
    return profile
