"""MySQL's values to Arrow columns, by what the server says of each column of a result."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from quorum.tools.databases.arrow import ArrowType

UNSIGNED = 32
"""The flag of a column without negative numbers."""
BINARY = 63
"""The number of the character set that bytes have."""
NAMES = {
    0: "decimal", 1: "tinyint", 2: "smallint", 3: "int", 4: "float", 5: "double", 6: "null", 7: "timestamp",
    8: "bigint", 9: "mediumint", 10: "date", 11: "time", 12: "datetime", 13: "year", 15: "varchar", 16: "bit",
    245: "json", 246: "decimal", 247: "enum", 248: "set", 249: "tinytext", 250: "mediumtext", 251: "longtext",
    252: "text", 253: "varchar", 254: "char", 255: "geometry",
}  # fmt: skip
"""The engine's names of the protocol's types (MySQL, "Protocol::ColumnType")."""
WHOLE = {1, 2, 3, 8, 9, 13}
DECIMALS = {0, 246}
TIMES = {10: pa.date32(), 7: pa.timestamp("us"), 12: pa.timestamp("us")}
BYTES = {"text": "blob", "tinytext": "tinyblob", "mediumtext": "mediumblob", "longtext": "longblob"}
BYTES |= {"varchar": "varbinary", "char": "binary"}


def kind_of(field: Any) -> ArrowType:
    """Return Arrow's type for a column of a result; ``field`` is the driver's description of it."""
    code = field.type_code
    wanted: pa.DataType | None = None
    if code in WHOLE:
        wanted = pa.uint64() if code == 8 and field.flags & UNSIGNED else pa.int64()
    elif code in DECIMALS:
        digits, scale = _digits(field)
        wanted = pa.decimal128(digits, scale) if digits <= 38 else pa.decimal256(digits, scale)
    elif code in (4, 5):
        wanted = pa.float64()
    elif code == 16:
        wanted = pa.uint64()
    elif code == 255 or (field.charsetnr == BINARY and NAMES.get(code) in BYTES):
        wanted = pa.binary()
    elif code in TIMES:
        wanted = TIMES[code]
    return ArrowType(wanted, wanted or pa.string())


def type_name(field: Any) -> str:
    """The engine's name of a column's type."""
    name = NAMES.get(field.type_code, "unknown")
    if field.type_code in DECIMALS:
        digits, scale = _digits(field)
        return f"decimal({digits},{scale})"
    if field.charsetnr == BINARY and name in BYTES:
        return BYTES[name]
    return f"{name} unsigned" if field.type_code in WHOLE and field.flags & UNSIGNED else name


def _digits(field: Any) -> tuple[int, int]:
    """Digits in all and behind the point; the length that is told counts sign and point, too."""
    signs = (0 if field.flags & UNSIGNED else 1) + (1 if field.scale else 0)
    return max(1, min(76, field.length - signs)), field.scale


def converters() -> dict[Any, Any]:
    """The driver's, but for what Arrow cannot hold as the driver makes it: texts stay texts."""
    from pymysql.constants import FIELD_TYPE
    from pymysql.converters import conversions

    known: dict[Any, Any] = dict(conversions)
    return known | {FIELD_TYPE.TIME: str, FIELD_TYPE.BIT: lambda raw: int.from_bytes(raw, "big")}
