"""The rules on the tree: every node must be known to be harmless, or the query is refused."""

from __future__ import annotations

import re
from collections.abc import Callable

from sqlglot import exp

from quorum.tools.guard.recursion import endless_hierarchy, endless_recursion
from quorum.tools.guard.series import too_many_rows
from quorum.tools.guard.size import too_big
from quorum.tools.guard.strict import strict_node
from quorum.tools.guard.text import Refused
from quorum.tools.guard.vocabulary import (
    DESCRIBED,
    FIELD_CALLS,
    FILE_TABLES,
    FIRST_ARGUMENT,
    MYSQL_SETTINGS,
    NAMESPACES,
    SHOWN,
    function_names,
    is_open,
    is_system,
    listed,
    words,
)
from quorum.tools.sql import STRICT_DIALECTS
from quorum.tools.sql.writing import write

_BY_NAME = (exp.Anonymous, exp.AnonymousAggFunc, exp.ParameterizedAgg)
Rule = Callable[["exp.Expr", str], "Refused | None"]

_FILE = re.compile(
    r"^[/~\\]|[:|*?#]|\.(csv|tsv|txt|parquet|parq|json|jsonl|ndjson|geojson|arrow|feather|ipc|avro|xlsx?"
    r"|db|duckdb|ddb|sqlite3?|gz|zst|bz2|zip|shp|gpkg|fgb|pbf|kml|gpx|vortex|lance)$",
    re.IGNORECASE,
)


def judge(tree: exp.Expr, dialect: str, local_functions: frozenset[str] = frozenset()) -> Refused | None:
    """Walk the whole tree; the first thing that is not known to be harmless is the refusal.

    Args:
        local_functions: Lower-case names that the script itself defined.
    """
    nodes, typed, strict = words("nodes"), words("typed"), dialect in STRICT_DIALECTS
    for node in tree.walk():
        if strict and (problem := strict_node(node, dialect)):
            return problem
        if isinstance(node, exp.Func):
            problem = _function(node, dialect, typed, local_functions) or too_big(node)
        elif type(node).__name__ in nodes:
            rule = _RULES.get(type(node).__name__)
            problem = rule(node, dialect) if rule else None
        else:
            problem = _foreign(node)
        if problem:
            return problem
    return endless_recursion(tree, dialect) or endless_hierarchy(tree) or too_many_rows(tree)


def _foreign(node: exp.Expr) -> Refused:
    """The refusal of a node that no pure read is made of."""
    if isinstance(node, exp.Lock):
        return Refused("FOR UPDATE and FOR SHARE lock rows; only pure reads may run.", "lock")
    if isinstance(node, exp.Into):
        return Refused("SELECT … INTO stores its result; only pure reads may run.", "write")
    word = (
        node.name
        if isinstance(node, exp.Command)
        else re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__)
    )
    return Refused(f"{word.upper()} is not part of a pure read.", "statement")


def _refuse_function(name: str) -> Refused:
    return Refused(
        f"The function {name} is not on the list of functions known to have no side effects.", "function"
    )


def _function(
    node: exp.Func, dialect: str, typed: frozenset[str], local_functions: frozenset[str]
) -> Refused | None:
    if not isinstance(node, _BY_NAME):
        return _typed_function(node, dialect, typed)
    identifier = node.this if isinstance(node.this, exp.Identifier) else None
    written = node.name
    name = written.lower()
    if identifier is not None and identifier.quoted and dialect in ("postgres", "snowflake"):
        name = written if dialect == "postgres" else written.swapcase()  # quoted names are exact
    qualifier = _qualifier(node)
    asked = FIRST_ARGUMENT.get(name)
    if asked and not _is_asked_for(node, asked):
        return Refused(f"{written} may only be asked for {', '.join(sorted(asked))}.", "function")
    if qualifier is None:
        known = name in function_names(dialect) or name in local_functions
        return None if known and "." not in name else _refuse_function(written)
    full = f"{qualifier}.{name}"
    if full in listed(dialect):
        return None
    if _is_own(qualifier, dialect) and name in function_names(dialect):
        return None
    return _refuse_function(f"{qualifier}.{written}".lstrip("."))


def _is_asked_for(node: exp.Func, names: frozenset[str]) -> bool:
    """True if the call's first argument is one of ``names``, as a constant."""
    first = next(iter(node.expressions), None)
    return isinstance(first, exp.Literal) and first.name.lower() in names


def _typed_function(node: exp.Func, dialect: str, typed: frozenset[str]) -> Refused | None:
    """A function that the parser knows; behind a schema's name the same word is another function."""
    name, qualifier = node.sql_name(), _qualifier(node)
    if type(node).__name__ not in typed:
        return _refuse_function(name)
    full = f"{qualifier}.{name}".lower()
    if not qualifier or _is_own(qualifier, dialect) or full in listed(dialect):
        return None
    return _refuse_function(f"{qualifier}.{name}")


def _is_own(qualifier: str, dialect: str) -> bool:
    return qualifier in NAMESPACES.get(dialect, ()) or dialect == "duckdb"  # x.f() is f(x) in DuckDB


def _qualifier(node: exp.Func) -> str | None:
    """What stands before the function's name: None if nothing, empty if a value (DuckDB's x.f())."""
    parent = node.parent
    if isinstance(parent, exp.Table) and parent.this is node:
        return ".".join(map(_folded, parent.parts[:-1])) or None
    if isinstance(parent, exp.NetFunc):
        return "net"
    if not (isinstance(parent, exp.Dot) and parent.expression is node):
        return None
    parts: list[str] = []
    for part in parent.this.flatten() if isinstance(parent.this, exp.Dot) else [parent.this]:
        if not isinstance(part, exp.Identifier):
            return ""
        parts.append(_folded(part))
    return ".".join(parts)


def _folded(part: exp.Expr) -> str:
    return part.name if part.args.get("quoted") else part.name.lower()


def _table(node: exp.Expr, dialect: str) -> Refused | None:
    if not isinstance(node, exp.Table) or isinstance(node.this, exp.Func) or node.args.get("rows_from"):
        return None
    if not isinstance(node.this, exp.Identifier):
        return Refused(
            f"{write(node.this, dialect)} is a file or stage, not a table of the database.", "file"
        )
    name = ".".join(part.name for part in node.parts if part.name)
    bare = node.name.lower()
    if dialect == "duckdb" and _FILE.search(name):
        return Refused(f"{name!r} names a file or an address, not a table of the database.", "file")
    if dialect == "sqlite" and bare.startswith("pragma_") and bare not in words("sqlite"):
        return Refused(f"{name} changes or reveals settings; only inspection pragmas may be read.", "table")
    if dialect == "sqlite" and bare in FILE_TABLES:
        return Refused(f"{name} reads files, not data to be asked about.", "table")
    path = [part.lower() for part in name.split(".")]  # BigQuery's `p.d.INFORMATION_SCHEMA.JOBS` is one name
    if is_system(path, dialect) and not is_open(path, dialect) and not is_cte(node):
        reason = f"{name} is the engine's own and describes no data; of such, only the catalog may be read."
        return Refused(reason, "table")
    return None


def is_cte(table: exp.Table) -> bool:
    """True if the name is that of a common table expression in reach, which hides any other table's."""
    if table.args.get("db"):
        return False
    node: exp.Expr | None = table
    while node is not None and node.parent is not None:
        child, node = node, node.parent
        recursive = isinstance(node, exp.With) and node.args.get("recursive")
        clause = node if isinstance(node, exp.With) else node.args.get("with_")
        if clause is None or child is clause:
            continue
        before = clause.expressions if clause is not node or recursive else clause.expressions[: child.index]
        if any(cte.alias.lower() == table.name.lower() for cte in before):
            return True
    return False


def _field(node: exp.Expr, dialect: str) -> Refused | None:
    """A name behind a dot: a sequence's next value, and on PostgreSQL perhaps the call of a function."""
    last = node.expression if isinstance(node, exp.Dot) else node.this
    if not isinstance(last, exp.Identifier) or (isinstance(node, exp.Column) and not node.args.get("table")):
        return None
    name = last.name.lower()
    if dialect in ("snowflake", "mysql") and name == "nextval":  # MariaDB has sequences too
        return Refused(f"{write(node, dialect)} advances a sequence.", "sequence")
    if dialect == "postgres" and FIELD_CALLS.fullmatch(name):
        return _refuse_function(last.name)
    return None


def _sample(node: exp.Expr, dialect: str) -> Refused | None:
    """PostgreSQL's TABLESAMPLE calls a function by the method's name."""
    method = node.args.get("method")
    if dialect != "postgres" or method is None or method.name.upper() in ("SYSTEM", "BERNOULLI"):
        return None
    return _refuse_function(method.name.lower())


def _table_from_rows(node: exp.Expr, dialect: str) -> Refused | None:
    if isinstance(node.this, exp.Func | exp.Query | exp.Dot | exp.Values):
        return None
    return Refused(f"TABLE({write(node.this, dialect)}) names its table indirectly; write the name.", "table")


def _assignment(node: exp.Expr, dialect: str) -> Refused | None:
    if dialect == "mysql":
        return Refused(f"{write(node, dialect)} assigns a session variable.", "write")
    return None


def _operator(node: exp.Expr, dialect: str) -> Refused | None:
    schema, _, _ = str(node.args.get("operator") or "").rpartition(".")
    if schema and schema.lower() != "pg_catalog":
        return Refused(f"{write(node, dialect)} calls an operator that a user defined.", "function")
    return None


def _setting(node: exp.Expr, dialect: str) -> Refused | None:
    if dialect == "mysql" and node.name.lower() not in MYSQL_SETTINGS:
        return Refused(f"{write(node, dialect)} is a setting that describes no data.", "statement")
    return None


def _show(node: exp.Expr, dialect: str) -> Refused | None:
    path = [node.text("db").lower(), node.text("target").lower()]
    if dialect == "mysql" and is_system(path, dialect) and not is_open(path, dialect):
        return Refused(f"{'.'.join(filter(None, path))} is the engine's own and describes no data.", "table")
    if node.name.upper() in SHOWN.get(dialect, ()):
        return None
    return Refused(f"SHOW {node.name.upper()} does not describe data.", "statement")


def _described(node: exp.Expr, dialect: str) -> Refused | None:
    """DESCRIBE and SUMMARIZE."""
    if isinstance(node.this, exp.Condition):  # a text, however it is quoted
        return Refused(f"{write(node.this, dialect)} names a file, not a table of the database.", "file")
    kind = str(node.args.get("kind") or "").upper()
    return None if kind in DESCRIBED else Refused(f"DESCRIBE {kind} does not describe data.", "statement")


_RULES: dict[str, Rule] = {
    "Table": _table,
    "Column": _field,
    "Dot": _field,
    "TableSample": _sample,
    "TableFromRows": _table_from_rows,
    "PropertyEQ": _assignment,
    "Operator": _operator,
    "SessionParameter": _setting,
    "Show": _show,
    "Describe": _described,
    "Summarize": _described,
}
