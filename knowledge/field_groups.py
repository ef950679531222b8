"""Shared field groups: tables of one signature are described once.

SQLAgent (paper 001), Appendix D: Algorithms 1 (signature) and 2 (greedy selection).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from quorum.knowledge.catalog import Catalog, Table


@dataclass(frozen=True)
class FieldGroup:
    """At least two tables with the same set of ``name:type``; ``tables`` in catalog order."""

    signature: str
    tables: tuple[Table, ...]


def signature(table: Table) -> str:
    """MD5 (hex) over the sorted ``name:type`` list, joined by ``|`` (paper 001, Algorithm 1).

    It does not depend on the order of the columns.
    """
    fields = sorted(f"{column.name}:{column.type}" for column in table.columns)
    return hashlib.md5("|".join(fields).encode("utf-8", "surrogatepass"), usedforsecurity=False).hexdigest()


def select_groups(catalog: Catalog) -> tuple[FieldGroup, ...]:
    """Non-overlapping groups, most tables first, then most fields (paper 001, Algorithm 2).

    A table without columns has nothing to share and joins no group. The overlap test of the
    paper always passes here, for a whole-table signature puts each table into one group only.
    """
    found: dict[str, list[Table]] = {}
    for table in catalog.tables:
        if table.columns:
            found.setdefault(signature(table), []).append(table)
    groups = [FieldGroup(key, tuple(tables)) for key, tables in found.items() if len(tables) >= 2]
    return tuple(sorted(groups, key=lambda g: (-len(g.tables), -len(g.tables[0].columns))))
