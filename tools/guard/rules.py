"""The rules on the tree: every node must be known to be harmless, or the query is refused.

Strict dialects are those of engines whose session does not forbid to write. There a relation is a name with
its schema (the lint then wants it in the catalog), never a function, a file or a place on another server; a
function is one of the engine's that is known to be pure; clauses that set something are refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from functools import cache
from typing import NoReturn

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from quorum.tools.guard.limits import (
    check_hierarchy,
    check_recursion,
    check_series,
    check_size,
    makes_rows,
)
from quorum.tools.guard.text import NotPure
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
from quorum.tools.sql import STRICT_DIALECTS, sqlglot_dialect
from quorum.tools.sql.writing import write

Rule = Callable[["exp.Expr", str], None]
"""Raises ``NotPure`` over a node that is not known to be harmless."""

_FILE = re.compile(
    r"^[/~\\]|[:|*?#]|\.(csv|tsv|txt|parquet|parq|json|jsonl|ndjson|geojson|arrow|feather|ipc|avro|xlsx?"
    r"|db|duckdb|ddb|sqlite3?|gz|zst|bz2|zip|shp|gpkg|fgb|pbf|kml|gpx|vortex|lance)$",
    re.IGNORECASE,
)

_STRICT_FIRST = ("SELECT", "WITH", "(")
_ALTERNATIVE = re.compile(r"(?<!\\)(?:\\\\)*\\['\"`]")
_PLAIN = re.compile(r"[\w$#]+")
_PLACE = re.compile(r"[/\\:]")
_CLAUSES = {
    "Select": "with_ expressions distinct from_ laterals joins connect pivots prewhere where group having"
    " qualify windows distribute sort cluster order limit offset sample",
    "SetOperation": "with_ this expression distinct by_name side kind on order limit offset laterals joins",
    "Subquery": "with_ this alias laterals joins pivots order limit offset sample where",
    "Table": "this alias db catalog laterals joins pivots version when only sample",
    "With": "expressions recursive",
    "Limit": "this expression offset limit_options expressions",
}
"""What a query may be made of, by sqlglot's names; settings, formats, locks and hints are not among them."""
_SYSTEM = re.compile(
    r"(?i)system|sys|information_schema|pg_\w+|master|msdb|tempdb|dbc|exa_\w+|performance_schema|mysql"
)


def judge(
    tree: exp.Expr, dialect: str, local_functions: frozenset[str] = frozenset(), *, endless: bool = True
) -> None:
    """Walk the whole tree; the first thing that is not known to be harmless is refused.

    Args:
        local_functions: Lower-case names that the script itself defined.
        endless: Also refuse what makes a query run without end, or make rows without end.

    Raises:
        NotPure: There is such a thing.
    """
    nodes, strict = words("nodes"), dialect in STRICT_DIALECTS
    withs: list[exp.Expr] = []
    connects: list[exp.Expr] = []
    series = False
    for node in tree.walk():
        if strict:
            strict_node(node, dialect)
        name = type(node).__name__
        if isinstance(node, exp.Anonymous | exp.AnonymousAggFunc | exp.ParameterizedAgg):
            _named_function(node, dialect, local_functions)
            check_size(node)
        elif isinstance(node, exp.Func):
            _typed_function(node, dialect)
            check_size(node)
        elif name not in nodes:
            _refuse_node(node)
        elif rule := _RULES.get(name):
            rule(node, dialect)
        if name == "With":
            withs.append(node)
        elif name == "Connect":
            connects.append(node)
        series = series or (isinstance(node, exp.Func | exp.Table | exp.Values) and makes_rows(node))
    if endless:
        check_recursion(withs, dialect)
        check_hierarchy(connects)
        if series:
            check_series(tree)


def _refuse_node(node: exp.Expr) -> NoReturn:
    """Refuse a node that no pure read is made of."""
    if isinstance(node, exp.Lock):
        raise NotPure("FOR UPDATE and FOR SHARE lock rows; only pure reads may run.", "lock")
    if isinstance(node, exp.Into):
        raise NotPure("SELECT … INTO stores its result; only pure reads may run.", "write")
    kind = re.sub(r"(?<=[a-z])(?=[A-Z])", " ", type(node).__name__)
    word = node.name if isinstance(node, exp.Command) else kind
    raise NotPure(f"{word.upper()} is not part of a pure read.", "statement")


def _refuse_function(name: str) -> NoReturn:
    raise NotPure(
        f"The function {name} is not on the list of functions known to have no side effects.", "function"
    )


def _named_function(node: exp.Func, dialect: str, local_functions: frozenset[str]) -> None:
    """Judge a function that the parser has by its name only."""
    identifier = node.this if isinstance(node.this, exp.Identifier) else None
    written = node.name
    name = written.lower()
    if identifier is not None and identifier.quoted and dialect in ("postgres", "snowflake"):
        name = written if dialect == "postgres" else written.swapcase()  # quoted names are exact
    qualifier = _qualifier(node)
    asked, first = FIRST_ARGUMENT.get(name), next(iter(node.expressions), None)
    if asked and not (isinstance(first, exp.Literal) and first.name.lower() in asked):
        raise NotPure(f"{written} may only be asked for {', '.join(sorted(asked))}.", "function")
    known = name in function_names(dialect)
    if qualifier is None:
        if "." in name or not (known or name in local_functions):
            _refuse_function(written)
    elif f"{qualifier}.{name}" not in listed(dialect) and not (_is_own(qualifier, dialect) and known):
        _refuse_function(f"{qualifier}.{written}".lstrip("."))


def _typed_function(node: exp.Func, dialect: str) -> None:
    """Judge a function that the parser knows; behind a schema's name the same word is another function."""
    name, qualifier = node.sql_name(), _qualifier(node)
    if type(node).__name__ not in words("typed"):
        _refuse_function(name)
    full = f"{qualifier}.{name}".lower()
    if qualifier and not _is_own(qualifier, dialect) and full not in listed(dialect):
        _refuse_function(f"{qualifier}.{name}")


def _is_own(qualifier: str, dialect: str) -> bool:
    return qualifier in NAMESPACES.get(dialect, ()) or dialect == "duckdb"  # x.f() is f(x) in DuckDB


def _qualifier(node: exp.Func) -> str | None:
    """Return what is before the function's name: None for nothing, "" for a value (DuckDB's x.f())."""
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


def _table(node: exp.Expr, dialect: str) -> None:
    if not isinstance(node, exp.Table) or isinstance(node.this, exp.Func) or node.args.get("rows_from"):
        return
    if not isinstance(node.this, exp.Identifier):
        raise NotPure(f"{write(node.this, dialect)} is a file or stage, not a table of the database.", "file")
    name = ".".join(part.name for part in node.parts if part.name)
    bare = node.name.lower()
    if dialect == "duckdb" and _FILE.search(name):
        raise NotPure(f"{name!r} names a file or an address, not a table of the database.", "file")
    if dialect == "sqlite" and bare.startswith("pragma_") and bare not in words("sqlite"):
        raise NotPure(f"{name} changes or reveals settings; only inspection pragmas may be read.", "table")
    if dialect == "sqlite" and bare in FILE_TABLES:
        raise NotPure(f"{name} reads files, not data to be asked about.", "table")
    path = [part.lower() for part in name.split(".")]  # BigQuery's `p.d.INFORMATION_SCHEMA.JOBS` is one name
    if is_system(path, dialect) and not is_open(path, dialect) and not is_cte(node):
        reason = f"{name} is the engine's own and describes no data; of such, only the catalog may be read."
        raise NotPure(reason, "table")


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


def _field(node: exp.Expr, dialect: str) -> None:
    """A name behind a dot: a sequence's next value, and on PostgreSQL perhaps the call of a function."""
    last = node.expression if isinstance(node, exp.Dot) else node.this
    if not isinstance(last, exp.Identifier) or (isinstance(node, exp.Column) and not node.args.get("table")):
        return
    name = last.name.lower()
    if dialect in ("snowflake", "mysql") and name == "nextval":  # MariaDB has sequences too
        raise NotPure(f"{write(node, dialect)} advances a sequence.", "sequence")
    if dialect == "postgres" and FIELD_CALLS.fullmatch(name):
        _refuse_function(last.name)


def _sample(node: exp.Expr, dialect: str) -> None:
    """PostgreSQL's TABLESAMPLE calls a function by the method's name."""
    method = node.args.get("method")
    if dialect == "postgres" and method is not None and method.name.upper() not in ("SYSTEM", "BERNOULLI"):
        _refuse_function(method.name.lower())


def _table_from_rows(node: exp.Expr, dialect: str) -> None:
    if not isinstance(node.this, exp.Func | exp.Query | exp.Dot | exp.Values):
        raise NotPure(
            f"TABLE({write(node.this, dialect)}) names its table indirectly; write the name.", "table"
        )


def _assignment(node: exp.Expr, dialect: str) -> None:
    if dialect == "mysql":
        raise NotPure(f"{write(node, dialect)} assigns a session variable.", "write")


def _operator(node: exp.Expr, dialect: str) -> None:
    schema, _, _ = str(node.args.get("operator") or "").rpartition(".")
    if schema and schema.lower() != "pg_catalog":
        raise NotPure(f"{write(node, dialect)} calls an operator that a user defined.", "function")


def _setting(node: exp.Expr, dialect: str) -> None:
    if dialect == "mysql" and node.name.lower() not in MYSQL_SETTINGS:
        raise NotPure(f"{write(node, dialect)} is a setting that describes no data.", "statement")


def _show(node: exp.Expr, dialect: str) -> None:
    path = [node.text("db").lower(), node.text("target").lower()]
    if dialect == "mysql" and is_system(path, dialect) and not is_open(path, dialect):
        raise NotPure(f"{'.'.join(filter(None, path))} is the engine's own and describes no data.", "table")
    if node.name.upper() not in SHOWN.get(dialect, ()):
        raise NotPure(f"SHOW {node.name.upper()} does not describe data.", "statement")


def _described(node: exp.Expr, dialect: str) -> None:
    """DESCRIBE and SUMMARIZE."""
    if isinstance(node.this, exp.Condition):  # a text, however it is quoted
        raise NotPure(f"{write(node.this, dialect)} names a file, not a table of the database.", "file")
    kind = str(node.args.get("kind") or "").upper()
    if kind not in DESCRIBED:
        raise NotPure(f"DESCRIBE {kind} does not describe data.", "statement")


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


def strict_text(sql: str, tokens: Sequence[Token], dialect: str) -> None:
    """Refuse a text, free of comments, that an engine might read otherwise than the parser."""
    first = tokens[0]
    if first.text.upper() not in _STRICT_FIRST:
        reason = f"{first.text.upper()} is not a query; on {dialect} only SELECT and WITH are asked."
        raise NotPure(reason, "statement", first)
    if _ALTERNATIVE.search(sql):
        reason = "A backslash stands before a quote: engines disagree on whether the text ends there."
        raise NotPure(reason, "characters")
    functions, own = _functions(dialect), _own(dialect)
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        name, quoted = token.text.upper(), token.token_type.name == "IDENTIFIER"
        if following.text != "(" or name not in functions or _begins_clause(name, before):
            continue
        if quoted or (name not in own and name.lower() not in listed(dialect)):
            what = f"known to be one of {dialect}'s own without side effects"
            raise NotPure(f"The function {token.text} is not {what}.", "function", token)


def _begins_clause(name: str, before: Token | None) -> bool:
    """True for a word that sqlglot has as a function, but that is CROSS APPLY's, or is inside JSON_TABLE."""
    earlier = before.text.upper() if before is not None else ""
    return (name == "APPLY" and earlier in ("CROSS", "OUTER")) or (
        name == "COLUMNS" and bool(before) and earlier != ","
    )


@cache
def _functions(dialect: str) -> frozenset[str]:
    """The functions that sqlglot reads as more than a name with arguments."""
    parser = sqlglot_dialect(dialect).parser_class
    return frozenset(parser.FUNCTIONS) | frozenset(parser.FUNCTION_PARSERS)


@cache
def _own(dialect: str) -> frozenset[str]:
    """Those that sqlglot reads so in this dialect but not in all, whether engines have them or not."""
    return _functions(dialect) - _functions("")


def strict_node(node: exp.Expr, dialect: str) -> None:
    """Refuse a node that is not known in a strict dialect, or for what hangs on it."""
    kind = "SetOperation" if isinstance(node, exp.SetOperation) else type(node).__name__
    if kind in words("strict_nodes") or (kind == "Pivot" and dialect == "oracle"):
        raise NotPure(f"{write(node, dialect)} cannot be judged on {dialect}; write it without.", "statement")
    known = _CLAUSES.get(kind)
    if known and (clause := next((k for k, v in node.args.items() if v and k not in known.split()), "")):
        raise NotPure(f"{clause.strip('_').upper()} is not part of a plain query on {dialect}.", "clause")
    if isinstance(node, exp.Table):
        _relation(node, dialect)
    elif isinstance(node, exp.Anonymous) and isinstance(node.this, exp.Identifier) and node.this.quoted:
        raise NotPure(f"The name of the function {node.name} is quoted: it may be a user's.", "function")
    elif isinstance(node, exp.Fetch) and not isinstance(node.args.get("count"), exp.Literal):
        raise NotPure("FETCH takes a number.", "clause")
    elif isinstance(node, exp.In) and isinstance(node.args.get("field"), exp.Column | exp.Dot):
        raise NotPure(
            f"{write(node, dialect)} may read a table that it does not say so of; use a query.", "table"
        )
    elif isinstance(node, exp.Identifier) and not node.quoted:
        if not _PLAIN.fullmatch(node.name):
            raise NotPure(f"{node.name} is no plain name.", "table")
        if dialect == "tsql" and node.name.lower() in words("tsql_statements"):
            reason = f"{node.name.upper()} begins a statement of its own; only one query may run."
            raise NotPure(reason, "statements")
    elif dialect == "oracle" and (
        isinstance(node, exp.Dot) or (isinstance(node, exp.Column) and node.args.get("db"))
    ):
        raise NotPure(
            f"{write(node, dialect)} may call a function; write a column as alias.column.", "function"
        )
    elif isinstance(node, exp.Column) and node.name.lower() in ("nextval", "currval"):
        raise NotPure(f"{write(node, dialect)} advances a sequence.", "sequence")


def _relation(node: exp.Table, dialect: str) -> None:
    """A relation's own name; a function's is judged by its own rule."""
    if not isinstance(node.this, exp.Identifier):
        return
    parts = [node.args.get("catalog"), node.args.get("db"), node.this]
    names = [part.name if isinstance(part, exp.Identifier) else "" for part in parts if part is not None]
    if not all(names):
        raise NotPure(f"{write(node, dialect)} leaves out the schema; name it.", "table")
    if any(map(_PLACE.search, names)):
        raise NotPure(f"{'.'.join(names)} names a file or a place, not a table of the database.", "file")
    if any(map(_SYSTEM.fullmatch, names[:-1])) or re.match(r"(?i)g?v_?\$", names[-1]):
        raise NotPure(f"{'.'.join(names)} is the engine's own and describes no data.", "table")
