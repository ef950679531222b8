"""Name resolution: every table and column of a query against the catalog.

Where anything on the way cannot be known (table functions, pivots, structs, system tables), the
resolver stays silent: a false alarm would cost a good query.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING

from sqlglot import exp

from quorum.tools.guard.limits import branches
from quorum.tools.guard.rules import is_cte
from quorum.tools.lint.fields import UNNAMED, Columns, has_field, may_have, returned, unnamed
from quorum.tools.lint.tables import CaseRules, Tables
from quorum.tools.sql import STRICT_DIALECTS
from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Table

# clauses that see the aliases of their own SELECT list, by dialect (args of sqlglot's Select)
_EVERYWHERE = frozenset({"expressions", "where", "joins", "group", "having", "qualify", "order", "windows"})
_ALIASES_SEEN = {
    "snowflake": _EVERYWHERE,
    "duckdb": _EVERYWHERE,
    "sqlite": _EVERYWHERE - {"expressions", "windows"},
    "mysql": frozenset({"group", "having", "order"}),
    "bigquery": frozenset({"group", "having", "qualify", "order", "windows"}),
    "postgres": frozenset({"group", "order"}),
    "oracle": frozenset({"order"}),  # elsewhere a bare name that is no column calls a function
}
_SHARED_PSEUDO = frozenset({"level", "rownum", "connect_by_isleaf", "connect_by_iscycle", "connect_by_root"})
_PSEUDO = {
    "sqlite": frozenset({"rowid", "_rowid_", "oid", "rank"}),
    "duckdb": frozenset({"rowid", "filename", "file_row_number", "all"}),
    "postgres": frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid", "oid"}),
    "mysql": frozenset({"dual"}),
    "bigquery": frozenset({"_table_suffix", "_partitiontime", "_partitiondate", "_file_name"})
    | frozenset({"_change_type", "_change_timestamp"}),
    "snowflake": _SHARED_PSEUDO,
    "oracle": _SHARED_PSEUDO | {"rowid", "ora_rowscn", "user", "uid", "sysdate", "systimestamp"},
    "exasol": frozenset({"rownum", "rowid", "level", "user", "dummy"}),
    "tsql": frozenset({"$identity", "$rowguid", "$action", "$partition"}),
    "trino": frozenset({"$path", "$file_modified_time", "$file_size", "$partition", "$bucket"}),
    "athena": frozenset({"$path"}),
    "clickhouse": frozenset({"_part", "_partition_id", "_sample_factor", "_table"}),
    "databricks": frozenset({"_metadata", "user"}),
}
PSEUDO = frozenset().union(*_PSEUDO.values())
"""Names by which some engine gives more of a table than its columns."""
_ROW_FUNCTIONS = ("json_each", "json_tree")
_ROW_COLUMNS = ["key", "value", "type", "atom", "id", "parent", "fullkey", "path", "json", "root"]
"""The columns of SQLite's table functions that are known."""
_FLATTENED = ["SEQ", "KEY", "PATH", "INDEX", "VALUE", "THIS"]
_SAY_RECURSIVE = frozenset({"duckdb", "postgres", "mysql", "bigquery"})
"""Dialects where without that word a CTE that names itself reads another table."""
_STRUCTS = frozenset({"bigquery", "duckdb", "snowflake", "postgres", *STRICT_DIALECTS} - {"oracle"})
"""Dialects where a.b may be a field of column a."""
_INSPECTS = re.compile(
    r"(?i)pragma_|duckdb_|pg_(?!typeof|column_size|size_|lsn)|has_\w+_privilege|(to_)?reg(class|type|proc|oper"
    r"|role|namespace|config|dict|coll)|(obj|col|shobj)_description|get_ddl|last_query_id|result_scan"
    r"|error\b"
)
"""Functions and types that tell what is in no table of the schema, or say a value as an error."""
_OPAQUE = ("MatchRecognize", "Pivot")
_TERMS = (exp.Ordered, exp.Paren, exp.Tuple, exp.Rollup, exp.Cube, exp.GroupingSets)
"""Nodes that may enclose the alias of an output in PostgreSQL's ORDER BY and GROUP BY."""


@dataclass(frozen=True)
class FromItem:
    """One thing in a FROM clause.

    Attributes:
        name, key: Its alias, or its own name.
        columns: None where they cannot be known; such a source may have any column.
        table: The catalog's table, if it is one; of a wildcard's shards the first.
        shards: All tables behind a BigQuery wildcard.
    """

    name: str
    key: str
    columns: Columns
    table: Table | None = None
    shards: tuple[Table, ...] = ()

    @property
    def tables(self) -> tuple[Table, ...]:
        """The catalog's tables behind it."""
        return self.shards or ((self.table,) if self.table else ())

    @property
    def names(self) -> list[str]:
        """The columns as people see them; empty where they cannot be known."""
        return [name for name in (self.columns or {}).values() if name]

    @cached_property
    def open(self) -> bool:
        """True if it may have columns that are not known."""
        columns = self.columns
        return columns is None or (self.table is None and any(key.startswith(UNNAMED) for key in columns))


@dataclass
class Scope:
    """One SELECT and what it sees.

    Attributes:
        ctes: Keys of common table expressions in reach, with their columns.
        aliases: Keys of the SELECT list's own names, with the names that people see.
        outputs: The same and its unaliased columns.
        merged: Keys that USING or NATURAL made one.
        natural: A NATURAL JOIN is here: no column is called ambiguous.
        clause: The clause being read.
    """

    dialect: str
    ctes: dict[str, Columns]
    parent: Scope | None = None
    sources: list[FromItem] = field(default_factory=list)
    aliases: dict[str, str] = field(default_factory=dict)
    outputs: frozenset[str] = frozenset()
    merged: set[str] = field(default_factory=set)
    natural: bool = False
    clause: str = ""

    def chain(self) -> Iterator[Scope]:
        """Yield this scope and the outer ones, innermost first."""
        scope: Scope | None = self
        while scope is not None:
            yield scope
            scope = scope.parent

    @property
    def open(self) -> bool:
        """True if some source may have any column."""
        return any(source.open for source in self.sources)

    def named(self, key: str) -> list[FromItem]:
        return [source for source in self.sources if source.key == key]

    def holding(self, key: str) -> list[FromItem]:
        return [source for source in self.sources if source.columns is not None and key in source.columns]

    def sees_alias(self, key: str) -> bool:
        return key in self.aliases and self.clause in _ALIASES_SEEN.get(self.dialect, _EVERYWHERE)

    def decides(self, column: exp.Column, key: str) -> bool:
        """True if a column that several sources have is not ambiguous here.

        It was merged by USING or NATURAL, or names an output of this SELECT in a clause where the
        engine prefers outputs (SQLite and DuckDB: only as a whole ORDER BY term).
        """
        if self.natural or key in self.merged:
            return True
        if self.dialect in ("sqlite", "duckdb"):
            names = frozenset(self.aliases) if self.dialect == "sqlite" else self.outputs
            return self.clause == "order" and key in names and type(column.parent).__name__ == "Ordered"
        return self.clause in ("group", "having", "qualify", "order") and key in self.outputs


@dataclass(frozen=True)
class Issue:
    """A name that does not resolve.

    Attributes:
        node: The table or column.
        scope: Where it is.
        sources: An ambiguous column's sources; the source that lacks a qualified column.
        clause: Of an alias: the clause that cannot see it.
    """

    node: exp.Expr
    scope: Scope
    what: str  # table, qualifier, column, alias, ambiguous or field
    sources: tuple[FromItem, ...] = ()
    clause: str = ""

    @property
    def place(self) -> tuple[int, int]:
        """Line and column of its last word; 0 where the parser did not note them."""
        meta = self.parts[-1].meta
        return meta.get("line", 0), meta.get("col", 0)

    @property
    def parts(self) -> list[exp.Expr]:
        """The names that it is written with; of a field, the one that is not there."""
        node = self.node
        return list(node.parts) if isinstance(node, exp.Column | exp.Table) else [node.expression]

    @property
    def key(self) -> tuple[object, ...]:
        """Equal for issues that get the same message."""
        return self.what, self.clause, id(self.scope), *(part.name for part in self.parts)


class Resolver:
    """Resolves one query; make a new one for each.

    Attributes:
        issues: Names that do not resolve.
        firsts: Columns of the first branch of recursive queries, by the id of its node: each is resolved
            once for them, however deep such queries nest.
        found: The catalog's tables that are read.
        read: The ids of the nodes of tables that were looked up.
        calls: True where a bare name that is no column calls a function: then no source may have any column.
    """

    def __init__(self, tables: Tables, variables: Iterable[str] = ()) -> None:
        self.tables = tables
        self.names: CaseRules = tables.names
        self.dialect = tables.names.dialect
        self.variables = frozenset(name.casefold() for name in variables)
        self.issues: list[Issue] = []
        self.firsts: dict[int, Columns] = {}
        self.found: list[Table] = []
        self.read: set[int] = set()
        self.calls = self.dialect == "oracle"

    def query(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        """Resolve a query and all queries in it; return its output columns."""
        ctes = self._ctes(node, parent, ctes)
        if isinstance(node, exp.Subquery):
            columns = self.query(node.this, parent, ctes)
            return None if node.args.get("pivots") else columns
        if isinstance(node, exp.SetOperation):
            return self._set_operation(node, parent, ctes)
        if isinstance(node, exp.Select):
            return self._select(node, parent, ctes)
        scope = Scope(self.dialect, ctes, parent)
        if isinstance(node, exp.Table):
            self._source(node, scope)
            return star_columns(scope)
        scope.sources.append(FromItem("", "", {} if self.calls else None))
        self._visit(node.iter_expressions(), scope)
        return None

    def check_other_tables(self, tree: exp.Expr) -> None:
        """Also check the tables that were not reached while resolving the query."""
        for node in tree.find_all(exp.Table):
            named = isinstance(node.this, exp.Identifier) and id(node) not in self.read
            if named and (self.names.strict or not (is_cte(node) or self.tables.find(node))):
                self.issues.append(Issue(node, Scope(self.dialect, {}), "table"))
        for each in tree.find_all(exp.In) if self.tables.closed and self.dialect == "sqlite" else ():
            if isinstance(field := each.args.get("field"), exp.Column):  # x IN t reads the table t
                table = exp.Table(this=field.this, db=field.args.get("table"))
                if not self.tables.find(table):
                    self.issues.append(Issue(table, Scope(self.dialect, {}), "table"))

    def _ctes(self, node: exp.Expr, parent: Scope | None, ctes: dict[str, Columns]) -> dict[str, Columns]:
        clause = node.args.get("with_")
        if not clause:
            return ctes
        ctes = dict(ctes)
        for cte in clause.expressions:
            key = self.names.key(cte.args["alias"].this)
            aliases = self._keyed(cte.args["alias"].columns)
            body = cte.this.unnest() if isinstance(cte.this, exp.Subquery) else cte.this
            own = dict(ctes)
            if isinstance(body, exp.SetOperation):  # it may read itself: its first branch names the columns
                self._anchored(body, key, recursive=bool(clause.args.get("recursive")))
                own[key] = None
                own[key] = _renamed(self._first_columns(body, parent, own), aliases)
            ctes[key] = _renamed(self.query(cte.this, parent, own), aliases)
            if clause.args.get("search") or clause.args.get("cycle"):
                ctes[key] = None  # which add columns
        return ctes

    def _anchored(self, body: exp.SetOperation, key: str, *, recursive: bool) -> None:
        """Check tables that are called as the CTE that reads them; some engines then mean the table."""
        if self.tables.closed and self.dialect in _SAY_RECURSIVE:
            anchor = body.left if recursive and isinstance(body, exp.Union) else body
            for node in anchor.find_all(exp.Table):
                same = isinstance(node.this, exp.Identifier) and self.names.key(node.this) == key
                if same and not self.tables.find(node):
                    self.issues.append(Issue(node, Scope(self.dialect, {}), "table"))

    def _first_columns(self, body: exp.Expr, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        """Return the columns of the first branch of a set operation, whose issues are found later."""
        while isinstance(body, exp.SetOperation):
            body = body.left
        if id(body) not in self.firsts:
            silent = Resolver(self.tables, self.variables)
            silent.firsts = self.firsts
            self.firsts[id(body)] = silent.query(body, parent, ctes)
        return self.firsts[id(body)]

    def _set_operation(
        self, node: exp.SetOperation, parent: Scope | None, ctes: dict[str, Columns]
    ) -> Columns:
        outputs = [self.query(branch, parent, ctes) for branch in branches(node)]
        known = None if None in outputs else {k: v for columns in outputs for k, v in (columns or {}).items()}
        scope = Scope(self.dialect, ctes, parent, [FromItem("", "", known)], clause="order")
        self._visit([order for order in [node.args.get("order")] if order], scope)
        return outputs[0]

    def _select(self, node: exp.Select, parent: Scope | None, ctes: dict[str, Columns]) -> Columns:
        scope = Scope(self.dialect, ctes, parent)
        pending: list[exp.Expr] = []  # ON conditions and arguments, which see all sources
        if node.args.get("from_"):
            pending += self._source(node.args["from_"].this, scope)
        pending += self._joins(node, scope)
        for lateral in node.args.get("laterals") or ():
            pending += self._source(lateral, scope)
        named = [e.args["alias"] for e in node.expressions if e.args.get("alias") and e.key == "alias"]
        scope.aliases = self._keyed(named)
        scope.outputs = frozenset(scope.aliases) | frozenset(
            self.names.key(e.this) for e in node.expressions if e.key == "column" and not e.is_star
        )
        scope.clause = "joins"
        self._visit(pending, scope)
        for clause, value in node.args.items():
            if clause in ("with_", "from_", "joins", "laterals", "hint", "match", "pivots"):
                continue
            scope.clause = clause
            items = value if isinstance(value, list) else [value]
            self._visit([item for item in items if hasattr(item, "iter_expressions")], scope)
        odd = node.args.get("kind") or node.args.get("pivots")
        return None if odd else output_columns(self.names, node, scope)

    def _joins(self, node: exp.Expr, scope: Scope) -> list[exp.Expr]:
        return [part for join in node.args.get("joins") or () for part in self._join(join, scope)]

    def _join(self, join: exp.Join, scope: Scope) -> list[exp.Expr]:
        pending = self._source(join.this, scope)
        scope.natural = scope.natural or join.method == "NATURAL"
        using = [n if isinstance(n, exp.Identifier) else n.this for n in join.args.get("using") or ()]
        scope.merged |= set(self._keyed(using))
        return pending + [part for part in [join.args.get("on"), join.args.get("match_condition")] if part]

    def _source(self, node: exp.Expr, scope: Scope) -> list[exp.Expr]:
        """Add a source of a FROM clause; return what in it still has to be resolved."""
        node = node.this if isinstance(node, exp.Final) else node
        alias = node.args.get("alias")
        identifier = alias.this if isinstance(alias, exp.TableAlias) and alias.this else None
        pending: list[exp.Expr] = []
        tables: tuple[Table, ...] = ()
        columns: Columns = None
        if isinstance(node, exp.Table) and isinstance(node.this, exp.Identifier):
            identifier = identifier or node.this
            columns, tables = self._table(node, scope)
            pending += [part for name in ("version", "sample", "when") if (part := node.args.get(name))]
        elif isinstance(node, exp.Subquery) and isinstance(node.this, exp.Table):
            pending += self._source(node.this, scope)  # (a JOIN b)
            if identifier is None:
                return pending + self._joins(node, scope)
        elif isinstance(node, exp.Subquery):
            columns = self.query(node, scope.parent, scope.ctes)
        elif isinstance(node, exp.Lateral) and isinstance(node.this, exp.Subquery):
            columns = self.query(node.this, scope, scope.ctes)
        else:
            pending += list(node.iter_expressions())
            columns = returned(self.names, node) if self.dialect == "postgres" else self._row_function(node)
        if node.args.get("pivots") or node.args.get("match"):
            columns, tables = None, ()
        columns = self._aliased(node, alias, columns)
        name = identifier.name if identifier is not None else ""
        key = self.names.key(identifier) if isinstance(identifier, exp.Identifier) else ""
        shards = tables if tables and node.name.endswith("*") else ()
        scope.sources.append(FromItem(name, key, columns, tables[0] if tables else None, shards))
        return pending + self._joins(node, scope)

    def _aliased(self, node: exp.Expr, alias: exp.Expr | None, columns: Columns) -> Columns:
        """Return a source's columns by the names that its alias gives them."""
        if columns is not None and len(columns) == 1 and next(iter(columns)).startswith(UNNAMED):
            return columns
        written = (alias.args.get("columns") or ()) if alias else ()
        named = self._keyed(written)
        flattened = isinstance(node, exp.Lateral) and columns is None and self.dialect == "snowflake"
        if named and (flattened or isinstance(node, exp.Values)):
            return named
        if columns is None and self.calls:  # only what the source itself defines: JSON_TABLE's columns, too
            return self._keyed([*(each.this for each in node.find_all(exp.JSONColumnDef)), *written])
        return columns if columns is None else _renamed(columns, named)

    def _row_function(self, node: exp.Expr) -> Columns:
        if self.dialect == "snowflake" and isinstance(node, exp.TableFromRows | exp.Lateral):
            known = _FLATTENED if isinstance(node.this, exp.Explode | exp.Flatten) else []
        elif self.dialect == "mysql" and isinstance(node.this, exp.JSONTable):
            return self._keyed(part.this for part in node.this.find_all(exp.JSONColumnDef))
        else:
            called = node.this.name.lower() if isinstance(node.this, exp.Anonymous) else ""
            known = _ROW_COLUMNS if self.dialect == "sqlite" and called in _ROW_FUNCTIONS else []
        return {name: name for name in known} or None

    def _keyed(self, names: Iterable[exp.Expr | None]) -> dict[str, str]:
        return {self.names.key(each): each.name for each in names if isinstance(each, exp.Identifier)}

    def _table(self, node: exp.Table, scope: Scope) -> tuple[Columns, tuple[Table, ...]]:
        """Return the columns of a table or CTE, and the catalog's tables if it is one."""
        self.read.add(id(node))
        key = self.names.key(node.this)
        if not node.args.get("db") and key in scope.ctes:
            return scope.ctes[key], ()
        found = self.tables.find(node)
        if not found:  # BigQuery's FROM t, t.items unnests a column
            path = self.dialect == "bigquery" and scope.named(self.names.key(node.parts[0]))
            unknown = found is None and not (self.tables.closed and node.name.casefold() != "dual")
            if not unknown and not path:
                self.issues.append(Issue(node, scope, "table"))
            return None, ()
        self.found += found
        if not all(table.columns for table in found):
            return None, ()
        return {self.names.stored(c.name): c.name for table in found for c in table.columns}, found

    def _visit(self, nodes: Iterable[exp.Expr], scope: Scope) -> None:
        """Resolve the columns below ``nodes``, and the queries in them with ``scope`` as the outer one."""
        todo: list[tuple[exp.Expr, frozenset[str]]] = [(node, frozenset()) for node in nodes]
        while todo:
            node, bound = todo.pop()
            if isinstance(node, exp.Query) and not isinstance(node, exp.Table):
                self.query(node, scope, scope.ctes)
            elif isinstance(node, exp.Column):
                if node.name.casefold() not in bound:
                    self._column(node, scope)
                stars = [node.this] if isinstance(node.this, exp.Star) else []
                todo += [(child, bound) for child in stars]
            elif type(node).__name__ not in _OPAQUE:
                self._field(node, scope)
                if isinstance(node, exp.Comprehension | exp.Lambda):
                    names = [node.args.get("expression"), *node.expressions]
                    bound |= {i.name.casefold() for i in names if i is not None and hasattr(i, "name")}
                todo += [(child, bound) for child in node.iter_expressions()]

    def _column(self, node: exp.Column, scope: Scope) -> None:
        qualifier = node.args.get("table")
        if isinstance(node.this, exp.Star):
            if qualifier is not None and not node.args.get("db"):
                self._qualified(node, qualifier, None, scope)
        elif not isinstance(node.this, exp.Identifier) or (
            is_pseudo(node, scope) and not (self.calls and qualifier is not None)
        ):
            return
        elif qualifier is None:
            self._unqualified(node, self.names.key(node.this), scope)
        elif node.args.get("db") is None or self.dialect == "postgres":  # there, a.b.f may be f(a.b)
            self._qualified(node, qualifier, self.names.key(node.this), scope)

    def _qualified(self, node: exp.Column, qualifier: exp.Identifier, key: str | None, scope: Scope) -> None:
        """Resolve ``qualifier.column``, or ``qualifier.*`` with None as the key."""
        wanted = self.names.key(qualifier)
        sources = next((found for level in scope.chain() if (found := level.named(wanted))), [])
        if not sources:
            if not self._may_have_fields(wanted, scope):
                self.issues.append(Issue(node, scope, "qualifier"))
        elif key is not None and not self._may_have_column(sources, node, key, scope):
            self.issues.append(Issue(node, scope, "column", tuple(sources)))

    def _may_have_column(self, sources: list[FromItem], node: exp.Column, key: str, scope: Scope) -> bool:
        for source in sources:
            if source.columns is None or key in source.columns:
                return True
            if source.open and may_have(source.columns, key):
                return True
        return self.calls and is_pseudo(node, scope)

    def _may_have_fields(self, key: str, scope: Scope) -> bool:
        """True if a qualifier that names no source may be a column with fields, or a script's variable."""
        if self.dialect in _STRUCTS:
            for level in scope.chain():
                if level.open or level.holding(key) or level.sees_alias(key):
                    return True
        return key in self.variables or any(s.key == "" and s.columns is None for s in scope.sources)

    def _field(self, node: exp.Expr, scope: Scope) -> None:
        """Check that ``f`` of PostgreSQL's ``(value).f`` is a field."""
        if self.dialect != "postgres" or not isinstance(node, exp.Dot):
            return
        named = isinstance(node.expression, exp.Identifier) and not isinstance(node.parent, exp.DataType)
        if named and not has_field(node, scope, self.tables):
            self.issues.append(Issue(node, scope, "field"))

    def _counts_alias(self, node: exp.Column) -> bool:
        """True if an alias counts here: on PostgreSQL only as a whole term of ORDER BY or GROUP BY."""
        above = node.parent
        while isinstance(above, _TERMS):
            above = above.parent
        return self.dialect != "postgres" or isinstance(above, exp.Order | exp.Group)

    def _unqualified(self, node: exp.Column, key: str, scope: Scope) -> None:
        for level in scope.chain():
            holders = level.holding(key)
            if len(holders) > 1 and not level.decides(node, key):
                self.issues.append(Issue(node, scope, "ambiguous", tuple(holders)))
                return
            if holders:
                return
            own = level is scope
            if level.sees_alias(key) and (own or not self.calls) and (not own or self._counts_alias(node)):
                return
            if not self.calls and (level.open or level.named(key)):
                return
        if key.casefold() not in self.variables:
            what = "alias" if key in scope.aliases else "column"
            self.issues.append(Issue(node, scope, what, clause=scope.clause))


def inspects(tree: exp.Expr | None, dialect: str) -> bool:
    """True if a query asks about the database itself, by a function or by a cast of a name to its table.

    So may one that spells a name in two ways which are the same to us but not to every engine.
    """
    spelt: dict[str, str] = {}
    for node in tree.walk() if tree else ():
        name = ""
        if isinstance(node, exp.Identifier) and not node.name.isascii():
            plain = "".join(letter.lower() if letter.isascii() else letter for letter in node.name)
            if spelt.setdefault(plain.casefold(), plain) != plain or plain.casefold().isascii():
                return True
        if isinstance(node, exp.DataType):
            name = write(node, dialect)
        elif isinstance(node, exp.Func):
            name = node.name if isinstance(node, exp.Anonymous) else node.sql_name()
        if name and _INSPECTS.match(name):
            return True
    return False


def is_pseudo(column: exp.Column, scope: Scope) -> bool:
    """True for names that the engine provides in addition to the table's own columns."""
    name, dialect = column.name.casefold(), scope.dialect
    if name == "_table_suffix":  # where a wildcard is read
        return any(level.open or any(source.shards for source in level.sources) for level in scope.chain())
    return name in _PSEUDO.get(dialect, ()) or (dialect == "snowflake" and name.startswith("metadata$"))


def _renamed(columns: Columns, aliases: dict[str, str]) -> Columns:
    """Return the columns with the first ones renamed, as in ``AS t (a, b)``."""
    if not aliases:
        return columns
    return aliases | dict(list((columns or {}).items())[len(aliases) :])


def output_columns(names: CaseRules, node: exp.Select, scope: Scope) -> Columns:
    """Return the columns of a SELECT, in order; None where an engine may name one in its own way."""
    outputs: dict[str, str] = {}
    for item in node.expressions:
        alias = item.args.get("alias")
        star = item.this if isinstance(item, exp.Column) and isinstance(item.this, exp.Star) else item
        if isinstance(star, exp.Star):
            columns = _expanded(names, item, star, scope)
            if columns is None:
                return None
            outputs |= columns
        elif isinstance(alias, exp.Identifier):
            outputs[names.key(alias)] = alias.name
        elif isinstance(item, exp.Column):
            outputs[names.key(item.this)] = item.name
        elif names.dialect == "postgres":
            outputs[unnamed(names, item)] = ""
        elif names.dialect != "oracle":  # there, what has no known name is not found by one
            return None  # engines name an expression in their own ways
    return outputs


def _expanded(names: CaseRules, item: exp.Expr, star: exp.Star, scope: Scope) -> Columns:
    """Return the columns of ``*`` or ``t.*``, with EXCEPT and REPLACE applied; None for RENAME."""
    if star.args.get("rename"):
        return None
    qualifier = item.args.get("table") if item is not star else None
    columns = star_columns(scope, names.key(qualifier) if qualifier is not None else None)
    if columns is None:
        return None
    left_out = {
        names.key(c.this if c.key == "column" else c)
        for c in star.args.get("except_") or ()
        if hasattr(c, "this")
    }
    return {key: name for key, name in columns.items() if key not in left_out}


def star_columns(scope: Scope, key: str | None = None) -> Columns:
    """Return what ``*`` means, or ``t.*`` if ``key`` is the source's; None if it cannot be known."""
    sources = scope.sources if key is None else scope.named(key)
    if not sources or any(source.columns is None for source in sources):
        return None
    return {k: name for source in sources for k, name in (source.columns or {}).items()}
