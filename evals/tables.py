"""CSV as pandas reads and writes it, which the official comparisons' verdicts hang on.

Spider 2.0's evaluation reads results with ``pandas.read_csv`` and its defaults and compares what comes out:
``"007"`` is 7 there, ``"NA"`` is NULL and ``"1,000"`` is text. Its gold results were written by
``DataFrame.to_csv``. So pandas itself does both here; it is imported when first used.
"""

from __future__ import annotations

import io
import re
import warnings
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from quorum.knowledge.errors import ConfigurationError, QuorumError, install_hint

if TYPE_CHECKING:
    import pyarrow as pa

CellArray: TypeAlias = npt.NDArray[Any]
"""The cells of a column: whole numbers (int64, uint64), float64 with NaN for NULL, bool, or Python objects
with None for NULL."""

SUFFIXES = (".csv", ".parquet")
NULLS = frozenset({""})
"""What writers of CSV leave for NULL; "NA" may be a country."""

_RENAMED = re.compile(r"\.[0-9]+$|^Unnamed: ")
"""What names look like that pandas made unique, or up."""


class NoPandas(ConfigurationError):
    """pandas is not installed."""


class UnreadableCsv(QuorumError):
    """A file that is no CSV: rows longer than the first, an open quotation mark, not UTF-8, nothing in it."""


@dataclass(frozen=True, eq=False)
class TypedTable:
    """A table as typed columns of equal length.

    Attributes:
        names: As in the header; may repeat.
    """

    names: tuple[str, ...]
    columns: tuple[CellArray, ...]

    @property
    def rows(self) -> int:
        return len(self.columns[0]) if self.columns else 0


def read_frame(path: Path, *, nulls: Collection[str] | None = None) -> TypedTable:
    """Read a CSV file (UTF-8, header first).

    Args:
        nulls: The texts that stand for NULL; None for those that pandas takes for it.

    Raises:
        UnreadableCsv: See there; also if the file cannot be opened.
        NoPandas: It is not installed.
    """
    try:
        return frame_of(path.read_bytes(), nulls=nulls)
    except UnicodeDecodeError as error:
        raise UnreadableCsv(f"{path} is not UTF-8: {error.reason} at byte {error.start}.") from error
    except OSError as error:
        raise UnreadableCsv(f"{path} cannot be read: {error.strerror}.") from error
    except UnreadableCsv as error:
        raise UnreadableCsv(f"{path}: {error}") from error


def frame_of(content: str | bytes, *, nulls: Collection[str] | None = None) -> TypedTable:
    """Return the frame of CSV text, read as ``read_frame`` does.

    Short rows are filled with NULL. If the first row is longer than the header, the surplus first columns
    are an index and left out.

    Raises:
        UnreadableCsv: See there.
        UnicodeDecodeError: Bytes are not UTF-8.
        NoPandas: It is not installed.
    """
    pandas = _pandas()
    data = content.encode() if isinstance(content, str) else content
    known = {} if nulls is None else {"keep_default_na": False, "na_values": list(nulls)}
    try:
        table = pandas.read_csv(io.BytesIO(data), **known)
        names = table.columns.tolist()
        if any(map(_RENAMED.search, names)):
            header = pandas.read_csv(io.BytesIO(data), header=None, nrows=1, dtype=str, keep_default_na=False)
            names = header.iloc[0].tolist()
    except pandas.errors.EmptyDataError as error:
        raise UnreadableCsv("The file is empty, it lacks even a header.") from error
    except pandas.errors.ParserError as error:
        reason = str(error).rpartition("C error: ")[2]
        quote = reason.startswith("EOF inside string")
        raise UnreadableCsv("A quotation mark is not closed." if quote else f"{reason.strip()}.") from error
    return TypedTable(tuple(names), tuple(_column(table.iloc[:, place]) for place in range(len(names))))


def _column(series: Any) -> CellArray:
    if isinstance(series.dtype, np.dtype) and series.dtype != object:
        values: CellArray = series.to_numpy()
        return values
    objects: CellArray = series.to_numpy(dtype=object, copy=True)
    objects[series.isna().to_numpy()] = None
    return objects


def cells(column: CellArray) -> list[Any]:
    """Return the cells as Python values: int, float, bool, str, and None for NULL."""
    values: list[Any] = column.tolist()
    if column.dtype.kind == "f":
        return [None if value != value else value for value in values]
    return values


def pandas_csv(table: pa.Table) -> str:
    """Return a result as the CSV that pandas makes of it.

    A day is ``2020-01-31`` in a column of days and ``2020-01-31 00:00:00`` beside moments; whole numbers
    beside NULL are written as floats (``3.0``). A text with a carriage return, which pandas leaves without
    quotation marks with Python 3.11 and cannot read back, gets them: then lines end in both.

    Raises:
        NoPandas: It is not installed.
    """
    _pandas()
    frame = table.to_pandas()
    text: str = frame.to_csv(index=False, lineterminator="\n")
    if "\r" in text:
        text = frame.to_csv(index=False, lineterminator="\r\n")
    return text


def _pandas() -> ModuleType:
    try:
        import pandas
    except ImportError as error:
        raise NoPandas(
            "Results in CSV files are read and written by pandas.",
            hint=install_hint("evals"),
        ) from error
    # Of a huge file pandas infers types piece by piece, and warns; the official program does so, too.
    warnings.filterwarnings("ignore", category=pandas.errors.DtypeWarning)
    module: ModuleType = pandas
    return module


def read_table(path: Path) -> pa.Table:
    """Return the table in a file, CSV or Parquet by its name.

    Raises:
        QuorumError: It cannot be read as what its name says.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    if path.suffix.lower() != ".parquet":
        return read_csv(path)
    try:
        return pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as error:
        raise QuorumError(f"{path} cannot be read as Parquet: {error}.") from error


def read_csv(path: Path) -> pa.Table:
    """Return the table in a CSV file. Only empty fields are NULL.

    A column whose cells are of several kinds is one of texts, as they are in the file: comparing results
    (``quorum.tools.results.compare``) sees numbers in texts, too.

    Raises:
        UnreadableCsv: It is no CSV.
    """
    import pyarrow as pa

    frame = read_frame(path, nulls=NULLS)
    return pa.Table.from_arrays([_arrow(column) for column in frame.columns], names=list(frame.names))


def _arrow(column: CellArray) -> pa.Array:
    import pyarrow as pa

    if column.dtype != object:
        return pa.array(column, from_pandas=True)  # NaN is NULL
    values = cells(column)
    if all(value is None or isinstance(value, bool) for value in values):
        return pa.array(values, pa.bool_() if any(value is not None for value in values) else pa.string())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
