"""A question as the rules read it: its gist, what the gist's codes stand for, and which reading is wanted."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable

from quorum.knowledge.catalog import Column, Table
from quorum.tools.offline.draft import Draft
from quorum.tools.offline.lexicon import CUED, STOP, split_words, stems
from quorum.tools.offline.schema import Hit, Mention, Place, Schema, kind


class Reading(Draft):
    """A query that is drafted as a question is read.

    In the ``gist`` whatever words name is a letter and a number: ``T`` a table, ``V`` a value, the letter of
    ``kind`` a column: "average age of singers from 'Rome'" becomes ``average M1 of T3 from V5``.
    """

    def __init__(self, schema: Schema, question: str, temperature: float = 0.0, seed: int = 0) -> None:
        self.temperature, self.seed = min(temperature, 1.0), seed
        self.mentions = list(schema.mentions(split_words(question)))
        tables = {n: m.hits[0].table for n, m in enumerate(self.mentions) if m.hits and not m.hits[0].column}
        hits = Counter(hit.table.full_name for mention in self.mentions for hit in mention.hits)
        most = max(hits.values(), default=0)
        voted = [table for table in schema.tables if hits[table.full_name] == most]
        super().__init__(schema, [*tables.values(), voted[-1 if self.strays("voted", 0.3) else 0]][0])
        self.reached = schema.paths(self.main)
        self.join = "LEFT JOIN" if self.strays("left", 0.25) else "JOIN"
        self.named = {n: table for n, table in tables.items() if table.full_name in self.reached}
        self.places = {f"T{n}": schema.label(table) for n, table in self.named.items()}  # by code
        self.gist = " ".join(self._code(n, mention) for n, mention in enumerate(self.mentions))

    def strays(self, where: str, share: float) -> bool:
        """True in about ``share`` of the seeds at temperature 1, never at 0: how readings differ."""
        return random.Random(f"{self.seed}/{where}").random() < share * self.temperature

    def _code(self, n: int, mention: Mention) -> str:
        """The code of a mention; a column is rather one of the table named nearest, or at all."""
        if mention.letter != "N" or n in self.named:
            return f"T{n}" if n in self.named else f"V{n}" if mention.letter else mention.text.lower()
        near = self.named.get(min(self.named, key=lambda other: abs(other - n), default=n), self.main)

        def doubt(hit: Hit) -> float:
            close = 0.5 * (hit.table is near) + 0.35 * (hit.table in (self.main, *self.named.values()))
            close -= 0.1 * len(self.reached.get(hit.table.full_name, ()))
            return 0.3 * self.strays(f"{n} {hit.table.name}", 0.35) - hit.score - close

        trusted = Hit(1.0, self.main, Column(mention.text, "NUMERIC"))  # snake_case, taken as written
        columns = self.columns(sorted(mention.hits or [trusted], key=doubt))
        self.places |= {f"{kind(place[1])}{n}": place for place in columns[:1]}
        return f"{kind(columns[0][1])}{n}" if columns else mention.text.lower()

    def columns(self, hits: Iterable[Hit]) -> list[Place]:
        """The columns among the hits that the query can reach."""
        return [(hit.table, hit.column) for hit in hits if hit.column and hit.table.full_name in self.reached]

    def column(self, wanted: Callable[[Column], bool]) -> Place | None:
        """The first column that is ``wanted`` in the main table, those named and those needed so far."""
        tables = [self.main, *self.named.values(), *self.used]
        return next(((t, c) for t in tables for c in t.columns if wanted(c)), None)

    def dated(self, kinds: str = "D") -> Place | None:
        """The date that periods are about: one beside what is measured, else of the tables named."""
        measured = [place[0] for code, place in self.places.items() if code[0] == "M"]
        beside = ((t, c) for t in measured if t is not self.main for c in t.columns if kind(c) in kinds)
        first = next(beside, None) or self.column(lambda column: kind(column) in kinds)
        others = [c for c in first[0].columns if kind(c) == "D"] if first else []
        return (first[0], others[-1]) if first and others and self.strays("date", 0.25) else first

    @property
    def unread(self) -> bool:
        """Whether most words that may name something name nothing in the schema."""
        words = {m.text.lower() for m in self.mentions if not m.letter and m.text.isalpha()} - STOP - CUED
        known = sum(bool(mention.letter) for mention in self.mentions)
        return not any(mention.hits for mention in self.mentions) or len(words) > 2 * known

    def amount(self, code: str | None, function: str = "") -> str:
        """What rows are compared or put in order by: a column, or how many of a table there are."""
        text = self.ref(self.places[code] if code else self.schema.label(self.main))
        return (f"{function}({text})" if function else text) if code and code[0] != "T" else "COUNT(*)"

    def show(self, at: int, text: str) -> None:
        """Some readings show what rows are put in order by."""
        if self.strays("shown", 0.3):
            self.items |= {0: self.label(self.main), at + 1: (text, None if "(" in text else self.main)}

    def label(self, table: Table) -> tuple[str, Table]:
        """How a row of the table is shown: its label, in some readings its key."""
        key = self.schema.key(table) if self.strays("label", 0.2) else None
        return self.ref((table, key) if key else self.schema.label(table)), table


def measures(table: Table) -> list[Column]:
    """The columns whose numbers measure something: no keys, by their names."""
    return [column for column in table.columns if kind(column) == "M" and stems(column.name)[-1] != "id"]
