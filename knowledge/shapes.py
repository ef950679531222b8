"""JSON and YAML that others wrote: what has another shape than expected is taken for nothing."""

from __future__ import annotations

from typing import Any

from quorum.knowledge.schema_grammar import one_line


def mapping(value: Any) -> dict[str, Any]:
    """The mapping itself."""
    return value if isinstance(value, dict) else {}


def mappings(value: Any) -> list[dict[str, Any]]:
    """The mappings in a list, or among the values of a mapping."""
    found = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [item for item in found if isinstance(item, dict)]


def named(content: Any, name: str) -> list[dict[str, Any]]:
    """The things that have a name in a list (or a mapping) of a mapping."""
    return [item for item in mappings(mapping(content).get(name)) if text(item.get("name"))]


def text(value: Any) -> str:
    """A text or a number on one line. Nothing else: written out, a few nested lists could fill the memory."""
    return one_line(str(value)) if isinstance(value, str | int | float) else ""


def texts(value: Any) -> list[str]:
    """The texts in a list, without empty ones."""
    return list(filter(None, map(text, value))) if isinstance(value, list) else []
