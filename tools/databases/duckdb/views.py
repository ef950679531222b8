"""The files that a DuckDB's views read, and which of them a session may open.

A view names files in calls such as ``read_csv('orders/*.csv')`` or as tables, ``FROM 'orders.csv'``. Those
below the database's own folder are allowed, but not what is hidden there; others, once the URL names them or
a folder above them. Links count by where they lead.
"""

from __future__ import annotations

import glob
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import quote

_NAME = r'(?:"(?:[^"]|"")*"|[^". (]+)'
_HEAD = rf'^CREATE VIEW {_NAME}(?:\.{_NAME})* (?:\((?:"(?:[^"]|"")*"|[^")])*\) )?AS (.*)$'
VIEWS = f"""
    SELECT schema_name || '.' || view_name AS name,
        json_serialize_sql(regexp_extract(sql, '{_HEAD}', 1, 's')) AS tree
    FROM duckdb_views() WHERE database_name = current_database() AND NOT internal AND NOT temporary
"""
"""Every view with its query as DuckDB's own syntax tree; the text is DuckDB's own rendering."""

READERS = {
    *("read_csv", "read_csv_auto", "read_parquet", "parquet_scan"),
    *("read_json", "read_json_auto", "read_json_objects", "read_json_objects_auto"),
    *("read_ndjson", "read_ndjson_auto", "read_ndjson_objects"),
}
"""Functions that read the files named by their first argument."""

SUFFIXES = (".csv", ".tsv", ".parquet", ".json", ".jsonl", ".ndjson", ".gz", ".zst")
"""Ends of names that DuckDB takes for a file's where it knows no table of that name."""


@dataclass
class ViewFiles:
    """The files that the views of a database read.

    Attributes:
        files: Absolute paths, and patterns as they are written, that the session has to allow.
        refused: Reasons for which a view cannot be read, by its full name.
    """

    files: set[str] = field(default_factory=set)
    refused: dict[str, str] = field(default_factory=dict)


def text(value: str) -> str:
    """Return a value as an SQL string."""
    return "'" + value.replace("'", "''") + "'"


def named_files(tree: str) -> list[str]:
    """Return the files and patterns that a query names; ``tree`` is JSON of ``json_serialize_sql``."""
    return list(dict.fromkeys(_named(json.loads(tree))))


def _named(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _named(item)
    elif isinstance(node, dict):
        if node.get("type") == "BASE_TABLE" and not (node["schema_name"] or node["catalog_name"]):
            if node["table_name"].lower().endswith(SUFFIXES):
                yield node["table_name"]
        elif node.get("type") == "TABLE_FUNCTION" and node["function"]["function_name"] in READERS:
            yield from _texts(node["function"]["arguments"][:1])
        for item in node.values():
            yield from _named(item)


def _texts(node: Any) -> Iterator[str]:
    """Yield the string constants in an expression: a text, or a list of texts."""
    if isinstance(node, list):
        for item in node:
            yield from _texts(item)
    elif isinstance(node, dict):
        if node.get("class") == "CONSTANT" and node["literal"]["kind"] == "STRING":
            yield node["literal"]["text"]
        elif node.get("function_name", "list_value") == "list_value":
            yield from _texts(node.get("arguments", node.get("expression")))


def files_of(views: Mapping[str, Sequence[str]], folder: Path, allowed: Sequence[Path]) -> ViewFiles:
    """Return the files that views name, exist, and may be read.

    Args:
        views: The files and patterns that each view names, by the view's full name.
        folder: Of the database. Relative names start where the process does, as in DuckDB, or else there.
        allowed: Files and folders elsewhere that the user has named.
    """
    roots = (folder, *allowed)
    found = ViewFiles()
    for view, names in views.items():
        for name in names:
            if why := _look(name, folder, roots, found.files):
                found.refused[view] = why
    return found


def _look(name: str, folder: Path, roots: Sequence[Path], files: set[str]) -> str:
    """Add the files that ``name`` means to ``files``, or return why not."""
    if "://" in name:
        return f"it reads {name}, and queries have no network."
    here = Path.cwd()
    places = list(dict.fromkeys((here / name, folder / name)))
    for place in places:
        if not _within(_fixed(place), (here, *roots)):
            continue  # not even looked at
        found = glob.iglob(str(place), recursive=True)  # noqa: PTH207 - Path.glob takes no absolute pattern
        if matches := sorted(path for path in found if Path(path).is_file()):
            if elsewhere := [Path(path) for path in matches if not _within(Path(path), roots)]:
                below = _within(elsewhere[0], (_fixed(place),))
                return f"it reads {_consent(place if below else elsewhere[0], folder)}"
            files |= {*matches, str(place), str(places[0])}  # DuckDB looks there first, too
            return ""
    inside = any(_within(_fixed(place), roots) for place in places)
    return f"there is no file {name}." if inside else f"it reads {_consent(places[-1], folder)}"


def _consent(place: Path, folder: Path) -> str:
    place = place.resolve()
    return (
        f"{place}, which does not lie openly below {folder}. If queries may read that, say so in the "
        f"database's URL: duckdb:///…?files={quote(str(_fixed(place)))}"
    )


def _fixed(place: Path) -> Path:
    """Return the path up to its first part with a wildcard."""
    parts = place.parts
    until = next((i for i, part in enumerate(parts) if any(mark in part for mark in "*?[")), len(parts))
    return Path(*parts[:until])


def _within(path: Path, roots: Sequence[Path]) -> bool:
    """Return True if a path leads to a root, or below it without a hidden part."""
    real, tops = path.resolve(), [root.resolve() for root in roots]
    below = (real.relative_to(root).parts for root in tops if real.is_relative_to(root))
    return any(not any(part.startswith(".") for part in parts) for parts in below)
