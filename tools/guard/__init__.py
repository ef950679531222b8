"""The guard: only a pure read reaches a database.

It is an allow-list over sqlglot's tree, the first of four layers (the connectors' hardened sessions,
server-side limits and killable processes do not trust it). SQL is judged by what it is made of: one
statement, nodes that are known to be harmless, functions on the dialect's list, tables that are tables.

What runs is never the text as it came: comments and hints are gone, literals are re-encoded, and no word
reaches the engine that the parser may have skipped (see ``quorum.tools.guard.output``).

EXPLAIN ANALYZE executes the query that it explains; of a pure read that is a pure read, and it passes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.garbage import own_garbage
from quorum.tools.guard.forms import is_query, pragma, script, show, split_explain, variables
from quorum.tools.guard.output import rebuild, render
from quorum.tools.guard.rules import judge
from quorum.tools.guard.text import Passed, Refused, Scanned, is_command, plain, scan
from quorum.tools.guard.vocabulary import words
from quorum.tools.sql import (
    SyntaxProblem,
    dialect_name,
    parse_statements,
    readable,
    sqlglot_dialect,
    without_hints,
)

__all__ = ["Passed", "Refused", "check", "judge_list"]


def check(sql: str, dialect: str) -> Passed | Refused:
    """Judge ``sql``: a pure read passes, anything else is refused with the reason.

    Args:
        sql: One statement, or on BigQuery a script of DECLARE, SET and SQL-language TEMP FUNCTIONs
            that ends in one query. EXPLAIN of a query and the dialect's inspection statements pass.
        dialect: One of ``quorum.tools.sql.DIALECTS``.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    dialect = dialect_name(dialect)
    with own_garbage():
        return _check(sql, dialect)


def _check(sql: str, dialect: str) -> Passed | Refused:
    scanned = scan(sql, dialect)
    if isinstance(scanned, Refused):
        return scanned
    try:
        return _check_form(scanned, dialect)
    except SyntaxProblem as problem:
        word = scanned.tokens[0].text.upper()
        if word in words("writes"):
            return Refused(f"{word} is not a query; only pure reads may run.", "statement")
        reason = f"The SQL cannot be read as {dialect}: {problem.message}"
        return Refused(reason, "syntax", problem.line, problem.column)
    except RecursionError:
        return Refused("The SQL nests too deeply to be judged.", "nesting")
    except (TypeError, ValueError, AttributeError, LookupError):  # the parser meets a form that it half knows
        return Refused(f"The SQL holds a form of {dialect} that cannot be judged.", "syntax")


def _check_form(scanned: Scanned, dialect: str) -> Passed | Refused:
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
    text = rebuild(scanned.sql, scanned.tokens, trees, dialect)
    if text is None and readable(scanned.tokens, dialect) != scanned.tokens and dialect == "mysql":
        return Refused("ON EMPTY and ON ERROR cannot be rendered; write the rest simpler.", "rendering")
    text = text or render(trees, dialect, functions)
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


def judge_list(source: Path | Iterable[bytes]) -> Iterator[dict[str, Any]]:
    """Judge JSON lines ``{"dialect": …, "sql": …}``, in order.

    Args:
        source: A file of them, or the lines themselves (a stream that is open for reading bytes).

    Yields:
        One verdict for each line, so that output and input stay aligned:
        ``{"verdict": "pass", "reason": ""}`` or ``{"verdict": "refused", "reason": …, "rule": …}``;
        a line that is blank or no such object, or whose dialect is unknown, is refused by rule ``list``.

    Raises:
        ConfigurationError: The file cannot be read.
    """
    if isinstance(source, Path):
        try:
            source = io.BytesIO(source.read_bytes())
        except OSError as error:
            raise ConfigurationError(f"Cannot read the list {source}: {error}.") from error
    for number, line in enumerate(source, 1):
        try:
            sql, dialect = _list_entry(line)
            verdict = check(sql, dialect)
        except ConfigurationError as error:
            yield {"verdict": "refused", "reason": f"line {number}: {error}", "rule": "list"}
            continue
        if isinstance(verdict, Passed):
            yield {"verdict": "pass", "reason": ""}
        else:
            yield {"verdict": "refused", "reason": verdict.reason, "rule": verdict.rule}


def _list_entry(line: bytes) -> tuple[str, str]:
    hint = 'Each line is a JSON object {"dialect": "sqlite", "sql": "SELECT 1"}.'
    if not line.strip():
        raise ConfigurationError("The line is blank.", hint=hint)
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:  # no JSON, a number too long, brackets without end
        raise ConfigurationError(f"This is not JSON: {error}.", hint=hint) from error
    if not isinstance(entry, dict) or not all(isinstance(entry.get(key), str) for key in ("dialect", "sql")):
        raise ConfigurationError('It lacks "dialect" or "sql" as text.', hint=hint)
    return entry["sql"], entry["dialect"]
