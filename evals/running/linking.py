"""Schema linking measured against gold, and the tables and columns that a question's gold needs."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from quorum.evals.questions import EvalQuestion, GoldParts
from quorum.evals.records import Linking
from quorum.knowledge.catalog import Catalog
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.linking import Linked, prune, union, used


def linking_of(sql: str, golds: Sequence[Linked], catalog: Catalog) -> Linking | None:
    """Return recall and precision of what ``sql`` uses; None without SQL or gold.

    Against several accepted gold queries, the nearest counts: the one with the best column recall, then
    table recall, then precision. SQL that cannot be read uses nothing.

    Args:
        golds: ``golds_of`` the question.
    """
    if not sql.strip() or not golds:
        return None
    return _nearest(_used(sql, catalog) or Linked(), golds)


def linking_of_schema(
    shown: Linked | None, golds: Sequence[Linked], question: EvalQuestion, catalog: Catalog
) -> Linking | None:
    """Return recall and precision of a linked schema (ReFoRCE, Table 5); None where the question has no gold.

    Against the gold SQL, the nearest of several as in ``linking_of``; without any, against the gold tables
    that the benchmark publishes.

    Args:
        shown: The linked part of ``catalog``; None for all of it, whose recall is 1 and whose precision is
            unknown.
        golds: ``golds_of`` the question.
    """
    known = golds or _published(question, catalog)
    if not known:
        return None
    if shown is None:
        return Linking(1.0, None, 1.0 if any(gold.columns for gold in golds) else None, None)
    return _nearest(Linked(shown.tables, shown.columns if golds else ()), known)


def gold_part(question: EvalQuestion, catalog: Catalog, parts: GoldParts) -> Catalog | None:
    """Return the part of ``catalog`` that a question's gold needs; None where that is not known.

    With ``tables`` whole tables: those that the benchmark publishes and those that its gold SQL reads, for
    either may lack some (ReFoRCE, Table 3). With ``columns`` those that gold SQL uses, and keys (Table 4).
    """
    golds = golds_of(question, catalog)
    if parts == "columns":
        return prune(catalog, *golds, bare="key") if golds else None
    tables = union(catalog, [*golds, *_published(question, catalog)]).tables
    return prune(catalog, Linked(tables)) if tables else None


def golds_of(question: EvalQuestion, catalog: Catalog) -> list[Linked]:
    """Return what each gold query uses of a catalog, without those that cannot be read or use no table."""
    return [
        found for text in question.gold_sql if (found := _used(text, catalog)) is not None and found.tables
    ]


def _published(question: EvalQuestion, catalog: Catalog) -> list[Linked]:
    """Return the gold tables that a benchmark publishes, if the catalog has all of them."""
    names = question.gold_tables
    if not names or not all(map(catalog.find, names)):
        return []
    return [Linked(tuple(table.full_name for name in names for table in catalog.find(name)))]


def _nearest(own: Linked, golds: Iterable[Linked]) -> Linking:
    shares = ((*_shares(own.tables, gold.tables), *_shares(own.columns, gold.columns)) for gold in golds)
    return max((Linking(*each) for each in shares), key=_rank)


def _shares(own: Collection[object], gold: Collection[object]) -> tuple[float | None, float | None]:
    """Return recall and precision; None of nothing."""
    shared = len(set(own) & set(gold))
    return shared / len(gold) if gold else None, shared / len(own) if own else None


def _rank(linking: Linking) -> tuple[float, ...]:
    order = (linking.column_recall, linking.table_recall, linking.column_precision, linking.table_precision)
    return tuple(1.0 if share is None else share for share in order)  # nothing to miss is nothing missed


def _used(sql: str, catalog: Catalog) -> Linked | None:
    try:
        return used(sql, catalog)
    except SyntaxProblem:
        return None
