"""All kept rows of an answer, from its Parquet file."""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from quorum.knowledge.errors import QuorumError

if TYPE_CHECKING:
    from quorum.graph.answer import Answer

_BATCH = 5_000  # rows in memory at a time


def result_rows(answer: Answer) -> Iterator[list[Any]]:
    """Every kept row as JSON-ready values; memory stays flat.

    Raises:
        QuorumError: The result's file is gone or broken.
    """
    if not answer.result_file:
        yield from answer.rows
        return
    import pyarrow as pa
    import pyarrow.parquet as pq

    from quorum.tools.results import plain_rows

    path = Path(answer.result_file)
    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH):
                yield from plain_rows(pa.Table.from_batches([batch]))
    except (OSError, pa.ArrowInvalid) as error:
        raise QuorumError(f"Cannot read the rows in {path}: {error}.") from error


def write_csv(answer: Answer, out: TextIO) -> None:
    """The header and all rows; NULL is an empty field, nested values are JSON."""
    if not answer.columns:
        return
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(answer.columns)
    for row in result_rows(answer):
        writer.writerow([_field(value) for value in row])


def _field(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value
