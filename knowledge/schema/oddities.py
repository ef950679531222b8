"""Oddities of a column's values in the words of schema text, and their ends: short."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from quorum.knowledge.catalog import Column
from quorum.knowledge.naming import write_full_name
from quorum.knowledge.profile.forms import ordered
from quorum.knowledge.profile.model import ColumnProfile, Counts, Kind
from quorum.knowledge.schema.grammar import quote, write_value

MOST = 6
"""Forms, or values, that are listed."""
LONGEST = 30
"""Characters of a value."""
_TEXT = re.compile(r"char|text|clob|string|^$", re.IGNORECASE)
_MISREAD = re.compile(r"^\s|\s$|^$|^\.$|\s{2}|[;!\"]| -- |, ")
_WORDS = {
    "form": ("form {}", "all are written as {}"),
    "forms": ("forms {}{}", "written in different ways (9 is any digit): {}{}"),
    "as": (" as", ", such as"),
    "flag": ("{}", "several words mean the same: {}"),
    "spellings": (
        "{} in several spellings, {} not the main one: {}",
        "{} spelled in several ways, {} rarer: {}",
    ),
    "padded": ("outer blanks {} as {}", "{} have outer spaces, such as {}"),
    "no_value": ("no value: {} {}", "words for a missing value: {}, in {} of the rows"),
    "far": ("far from others{}: {}", "so far from the rest{} that it may stand for no value: {}"),
    "totals": ("adds up other rows: {}", "rows that are totals of others, which a sum counts twice: {}"),
    "units": ("units: {}", "different units: {}"),
    "keys": (
        "matches {} only after {} in {} as {}",
        "to match {}, ignore {}: {} of the rows differ, such as {}",
    ),
    "trim": ("trimming", "outer spaces"),
    "case": ("folding case", "upper and lower case"),
    "zeros": ("dropping leading zeros", "leading zeros"),
    "numbers": ("numbers", "numbers stored as text"),
}
"""What is said of each oddity: to a model, and to a person."""


def oddities(
    column: Column, dialect: str = "", *, keyless: bool = False, ends: bool = True, plain: bool = False
) -> str:
    """Return what a query has to mind about the column's values, and the range of dates.

    Args:
        keyless: True if the table declares no primary key, so that a unique column is named.
        ends: True if the range is shown where nothing is odd.
        plain: True if it is said to a person, who knows no notation.

    Example: ``forms $9,999.99 90%, USD 9,999.99 10% as "USD 86,000"; no value: n/a, - 4%``.
    """
    profile = column.profile
    if profile is None:
        return ""
    parts = [*_parts(profile, dialect, plain)]
    low, high = profile.low, profile.high
    codes = (low + high).isdigit() and not len(low) < len(high) <= 3 and not profile.no_value
    if profile.kind is Kind.NUMBER and low and _TEXT.search(column.type) and not codes:
        parts.append(_WORDS["numbers"][plain])
    if ends and keyless and profile.unique and profile.key_like:
        parts.append("unique")
    elif ends and profile.kind is Kind.DATE and profile.exact and not (profile.sentinels or column.complete):
        parts.append(f"{low.split()[0][:10]} to {high.split()[0][:10]}")
    return "; ".join(parts)


def topics(profile: ColumnProfile) -> set[str]:
    """Return the topics of ``quorum.knowledge.syntax.idioms`` that tell how the column's values are read."""
    odd = (name for name in ("forms", "variants", "no_value", "keys") if getattr(profile, name))
    dates = {f"date {form.text[:10]}" for form in profile.forms if profile.kind is Kind.DATE}
    kind = Kind.TEXT if profile.kind is Kind.CODE else profile.kind
    return {name if name in ("no_value", "keys") else f"{kind} {name}" for name in odd} | dates


def _parts(profile: ColumnProfile, dialect: str, plain: bool) -> Iterator[str]:
    say = {kind: words[plain].format for kind, words in _WORDS.items()}

    def share(rows: int) -> str:
        percent = round(100 * rows / max(1, profile.rows))
        return "<1%" if percent < 1 else f"{percent}%"

    def shares(counts: Counts) -> str:
        return ", ".join(f"{_value(text)} {share(rows)}" for text, rows in counts[:MOST])

    first = profile.forms[0].text if profile.forms else ""
    if len(profile.forms) == 1:
        yield say["form"](_shape(first))
    elif first:
        shown = [f"{_shape(form.text)} {share(form.rows)}" for form in profile.forms[:MOST]]
        shown += [f"{len(profile.forms) - MOST} more"] * (len(profile.forms) > MOST)
        rarest = profile.forms[-1]
        example = f"{say['as']()} {_value(rarest.example)}" if rarest.example != rarest.text else ""
        yield say["forms"](", ".join(shown), example)
    if profile.kind is Kind.FLAG and profile.variants:
        yield say["flag"](" / ".join(_listed(side, 2 * MOST) for side in profile.variants))
    elif profile.variants and not (profile.keys and profile.kind is Kind.CODE):  # the keys say more
        values = "a value" if len(profile.variants) == 1 else f"{len(profile.variants)} values"
        example = _listed(max(profile.variants, key=len), 3)
        yield say["spellings"](values, share(profile.variant_rows), example)
    if profile.padded and not profile.keys:
        rows = sum(dict(profile.padded).values())
        yield say["padded"](share(rows), _value(profile.padded[0][0]))
    if profile.no_value:
        texts = dict(profile.no_value)
        yield say["no_value"](_listed([*texts], MOST), share(sum(texts.values())))
    if profile.sentinels:
        others = f" (others {profile.low} to {profile.high})" if profile.low else ""
        yield say["far"](others, shares(profile.sentinels))
    if profile.totals:
        yield say["totals"](shares(profile.totals))
    if profile.units:
        yield say["units"](shares(profile.units))
    for key in profile.keys:
        name = write_full_name([*key.table.split("."), key.column], dialect)
        steps = " and ".join(say[step]() for step in key.after)
        yield say["keys"](name, steps, share(key.rows), _value(key.example))


def _shape(form: str) -> str:
    if form.startswith("AA") and "BB" in form:
        return f"{ordered(form, 'DM')} or {ordered(form, 'MD')}"
    return quote(form) if _MISREAD.search(form) else form


def _listed(values: Sequence[str], most: int) -> str:
    more = f", {len(values) - most} more" if len(values) > most else ""
    return ", ".join(map(_value, values[:most])) + more


def _value(text: str) -> str:
    cut = text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"
    return quote(cut) if _MISREAD.search(cut) else write_value(cut)
