"""Measures schema linking: an answer's tables and columns against those of the gold SQL."""

from __future__ import annotations

from collections.abc import Collection, Iterable

from quorum.evals.records import Linking
from quorum.knowledge.catalog import Catalog
from quorum.tools.linking import Linked, used
from quorum.tools.sql import SyntaxProblem


def linking_of(sql: str, gold: Iterable[str], catalog: Catalog) -> Linking | None:
    """Recall and precision of what ``sql`` uses; None without SQL or without gold SQL that can be read.

    Against several accepted gold queries, the nearest counts: the one with the best column recall, then
    table recall, then precision. SQL that cannot be read uses nothing.
    """
    golds = [found for text in gold if (found := _used(text, catalog)) is not None and found.tables]
    if not sql.strip() or not golds:
        return None
    own = _used(sql, catalog) or Linked()
    return max((_compare(own, found) for found in golds), key=_rank)


def _compare(own: Linked, gold: Linked) -> Linking:
    tables, columns = _Overlap(own.tables, gold.tables), _Overlap(own.columns, gold.columns)
    return Linking(tables.recall, tables.precision, columns.recall, columns.precision)


class _Overlap:
    def __init__(self, own: Collection[object], gold: Collection[object]) -> None:
        shared = len(set(own) & set(gold))
        self.recall = shared / len(gold) if gold else None
        self.precision = shared / len(own) if own else None


def _rank(linking: Linking) -> tuple[float, ...]:
    order = (linking.column_recall, linking.table_recall, linking.column_precision, linking.table_precision)
    return tuple(1.0 if share is None else share for share in order)  # nothing to miss is nothing missed


def _used(sql: str, catalog: Catalog) -> Linked | None:
    try:
        return used(sql, catalog)
    except SyntaxProblem:
        return None
