"""Values of any driver to Arrow columns: what Arrow does not know becomes text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any

import pyarrow as pa

from quorum.tools.databases.arrow import ArrowType

_KNOWN = frozenset({type(None), bool, int, float, str, bytes, Decimal, date, datetime, time, timedelta})


def plain(value: Any) -> Any:
    """A value that Arrow can hold: documents as JSON, large objects read, what else there is as its text."""
    if type(value) in _KNOWN:
        return value
    if isinstance(value, memoryview | bytearray):
        return bytes(value)
    if isinstance(value, dict | list | tuple):
        return json.dumps(value, default=str, ensure_ascii=False)
    if hasattr(value, "read"):  # Oracle's large objects
        return plain(value.read())
    for kind in (str, datetime, date, int, float, Decimal):
        if isinstance(value, kind):  # of a class of the driver's own
            return value
    return str(value)


KIND = ArrowType(None, pa.string())
"""The kind of every column: the type that its values have, for drivers tell types in ways of their own."""


def type_names(described: Sequence[Sequence[Any]], table: pa.Table) -> tuple[str, ...]:
    """The engine's names of the columns' types where the driver tells them, else Arrow's."""
    names = (getattr(column, "type_display", None) or column[1] for column in described)
    return tuple(
        name if isinstance(name, str) and name else str(kind)
        for name, kind in zip(names, table.schema.types, strict=True)
    )
