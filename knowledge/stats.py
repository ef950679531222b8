"""Sizes of schema texts: what ``quorum schema stats FOLDER`` prints."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.compress import SchemaText, render
from quorum.knowledge.folder import find_database_folders, load_folder

_SUMMED = ("tables", "columns", "nested_paths", "bytes", "tokens")


def stats(folder: str | Path, *, budget: int | None = None) -> dict[str, Any]:
    """Load and render every database at or below ``folder``.

    Args:
        folder: See ``quorum.knowledge.folder.find_database_folders``.
        budget: Tokens per database, as for ``quorum.knowledge.compress.render``.

    Returns:
        ``{"total": {"databases", "tables", "columns", "nested_paths", "bytes", "tokens",
        "seconds", "load_seconds"}, "databases": [...]}``. Each database has ``name``, ``dialect``,
        the same counts (``bytes``: UTF-8 bytes of its text; ``tokens``: estimated; ``seconds``:
        to group and write it, once read), ``left_out`` and ``notes`` (lists of sentence parts).

    Raises:
        ConfigurationError: As ``find_database_folders`` and ``load_folder``.
    """
    databases = []
    loading = 0.0
    for path in find_database_folders(folder):
        begun = time.perf_counter()
        catalog = load_folder(path)
        loaded = time.perf_counter()
        text = render(catalog, budget=budget)
        databases.append(_row(catalog, text, time.perf_counter() - loaded))
        loading += loaded - begun
    return {"total": _total(databases, loading), "databases": databases}


def catalog_stats(
    catalog: Catalog, *, budget: int | None = None, load_seconds: float = 0.0
) -> dict[str, Any]:
    """The same answer for one catalog that is already there, e.g. of a live database.

    Args:
        load_seconds: What it took to read it.
    """
    begun = time.perf_counter()
    text = render(catalog, budget=budget)
    row = _row(catalog, text, time.perf_counter() - begun)
    return {"total": _total([row], load_seconds), "databases": [row]}


def _row(catalog: Catalog, text: SchemaText, seconds: float) -> dict[str, Any]:
    return {
        "name": catalog.name,
        "dialect": catalog.dialect,
        "tables": len(catalog.tables),
        "columns": sum(len(table.columns) for table in catalog.tables),
        "nested_paths": sum(len(column.fields) for _, column in catalog.columns()),
        "bytes": text.bytes,
        "tokens": text.tokens,
        "seconds": round(seconds, 4),
        "left_out": list(text.left_out),
        "notes": list(catalog.notes),
    }


def _total(databases: Iterable[dict[str, Any]], loading: float) -> dict[str, Any]:
    rows = list(databases)
    sums = {key: sum(row[key] for row in rows) for key in _SUMMED}
    seconds = round(sum(row["seconds"] for row in rows), 4)
    return {"databases": len(rows), **sums, "seconds": seconds, "load_seconds": round(loading, 4)}
