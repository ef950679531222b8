"""Business terms: what the documents define by a condition in code marks."""

from __future__ import annotations

import re

from tools.offline.lexicon import name_stems, tokenize
from tools.offline.reader import Reader

# **Large order**: an order with `orders.total_amount >= 500`
_DEFINITION = re.compile(r"\*\*(?P<term>[^*\n]+)\*\*[^`*]*`(?P<condition>[^`\n]+)`")
_CONDITION = re.compile(
    r"(?P<left>(?:LOWER\()?(?P<table>\w+)\.(?P<column>\w+)\)?) *"
    r"(?P<sign><=|>=|<>|!=|=|<|>) *(?P<right>'[^']*'|-?\d+(?:\.\d+)?)"
)


def read_terms(reader: Reader, documents: str) -> None:
    """Add the condition of each defined term that the question uses, word for word."""
    stems = [token.stem for token in reader.tokens]
    for definition in _DEFINITION.finditer(documents):
        term = [token.stem for token in tokenize(definition["term"])]
        condition = _CONDITION.fullmatch(definition["condition"])
        place = next((p for p in range(len(stems)) if stems[p : p + len(term)] == term), None)
        if condition is None or place is None:
            continue
        tables = [t for t in reader.schema.tables if t.name.casefold() == condition["table"].casefold()]
        column = tables[0].column(condition["column"]) if tables and reader.draft.reaches(tables[0]) else None
        if column is None:
            continue
        left = condition["left"].replace(
            f"{condition['table']}.{condition['column']}", reader.draft.ref(tables[0], column)
        )
        reader.draft.where.append(f"{left} {condition['sign']} {condition['right']}")
        subject = {*name_stems(tables[0].name)}
        for at in range(place, place + len(term)):  # "orders" of "large orders" still names its table
            if stems[at] not in subject:
                reader.use(at, at + 1)
