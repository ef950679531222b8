"""Profiles of a table's columns from rows of it.

An oddity is a fact about the values. Where a value may be what it says, it is none: ``NA`` among countries,
99 among ages.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from statistics import fmean
from typing import Any, TypeAlias

from quorum.knowledge.catalog import Column, ColumnRef, Table
from quorum.knowledge.profile.forms import (
    LONGEST,
    UNITS,
    amounts,
    date_form,
    number,
    ordered,
    read_date,
    skeletons,
)
from quorum.knowledge.profile.model import ColumnProfile, Counts, KeyMatch, Kind, ValueForm

RowsOf: TypeAlias = Mapping[str, int]
"""How many rows have each value."""

NEARLY = 0.8
"""Share of the rows with a value that must be numbers (dates, codes) for the column to be one of them."""
LEAST_ROWS = 8
"""Rows with a value below which nothing is said: the samples show them."""
FEW = 12
"""Values of a column that may be units."""
FEWEST = 5
"""Different values of a key."""
UNIQUE = 0.9
"""Values by rows from which a column is a key: rows may be duplicates, or have been read twice."""
RELATED = 0.25
"""Share of the values that have a partner, of columns that refer to each other."""

_EMPTY = "|n/a|#n/a|n.a.|null|(null)|<null>|nan|\\n|-|--|---|?|.|not available|not applicable|no data|(blank)"
NO_VALUE = frozenset(_EMPTY.split("|"))
"""Texts that stand for NULL, in small letters."""
PERHAPS = frozenset(("none", "na", "nil", "unknown", "missing", "tbd", "undefined", "pending"))
"""Texts that may be a value of their own: they count beside others, or among numbers and dates."""
WORDS = NO_VALUE | PERHAPS
YES = frozenset(("yes", "y", "true", "t", "1", "on", "ja", "oui", "si", "sí"))
NO = frozenset(("no", "n", "false", "f", "0", "off", "nein", "non"))
_TOTALS = re.compile(
    r"(?:grand |sub-?)?totals?\b.*|.* (?:sub-?)?totals?|(?:all|overall|sum|gesamt|summe|insgesamt|suma)\b.*",
    re.I,
)
_CODE = re.compile(r"[A-Za-z]{0,6}[-_/. #]?\d+(?:[-_/.]?[A-Za-z0-9]+){0,3}")
_NUMBERED = re.compile(r"\s*(?:0\d+|\+\d{8,})\s*")
"""Whole numbers with leading zeros, and phones."""
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")
_STRANGE = re.compile(
    r"0|(?:-[19]|-?9{2,}|-9+|-?8{3,})(?:\.[09]+)?"
    r"|(?:1900-01-01|1899-12-3[01]|1970-01-01|000\d-\d\d-\d\d|1[78]00-01-01|[2-9]\d99-12-31|1111-11-11).*"
    r"|0?1[/.]0?1[/.](?:1900|1970|0001).*|(?:31[/.]12|12[/.]31)[/.][2-9]\d99.*"
)
"""Numbers and days that often stand for something else."""


def profiles(columns: Mapping[str, Sequence[Any]], *, whole: bool) -> dict[str, ColumnProfile]:
    """Return the profiles of columns by name, from the texts of their values; what is no text is NULL.

    Args:
        columns: The values of each in the same rows, in the same order.
        whole: True if these are all rows of the table.
    """
    found = {name: _profile(texts, whole) for name, texts in columns.items()}
    numbers = [columns[name] for name, each in found.items() if each.kind is Kind.NUMBER]
    for name, each in found.items():
        if each.forms or each.kind not in (Kind.NUMBER, Kind.DATE):
            found[name] = _with_totals(each, columns[name], numbers)
    return found


def unpadded(key: str) -> str:
    """Return a key without outer blanks and leading zeros: ``" C00046"`` is ``C46``."""
    return _ZEROS.sub("", key.strip()) if "0" in key else key.strip()


def _profile(texts: Sequence[Any], whole: bool) -> ColumnProfile:
    counted, rows = Counter(text for text in texts if isinstance(text, str)), len(texts)
    profile = ColumnProfile(rows, whole, unique=len(counted) == rows > 1 and (whole or None))
    words = {text: word for text in counted if (word := text.strip().casefold()) in WORDS}
    rest = {text: n for text, n in counted.items() if text not in words}
    given = sum(rest.values())
    if given >= LEAST_ROWS:
        profile = (
            _of_flags(profile, rest) or _of_amounts(profile, rest, NEARLY * given) or _of_texts(profile, rest)
        )
    missing = [text for text, word in words.items() if word and word in NO_VALUE]
    perhaps, empty = [t for t in words if words[t] in PERHAPS], [t for t in words if not words[t]]
    if profile.kind in (Kind.NUMBER, Kind.DATE) or missing or len(perhaps) > 1:
        missing += perhaps
    if missing or len(empty) > 1 or rows > counted.total():
        missing += empty
    if given and not any(c.isalnum() for text in rest for c in text):  # + and -
        return profile
    return replace(profile, no_value=_counts(missing, counted))


def _counts(texts: Iterable[str], rows: RowsOf) -> Counts:
    return tuple(sorted(((text, rows[text]) for text in texts), key=lambda each: -each[1]))


def _of_flags(profile: ColumnProfile, rest: RowsOf) -> ColumnProfile | None:
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


def _of_amounts(profile: ColumnProfile, rest: RowsOf, sure: float) -> ColumnProfile | None:
    """Return the profile of numbers or dates; None if fewer rows than ``sure`` have one."""
    groups = skeletons(rest)
    dates = {text: form for each, texts in groups.items() if (form := date_form(each)) for text in texts}
    if any(form.endswith("BB.YY") for form in dates.values()):  # versions, unless all could be days
        dates = dates if all(text in dates or not re.search(r"\d", text) for text in rest) else {}
    if sum(rest[text] for text in dates) >= sure:
        read = {text: read_date(text) for text, form in dates.items() if not form.startswith("YYYY-MM")}
        plain = {text for text in dates if text not in read and text.strip()[5:7] <= "12"}
        if len(plain) + sum(1 for _, days in read.values() if days) >= 0.95 * len(dates):
            dates = _settled(dates | {text: form for text, (form, _) in read.items()})
            iso = {form for form in dates.values() if form.startswith("YYYY-MM-DD")}
            return _formed(replace(profile, kind=Kind.DATE), rest, dates, iso, {text: text for text in dates})
    found = amounts(groups, rest)
    shapes = {text: each.shape for text, each in found.items()}
    codes = {*shapes.values()} <= {"9 999", "9'999", "9’999"} or any(map(_NUMBERED.fullmatch, found))
    if codes or sum(rest[text] for text in found) < sure:
        return None
    bare = {*shapes.values()} - {each.shape for each in found.values() if not each.plain}
    sizes = {text: each.size for text, each in found.items()}
    return _formed(replace(profile, kind=Kind.NUMBER), rest, shapes, bare, sizes)


def _settled(shapes: dict[str, str]) -> dict[str, str]:
    """Return the forms; a date of either order has the only order that others have, with dots day first."""
    seen = {*shapes.values()}
    for unsure in [form for form in seen if form.startswith("AA")]:
        dotted = ordered(unsure, "DM") if "." in unsure else ""
        sure = [form for order in ("DM", "MD") if (form := ordered(unsure, order)) in seen] or [dotted]
        if len(sure) == 1 and sure[0]:
            shapes = {text: sure[0] if form == unsure else form for text, form in shapes.items()}
    return shapes


def _formed(
    profile: ColumnProfile, rest: RowsOf, shapes: Mapping[str, str], plain: set[str], sizes: Mapping[str, Any]
) -> ColumnProfile:
    """Return the profile with forms: ``shapes`` has each value's; a CAST reads ``plain``, ``sizes`` sorts."""
    groups, others = defaultdict[str, list[str]](list), defaultdict[str, list[str]](list)
    for text in rest:
        (groups if text in shapes else others)[shapes.get(text) or re.sub(r"\d", "9", text)].append(text)
    if len(others) > 3:
        others = defaultdict(list, {"other text": [text for texts in others.values() for text in texts]})
    forms = [
        ValueForm(shape, sum(rest[text] for text in texts), max(texts, key=len), shape in plain)
        for shape, texts in (groups | others).items()
    ]
    forms.sort(key=lambda form: -form.rows)
    profile = replace(profile, sentinels=_sentinels(rest, sizes))
    if len(forms) > 1 or not (forms[0].plain or forms[0].text.startswith("YYYY")):
        return replace(profile, forms=tuple(forms))
    strange = dict(profile.sentinels)
    kept = sorted((text for text in sizes if text not in strange), key=sizes.__getitem__)
    return replace(profile, low=kept[0], high=kept[-1], exact=profile.whole)


def _sentinels(rest: RowsOf, sizes: Mapping[str, Any]) -> Counts:
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

    return _counts((text for text in strange if far(size[text], rest[text])), rest)


def _of_texts(profile: ColumnProfile, rest: RowsOf) -> ColumnProfile:
    """Return the profile of units, codes or other texts."""
    measures = Counter(UNITS.get(text.strip().casefold(), "") for text in rest if len(rest) <= FEW)
    if "" not in measures and max(measures.values(), default=0) > 1 < max(len(text.strip()) for text in rest):
        return replace(profile, units=_counts(rest, rest))
    codes = [text for text in rest if len(text) <= LONGEST and _CODE.fullmatch(text.strip())]
    code = sum(rest[text] for text in codes) >= NEARLY * sum(rest.values())
    spellings = defaultdict[str, list[str]](list)
    for text in sorted(rest, key=lambda text: -rest[text]):
        spellings[text.strip().casefold() if code else plain_text(text)].append(text)
    variants = tuple(tuple(each) for each in spellings.values() if len(each) > 1)
    padded = [each[0] for each in spellings.values() if len(each) == 1 and each[0] != each[0].strip()]
    rows = sum(rest[text] for each in variants for text in each[1:])
    kind, blanks = Kind.CODE if code else Kind.TEXT, _counts(padded, rest)
    return replace(profile, kind=kind, padded=blanks, variants=variants, variant_rows=rows)


def plain_text(text: str) -> str:
    """Return a text without case, accents and runs of blanks; of words without dots and inner hyphens too."""
    text = " ".join(text.casefold().split())
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    if not text.replace(" ", "").isalpha() and not any(map(str.isdigit, text)):
        text = " ".join(re.sub(r"(?<=\w)[-_](?=\w)", " ", text.replace(".", "")).split())
    return text


def _with_totals(
    profile: ColumnProfile, texts: Sequence[Any], numbers: Sequence[Sequence[Any]]
) -> ColumnProfile:
    """Return the profile with values such as ``Total``, where numbers of their rows are larger."""
    totals = [text for text in {*texts} if isinstance(text, str) and _TOTALS.fullmatch(text.strip())]
    for column in numbers if totals else ():
        sizes = defaultdict[bool, list[float]](list)
        for text, amount in zip(texts, column, strict=True):
            if isinstance(amount, str):
                sizes[text in totals].append(number(amount))
        if sizes[True] and sizes[False] and fmean(sizes[True]) > 1.9 * fmean(sizes[False]) > 0:
            rest = _profile([None if text in totals else text for text in texts], profile.whole)
            return replace(rest, totals=_counts(sorted(totals), Counter(texts)))
    return profile


def key_values(texts: Sequence[Any], profile: ColumnProfile) -> RowsOf | None:
    """Return the rows by value of a column of codes, whole numbers or single words; None for any other."""
    if profile.kind in (Kind.DATE, Kind.FLAG) or (profile.kind is Kind.NUMBER and profile.forms):
        return None
    counted = Counter(text for text in texts if isinstance(text, str))
    words = profile.kind is Kind.TEXT and any(" " in text.strip() for text in counted)
    long = any(len(text) > LONGEST or "." in text for text in counted)
    return None if words or long or len(counted) < FEWEST else counted


def with_key_matches(tables: Sequence[Table], keys: Mapping[ColumnRef, RowsOf]) -> list[Table]:
    """Return the tables, in which columns know what their values need to match another table's key.

    A column refers to a key by a foreign key, by its name, or as ``customer_id`` to ``customers.id``.
    """
    named = defaultdict[str, dict[ColumnRef, None]](dict)
    for (table, column), values in keys.items():
        if len(values) > UNIQUE * sum(values.values()):
            last, own = _folded(table.rpartition(".")[2]), _folded(column)
            for start in ("", last, last.removesuffix("s"), last.removesuffix("es")):
                named[start + own][table, column] = None
    declared = {
        (table.full_name, key.columns[0]): {(key.ref_table, key.ref_columns[0]): None}
        for table in tables
        for key in table.foreign_keys
        if len(key.columns) == len(key.ref_columns) == 1
    }
    plain = cache(lambda place: {key: unpadded(key).casefold() for key in keys[place]})
    found = defaultdict[ColumnRef, list[KeyMatch]](list)
    for place in keys:
        for other in named[_folded(place[1])] | declared.get(place, {}):
            differ = other[0] != place[0] and other in keys and keys[place].keys() - keys[other].keys()
            if differ and (match := _match(keys[place], plain(place), other, plain(other))):
                found[place].append(match)

    def with_matches(table: str, column: Column) -> Column:
        matches, profile = found.get((table, column.name)), column.profile
        return (
            replace(column, profile=replace(profile, keys=tuple(matches))) if matches and profile else column
        )

    return [replace(t, columns=tuple(with_matches(t.full_name, c) for c in t.columns)) for t in tables]


def _folded(name: str) -> str:
    return name.casefold().replace("_", "").replace(" ", "")


def _match(
    rows: RowsOf, values: Mapping[str, str], place: ColumnRef, keys: Mapping[str, str]
) -> KeyMatch | None:
    """Return what values need to match the keys; both have their plain text. None if they need nothing."""
    partners = {plain: key for key, plain in keys.items()}
    odd = {text: partners[values[text]] for text in values if text not in keys and values[text] in partners}
    number, matched = sum(rows[text] for text in odd), sum(rows[t] for t in values if values[t] in partners)
    related = len(odd) + len(values.keys() & keys.keys()) >= RELATED * min(len(values), len(keys))
    if number < 2 or not related or len(partners) < len(keys):
        return None
    steps = {
        "trim": any(text.strip() != text or key.strip() != key for text, key in odd.items()),
        "case": any(unpadded(text) != unpadded(key) for text, key in odd.items()),
        "zeros": any(text.strip().casefold() != key.strip().casefold() for text, key in odd.items()),
    }
    after = tuple(step for step, needed in steps.items() if needed)
    share = sum(rows.values()) / matched
    return KeyMatch(*place, after, round(number * share), max(odd, key=rows.__getitem__))
