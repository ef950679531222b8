"""BigQuery's types by their names in SQL."""

from __future__ import annotations

from typing import Any

NAMES = {"INTEGER": "INT64", "FLOAT": "FLOAT64", "BOOLEAN": "BOOL", "RECORD": "STRUCT"}
"""SQL's names of types that the API calls otherwise."""


def type_name(field: Any) -> str:
    """A field's type as SQL writes it: ``ARRAY<STRUCT<key STRING, value INT64>>``."""
    name = NAMES.get(field.field_type, field.field_type)
    if name == "STRUCT":
        name = f"STRUCT<{', '.join(f'{part.name} {type_name(part)}' for part in field.fields)}>"
    return f"ARRAY<{name}>" if field.mode == "REPEATED" else name
