"""Spider's hardness of a query: ``easy``, ``medium``, ``hard`` or ``extra``, from its gold SQL.

Source: taoyds/spider, ``evaluation.py`` (``eval_hardness``) on the trees of ``process_sql.py`` (Yu et al.,
2018). Those trees know the part of SQL that Spider uses; what is beyond it (EXISTS, brackets round
conditions, CASE, …) raises an error there and is counted here in the same spirit. One fault of theirs is
not repeated: what follows a comparison with a column, joined to it by OR, is lost there.
"""

from __future__ import annotations

from dataclasses import dataclass

from sqlglot import exp

from quorum.tools.sql import SyntaxProblem, parse_one_statement


@dataclass(frozen=True)
class Components:
    """What the official program counts in a query.

    Attributes:
        clauses: WHERE, GROUP BY, ORDER BY and LIMIT, each join, OR and LIKE (``count_component1``).
        nested: Queries in conditions, and a set operation (``count_component2``).
        others: How many of aggregates, selected columns, conditions in WHERE and columns in GROUP BY
            are more than one (``count_others``).
    """

    clauses: int
    nested: int
    others: int

    @property
    def hardness(self) -> str:
        """The official table of bounds."""
        if self.nested == 0:
            if self.clauses <= 1 and self.others == 0:
                return "easy"
            if (self.clauses <= 1 and self.others <= 2) or (self.clauses <= 2 and self.others <= 1):
                return "medium"
            if (self.clauses <= 2 and self.others > 2) or (self.clauses == 3 and self.others <= 2):
                return "hard"
            return "extra"
        return "hard" if self.nested == 1 and self.clauses <= 1 and self.others == 0 else "extra"


def hardness(sql: str) -> str:
    """The hardness of a query; empty if it cannot be read."""
    try:
        counted = components(sql)
    except SyntaxProblem:
        return ""
    return counted.hardness if counted else ""


def components(sql: str) -> Components | None:
    """The counts of a query's first SELECT, without nested ones.

    Returns None for a text that is no SELECT. ORDER BY and LIMIT after a set operation belong to its last
    SELECT and so do not count.

    Raises:
        SyntaxProblem: It cannot be read.
    """
    tree = parse_one_statement(sql, "sqlite")
    combined = False
    while not isinstance(tree, exp.Select):
        if not isinstance(tree, exp.SetOperation | exp.Subquery):
            return None
        combined = combined or isinstance(tree, exp.SetOperation)
        tree = tree.this
    return _counted(tree, combined)


def _counted(select: exp.Select, combined: bool) -> Components:
    joins = select.args.get("joins") or []
    group = select.args.get("group")
    where, having = (_Conditions.of(select.args.get(part)) for part in ("where", "having"))
    joined = [_Conditions.of(join.args.get("on")) for join in joins]
    everything = (where, having, *joined)
    present = [select.args.get(part) is not None for part in ("where", "group", "order", "limit")]
    several = (
        _aggregates(select, where, having) > 1,
        len(select.expressions) > 1,
        len(where.parts) > 1,
        len(group.expressions) > 1 if group else False,
    )
    return Components(
        clauses=sum(present) + len(joins) + sum(each.ors + each.likes for each in everything),
        nested=sum(each.queries for each in everything) + combined,
        others=sum(several),
    )


def _aggregates(select: exp.Select, where: _Conditions, having: _Conditions) -> int:
    """What the official program takes for aggregates.

    It looks at the first place of a condition's tuple, which says whether it is negated, and at the
    first place of HAVING's connectors as well: so a NOT counts, and an AND or OR of HAVING, but no
    aggregate of a condition does.
    """
    kinds = (exp.Max, exp.Min, exp.Count, exp.Sum, exp.Avg)
    order = select.args.get("order")
    selected = sum(isinstance(item.unalias(), kinds) for item in select.expressions)
    ordered = sum(isinstance(node, kinds) for node in _outside_queries(order)) if order else 0
    negated = where.negations + having.negations
    return selected + ordered + negated + max(0, len(having.parts) - 1)


@dataclass(frozen=True)
class _Conditions:
    """The conditions of a clause, brackets opened: ``parts`` are joined by AND and, ``ors`` times, OR."""

    parts: tuple[exp.Expr, ...]
    ors: int

    @classmethod
    def of(cls, clause: exp.Expr | None) -> _Conditions:
        waiting = [] if clause is None else [clause]
        parts: list[exp.Expr] = []
        ors = 0
        while waiting:
            node = waiting.pop()
            if isinstance(node, exp.Connector):
                ors += isinstance(node, exp.Or)
                waiting += [node.left, node.right]
            elif isinstance(node, exp.Where | exp.Having | exp.Paren):
                waiting.append(node.this)
            else:
                parts.append(node)
        return cls(tuple(parts), ors)

    @property
    def negations(self) -> int:
        return sum(
            bool(part.args.get("negate")) or (isinstance(part, exp.Not) and not isinstance(part.this, exp.Is))
            for part in self.parts
        )

    @property
    def likes(self) -> int:
        positive = [part.this if isinstance(part, exp.Not) else part for part in self.parts]
        return sum(isinstance(part, exp.Like) for part in positive)

    @property
    def queries(self) -> int:
        return sum(isinstance(node, exp.Query) for part in self.parts for node in _outside_queries(part))


def _outside_queries(root: exp.Expr) -> list[exp.Expr]:
    """The nodes of a tree, without those inside the queries in it."""
    return list(root.walk(prune=lambda node: isinstance(node, exp.Query)))
