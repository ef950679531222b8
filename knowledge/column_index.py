"""The columns of a catalog as texts that are searched: the semantic retrieval of SQLAgent's InfoAgent.

The paper's (001, section 3.3 and appendix B.1) is the template of a column's text, its embedding and its
index in FAISS. Ours is that a shared field group is indexed once, that the names and the description of its
tables count beside each column's own text, the search by words, and how tables are ranked.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.index import Embedder, TextIndex
from quorum.knowledge.layouts import select_groups
from quorum.knowledge.lexical import Bm25, terms
from quorum.knowledge.name_ranges import fold_names

RANK_CONSTANT = 60  # reciprocal rank fusion (Cormack et al., 2009)
NEIGHBOURS = 1_000
"""Columns among which tables are looked for by meaning: those below are no nearer than any."""


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
class Fields:
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
        cache: Folder in which vectors are kept; None keeps them in memory only.
        groups: Tables of one schema that share all names and types of their columns are indexed once.

    Attributes:
        fields: In the order of their first tables.
        texts: One a column, by the paper's template.
    """

    def __init__(self, catalog: Catalog, cache: Path | None = None, *, groups: bool = True) -> None:
        self._cache = cache
        self.fields: list[Fields] = []
        self._columns: list[tuple[int, Column]] = []
        for tables in units(catalog) if groups else ((table,) for table in catalog.tables):
            self.fields.append(Fields(tuple(tables), len(self._columns)))
            self._columns += [(len(self.fields) - 1, column) for column in tables[0].columns]
        self.texts = [column_text(column) for _, column in self._columns]

    def search(self, query: str, k: int, *, embedder: Embedder | None = None) -> list[ColumnHit]:
        """The ``k`` columns that bear most on a query, best first: by words, with an embedder by meaning.

        Raises:
            ConfigurationError: FAISS, the embedder's package or its model is missing.
        """
        if embedder is None:
            scores = self._bm25.scores(terms(query))
            best = sorted(scores.nonzero()[0].tolist(), key=lambda place: (-scores[place], place))[:k]
            return [self._hit(place, float(scores[place])) for place in best]
        hits = self._index.nearest(query, k, embedder) if self.texts else []
        return [self._hit(place, score) for place, score in hits]

    def tables(
        self, query: str, k: int, *, embedder: Embedder | None = None, hybrid: bool = False
    ) -> list[str]:
        """Full names of the ``k`` tables that bear most on a query, best first; of a group its first table.

        By words, a table has for each term of the query the score of the column that it fits best. By
        meaning, it has that of its nearest column. ``hybrid`` merges both by reciprocal rank. Tables that
        nothing speaks for come last, in the catalog's order.

        Raises:
            ConfigurationError: As ``search``; or ``hybrid`` has no embedder.
        """
        if hybrid and embedder is None:
            raise ConfigurationError("Hybrid retrieval needs an embedding model.")
        rankings = [self._nearest(query, embedder)] if embedder else []
        if hybrid or embedder is None:
            rankings.append(self._lexical(query))
        best = rankings[0] if len(rankings) == 1 else _fused(rankings)
        whole = dict.fromkeys((*best, *range(len(self.fields))))
        return [self.fields[number].tables[0].full_name for number in list(whole)[:k]]

    def _hit(self, place: int, score: float) -> ColumnHit:
        number, column = self._columns[place]
        return ColumnHit(self.fields[number].tables[0].full_name, column.name, score)

    def _lexical(self, query: str) -> list[int]:
        """Numbers of fields, best first."""
        import numpy as np

        filled = [number for number, fields in enumerate(self.fields) if fields.columns]
        if not filled:
            return []
        starts = [self.fields[number].first for number in filled]
        total = np.zeros(len(filled), dtype=np.float64)
        for term in sorted(set(terms(query))):
            scores = self._bm25.scores([term])
            if scores.any():
                total += np.maximum.reduceat(scores, starts)
        found = total.nonzero()[0].tolist()
        return [filled[place] for place in sorted(found, key=lambda place: (-total[place], place))]

    def _nearest(self, query: str, embedder: Embedder) -> list[int]:
        """Numbers of fields by their nearest columns, best first."""
        hits = self._index.nearest(query, NEIGHBOURS, embedder) if self.texts else []
        return list(dict.fromkeys(self._columns[place][0] for place, _ in hits))

    @cached_property
    def _bm25(self) -> Bm25:
        """Over the terms of names and descriptions: the template's own words and types are in all texts."""
        about = [
            terms(" ".join(table_names(fields.tables)) + " " + _described(fields)) for fields in self.fields
        ]
        return Bm25(
            [about[number] + terms(f"{column.name} {column.description}") for number, column in self._columns]
        )

    @cached_property
    def _index(self) -> TextIndex:
        about = [f"[Table]: {', '.join(table_names(fields.tables))}" for fields in self.fields]
        texts = [f"{about[n]}; {text}" for (n, _), text in zip(self._columns, self.texts, strict=True)]
        return TextIndex(texts, self._cache)


def units(catalog: Catalog) -> list[list[Table]]:
    """Every table once: the groups of each schema (``select_groups``) and the tables that join none.

    They stand in the order of their first tables.
    """
    schemas: dict[tuple[str, str], list[Table]] = {}
    for table in catalog.tables:
        schemas.setdefault((table.database, table.schema), []).append(table)
    group_of = {
        id(table): group
        for tables in schemas.values()
        for group in select_groups(replace(catalog, tables=tuple(tables)))
        for table in group
    }
    found = (group_of.get(id(table), [table]) for table in catalog.tables)
    return list({id(unit[0]): unit for unit in found}.values())


def column_text(column: Column) -> str:
    """A column as the paper serialises it (001, appendix B.1)."""
    return f"[Name]: {column.name}; [Type]: {column.type}; [Desc]: {column.description}"


def table_names(tables: Sequence[Table]) -> list[str]:
    """Names of a group's tables, those that differ in a number only as one."""
    return [item for item, _ in fold_names(list(dict.fromkeys(table.name for table in tables)))]


def _described(fields: Fields) -> str:
    return " ".join(dict.fromkeys(table.description for table in fields.tables))


def _fused(rankings: Iterable[Sequence[int]]) -> list[int]:
    """Merged by reciprocal rank, best first."""
    total: dict[int, float] = {}
    for ranking in rankings:
        for place, number in enumerate(ranking, start=1):
            total[number] = total.get(number, 0.0) + 1 / (RANK_CONSTANT + place)
    return sorted(total, key=lambda number: (-total[number], number))
