"""The OpenAPI document, made of the table of routes."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from quorum import __version__
from quorum.serve.bodies import RUN, ErrorBody
from quorum.serve.routes import WAYS, Way

ERRORS = {
    "400": "The body is no JSON.",
    "401": "The key is missing or wrong.",
    "403": "The host or origin may not ask, or the key may not do this.",
    "404": "There is no such thing, or it is not yours.",
    "409": "It does not fit the state of the question.",
    "413": "The body is too large.",
    "415": "The body is not JSON.",
    "422": "A field, a parameter or a query is wrong.",
    "429": "A limit of the key is reached.",
    "503": "The server is busy, or a database or a model cannot be reached.",
}


@cache
def document() -> dict[str, Any]:
    """Return the document, version 3.1."""
    kinds: Any = [(way.takes, "validation") for way in WAYS if way.method == "POST"]
    kinds += [(model, "serialization") for model in [ErrorBody, *(way.gives for way in WAYS if way.gives)]]
    _, schemas = models_json_schema(kinds, ref_template="#/components/schemas/{model}")
    paths: dict[str, dict[str, Any]] = {}
    for way in WAYS:
        paths.setdefault(way.path, {})[way.method.lower()] = _operation(way)
    keys = {"key": {"type": "http", "scheme": "bearer"}}
    return {
        "openapi": "3.1.0",
        "info": {"title": "Quorum", "version": __version__},
        "paths": paths,
        "components": {"schemas": schemas["$defs"], "securitySchemes": keys},
    }


def _operation(way: Way) -> dict[str, Any]:
    content = {kind: {"schema": _schema(way.gives)} if way.gives else {} for kind in way.types}
    fault = {"content": {"application/json": {"schema": _schema(ErrorBody)}}}
    made: dict[str, Any] = {
        "operationId": way.handler.__name__,
        "summary": way.handler.__doc__,
        "responses": {
            str(way.status): {"description": "Done.", "content": content},
            **{code: {"description": text, **fault} for code, text in ERRORS.items()},
        },
        "parameters": [],
        "security": [] if way.open else [{}, {"key": []}],
    }
    if "{id}" in way.path:
        id: dict[str, Any] = {"name": "id", "in": "path", "required": True}
        made["parameters"].append(id | {"schema": {"type": "string", "pattern": RUN}})
    if way.method == "GET":
        found = way.takes.model_json_schema()["properties"].items()
        made["parameters"] += [{"name": name, "in": "query", "schema": schema} for name, schema in found]
    elif way.takes.model_fields:
        content = {"application/json": {"schema": _schema(way.takes)}}
        made["requestBody"] = {
            "required": way.takes.model_json_schema().get("required", []) != [],
            "content": content,
        }
    return made


def _schema(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
