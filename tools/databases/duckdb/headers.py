"""Find a table's header: below title lines and blank lines, in the first line, or nowhere; and its footer.

Only the first lines are looked at, whatever the size of a file. A title has at most half as many cells as the
columns below it have, ``Sales of May,,,`` above ``id,day,city,amount``, or the same text in all of them.
A header's cells are texts, or years or dates in order. Where no column below it is one of numbers or dates,
none of its cells comes again as a value of its column.
"""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, time
from io import StringIO
from itertools import islice
from typing import Any, TypeAlias

Rows: TypeAlias = Sequence[Sequence[Any]]
"""Rows of cells: texts of a CSV, or a sheet's values, with ``""`` for an empty cell."""

ROWS = 100
"""Rows that are looked at."""
SEPARATORS = ",;|\t"
FOUND = b"quorum"
"""Key of a sheet's Arrow metadata: its ``Header`` as JSON."""
SHOWN = 60
"""Characters of a title that are shown."""
_NUMBER = re.compile(r"[-+(]?\s*[€$£¥]?\s*[-+]?\.?\d[\d.,' ]*(?:[eE][-+]?\d+)?\s*[%€$£¥]?\)?")
_YEAR = re.compile(r"(?:19|20)\d\d(?:\.0)?")
_WORDS = re.compile(r"(?=.*[^\W\d_])\S+\s.*")
_CLOSING = re.compile(r"(?i)(?:end of|exported|generated|printed) |[*©]|\d+ (?:records|rows)\b|.*\w:(?: |$)")
BELOW = "{}: the text below its rows, {!r}, is left out.{}"
_DATE = re.compile(r"\d{1,4}[-/.]\d{1,2}(?:[-/.]\d{1,4})?(?:[ T].*)?|\d{1,2}:\d\d(?::\d\d.*)?")


@dataclass(frozen=True)
class Header:
    """The beginning of a table.

    Attributes:
        skip: Rows above the header, or above the first row of data if there is none; blank ones count.
        named: True if there is a header.
        title: The text of the first row that is skipped; empty if only blank ones are.
        footer: The text below the rows.
    """

    skip: int
    named: bool = True
    title: str = ""
    footer: str = ""

    @classmethod
    def in_line(cls, line: int) -> Header:
        """Return the header in the line, from 1, that a user names; 0 for none."""
        return cls(max(0, line - 1), named=line > 0)

    def remark(self, shown: str, advice: str) -> str:
        """Return a remark for people, in one line; empty if the first line is the header."""
        below = f" below {self.title!r}" if self.title else ""
        if not self.named:
            return f"{shown} has no header{below}: its columns are column0, column1, ….{advice}"
        if self.title:
            return f"{shown}: its header is line {self.skip + 1},{below}.{advice}"
        return ""


@dataclass(frozen=True)
class Lines:
    """The first lines of a text.

    Attributes:
        separator: What divides their fields; empty if they look like one column.
        width: Fields of most of them.
    """

    rows: Rows
    separator: str = ""
    width: int = 1


def split(text: str, *, whole: bool) -> Lines:
    """Divide the first lines by the separator that makes most of them equally long.

    Args:
        whole: Whether the text ends where its file does; else its last row may be cut.
    """
    best = Lines(_read(text, "\x1f", whole=whole))
    lines, most = sum(any(row) for row in best.rows), (0, 0)
    for separator in SEPARATORS:
        rows = _read(text, separator, whole=whole)
        widths = [len(row) for row in rows if len(row) > 1]
        if not widths:
            continue
        width, often = max(Counter(widths).items(), key=lambda item: (item[1], item[0]))
        tail = 1 < often == sum(1 for each in rows[-often:] if len(each) == width)
        if (2 * often >= lines or tail) and (often, width) > most:
            best, most = Lines(rows, separator, width), (often, width)
    return best


def _read(text: str, separator: str, *, whole: bool) -> list[list[str]]:
    source = StringIO(text, newline="")
    try:
        rows = list(islice(csv.reader(source, delimiter=separator), ROWS))
    except csv.Error:  # a field of more than 128 KiB: a quotation mark that does not end
        return []
    return rows if whole or len(rows) == ROWS else rows[:-1]


def find(rows: Rows, width: int) -> Header | None:
    """Return the header of a table of ``width`` columns by its first rows; None if all are blank."""
    last = max((i for i, row in enumerate(rows) if _filled(row)), default=-1)
    if last < 0:
        return None
    rows = rows[: last + 1]
    first = next(i for i, row in enumerate(rows) if _filled(row) and not _is_title(rows, i, width))
    lacks = len(_used(rows, first, width) - _filled(rows[first]))
    if lacks:  # a title of several cells, if a whole header follows it
        whole = (
            i
            for i in range(first + 1, min(first + 6, len(rows)))
            if len(rows[i]) == width and _used(rows, i, width) <= _filled(rows[i])
        )
        better = next(whole, None)
        if better is not None and _is_header(rows, better, sure=True):
            first = better
    named = _is_header(rows, first)
    if not named and first and len(rows[first - 1]) == width and _is_header(rows, first - 1, sure=True):
        names, used = _filled(rows[first - 1]), _used(rows, first - 1, width)
        if 2 * len(names) >= len(used):  # a header that is half empty, such as ",amount"
            first, named = first - 1, True
    title = next((_shown(row) for row in rows[:first] if _filled(row)), "")
    return Header(first, named, title)


def footer(rows: Rows, width: int) -> tuple[int, str]:
    """Return how many rows at the end of a table's data are a text below it, and the text.

    Only their first cell has a value; at least half of the other columns, and two, have one in each row
    above. The text is words below codes, numbers or dates, or says what it is: ``Total rows: 261``.
    """
    end = next((i for i in range(len(rows), 0, -1) if _filled(rows[i - 1]) - {0}), 0)
    body, below = ([row for row in part if _filled(row)] for part in (rows[:end], rows[end:]))
    keys, said = ([str(row[0]).strip() for row in part] for part in (body, below))
    coded = all(re.search(r"\d", key) and not _WORDS.fullmatch(key) for key in keys)
    ends = _WORDS.fullmatch if coded else _CLOSING.match
    full = set(range(1, width)).intersection(*map(_filled, body))
    rare = len(keys) >= 3 and len(full) >= max(2, (width - 1) / 2) and not any(map(ends, keys))
    return (len(rows) - end, _shown(said)) if rare and said and all(map(ends, said)) else (0, "")


def kind(cell: object) -> str:
    """``text``, ``number``, ``year`` or ``date``; empty for an empty cell."""
    if isinstance(cell, date | time):
        return "date"
    written = str(cell).strip()
    if not written:
        return ""
    if _YEAR.fullmatch(written) and not isinstance(cell, bool):
        return "year"
    if _NUMBER.fullmatch(written) and not _DATE.fullmatch(written):
        return "number"
    return "date" if _DATE.fullmatch(written) else "text"


def _filled(row: Sequence[Any]) -> set[int]:
    """Return the columns in which a row has a value."""
    return {i for i, cell in enumerate(row) if str(cell).strip()}


def _used(rows: Rows, above: int, width: int) -> set[int]:
    """Return the columns that have values below a row; all of them at the end."""
    below = set[int]().union(*map(_filled, rows[above + 1 :]))
    return {i for i in below if i < width} or set(range(width))


def _is_title(rows: Rows, i: int, width: int) -> bool:
    used, filled = _used(rows, i, width), _filled(rows[i])
    if i + 1 == len(rows) or len(used) < 2:
        return False
    merged = len(filled) > 1 and len({str(rows[i][c]) for c in filled}) == 1
    return merged or 2 * len(filled & used) <= len(used)


def _is_header(rows: Rows, i: int, *, sure: bool = False) -> bool:
    """Return True if a row names the columns below it.

    Args:
        sure: Only where some column below is of numbers or dates, and its name is not.
    """
    row, below = rows[i], rows[i + 1 :]
    cells = {c: row[c] for c in sorted(_filled(row))}
    kinds = {c: kind(cell) for c, cell in cells.items()}
    typical = {c: _typical(below, c) for c in cells}
    apart = [c for c in cells if kinds[c] in ("year", "date") and typical[c] not in (kinds[c], "")]
    if any(kinds[c] != "text" and c not in apart for c in cells):
        return False
    periods = [str(cells[c]) for c in apart]
    if len(periods) == 1 or periods not in (sorted(set(periods)), sorted(set(periods), reverse=True)):
        return False
    if periods or any(typical[c] not in ("text", "") for c in cells):
        return True
    others = [other for other in below if list(other) != list(row)]
    again = any(c < len(other) and other[c] == cell for c, cell in cells.items() for other in others)
    return not sure and not again


def _typical(rows: Rows, column: int) -> str:
    kinds = Counter(kind(row[column]) for row in rows if column < len(row))
    del kinds[""]
    return max(kinds, key=lambda each: kinds[each]) if kinds else ""


def _shown(row: Sequence[Any]) -> str:
    text = " ".join(" ".join(str(cell).split()) for cell in row if str(cell).strip())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}…"
