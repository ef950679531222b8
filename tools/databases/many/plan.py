"""What a query over several databases needs of each table: the parts that it is split into.

The query itself is never rewritten: DuckDB runs it as it was judged, over parts under the tables' own names.
So this only has to find the tables, and for each of them enough: all columns whose names occur at all, and
rows by those conditions alone that bear on this table wherever the query names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from quorum.tools.databases.many.catalog import Held
from quorum.tools.databases.many.conditions import (
    Condition,
    Found,
    Junction,
    Reader,
    conjunction,
    written,
)
from quorum.tools.guard.rules import is_cte
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql import SyntaxProblem, parse_one_statement, sqlglot_dialect
from quorum.tools.sql.writing import write

MOST_PARTS = 60
ALIAS = "p"
DESCRIBING = ("duckdb_", "pragma_", "pg_")
"""Begins of functions that describe the session's own database."""
PLAIN = {"this", "db", "catalog", "alias"}
"""What a table in FROM may have, beside which nothing is known of it."""
UNSURE = (exp.Columns, exp.PositionalColumn, exp.Parameter, exp.Placeholder)
"""What may name columns in another way than by their names."""
OF_ONE_ROW = (
    *(
        exp.Alias,
        exp.Binary,
        exp.Boolean,
        exp.Case,
        exp.Cast,
        exp.Coalesce,
        exp.Column,
        exp.DataType,
        exp.Identifier,
    ),
    *(exp.If, exp.Length, exp.Literal, exp.Lower, exp.Null, exp.Paren, exp.Round, exp.Star, exp.Substring),
    *(exp.Trim, exp.Unary, exp.Upper),
)
"""What a result's columns may be made of for each of its rows to come from one row of a table."""
CHANGING = (
    "group",
    "having",
    "qualify",
    "distinct",
    "order",
    "sample",
    "windows",
    "joins",
    "laterals",
    "kind",
)
"""Clauses with which the first rows of a result are not any rows of its table."""


@dataclass(frozen=True)
class Need:
    """A part: some columns (by position) and rows of a table; without columns, how many rows it has."""

    held: Held
    columns: tuple[int, ...]
    condition: Condition | None = None
    limit: int | None = None

    @property
    def sql(self) -> str:
        """The part as a query of its owner's dialect.

        Columns are qualified: SQLite takes the quoted name of a column that is gone for a text.
        """
        own, dialect = self.held.own, self.held.owner.dialect
        table = write(exp.table_(own.name, own.schema or None, own.database or None, quoted=True), dialect)
        columns = [
            write(exp.column(own.columns[i].name, table=ALIAS, quoted=True), dialect) for i in self.columns
        ]
        alias = write(exp.to_identifier(ALIAS, quoted=True), dialect)
        text = f"SELECT {', '.join(columns) or 'count(*) AS n'} FROM {table} AS {alias}"
        if self.condition:
            text += f" WHERE {written(self.condition, ALIAS, dialect)}"
        return f"{text} LIMIT {self.limit}" if columns and self.limit is not None else text


@dataclass(frozen=True)
class Plan:
    """The parts of a query.

    Attributes:
        path: Catalogs and schemas in which names that are not written whole are to be looked up.
        alone: The result is the only part's first rows, so that one that is cut is a cut result.
    """

    needs: tuple[Need, ...]
    path: tuple[tuple[str, str], ...] = ()
    alone: bool = False


class Holdings:
    """The tables of all databases by their names."""

    def __init__(self, held: Sequence[Held]) -> None:
        self._by_name: dict[tuple[str, ...], list[Held]] = defaultdict(list)
        for each in held:
            database, schema, name = (part.casefold() for part in each.path)
            spellings = {(name,), (schema, name), (database, name), (database, schema, name)}
            for spelling in spellings:
                self._by_name[spelling].append(each)

    def find(self, parts: Sequence[str]) -> list[Held]:
        """The tables that a name, written with one to three parts, may mean."""
        return self._by_name.get(tuple(part.casefold() for part in parts), [])


@dataclass
class _Reference:
    """A place of the query that names a table.

    Attributes:
        whole: All its columns are needed.
        found: The conditions that bear on it there.
        limit: Rows that are enough, whichever.
    """

    node: exp.Table
    held: Held
    whole: bool = True
    found: Found | None = None
    limit: int | None = None


def split(sql: str, holdings: Holdings, rows: int) -> Plan | QueryError:
    """The parts that a query needs; at most ``rows`` rows of its result are kept."""
    try:
        tree = parse_one_statement(sql, "duckdb")
    except SyntaxProblem as problem:
        return QueryError(ErrorKind.SYNTAX, problem.message, problem.line, problem.column)
    if not isinstance(tree, exp.Query | exp.Values):
        return QueryError(ErrorKind.PERMISSION, "Over several databases only queries run.")
    references = _references(tree, holdings)
    if isinstance(references, QueryError):
        return references
    by_node = {id(each.node): each for each in references}
    for select in tree.find_all(exp.Select):
        _Scope(select, by_node).look()
    _keep_whole(tree, references)
    alone = isinstance(tree, exp.Select) and len(references) == 1 and _any_rows(tree, references[0])
    if alone and not tree.args.get("offset"):
        references[0].limit = min(rows + 1, rows + 1 if references[0].limit is None else references[0].limit)
    names = _names(sql, tree)
    found: dict[int, list[_Reference]] = defaultdict(list)
    for each in references:
        found[id(each.held)].append(each)
    if len(found) > MOST_PARTS:
        message = f"The query reads {len(found)} tables; over several databases {MOST_PARTS} are the most."
        return QueryError(ErrorKind.RESOURCES, message)
    path = dict.fromkeys(each.held.path[:2] for each in references if len(each.node.parts) < 3)
    return Plan(tuple(_need(group, names) for group in found.values()), tuple(path), alone)


def _references(tree: exp.Expr, holdings: Holdings) -> list[_Reference] | QueryError:
    """Where the query names tables; an error if one is not to be found."""
    found = []
    for call in tree.find_all(exp.Anonymous):
        if call.name.lower().startswith(DESCRIBING):
            return _describing(call.name)
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier) or is_cte(node):
            continue
        parts = [part.name for part in node.parts]
        held = holdings.find(parts)
        if len(held) != 1:
            return _not_one(node, parts, held or holdings.find(parts[-1:]), several=bool(held))
        found.append(_Reference(node, held[0]))
    return found


def _describing(name: str) -> QueryError:
    message = f"{name} describes one database; over several the schema says what there is."
    return QueryError(ErrorKind.PERMISSION, message)


def _not_one(node: exp.Table, parts: Sequence[str], near: Sequence[Held], *, several: bool) -> QueryError:
    from quorum.tools.lint.messages import position

    shown = ".".join(parts)
    if parts[0].casefold() == "information_schema":
        return _describing(shown)
    message = (
        f"{shown} is in several databases: write its full name." if several else f"There is no table {shown}."
    )
    names = tuple(".".join(each.path) for each in near[:3])
    return QueryError(ErrorKind.TABLE_NOT_FOUND, message, *position(node.parts[-1]), suggestions=names)


@dataclass
class _Scope:
    """One SELECT: the tables that its FROM names, and what it asks of each."""

    select: exp.Select
    by_node: dict[int, _Reference]
    joins: list[exp.Join] = field(default_factory=list)
    sources: list[exp.Expr] = field(default_factory=list)
    tables: dict[str, _Reference] = field(default_factory=dict)

    def look(self) -> None:
        """Note for each table of the FROM which columns, conditions and rows are enough here."""
        source = self.select.args.get("from_")
        self.joins = list(self.select.args.get("joins") or ())
        self.sources = [each.this for each in (source, *self.joins) if each is not None]
        names = [each.alias_or_name.casefold() for each in self.sources]
        for each, name in zip(self.sources, names, strict=True):
            reference = self.by_node.get(id(each))
            if reference and names.count(name) == 1:
                self.tables[name] = reference
        stars = self._stars()
        for name, reference in self.tables.items():
            plain = _is_plain(reference.node)
            reference.whole = not plain or "" in stars or name in stars
            if plain and not self.select.args.get("sample") and all(map(_is_usual, self.joins)):
                reference.found = self._conditions(name)
        if len(self.sources) == 1 and len(self.tables) == 1:
            (only,) = self.tables.values()
            only.limit = self._enough(only)

    def _stars(self) -> set[str]:
        """Aliases of which all columns are asked for; the empty one for all."""
        if any(join.method == "NATURAL" for join in self.joins):
            return {""}
        found = set()
        for node in _own_nodes(self.select):
            if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                column = node.parent
                found.add(column.table.casefold() if isinstance(column, exp.Column) else "")
        return found

    def _conditions(self, name: str) -> Found | None:
        """What of WHERE and ON bears on one table alone."""
        reference = self.tables[name]
        reader = Reader(lambda node: self._column(node, name), reference.held.owner.dialect)
        outer = any(join.side for join in self.joins)
        where = self.select.args.get("where")
        asked = [where.this] if where else []
        for join in self.joins:
            on = join.args.get("on")
            if on is not None and (not join.side or (join.side == "LEFT" and join.this is reference.node)):
                asked.append(on)
        found = [reader.read(node) for node in asked]
        return conjunction([each for each in found if each is None or each.strict or not outer])

    def _column(self, node: exp.Expr, name: str) -> tuple[str, str] | None:
        """The owner's name and type of a column of the table ``name``; None for anything else."""
        if (
            not isinstance(node, exp.Column)
            or not isinstance(node.this, exp.Identifier)
            or node.args.get("db")
        ):
            return None
        column = node.name.casefold()
        if node.table:
            if node.table.casefold() != name:
                return None
        elif column in self._merged() or any(
            _position(other.held, column) is not None for key, other in self.tables.items() if key != name
        ):
            return None
        held = self.tables[name].held
        place = _position(held, column)
        if place is None:
            return None
        own = held.own.columns[place]
        typed = (
            held.owner.dialect != "sqlite" or held.own.kind == "table"
        )  # a view's values may be of any type
        return own.name, own.type if typed else ""

    def _merged(self) -> set[str]:
        return {name.name.casefold() for join in self.joins for name in join.args.get("using") or ()}

    def _enough(self, reference: _Reference) -> int | None:
        """How many rows of its only table a SELECT with a LIMIT needs."""
        limit, offset = self.select.args.get("limit"), self.select.args.get("offset")
        if limit is None or not _any_rows(self.select, reference):
            return None
        numbers = [clause.expression for clause in (limit, offset) if clause is not None]
        if not all(isinstance(each, exp.Literal) and each.name.isdigit() for each in numbers):
            return None
        return sum(int(each.name) for each in numbers)


def _any_rows(select: exp.Select, reference: _Reference) -> bool:
    """Whether a SELECT gives some rows of its only table, each by itself, whichever come first."""
    source = select.args.get("from_")
    if source is None or source.this is not reference.node or not _is_plain(reference.node):
        return False
    limit = select.args.get("limit")
    if any(select.args.get(clause) for clause in CHANGING) or (limit and limit.args.get("limit_options")):
        return False
    if select.args.get("where") and not (reference.found and reference.found.whole):
        return False
    return all(
        isinstance(node, OF_ONE_ROW) and not isinstance(node, exp.AggFunc)
        for item in select.expressions
        for node in item.walk()
    )


def _is_plain(table: exp.Table) -> bool:
    """Whether a table stands in FROM as it is: no sample, no pivot, no other names for its columns."""
    if any(value for name, value in table.args.items() if name not in PLAIN):
        return False
    alias = table.args.get("alias")
    return not (alias and alias.args.get("columns"))


def _is_usual(join: exp.Join) -> bool:
    """Whether a join pairs rows by its condition alone, and not by what else there is."""
    return (
        join.method in ("", "NATURAL")
        and join.side in ("", "LEFT", "RIGHT", "FULL")
        and join.kind in ("", "INNER", "CROSS", "OUTER")
    )


def _own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """The nodes of a SELECT without those of queries inside it."""
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)):
        if node is select or not isinstance(node, exp.Query):
            yield node


def _position(held: Held, name: str) -> int | None:
    return next((i for i, column in enumerate(held.table.columns) if column.name.casefold() == name), None)


def _keep_whole(tree: exp.Expr, references: Sequence[_Reference]) -> None:
    """Mark the tables of which the query may want columns that it does not name."""
    unsure = any(isinstance(node, UNSURE) for node in tree.walk())
    bare = {node.name.casefold() for node in tree.find_all(exp.Column) if not node.table}
    for each in references:
        rows = each.node.alias_or_name.casefold() in bare  # the whole row as one value
        each.whole |= unsure or rows


def _names(sql: str, tree: exp.Expr) -> set[tuple[str, str]]:
    """Every word of the query, with what stands before it where it is a column's name behind a dot."""
    before = {
        node.this.meta["start"]: node.table.casefold()
        for node in tree.find_all(exp.Column)
        if node.table and "start" in node.this.meta
    }
    tokens = sqlglot_dialect("duckdb").tokenize(sql)
    return {(before.get(token.start, ""), token.text.casefold()) for token in tokens}


def _need(group: Sequence[_Reference], names: set[tuple[str, str]]) -> Need:
    """One part for all places that name its table."""
    held, columns = group[0].held, tuple(range(len(group[0].held.table.columns)))
    if not any(each.whole for each in group):
        aliases = {"", *(each.node.alias_or_name.casefold() for each in group)}
        words = {name for alias, name in names if alias in aliases}
        columns = tuple(i for i in columns if held.table.columns[i].name.casefold() in words)
    conditions = dict.fromkeys(each.found.condition if each.found else None for each in group)
    alone = group[0].limit if len(group) == 1 else None
    if None in conditions:
        return Need(held, columns, limit=alone)
    known = tuple(each for each in conditions if each)
    condition = known[0] if len(known) == 1 else Junction("OR", known)
    return Need(held, columns, condition, alone)
