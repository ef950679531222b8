"""A catalog cut into parts that a model can judge one by one, and what its judgements leave."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from quorum.knowledge.schema.layouts import find_layouts
from quorum.knowledge.schema.render import render
from quorum.tools.linking import Linked

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Catalog

UNIT_TOKENS = 4_000
"""Budget for the descriptions and samples of one unit; names and types are never cut."""

CHUNK_TOKENS = 20_000
"""Tokens of schema that a draft is written against at a time."""


def units(catalog: Catalog) -> dict[str, Catalog]:
    """Each table by itself, tables of one layout (shards) together, by the first one's full name."""
    layouts = find_layouts(catalog)
    return {la.tables[0].full_name: replace(catalog, tables=la.tables, notes=()) for la in layouts}


def unit_texts(parts: Mapping[str, Catalog]) -> dict[str, str]:
    """The units as schema text."""
    return {name: render(part, budget=UNIT_TOKENS).text for name, part in parts.items()}


def chunks(catalog: Catalog, tokens: int = CHUNK_TOKENS) -> list[Catalog]:
    """The whole catalog in parts of at most ``tokens`` each, tables of one layout together.

    A unit that is larger by itself is a part of its own.
    """
    parts: list[list[Catalog]] = []
    room = 0
    for unit in units(catalog).values():
        size = render(unit, budget=UNIT_TOKENS).tokens
        if not parts or size > room:
            parts.append([])
            room = tokens
        parts[-1].append(unit)
        room -= size
    return [replace(catalog, tables=tuple(t for unit in part for t in unit.tables)) for part in parts]


def needed(parts: Mapping[str, Catalog], wanted: Mapping[str, Iterable[str] | None]) -> Linked:
    """What judged units leave of the catalog they were cut from.

    Args:
        parts: The units, by name.
        wanted: By unit, the columns to keep in each of its tables; None for all of them. Names that
            no column has are passed over; a unit of which none is left keeps all.
    """
    tables = [table for name in parts if name in wanted for table in parts[name].tables]
    columns = tuple(
        (table.full_name, column.name)
        for name, names in wanted.items()
        if name in parts and names is not None
        for table in parts[name].tables
        for name in names
        if (column := table.column(name.rpartition(".")[2].strip('"`[] ')))
    )
    return Linked(tuple(table.full_name for table in tables), columns)
