"""A catalog as schema text under a token budget, without losing a name, type or nested path.

Shared field groups are written once, near relatives as differences (``quorum.knowledge.schema.layouts``).
What is left of the budget goes to descriptions and sample values, one level of detail for the whole text;
what did not fit is stated in the text and in the result.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Set
from dataclasses import dataclass, replace
from functools import cache

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.grammar import one_line
from quorum.knowledge.schema.layouts import Layout, find_layouts
from quorum.knowledge.schema.writer import DetailLevel, Writer
from quorum.knowledge.syntax import idioms
from quorum.knowledge.tokens import estimate_tokens

FULL = DetailLevel(samples=12, sample_chars=60, description_chars=None, contents=True)
"""Everything the catalog knows."""

SKELETON = DetailLevel(samples=0, sample_chars=0, description_chars=0)
"""Names, types, nested paths and keys alone."""

LEVELS: tuple[DetailLevel, ...] = (
    FULL,
    replace(FULL, contents=False),
    DetailLevel(3, 40, 400),
    DetailLevel(3, 30, 240),
    DetailLevel(2, 30, 160),
    DetailLevel(2, 24, 120),
    DetailLevel(1, 24, 100),
    DetailLevel(1, 20, 80),
    DetailLevel(1, 16, 60),
    DetailLevel(1, 12, 40),
    DetailLevel(0, 0, 40),
    DetailLevel(0, 0, 24),
    SKELETON,
)
"""Levels of detail, richest first."""

DEFAULT_BUDGET = 12_000
"""Tokens that a text may always take when no budget is named."""

DEFAULT_GROWTH = 2.5
"""Without a budget, a text may take this many times the tokens of its skeleton."""

_MARKS = {
    ":NULLs": ":NULLs: some rows have no value",
    "->": "-> table.column: foreign key",
    "[]": "[..]: samples",
    "[all]": "[all: ..]: all values but NULL",
    "[NULL]": "[NULL only]: no value in any row",
    "no []": "no brackets: values unknown or withheld, or no rows",
    "!": "! about the values, with shares of rows; 9: any digit",
    "unique": "unique: not looked for in large tables",
    "--^": "--^: described above for this name",
}
_BRACKETS = frozenset({"[]", "[all]", "[NULL]"})
_LINES = {
    "tables": "tables A, B: both have these columns, beside them samples of one.",
    "{}": "A_{1..3, 7}: A_1, A_2, A_3 and A_7 (a range between eight-digit dates runs over days).",
    "=": "= T: what the table T holds.",
    "|": "| lines: all rows of the table, in the order of its columns (* withheld).",
    "like": "like T: the columns of T without those in - lines, plus (or changed as in) + lines;"
    " samples are T's.",
    ".": "Indented: paths inside the column above; ARRAY marks what is repeated.",
    "~": "Indented ~: paths below the column above seen in sample values; [] any array element, * any key.",
}


@dataclass(frozen=True)
class SchemaText:
    """A catalog as text.

    Attributes:
        text: In the format that ``quorum.knowledge.schema.writer`` defines.
        tokens: Estimated (``quorum.knowledge.tokens``).
        whole: Tokens of the text with every description and sample value, like tables grouped.
        left_out: What did not fit, and by how much the names alone exceed the budget if they do, one
            sentence part each; empty when nothing is missing.
    """

    text: str
    tokens: int
    whole: int
    left_out: tuple[str, ...]


def render(catalog: Catalog, *, budget: int | None = None) -> SchemaText:
    """Write a catalog for a language model; the same catalog gives the same bytes.

    Args:
        catalog: What to write.
        budget: Tokens. All names, types, nested paths, keys and row counts are written
            even if they exceed it; the rest goes to descriptions and sample values. None: whatever suits
            the catalog's size (``DEFAULT_BUDGET``, ``DEFAULT_GROWTH``).
    """
    writer = Writer(find_layouts(catalog), catalog.dialect)
    full = _write(catalog, writer, FULL)
    if full.tokens <= (DEFAULT_BUDGET if budget is None else budget):
        return full
    skeleton = _write(catalog, writer, SKELETON)
    if budget is None:
        budget = max(DEFAULT_BUDGET, int(skeleton.tokens * DEFAULT_GROWTH))
    if full.tokens <= budget:
        return full
    if skeleton.tokens > budget:
        return replace(_exceeding(skeleton, catalog, budget), whole=full.tokens)
    written = cache(lambda detail: _write(catalog, writer, detail))
    levels = LEVELS[1:]
    richest = bisect_left(levels, True, hi=len(levels) - 1, key=lambda at: written(at).tokens <= budget)
    return replace(written(levels[richest]), whole=full.tokens)


def render_plain(catalog: Catalog) -> SchemaText:
    """Every table by itself with everything that is known, however long: a catalog not compressed."""
    layouts = [Layout((table,), table.columns) for table in catalog.tables]
    return _write(catalog, Writer(layouts, catalog.dialect), FULL)


def _exceeding(found: SchemaText, catalog: Catalog, budget: int) -> SchemaText:
    """The text with the remark that it exceeds the budget, with names and types alone."""
    excess = (
        f"names and types alone exceed the budget of {budget:,} tokens by about {found.tokens - budget:,}"
    )
    gap = "" if catalog.notes or found.left_out else "\n"
    return replace(found, text=f"{found.text}{gap}# {excess}\n", left_out=(*found.left_out, excess))


def _write(catalog: Catalog, writer: Writer, detail: DetailLevel) -> SchemaText:
    blocks = writer.write(detail)
    left_out = writer.left_out()
    tables, columns = len(catalog.tables), sum(len(table.columns) for table in catalog.tables)
    title = f"# database {write_name(catalog.name)} ({write_name(catalog.dialect)})"
    title += f": {_count(tables, 'table')}, {_count(columns, 'column')}"
    head = "\n".join([title, *(f"# {line}" for line in _legend(catalog, writer.used))])
    body = "\n\n".join([head, *blocks])
    tail = [f"# note: {one_line(fact)}" for fact in catalog.facts]
    tail += [f"# left out: {'; '.join(left_out)}"] if left_out else []
    tokens = estimate_tokens(body) + estimate_tokens("\n".join(tail))
    text = "\n".join([body, *([""] if tail else []), *tail]) + "\n"
    return SchemaText(text, tokens, tokens, left_out)


def _legend(catalog: Catalog, used: Set[str]) -> list[str]:
    """A few lines that explain the marks that were used, and only those."""
    silent = set() if _BRACKETS & used else {"no []"}
    marks = [text for mark, text in _MARKS.items() if mark in used and mark not in silent]
    lines = [f"Notation: {'; '.join(marks)}."] if marks else []
    lines += [text for mark, text in _LINES.items() if mark in used]
    lines += [f"To read {line}" for line in idioms(catalog.dialect, used)]
    if len(catalog.tables) > 1 and not any(table.foreign_keys for table in catalog.tables):
        lines.append("No foreign keys are declared; join on columns that mean the same.")
    return lines


def _count(number: int, what: str) -> str:
    return f"{number:,} {what}{'' if number == 1 else 's'}"
