"""The canonical form of a result: what a cell means, whatever type or notation it came in.

Every cell becomes a 64-bit key, and a double where it is a number. Cells that mean the same have
the same key: ``1``, ``1.0``, ``Decimal('1.00')`` and ``'1'``; a date, its midnight and their ISO
text; NULL and NaN; a struct and its JSON text. Numbers share a key when they fall into the same
cell of a grid that is never coarser than the tolerance of ``cells.agree``, so that equal keys always
mean agreement; the reverse is the work of ``compare``, since no key can know its neighbours.

A few words mean something by the company of their column alone: ``true`` and ``false`` are truth values
where the column has nothing else but NULL, and TRUE is 1; ``NaN`` and ``inf`` are numbers where all else is
numbers or NULL, and some number has digits. Anywhere else they are words.

Text keeps its case; blanks at its end do not count (CHAR columns pad). Lists keep their order.
All is vectorised but nested values: 10^6 x 10 cells take seconds.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from quorum.tools.results.cells import (
    EXACT,
    MOMENT,
    NULL,
    NUMBER,
    Cells,
    Keys,
    Mask,
    Numbers,
    grid,
    hash_texts,
    mix,
)
from quorum.tools.results.values import plain_column

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)

# what text means, by how it is written
NUMERIC = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*$"
ISO = r"^\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?( ?(Z|UTC|[+-]\d{2}(:?\d{2})?))?)?\s*$"
NESTED = r"^\s*[\[{]"
TRUTH = r"(?i)^\s*(true|false)\s*$"
NO_DIGITS = r"(?i)^\s*(nan|[+-]?inf(inity)?)\s*$"
HEAD_ROWS = 100
"""Rows that show of most results that they are not blank."""
FEW = 50
"""Texts that are matched one by one: Arrow compiles a pattern again for each call."""


@dataclass(frozen=True, eq=False)
class Canonical:
    """A result in canonical form; make it once where a result is compared often."""

    rows: int
    columns: tuple[Cells, ...]


def canonical(result: pa.Table | Canonical) -> Canonical:
    """Return the canonical form of an Arrow table."""
    if isinstance(result, Canonical):
        return result
    return Canonical(result.num_rows, tuple(_cells(column.combine_chunks()) for column in result.columns))


def blank_reason(table: pa.Table, form: Canonical | None = None) -> str:
    """Return ``empty``, ``all NULL``, ``all empty text`` or ``all zero`` for a blank result, else "".

    Such results do not vote (ReFoRCE's first version, paper 003, section 3.2.4, of self-consistency). NaN
    counts as NULL, numeric text as its number; a zero among the others makes it ``all zero``. A boolean is
    an answer, never blank.

    Args:
        form: Of the table, where it is at hand.
    """
    if table.num_rows == 0 or table.num_columns == 0:
        return "empty"
    if any(pa.types.is_boolean(column.type) and column.null_count < len(column) for column in table.columns):
        return ""
    for rows in (HEAD_ROWS, table.num_rows):  # most results speak in their first rows
        whole = rows >= table.num_rows
        columns = (form if form and whole else canonical(table.slice(0, rows))).columns
        if not all(cells.blank for cells in columns):
            return ""
    if all(cells.null for cells in columns):
        return "all NULL"
    return "all zero" if any(cells.is_number.any() for cells in columns) else "all empty text"


def is_blank(table: pa.Table, form: Canonical | None = None) -> bool:
    """True if a result is empty, or all NULL, empty text or zero (see ``blank_reason``)."""
    return bool(blank_reason(table, form))


def has_blank_column(table: pa.Table, form: Canonical | None = None) -> bool:
    """True if a column holds nothing but NULL, empty text or zero; of booleans, nothing but NULL."""
    columns = zip(table.columns, canonical(form or table).columns, strict=True)
    return any(cells.null if pa.types.is_boolean(column.type) else cells.blank for column, cells in columns)


def _cells(array: pa.Array) -> Cells:
    kind = array.type
    if isinstance(array, pa.ChunkedArray):
        array = pa.concat_arrays(array.chunks) if array.num_chunks else pa.array([], kind)
    if pa.types.is_dictionary(kind):
        return _cells(array.dictionary_decode())
    if isinstance(kind, pa.UuidType):
        return _cells(pa.array([None if v is None else str(v) for v in array.to_pylist()], pa.string()))
    if isinstance(kind, pa.BaseExtensionType):
        return _cells(array.storage)
    if pa.types.is_null(kind):
        return Cells(np.full(len(array), NULL), np.full(len(array), np.nan))
    if pa.types.is_boolean(kind):
        return _from_numbers(array.cast(pa.int8()).cast(pa.float64()))
    if pa.types.is_integer(kind):
        return _from_integers(array)
    if pa.types.is_floating(kind):
        return _from_numbers(array if kind == pa.float64() else array.cast(pa.string()).cast(pa.float64()))
    if pa.types.is_decimal(kind):
        return _from_decimals(array)
    if pa.types.is_date(kind) or pa.types.is_timestamp(kind):
        return _from_moments(array)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return _from_text(array.cast(pa.large_string()))
    return _from_values(array)


def _from_numbers(array: pa.Array) -> Cells:
    values, valid = _values(array)
    numbers = np.where(valid, values, np.nan)
    return Cells(_number_keys(numbers), numbers)


def _number_keys(numbers: Numbers) -> Keys:
    keys = mix(grid(numbers).view(np.uint64) + NUMBER)
    keys[np.isnan(numbers)] = NULL
    return keys


def _from_integers(array: pa.Array) -> Cells:
    cells = _from_numbers(array.cast(pa.float64(), safe=False))
    large = np.abs(cells.numbers) >= EXACT
    if not large.any():
        return cells
    return _with_digits(cells, large, _values(array)[0][large].tolist())


def _with_digits(cells: Cells, large: Mask, digits: list[int]) -> Cells:
    """Tell apart integers that are the same double; those a double holds keep the double's key."""
    extra = [0 if int(float(value)) == value else value % 2**64 for value in digits]
    folded = np.array(extra, dtype=np.uint64)
    keys = cells.keys.copy()
    keys[large] = np.where(folded == 0, keys[large], mix(keys[large] ^ mix(folded)))
    return Cells(keys, cells.numbers, large)


def _from_decimals(array: pa.Array) -> Cells:
    # By way of text: the cast from decimal to double is off by a unit in the last place.
    cells = _from_numbers(array.cast(pa.string()).cast(pa.float64()))
    large = np.flatnonzero(np.abs(cells.numbers) >= EXACT)
    values = {int(row): array[int(row)].as_py() for row in large}
    whole = [row for row, value in values.items() if value == value.to_integral_value()]
    if not whole:
        return cells
    mask = np.zeros(len(cells.keys), dtype=np.bool_)
    mask[whole] = True
    return _with_digits(cells, mask, [int(values[row]) for row in whole])


def _from_moments(array: pa.Array) -> Cells:
    kind = pa.timestamp("us", getattr(array.type, "tz", None))
    micros = array.cast(kind, safe=False).cast(pa.int64())
    moments, valid = _values(micros)
    keys = np.where(valid, _moment_keys(moments), NULL)
    return Cells(keys, np.full(len(keys), np.nan))


def _moment_keys(micros: npt.NDArray[np.int64]) -> Keys:
    return mix(micros.view(np.uint64) ^ MOMENT)


def _from_text(array: pa.Array) -> Cells:
    """Read text, cell by cell, as a number, a moment or JSON where it is one; else take its hash."""
    encoded = array.dictionary_encode()
    distinct = _words(_distinct_text(encoded.dictionary), encoded.dictionary)
    with_null = Cells(
        np.append(distinct.keys, NULL),
        np.append(distinct.numbers, np.nan),
        None if distinct.exact is None else np.append(distinct.exact, False),
    )
    rows, valid = _values(encoded.indices)
    return with_null.take(np.where(valid, rows, len(distinct.keys)))


def _distinct_text(texts: pa.Array) -> Cells:
    cells = Cells(hash_texts(pc.utf8_rtrim(texts, " ")), np.full(len(texts), np.nan))
    for pattern, read in ((NUMERIC, _numeric_text), (ISO, _iso_text), (NESTED, _json_text)):
        mask = matches(texts, pattern)
        if mask.any():
            cells = read(cells, mask, _chosen(texts, mask))
    return cells


def _values(array: pa.Array) -> tuple[npt.NDArray[Any], Mask]:
    """Return the values of an array of numbers or booleans, anything where NULL, and where there is one.

    Arrow's own ways to NumPy and back load pandas, which takes a quarter of a second.
    """
    count, (valid, data) = len(array), array.buffers()
    is_there = np.ones(count, np.bool_) if valid is None else _bits(valid, array)
    if pa.types.is_boolean(array.type):
        return _bits(data, array), is_there
    kind = np.dtype(str(array.type))
    return np.frombuffer(data, kind, count, array.offset * kind.itemsize), is_there


def _bits(buffer: pa.Buffer, array: pa.Array) -> Mask:
    bits = np.unpackbits(np.frombuffer(buffer, np.uint8), bitorder="little")
    return bits[array.offset : array.offset + len(array)].astype(np.bool_)


def _chosen(texts: pa.Array, mask: Mask) -> pa.Array:
    """Return the texts where the mask is True."""
    bits = pa.py_buffer(np.packbits(mask, bitorder="little"))
    return texts.filter(pa.Array.from_buffers(pa.bool_(), len(mask), [None, bits]))


def _words(cells: Cells, texts: pa.Array) -> Cells:
    """Read words by the other values of their column: as truth values, or numbers without digits.

    So a CSV file says what the booleans and doubles say that it was written from.
    """
    if matches(texts, TRUTH).all():
        truths = pc.utf8_lower(pc.utf8_trim_whitespace(texts)).to_pylist()
        numbers = np.array([truth == "true" for truth in truths], dtype=np.float64)
        return Cells(_number_keys(numbers), numbers)
    words = matches(texts, NO_DIGITS)
    if not words.any() or words.all() or not (words | cells.is_number).all():
        return cells
    plain = pc.utf8_trim_whitespace(_chosen(texts, words)).to_pylist()
    numbers, keys = cells.numbers.copy(), cells.keys.copy()
    numbers[words] = [float(word) for word in plain]
    keys[words] = _number_keys(numbers[words])
    return Cells(keys, numbers, cells.exact)


def _numeric_text(cells: Cells, mask: Mask, texts: pa.Array) -> Cells:
    plain = pc.utf8_trim_whitespace(texts)
    parsed, _ = _values(plain.cast(pa.float64()))
    finite = np.isfinite(parsed)  # digits that no double holds stay text
    rows, parsed, plain = np.flatnonzero(mask)[finite], parsed[finite], _chosen(plain, finite)
    numbers, keys = cells.numbers.copy(), cells.keys.copy()
    numbers[rows] = parsed
    keys[rows] = _number_keys(parsed)
    whole = _written_out(parsed, plain)
    if not whole:
        return Cells(keys, numbers)
    exact = np.zeros(len(keys), dtype=np.bool_)
    exact[rows[list(whole)]] = True
    return _with_digits(Cells(keys, numbers), exact, list(whole.values()))


def _written_out(parsed: Numbers, texts: pa.Array) -> dict[int, int]:
    """Return the integers of 2^53 or more whose digits are all written, without an exponent, by place."""
    large = {int(row): texts[int(row)].as_py() for row in np.flatnonzero(np.abs(parsed) >= EXACT)}
    values = {row: Decimal(text) for row, text in large.items() if "e" not in text.lower()}
    return {row: int(value) for row, value in values.items() if value == value.to_integral_value()}


def _iso_text(cells: Cells, mask: Mask, texts: pa.Array) -> Cells:
    plain = pc.utf8_trim_whitespace(texts)
    rows = np.flatnonzero(mask)
    try:
        moments, _ = _values(plain.cast(pa.timestamp("us")).cast(pa.int64()))
    except pa.ArrowInvalid:  # a zone, nanoseconds or a date that no calendar has: one by one
        read = [_moment(text) for text in plain.to_pylist()]
        rows = rows[[moment is not None for moment in read]]
        moments = np.array([moment for moment in read if moment is not None], dtype=np.int64)
    keys = cells.keys.copy()
    keys[rows] = _moment_keys(moments)
    return Cells(keys, cells.numbers, cells.exact)


def _moment(text: str) -> int | None:
    """Return the microseconds since 1970 of ISO text, by default in UTC; None if there is no such day."""
    try:
        moment = datetime.fromisoformat(
            re.sub(r" ?(UTC|Z)$", "+00:00", text).replace(" +", "+").replace(" -", "-")
        )
    except ValueError:
        return None
    return _micros(moment)


def _micros(moment: datetime) -> int:
    aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
    span = aware - EPOCH
    return (span.days * 86_400 + span.seconds) * 1_000_000 + span.microseconds


def _json_text(cells: Cells, mask: Mask, texts: pa.Array) -> Cells:
    rows, forms = [], []
    for row, text in zip(np.flatnonzero(mask).tolist(), texts.to_pylist(), strict=True):
        try:
            forms.append(_form(json.loads(text)))
        except (ValueError, RecursionError):
            continue
        rows.append(row)
    keys = cells.keys.copy()
    keys[rows] = hash_texts(pa.array(forms, pa.large_string()))
    return Cells(keys, cells.numbers, cells.exact)


def _from_values(array: pa.Array) -> Cells:
    """Read nested and rare types, value by value, as what ``plain_rows`` shows of them."""
    values = plain_column(pa.chunked_array([array]))
    texts = [json.dumps(v) if isinstance(v, list | dict) else v if v is None else str(v) for v in values]
    return _from_text(pa.array(texts, pa.large_string()))


def _form(value: Any) -> str:
    """Return canonical JSON: sorted keys; numbers on the grid; numeric and ISO text as what it means."""
    if isinstance(value, dict):
        parts = (f"{json.dumps(str(key))}:{_form(value[key])}" for key in sorted(value))
        return "{" + ",".join(parts) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_form, value)) + "]"
    if isinstance(value, str):
        return _form_text(value)
    if value is None or value != value:
        return "null"
    return _form_number(value)


def _form_number(value: float) -> str:
    if isinstance(value, int) and abs(value) >= EXACT:
        return str(value)
    number = float(value)
    return repr(float(grid(np.array([number]))[0])) if math.isfinite(number) else str(number)


def _form_text(text: str) -> str:
    if re.match(NUMERIC, text, re.ASCII):
        return _form_number(int(text) if text.strip().lstrip("+-").isdigit() else float(text))
    if re.match(ISO, text, re.ASCII) and (moment := _moment(text.strip())) is not None:
        return f"@{moment}"
    return json.dumps(text.rstrip(" "))


def matches(texts: pa.Array, pattern: str) -> Mask:
    """Return a mask of the ``texts`` (no NULLs) that match the pattern, as Arrow's RE2 reads it."""
    if len(texts) <= FEW and (plain := texts.to_pylist()) and all(map(str.isascii, plain)):
        search = _compiled(pattern).search
        return np.fromiter((search(text) is not None for text in plain), np.bool_, len(plain))
    return _values(pc.match_substring_regex(texts, pattern))[0]


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """Compile a pattern as RE2 reads it in ASCII text: with five blanks, and ``$`` as the very end."""
    return re.compile(pattern.replace(r"\s", r"[\t\n\f\r ]").replace("$", r"\Z"), re.ASCII)
