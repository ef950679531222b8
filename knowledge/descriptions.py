"""Which descriptions of a resource folder stand beside the right column.

Spider 2.0's Snowflake folders were converted from BigQuery. Each table's JSON pairs the k-th
top-level column (in DDL order) with the k-th description of the BigQuery schema *flattened*, where
every nested field has an entry of its own, and then shuffles the pairs. So descriptions are right
up to and including the first column that had nested fields, and shifted behind it. Measured against
the BigQuery originals of 16 schemas: 14,640 pairs before that point, all right; 1,748 behind it,
all wrong. Tables native to Snowflake have no such shift: their comments belong to their columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

MIN_AGREEMENT = 0.7
"""Share of the name words that descriptions behind a semi-structured column must mention.

Measured: 0.73 to 1.0 where they line up, 0.03 to 0.33 where they are shifted."""

MIN_HEAD_AGREEMENT = 0.5
"""The same for the descriptions up to the first such column, where only another column order in
the source could shift them. Measured: 0.67 to 1.0 over 27 tables."""


def trusted_descriptions(
    order: Sequence[str], described: Mapping[str, str], spreads: Callable[[str], bool], *, native: bool
) -> dict[str, str]:
    """The descriptions that can be trusted, by column.

    Args:
        order: The columns in the order of their DDL.
        described: Description by column, as the source pairs them.
        spreads: Whether a column is semi-structured, so may have had nested fields in the source.
        native: The table is described by its own engine, not converted from another: its
            descriptions are judged together; converted ones between any two columns that may
            shift what follows, and nothing is believed behind a doubtful stretch.
    """
    kept: dict[str, str] = {}
    stretches = _stretches(order, spreads, native)
    for number, stretch in enumerate(stretches):
        found = {name: described[name] for name in stretch if described.get(name)}
        if found and len(stretches) > 1 and not _convincing(found, behind=number > 0):
            break
        kept |= found
    return kept


def _stretches(order: Sequence[str], spreads: Callable[[str], bool], native: bool) -> list[list[str]]:
    """The columns cut behind each one that may shift what follows (natively, behind the first)."""
    stretches: list[list[str]] = [[]]
    for name in order:
        stretches[-1].append(name)
        if spreads(name) and not (native and len(stretches) > 1):
            stretches.append([])
    return stretches


def _convincing(described: Mapping[str, str], *, behind: bool) -> bool:
    if not behind:
        return agreement(described) >= MIN_HEAD_AGREEMENT
    return len(described) > 1 and agreement(described) >= MIN_AGREEMENT


def agreement(described: Mapping[str, str]) -> float:
    """Mean share of a column name's words (three letters up) that its description mentions."""
    shares = []
    for name, description in described.items():
        parts = re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)
        words = {part.lower() for part in parts if len(part) > 2}
        told = re.findall(r"[a-z0-9]+", description.lower())
        if words:
            hits = sum(any(t.startswith(w[:5]) for t in told) for w in words)
            shares.append(hits / len(words))
    return sum(shares) / len(shares) if shares else 0.0
