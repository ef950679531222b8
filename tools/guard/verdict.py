"""The verdict on a text, in this process: ``quorum.tools.guard.check`` asks another for it.

Beside queries some statements pass that only read: EXPLAIN, SHOW, DESCRIBE, PRAGMA, BigQuery's scripts.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import TokenError

from quorum.tools.guard.output import rebuild, render
from quorum.tools.guard.rules import judge, strict_text
from quorum.tools.guard.text import NotPure, Passed, Rejected, Scanned, check_memory, is_command, plain, scan
from quorum.tools.guard.vocabulary import INSPECTION_PRAGMAS, SETTINGS, SHOWN, words
from quorum.tools.sql import (
    STRICT_DIALECTS,
    SyntaxProblem,
    TooComplex,
    dialect_name,
    parse_statements,
    sqlglot_dialect,
    without_hints,
)

_OPTION = "ANALYZE|VERBOSE|COSTS|SETTINGS|GENERIC_PLAN|BUFFERS|SERIALIZE|WAL|TIMING|SUMMARY|MEMORY|FORMAT"
_OPTIONS = rf"(?:\( (?:{_OPTION})[\w ,']*\) )?"
_EXPLAIN = {  # what may stand between EXPLAIN and the query
    "sqlite": re.compile(r"(?:QUERY PLAN )?", re.IGNORECASE),
    "duckdb": re.compile(rf"(?:ANALYZE )?{_OPTIONS}", re.IGNORECASE),
    "postgres": re.compile(rf"(?:ANALYZE )?(?:VERBOSE )?{_OPTIONS}", re.IGNORECASE),
    "mysql": re.compile(r"(?:ANALYZE |EXTENDED |PARTITIONS )?(?:FORMAT = \w+ )?", re.IGNORECASE),
    "snowflake": re.compile(r"(?:USING (?:TABULAR|JSON|TEXT) )?", re.IGNORECASE),
}
_QUERY = re.compile(r"\(|SELECT\b|WITH\b|VALUES\b|TABLE\b|FROM\b|PIVOT\b", re.IGNORECASE)
_PRAGMA = re.compile(
    r"PRAGMA (?:(?P<schema>\w+) \. )?(?P<name>\w+)"
    r"(?: \( (?P<argument>[\w.]+|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\"|`[^`]*`|\[[^\]]*\]) \))?(?: ;)*",
    re.IGNORECASE,
)
_UNREADABLE = (SyntaxProblem, TokenError, RecursionError, TypeError, ValueError, AttributeError, LookupError)
"""What is raised where the parser meets a form that it cannot read, or half knows."""
_SHOW = re.compile(r"(?P<what>[\w ]+?)(?: ;)*", re.IGNORECASE)


def verdict_on(sql: str, dialect: str) -> Passed | Rejected:
    """Return the verdict of ``quorum.tools.guard.check``, with the tree; its time is bounded by counts only.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    dialect = dialect_name(dialect)
    first = ""
    try:
        scanned = scan(sql, dialect)
        first, explain = scanned.tokens[0].text.upper(), ""
        if dialect in STRICT_DIALECTS:
            strict_text(scanned.sql, scanned.tokens, dialect)
        else:
            inspected = _inspection(scanned, dialect)
            if isinstance(inspected, Passed):
                return inspected
            explain, scanned = inspected
        trees = [without_hints(tree) for tree in parse_statements(scanned.sql, dialect, scanned.tokens)]
        functions = _functions_defined(trees, dialect)
        *before, last = trees
        judge(last, dialect, functions)
        text = rebuild(scanned.sql, scanned.tokens, trees, dialect) or render(trees, dialect)
        kind = "query" if isinstance(last, exp.Query | exp.Values | exp.Pivot) else "inspection"
        if explain and (before or kind != "query"):
            raise NotPure("EXPLAIN may only explain a query.", "statement")
    except NotPure as refusal:
        return refusal.verdict
    except _UNREADABLE as error:
        return _unreadable(error, first, dialect)
    last.meta["variables"] = _variables(before)
    return Passed(f"{explain} {text}".lstrip(), dialect, last, "explain" if explain else kind, tuple(before))


def _unreadable(error: Exception, word: str, dialect: str) -> Rejected:
    """Return the refusal of a text, by its first ``word``, that the parser does not read or write again."""
    check_memory(error)
    if isinstance(error, TooComplex):
        reason = f"The SQL cannot be judged: {error.message}"
        return Rejected(reason, "too_complex", error.line, error.column)
    if isinstance(error, SyntaxProblem):
        if word in words("writes"):
            return Rejected(f"{word} is not a query; only pure reads may run.", "statement")
        return Rejected(
            f"The SQL cannot be read as {dialect}: {error.message}", "syntax", error.line, error.column
        )
    if isinstance(error, TokenError):  # in rebuilt text: sqlglot forgets escapes in some texts
        reason = "The SQL holds a text that cannot be written faithfully; write it simpler."
        return Rejected(reason, "rendering")
    if isinstance(error, RecursionError):
        return Rejected("The SQL nests too deeply to be judged.", "nesting")
    return Rejected(f"The SQL holds a form of {dialect} that cannot be judged.", "syntax")


def _functions_defined(trees: list[exp.Expr], dialect: str) -> frozenset[str]:
    """Check every statement's form; return the lower-case names of the functions that a script defines.

    All but the last must be BigQuery's DECLARE, SET of a variable, or a SQL-language TEMP FUNCTION;
    the last must be a query or an inspection.
    """
    if not trees:
        raise NotPure("The SQL holds no statement.", "empty")
    if len(trees) > 1 and dialect != "bigquery":
        raise NotPure(f"There are {len(trees)} statements; only one may run at a time.", "statements")
    names: set[str] = set()
    *before, last = trees
    for tree in before:
        if isinstance(tree, exp.Declare):
            parts = [item.args.get("default") for item in tree.expressions]
        elif isinstance(tree, exp.Set) and len(tree.expressions) == 1 and _sets_variable(tree.expressions[0]):
            parts = [tree.expressions[0].this.expression]
        elif isinstance(tree, exp.Create) and _temporary_sql_function(tree):
            parts = [tree.expression]
            names.add(tree.this.this.name.lower())
        else:
            raise NotPure(
                "A script may prepare its query with DECLARE, SET of a variable and SQL TEMP FUNCTIONs, not"
                f" with {tree.key.upper()}.",
                "script",
            )
        for part in parts:
            if isinstance(part, exp.Expr):
                judge(part, dialect, frozenset(names))
    if isinstance(last, exp.Query | exp.Values | exp.Pivot | exp.Summarize | exp.Describe | exp.Show):
        return frozenset(names)
    what = last.name.upper() if isinstance(last, exp.Command | exp.Column | exp.Alias) else last.key.upper()
    raise NotPure(f"{what} is not a query; only pure reads may run.", "statement")


def _sets_variable(item: exp.Expr) -> bool:
    assignment = item.this
    if item.args.get("kind") or not isinstance(assignment, exp.EQ):
        return False
    targets = assignment.this.expressions if isinstance(assignment.this, exp.Tuple) else [assignment.this]
    return all(isinstance(target, exp.Column) and not target.args.get("table") for target in targets)


def _temporary_sql_function(tree: exp.Create) -> bool:
    """True for CREATE TEMP FUNCTION name(…) [RETURNS type] [LANGUAGE sql] AS (expression)."""
    target = tree.this
    properties = tree.args.get("properties")
    kinds = properties.expressions if properties else []
    return (
        tree.kind == "FUNCTION"
        and isinstance(target, exp.UserDefinedFunction)
        and isinstance(target.this, exp.Table | exp.Identifier)
        and not target.this.args.get("db")
        and isinstance(tree.expression, exp.Paren | exp.Subquery)
        and any(isinstance(kind, exp.TemporaryProperty) for kind in kinds)
        and all(
            isinstance(kind, exp.TemporaryProperty | exp.ReturnsProperty)
            or (isinstance(kind, exp.LanguageProperty) and kind.name.upper() == "SQL")
            for kind in kinds
        )
    )


def _variables(statements: list[exp.Expr]) -> list[str]:
    """Return the names that a script declares; to the lint they are no columns."""
    items = [item.this for tree in statements if isinstance(tree, exp.Declare) for item in tree.expressions]
    return [name.name for names in items for name in (names if isinstance(names, list) else [names])]


def _inspection(scanned: Scanned, dialect: str) -> Passed | tuple[str, Scanned]:
    """Judge PRAGMA, and SHOW where the parser does not read it; else return what is to be judged.

    That is EXPLAIN with its options and its query, or "" and the text itself.
    """
    first = scanned.tokens[0]
    word = first.text.upper()
    if word == "PRAGMA":
        return _pragma(plain(scanned), dialect)
    explains = dialect == "mysql" and word in ("EXPLAIN", "DESCRIBE", "DESC")
    if not explains and not is_command(scanned.tokens, dialect):
        return "", scanned
    text = plain(scan(scanned.sql[first.end + 1 :], dialect))
    if word == "SHOW":
        return _show(text, dialect)
    pattern = _EXPLAIN.get(dialect)
    if pattern is None:
        raise NotPure(f"{dialect} has no EXPLAIN; ask for the query itself.", "statement")
    found = pattern.match(text)
    options, query = (found.group(), text[found.end() :]) if found else ("", text)
    if _QUERY.match(query):
        return f"EXPLAIN {options}".strip(), _tokenized(query, dialect)
    if dialect == "mysql" and not options:  # it names a table
        return "", scanned
    raise NotPure("EXPLAIN may only explain a query.", "statement")


def _pragma(text: str, dialect: str) -> Passed:
    """Judge a PRAGMA statement, given as its tokens with one space between them."""
    known = INSPECTION_PRAGMAS.get(dialect, frozenset())
    found = _PRAGMA.fullmatch(text)
    if not found or found["name"].lower() not in known:
        names = ", ".join(sorted(known)) or f"{dialect} has none"
        raise NotPure(f"Only pragmas that inspect may run, without an assignment ({names}).", "statement")
    schema = f"{found['schema']}." if found["schema"] else ""
    argument = f"({found['argument']})" if found["argument"] else ""
    return Passed(f"PRAGMA {schema}{found['name']}{argument}", dialect, kind="inspection")


def _show(text: str, dialect: str) -> Passed | tuple[str, Scanned]:
    """Judge what follows SHOW: a setting or a list; on DuckDB else a table, which is described."""
    found = _SHOW.fullmatch(text)
    if not found:
        raise NotPure("SHOW may name one thing, without any clause.", "statement")
    what = found["what"]
    if dialect == "duckdb" and what.upper() not in SHOWN["duckdb"]:
        return "", _tokenized(f"DESCRIBE {text}", dialect)  # SHOW would also tell the setting of that name
    if dialect == "postgres" and what.lower() not in SETTINGS:
        raise NotPure(f"SHOW {what} is a setting that describes no data.", "statement")
    return Passed(f"SHOW {what}", dialect, kind="inspection")


def _tokenized(sql: str, dialect: str) -> Scanned:
    return Scanned(sql, sqlglot_dialect(dialect).tokenize(sql))
