"""Structured replies: the JSON schema that is asked for, and the object that is found in a reply."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import lru_cache
from typing import Any

from pydantic import BaseModel, ValidationError

from quorum.knowledge.errors import in_words


class Method(StrEnum):
    """Ways to ask for a JSON object, best first.

    ``BUILT_IN`` is for models that know every role's form by themselves (offline, scripted, replay).
    """

    JSON_SCHEMA = "json_schema"
    FUNCTION_CALLING = "function_calling"
    JSON_MODE = "json_mode"
    TEXT = "text"
    BUILT_IN = "built_in"


class ProblemKind(StrEnum):
    """Reasons for which a reply that arrived is unusable."""

    EMPTY = "empty"
    REFUSAL = "refusal"
    LENGTH = "length"  # cut off at the output limit
    NO_JSON = "no_json"
    INVALID = "invalid"  # JSON of another form


@dataclass(frozen=True)
class Problem:
    """A fault of a reply: its kind, and one line for people and for the repair prompt."""

    kind: ProblemKind
    message: str


NOT_TEXT = Problem(
    ProblemKind.INVALID, "The reply holds half of a surrogate pair, which is no character; write it whole."
)

_HALF_PAIR = re.compile(r"[\ud800-\udfff]")


def has_half_pair(text: str) -> bool:
    """True if the text holds a lone surrogate: JSON can say it, UTF-8 and every database cannot."""
    return _HALF_PAIR.search(text) is not None


def without_half_pairs(text: str) -> str:
    """Return the text with U+FFFD for each lone surrogate."""
    return _HALF_PAIR.sub("\ufffd", text)


@lru_cache(maxsize=256)
def function_of(output: type[BaseModel]) -> dict[str, Any]:
    """Return an output model as a function: name, description, parameters, strict.

    ``parameters`` is a JSON schema; in the subset that every provider's strict mode takes, all fields
    required and no extra ones, where that can express the model, and else ``strict`` is False. The fields'
    descriptions are in the prompt (``form_of``).

    Raises:
        TypeError: The model is no object (a RootModel over a list, say), which no provider takes.
    """
    from langchain_core.utils.function_calling import convert_to_openai_function

    function = convert_to_openai_function(output)
    if function["parameters"].get("type") != "object":
        raise TypeError(f"{output.__name__} is not a JSON object: wrap its value in a field.")
    if strict := not _OPEN_PART.search(json.dumps(function["parameters"])):
        function = convert_to_openai_function(output, strict=True)
    return function | {"parameters": _bare(function["parameters"]), "strict": strict}


_OPEN_PART = re.compile(r'"additionalProperties": (?!false)|"prefixItems"|: \{\}')
"""Parts of a schema that no strict mode can enforce: free keys, tuples, a value of any type."""


def _bare(node: Any, *, names: bool = False) -> Any:
    """Return a schema without defaults and descriptions: all fields are required, the prompt describes them
    (``form_of``).

    Args:
        names: The node's keys are names of fields.
    """
    if isinstance(node, list):
        return [_bare(part) for part in node]
    if not isinstance(node, dict):
        return node
    return {
        key: _bare(part, names=key == "properties" and not names)
        for key, part in node.items()
        if names or key not in ("default", "description")
    }


@lru_cache(maxsize=256)
def form_of(output: type[BaseModel]) -> str:
    """Return an output model for a prompt: a line for each field, with its type and description."""
    raw = output.model_json_schema()
    if "$ref" in raw:  # a recursive model
        raw = raw["$defs"][raw["$ref"].rpartition("/")[2]] | {"$defs": raw["$defs"]}
    fields = _fields(raw, raw.get("$defs", {}), (str(raw.get("title", "")),))
    return "\n".join(["Reply with one JSON object:", *fields])


_CONSTRAINTS = {
    "minimum": "at least",
    "maximum": "at most",
    "exclusiveMinimum": "greater than",
    "exclusiveMaximum": "less than",
    "multipleOf": "a multiple of",
    "minLength": "minimum length",
    "maxLength": "maximum length",
    "pattern": "pattern",
    "minItems": "minimum number of items",
    "maxItems": "maximum number of items",
}


def _fields(node: dict[str, Any], parts: dict[str, Any], inside: tuple[str, ...]) -> Iterator[str]:
    """Yield a line for each field, those of inner objects below; ``inside`` are the outer objects."""
    for name, field in node.get("properties", {}).items():
        limits = ", ".join(f"{words} {field[key]}" for key, words in _CONSTRAINTS.items() if key in field)
        about = " ".join(filter(None, (field.get("description"), limits and f"({limits})")))
        line = f"{'  ' * (len(inside) - 1)}- `{name}` ({_kind(field, parts)})"
        yield ": ".join(filter(None, (line, about)))
        for part in _objects(field, parts):
            if (title := str(part.get("title", ""))) not in inside:  # a recursive model is shown once
                yield from _fields(part, parts, (*inside, title))


def _kind(node: dict[str, Any], parts: dict[str, Any]) -> str:
    """Return a field's type in words: ``string or null``, ``list of objects``, ``"Y" or "N"``."""
    if "$ref" in node:
        return _kind(parts[node["$ref"].rpartition("/")[2]], parts)
    if choices := node.get("enum") or ([node["const"]] if "const" in node else []):
        *most, last = (json.dumps(choice, ensure_ascii=False) for choice in choices)
        return f"{', '.join(most)} or {last}" if most else last
    if choices := node.get("anyOf") or node.get("oneOf"):
        return " or ".join(dict.fromkeys(_kind(choice, parts) for choice in choices))
    if node.get("type") == "array":
        kind = _kind(node.get("items") or {}, parts)
        return f"list of {kind}s" if kind.isalpha() else f"list of {kind}"
    return {"boolean": "true or false"}.get(kind := str(node.get("type", "any value")), kind)


def _objects(node: dict[str, Any], parts: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the objects with fields of their own that a field may hold."""
    if "$ref" in node:
        yield from _objects(parts[node["$ref"].rpartition("/")[2]], parts)
    elif "properties" in node:
        yield node
    for inner in (*node.get("anyOf", ()), *node.get("oneOf", ()), node.get("items")):
        if isinstance(inner, dict):
            yield from _objects(inner, parts)


def parse(text: str, output: type[BaseModel]) -> BaseModel | Problem:
    """Find the JSON object in a reply and validate it.

    Fences, prose around the object, a reasoning block before it and trailing commas are forgiven;
    a wrong form is not. Of several valid objects the one with the most fields counts, the first of
    equals. One that has none of the fields never does, nor one with the fields of an object inside
    the form: it may be a part of a broken reply.
    """
    fields = {field.alias or name for name, field in output.model_fields.items()} | {*output.model_fields}
    problem: Problem | None = None
    best: BaseModel | None = None
    most = 0
    for found in objects_in(text):
        if has_half_pair(json.dumps(found, ensure_ascii=False)):
            problem = problem or NOT_TEXT
            continue
        try:
            reply = output.model_validate(found)
        except ValidationError as error:
            problem = problem or Problem(ProblemKind.INVALID, one_line(error))
            continue
        if found.keys() >= output.model_fields.keys():
            return reply
        known = len(fields & found.keys())
        if known > most and (found.keys() <= fields or not any(map(found.keys().__le__, _parts(output)))):
            best, most = reply, known
        problem = problem or Problem(ProblemKind.INVALID, f"object: none of {', '.join(sorted(fields))}")
    return best or problem or Problem(ProblemKind.NO_JSON, "The reply holds no JSON object.")


@lru_cache(maxsize=256)
def _parts(output: type[BaseModel]) -> list[set[str]]:
    """Return the fields of each object that an output model may contain."""
    return [{*part.get("properties", ())} for part in output.model_json_schema().get("$defs", {}).values()]


def one_line(error: ValidationError, most: int = 6) -> str:
    """Return a validation error as one line: ``field: fault; …``."""
    found = error.errors(include_url=False, include_context=False)
    lines = [f"{'.'.join(map(str, item['loc'])) or 'object'}: {in_words(item)}" for item in found[:most]]
    more = f"; and {len(found) - most} more" if len(found) > most else ""
    return "; ".join(lines) + more


_REASONING = re.compile(r"\A\s*<(think|thinking|reasoning)>.*?</\1>", re.DOTALL | re.IGNORECASE)
_FENCE = re.compile(r"```[\w-]*[ \t]*\n(.*?)```", re.DOTALL)
_ATTEMPTS = 200  # opening braces tried in one reply: SQL and prose hold few


def objects_in(text: str) -> Iterator[dict[str, Any]]:
    """Yield JSON objects in a text, most likely first: all of it, fenced blocks, then any object."""
    text = _REASONING.sub("", text).strip()
    for candidate in (text, *_FENCE.findall(text)):
        for version in (candidate, without_trailing_commas(candidate)):
            found = _load(version)
            if found is not None:
                yield found
                break
    for version in (text, without_trailing_commas(text)):
        yield from _embedded(version)


def _load(text: str) -> dict[str, Any] | None:
    try:
        found = json.loads(text, strict=False)  # raw line breaks inside strings are common
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _embedded(text: str) -> Iterator[dict[str, Any]]:
    """Yield objects that start inside the text and do not lie inside one another."""
    decoder, start = json.JSONDecoder(strict=False), text.find("{")
    for _ in range(_ATTEMPTS):
        if start < 0:
            return
        try:
            found, end = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            end = start + 1
        else:
            yield found
        start = text.find("{", end)


_STRING_OR_COMMA = re.compile(r'"(?:[^"\\]|\\.)*"|,(?=\s*[}\]])', re.DOTALL)


def without_trailing_commas(text: str) -> str:
    """Return the text without commas before a closing bracket; strings stay as they are."""
    return _STRING_OR_COMMA.sub(lambda match: "" if match[0] == "," else match[0], text)
