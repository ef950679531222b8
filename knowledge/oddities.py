"""What a catalog's profile shows that a reader of names and types would not expect."""

from __future__ import annotations

import re
from collections.abc import Iterator

from quorum.knowledge.catalog import Catalog, Column, Table

MOST = 20
_TEXT = re.compile(r"(?i)char|text|string|clob")
_NUMBER = re.compile(r"[-+$€£]?\s?(\d+|\d{1,3}([,' ]\d{3})+)(\.\d+)?(\s?[%kKmM])?")
_MONTH = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
_DATE = re.compile(
    r"\d{4}([-/.])\d{1,2}\1\d{1,2}([ T].*)?|\d{1,2}([-/.])\d{1,2}\3\d{4}( .*)?"
    rf"|\d{{1,2}}[- ]{_MONTH}[- ]\d{{2,4}}( .*)?|{_MONTH} \d{{1,2}},? \d{{4}}.*"
)
_ISO = re.compile(r"\d{4}-\d{2}-\d{2}([ T]\d{2}:\d{2}.*)?")
_WORDY = re.compile(
    r"(?i)zip|post|phone|fax|extension|code|isbn|number|\bno\b|version|(?:^|_)id$|key$|sku|year"
)
"""Names of columns whose digits are no quantity, or whose text is what one expects."""


def oddities(catalog: Catalog) -> list[str]:
    """Sentences on odd data, each naming table and column; at most ``MOST``, in the catalog's order.

    Quantities and dates kept as text, spellings that differ only by case or blanks, rows that occur several
    times, and a key whose type differs from what it refers to. Only what the profile knows is said.
    """
    told = set[tuple[str, str]]()
    found = (sentence for table in catalog.tables for sentence in _of(table, catalog, told))
    return [sentence for sentence, _ in zip(found, range(MOST), strict=False)]


def _of(table: Table, catalog: Catalog, told: set[tuple[str, str]]) -> Iterator[str]:
    name = table.full_name
    if table.distinct_rows is not None and table.row_count and table.distinct_rows < table.row_count:
        yield f"{name} has {table.row_count:,} rows, of which {table.distinct_rows:,} differ."
    for column in table.columns:
        if _TEXT.search(column.type):
            texts = [text for text in _text(column) if (column.name, text) not in told]
            told.update((column.name, text) for text in texts)  # of shards the first is told
            yield from (f"{name}.{column.name} {text}" for text in texts)
    for key in table.foreign_keys:
        for own, other in zip(key.columns, key.ref_columns, strict=False):
            types = [
                _TEXT.search(found.type) is not None
                for source, sought in ((table, own), (_table(catalog, key.ref_table), other))
                if source and (found := source.column(sought))
            ]
            if len(types) == 2 and types[0] != types[1]:
                yield f"{name}.{own} and {key.ref_table}.{other}, to which it refers, differ in type."


def _text(column: Column) -> Iterator[str]:
    values = [value for value in column.samples if value.strip()]
    if not values:
        return
    if all(_DATE.fullmatch(value) for value in values):
        if not all(_ISO.fullmatch(value) for value in values):
            yield f"is text that holds dates, such as '{values[0]}'."
    elif all(map(_NUMBER.fullmatch, values)) and not ({*values} <= {"0", "1"} or _WORDY.search(column.name)):
        yield f"is text that holds numbers, such as '{values[0]}'."
    spelled: dict[str, str] = {}
    for value in values:
        other = spelled.setdefault(" ".join(value.split()).casefold(), value)
        if other != value:
            yield f"spells one value in several ways: '{other}', '{value}'."
            return


def _table(catalog: Catalog, name: str) -> Table | None:
    return next((table for table in catalog.tables if name in (table.full_name, table.name)), None)
