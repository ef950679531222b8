"""Numbers and dates among the values of a column: their forms, and those that stand for something else."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace
from statistics import fmean
from typing import Any, TypeAlias

from quorum.knowledge.profile.forms import DIGITS, LONGEST, Number, date_form, number, number_form
from quorum.knowledge.profile.model import ColumnProfile, Counts, Form, Kind

TRIED = 100
"""Values that are tried; where few of them are numbers or dates, the others are not read."""
_STRANGE = re.compile(
    r"0|(?:-[19]|-?9{2,}|-9+|-?8{3,})(?:\.[09]+)?"
    r"|(?:1900-01-01|1899-12-3[01]|1970-01-01|000\d-\d\d-\d\d|1[78]00-01-01|[2-9]\d99-12-31|1111-11-11).*"
    r"|0?1[/.]0?1[/.](?:1900|1970|0001).*|(?:31[/.]12|12[/.]31)[/.][2-9]\d99.*"
)
"""Numbers and days that often stand for something else."""

Rows: TypeAlias = Mapping[str, int]
"""How many rows have each value."""


def counts_of(rows: Rows) -> Counts:
    return tuple(Counter(rows).most_common())


def of_amounts(profile: ColumnProfile, rest: Rows, sure: float) -> ColumnProfile | None:
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
        shapes = _settled({text: ordered(form, order_of(text)) for text, form in dates.items()})
        plain = {form for form in shapes.values() if form.startswith("YYYY-MM-DD")}
        return _formed(replace(profile, kind=Kind.DATE), rest, shapes, plain, {text: text for text in dates})
    numbers = {each: found for each in groups if (found := number_form(each))}
    given = {each: sum(rest[text] for text in groups[each]) for each in numbers}
    if not numbers or sum(given.values()) < sure or _are_codes(numbers, groups):
        return None
    marked = shapes_of(numbers, given)
    shapes = {text: marked[each][0] for each in numbers for text in groups[each]}
    plain = {*shapes.values()} - {marked[each][0] for each, form in numbers.items() if not form.plain}
    amounts = {text: number(text, marked[each][1]) for each in numbers for text in groups[each]}
    return _formed(replace(profile, kind=Kind.NUMBER), rest, shapes, plain, amounts)


def _formed(
    profile: ColumnProfile, rest: Rows, shapes: Mapping[str, str], plain: Set[str], sizes: Mapping[str, Any]
) -> ColumnProfile:
    """Return the profile with forms: ``shapes`` has each value's; a CAST reads ``plain``, ``sizes`` sorts."""
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
        sized = profile.kind is Kind.NUMBER and texts[0] in sizes
        kept = sorted(texts, key=sizes.__getitem__) if sized else [""]
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

    return counts_of({text: rest[text] for text in strange if far(size[text], rest[text])})


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


def order_of(text: str) -> str:
    """Return ``DM`` if only day first makes a date, as in 13/02/2024, ``MD`` if only month first."""
    first, second = (int(part) for part in [*re.findall(r"\d+", text), 0, 0][:2])
    return "DM" if first > 12 else "MD" if second > 12 else ""


def ordered(form: str, order: str) -> str:
    ordered = order and form.startswith("AA")
    return form.replace("AA", 2 * order[0]).replace("BB", 2 * order[1]) if ordered else form


def _settled(shapes: dict[str, str]) -> dict[str, str]:
    """Return the forms; a date of either order has the only order that others have, with dots day first."""
    seen = {*shapes.values()}
    for unsure in [form for form in seen if form.startswith("AA")]:
        orders = [order for order in ("DM", "MD") if ordered(unsure, order) in seen]
        orders = orders or ["DM"] * ("." in unsure)
        if len(orders) == 1:
            shapes = {t: ordered(f, orders[0]) if f == unsure else f for t, f in shapes.items()}
    return shapes


def _are_codes(numbers: Mapping[str, Number], groups: Mapping[str, Sequence[str]]) -> bool:
    """True for whole numbers with leading zeros, phones, and groups all alike: ``00017``, ``555 123 456``."""
    whole = (text for each in numbers if each.isdigit() and len(each) > 1 for text in groups[each])
    phones = any(each[0] == "+" and len(each) > 8 and each[1:].isdigit() for each in numbers)
    alike = [form.groups in (" ", "'", "’") and not form.decimal for form in numbers.values()] == [True]
    return phones or alike or any(text.strip()[0] == "0" for text in whole)


def shapes_of(numbers: Mapping[str, Number], rows: Rows) -> dict[str, tuple[str, str]]:
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
