"""Forms of single values, and what they mean: numbers with what stands around them, and dates.

They are read from a value's skeleton, in which each digit is a 9: a thousand values have a few.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import date
from functools import lru_cache
from typing import Any, NamedTuple

DIGITS = str.maketrans("0123456789", "9999999999")
LONGEST = 40
"""Characters of a value that may be a number or a date."""
TRIED = 100
"""Values that are tried; where few of them are numbers or dates, the others are not read."""

_MONEY = (
    r"[A-Z]{1,3}\$|[$€£¥₹₽₩₪₺₫₦₱฿]|[Kk]r\.?|Rs\.?|Fr\.?|zł|[Dd]ollars?|[Ee]uros?|[Pp]ounds?|USD|EUR|GBP|JPY|CHF|CAD|AUD"
    r"|NZD|CNY|INR|SEK|NOK|DKK|PLN|CZK|HUF|RON|BGN|TRY|ILS|RUB|UAH|BRL|MXN|ARS|CLP|COP|PEN|ZAR|KRW|SGD|HKD|TWD|THB"
    r"|MYR|IDR|PHP|VND|AED|SAR|EGP|NGN|KES"
)
_BODY = (
    r"9{1,3}(?P<group>[,.'’ \u00a0\u202f])999(?:(?P=group)999)*(?P<rest>[.,]9+)?"
    r"|9{1,2}(?P<lakhs>,)(?:99,)+999(?P<decimals>\.9+)?|9*(?P<mark>[.,])9+|9+\.?"
)
_UNIT = r"[^\W\d_]{1,12}\.?|[°µμ]?[A-Za-z]{0,4}[²³]?(?:/[A-Za-z]{1,5}[²³]?)?"
_NUMBER = re.compile(
    rf"(?P<open>\()?[-+−]? ?(?P<before>(?:{_MONEY}|[<>≤≥~≈]=?) ?)?[-+−]?(?:{_BODY})(?:[eE][-+]?9+)?"
    rf"(?P<after>[ \u00a0]?(?:[%‰]|{_MONEY}|{_UNIT}))?(?P<close>\))?(?P<minus>-)?"
)
_PLAIN = re.compile(r"[-+]?(?:9+\.?9*|\.9+)(?:[eE][-+]?9+)?")
_UNITS = {
    "mass": "mg g kg t lb lbs oz ton tons µg gram grams kilogram kilograms pound pounds ounce ounces",
    "length": "mm cm m km in ft yd mi mile miles meter meters metre metres feet inch inches nmi",
    "area": "m² km² ha ac acre acres sqm sqft ft² m2 km2",
    "volume": "ml cl dl l hl gal oz pt qt liter liters litre litres gallon gallons m³ m3",
    "energy": "j kj mj wh kwh mwh gwh kcal cal btu",
    "power": "w kw mw gw hp ps",
    "time": "ms s sec secs second seconds min mins minute minutes h hr hrs hour hours d day days week weeks",
    "size": "b kb mb gb tb kib mib gib",
    "speed": "km/h kmh kph mph m/s kn knots",
    "temperature": "°c °f c f k celsius fahrenheit",
    "concentration": "mg/dl g/l mg/l µg/l mmol/l g/dl ppm ppb ng/ml µmol/l",
    "scale": "k m bn b mn million billion thousand mio mrd tsd",
}
UNITS = {unit: measure for measure, units in _UNITS.items() for unit in units.split()}
"""Measures by unit in small letters."""

_NAMES = "jan ene|feb fév|mar mär|apr avr abr|may mai|jun|jul|aug aoû ago|sep|oct okt|nov|dec dez déc dic"
_MONTHS = {word: f"{place:02}" for place, words in enumerate(_NAMES.split("|"), 1) for word in words.split()}
_TIME = (
    r"(?:,?[T ]\s?(?P<time>99?:99(?::99(?:\.9+)?)?)(?P<half> ?[AaPp]\.?[Mm]\.?)?"
    r"(?P<zone> ?(?:Z|UTC|GMT|[-+]99:?99))?)?"
)
_WEEKDAY, _DAY, _MONTH = (
    r"(?:[^\W\d_]{2,9}\.?,? )?",
    r"99?(?:st|nd|rd|th|\.)?",
    r"(?P<month>[^\W\d_]{3,10})\.?",
)
_DATES = {
    name: re.compile(pattern + _TIME)
    for name, pattern in {
        "YYYY{0}MM{0}DD": r"9999(?P<sep>[-/.])99(?P=sep)99",
        "YYYY{0}MM": r"9999(?P<sep>[-/])99",
        "YYYYMMDD": r"99999999",
        "AA{0}BB{0}{1}": r"99?(?P<sep>[-/.])99?(?P=sep)(?P<year>9999|99)",
        "D{0}{2}{0}{1}": rf"{_WEEKDAY}{_DAY}(?P<sep>[- .]?){_MONTH}[-, .]{{1,2}}(?P<year>9999|99)",
        "{2} D, {1}": rf"{_WEEKDAY}{_MONTH} {_DAY},? (?P<year>9999)",
        "{2} {1}": rf"{_MONTH}[- ]'?(?P<year>9999|99)",
    }.items()
}


class _Number(NamedTuple):
    """A number's form: what stands around it, and the marks in it.

    Attributes:
        groups: The mark between thousands, or ``""``.
        decimal: The mark before decimals, or ``""``; ``?`` where ``groups`` may be it as well: ``1.234``.
        plain: True if a CAST reads it.
    """

    before: str
    after: str
    brackets: bool
    groups: str
    decimal: str
    plain: bool

    @property
    def mark(self) -> str:
        """The mark before decimals as far as this form tells it."""
        by_groups = {",": ".", ".": ","}.get(self.groups, "")
        return self.decimal if self.decimal in (",", ".") else by_groups if self.decimal != "?" else ""


@lru_cache(1 << 14)
def number_form(skeleton: str) -> _Number | None:
    """Return the form of a skeleton that is a number: ``$9,999.99``, ``9.9 kg``, ``(9)``, ``99%``."""
    found = _NUMBER.fullmatch(skeleton) if "9" in skeleton else None
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    before, after = found["before"] or "", found["after"] or ""
    word = after.strip().rstrip(".")
    known = word in "%‰" or word.casefold() in UNITS or re.fullmatch(_MONEY, word)
    if not known and not (after[0] in " \u00a0" and word.isalpha()):  # any word after a blank may be a unit
        return None
    groups = found["group"] or found["lakhs"] or ""
    decimal = (found["rest"] or found["decimals"] or found["mark"] or "")[:1]
    if found["rest"] and decimal == groups:
        return None
    if found["group"] in (",", ".") and not decimal and skeleton.count(groups) == 1:
        decimal = "?"
    plain = _PLAIN.fullmatch(skeleton) is not None
    return _Number(before, after + (found["minus"] or ""), bool(found["open"]), groups, decimal, plain)


@lru_cache(1 << 14)
def date_form(skeleton: str) -> str:
    """Return the form of a skeleton that is a date, letters as in the value; ``""`` for others."""
    for name, pattern in _DATES.items():
        parts = found.groupdict("") if (found := pattern.fullmatch(skeleton)) else None
        month = parts.get("month", "") if parts else ""
        if parts is None or (month and month[:3].casefold() not in _MONTHS):
            continue
        year = "YY" if parts.get("year") == "99" else "YYYY"
        text = name.format(parts.get("sep", ""), year, "Mon" if len(month) == 3 else "Month")
        if parts["time"]:
            text += "T" if re.search(r"9T\s?9", skeleton) else " "
            text += "HH:MM:SS" if parts["time"].count(":") > 1 else "HH:MM"
            text += " AM" * bool(parts["half"]) + "+HH:MM" * bool(parts["zone"])
        return text
    return ""


def skeletons(texts: Iterable[str]) -> dict[str, list[str]]:
    """Return numbers and dates by their skeleton; none if few of the first ones are any."""
    found = defaultdict[str, list[str]](list)
    for place, text in enumerate(texts):
        each = text.strip().translate(DIGITS)
        if each in found or (len(each) <= LONGEST and "9" in each and (date_form(each) or number_form(each))):
            found[each].append(text)
        if place == TRIED and 3 * sum(map(len, found.values())) < TRIED:
            return {}
    return found


class Amount(NamedTuple):
    """A number that a text holds; its shape is ``$9,999.99`` for ``$5.50`` if others have thousands."""

    shape: str
    plain: bool
    size: float


def amounts(groups: Mapping[str, Sequence[str]], rows: Mapping[str, int]) -> dict[str, Amount]:
    """Return the number of each value that is one.

    A number that says nothing of its marks, such as 1.234 or 12, has those that are most frequent around it.

    Args:
        groups: The values by ``skeletons``.
        rows: In how many rows each value is.
    """
    numbers = {each: form for each in groups if (form := number_form(each))}
    given = {each: sum(rows[text] for text in groups[each]) for each in numbers}
    seen = defaultdict[tuple[str, str], Counter[str]](Counter)
    for each, form in numbers.items():
        if form.mark:
            seen[form.before, form.after][form.mark] += given[each]
        elif (
            form.decimal == "?" and form.groups == ","
        ):  # before just three digits it seldom has decimals after it
            seen[form.before, form.after]["."] += 0
    anywhere = sum(seen.values(), Counter[str]()) or {".": 1}
    marks, thousands, fractions = {}, dict[Any, str](), set[Any]()
    for each, form in numbers.items():
        usual = seen.get((form.before, form.after)) or anywhere
        mark = marks[each] = form.mark or max(usual, key=usual.__getitem__)
        if form.groups and form.groups != mark:
            thousands[form.before, form.after, mark] = form.groups + "999"
        if mark in (form.decimal, form.groups):
            fractions.add((form.before, form.after, mark))
    found = {}
    for each, form in numbers.items():
        around = form.before, form.after, (mark := marks[each])
        body = "9" + thousands.get(around, "") + f"{mark}99" * (around in fractions)
        shape = f"{form.before}{body}{form.after}"
        for text in groups[each]:
            found[text] = Amount(f"({shape})" if form.brackets else shape, form.plain, number(text, mark))
    return found


def number(text: str, decimal: str = ".") -> float:
    """Return the number in a text, whatever stands around it; in brackets it is negative; 0 for none."""
    if decimal == ".":
        try:
            return float(text)  # most are plain, and this is ten times as fast
        except ValueError:
            pass
    kept = "".join(c for c in text if c.isdigit() or c in (decimal, "e", "E", "-", "−"))
    found = re.search(r"[-−]?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE]-?\d+)?", kept)
    value = float(found[0].replace(",", ".").replace("−", "-")) if found else 0.0
    return -value if text.lstrip().startswith("(") else value


def ordered(form: str, order: str) -> str:
    """Return a form of dates with day first, for ``DM``, or month first, for ``MD``."""
    return form.replace("AA", 2 * order[0]).replace("BB", 2 * order[1])


@lru_cache(1 << 14)
def read_date(text: str, orders: frozenset[str] = frozenset()) -> tuple[str, frozenset[str]]:
    """Return a date's form and the days that it may be, in ISO form; months are ``2024-03``.

    Of ``03/04/2024`` these are two, unless ``orders`` has ``DD`` or ``MM`` alone, which is then first.
    The form of ``13/02/2024`` is ``DD/MM/YYYY``.
    """
    text = text.strip()
    form, digits = date_form(text.translate(DIGITS)), re.findall(r"\d+", text)
    found = list[Sequence[str]]()
    if form.startswith("YYYYMMDD"):
        found = [(text[:4], text[4:6], text[6:8])] if "1900" <= text[:4] <= "2100" else []
    elif form.startswith("YYYY"):
        found = [digits[: 3 if "DD" in form else 2]]
    elif form.startswith("AA"):
        first, second, year = digits[:3]
        both = {"DD": (year, second, first), "MM": (year, first, second)}
        found = [day for order, day in both.items() if order in orders or orders.isdisjoint(both)]
        order = "DM" if int(first) > 12 else "MD" if int(second) > 12 else ""
        form = ordered(form, order) if order else form
    elif form:
        words = (word[:3].casefold() for word in re.findall(r"[^\W\d_]+", text))
        month = next((_MONTHS[word] for word in words if word in _MONTHS), "")
        found = [(digits[1], month, digits[0]) if "D" in form else (digits[0], month)]
    iso = set[str]()
    for year, *rest in found:
        century = "" if len(year) == 4 else "20" if int(year) < 70 else "19"
        day = "-".join([century + year, *(part.zfill(2) for part in rest)])
        with suppress(ValueError):
            date.fromisoformat(day if len(rest) == 2 else f"{day}-01")
            iso.add(day)
    return form, frozenset(iso)
