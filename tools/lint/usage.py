"""What queries use of a catalog: every table and column that they may mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, TypeAlias

from sqlglot import exp

from quorum.tools.lint.messages import maybe_text
from quorum.tools.lint.resolver import Resolver
from quorum.tools.lint.tables import CaseRules, Tables
from quorum.tools.sql import SyntaxProblem, dialect_name

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Catalog, Table
    from quorum.tools.lint.fields import Columns
    from quorum.tools.lint.resolver import FromItem, Scope

_UNKNOWN = ("table", "qualifier", "column")  # the lint's other issues name something known

Used: TypeAlias = "tuple[tuple[str, ...], tuple[tuple[str, str], ...], tuple[str, ...]]"
"""Full names of tables, columns with their tables' names, and unknown names as written."""


def names_used(trees: Iterable[exp.Expr], catalog: Catalog, *, exact: bool = True) -> Used:
    """Return what queries use of ``catalog``: see ``quorum.tools.sql.linking.used``.

    Args:
        exact: Whether the dialect's case rules hold; else case does not count.

    Raises:
        SyntaxProblem: They nest too deeply.
    """
    usage = _Usage(Tables(catalog, CaseRules(dialect_name(catalog.dialect), exact)))
    try:
        for tree in trees:
            usage.query(tree, None, {})
    except RecursionError:
        raise SyntaxProblem("It nests too deeply.") from None
    return tuple(table.full_name for table in usage.found), tuple(usage.kept), usage.unknown()


class _Usage(Resolver):
    """Collects every column that a query may mean, where the lint only asks whether there is one."""

    def __init__(self, tables: Tables) -> None:
        super().__init__(tables)
        self.kept: set[tuple[str, str]] = set()

    def unknown(self) -> tuple[str, ...]:
        nodes = [issue.node for issue in self.issues if issue.what in _UNKNOWN]
        nodes = [node for node in nodes if not (self.dialect == "sqlite" and maybe_text(node))]
        names = [node.parts for node in nodes if isinstance(node, exp.Column | exp.Table)]
        return tuple(dict.fromkeys(".".join(part.name for part in parts) for parts in names))

    def _table(self, node: exp.Table, scope: Scope) -> tuple[Columns, tuple[Table, ...]]:
        before = len(self.found)
        columns, tables = super()._table(node, scope)
        if node.args.get("pivots") or node.args.get("match"):  # they may read any column
            self._keep(self.found[before:])
        return columns, tables

    def _join(self, join: exp.Join, scope: Scope) -> list[exp.Expr]:
        before, merged = len(scope.sources), set(scope.merged)
        pending = super()._join(join, scope)
        left, right = scope.sources[:before], scope.sources[before:]
        keys = scope.merged - merged
        if join.method == "NATURAL":
            keys |= {key for source in left for key in source.columns or ()}
            keys &= {key for source in right for key in source.columns or ()}
        for key in keys:
            self._keep_column(scope.sources, key)
        return pending

    def _visit(self, nodes: Iterable[exp.Expr], scope: Scope) -> None:
        nodes = list(nodes)
        if any(isinstance(node, exp.Star) for node in nodes):  # in a SELECT list; not COUNT(*)
            self._keep_all(scope.sources)
        super()._visit(nodes, scope)

    def _column(self, node: exp.Column, scope: Scope) -> None:
        super()._column(node, scope)
        path = [self.names.key(part) for part in node.parts]
        if not isinstance(node.this, exp.Star):
            self._path(path, scope)
        elif not isinstance(node.parent, exp.Count) and len(path) > 1:
            self._keep_all(next((found for s in scope.chain() if (found := s.named(path[-2]))), []))

    def _path(self, path: list[str], scope: Scope) -> None:
        """Keep what ``column``, ``source.column``, ``schema.source.column`` or a path below one names."""
        for level in scope.chain():
            if len(path) > 1 and (sources := level.named(path[0])):
                return self._keep_column(sources, path[1])
            if holders := level.holding(path[0]):
                return self._keep_column(holders, path[0])
            if len(path) > 2 and (sources := level.named(path[-2])):
                return self._keep_column(sources, path[-1])
            if len(path) == 1 and not level.sees_alias(path[0]) and (sources := level.named(path[0])):
                return self._keep_all(sources)  # a whole row
        return None

    def _keep_column(self, sources: Iterable[FromItem], key: str) -> None:
        for table in (table for source in sources for table in source.tables):
            self.kept |= {
                (table.full_name, c.name) for c in table.columns if self.names.stored(c.name) == key
            }

    def _keep_all(self, sources: Iterable[FromItem]) -> None:
        self._keep(table for source in sources for table in source.tables)

    def _keep(self, tables: Iterable[Table]) -> None:
        self.kept |= {(table.full_name, c.name) for table in tables for c in table.columns}
