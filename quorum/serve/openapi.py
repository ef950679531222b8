"""The OpenAPI document, made of the table of routes."""

from __future__ import annotations

from functools import cache
from typing import Any

from pydantic import BaseModel
from pydantic.json_schema import models_json_schema

from quorum import __version__
from quorum.serve.bodies import RUN, ErrorBody
from quorum.serve.routes import WAYS, Way

ERRORS = {"4XX": "The request is wrong, or may not be made.", "503": "The server, or what it needs, is busy."}


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
    fault = {"application/json": {"schema": _schema(ErrorBody)}}
    made: dict[str, Any] = {
        "operationId": way.handler.__name__,
        "summary": way.handler.__doc__,
        "responses": {
            str(way.status): {"description": "Done.", "content": content},
            **{code: {"description": text, "content": fault} for code, text in ERRORS.items()},
        },
        "parameters": [],
        "security": [] if way.open else [{}, {"key": []}],
    }
    if "{id}" in way.path:
        id = {"type": "string", "pattern": RUN}
        made["parameters"] = [{"name": "id", "in": "path", "required": True, "schema": id}]
    takes = way.takes.model_json_schema()
    if way.method == "GET":
        found = takes["properties"].items()
        made["parameters"] += [{"name": name, "in": "query", "schema": schema} for name, schema in found]
    elif takes["properties"]:
        content = {"application/json": {"schema": _schema(way.takes)}}
        made["requestBody"] = {"required": "required" in takes, "content": content}
    return made


def _schema(model: type[BaseModel]) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{model.__name__}"}
