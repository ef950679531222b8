"""PostgreSQL's values to Arrow columns.

They come as text, the one form that every type has. What Arrow or Python cannot hold (``infinity``, a date
before Christ, NaN among decimals) makes its column one of texts, as the engine writes them.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import date, datetime, time
from typing import Any

import pyarrow as pa

from quorum.tools.databases.arrow import ArrowType

NUMERIC = 1700
_FLAT = {
    (16, 1000): pa.bool_(),
    (21, 1005): pa.int16(),
    (23, 1007): pa.int32(),
    (20, 1016): pa.int64(),
    (26, 1028): pa.int64(),  # oid
    (700, 1021): pa.float64(),  # float4 as it is written: 0.1 stays 0.1
    (701, 1022): pa.float64(),
    (1082, 1182): pa.date32(),
    (1083, 1183): pa.time64("us"),
    (1114, 1115): pa.timestamp("us"),
    (1184, 1185): pa.timestamp("us", tz="UTC"),
    (1186, 1187): pa.month_day_nano_interval(),
    (17, 1001): pa.binary(),
    (25, 1009): pa.string(),
    (1043, 1015): pa.string(),
}
ARROW: dict[int, pa.DataType] = {
    **{scalar: kind for (scalar, _), kind in _FLAT.items()},
    **{array: pa.list_(kind) for (_, array), kind in _FLAT.items()},
}
"""Arrow's type by the number of PostgreSQL's type and of its arrays; others are inferred: mostly text."""
AS_TEXT = (
    *("json", "jsonb", "uuid", "inet", "cidr", "timetz", "record"),
    *(f"{of}{many}range" for of in ("int4", "int8", "num", "date", "ts", "tstz") for many in ("", "multi")),
)
"""Types that the driver would make objects of."""

_INTERVAL = re.compile(
    r"(?:(?P<years>[+-]?\d+) years? ?)?(?:(?P<months>[+-]?\d+) mons? ?)?(?:(?P<days>[+-]?\d+) days? ?)?"
    r"(?:(?P<sign>[+-]?)(?P<hours>\d+):(?P<minutes>\d\d):(?P<seconds>\d\d)(?:\.(?P<fraction>\d{1,6}))?)?"
)


def _interval(text: str) -> pa.MonthDayNano:
    """An interval in the style ``postgres``, whose parts stay apart: a month has no fixed length."""
    found = _INTERVAL.fullmatch(text)
    if found is None:
        raise ValueError(text)
    units = ("years", "months", "days", "hours", "minutes", "seconds")
    part = {unit: int(found[unit] or 0) for unit in units}
    micros = int((found["fraction"] or "0").ljust(6, "0"))
    micros += ((part["hours"] * 60 + part["minutes"]) * 60 + part["seconds"]) * 10**6
    nanos = (-micros if found["sign"] == "-" else micros) * 1000
    return pa.MonthDayNano((part["years"] * 12 + part["months"], part["days"], nanos))


READERS: dict[str, Callable[[str], Any]] = {
    "date": date.fromisoformat,
    **dict.fromkeys(("timestamp", "timestamptz"), datetime.fromisoformat),
    "time": time.fromisoformat,
    "interval": _interval,
    **dict.fromkeys(AS_TEXT, str),
}
"""What a value's text becomes, by the name of its type; a text that cannot be read stays one."""


def loader(read: Callable[[str], Any]) -> type:
    """``read`` in the form that the driver wants."""

    class Loader:
        format = 0  # text

        def __init__(self, oid: int, connection: object = None) -> None:
            self.oid, self.connection = oid, connection

        def load(self, data: Any) -> Any:
            text = str(data, "utf-8")
            try:
                return read(text)
            except (ValueError, OverflowError):
                return text

    return Loader


def kind_of(number: int) -> ArrowType:
    """Return Arrow's type for a column of the type with that number."""
    wanted = ARROW.get(number)
    if wanted is not None:
        return ArrowType(wanted, wanted)
    return ArrowType(None, pa.decimal128(38, 0) if number == NUMERIC else pa.string())
