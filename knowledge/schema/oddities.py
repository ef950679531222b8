"""What is odd about a column's values, in the words of schema text: short, and nothing where nothing is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from quorum.knowledge.catalog import Column
from quorum.knowledge.naming import write_full_name, write_name
from quorum.knowledge.profile.model import ColumnProfile, Count, Form, KeyMatch, Kind
from quorum.knowledge.schema.grammar import quote, write_value

MOST = 6
"""Forms, texts for no value, spellings that are listed."""
LONGEST = 30
"""Characters of a value."""
_TEXT = re.compile(r"char|text|clob|string|^$", re.IGNORECASE)


def oddities(column: Column, dialect: str = "") -> str:
    """Return what a query has to mind about the column's values; empty where nothing is odd.

    Example: ``forms $9,999.99 90%, USD 9,999.99 10% as "USD 86,000"; no value: n/a, - 4%``.
    """
    profile = column.profile
    if profile is None:
        return ""
    forms = "" if profile.keys and profile.kind is Kind.CODE else _forms(profile, dialect)
    parts = [forms, _variants(profile), _no_value(profile), *_counts(profile)]
    if profile.kind is Kind.NUMBER and not profile.forms and _TEXT.search(column.type) and not profile.unique:
        parts.append("numbers")
    parts += [_key(match, profile, dialect) for match in profile.keys]
    return "; ".join(filter(None, parts))


def _forms(profile: ColumnProfile, dialect: str) -> str:
    if not profile.forms:
        return ""
    if len(profile.forms) == 1:
        return f"form {_shape(profile.forms[0])}"
    mixed = any(form.text.endswith("%") for form in profile.forms)
    shown = [
        f"{_shape(form)} {_share(form.rows, profile)}{_range(form) if mixed else ''}"
        for form in profile.forms[:MOST]
    ]
    if (more := len(profile.forms) - MOST) > 0:
        shown.append(f"{more} more")
    rarest = profile.forms[-1]
    example = f" as {_value(rarest.example)}" if rarest.example != rarest.text else ""
    order = (
        f"; column {write_name(profile.order_told_by, dialect)} tells which" if profile.order_told_by else ""
    )
    return f"forms {', '.join(shown)}{example}{order}"


def _shape(form: Form) -> str:
    text = form.text
    if text.startswith("AA"):
        text = f"{text.replace('AA', 'DD').replace('BB', 'MM')} or {text.replace('AA', 'MM').replace('BB', 'DD')}"
    return quote(text) if re.search(r"^\s|\s$|^$|[;!\"]| -- |, ", text) else text


def _range(form: Form) -> str:
    return f" ({form.low} to {form.high})" if form.low and form.plain else ""


def _variants(profile: ColumnProfile) -> str:
    if not profile.variants:
        return ""
    share = _share(profile.variant_rows, profile)
    if profile.kind is Kind.FLAG:
        return " / ".join(_listed(side, 12) for side in profile.variants)
    first = max(profile.variants, key=len)
    values = "a value" if len(profile.variants) == 1 else f"{len(profile.variants)} values"
    return f"{values} in several spellings, {share} not the main one: {_listed(first, 3)}"


def _no_value(profile: ColumnProfile) -> str:
    if not profile.no_value:
        return ""
    share = _share(sum(each.rows for each in profile.no_value), profile)
    return f"no value: {_listed([each.value for each in profile.no_value], MOST)} {share}"


def _counts(profile: ColumnProfile) -> Iterable[str]:
    ends = f" (others {profile.low} to {profile.high})" if profile.low else ""
    named = {
        f"far from others{ends}": profile.sentinels,
        "adds up other rows": profile.totals,
        "units": profile.units,
    }
    for what, counts in named.items():
        if counts:
            yield f"{what}: {', '.join(_count(each, profile) for each in counts[:MOST])}"


def _count(each: Count, profile: ColumnProfile) -> str:
    return f"{_value(each.value)} {_share(each.rows, profile)}"


def _key(match: KeyMatch, profile: ColumnProfile, dialect: str) -> str:
    column = write_full_name([*match.table.split("."), match.column], dialect)
    steps = {"trim": "trimming", "case": "folding case", "zeros": "dropping leading zeros"}
    how = " and ".join(steps[step] for step in match.after)
    share = _share(match.rows, profile)
    return f"matches {column} only after {how} in {share} as {_value(match.example)}"


def _listed(values: Sequence[str], most: int) -> str:
    more = f", {len(values) - most} more" if len(values) > most else ""
    return ", ".join(map(_value, values[:most])) + more


def _value(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return quote(cut) if re.search(r"[;!]| -- |  |^\.$", cut) else write_value(cut)


def _share(rows: int, profile: ColumnProfile) -> str:
    percent = 100 * rows / max(1, profile.rows)
    return "<1%" if percent < 1 else f"{min(percent, 99):.0f}%" if rows < profile.rows else "100%"
