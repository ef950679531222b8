"""The verdict on a text, in this process: ``quorum.tools.guard.check`` asks another for it.

Beside queries some statements pass that only read: EXPLAIN, SHOW, DESCRIBE, PRAGMA, BigQuery's scripts.
"""

from __future__ import annotations

import re

from sqlglot import exp
from sqlglot.errors import TokenError

from quorum.tools.garbage import own_garbage
from quorum.tools.guard.output import rebuild, render
from quorum.tools.guard.rules import judge, strict_text
from quorum.tools.guard.text import Passed, Refused, Scanned, is_command, plain, scan
from quorum.tools.guard.vocabulary import INSPECTION_PRAGMAS, SETTINGS, SHOWN, words
from quorum.tools.sql import (
    STRICT_DIALECTS,
    SyntaxProblem,
    TooComplex,
    dialect_name,
    parse_statements,
    readable,
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
_SHOW = re.compile(r"(?P<what>[\w ]+?)(?: ;)*", re.IGNORECASE)


def verdict_on(sql: str, dialect: str) -> Passed | Refused:
    """Return the verdict of ``quorum.tools.guard.check``, with the tree; its time is bounded by counts only.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    dialect = dialect_name(dialect)
    with own_garbage():
        scanned = scan(sql, dialect)
        if isinstance(scanned, Refused):
            return scanned
        try:
            if dialect in STRICT_DIALECTS:
                special: Passed | Refused | None = strict_text(scanned.sql, scanned.tokens, dialect)
            else:
                special = _inspection(scanned, dialect)
            return special or _statements(scanned, dialect)
        except TooComplex as problem:
            reason = f"The SQL cannot be judged: {problem.message}"
            return Refused(reason, "too_complex", problem.line, problem.column)
        except SyntaxProblem as problem:
            word = scanned.tokens[0].text.upper()
            if word in words("writes"):
                return Refused(f"{word} is not a query; only pure reads may run.", "statement")
            reason = f"The SQL cannot be read as {dialect}: {problem.message}"
            return Refused(reason, "syntax", problem.line, problem.column)
        except TokenError:  # in rebuilt text: sqlglot forgets escapes in some texts
            reason = "The SQL holds a text that cannot be written faithfully; write it simpler."
            return Refused(reason, "rendering")
        except RecursionError:
            return Refused("The SQL nests too deeply to be judged.", "nesting")
        except (TypeError, ValueError, AttributeError, LookupError):  # a form that the parser half knows
            return Refused(f"The SQL holds a form of {dialect} that cannot be judged.", "syntax")


def _statements(scanned: Scanned, dialect: str) -> Passed | Refused:
    """Judge a query, a DESCRIBE or MySQL's and Snowflake's SHOW, or a script."""
    trees = [without_hints(tree) for tree in parse_statements(scanned.sql, dialect, scanned.tokens)]
    if not trees:
        return Refused("The SQL holds no statement.", "empty")
    if len(trees) > 1 and dialect != "bigquery":
        return Refused(f"There are {len(trees)} statements; only one may run at a time.", "statements")
    *before, last = trees
    functions: set[str] = set()
    for tree in before:
        if problem := _preparation(tree, dialect, functions):
            return problem
    if not isinstance(last, exp.Query | exp.Values | exp.Pivot | exp.Summarize | exp.Describe | exp.Show):
        named = isinstance(last, exp.Command | exp.Column | exp.Alias)
        what = last.name.upper() if named else last.key.upper()
        return Refused(f"{what} is not a query; only pure reads may run.", "statement")
    if problem := judge(last, dialect, frozenset(functions)):
        return problem
    text: str | Refused | None = rebuild(scanned.sql, scanned.tokens, trees, dialect)
    if text is None and dialect == "mysql" and readable(scanned.tokens, dialect) != scanned.tokens:
        return Refused("ON EMPTY and ON ERROR cannot be rendered; write the rest simpler.", "rendering")
    text = text or render(trees, dialect)
    if isinstance(text, Refused):
        return text
    declared = [item.this for tree in before if isinstance(tree, exp.Declare) for item in tree.expressions]
    last.meta["variables"] = [  # to the lint they are no columns
        name.name for names in declared for name in (names if isinstance(names, list) else [names])
    ]
    kind = "query" if isinstance(last, exp.Query | exp.Values | exp.Pivot) else "inspection"
    return Passed(text, dialect, last, kind, tuple(before))


def _preparation(tree: exp.Expr, dialect: str, names: set[str]) -> Refused | None:
    """Judge a statement before the query: DECLARE, SET of a variable or a SQL-language TEMP FUNCTION.

    Args:
        names: Lower-case names of the functions that the script defines; a TEMP FUNCTION is added.
    """
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


def _inspection(scanned: Scanned, dialect: str) -> Passed | Refused | None:
    """Judge PRAGMA, EXPLAIN, and SHOW where the parser does not read it; None for other statements."""
    first = scanned.tokens[0]
    word = first.text.upper()
    if word == "PRAGMA":
        return _pragma(plain(scanned), dialect)
    explains = dialect == "mysql" and word in ("EXPLAIN", "DESCRIBE", "DESC")
    if not explains and not is_command(scanned.tokens, dialect):
        return None
    rest = scan(scanned.sql[first.end + 1 :], dialect)
    if isinstance(rest, Refused):
        return rest
    return _show(plain(rest), dialect) if word == "SHOW" else _explain(plain(rest), dialect)


def _pragma(text: str, dialect: str) -> Passed | Refused:
    """Judge a PRAGMA statement, given as its tokens with one space between them."""
    known = INSPECTION_PRAGMAS.get(dialect, frozenset())
    found = _PRAGMA.fullmatch(text)
    if not found or found["name"].lower() not in known:
        names = ", ".join(sorted(known)) or f"{dialect} has none"
        return Refused(f"Only pragmas that inspect may run, without an assignment ({names}).", "statement")
    schema = f"{found['schema']}." if found["schema"] else ""
    argument = f"({found['argument']})" if found["argument"] else ""
    return Passed(f"PRAGMA {schema}{found['name']}{argument}", dialect, kind="inspection")


def _show(text: str, dialect: str) -> Passed | Refused:
    """Judge what follows SHOW: a setting or a list; on DuckDB else a table, which is described."""
    found = _SHOW.fullmatch(text)
    if not found:
        return Refused("SHOW may name one thing, without any clause.", "statement")
    what = found["what"]
    if dialect == "duckdb" and what.upper() not in SHOWN["duckdb"]:
        return _statements(_tokenized(f"DESCRIBE {text}", dialect), dialect)  # SHOW also names settings
    if dialect == "postgres" and what.lower() not in SETTINGS:
        return Refused(f"SHOW {what} is a setting that describes no data.", "statement")
    return Passed(f"SHOW {what}", dialect, kind="inspection")


def _explain(text: str, dialect: str) -> Passed | Refused | None:
    """Judge what follows EXPLAIN: its options and a query; None on MySQL if it names a table."""
    pattern = _EXPLAIN.get(dialect)
    if pattern is None:
        return Refused(f"{dialect} has no EXPLAIN; ask for the query itself.", "statement")
    found = pattern.match(text)
    options, query = (found.group(), text[found.end() :]) if found else ("", text)
    if not _QUERY.match(query):
        if dialect == "mysql" and not options:
            return None
        return Refused("EXPLAIN may only explain a query.", "statement")
    inner = _statements(_tokenized(query, dialect), dialect)
    if isinstance(inner, Refused):
        return inner
    if inner.kind != "query" or inner.script:
        return Refused("EXPLAIN may only explain a query.", "statement")
    return Passed(f"{f'EXPLAIN {options}'.strip()} {inner.sql}", dialect, inner.tree, "explain")


def _tokenized(sql: str, dialect: str) -> Scanned:
    return Scanned(sql, sqlglot_dialect(dialect).tokenize(sql))
