"""Files with results as Arrow tables: CSV with a header, and Parquet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from quorum.evals.tabular.frames import Column, Frame, cells, read_frame
from quorum.knowledge.errors import QuorumError

if TYPE_CHECKING:
    import pyarrow as pa

SUFFIXES = (".csv", ".parquet")
NULLS = frozenset({""})
"""What writers of CSV leave for NULL; "NA" may be a country."""


def read_table(path: Path) -> pa.Table:
    """The table in a file, CSV or Parquet by its name.

    Raises:
        QuorumError: It cannot be read as what its name says.
    """
    return read_parquet(path) if path.suffix.lower() == ".parquet" else read_csv(path)


def read_csv(path: Path) -> pa.Table:
    """The table in a CSV file. Only empty fields are NULL.

    A column whose cells are of several kinds is one of texts, as they are in the file: comparing results
    (``quorum.tools.results.compare``) sees numbers in texts, too.

    Raises:
        UnreadableCsv: It is no CSV (``quorum.evals.tabular.frames``).
    """
    return table_of(read_frame(path, nulls=NULLS))


def table_of(frame: Frame) -> pa.Table:
    """A frame as a table; NaN is NULL."""
    import pyarrow as pa

    return pa.Table.from_arrays([_arrow(column) for column in frame.columns], names=list(frame.names))


def read_parquet(path: Path) -> pa.Table:
    """The table in a Parquet file, whoever wrote it.

    Raises:
        QuorumError: It cannot be read.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(path).read()
    except (OSError, pa.ArrowException) as error:
        raise QuorumError(f"{path} cannot be read as Parquet: {error}.") from error


def _arrow(column: Column) -> pa.Array:
    import pyarrow as pa

    if column.dtype != object:
        return pa.array(column, from_pandas=True)  # NaN is NULL
    values = cells(column)
    if all(value is None or isinstance(value, bool) for value in values):
        return pa.array(values, pa.bool_() if any(value is not None for value in values) else pa.string())
    return pa.array([None if value is None else str(value) for value in values], pa.string())
