"""Oddities of a column's values in the words of schema text, and their ends: short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quorum.knowledge.catalog import Column
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.profile.model import ColumnProfile, Counts, Form, Kind
from quorum.knowledge.schema.grammar import quote, write_value

MOST = 6
"""Forms, or values, that are listed."""
LONGEST = 30
"""Characters of a value."""
_TEXT = re.compile(r"char|text|clob|string|^$", re.IGNORECASE)
_MISREAD = re.compile(r"^\s|\s$|^$|^\.$|\s{2}|[;!\"]| -- |, ")
_STEPS = {"trim": "trimming", "case": "folding case", "zeros": "dropping leading zeros"}


def oddities(column: Column, dialect: str = "", *, keyless: bool = False, ends: bool = True) -> str:
    """Return what a query has to mind about the column's values, and the range of dates.

    Args:
        keyless: Whether the table declares no primary key, so that a unique column is named.
        ends: Whether the range is told where nothing is odd.

    Example: ``forms $9,999.99 90%, USD 9,999.99 10% as "USD 86,000"; no value: n/a, - 4%``.
    """
    if column.profile is None:
        return ""
    parts = [*_parts(column, column.profile, dialect)]
    if ends:
        parts += _facts(column, column.profile, keyless=keyless)
    return "; ".join(parts)


def topics(profile: ColumnProfile) -> set[str]:
    """Return the topics of ``quorum.knowledge.syntax.idioms`` that tell how the column's values are read."""
    odd = (name for name in ("forms", "variants", "no_value", "keys") if getattr(profile, name))
    dates = {f"date {form.text[:10]}" for form in profile.forms if profile.kind is Kind.DATE}
    return {name if name in ("no_value", "keys") else f"{profile.kind} {name}" for name in odd} | dates


def _facts(column: Column, profile: ColumnProfile, *, keyless: bool) -> Iterator[str]:
    if keyless and profile.unique and profile.kind in (Kind.CODE, Kind.NUMBER) and "." not in profile.low:
        yield "unique"
    elif profile.kind is Kind.DATE and profile.exact and not (profile.sentinels or column.complete):
        yield f"{profile.low[:10]} to {profile.high[:10]}"


def _parts(column: Column, profile: ColumnProfile, dialect: str) -> Iterator[str]:
    if profile.forms and not (profile.keys and profile.kind is Kind.CODE):  # the keys say more
        yield _forms(profile, dialect)
    if profile.kind is Kind.FLAG and profile.variants:
        yield " / ".join(_listed(side, 2 * MOST) for side in profile.variants)
    elif profile.variants:
        values = "a value" if len(profile.variants) == 1 else f"{len(profile.variants)} values"
        share, example = _share(profile.variant_rows, profile), max(profile.variants, key=len)
        yield f"{values} in several spellings, {share} not the main one: {_listed(example, 3)}"
    if profile.padded and not profile.keys:
        share = _share(sum(rows for _, rows in profile.padded), profile)
        yield f"outer blanks {share} as {_value(profile.padded[0][0])}"
    if profile.no_value:
        share = _share(sum(rows for _, rows in profile.no_value), profile)
        yield f"no value: {_listed([text for text, _ in profile.no_value], MOST)} {share}"
    if profile.sentinels:
        others = f" (others {profile.low} to {profile.high})" if profile.low else ""
        yield f"far from others{others}: {_shares(profile.sentinels, profile)}"
    if profile.totals:
        yield f"adds up other rows: {_shares(profile.totals, profile)}"
    if profile.units:
        yield f"units: {_shares(profile.units, profile)}"
    if profile.kind is Kind.NUMBER and profile.low and _TEXT.search(column.type) and _measures(profile):
        yield "numbers"
    for key in profile.keys:
        name = write_full_name([*key.table.split("."), key.column], dialect)
        steps = " and ".join(_STEPS[step] for step in key.after)
        yield f"matches {name} only after {steps} in {_share(key.rows, profile)} as {_value(key.example)}"


def _forms(profile: ColumnProfile, dialect: str) -> str:
    if len(profile.forms) == 1:
        return f"form {_shape(profile.forms[0], profile)}"
    percent = any(form.text.endswith("%") for form in profile.forms)
    shown = [
        f"{_shape(form, profile)} {_share(form.rows, profile)}"
        + (f" ({form.low} to {form.high})" if percent and form.plain else "")
        for form in profile.forms[:MOST]
    ]
    more = [f"{len(profile.forms) - MOST} more"] if len(profile.forms) > MOST else []
    rarest = profile.forms[-1]
    example = f" as {_value(rarest.example)}" if rarest.example != rarest.text else ""
    told = f"; column {write_name(profile.told_by, dialect)} tells which" if profile.told_by else ""
    return f"forms {', '.join(shown + more)}{example}{told}"


def _shape(form: Form, profile: ColumnProfile) -> str:
    text = form.text
    if profile.kind is Kind.DATE and text.startswith("AA"):
        orders = (("DD", "MM"), ("MM", "DD"))
        return " or ".join(text.replace("AA", first).replace("BB", second) for first, second in orders)
    return quote(text) if _MISREAD.search(text) else text


def _measures(profile: ColumnProfile) -> bool:
    """True if numbers are likely no codes: with decimals, short and of several lengths, or texts for none."""
    ends = profile.low + profile.high
    short = len(profile.low) < len(profile.high) <= 3
    return not ends.isdigit() or short or bool(profile.no_value)


def _shares(counts: Counts, profile: ColumnProfile) -> str:
    return ", ".join(f"{_value(text)} {_share(rows, profile)}" for text, rows in counts[:MOST])


def _listed(values: Sequence[str], most: int) -> str:
    more = f", {len(values) - most} more" if len(values) > most else ""
    return ", ".join(map(_value, values[:most])) + more


def _value(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return quote(cut) if _MISREAD.search(cut) else write_value(cut)


def _share(rows: int, profile: ColumnProfile) -> str:
    percent = round(100 * rows / max(1, profile.rows))
    return "<1%" if percent < 1 else f"{percent}%"
