"""Which files define tables and metrics for tools, and are no documents: dbt's artifacts, OSI models."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from quorum.knowledge.definitions.dbt import is_manifest, read_manifest
from quorum.knowledge.definitions.dbt_metrics import is_semantic_manifest, read_semantics
from quorum.knowledge.definitions.model import Definitions, mapping
from quorum.knowledge.definitions.ossie import is_ossie, looks_like_ossie, read_ossie

ARTIFACTS = ("manifest.json", "semantic_manifest.json")
"""The names of dbt's files."""

MAX_BYTES = 64 * 2**20
"""Of one of dbt's files; those of large projects take tens of megabytes."""

_YAML = (".yml", ".yaml")

Reader = Callable[[str, Mapping[str, Any]], Definitions]


def read_definitions(file: str, written: str) -> Definitions | None:
    """Read what a file defines; return None if it is no such file, and so perhaps a document.

    A file that bears the name of one of dbt's and cannot be read defines nothing; its notes say why. Other
    files that cannot be read are none of these.

    Args:
        file: Its name, relative to the folder of the documents.
        written: Its text.
    """
    name = file.rpartition("/")[2].lower()
    if name.endswith(_YAML) and not looks_like_ossie(written):
        return None
    try:
        content = _content(name, written)
        reader = _reader(content)
        return reader(file, content) if reader else None
    except RecursionError:
        why = "is nested too deeply"
    except ValueError as error:
        why = str(error)
    return Definitions(file, "", notes=(f"{file} {why}: it defines nothing.",)) if name in ARTIFACTS else None


def _reader(content: Mapping[str, Any]) -> Reader | None:
    if is_manifest(content):
        return read_manifest
    if is_semantic_manifest(content):
        return read_semantics
    return read_ossie if is_ossie(content) else None


def _content(name: str, written: str) -> dict[str, Any]:
    """The mapping that a file holds; empty where it holds something else.

    Raises:
        ValueError: It is damaged; the message goes on from the file's name.
        RecursionError: It is nested too deeply.
    """
    if name.endswith(_YAML):
        import yaml

        try:
            return mapping(yaml.safe_load(written))
        except yaml.YAMLError as error:
            raise ValueError("is no YAML") from error
    try:
        return mapping(json.loads(written))
    except json.JSONDecodeError as error:
        raise ValueError(f"is no JSON, line {error.lineno}") from error
