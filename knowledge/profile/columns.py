"""Profiles of a table's columns, from the texts of some of its rows or all.

Nothing is asked here. An oddity is a fact about the values; where a value may be what it says, none is told.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from statistics import fmean
from typing import TypeAlias

from quorum.knowledge.profile.forms import (
    DIGITS,
    LONGEST,
    UNITS,
    Date,
    Number,
    date_form,
    number,
    number_form,
)
from quorum.knowledge.profile.model import ColumnProfile, Count, Form, Kind

NEARLY = 0.8
"""Share of the rows with a value that must be numbers, dates, codes for the column to be one of them."""
LEAST_ROWS = 8
"""Rows with a value below which nothing is said about forms: the samples show them."""
TRIED = 100
"""Skeletons that are read first; if few of them are numbers or dates, the others are not read."""
PADDED = 0.2
"""Share of codes without leading zeros that occur with some too, for the zeros to say nothing."""
FEW = 12
"""Values of a column that may tell which of two forms another one's are in."""

NO_VALUE = frozenset(
    "n/a|#n/a|n.a.|null|(null)|<null>|nan|\\n|-|--|---|?|.|not available|not applicable|no data".split("|")
)
"""Texts that stand for NULL wherever they occur, in small letters."""
PERHAPS = frozenset("none|na|nil|unknown|missing|tbd|undefined|pending".split("|"))
"""Texts that may be a value of their own: they count beside others, or among numbers and dates."""
YES, NO = (
    frozenset("yes y true t 1 on ja oui si sí x".split()),
    frozenset("no n false f 0 off nein non".split()),
)
TOTALS = re.compile(
    r"(?:grand |sub-?)?totals?\b.*|.* (?:sub-?)?totals?|(?:all|overall|sum|gesamt|summe|insgesamt|suma|totale)\b.*",
    re.I,
)
DAYS = re.compile(
    r"(?:1900-01-01|1899-12-3[01]|1970-01-01|0001-01-01|0000-00-00|1[78]00-01-01|[2-9]\d99-12-31|1111-11-11)"
)
_CLASSES = str.maketrans(
    dict.fromkeys("ABCDEFGHIJKLMNOPQRSTUVWXYZ", "A")
    | dict.fromkeys("abcdefghijklmnopqrstuvwxyz", "a")
    | dict.fromkeys("0123456789", "9")
)
_CODE = re.compile(r"[A-Za-z]{0,6}[-_/. #]?\d+(?:[-_/.]?[A-Za-z0-9]+){0,3}")
_RUN = re.compile(r"(.)\1+")
_ZEROS = re.compile(r"(?<!\d)0+(?=\d)")


Groups: TypeAlias = Mapping[str, Sequence[str]]
"""Different values by their skeleton."""


@dataclass(frozen=True)
class Values:
    """The values of a column in the rows that were looked at.

    Attributes:
        texts: Row by row, None for NULL.
        counted: Rows by value, without NULL.
        whole: True if these are all rows of the table.
    """

    texts: Sequence[str | None]
    counted: Counter[str]
    whole: bool


def profiles(columns: Mapping[str, Sequence[str | None]], *, whole: bool) -> dict[str, ColumnProfile]:
    """Return the profiles of columns by name.

    Args:
        columns: The values of each in the same rows, in the same order.
        whole: True if these are all rows of the table.
    """
    values = {
        name: Values(texts, Counter(text for text in texts if text is not None), whole)
        for name, texts in columns.items()
    }
    found = {name: _profile(each) for name, each in values.items()}
    found = {name: _with_order(each, values[name], values) for name, each in found.items()}
    return {name: _with_totals(each, name, values, found) for name, each in found.items()}


def normalised(key: str) -> str:
    """Return a key without outer blanks, case and leading zeros: ``" c00046"`` and ``C46`` are ``c46``."""
    return unpadded(key).casefold()


def unpadded(key: str) -> str:
    """Return a key without outer blanks and leading zeros."""
    return _ZEROS.sub("", key.strip())


def _profile(values: Values) -> ColumnProfile:
    counted, rows = values.counted, len(values.texts)
    profile = ColumnProfile(rows, values.whole, unique=values.whole and len(counted) == rows > 1)
    folded = {text: text.strip().casefold() for text in counted}
    rest = {text: n for text, n in counted.items() if folded[text] not in NO_VALUE}
    given = sum(rest.values())
    if given < LEAST_ROWS:
        return profile
    maybe = {text: n for text, n in rest.items() if folded[text] in PERHAPS}
    if _are_flags({folded[text] for text in rest} - PERHAPS):
        return _with_no_value(_of_flags(profile, rest), counted, maybe, values)
    groups, sure = _groups(rest), NEARLY * (given - sum(maybe.values()))
    dates = {skeleton: form for skeleton in groups if (form := date_form(skeleton))}
    numbers = {skeleton: form for skeleton in groups if (form := number_form(skeleton))}
    if dates and _rows(dates, groups, rest) >= sure and _are_days(dates, groups):
        profile = _of_dates(profile, rest, maybe, dates, groups)
    elif numbers and _rows(numbers, groups, rest) >= sure and not _are_codes(numbers, groups):
        profile = _of_numbers(profile, rest, maybe, numbers, groups)
    else:
        profile = _of_texts(profile, rest)
    return _with_no_value(profile, counted, maybe, values)


def _are_flags(words: Set[str]) -> bool:
    """True for words that all say yes or no, both of them, and not 0 and 1 alone."""
    return (
        words <= YES | NO
        and not words.isdisjoint(YES)
        and not words.isdisjoint(NO)
        and not words <= {"0", "1"}
    )


def _groups(rest: Mapping[str, int]) -> dict[str, list[str]]:
    """Return the values by skeleton, of those that may be numbers or dates; none if the first ones are not."""
    groups = defaultdict[str, list[str]](list)
    likely = 0
    for place, text in enumerate(rest):
        skeleton = text.strip().translate(DIGITS)
        if "9" in skeleton and len(skeleton) <= LONGEST:
            groups[skeleton].append(text)
            likely += place < TRIED and (number_form(skeleton) or date_form(skeleton)) is not None
        if place == TRIED and likely < TRIED / 3:
            return {}
    return groups


def _rows(forms: Iterable[str], groups: Groups, rest: Mapping[str, int]) -> int:
    return sum(rest[text] for skeleton in forms for text in groups[skeleton])


def _are_days(dates: Mapping[str, Date], groups: Groups) -> bool:
    """True if nearly all are days of a calendar."""
    found = [
        _is_day(text.strip(), form.text) for each, form in dates.items() for text in groups[each][:TRIED]
    ]
    return sum(found) >= 0.95 * len(found)


def _is_day(text: str, form: str) -> bool:
    parts = [int(part) for part in re.findall(r"\d+", text)[:3]]
    if form.startswith("YYYYMMDD"):
        parts = [int(text[:4]), int(text[4:6]), int(text[6:8])]
        return 1900 <= parts[0] <= 2100 and 1 <= parts[1] <= 12 and 1 <= parts[2] <= 31
    if form.startswith("AA"):
        return 0 < min(parts[:2]) <= 12 and max(parts[:2]) <= 31
    return not form.startswith("YYYY") or parts[1] <= 12


def _are_codes(numbers: Mapping[str, Number], groups: Groups) -> bool:
    """True for whole numbers with leading zeros, and groups that are all alike: ``00017``, ``555 123 456``."""
    if any(
        text.strip()[0] == "0"
        for each in numbers
        if each.isdigit() and len(each) > 1
        for text in groups[each]
    ):
        return True
    return len(numbers) == 1 and all(
        form.groups and form.groups in " '’" and not form.decimal for form in numbers.values()
    )


def _of_numbers(
    profile: ColumnProfile,
    rest: Mapping[str, int],
    maybe: Iterable[str],
    numbers: Mapping[str, Number],
    groups: Groups,
) -> ColumnProfile:
    shapes = _shapes(numbers, {each: sum(rest[text] for text in groups[each]) for each in numbers})
    texts = defaultdict[str, dict[str, float]](dict)
    plain = dict[str, bool]()
    for each, (shape, decimal) in shapes.items():
        plain[shape] = plain.get(shape, True) and numbers[each].plain
        for text in groups[each]:
            texts[shape][text] = float(text) if numbers[each].plain else number(text, decimal)
    forms = [
        Form(
            shape,
            sum(rest[text] for text in own),
            next(iter(own)),
            plain[shape],
            min(own, key=own.__getitem__),
            max(own, key=own.__getitem__),
        )
        for shape, own in texts.items()
    ]
    amounts = {text: amount for own in texts.values() for text, amount in own.items()}
    forms += _others(rest, {*amounts, *maybe})
    sentinels = _far_numbers(amounts, rest)
    profile = replace(profile, kind=Kind.NUMBER, sentinels=sentinels)
    if len(forms) > 1 or not forms[0].plain:
        return replace(profile, forms=tuple(sorted(forms, key=lambda form: -form.rows)))
    kept = amounts.keys() - {each.value for each in sentinels}
    return replace(profile, low=min(kept, key=amounts.__getitem__), high=max(kept, key=amounts.__getitem__))


def _shapes(numbers: Mapping[str, Number], rows: Mapping[str, int]) -> dict[str, tuple[str, str]]:
    """Return the shape and the mark before decimals of each skeleton: ``$9,999.99`` and ``.`` of ``$9.9``.

    A number that says nothing of its marks, such as 1.234 or 12, has those that are most frequent around it.
    """
    seen = defaultdict[tuple[str, str], Counter[str]](Counter)
    for each, form in numbers.items():
        if form.decimal != "?" and (form.decimal or form.groups in (",", ".")):
            seen[form.before, form.after][form.decimal or {",": ".", ".": ","}[form.groups]] += rows[each]
    everywhere = sum(seen.values(), Counter[str]())
    decimals, marks = dict[str, str](), defaultdict[tuple[str, str, str], set[str]](set)
    for each, form in numbers.items():
        usual = seen.get((form.before, form.after), everywhere).most_common(1)
        decimal = form.decimal if form.decimal not in ("", "?") else ""
        if not decimal and form.groups in (",", ".") and form.decimal != "?":
            decimal = {",": ".", ".": ","}[form.groups]
        decimals[each] = decimal = decimal or (usual[0][0] if usual else ".")
        is_decimal = form.decimal == decimal or form.groups == decimal
        marks[form.before, form.after, decimal] |= {
            decimal if is_decimal else "",
            "" if form.groups == decimal else form.groups and f"{form.groups}999",
        }
    found = {}
    for each, form in numbers.items():
        used = marks[form.before, form.after, decimals[each]] - {""}
        groups = next((mark for mark in sorted(used) if len(mark) > 1), "")
        body = f"9{groups}{decimals[each]}99" if decimals[each] in used else f"9{groups}"
        before, after = form.before, form.after
        if before.startswith("()"):
            before, after = f"({before[2:]}", f"{after})"
        found[each] = f"{before}{body}{after}", decimals[each]
    return found


def _others(rest: Mapping[str, int], known: Iterable[str]) -> list[Form]:
    """Return the values that are in none of the known forms, as forms of their own; many as one."""
    left = {text: n for text, n in rest.items() if text not in known}
    if len(left) > 3:
        example = max(left, key=lambda text: left[text])
        return [Form("other text", sum(left.values()), example)]
    return [Form(text, n, text) for text, n in left.items()]


def _far_numbers(amounts: Mapping[str, float], rest: Mapping[str, int]) -> tuple[Count, ...]:
    """Return repeated numbers of nines, or negative ones, that are far from all others."""
    strange = {
        text: amount
        for text, amount in amounts.items()
        if rest[text] >= 2
        and re.fullmatch(r"-1|-?9{2,}|-9|-?8{3,}", text.strip().split(".0")[0].split(".9")[0])
    }
    others = [amount for text, amount in amounts.items() if text not in strange]
    if not strange or len(others) < 5:
        return ()
    low, high = min(others), max(others)
    usual = fmean(rest[text] for text in amounts if text not in strange)
    found = []
    for text, amount in strange.items():
        often = rest[text] >= max(5, 5 * usual)
        below = amount < 0 <= low and (high > 10 or often)
        above = amount > 2 * high > 0 or (amount > 1.1 * high > 0 and often)
        if below or above:
            found.append(Count(text, rest[text]))
    return tuple(found)


def _of_dates(
    profile: ColumnProfile,
    rest: Mapping[str, int],
    maybe: Iterable[str],
    dates: Mapping[str, Date],
    groups: Groups,
) -> ColumnProfile:
    rows, examples, plain = Counter[str](), dict[str, str](), dict[str, bool]()
    for each, form in dates.items():
        for text in groups[each]:
            shape = _ordered(form.text, _order(text)) if form.text.startswith("AA") else form.text
            rows[shape] += rest[text]
            examples.setdefault(shape, text)
        plain[form.text] = form.plain
    rows, examples = _settled(rows, examples)
    forms = [Form(shape, n, examples[shape], plain.get(shape, False)) for shape, n in rows.most_common()]
    texts = {text: each for each in dates for text in groups[each]}
    forms += _others(rest, {*texts, *maybe})
    sentinels = _far_days(texts, rest)
    profile = replace(profile, kind=Kind.DATE, sentinels=sentinels)
    if len(forms) > 1 or not forms[0].text.startswith("YYYY"):
        return replace(profile, forms=tuple(forms))
    kept = texts.keys() - {each.value for each in sentinels}
    return replace(profile, low=min(kept)[:10], high=max(kept)[:10])


def _order(text: str) -> str:
    """Return ``DM`` or ``MD`` if only one of them makes a date such as 13/02/2024, else ``""``."""
    first, second = (int(part) for part in re.findall(r"\d+", text)[:2])
    return "DM" if first > 12 else "MD" if second > 12 else ""


def _ordered(shape: str, order: str) -> str:
    return shape.replace("AA", f"{order[0]}" * 2).replace("BB", f"{order[1]}" * 2) if order else shape


def _settled(rows: Counter[str], examples: dict[str, str]) -> tuple[Counter[str], dict[str, str]]:
    """Count dates of either order to the only order that others in this form have; with dots to day first."""
    for shape in [shape for shape in rows if shape.startswith("AA")]:
        both = [other for order in ("DM", "MD") if (other := _ordered(shape, order)) in rows]
        both = both or [_ordered(shape, "DM")] * ("." in shape)
        if len(both) == 1:
            rows[both[0]] += rows.pop(shape)
            examples.setdefault(both[0], examples[shape])
    return rows, examples


def _far_days(dates: Iterable[str], rest: Mapping[str, int]) -> tuple[Count, ...]:
    """Return repeated days that stand for none or for ever, years away from all others."""
    strange = {text for text in dates if rest[text] >= 2 and DAYS.match(text)}
    years = [int(found[0]) for text in dates if text not in strange and (found := re.search(r"\d{4}", text))]
    if not strange or not years:
        return ()
    return tuple(
        Count(text, rest[text])
        for text in sorted(strange)
        if int(text[:4]) < min(years) - 10 or int(text[:4]) > max(years) + 10
    )


def _with_order(profile: ColumnProfile, values: Values, columns: Mapping[str, Values]) -> ColumnProfile:
    """Return the profile with the column that tells in which order the day and the month stand, if one does."""
    unsure = [form for form in profile.forms if form.text.startswith("AA")]
    if profile.kind is not Kind.DATE or len(unsure) != 1:
        return profile
    shape = unsure[0].text
    for name, other in columns.items():
        if other is values or not 2 <= len(other.counted) <= FEW:
            continue
        orders = defaultdict[str | None, Counter[str]](Counter)
        for text, told in zip(values.texts, other.texts, strict=True):
            form = date_form(text.strip().translate(DIGITS)) if text else None
            if text and form and form.text == shape:
                orders[told][_order(text)] += 1
        sure = {told: [order for order in found if order] for told, found in orders.items()}
        if all(len(each) == 1 for each in sure.values()) and len({each[0] for each in sure.values()}) == 2:
            rows = Counter({form.text: form.rows for form in profile.forms if form is not unsure[0]})
            for told, found in orders.items():
                rows[_ordered(shape, sure[told][0])] += found[""]
            forms = [replace(form, rows=rows[form.text]) for form in profile.forms if form is not unsure[0]]
            forms.sort(key=lambda form: -form.rows)
            return replace(profile, forms=tuple(forms), order_told_by=name)
    return profile


def _of_flags(profile: ColumnProfile, rest: Mapping[str, int]) -> ColumnProfile:
    sides = [
        [text for text in sorted(rest, key=lambda t: -rest[t]) if text.strip().casefold() in side]
        for side in (YES, NO)
    ]
    if max(map(len, sides)) < 2:
        return replace(profile, kind=Kind.FLAG)
    first = sum(rest[side[0]] for side in sides if side)
    return replace(
        profile,
        kind=Kind.FLAG,
        variants=tuple(map(tuple, filter(None, sides))),
        variant_rows=sum(rest.values()) - first,
    )


def _of_texts(profile: ColumnProfile, rest: Mapping[str, int]) -> ColumnProfile:
    units = {text for text in rest if text.strip().casefold() in UNITS}
    measures = Counter(UNITS[text.strip().casefold()] for text in units)
    if (
        len(units) == len(rest)
        and max(measures.values(), default=0) > 1
        and any(len(unit.strip()) > 1 for unit in units)
    ):
        return replace(profile, units=tuple(Count(*each) for each in Counter(rest).most_common()))
    codes = [text for text in rest if len(text) <= LONGEST and _CODE.fullmatch(text.strip())]
    if sum(rest[text] for text in codes) >= NEARLY * sum(rest.values()):
        return replace(profile, kind=Kind.CODE, forms=_code_forms({text: rest[text] for text in codes}))
    spellings = defaultdict[str, list[str]](list)
    for text in sorted(rest, key=lambda text: -rest[text]):
        spellings[_plain(text)].append(text)
    variants = tuple(tuple(each) for each in spellings.values() if len(each) > 1)
    rows = sum(rest[text] for each in variants for text in each[1:])
    return replace(profile, variants=variants, variant_rows=rows)


def _plain(text: str) -> str:
    """Return a text without case, accents, runs of blanks; of words alone without dots and hyphens too."""
    text = " ".join(text.casefold().split())
    if not text.isascii():
        text = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    if ("." in text or "-" in text or "_" in text) and not any(map(str.isdigit, text)):
        text = " ".join(re.sub(r"[-_]", " ", text.replace(".", "")).split())
    return text


def _code_forms(codes: Mapping[str, int]) -> tuple[Form, ...]:
    """Return forms that differ in case, outer blanks or leading zeros alone; () if there is one."""
    padded = defaultdict[str, set[bool]](set)
    for text in codes:
        padded[normalised(text)].add(bool(_ZEROS.search(text)))
    zeros = (
        sum(len(each) > 1 for each in padded.values())
        >= PADDED * sum(False in each for each in padded.values())
        > 0
    )
    rows, examples = Counter[str](), dict[str, str]()
    for text, n in codes.items():
        shape = text.translate(_CLASSES)
        shape = _RUN.sub(r"\1", shape) + ("0" if zeros and _ZEROS.search(text) else "")
        rows[shape] += n
        examples.setdefault(shape, text)
    alike = defaultdict[str, list[str]](list)
    for shape in rows:
        alike[_RUN.sub(r"\1", shape.strip("0").strip().upper())].append(shape)
    most = max(alike.values(), key=lambda shapes: sum(rows[shape] for shape in shapes))
    if len(most) < 2 or 2 * sum(rows[shape] for shape in most) < rows.total():
        return ()
    found = [Form(examples[shape].translate(_CLASSES), rows[shape], examples[shape]) for shape in most]
    return tuple(sorted(found, key=lambda form: -form.rows))


def _with_no_value(
    profile: ColumnProfile, counted: Counter[str], maybe: Mapping[str, int], values: Values
) -> ColumnProfile:
    found = {text: n for text, n in counted.items() if text.strip().casefold() in NO_VALUE}
    if maybe and (found or profile.kind in (Kind.NUMBER, Kind.DATE) or len(maybe) > 1):
        found |= maybe
    empty = {text: n for text, n in counted.items() if not text.strip()}
    if empty and (found or len(empty) > 1 or len(values.texts) > counted.total()):
        found |= empty
    if found and not any(c.isalnum() for text in counted if text not in found for c in text):  # + and -
        return profile
    return replace(profile, no_value=tuple(Count(text, n) for text, n in Counter(found).most_common()))


def _with_totals(
    profile: ColumnProfile, name: str, columns: Mapping[str, Values], found: Mapping[str, ColumnProfile]
) -> ColumnProfile:
    """Return the profile with values such as ``Total``, where numbers of their rows are larger than others."""
    values = columns[name]
    if profile.kind in (Kind.NUMBER, Kind.DATE) and not profile.forms:
        return profile
    totals = {text for text in values.counted if TOTALS.fullmatch(text.strip())}
    if not totals or len(totals) == len(values.counted):
        return profile
    for other, texts in columns.items():
        if found[other].kind is not Kind.NUMBER or (found[other].unique and len(texts.counted) < 3):
            continue
        sums, single = list[float](), list[float]()
        for text, amount in zip(values.texts, texts.texts, strict=True):
            read = number(amount) if amount else None
            if read is not None:
                (sums if text in totals else single).append(read)
        if sums and single and fmean(sums) > 1.9 * fmean(single) > 0:
            counts = tuple(Count(text, values.counted[text]) for text in sorted(totals))
            forms = tuple(form for form in profile.forms if form.text not in totals)
            forms = (
                forms
                if len(forms) > 1 or not all(form.plain or form.text == "YYYY-MM" for form in forms)
                else ()
            )
            return replace(profile, totals=counts, forms=forms)
    return profile
