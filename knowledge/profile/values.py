"""What single values of a column mean: the number in a text, the days that a date may be."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Mapping
from datetime import date
from functools import lru_cache

from quorum.knowledge.profile.amounts import shapes_of
from quorum.knowledge.profile.forms import DIGITS, date_form, number, number_form
from quorum.knowledge.profile.model import ColumnProfile

_MONTHS = {
    word: f"{place:02}"
    for place, words in enumerate(
        (
            *("jan ene", "feb fév", "mar mär", "apr avr abr", "may mai", "jun", "jul", "aug aoû ago", "sep"),
            *("oct okt", "nov", "dec dez déc dic"),
        ),
        1,
    )
    for word in words.split()
}


def amounts(counted: Mapping[str, int]) -> tuple[dict[str, str], dict[str, float]]:
    """Return the form and the number of each value that is one: ``$9,999.99`` and 1234.5 of ``$1,234.50``.

    Args:
        counted: In how many rows each value is; the marks of ``1.234`` are those of most rows.
    """
    groups = defaultdict[str, list[str]](list)
    for text in counted:
        groups[text.strip().translate(DIGITS)].append(text)
    numbers = {each: form for each in groups if "9" in each and (form := number_form(each))}
    marked = shapes_of(numbers, {each: sum(counted[text] for text in groups[each]) for each in numbers})
    shapes, sizes = dict[str, str](), dict[str, float]()
    for each in numbers:
        for text in groups[each]:
            shapes[text] = marked[each][0]
            sizes[text] = number(text, marked[each][1])
    return shapes, sizes


def days(text: str, profile: ColumnProfile) -> tuple[str, frozenset[str]]:
    """Return a date's form and the days that it may be, in ISO form; months are ``2024-03``.

    Of ``03/04/2024`` these are two, unless all forms of the column that are like it have one order.
    """
    return _days(text, frozenset(form.text[:2] for form in profile.forms))


@lru_cache(1 << 14)
def _days(text: str, orders: frozenset[str]) -> tuple[str, frozenset[str]]:
    text = text.strip()
    form = date_form(text.translate(DIGITS))
    digits = re.findall(r"\d+", text)
    found = set[tuple[str, ...]]()
    if form.startswith("YYYYMMDD"):
        found = {(text[:4], text[4:6], text[6:8])}
    elif form.startswith("YYYY"):
        found = {tuple(digits[: 3 if "DD" in form else 2])}
    elif form.startswith("AA"):
        first, second, year = digits[:3]
        both = {"DD": (year, second, first), "MM": (year, first, second)}
        found = {both[order] for order in both if order in orders} or set(both.values())
    elif form:
        words = (word[:3].casefold() for word in re.findall(r"[^\W\d_]+", text))
        month = next((_MONTHS[word] for word in words if word in _MONTHS), "")
        day, year = (digits[0], digits[1]) if "D" in form else ("", digits[0])
        found = {(year, month, day) if day else (year, month)} if month else set()
    iso = {"-".join([_year(each[0]), *(part.zfill(2) for part in each[1:])]) for each in found}
    return form, frozenset(each for each in iso if _is_day(each))


def _year(digits: str) -> str:
    return digits if len(digits) == 4 else ("20" if int(digits) < 70 else "19") + digits


def _is_day(iso: str) -> bool:
    try:
        date.fromisoformat(iso if len(iso) == 10 else iso + "-01")
    except ValueError:
        return False
    return True
