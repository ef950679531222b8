"""Texts that look like secrets or personal data, to be kept out of what is remembered and shown."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import replace
from typing import Any

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.introspection import is_private

MASK = "•••"
LONGEST_CELL = 400
"""Characters of a cell that are looked at, and shown."""

_PERSONAL = re.compile(
    r"""(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}          # an address for mail
    | (?<![\w.])(?:\d[ -]?){12,18}\d(?![\w.])                      # a card or account
    | \b[A-Z]{2}\d{2}(?:[ ]?[A-Z0-9]{2,4}){3,8}\b                  # an IBAN
    | \b\d{3}-\d{2}-\d{4}\b                                        # a social security number
    | (?<!\w)\+\d{1,3}(?:[ .()-]{0,2}\d){6,12}\b                   # a telephone
    | \b(?:sk|pk|ghp|gho|xox[abp]|AKIA|ASIA)[-_]?[A-Za-z0-9_-]{12,}    # a key
    | \beyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*                            # a signed token
    | \b(?=[0-9a-f]*[a-f])(?=[a-f]*\d)[0-9a-f]{32,}\b              # a hash or a key in hex
    """,
    re.VERBOSE,
)

_ABOUT = re.compile(r"(?i)phone|fax|e.?mail|street|address|birth|iban|passport")


def looks_personal(text: str) -> bool:
    """True if something in a text looks like a secret, or like an address or number of a person."""
    return _PERSONAL.search(text) is not None


def masked(text: str) -> str:
    """Return a text without what ``looks_personal``."""
    return _PERSONAL.sub(MASK, text)


def about_persons(column: str) -> bool:
    """True if a column's name says that its values are secrets, or say who and where somebody is."""
    return is_private(column) or _ABOUT.search(column) is not None


def without_personal(catalog: Catalog) -> Catalog:
    """Return the catalog without the values of columns that are ``about_persons``, and with others masked."""
    tables = []
    for table in catalog.tables:
        columns = tuple(
            replace(c, samples=(), cells=(), complete=False)
            if about_persons(c.name)
            else replace(
                c,
                samples=tuple(map(masked, c.samples)),
                cells=tuple(each and masked(each) for each in c.cells),
            )
            for c in table.columns
        )
        tables.append(replace(table, columns=columns))
    return replace(catalog, tables=tuple(tables))


def masked_rows(
    columns: Sequence[str], rows: Iterable[Sequence[Any]], plain: Collection[str] | None = None
) -> list[list[Any]]:
    """Return rows with texts masked: those of columns about persons, and what looks personal.

    Args:
        plain: Names, in lower case, of the only columns that are not withheld; None for all.
    """
    withheld = [
        about_persons(column) or (plain is not None and column.casefold() not in plain) for column in columns
    ]
    return [[_cell(cell, whole=whole) for whole, cell in zip(withheld, row, strict=True)] for row in rows]


def _cell(cell: Any, *, whole: bool) -> Any:
    if cell is None or isinstance(cell, bool | float):
        return cell
    text = cell if isinstance(cell, str) else json.dumps(cell, ensure_ascii=False, default=str)
    text = text[:LONGEST_CELL]
    return MASK if whole else masked(text) if isinstance(cell, str) or looks_personal(text) else cell
