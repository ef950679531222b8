"""The verdict on a text, in this process: ``quorum.tools.guard.check`` asks another for it."""

from __future__ import annotations

from quorum.tools.garbage import own_garbage
from quorum.tools.guard.forms import is_query, pragma, script, show, split_explain, variables
from quorum.tools.guard.output import rebuild, render
from quorum.tools.guard.rules import judge
from quorum.tools.guard.strict import strict_text
from quorum.tools.guard.text import Passed, Refused, Scanned, is_command, plain, scan
from quorum.tools.guard.vocabulary import words
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


def verdict_on(sql: str, dialect: str) -> Passed | Refused:
    """The verdict of ``quorum.tools.guard.check``, with the tree; its time is bounded by counts only.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    dialect = dialect_name(dialect)
    with own_garbage():
        return _check(sql, dialect)


def _check(sql: str, dialect: str) -> Passed | Refused:
    from sqlglot.errors import TokenError

    scanned = scan(sql, dialect)
    if isinstance(scanned, Refused):
        return scanned
    try:
        return _check_form(scanned, dialect)
    except TooComplex as problem:
        reason = f"The SQL cannot be judged: {problem.message}"
        return Refused(reason, "too_complex", problem.line, problem.column)
    except SyntaxProblem as problem:
        word = scanned.tokens[0].text.upper()
        if word in words("writes"):
            return Refused(f"{word} is not a query; only pure reads may run.", "statement")
        reason = f"The SQL cannot be read as {dialect}: {problem.message}"
        return Refused(reason, "syntax", problem.line, problem.column)
    except TokenError:  # what is written anew: sqlglot forgets escapes in some texts
        return Refused(
            "The SQL holds a text that cannot be written faithfully; write it simpler.", "rendering"
        )
    except RecursionError:
        return Refused("The SQL nests too deeply to be judged.", "nesting")
    except (TypeError, ValueError, AttributeError, LookupError):  # the parser meets a form that it half knows
        return Refused(f"The SQL holds a form of {dialect} that cannot be judged.", "syntax")


def _check_form(scanned: Scanned, dialect: str) -> Passed | Refused:
    if dialect in STRICT_DIALECTS:
        problem = strict_text(scanned.sql, scanned.tokens, dialect)
        return problem or _check_statements(scanned, dialect)
    first = scanned.tokens[0]
    word = first.text.upper()
    if word == "PRAGMA":
        return pragma(plain(scanned), dialect)
    explains = dialect == "mysql" and word in ("EXPLAIN", "DESCRIBE", "DESC")
    if not explains and not is_command(scanned.tokens, dialect):
        return _check_statements(scanned, dialect)
    rest = scan(scanned.sql[first.end + 1 :], dialect)
    if isinstance(rest, Refused):
        return rest
    if word == "SHOW":
        return show(plain(rest), dialect) or _check_form(_described(rest, dialect), dialect)
    split = split_explain(plain(rest), dialect)
    if split is None:
        return _check_statements(scanned, dialect)
    if isinstance(split, Refused):
        return split
    options, query = split
    tokens = sqlglot_dialect(dialect).tokenize(query)
    return _explained(options, _check_statements(Scanned(query, tokens), dialect))


def _described(rest: Scanned, dialect: str) -> Scanned:
    """DESCRIBE of what DuckDB was asked to SHOW: SHOW would also tell the setting of that name."""
    sql = f"DESCRIBE {plain(rest)}"
    return Scanned(sql, sqlglot_dialect(dialect).tokenize(sql))


def _check_statements(scanned: Scanned, dialect: str) -> Passed | Refused:
    parsed = parse_statements(scanned.sql, dialect, scanned.tokens)
    trees = [without_hints(tree) for tree in parsed]
    if not trees:
        return Refused("The SQL holds no statement.", "empty")
    if len(trees) > 1 and dialect != "bigquery":
        return Refused(f"There are {len(trees)} statements; only one may run at a time.", "statements")
    functions = script(trees, dialect)
    if isinstance(functions, Refused):
        return functions
    problem = judge(trees[-1], dialect, functions)
    if problem:
        return problem
    rebuilt = rebuild(scanned.sql, scanned.tokens, trees, dialect)
    if rebuilt is None and readable(scanned.tokens, dialect) != scanned.tokens and dialect == "mysql":
        return Refused("ON EMPTY and ON ERROR cannot be rendered; write the rest simpler.", "rendering")
    text = rebuilt or render(trees, dialect)
    if isinstance(text, Refused):
        return text
    trees[-1].meta["variables"] = variables(trees[:-1])
    kind = "query" if is_query(trees[-1]) else "inspection"
    return Passed(text, dialect, trees[-1], kind, tuple(trees[:-1]))


def _explained(prefix: str, inner: Passed | Refused) -> Passed | Refused:
    if isinstance(inner, Refused):
        return inner
    if inner.kind != "query" or inner.script:
        return Refused("EXPLAIN may only explain a query.", "statement")
    return Passed(f"{prefix} {inner.sql}", inner.dialect, inner.tree, "explain")
