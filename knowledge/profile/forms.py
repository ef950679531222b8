"""Forms of single values: numbers with what stands around them, and dates.

A value is looked at by its skeleton, in which each digit is a 9: a thousand values have a few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

DIGITS = str.maketrans("0123456789", "9999999999")
LONGEST = 40
"""Characters of a value that may be a number or a date."""

_MARK = r"[$€£¥₹₽₩₪₺₫₦₱฿]"
CURRENCIES = (
    "USD EUR GBP JPY CHF CAD AUD NZD CNY INR SEK NOK DKK PLN CZK HUF RON BGN TRY ILS RUB UAH BRL MXN ARS CLP COP"
    " PEN ZAR KRW SGD HKD TWD THB MYR IDR PHP VND AED SAR EGP NGN KES"
).split()
_MONEY = rf"(?:[A-Z]{{1,3}}\$|{_MARK}|{'|'.join(CURRENCIES)}|[Kk]r\.?|Rs\.?|Fr\.?|zł|[Dd]ollars?|[Ee]uros?|[Pp]ounds?)"
_BODY = (
    r"9{1,3}(?:(?P<group>[,.'’ \u00a0\u202f])999)(?:(?P=group)999)*(?:[.,]9+)?|9{1,2}(?:,99)+,999(?:\.9+)?"
)
_NUMBER = re.compile(
    rf"(?P<open>\()?[-+−]? ?(?P<before>{_MONEY}|[<>≤≥~≈]=?)? ?[-+−]?"
    rf"(?P<body>{_BODY}|9+[.,]9*|[.,]9+|9+)(?P<exponent>[eE][-+]?9+)?"
    r"(?P<after>[ \u00a0]?(?:[%‰]|[^\W\d_]{1,12}\.?|[°µμΩ$€£¥₹]?[A-Za-z]{0,4}[²³]?(?:/[A-Za-z]{1,5}[²³]?)?))?"
    r"(?P<close>\))?-?"
)
_PLAIN = re.compile(r"[-+]?(?:9+(?:\.9*)?|\.9+)(?:[eE][-+]?9+)?")
UNITS: Mapping[str, str] = {
    unit: measure
    for measure, units in {
        "mass": "mg g kg t lb lbs oz st ton tons µg gram grams kilogram kilograms pound pounds ounce ounces",
        "length": "mm cm m km in ft yd mi mile miles meter meters metre metres feet inch inches nm nmi",
        "area": "m² km² ha ac acre acres sqm sqft ft² m2 km2",
        "volume": "ml cl dl l hl gal oz fl pt qt liter liters litre litres gallon gallons m³ m3",
        "energy": "j kj mj wh kwh mwh gwh kcal cal btu",
        "power": "w kw mw gw hp ps",
        "time": "ms s sec secs second seconds min mins minute minutes h hr hrs hour hours d day days week weeks"
        " month months year years",
        "size": "b kb mb gb tb kib mib gib",
        "speed": "km/h kmh kph mph m/s kn knots",
        "temperature": "°c °f c f k",
        "concentration": "mg/dl g/l mg/l µg/l mmol/l g/dl ppm ppb ng/ml µmol/l",
        "scale": "k m bn b million billion thousand mio mrd tsd",
    }.items()
    for unit in units.split()
}
"""What a unit measures, the unit in small letters."""

_MONTHS = (
    "jan feb mar apr may jun jul aug sep oct nov dec mär mai okt dez fév avr aoû déc ene abr ago dic".split()
)
_TIME = r"(?:,?[T ]\s?(?P<time>99?:99(?::99(?:\.9+)?)?)(?P<half> ?[AaPp]\.?[Mm]\.?)?(?P<zone> ?(?:Z|UTC|GMT|[-+]99:?99))?)?"
_DATES = [
    (name, re.compile(pattern + _TIME))
    for name, pattern in {
        "Y": r"9999(?:(?P<sep>[-/.])99(?P=sep)99|[-/]99)",
        "YMD": r"99999999",
        "AB": r"99?(?P<sep>[-/.])99?(?P=sep)(?P<year>9999|99)",
        "DM": r"(?:[^\W\d_]{2,9}\.?,? )?(?P<dot>99?(?:st|nd|rd|th|\.)?)(?P<sep>[- .]?)(?P<month>[^\W\d_]{3,10})\.?[-, .]{1,2}(?P<year>9999|99)",
        "MD": r"(?:[^\W\d_]{2,9}\.?,? )?(?P<month>[^\W\d_]{3,10})\.? 99?(?:st|nd|rd|th)?,? (?P<year>9999)",
        "MY": r"(?P<month>[^\W\d_]{3,10})\.?[- ]'?(?P<year>9999|99)",
    }.items()
]


@dataclass(frozen=True)
class Number:
    """A number's form.

    Attributes:
        before, after: A currency, a unit, a sign of percent, with their blanks; ``()`` in ``before`` if brackets mean minus.
        groups: The mark between thousands, or ``""``.
        decimal: The mark before decimals, or ``""``; ``?`` where ``groups`` may be it as well: ``1.234``.
        plain: True if a CAST reads it.
    """

    before: str
    after: str
    groups: str
    decimal: str
    plain: bool


@dataclass(frozen=True)
class Date:
    """A date's form: ``text``, in which ``DD/MM`` and ``MM/DD`` is ``AA/BB`` as long as it is not known."""

    text: str
    plain: bool


@lru_cache(1 << 14)
def number_form(skeleton: str) -> Number | None:
    """Return the form of a skeleton that is a number: ``$9,999.99``, ``9.9 kg``, ``(9)``, ``99%``."""
    found = _NUMBER.fullmatch(skeleton)
    if found is None or bool(found["open"]) != bool(found["close"]):
        return None
    body, group, after = found["body"], found["group"] or "", found["after"] or ""
    if found["after"] and not _is_suffix(after):
        return None
    before = skeleton[found.start("before") : found.start("body")].rstrip("-+−") if found["before"] else ""
    decimal = ""
    if group:
        decimal = next(
            (mark for mark in ",." if mark != group and body.rpartition("999")[0] and mark in body), ""
        )
        decimal = decimal or ("?" if group in ",." and body.count(group) == 1 else "")
    elif body.count(",") > 1:  # in lakhs
        group, decimal = ",", "." if "." in body else ""
    else:
        decimal = next((mark for mark in ",." if mark in body), "")
    plain = bool(_PLAIN.fullmatch(skeleton))
    return Number(("()" if found["open"] else "") + before, after, group, decimal, plain)


def _is_suffix(after: str) -> bool:
    """True for a unit, a currency, a percent sign; any word that a blank divides from the number."""
    word = after.strip().rstrip(".")
    known = word in "%‰" or word.casefold() in UNITS or re.fullmatch(_MONEY, word) is not None
    return known or (
        after[:1] in " \u00a0" and word.isalpha() and word.casefold() not in ("st", "nd", "rd", "th")
    )


@lru_cache(1 << 14)
def date_form(skeleton: str) -> Date | None:
    """Return the form of a skeleton that is a date; letters of a skeleton are those of the value."""
    for name, pattern in _DATES:
        found = pattern.fullmatch(skeleton)
        if found is None:
            continue
        parts = found.groupdict()
        month = parts.get("month") or ""
        if month and month[:3].casefold() not in _MONTHS:
            continue
        sep = parts.get("sep") or next((mark for mark in "-/" if name == "Y" and mark in skeleton[:5]), "")
        year = "YYYY" if len(parts.get("year") or "9999") == 4 else "YY"
        word = "Mon" if len(month) == 3 else "Month"
        day = skeleton[: found.start("time")] if parts["time"] else skeleton
        text = {
            "Y": sep.join(["YYYY", "MM", "DD"][: day.count(sep) + 1]),
            "YMD": "YYYYMMDD",
            "AB": f"AA{sep}BB{sep}{year}",
            "DM": f"D{sep}{word}{sep}{year}",
            "MD": f"{word} D, {year}",
            "MY": f"{word} {year}",
        }[name]
        if parts["time"]:
            mark = "T" if re.search(r"9T\s?9", skeleton) else " "
            text += mark + ["HH:MM", "HH:MM:SS"][parts["time"].count(":") - 1]
            text += " AM" if parts["half"] else ""
            text += "+HH:MM" if parts["zone"] else ""
        return Date(text, plain=name == "Y" and sep == "-" and day.count("-") == 2)
    return None


def number(text: str, decimal: str = ".") -> float:
    """Return the number in a text, whatever stands around it; in brackets it is negative. 0 if there is none."""
    digits = "".join(c for c in text if c.isdigit() or c == decimal or c in "eE-−").replace("−", "-")
    found = re.search(r"-?(?:\d+[.,]?\d*|[.,]\d+)(?:[eE]-?\d+)?", digits)
    value = float(found[0].replace(",", ".")) if found else 0.0
    return -value if text.lstrip().startswith("(") else value
