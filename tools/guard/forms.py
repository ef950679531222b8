"""Statements that are no plain query but still only read: EXPLAIN, SHOW, DESCRIBE, PRAGMA, scripts."""

from __future__ import annotations

import re

from sqlglot import exp

from quorum.tools.guard.rules import judge
from quorum.tools.guard.text import Passed, Refused
from quorum.tools.guard.vocabulary import INSPECTION_PRAGMAS, SETTINGS, SHOWN

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
_SHOW = re.compile(r"(?P<what>[\w ]+?)(?: ;)*", re.IGNORECASE)


def pragma(text: str, dialect: str) -> Passed | Refused:
    """Judge a PRAGMA statement, given as its tokens with one space between them."""
    known = INSPECTION_PRAGMAS.get(dialect, frozenset())
    found = _PRAGMA.fullmatch(text)
    if not found or found["name"].lower() not in known:
        names = ", ".join(sorted(known)) or f"{dialect} has none"
        return Refused(f"Only pragmas that inspect may run, without an assignment ({names}).", "statement")
    schema = f"{found['schema']}." if found["schema"] else ""
    argument = f"({found['argument']})" if found["argument"] else ""
    return Passed(f"PRAGMA {schema}{found['name']}{argument}", dialect, kind="inspection")


def show(text: str, dialect: str) -> Passed | Refused | None:
    """Judge what follows SHOW where it names a setting or a list; None if it may be a table."""
    found = _SHOW.fullmatch(text)
    if not found:
        return Refused("SHOW may name one thing, without any clause.", "statement")
    what = found["what"]
    if dialect == "duckdb" and what.upper() not in SHOWN["duckdb"]:
        return None
    if dialect == "postgres" and what.lower() not in SETTINGS:
        return Refused(f"SHOW {what} is a setting that describes no data.", "statement")
    return Passed(f"SHOW {what}", dialect, kind="inspection")


def split_explain(text: str, dialect: str) -> tuple[str, str] | Refused | None:
    """Split what follows EXPLAIN into its options and the query; None on MySQL if it names a table."""
    pattern = _EXPLAIN.get(dialect)
    if pattern is None:
        return Refused(f"{dialect} has no EXPLAIN; ask for the query itself.", "statement")
    found = pattern.match(text)
    options, query = (found.group(), text[found.end() :]) if found else ("", text)
    if _QUERY.match(query):
        return f"EXPLAIN {options}".strip(), query
    if dialect == "mysql" and not options:
        return None
    return Refused("EXPLAIN may only explain a query.", "statement")


def script(trees: list[exp.Expr], dialect: str) -> frozenset[str] | Refused:
    """Check every statement's form; the names of the functions that the script defines.

    All but the last must be BigQuery's DECLARE, SET of a variable, or a SQL-language TEMP FUNCTION;
    the last must be a query or an inspection.
    """
    names: set[str] = set()
    for tree in trees[:-1]:
        problem = _preparation(tree, dialect, names)
        if problem:
            return problem
    return _last(trees[-1]) or frozenset(names)


def _preparation(tree: exp.Expr, dialect: str, names: set[str]) -> Refused | None:
    if isinstance(tree, exp.Declare):
        parts = [item.args.get("default") for item in tree.expressions]
    elif isinstance(tree, exp.Set) and len(tree.expressions) == 1 and _sets_variable(tree.expressions[0]):
        parts = [tree.expressions[0].this.expression]
    elif isinstance(tree, exp.Create) and _temporary_sql_function(tree):
        parts = [tree.expression]
        names.add(tree.this.this.name.lower())
    else:
        return Refused(
            f"A script may prepare its query with DECLARE, SET of a variable and SQL TEMP FUNCTIONs, not with"
            f" {tree.key.upper()}.",
            "script",
        )
    local_functions = frozenset(names)
    problems = (judge(part, dialect, local_functions) for part in parts if isinstance(part, exp.Expr))
    return next(filter(None, problems), None)


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


def _last(tree: exp.Expr) -> Refused | None:
    if isinstance(tree, exp.Query | exp.Values | exp.Pivot | exp.Summarize | exp.Describe | exp.Show):
        return None
    what = tree.name.upper() if isinstance(tree, exp.Command | exp.Column | exp.Alias) else tree.key.upper()
    return Refused(f"{what} is not a query; only pure reads may run.", "statement")


def is_query(tree: exp.Expr) -> bool:
    """True for what returns rows of data, rather than a description."""
    return isinstance(tree, exp.Query | exp.Values | exp.Pivot)


def variables(statements: list[exp.Expr]) -> list[str]:
    """Names that a script declares; to the lint they are no columns."""
    items = [item.this for tree in statements if isinstance(tree, exp.Declare) for item in tree.expressions]
    return [name.name for names in items for name in (names if isinstance(names, list) else [names])]
