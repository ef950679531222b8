"""Forms of single values: numbers with what stands around them, and dates.

They are read from a value's skeleton, in which each digit is a 9: a thousand values have a few.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import NamedTuple

DIGITS = str.maketrans("0123456789", "9999999999")
LONGEST = 40
"""Characters of a value that may be a number or a date."""

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

_MONTHS = "jan feb mar apr may jun jul aug sep oct nov dec mär mai okt dez fév avr aoû déc ene abr ago dic"
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


class Number(NamedTuple):
    """A number's form.

    Attributes:
        before, after: A currency, a unit, a sign of percent, with their blanks.
        brackets: True if brackets stand for minus.
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


@lru_cache(1 << 14)
def number_form(skeleton: str) -> Number | None:
    """Return the form of a skeleton that is a number: ``$9,999.99``, ``9.9 kg``, ``(9)``, ``99%``."""
    found = _NUMBER.fullmatch(skeleton)
    if found is None or bool(found["open"]) != bool(found["close"]) or not _is_suffix(found["after"] or ""):
        return None
    groups = found["group"] or found["lakhs"] or ""
    decimal = (found["rest"] or found["decimals"] or found["mark"] or "")[:1]
    if found["rest"] and decimal == groups:
        return None
    if found["group"] in (",", ".") and not decimal and skeleton.count(groups) == 1:
        decimal = "?"
    after = (found["after"] or "") + (found["minus"] or "")
    plain = _PLAIN.fullmatch(skeleton) is not None
    return Number(found["before"] or "", after, bool(found["open"]), groups, decimal, plain)


def _is_suffix(after: str) -> bool:
    """True for a unit, a currency, a percent sign; and for any word that a blank divides from the number."""
    word = after.strip().rstrip(".")
    known = word in "%‰" or word.casefold() in UNITS or re.fullmatch(_MONEY, word) is not None
    return known or (after[0] in " \u00a0" and word.isalpha())


@lru_cache(1 << 14)
def date_form(skeleton: str) -> str:
    """Return the form of a skeleton that is a date, letters as in the value; ``""`` for others."""
    for name, pattern in _DATES.items():
        parts = found.groupdict("") if (found := pattern.fullmatch(skeleton)) else None
        month = parts.get("month", "") if parts else ""
        if parts is None or (month and month[:3].casefold() not in _MONTHS.split()):
            continue
        year = "YY" if parts.get("year") == "99" else "YYYY"
        text = name.format(parts.get("sep", ""), year, "Mon" if len(month) == 3 else "Month")
        if parts["time"]:
            text += "T" if re.search(r"9T\s?9", skeleton) else " "
            text += "HH:MM:SS" if parts["time"].count(":") > 1 else "HH:MM"
            text += " AM" * bool(parts["half"]) + "+HH:MM" * bool(parts["zone"])
        return text
    return ""


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
