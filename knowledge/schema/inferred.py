"""Keys inside semi-structured values: what sample values of a VARIANT or JSON column contain.

The paths found are inferred: another row may hold more. Only leaves become fields, for their
parents are seen in the path.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Set
from dataclasses import dataclass, field, replace
from typing import Any

from quorum.knowledge.catalog import Field

MAX_FIELDS = 400
"""Paths kept for one column; ``infer_fields`` ends with a ``...`` path where there were more."""

MAX_PAIRS = 60
"""Names kept of an array of name/value pairs."""

MAX_DEPTH = 24
"""Levels read; what lies deeper is shown as ``object`` or ``array``."""

_SEEN = "seen: "
_KINDS = {type(None): "null", bool: "boolean", int: "number", float: "number", dict: "object", list: "array"}
_DATA_KEY = re.compile(
    r"\d.*|[0-9a-fA-F]{8,}|[0-9a-fA-F]{8}-[0-9a-fA-F-]{20,}|.*://.*|.*@.*|.{81,}|[A-Za-z]{1,4}[-_]?\d{3,}"
)
_PLAIN_KEY = re.compile(r"\w[\w$]*(?:-[\w$]+)*")
_PAIR_NAMES = ("key", "name", "Key", "Name", "KEY", "NAME")
_MANY_KEYS = 60


@dataclass
class _JsonNode:
    kinds: dict[str, None] = field(default_factory=dict)
    keys: dict[str, _JsonNode] = field(default_factory=dict)
    items: _JsonNode | None = None
    objects: int = 0
    pairs: dict[str, str] = field(default_factory=dict)


def infer_fields(values: Iterable[Any]) -> tuple[Field, ...]:
    """Fields of a column from sample values: JSON text, or values already parsed.

    A map whose keys are data (ids, hashes, dates, numbers, or very many) becomes one ``*``
    segment. An array of name/value pairs lists the names seen in the description of its name
    field. Values that are not JSON objects or arrays teach nothing.
    """
    nested = [parsed for parsed in map(parse_nested, values) if parsed is not None]
    if not nested:  # as of nearly all columns
        return ()
    root = _JsonNode()
    for parsed in nested:
        _add(root, parsed, 0)
    _fold(root)
    fields = list(_leaves(root, ""))
    if len(fields) > MAX_FIELDS:
        more = Field("...", f"{len(fields) - MAX_FIELDS} more", inferred=True)
        fields = [*fields[:MAX_FIELDS], more]
    return tuple(f for f in fields if f.path)


def parse_nested(value: Any) -> dict[str, Any] | list[Any] | None:
    """A JSON object or array, from its text or as it is; None for anything else."""
    if isinstance(value, str):
        if value.lstrip()[:1] not in {"{", "["}:
            return None
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):  # cut, not JSON after all, or absurdly deep
            return None
    return value if isinstance(value, dict | list) else None


def _add(node: _JsonNode, value: Any, depth: int) -> None:
    node.kinds[_KINDS.get(type(value), "string")] = None
    if depth >= MAX_DEPTH:
        return
    if isinstance(value, dict):
        node.objects += 1
        for key, inner in value.items():
            _add(node.keys.setdefault(str(key), _JsonNode()), inner, depth + 1)
    elif isinstance(value, list) and value:
        items = node.items = node.items or _JsonNode()
        for inner in value:
            _add(items, inner, depth + 1)
            if isinstance(inner, dict):
                _note_pair(items, inner)


def _note_pair(node: _JsonNode, item: dict[str, Any]) -> None:
    """Keep the name of a name/value pair, and which field of its value is the one filled."""
    label = next((item[n] for n in _PAIR_NAMES if isinstance(item.get(n), str)), "")
    values = [inner for key, inner in item.items() if key.lower().startswith("value")]
    if not label or len(item) > 3 or not values:
        return
    filled = (
        [key for key, inner in values[0].items() if inner is not None] if isinstance(values[0], dict) else []
    )
    if not node.pairs.get(label):
        node.pairs[label] = filled[0] if len(filled) == 1 else ""


def _is_map(node: _JsonNode) -> bool:
    """True if the keys are data: by their form, or because they are very many and alike inside."""
    if node.keys and all(map(_DATA_KEY.fullmatch, node.keys)):
        return True
    if len(node.keys) <= _MANY_KEYS:
        return False
    shapes = {(tuple(child.kinds), tuple(child.keys)) for child in node.keys.values()}
    often = max(1, node.objects // 2)
    return len(shapes) <= 2 and all(child.objects <= often for child in node.keys.values())


def _fold(node: _JsonNode) -> None:
    if _is_map(node):
        merged = _JsonNode()
        for child in node.keys.values():
            _merge(merged, child)
        node.keys = {"*": merged}
    for child in node.keys.values():
        _fold(child)
    if node.items is not None:
        _fold(node.items)


def _merge(into: _JsonNode, other: _JsonNode) -> None:
    into.kinds |= other.kinds
    into.objects += other.objects
    into.pairs |= other.pairs
    for key, child in other.keys.items():
        _merge(into.keys.setdefault(key, _JsonNode()), child)
    if other.items is not None:
        into.items = into.items or _JsonNode()
        _merge(into.items, other.items)


def _segment(key: str) -> str:
    return key if key == "*" or _PLAIN_KEY.fullmatch(key) else "[" + json.dumps(key, ensure_ascii=False) + "]"


def _leaves(node: _JsonNode, path: str) -> Iterable[Field]:
    for key, child in node.keys.items():
        segment = _segment(key)
        joint = "." if path and not segment.startswith("[") else ""
        for leaf in _leaves(child, f"{path}{joint}{segment}"):
            named = bool(node.pairs) and key in _PAIR_NAMES and leaf.type == "string"
            yield replace(leaf, description=_pairs_text(node.pairs)) if named else leaf
    if node.items is not None:
        yield from _leaves(node.items, f"{path}[]")
    spelt_out = ({"object", "null"} if node.keys else set()) | ({"array", "null"} if node.items else set())
    if kinds := node.kinds.keys() - spelt_out:
        yield Field(path, _joined(kinds), inferred=True)


def _pairs_text(pairs: dict[str, str]) -> str:
    names = sorted(f"{name} ({part})" if part else name for name, part in pairs.items())
    if all(_DATA_KEY.fullmatch(name) for name in pairs) or any(len(n) > 80 or ", " in n for n in names):
        return ""
    more = [f"{len(names) - MAX_PAIRS} more"] if len(names) > MAX_PAIRS else []
    return _SEEN + ", ".join(names[:MAX_PAIRS] + more)


def merge_fields(first: tuple[Field, ...], second: tuple[Field, ...]) -> tuple[Field, ...]:
    """The union of two lists of fields by path: types joined by ``|``, names seen united."""
    merged = {f.path: f for f in first}
    for other in second:
        mine = merged.get(other.path)
        if mine is None:
            merged[other.path] = other
        elif mine != other:
            merged[other.path] = _merge_field(mine, other)
    return tuple(merged.values())


def _merge_field(mine: Field, other: Field) -> Field:
    description = mine.description or other.description
    if mine.description.startswith(_SEEN) and other.description.startswith(_SEEN):
        names = {n for d in (mine.description, other.description) for n in d.removeprefix(_SEEN).split(", ")}
        named = {n.rpartition(" (")[0] for n in names}
        description = _SEEN + ", ".join(sorted(names - named))
    if not (mine.inferred and other.inferred):
        return replace(mine, description=description)
    return replace(
        mine, type=_joined({*mine.type.split("|"), *other.type.split("|")}), description=description
    )


def _joined(kinds: Set[str]) -> str:
    """JSON types as one, without NULL."""
    return "|".join(sorted(kinds - {"null"})) or "null"
