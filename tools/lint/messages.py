"""Unresolved names as errors that say where the name stands and what was probably meant."""

from __future__ import annotations

from typing import TYPE_CHECKING

from sqlglot import exp

from quorum.tools.lint.tables import nearest
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    from quorum.tools.lint.resolver import FromItem, Issue, Scope
    from quorum.tools.lint.tables import Tables

_CLAUSES = {
    "expressions": "its SELECT list",
    "joins": "its ON",
    "order": "an expression of its ORDER BY",
    "group": "an expression of its GROUP BY",
}
_LISTED = 3  # other tables that are named
_KEYWORDS = """
    all and as case create distinct else from group having in intersect into is join not on or order
    select then to union using when where
"""
KEYWORDS = frozenset(_KEYWORDS.split())
"""Words that no engine reads as a name, though sqlglot does. Others are reserved here and columns there."""


class Messages:
    """Words an issue of the resolver."""

    def __init__(self, tables: Tables) -> None:
        self.tables = tables
        self.names = tables.names

    def error(self, issue: Issue) -> QueryError | None:
        """Return the error; None where the name may be meant as text (SQLite's double quotes)."""
        if isinstance(issue.node, exp.Table):
            return self._table(issue.node, issue.scope)
        if issue.what == "field":
            return self._field(issue)
        if issue.what == "qualifier":
            return self._qualifier(issue)
        if issue.what == "ambiguous":
            return self._ambiguous(issue)
        if self.names.dialect == "sqlite" and maybe_text(issue.node):
            return None
        return self._alias(issue) if issue.what == "alias" and not _own(issue.node) else self._column(issue)

    def _table(self, node: exp.Table, scope: Scope) -> QueryError:
        if keyword := self._keyword(node.parts[-1]):
            return keyword
        written = ".".join(part.name for part in node.parts)
        same = [t for t in self.tables.catalog.tables if t.name.casefold() == node.name.casefold()]
        message = f"There is no table {written}."
        if same:
            cased = self.names.key(node.parts[-1]) != self.names.stored(same[0].name)
            other = "upper and lower case count, so write it exactly so"
            why = other if cased else "it is in another schema or database"
            message += f" {self.tables.path(same[0])} exists: {why}."
        own = nearest(node.name, scope.ctes) if len(node.parts) == 1 else []
        close = [self.names.written(name) for name in own] + self.tables.like(node)
        return self._error(ErrorKind.TABLE_NOT_FOUND, message, node.parts[-1], close[:_LISTED])

    def _qualifier(self, issue: Issue) -> QueryError:
        at = issue.node.args["table"]
        named = [source for level in issue.scope.chain() for source in level.sources if source.name]
        visible, folded = [source.name for source in named], at.name.casefold()
        aliases = [s.name for s in named if s.table and s.table.name.casefold() == folded]
        if aliases:
            message = f"{at.name} has the alias {aliases[0]} here; use the alias."
            return self._error(ErrorKind.COLUMN_NOT_FOUND, message, at, aliases)
        if any(table.name.casefold() == folded for table in self.tables.catalog.tables):
            message = f"{at.name} is not in the FROM clause here."
            return self._error(ErrorKind.COLUMN_NOT_FOUND, message, at, visible[:_LISTED])
        message = f"{at.name} is no table or alias in this query."
        close = nearest(at.name, visible) or visible[:_LISTED]
        return self._error(ErrorKind.TABLE_NOT_FOUND, message, at, close)

    def _ambiguous(self, issue: Issue) -> QueryError:
        name = issue.node.name
        choices = [f"{s.name}.{write(issue.node.this, self.names.dialect)}" for s in issue.sources]
        places = " and ".join(source.name for source in issue.sources)
        message = f"The column {name} is ambiguous: it is in {places}. Say which one."
        return self._error(ErrorKind.AMBIGUOUS_COLUMN, message, issue.node.this, choices)

    def _field(self, issue: Issue) -> QueryError:
        name = issue.node.expression
        message = f"There is no field {name.name} in {write(issue.node.this, self.names.dialect)}."
        close = nearest(name.name, sorted(self.tables.fields))
        return self._error(ErrorKind.COLUMN_NOT_FOUND, message, name, [self.names.written(c) for c in close])

    def _alias(self, issue: Issue) -> QueryError:
        clause = _CLAUSES.get(issue.clause, f"its {issue.clause.upper()}")
        message = (
            f"{issue.node.name} is an alias of this SELECT and cannot be used in {clause}: "
            "repeat the expression or use a subquery."
        )
        return self._error(ErrorKind.COLUMN_NOT_FOUND, message, issue.node.this, [])

    def _column(self, issue: Issue) -> QueryError:
        node = issue.node
        name = node.name
        owners = issue.sources or tuple(_reach(issue.scope))
        message = self._absence(issue, owners)
        aliases = self._aliases(issue)
        seen = [*(c for s in owners for c in s.names), *aliases]
        if case := next((self.names.written(n) for n in seen if n.casefold() == name.casefold()), ""):
            message += f" {case} exists: upper and lower case count, so write it exactly so."
            return self._error(ErrorKind.COLUMN_NOT_FOUND, message, node.this, [case])
        if not node.args.get("table") and (keyword := self._keyword(node.this)):
            return keyword
        elsewhere = self._elsewhere(name, issue)
        if elsewhere:
            message += f" {elsewhere[0]}"
        if self.names.dialect == "sqlite" and node.this.args.get("quoted") and not node.args.get("table"):
            message += " SQLite would take the double quotes for text; text is written in single quotes."
        close = elsewhere[1:] + nearest(name, seen)
        written = [n if "." in n else self.names.written(n) for n in close]
        return self._error(ErrorKind.COLUMN_NOT_FOUND, message, node.this, written[:_LISTED])

    def _keyword(self, at: exp.Expr) -> QueryError | None:
        """Return the error of a bare keyword, which the parser took for a name."""
        if at.args.get("quoted") or at.name.casefold() not in KEYWORDS:
            return None
        message = f"Syntax error near {at.name}: it is a keyword, and nothing here has it as a name."
        return self._error(ErrorKind.SYNTAX, message, at, [])

    def _absence(self, issue: Issue, owners: tuple[FromItem, ...]) -> str:
        name = issue.node.name
        if issue.sources:
            source = issue.sources[0]
            table = source.table.name if source.table else source.name
            alias = f" ({source.name})" if source.name != table else ""
            return f"{table}{alias} has no column {name}."
        places = ", ".join(dict.fromkeys(_label(source) for source in owners[:4]))
        return f"There is no column {name} in {places}." if places else f"There is no column {name}."

    def _aliases(self, issue: Issue) -> list[str]:
        """Return the names of the SELECT list that may be meant."""
        issue.scope.clause = issue.clause
        seen = not issue.sources and not issue.node.args.get("table")
        return [name for key, name in issue.scope.aliases.items() if seen and issue.scope.sees_alias(key)]

    def _elsewhere(self, name: str, issue: Issue) -> list[str]:
        """Return a sentence on where the column is, then qualified names of sources in reach; or []."""
        near = [
            (source, own)
            for source in _reach(issue.scope)
            for own in source.names
            if own.casefold() == name.casefold()
        ][:_LISTED]
        if near:
            places = " and ".join(_label(source) for source, _ in near)
            return [f"{places} has it.", *(f"{s.name}.{self.names.written(own)}" for s, own in near)]
        tables = self.tables.by_column.get(name.casefold(), [])
        if len(tables) < 2:
            return [f"{self.tables.path(table)} has it; join it." for table in tables]
        places = ", ".join(self.tables.path(t) for t in tables[:_LISTED])
        more = f" and {len(tables) - _LISTED} more tables" if len(tables) > _LISTED else ""
        return [f"{places}{more} have it; join one."]

    def _error(self, kind: ErrorKind, message: str, at: exp.Expr, suggestions: list[str]) -> QueryError:
        line, column = position(at)
        return QueryError(kind, message, line, column, tuple(dict.fromkeys(suggestions)), by="lint")


def _own(node: exp.Expr) -> bool:
    """True if a name is used in the expression that it is the alias of, and so means something else."""
    alias = node.find_ancestor(exp.Alias)
    return alias is not None and alias.alias.casefold() == node.name.casefold()


def _label(source: FromItem) -> str:
    return source.table.name if source.table else source.name or "the subquery"


def _reach(scope: Scope) -> list[FromItem]:
    return [source for level in scope.chain() for source in level.sources if source.columns]


def position(node: exp.Expr) -> tuple[int | None, int | None]:
    """Return the 1-based line and column where a name starts; the tokenizer notes where it ends."""
    meta = node.meta
    if "line" not in meta:
        return None, None
    return meta["line"], meta["col"] - (meta["end"] - meta["start"])


def maybe_text(node: exp.Expr) -> bool:
    """True if an unknown double-quoted name is plausibly meant as text, for which SQLite takes it.

    It is where a value is expected: one side of a comparison whose other side is
    no constant, an element of IN, a result of CASE, an argument of a function that is no aggregate.
    It is not where it stands for data itself: the SELECT list, GROUP BY, ORDER BY, an aggregate.
    """
    if not isinstance(node, exp.Column) or node.args.get("table") or not node.this.args.get("quoted"):
        return False
    child: exp.Expr = node
    parent = node.parent
    while isinstance(parent, exp.Paren | exp.Collate | exp.Escape):
        child, parent = parent, parent.parent
    if isinstance(parent, exp.In):
        return child is not parent.this
    if isinstance(parent, exp.Between):
        return child is not parent.this
    if isinstance(parent, exp.Predicate) and isinstance(parent, exp.Binary):
        other = parent.expression if child is parent.this else parent.this
        return not isinstance(other.unnest(), exp.Literal)
    if isinstance(parent, exp.If | exp.Case | exp.DPipe | exp.Tuple):
        return True
    return isinstance(parent, exp.Func) and not isinstance(parent, exp.AggFunc)
