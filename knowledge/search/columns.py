"""The columns of a catalog as texts that are searched: the semantic retrieval of SQLAgent's InfoAgent.

The paper's (001, section 3.3 and appendix B.1) is the template of a column's text, its embedding and its
index in FAISS. Ours is that a shared field group is indexed once, the search by words, for which names and
descriptions of tables count as well, and how tables are ranked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.schema.layouts import units
from quorum.knowledge.schema.name_ranges import fold_names
from quorum.knowledge.search.index import Embedder, Ranking, TextIndex, fused, ranked
from quorum.knowledge.search.lexical import COMMON, Bm25, distinctive, terms

NEIGHBOURS = 1_000
"""Columns among which tables are looked for by meaning: those below are no nearer than any."""
FUSED = 100
"""Columns of each ranking that are merged at least."""


@dataclass(frozen=True)
class ColumnHit:
    """A column that a query may mean; of a shared field group, that of its first table.

    Attributes:
        table: Full name.
        score: BM25, above 0, or the cosine of query and text.
    """

    table: str
    column: str
    score: float


@dataclass(frozen=True)
class ColumnGroup:
    """The columns of one table, or those that the tables of a shared field group have in common.

    Attributes:
        tables: At least one, in the catalog's order.
        first: Place of the first column's text in the index; the others follow it.
    """

    tables: tuple[Table, ...]
    first: int

    @property
    def columns(self) -> tuple[Column, ...]:
        return self.tables[0].columns


class ColumnIndex:
    """Searches the columns of a catalog by words, or with an embedder by meaning; built when first used.

    Args:
        groups: Tables of one schema that share all names and types of their columns are indexed once.

    Attributes:
        fields: In the order of their first tables.
        texts: One a column, of which an embedder makes vectors; each begins with the names of its tables.
    """

    def __init__(self, catalog: Catalog, *, groups: bool = True) -> None:
        self.fields: list[ColumnGroup] = []
        self._columns: list[tuple[int, Column]] = []
        for tables in units(catalog) if groups else ((table,) for table in catalog.tables):
            self.fields.append(ColumnGroup(tuple(tables), len(self._columns)))
            self._columns += [(len(self.fields) - 1, column) for column in tables[0].columns]
        about = [f"[Table]: {', '.join(table_names(fields.tables))}; " for fields in self.fields]
        self.texts = [about[number] + column_text(column) for number, column in self._columns]

    def search(
        self, query: str, k: int, *, embedder: Embedder | None = None, hybrid: bool = False
    ) -> list[ColumnHit]:
        """The ``k`` columns that bear most on a query, best first: by words, with an embedder by meaning.

        Args:
            hybrid: Both merged by reciprocal rank, of which the scores are then sums.

        Raises:
            ConfigurationError: FAISS, the embedder's package or its model is missing.
            ModelUnavailable: The embedder's endpoint gives no vectors.
        """
        if not self.texts:
            return []
        most = max(k, FUSED) if hybrid else k
        rankings = [self._index.nearest(query, most, embedder)] if embedder else []
        if hybrid or embedder is None:
            rankings.append(ranked(self._bm25.scores(self._asked(query)))[:most])
        best = rankings[0] if len(rankings) == 1 else fused(rankings)
        return [self._hit(place, score) for place, score in best[:k]]

    def tables(
        self, query: str, k: int, *, embedder: Embedder | None = None, hybrid: bool = False
    ) -> list[str]:
        """Full names of the ``k`` tables that bear most on a query, best first; of a group its first table.

        By words, a table has for each term of the query the score of the column that it fits best. By
        meaning, it has the score of its nearest column. ``hybrid`` merges both by reciprocal rank. A table
        for which nothing speaks is not found.

        Raises:
            ConfigurationError, ModelUnavailable: As ``search``.
        """
        rankings = [self._nearest_tables(query, embedder)] if embedder else []
        if hybrid or embedder is None:
            rankings.append(self._tables_by_words(query))
        best = rankings[0] if len(rankings) == 1 else fused(rankings)
        return [self.fields[number].tables[0].full_name for number, _ in best[:k]]

    def called(self, keywords: Iterable[str]) -> list[str]:
        """Full names of the tables whose whole name a keyword is, such as ``order lines`` of order_lines."""
        named: dict[tuple[str, ...], list[str]] = {}
        for fields in self.fields:
            for name in table_names(fields.tables):
                named.setdefault(tuple(terms(name.replace("_", " "))), []).append(fields.tables[0].full_name)
        asked = (tuple(terms(keyword.replace("_", " "))) for keyword in keywords)
        return [name for each in asked if each for name in named.get(each, ())]

    def _hit(self, place: int, score: float) -> ColumnHit:
        number, column = self._columns[place]
        return ColumnHit(self.fields[number].tables[0].full_name, column.name, score)

    def _tables_by_words(self, query: str) -> Ranking:
        """Numbers of fields."""
        import numpy as np

        filled = [number for number, fields in enumerate(self.fields) if fields.columns]
        if not filled:
            return []
        starts = [self.fields[number].first for number in filled]
        total = np.zeros(len(filled), dtype=np.float64)
        for term in self._asked(query):
            scores = self._bm25.scores([term])
            if scores.any():
                total += np.maximum.reduceat(scores, starts)
        return [(filled[place], score) for place, score in ranked(total)]

    def _nearest_tables(self, query: str, embedder: Embedder) -> Ranking:
        """Numbers of fields by their nearest columns."""
        hits = self._index.nearest(query, NEIGHBOURS, embedder) if self.texts else []
        found: dict[int, float] = {}
        for place, score in hits:
            found.setdefault(self._columns[place][0], score)
        return [*found.items()]

    @cached_property
    def unnamed(self) -> ColumnIndex:
        """The same index over the paper's texts, which do not name the tables (SQLAgent, appendix B.1)."""
        other = copy(self)
        other.texts = [column_text(column) for _, column in self._columns]
        vars(other).pop("_index", None)
        return other

    @cached_property
    def first(self) -> dict[str, str]:
        """Each table's full name with that of the first table of its group, which may be itself."""
        return {table.full_name: each.tables[0].full_name for each in self.fields for table in each.tables}

    @cached_property
    def _bm25(self) -> Bm25:
        """Over the terms of names and descriptions: the template's own words and types are in all texts."""
        described = [dict.fromkeys(table.description for table in each.tables) for each in self.fields]
        about = [
            terms(" ".join([*table_names(fields.tables), *texts]))
            for fields, texts in zip(self.fields, described, strict=True)
        ]
        return Bm25(
            [about[number] + terms(f"{column.name} {column.description}") for number, column in self._columns]
        )

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex(self.texts)

    @cached_property
    def _tables_called_so(self) -> set[str]:
        """Words of almost every question that are the whole name of a table, such as ``order``."""
        names = (terms(name) for fields in self.fields for name in table_names(fields.tables))
        return {word for words in names if len(words) == 1 for word in COMMON.intersection(words)}

    def _asked(self, query: str) -> list[str]:
        """The terms of a query that tell columns apart; all of them if none does."""
        found = set(terms(query))
        return sorted(distinctive(found) | (found & self._tables_called_so) or found)


def column_text(column: Column) -> str:
    """Return a column as the paper serialises it (SQLAgent, appendix B.1)."""
    return f"[Name]: {column.name}; [Type]: {column.type}; [Desc]: {column.description}"


def table_names(tables: Sequence[Table]) -> list[str]:
    """Names of a group's tables, those that differ in a number only as one."""
    return [item for item, _ in fold_names(list(dict.fromkeys(table.name for table in tables)))]
