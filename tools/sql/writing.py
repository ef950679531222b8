"""The one place that writes SQL from trees.

sqlglot's writers are made to translate: even within a dialect they rewrite types, paths into documents and
clauses, and some of that reads as another query. They are used except for what they change without need, and
a whole query that is written is read again: a text that does not read as its tree is never used.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

from quorum.tools.sql import SyntaxProblem, dialect_name, parse_statements, sqlglot_dialect, without_hints

if TYPE_CHECKING:
    from sqlglot import exp

_CASE_COUNTS = ("bigquery", "mysql", "doris", "singlestore", "starrocks")
"""Dialects where the case of tables' names counts."""
_FOLD_UP = ("snowflake", "oracle", "exasol")


def write(
    tree: exp.Expr, dialect: str, *, pretty: bool = False, comments: bool = False, upper: bool = False
) -> str:
    """Return a tree, or a part of one, as SQL of its dialect.

    Args:
        pretty: Laid out for people, over several lines.
        comments: The author's comments stay; they are dropped else.
        upper: Names of functions in capitals, else as they were written.
    """
    from sqlglot import ErrorLevel

    writer = sqlglot_dialect(dialect).generator(
        pretty=pretty,
        comments=comments,
        normalize_functions="upper" if upper else False,
        unsupported_level=ErrorLevel.IGNORE,
    )
    writer._dispatch = _dispatch(dialect)  # compiled, it has no subclasses
    return writer.generate(tree)


def written(trees: Sequence[exp.Expr], dialect: str, **options: bool) -> str:
    """Return whole statements as one text, with the options of ``write``, that reads as these very trees.

    Raises:
        SyntaxProblem: There is no such text: what sqlglot writes reads as something else.
    """
    text = (";\n\n" if options.get("pretty") else ";\n").join(
        write(tree, dialect, **options) for tree in trees
    )
    again = parse_statements(text, dialect)
    if len(again) != len(trees) or not all(map(same, trees, again)):
        raise SyntaxProblem("It cannot be written again so that it means the same.")
    return text


def same(one: exp.Expr, other: exp.Expr) -> bool:
    """True if two trees are equal, names and texts to the letter; ``r'…'`` is only a way to write text."""
    pairs: list[tuple[Any, Any]] = [(one, other)]
    while pairs:
        left, right = map(_content, pairs.pop())
        if isinstance(left, list) and isinstance(right, list):
            if len(left) != len(right):
                return False
            pairs += zip(left, right, strict=True)
        elif left != right:
            return False
    return True


def _content(part: Any) -> Any:
    """Return a node as a list of its kind, its arguments' names and values; anything else as it is."""
    from sqlglot import exp

    if isinstance(part, exp.RawString) or (isinstance(part, exp.Literal) and part.is_string):
        return ["text", part.name]
    if not isinstance(part, exp.Expr):
        return part
    pairs = [(name, part.args[name]) for name in sorted(part.args)]
    given = (pair for pair in pairs if pair[1] is not None and pair[1] is not False and pair[1] != [])
    return [part.key, *(each for pair in given for each in pair)]


@cache
def _dispatch(dialect: str) -> dict[Any, Callable[..., str]]:
    """Return the writer of each kind of node: sqlglot's, except where it would change the meaning."""
    from sqlglot import exp

    writer: Any = sqlglot_dialect(dialect).generator()
    rewritten = (exp.Select, exp.Table, exp.CTE, exp.Cast, exp.Pivot)  # to say other dialects' clauses
    as_they_are = {kind: getattr(type(writer), f"{kind.key}_sql") for kind in rewritten}
    own: dict[Any, Callable[..., str]] = {exp.WindowSpec: _window, exp.DataType: _type, exp.Identifier: _name}
    if dialect == "snowflake":
        own[exp.JSONExtract] = _path
    if dialect == "duckdb":
        own[exp.Join] = _join
    if dialect == "mysql":
        own[exp.RegexpLike] = _regexp
    return {**writer._dispatch, **as_they_are, **own}


def _name(writer: Any, node: exp.Expr) -> str:
    """Write a name, in quotes if it was."""
    return str(writer.identifier_sql(node) if node.args.get("quoted") else node.name)


def _type(writer: Any, node: exp.Expr) -> str:
    """Write a type by its own name where sqlglot's reads as another: ``INT``, as INT64 reads as BIGINT."""
    text = str(writer.datatype_sql(node))
    own = getattr(node.this, "name", "")
    usual = writer.TYPE_MAPPING.get(node.this, own)
    read = writer.dialect.tokenizer_class.KEYWORDS
    renamed = own in read and read[own].name == own and read.get(usual) != read[own]
    return own + text.removeprefix(usual) if renamed and text.startswith(usual) else text


def _window(writer: Any, node: exp.Expr) -> str:
    """Write a window's frame; ``ROWS 2 PRECEDING`` stays without an end."""
    text = str(writer.windowspec_sql(node))
    if node.args.get("end") or node.args.get("end_side"):
        return text
    return text.replace(" BETWEEN ", " ", 1).replace(" AND CURRENT ROW", "", 1)


def _regexp(writer: Any, node: exp.Expr) -> str:
    """Write the operator REGEXP, for MariaDB has no function REGEXP_LIKE."""
    return str(writer.function_fallback_sql(node) if node.args.get("flag") else writer.binary(node, "REGEXP"))


def _join(writer: Any, node: exp.Join) -> str:
    """Write DuckDB's comma before ``unnest(…)``, which sqlglot makes a JOIN ON TRUE."""
    from sqlglot import exp
    from sqlglot.generator import Generator

    plain = isinstance(node.this, exp.Unnest) and not any(
        node.args.get(name) for name in ("on", "side", "kind")
    )
    return str(Generator.join_sql(writer, node) if plain else writer.join_sql(node))


def _path(writer: Any, node: exp.Expr) -> str:
    """Write Snowflake's ``column:key."Key"[0]``, not GET_PATH, which reads keys another way."""
    from sqlglot import exp

    if not node.args.get("variant_extract"):
        return str(writer.jsonextract_sql(node))
    text = ""
    for part in node.expression.expressions[1:]:
        if isinstance(part, exp.JSONPathSubscript):
            text += f"[{part.this}]"
        else:
            name = exp.to_identifier(part.name, quoted=bool(part.args.get("quoted")))
            text += f"{'.' if text else ''}{writer.sql(name)}"
    return f"{writer.sql(node, 'this')}:{text}"


@lru_cache(maxsize=256)  # a vote after each batch reads the same SQL again
def normalise(sql: str, dialect: str) -> str:
    """Return one text for queries that differ only in layout, comments, hints, case or needless quotes.

    Votes over SQL text and result caches compare it; equal texts mean equal queries. SQL that cannot
    be read, or not written again, is only freed of surplus white space.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    name = dialect_name(dialect)
    try:
        trees = [without_hints(tree) for tree in parse_statements(sql, name)]
        written(trees, name)
    except SyntaxProblem:
        return " ".join(sql.split()).rstrip("; ")
    for tree in trees:
        _fold_names(tree, name)
    return "; ".join(write(tree, name, upper=True) for tree in trees)


def shape(sql: str, dialect: str) -> str:
    """Return one text for queries that ``normalise`` to the same except literals and column aliases.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    from sqlglot import exp

    name = dialect_name(dialect)
    try:
        trees = parse_statements(normalise(sql, name), name)
    except SyntaxProblem:
        return " ".join(sql.split())
    for tree in trees:
        for node in list(tree.find_all(exp.Literal)):
            node.replace(exp.Placeholder())
        for node in [each for select in tree.find_all(exp.Select) for each in select.expressions]:
            if isinstance(node, exp.Alias):
                node.replace(node.this)
    return "; ".join(write(tree, name) for tree in trees)


def _fold_names(tree: exp.Expr, dialect: str) -> None:
    """Fold unquoted names, and unquote folded ones, in place.

    Table names keep their case on BigQuery and MySQL, where it counts. SQLite keeps its quotes: an
    unknown name in double quotes is text there.
    """
    from sqlglot import exp

    if dialect == "clickhouse":  # case counts everywhere
        return
    fold = str.upper if dialect in _FOLD_UP else str.lower
    words = sqlglot_dialect(dialect).tokenizer_class.KEYWORDS
    for node in tree.find_all(exp.Identifier):
        if dialect in _CASE_COUNTS and not _is_column_name(node):
            continue
        quoted = bool(node.args.get("quoted"))
        name = node.name if quoted and dialect in ("postgres", "sqlite", *_FOLD_UP) else fold(node.name)
        bare = exp.SAFE_IDENTIFIER_RE.match(name) and name.upper() not in words
        node.set("this", name)
        node.set("quoted", quoted and (dialect == "sqlite" or not bare or name != fold(name)))


def _is_column_name(node: exp.Identifier) -> bool:
    from sqlglot import exp

    return isinstance(node.parent, exp.Column | exp.Alias) and node.arg_key in ("this", "alias")


def format_sql(sql: str, dialect: str) -> str:
    """Return ``sql`` laid out for people, with comments; unchanged if it cannot be read, or not faithfully.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    name = dialect_name(dialect)
    try:
        return written(parse_statements(sql, name), name, pretty=True, comments=True)
    except SyntaxProblem:
        return sql.strip()
