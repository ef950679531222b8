"""The legend of schema text, and what stands in the header of a block (format: ``schema_text``)."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.name_ranges import fold_names
from quorum.knowledge.schema_grammar import write_full_name, write_name

_MARKS = {
    ",": '"a, b TYPE": both have that type',
    "PK": "PK: primary key, of all columns so marked together",
    "->": "-> table.column: foreign key",
    "[]": "[..]: sample values, there may be more",
    "[all]": "[all: ..]: all values but NULL",
    "[NULL]": "[NULL only]: no value in any row",
    "no []": "no brackets: values unknown or withheld, or no rows",
    "--": "-- description",
    "--^": "--^: described above for this name",
}
_BRACKETS = frozenset({"[]", "[all]", "[NULL]"})
_LINES = {
    "tables": "tables A_{1..3, 7}: A_1, A_2, A_3 and A_7 have the same columns, samples are from one of them"
    " (a range between eight-digit dates runs over days).",
    "like": "like T: the columns of T without those in - lines, plus (or changed as in) + lines;"
    " samples are T's.",
    ".": "Indented: paths inside the column above; ARRAY marks what is repeated.",
    "~": "Indented ~: paths below the column above seen in sample values; [] any array element, * any key.",
}


def legend(catalog: Catalog, used: Collection[str]) -> list[str]:
    """A few lines that explain the notation that was used, and only that.

    Args:
        catalog: What the text describes.
        used: The marks that the text uses.
    """
    silent = set() if _BRACKETS.intersection(used) else {"no []"}
    marks = [text for mark, text in _MARKS.items() if mark in used and mark not in silent]
    lines = ["Notation: " + "; ".join(['one column a line, "name TYPE"', *marks]) + "."]
    lines += [text for mark, text in _LINES.items() if mark in used]
    if len(catalog.tables) > 1 and not any(table.foreign_keys for table in catalog.tables):
        lines.append("No foreign keys are declared; join on columns that mean the same.")
    if catalog.dialect == "snowflake" and any(c.name != c.name.upper() for _, c in catalog.columns()):
        lines.append("Names are in true case; SQL must quote those with lower-case letters.")
    return lines


def name_parts(table: Table) -> tuple[str, ...]:
    """The parts of a table's full name; an empty schema is kept where a database stands before it."""
    if table.database and not table.schema:
        return table.database, "", table.name
    return (*(part for part in (table.database, table.schema) if part), table.name)


def written_members(tables: Sequence[Table]) -> tuple[str, list[Table]]:
    """The members of a group as items, and the tables in the order of the expanded items."""
    by_qualifier: dict[tuple[str, ...], list[Table]] = {}
    for table in tables:
        by_qualifier.setdefault(name_parts(table)[:-1], []).append(table)
    lists, ordered = [], []
    for qualifier, members in by_qualifier.items():
        by_name = {table.name: table for table in members}
        items = fold_names([table.name for table in members])
        prefix = f"{write_full_name(qualifier)}: " if qualifier else ""
        lists.append(prefix + ", ".join(item for item, _ in items))
        ordered += [by_name[name] for _, names in items for name in names]
    return "; ".join(lists), ordered


def written_facts(tables: Sequence[Table]) -> list[str]:
    """Kind, number of tables, row counts: what stands in the header's brackets."""
    first = tables[0]
    facts = [write_name(first.kind)] if first.kind != "table" else []
    counts = [table.row_count for table in tables]
    if len(tables) == 1:
        return facts + ([f"{counts[0]:,} rows"] if counts[0] is not None else [])
    facts.append(f"{len(tables):,} tables")
    if any(count is not None for count in counts):
        same = len(set(counts)) == 1
        told = f"{counts[0]} each" if same else ", ".join("?" if c is None else str(c) for c in counts)
        facts.append(f"rows {told}")
    return facts
