"""The plan of a query over several databases: one part for each table that it reads.

The query itself is never rewritten: DuckDB runs it as it was judged, over parts under the tables' own names.
A part has all columns whose names occur in the query, and the rows by those conditions alone that bear on
this table wherever the query names it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from sqlglot import exp

from quorum.tools.databases.many.catalog import UnionTable
from quorum.tools.databases.many.conditions import ALIAS, Pushdown, Reader, conjunction, joined
from quorum.tools.guard.rules import is_cte
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql import SyntaxProblem, parse_one_statement, sqlglot_dialect
from quorum.tools.sql.writing import write

MOST_PARTS = 60
DESCRIBING = ("duckdb_", "pragma_", "pg_")
"""Prefixes of functions that describe the session's own database."""
PLAIN = {"this", "db", "catalog", "alias"}
"""The parts of a table in FROM that are understood here."""
UNSURE = (exp.Columns, exp.PositionalColumn, exp.Parameter, exp.Placeholder)
"""Expressions that may name columns in another way than by their names."""
OF_ONE_ROW = (
    *(exp.Alias, exp.Binary, exp.Boolean, exp.Case, exp.Cast, exp.Coalesce, exp.Column, exp.DataType),
    *(exp.Identifier, exp.If, exp.Length, exp.Literal, exp.Lower, exp.Null, exp.Paren, exp.Round, exp.Star),
    *(exp.Substring, exp.Trim, exp.Unary, exp.Upper),
)
"""Expressions that make a row of the result of one row of a table."""
CHANGING = (
    *("group", "having", "qualify", "distinct", "order", "sample", "windows", "joins", "laterals", "kind"),
)
"""Clauses with which the first rows of a result are not any rows of its table."""


@dataclass(frozen=True)
class PartQuery:
    """The query of a part: some columns (by position) and rows of a table; without columns the row count."""

    table: UnionTable
    columns: tuple[int, ...]
    condition: str = ""
    limit: int | None = None

    @property
    def database(self) -> str:
        """Return the combined name of its database."""
        return self.table.table.database

    @property
    def sql(self) -> str:
        """Return the query in its owner's dialect.

        Columns are qualified: SQLite reads the quoted name of a column that is gone as a text.
        """
        own, dialect = self.table.original, self.table.owner.dialect
        table = write(exp.table_(own.name, own.schema or None, own.database or None, quoted=True), dialect)
        columns = [
            write(exp.column(own.columns[i].name, table=ALIAS, quoted=True), dialect) for i in self.columns
        ]
        alias = write(exp.to_identifier(ALIAS, quoted=True), dialect)
        text = f"SELECT {', '.join(columns) or 'count(*) AS n'} FROM {table} AS {alias}"
        if self.condition:
            text += f" WHERE {self.condition}"
        return f"{text} LIMIT {self.limit}" if columns and self.limit is not None else text


@dataclass(frozen=True)
class QueryPlan:
    """The parts of a query.

    Attributes:
        path: Catalogs and schemas in which names that are not written in full are looked up.
    """

    parts: tuple[PartQuery, ...]
    path: tuple[tuple[str, str], ...] = ()


class UnionTables:
    """The tables of all databases by their names."""

    def __init__(self, tables: Sequence[UnionTable]) -> None:
        self._by_name: dict[tuple[str, ...], list[UnionTable]] = defaultdict(list)
        for each in tables:
            database, schema, name = (part.casefold() for part in each.path)
            for spelling in {(name,), (schema, name), (database, name), (database, schema, name)}:
                self._by_name[spelling].append(each)

    def find(self, parts: Sequence[str]) -> list[UnionTable]:
        """Return the tables that a name of one to three parts can mean."""
        return self._by_name.get(tuple(part.casefold() for part in parts), [])


@dataclass
class _Reference:
    """A place of the query that names a table.

    Attributes:
        whole: All its columns are needed.
        condition: The conditions that bear on it there.
    """

    node: exp.Table
    table: UnionTable
    whole: bool = True
    condition: Pushdown | None = None

    def position(self, column: str) -> int | None:
        """Return the position of a column by its combined name in lower case."""
        columns = self.table.table.columns
        return next((i for i, each in enumerate(columns) if each.name.casefold() == column), None)


def split(sql: str, tables: UnionTables, rows: int) -> QueryPlan | QueryError:
    """Return the parts that a query needs; at most ``rows`` rows of its result are kept."""
    try:
        tree = parse_one_statement(sql, "duckdb")
    except SyntaxProblem as problem:
        return QueryError(ErrorKind.SYNTAX, problem.message, problem.line, problem.column)
    if not isinstance(tree, exp.Query | exp.Values):
        return QueryError(ErrorKind.PERMISSION, "Over several databases only queries run.")
    references = _references(tree, tables)
    if isinstance(references, QueryError):
        return references
    by_node = {id(each.node): each for each in references}
    for select in tree.find_all(exp.Select):
        _SelectNeeds(select, by_node).read()
    unsure = any(isinstance(node, UNSURE) for node in tree.walk())
    bare = {node.name.casefold() for node in tree.find_all(exp.Column) if not node.table}
    for each in references:  # a bare name of a table is its whole row as one value
        each.whole |= unsure or each.node.alias_or_name.casefold() in bare
    limit, names = _limit(tree, references, rows), _names(sql, tree)
    by_table: dict[int, list[_Reference]] = defaultdict(list)
    for each in references:
        by_table[id(each.table)].append(each)
    if len(by_table) > MOST_PARTS:
        message = f"The query reads {len(by_table)} tables; over several databases {MOST_PARTS} are the most."
        return QueryError(ErrorKind.RESOURCES, message)
    path = dict.fromkeys(each.table.path[:2] for each in references if len(each.node.parts) < 3)
    return QueryPlan(tuple(_part(group, names, limit) for group in by_table.values()), tuple(path))


def _references(tree: exp.Expr, tables: UnionTables) -> list[_Reference] | QueryError:
    """Return the places in which the query names tables; an error if a table is unknown or ambiguous."""
    from quorum.tools.lint.messages import position

    describing = [
        each.name for each in tree.find_all(exp.Anonymous) if each.name.lower().startswith(DESCRIBING)
    ]
    found = []
    for node in tree.find_all(exp.Table):
        if not isinstance(node.this, exp.Identifier) or is_cte(node):
            continue
        parts = [part.name for part in node.parts]
        meant, shown = tables.find(parts), ".".join(parts)
        if len(meant) == 1:
            found.append(_Reference(node, meant[0]))
        elif parts[0].casefold() == "information_schema":
            describing.append(shown)
        elif not describing:
            near = tuple(".".join(each.path) for each in (meant or tables.find(parts[-1:]))[:3])
            message = f"{shown} is in several databases: write its full name." if meant else ""
            message = message or f"There is no table {shown}."
            place = position(node.parts[-1])
            return QueryError(ErrorKind.TABLE_NOT_FOUND, message, *place, suggestions=near)
    if describing:
        message = f"{describing[0]} describes one database; over several the schema says what there is."
        return QueryError(ErrorKind.PERMISSION, message)
    return found


@dataclass
class _SelectNeeds:
    """One SELECT: the tables that its FROM names, and what it needs of each."""

    select: exp.Select
    by_node: dict[int, _Reference]
    joins: list[exp.Join] = field(default_factory=list)
    tables: dict[str, _Reference] = field(default_factory=dict)

    def read(self) -> None:
        """Note for each table of the FROM the columns, conditions and rows that are enough here."""
        source = self.select.args.get("from_")
        self.joins = list(self.select.args.get("joins") or ())
        sources = [each.this for each in (source, *self.joins) if each is not None]
        names = [each.alias_or_name.casefold() for each in sources]
        for each, name in zip(sources, names, strict=True):
            reference = self.by_node.get(id(each))
            if reference and names.count(name) == 1:
                self.tables[name] = reference
        stars = self._stars()
        for name, reference in self.tables.items():
            plain = _is_plain(reference.node)
            reference.whole = not plain or "" in stars or name in stars
            if plain and not self.select.args.get("sample") and all(map(_is_usual, self.joins)):
                reference.condition = self._conditions(name)

    def _stars(self) -> set[str]:
        """Return the aliases of which all columns are asked for; the empty one means all aliases."""
        if any(join.method == "NATURAL" for join in self.joins):
            return {""}
        found = set()
        for node in _own_nodes(self.select):
            if isinstance(node, exp.Star) and not isinstance(node.parent, exp.Count):
                column = node.parent
                found.add(column.table.casefold() if isinstance(column, exp.Column) else "")
        return found

    def _conditions(self, name: str) -> Pushdown | None:
        """Return the conditions of WHERE and ON that bear on one table alone."""
        reference = self.tables[name]
        reader = Reader(lambda node: self._column(node, name), reference.table.owner.dialect)
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
        """Return the owner's name and type of a column of the table ``name``; None for anything else."""
        plain = isinstance(node, exp.Column) and isinstance(node.this, exp.Identifier)
        if not plain or node.args.get("db"):
            return None
        column, table = node.name.casefold(), node.args.get("table")
        if table and table.name.casefold() != name:
            return None
        if not table:
            merged = {each.name.casefold() for join in self.joins for each in join.args.get("using") or ()}
            others = [other for key, other in self.tables.items() if key != name]
            if column in merged or any(other.position(column) is not None for other in others):
                return None
        reference = self.tables[name]
        place, original = reference.position(column), reference.table.original
        if place is None:
            return None
        # a view's values may be of any type in SQLite
        typed = reference.table.owner.dialect != "sqlite" or original.kind == "table"
        return original.columns[place].name, original.columns[place].type if typed else ""


def _limit(tree: exp.Expr, references: Sequence[_Reference], rows: int) -> int | None:
    """Return the number of rows of its only table that a query needs, whichever come first; None for all."""
    if not isinstance(tree, exp.Select) or len(references) != 1 or not _any_rows(tree, references[0]):
        return None
    limit, offset = (tree.args.get(name) for name in ("limit", "offset"))
    numbers = [clause.expression for clause in (limit, offset) if clause is not None]
    if not all(isinstance(each, exp.Literal) and each.name.isdigit() for each in numbers):
        return None
    skipped = int(offset.expression.name) if offset else 0
    return skipped + min(rows + 1, int(limit.expression.name) if limit else rows + 1)


def _any_rows(select: exp.Select, reference: _Reference) -> bool:
    """Return True if a SELECT gives rows of its only table, each by itself, whichever come first."""
    source = select.args.get("from_")
    if source is None or source.this is not reference.node or not _is_plain(reference.node):
        return False
    limit = select.args.get("limit")
    if any(select.args.get(clause) for clause in CHANGING) or (limit and limit.args.get("limit_options")):
        return False
    if select.args.get("where") and not (reference.condition and reference.condition.whole):
        return False
    return all(
        isinstance(node, OF_ONE_ROW) and not isinstance(node, exp.AggFunc)
        for item in select.expressions
        for node in item.walk()
    )


def _is_plain(table: exp.Table) -> bool:
    """Return True if FROM reads a table as it is: no sample, no pivot, no other names for its columns."""
    if any(value for name, value in table.args.items() if name not in PLAIN):
        return False
    alias = table.args.get("alias")
    return not (alias and alias.args.get("columns"))


def _is_usual(join: exp.Join) -> bool:
    """Return True if a join pairs rows by its condition alone: no ASOF, SEMI or POSITIONAL join."""
    return (
        join.method in ("", "NATURAL")
        and join.side in ("", "LEFT", "RIGHT", "FULL")
        and join.kind in ("", "INNER", "CROSS", "OUTER")
    )


def _own_nodes(select: exp.Select) -> Iterator[exp.Expr]:
    """Yield the nodes of a SELECT without those of queries inside it."""
    for node in select.walk(prune=lambda node: node is not select and isinstance(node, exp.Query)):
        if node is select or not isinstance(node, exp.Query):
            yield node


def _names(sql: str, tree: exp.Expr) -> set[tuple[str, str]]:
    """Return every word of the query, each after the alias before its dot if it is a column's name."""
    before = {
        node.this.meta["start"]: node.table.casefold()
        for node in tree.find_all(exp.Column)
        if node.table and "start" in node.this.meta
    }
    tokens = sqlglot_dialect("duckdb").tokenize(sql)
    return {(before.get(token.start, ""), token.text.casefold()) for token in tokens}


def _part(group: Sequence[_Reference], names: set[tuple[str, str]], limit: int | None) -> PartQuery:
    """Return one part for all places that name its table."""
    table = group[0].table
    columns = tuple(range(len(table.table.columns)))
    if not any(each.whole for each in group):
        aliases = {"", *(each.node.alias_or_name.casefold() for each in group)}
        words = {name for alias, name in names if alias in aliases}
        columns = tuple(i for i in columns if table.table.columns[i].name.casefold() in words)
    conditions = list(dict.fromkeys(each.condition.sql if each.condition else "" for each in group))
    condition = joined(conditions, "OR") if all(conditions) else ""
    return PartQuery(table, columns, condition, limit)
