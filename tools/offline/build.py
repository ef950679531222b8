"""From a question and a schema to SQL: the rules in their order."""

from __future__ import annotations

from tools.offline import cues, filters, shape
from tools.offline.draft import Draft
from tools.offline.lexicon import tokenize
from tools.offline.link import Linker
from tools.offline.reader import Choice, Reader
from tools.offline.terms import read_terms

CONDITIONS = (
    filters.read_periods,
    filters.read_comparisons,
    filters.read_patterns,
    filters.read_values,
    filters.read_flags,
)

# Conditions come early: the words that they take must not be read as columns to show.
RULES = (
    filters.read_periods,
    shape.read_order,
    *CONDITIONS[1:],
    shape.read_functions,
    shape.read_superlatives,
    shape.read_groups,
    shape.read_counts,
    shape.read_columns,
)


def build_sql(linker: Linker, question: str, choice: Choice | None = None, documents: str = "") -> str:
    """The SQL that the rules read out of ``question``; always a complete query. See ``draft_query``."""
    return draft_query(linker, question, choice, documents).sql()


def draft_query(linker: Linker, question: str, choice: Choice | None = None, documents: str = "") -> Draft:
    """The query that the rules read out of ``question``.

    A word that nothing in the schema resembles is passed over; a
    snake_case word is trusted as a column's name even where the schema has no such column.

    Args:
        choice: Which reading to take where several are near; the best one by default.
        documents: Text that may define business terms by a condition, see ``terms``.
    """
    choice = choice or Choice()
    reader = Reader(linker, tokenize(question), choice)
    read_terms(reader, documents)
    read_absence(reader)
    for rule in RULES:
        rule(reader)
    reader.draft.outer = choice.strays("outer join", 0.3)
    return reader.draft


def read_absence(reader: Reader) -> None:
    """``singers without any concert in 2014``: keys that do not occur among the other table's rows."""
    for place, word in enumerate(reader.words[:-1]):
        following = reader.tokens[place + 1]
        compared = following.kind == "number" or reader.words[place + 1] in ("more", "less", "fewer", "only")
        if word not in cues.NEGATIONS or compared:
            continue
        mention = next((m for m in reader.mentions if place < m.start <= place + 6), None)
        table, main = reader.table(mention), reader.draft.main
        path = reader.schema.path(main, table, reader.draft.hints) if table is not None else None
        if mention is None or not path:  # the path from a table to itself is empty
            continue
        inner = Reader(reader.linker, reader.tokens[mention.start :], reader.choice, table)
        for rule in CONDITIONS:
            rule(inner)
        inner.draft.having = []
        key = (path[0].right, path[0].right_column)
        inner.draft.shown = [(0, *key)]
        inner.draft.where.append(f"{inner.draft.ref(*key)} IS NOT NULL")  # NOT IN is never true of a NULL
        body = inner.draft.sql().replace("\n", "\n  ")
        reader.draft.where.append(f"{reader.draft.ref(main, path[0].left_column)} NOT IN (\n  {body}\n)")
        reader.use(place, len(reader.words))
        reader.named = {start: table for start, table in reader.named.items() if start < place}
        return
