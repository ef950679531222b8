"""What replies of several agents have in common."""

from __future__ import annotations

from typing import Annotated, TypeAlias

from pydantic import AfterValidator


def _some_sql(sql: str) -> str:
    if not sql.strip():
        raise ValueError("sql is empty")
    return sql.strip()


SqlText: TypeAlias = Annotated[str, AfterValidator(_some_sql)]
"""A query in a reply: an empty one is sent back, white space around it goes."""
