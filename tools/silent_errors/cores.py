"""Reading a query: its SELECTs, their sources, the source of each column, the keys of rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from sqlglot import exp

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.naming import write_name

ROW_IDS = {"sqlite": "rowid", "duckdb": "rowid", "postgres": "ctid"}
"""The engines' names for a row's number, which identifies rows where a table declares no key."""


@dataclass(frozen=True)
class FromItem:
    """One thing in a FROM clause.

    Attributes:
        name: Its name in the query.
        node: Its node in the FROM clause.
        join: The join that adds it; None for the first.
        columns: Lower-case names; None where they cannot be known.
        table: The catalog's table, if it is one.
        inner: The CTE's or subquery's own query, if it is one.
    """

    name: exp.Identifier
    node: exp.Expr
    join: exp.Join | None
    columns: frozenset[str] | None
    table: Table | None = None
    inner: exp.Query | None = None

    def column(self, name: str, dialect: str) -> exp.Column:
        """Return a column of this source, as the query would write it."""
        identifier = exp.to_identifier(name, quoted=write_name(name, dialect) != name)
        return exp.Column(this=identifier, table=self.name.copy())


class Core:
    """One SELECT of a query, read against the catalog.

    Attributes:
        sources: What it selects from, in order.
        correlated: True if it uses columns of a query around it, or may do so: it does not run by itself.
    """

    def __init__(self, select: exp.Select, catalog: Catalog) -> None:
        self.select = select
        self.dialect = catalog.dialect
        self._catalog = catalog
        self._ctes, self._recursive = _visible(select)
        start = select.args.get("from_")
        nodes: list[tuple[exp.Expr, exp.Join | None]] = [(start.this, None)] if start else []
        nodes += [(join.this, join) for join in self.joins]
        self.sources = tuple(self._source(*each) for each in nodes)
        self.correlated = any(self._is_foreign(column) for column in self.columns(select))

    @property
    def joins(self) -> list[exp.Join]:
        """Its joins, comma joins as well."""
        return list(self.select.args.get("joins") or ())

    @cached_property
    def known(self) -> bool:
        """True if it can be asked by itself, and every source is known."""
        odd = ("laterals", "pivots", "match", "sample", "connect", "prewhere", "into")
        plain = not any(self.select.args.get(name) for name in odd)
        known = all(source.columns is not None for source in self.sources)
        return bool(self.sources) and plain and known and not self.correlated

    @cached_property
    def groups(self) -> list[exp.Expr] | None:
        """The expressions it groups by, without aliases and places; None for no groups, or several sets."""
        group = self.select.args.get("group")
        if group is None or any(group.args.get(name) for name in ("rollup", "cube", "grouping_sets", "all")):
            return None
        return [self.spelled(each, by_place=True) for each in group.expressions]

    @cached_property
    def aggregates(self) -> list[exp.AggFunc]:
        """Its own aggregates; those of its subqueries, and windows, are none."""
        clauses = [*self.select.expressions, self.select.args.get("having"), self.select.args.get("order")]
        found = (node for clause in clauses if clause is not None for node in own_nodes(clause))
        return [
            node
            for node in found
            if isinstance(node, exp.AggFunc) and not isinstance(node.parent, exp.Window)
        ]

    @cached_property
    def conditions(self) -> list[exp.Expr]:
        """The parts of its WHERE that must all be true."""
        where = self.select.args.get("where")
        return conjuncts(where.this) if where else []

    @cached_property
    def links(self) -> list[tuple[exp.Column, exp.Column]]:
        """Pairs of columns of different sources that its joins equate."""
        found: list[tuple[exp.Column, exp.Column]] = []
        ons = [part for join in self.joins if join.args.get("on") for part in conjuncts(join.args["on"])]
        for part in [*ons, *self.conditions]:
            if isinstance(part, exp.EQ) and isinstance(part.this, exp.Column):
                other = part.expression
                if isinstance(other, exp.Column) and self.owner(part.this) is not self.owner(other):
                    found.append((part.this, other))
        for place, source in enumerate(self.sources):
            for using in source.join.args.get("using") or () if source.join else ():
                column = source.column(using.name, self.dialect)
                before = (s for s in self.sources[:place] if using.name.casefold() in (s.columns or ()))
                found += [(other.column(using.name, self.dialect), column) for other in before]
        return found

    def columns(self, node: exp.Expr) -> Iterator[exp.Column]:
        """Return the columns below ``node`` without those of subqueries."""
        return (each for each in own_nodes(node) if isinstance(each, exp.Column) and not each.is_star)

    def owner(self, column: exp.Column) -> FromItem | None:
        """Return the source of a column; None where that is not known."""
        qualifier, name = column.table.casefold(), column.name.casefold()
        if qualifier:
            return next((each for each in self.sources if each.name.name.casefold() == qualifier), None)
        holders = [each for each in self.sources if each.columns is None or name in each.columns]
        merged = {using.name.casefold() for join in self.joins for using in join.args.get("using") or ()}
        if len(holders) > 1 and name not in merged:
            return None
        return holders[0] if holders and holders[0].columns is not None else None

    def stored(self, column: exp.Column) -> tuple[FromItem, Column] | None:
        """Return the catalog's column behind a column of a table; None if there is none."""
        source = self.owner(column)
        found = source.table.column(column.name) if source and source.table else None
        return (source, found) if source and found else None

    def same(self, one: exp.Expr, other: exp.Expr) -> bool:
        """True if two expressions are one column, however they are written, or are written alike."""
        if not isinstance(one, exp.Column) or not isinstance(other, exp.Column):
            return one == other
        alike = one.name.casefold() == other.name.casefold()
        return alike and self.owner(one) is self.owner(other)

    def linked(self, column: exp.Expr, others: Iterable[exp.Expr]) -> bool:
        """True if a join equates a column with one of the others."""
        wanted = list(others)
        sides = [pair for one, other in self.links for pair in ((one, other), (other, one))]
        return any(
            self.same(column, one) and any(self.same(other, each) for each in wanted) for one, other in sides
        )

    def owners(self, node: exp.Expr) -> list[FromItem] | None:
        """Return the sources of all columns below ``node``, each once; None where one is not known."""
        found = [self.owner(column) for column in self.columns(node)]
        return None if None in found else list({id(each): each for each in found if each}.values())

    def spelled(self, node: exp.Expr, *, by_place: bool = False) -> exp.Expr:
        """Return a copy of ``node`` in which the SELECT's own aliases are replaced by what they mean.

        With ``by_place`` numbers of columns are replaced, too.
        """
        items = self.select.expressions
        if by_place and node.is_int and 0 < int(node.name) <= len(items):
            chosen: exp.Expr = items[int(node.name) - 1].unalias().copy()
            return chosen
        named = {item.alias.casefold(): item.this for item in items if isinstance(item, exp.Alias)}

        def meant(part: exp.Expr) -> exp.Expr:
            if not isinstance(part, exp.Column) or part.table:
                return part
            name = part.name.casefold()
            stored = any(name in (source.columns or ()) for source in self.sources)
            return named[name].copy() if name in named and not stored else part

        return node.copy().transform(meant)

    def key(self, source: FromItem) -> list[exp.Column]:
        """Return the columns that identify a table's rows; [] where none are known to, and for a subquery."""
        if source.table is None:
            return []
        names: tuple[str, ...] = source.table.primary_key
        if not names:  # a file's rows have no number
            names = tuple(c.name for c in source.table.columns if c.profile and c.profile.unique)[:1]
        if not names and source.table.kind == "table" and self.dialect in ROW_IDS:
            names = (ROW_IDS[self.dialect],)
        return [source.column(name, self.dialect) for name in names]

    def outputs(self) -> list[str]:
        """Return the names of its columns; [] where one has none, or a ``*`` cannot be expanded."""
        names: list[str] = []
        for item in self.select.expressions:
            if item.is_star:
                qualifier = getattr(item, "table", "")
                own = [each for each in self.sources if qualifier in ("", each.name.name)]
                if any(each.columns is None for each in own):
                    return []
                for each in own:
                    if each.table is not None:
                        names += [column.name for column in each.table.columns]
                    elif isinstance(each.inner, exp.Select):
                        names += Core(each.inner, self._catalog).outputs()
            elif item.alias_or_name:
                names.append(item.alias_or_name)
            else:
                return []
        return names

    def rows(
        self,
        shown: Iterable[exp.Expr],
        *,
        where: Iterable[exp.Expr] = (),
        without: Iterable[exp.Expr] = (),
    ) -> exp.Select:
        """Return a query over what this SELECT reads, before it groups.

        Args:
            where: Conditions in addition to its own.
            without: Of its own conditions, or of a join's, those that are left out.
        """
        left_out = [*without]

        def stays(each: exp.Expr) -> bool:
            return all(each is not other for other in left_out)

        def joined(join: exp.Join) -> exp.Join:
            copy, on = join.copy(), join.args.get("on")
            if on is not None and left_out:
                left = [each.copy() for each in conjuncts(on) if stays(each)]
                copy.set("on", exp.and_(*left, copy=False) if left else exp.true())
            return copy

        conditions = [each.copy() for each in [*self.conditions, *where] if stays(each)]
        made = exp.select(*(each.copy() for each in shown))
        made.set("from_", self.select.args["from_"].copy())
        made.set("joins", [joined(join) for join in self.joins])
        if conditions:
            made.set("where", exp.Where(this=exp.and_(*conditions, copy=False)))
        return self.within(made)

    def within(self, made: exp.Select) -> exp.Select:
        """Add the CTEs that this SELECT sees."""
        if self._ctes:
            ctes = [cte.copy() for cte in self._ctes]
            made.set("with_", exp.With(expressions=ctes, recursive=self._recursive))
        return made

    def _source(self, node: exp.Expr, join: exp.Join | None) -> FromItem:
        alias = node.args.get("alias")
        named = alias.this if alias is not None else node.this
        name = named if isinstance(named, exp.Identifier) else exp.to_identifier("")
        odd = node.args.get("joins") or node.args.get("pivots") or (alias is not None and alias.columns)
        odd = odd or (join is not None and join.method)
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier) and not odd:
            inner = self._cte(node)
            table = None if inner else self._catalog.table(".".join(part.name for part in node.parts))
            if table is not None:
                columns = frozenset(column.name.casefold() for column in table.columns)
                return FromItem(name, node, join, columns, table)
            if inner is not None:
                return FromItem(name, node, join, self._inner_columns(inner), inner=inner)
        if isinstance(node, exp.Subquery) and isinstance(node.this, exp.Query) and not odd:
            return FromItem(name, node, join, self._inner_columns(node.this), inner=node.this)
        return FromItem(name, node, join, None)

    def _cte(self, node: exp.Table) -> exp.Query | None:
        if node.args.get("db"):
            return None
        named = (cte for cte in self._ctes if cte.alias.casefold() == node.name.casefold())
        found = next(named, None)
        plain = found is not None and not found.args["alias"].columns and isinstance(found.this, exp.Query)
        return found.this if found is not None and plain else None

    def _inner_columns(self, inner: exp.Query) -> frozenset[str] | None:
        first = inner
        while isinstance(first, exp.SetOperation | exp.Subquery):
            first = first.this
        names = Core(first, self._catalog).outputs() if isinstance(first, exp.Select) else []
        return frozenset(name.casefold() for name in names) or None

    def _is_foreign(self, column: exp.Column) -> bool:
        if column.table:
            return all(source.name.name.casefold() != column.table.casefold() for source in self.sources)
        name = column.name.casefold()
        if any(source.columns is None or name in source.columns for source in self.sources):
            return False
        aliases = {item.alias.casefold() for item in self.select.expressions if item.alias}
        return name not in aliases and name not in ROW_IDS.values()


def own_nodes(node: exp.Expr) -> Iterator[exp.Expr]:
    """Return ``node`` and all below it, without subqueries."""
    return node.walk(prune=lambda each: isinstance(each, exp.Query) and each is not node)


def conjuncts(condition: exp.Expr) -> list[exp.Expr]:
    """Return the parts of a condition that must all be true."""
    while isinstance(condition, exp.Paren):
        condition = condition.this
    return list(condition.flatten()) if isinstance(condition, exp.And) else [condition]


def _visible(select: exp.Select) -> tuple[list[exp.CTE], bool]:
    """Return the CTEs that a SELECT sees, and True if one may read itself."""
    found: list[exp.CTE] = []
    recursive = False
    below: exp.Expr = select
    node: exp.Expr | None = select
    while node is not None:
        clause = node.args.get("with_")
        if isinstance(clause, exp.With):
            ctes = list(clause.expressions)
            inside = next((place for place, cte in enumerate(ctes) if cte is below), len(ctes))
            found = ctes[:inside] + found
            recursive = recursive or bool(clause.args.get("recursive"))
        if not isinstance(node, exp.With):
            below = node
        node = node.parent
    return found, recursive
