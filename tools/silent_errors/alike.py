"""Values of a column written alike: each number, day or word as most rows have it."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping
from typing import TypeAlias

from quorum.knowledge.profile.columns import RowsOf, plain_text, unpadded
from quorum.knowledge.profile.forms import amounts, read_date, skeletons
from quorum.knowledge.profile.model import ColumnProfile, Kind

Alike: TypeAlias = dict[str, str | None]
"""Values, and what is written for each; NULL for one that says that there is none."""

_CURRENCIES = {"$": "USD", "€": "EUR", "£": "GBP", "euro": "EUR", "dollar": "USD", "pound": "GBP"}
_MEASURES = (
    "µg 1e-6 mg .001 g 1 kg 1e3 t 1e6 oz 28.349523125 lb 453.59237 lbs 453.59237",
    "mm .001 cm .01 m 1 km 1e3 in .0254 ft .3048 yd .9144 mi 1609.344",
    "ml .001 cl .01 dl .1 l 1 hl 100",
    "wh 1 kwh 1e3 mwh 1e6 gwh 1e9",
    "w 1 kw 1e3 mw 1e6 gw 1e9",
    "ms .001 s 1 sec 1 min 60 h 3600 hr 3600 hrs 3600 d 86400",
    "g/l 1 mg/dl .01 mg/l .001 µg/l 1e-6 g/dl 10",
    "k 1e3 m 1e6 mio 1e6 million 1e6 bn 1e9 billion 1e9",
)
_FACTORS = [dict(zip(each.split()[::2], map(float, each.split()[1::2]), strict=True)) for each in _MEASURES]
_BODY = re.compile(r"(?P<before>[^9]*)9(?:(?P<group>\D)999)?(?:(?P<mark>\D)99)?(?P<after>[^9]*)")
_PLAIN = re.compile(r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?")


def factor(unit: str, other: str) -> float | None:
    """Return what turns an amount in one unit into the other: 0.001 for g and kg; None if nothing does."""
    one, two = (each.strip().rstrip(".").casefold() for each in (unit, other))
    return next((each[one] / each[two] for each in _FACTORS if one in each and two in each), None)


def written_alike(counted: RowsOf, profile: ColumnProfile, named: frozenset[str]) -> Alike:
    """Return the values that are not written as most of the column are, with what would be.

    Args:
        named: Texts in the query; the spelling of a word that it names is the one that counts.
    """
    stand_ins = {text for text, _ in profile.no_value}
    real = {text: rows for text, rows in counted.items() if text not in stand_ins}
    if profile.kind is Kind.NUMBER:
        return _numbers(real)[0]
    return _dates(real, profile) if profile.kind is Kind.DATE else _words(real, profile, named)


def typed(counted: RowsOf, profile: ColumnProfile) -> Alike:
    """Return the number, or the ISO date, in each text that a CAST does not read as one."""
    if profile.kind is Kind.NUMBER:
        sizes = _numbers(counted)[1]
        odd = [t for t in counted if not _PLAIN.fullmatch(t.strip()) or float(t) != sizes.get(t)]
        return {text: repr(sizes[text]) if text in sizes else None for text in odd}
    read = _read(counted, profile)
    made = {text: _day(f"YYYY-MM-DD{_clock(form)}", text, form, of) for text, (form, of) in read.items()}
    return {text: day for text, day in made.items() if day and day != text}


def _read(texts: Iterable[str], profile: ColumnProfile) -> dict[str, tuple[str, frozenset[str]]]:
    """Return the form of each date, and the days that it may be."""
    orders = frozenset(form.text[:2] for form in profile.forms)
    return {text: read_date(text, orders) for text in texts}


def _usual(shapes: Mapping[str, str], counted: RowsOf) -> str:
    """Return the form of most rows, but none with a month's name, or the brackets that mean minus."""
    rows = defaultdict[str, int](int)
    for text, shape in shapes.items():
        rows[shape] += 0 if "(" in shape or "Mon" in shape else counted[text]
    return max(rows, key=rows.__getitem__, default="")


def _numbers(counted: RowsOf) -> tuple[Alike, dict[str, float]]:
    """Return numbers in the usual form, and the size of each in the usual unit."""
    numbers = amounts(skeletons(counted), counted)
    shapes = {text: each.shape for text, each in numbers.items()}
    usual = _BODY.fullmatch(_usual(shapes, counted))
    found, sizes = Alike(), {text: each.size for text, each in numbers.items()}
    for text, shape in shapes.items() if usual else ():
        form = _BODY.fullmatch(shape.strip("()"))
        if usual and form and shape != usual[0]:
            scale = _scale(_unit(form), _unit(usual), sizes[text])
            if scale is not None:
                sizes[text] *= scale
                found[text] = _number(sizes[text], usual)
    return found, sizes


def _scale(one: str, two: str, size: float) -> float | None:
    """Return what turns a number in one unit into the other; None where that is not known."""
    if one == two or ("" in (one, two) and (one or two) in _CURRENCIES.values()):
        return 1.0
    if {one, two} == {"%", ""}:
        return 0.01 if one else 100.0 if abs(size) <= 1 else None
    return factor(one, two)


def _unit(form: re.Match[str]) -> str:
    """Return the unit, currency or ``%`` around a number."""
    unit = f"{form['before']}{form['after']}".strip(" +-−").rstrip(".")
    return _CURRENCIES.get(unit.casefold().rstrip("s"), unit)


def _number(size: float, form: re.Match[str]) -> str:
    whole, _, rest = f"{abs(size):,.10f}".rstrip("0").partition(".")
    fraction = (form["mark"] or ".") + rest.ljust(2, "0") if rest or form["mark"] else ""
    return (
        "-" * (size < 0) + form["before"] + whole.replace(",", form["group"] or "") + fraction + form["after"]
    )


def _dates(counted: RowsOf, profile: ColumnProfile) -> Alike:
    """Return days in the usual form; one that may be two days stays, and one with a time that most lack."""
    read = _read(counted, profile)
    shapes = {text: form for text, (form, found) in read.items() if found}
    usual = _usual(shapes, counted)
    made = {text: _day(usual, text, form, read[text][1]) for text, form in shapes.items() if form != usual}
    return {text: day for text, day in made.items() if day}


def _clock(form: str) -> str:
    """Return the time in a date's form, with what divides it from the day."""
    return found[0] if (found := re.search(r"[ T]HH.*", form)) else ""


def _day(usual: str, text: str, form: str, meant: frozenset[str]) -> str:
    """Return a date in another form; ``""`` if it may be several days, or one form says more."""
    year, month, *rest = next(iter(meant), "--").split("-")
    if len(meant) != 1 or not rest or _clock(form) != _clock(usual) or re.search("AA|Mon|MM$|^MM.Y", usual):
        return ""
    parts = {"YYYY": year, "YY": year[2:], "MM": month, "DD": rest[0]}
    day = re.sub("YYYY|YY|MM|DD", lambda part: parts[part[0]], usual.removesuffix(_clock(usual)))
    return day + (found[0] if (found := re.search(r"[ T]\d\d?:.*", text.strip())) else "")


def _words(counted: RowsOf, profile: ColumnProfile, named: frozenset[str]) -> Alike:
    """Return each spelling of a word as the query names it, else as most rows have it."""
    sides = {word.strip().casefold(): nth for nth, words in enumerate(profile.variants) for word in words}

    def meant(text: str) -> Hashable:
        folded = text.strip().casefold()
        if profile.kind is Kind.FLAG:
            return sides.get(folded, text)
        return unpadded(folded) if profile.kind is Kind.CODE else plain_text(text)

    groups = defaultdict[Hashable, list[str]](list)
    for text in sorted(counted, key=lambda text: -counted[text]):
        groups[meant(text)].append(text)
    found: Alike = {}
    for texts in groups.values():
        usual = next((text for text in texts if text in named), texts[0])
        found |= {text: usual for text in texts if text != usual and text not in named}
    return found
