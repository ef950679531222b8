"""What a query asks for, in words: the outline that two queries are compared by."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.tools.sql import SyntaxProblem, dialect_name, parse_one_statement
from quorum.tools.wording import conditions, value_words

if TYPE_CHECKING:
    from sqlglot import exp

MAX_DEPTH, MAX_STEPS = 8, 500
"""Levels of common table expressions and subqueries that a column is followed through, and columns in all."""


@dataclass(frozen=True)
class Outline:
    """A query's parts as words (``quorum.tools.wording``); table names in lower case.

    Attributes:
        items: What it shows, column by column.
        filters: Conditions that single rows must meet, wherever in the query they stand.
        group_filters: Conditions on groups: those with an aggregate.
        grain: What one row stands for: the groups' columns, empty for one row over everything,
            None where nothing is grouped.
        tables: The tables that it reads.
        kept: Tables whose partner may be missing (LEFT, RIGHT and FULL joins), by the joined one.
        distinct: Whether duplicate rows are left out.
        order: What the rows are sorted by.
        limit: The most rows it gives; empty if there is none.
    """

    items: tuple[str, ...]
    filters: frozenset[str]
    group_filters: frozenset[str]
    grain: frozenset[str] | None
    tables: frozenset[str]
    kept: frozenset[str]
    distinct: bool
    order: tuple[str, ...]
    limit: str


def outline(sql: str, dialect: str) -> Outline | None:
    """The outline of a query; None if it cannot be read or is no SELECT.

    Of a set operation it describes the first SELECT, with the conditions and tables of all.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    from sqlglot import exp

    name = dialect_name(dialect)
    try:
        tree = parse_one_statement(sql, name)
        first = tree if isinstance(tree, exp.Select) else tree.find(exp.Select)
        if not isinstance(tree, exp.Query) or first is None:
            return None
        return _Reader(tree, name).outline(tree, first)
    except (SyntaxProblem, RecursionError):
        return None


class _Reader:
    def __init__(self, tree: exp.Query, dialect: str) -> None:
        from sqlglot import exp

        self.dialect = dialect
        self.ctes = {cte.alias.lower(): cte.this for cte in tree.find_all(exp.CTE)}
        self.selects = list(tree.find_all(exp.Select))
        self.steps = 0

    def outline(self, tree: exp.Query, first: exp.Select) -> Outline:
        from sqlglot import exp

        filters, group_filters = set[str](), set[str]()
        for select in self.selects:
            for condition in self._conditions(select):
                grouped = condition.find(exp.AggFunc) is not None
                (group_filters if grouped else filters).update(conditions(condition, self.dialect))
        tables = {table.name.lower() for table in tree.find_all(exp.Table)} - set(self.ctes)
        return Outline(
            items=tuple(self._words(item, first) for item in first.expressions),
            filters=frozenset(filters),
            group_filters=frozenset(group_filters),
            grain=self._grain(first),
            tables=frozenset(tables),
            kept=frozenset(self._kept()),
            distinct=bool(first.args.get("distinct")),
            order=tuple(self._order(tree, first)),
            limit=self._limit(tree),
        )

    def _limit(self, tree: exp.Query) -> str:
        clause = tree.args.get("limit")
        number = clause and (clause.args.get("expression") or clause.args.get("count"))
        return value_words(number, self.dialect) if number else ""

    def _words(self, node: exp.Expr, select: exp.Select, *, own: bool = False) -> str:
        return value_words(self._resolved(node, select, own=own), self.dialect)

    def _conditions(self, select: exp.Select) -> Iterator[exp.Expr]:
        """Every condition of one SELECT, split at its ANDs."""
        from sqlglot import exp

        found = [(select.args.get(name), name != "where") for name in ("where", "having", "qualify")]
        clauses = [(clause.this, own) for clause, own in found if clause]
        joins = [join.args.get("on") for join in select.args.get("joins") or []]
        for clause, own in [*clauses, *((on, False) for on in joins if on)]:
            parts = clause.flatten() if isinstance(clause, exp.And) else [clause]
            yield from (self._resolved(part, select, own=own) for part in parts)

    def _resolved(self, node: exp.Expr, select: exp.Select, *, own: bool = False, depth: int = 0) -> exp.Expr:
        """A copy in which a name given by the query itself is replaced by what it stands for.

        Args:
            own: Whether the SELECT's own aliases can be meant, as in HAVING and ORDER BY.
        """
        from sqlglot import exp

        def replaced(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or depth >= MAX_DEPTH or self.steps >= MAX_STEPS:
                return part
            found = self._meaning(part, select, own)
            if found is None:
                return part
            self.steps += 1
            return self._resolved(*found, depth=depth + 1)

        return node.copy().transform(replaced)

    def _meaning(
        self, column: exp.Column, select: exp.Select, own: bool
    ) -> tuple[exp.Expr, exp.Select] | None:
        """What a column's name stands for, and the SELECT in which that is written."""
        for alias, source in self._sources(select):
            if column.table and column.table.lower() != alias:
                continue
            for item in source.expressions:
                if item.alias_or_name.lower() == column.name.lower() and not item.is_star:
                    return item.unalias(), source
        if column.table or not own:
            return None
        for item in select.expressions:
            if item.alias.lower() == column.name.lower():
                inner = item.unalias()  # it may be named after a column of its own: COUNT(x) AS x
                names = {used.name.lower() for used in inner.find_all(type(column))}
                return None if column.name.lower() in names else (inner, select)
        return None

    def _sources(self, select: exp.Select) -> Iterator[tuple[str, exp.Select]]:
        """Subqueries and common table expressions that a SELECT reads, by alias."""
        from sqlglot import exp

        start = select.args.get("from_")
        for source in [*([start.this] if start else []), *(j.this for j in select.args.get("joins") or [])]:
            query = source.this if isinstance(source, exp.Subquery) else self.ctes.get(source.name.lower())
            inner = query.find(exp.Select) if query is not None else None
            if inner is not None and inner is not select:
                yield source.alias_or_name.lower(), inner

    def _grain(self, select: exp.Select, depth: int = 0) -> frozenset[str] | None:
        from sqlglot import exp

        group = select.args.get("group")
        if group and group.expressions:
            chosen = [self._by_number(key, select) for key in group.expressions]
            return frozenset(self._words(key, select, own=True) for key in chosen)
        sources = list(self._sources(select))
        aggregates = [node for item in select.expressions for node in item.find_all(exp.AggFunc)]
        if any(node.parent_select is select and not node.find_ancestor(exp.Window) for node in aggregates):
            return frozenset()
        if len(sources) == 1 and not select.args.get("joins") and depth < MAX_DEPTH:
            return self._grain(sources[0][1], depth + 1)
        return None

    def _by_number(self, key: exp.Expr, select: exp.Select) -> exp.Expr:
        """``GROUP BY 1`` and ``ORDER BY 1`` name an item by its place."""
        from sqlglot import exp

        if isinstance(key, exp.Literal) and key.is_int and 0 < int(key.name) <= len(select.expressions):
            item: exp.Expr = select.expressions[int(key.name) - 1]
            return item.unalias()
        return key

    def _kept(self) -> Iterator[str]:
        for select in self.selects:
            for join in select.args.get("joins") or []:
                if join.side:
                    yield join.this.name.lower() or join.this.alias.lower()

    def _order(self, tree: exp.Query, select: exp.Select) -> Iterator[str]:
        order = tree.args.get("order")
        for key in order.expressions if order else []:
            words = self._words(self._by_number(key.this, select), select, own=True)
            yield f"{words}, {'greatest' if key.args.get('desc') else 'least'} first"
