"""The guard: only a pure read reaches a database.

It is an allow-list over sqlglot's tree, the first of four layers (the connectors' hardened sessions,
server-side limits and killable processes do not trust it). SQL is judged by what it is made of: one
statement, nodes that are known to be harmless, functions on the dialect's list, tables that are tables.

What runs is never the text as it came: comments and hints are gone, literals are re-encoded, and no word
reaches the engine that the parser may have skipped (see ``quorum.tools.guard.output``).

Judging is bounded itself: counts refuse what is known to take the parser long, and all else is judged in a
process that ends at its limits of time and memory (see ``quorum.tools.guard.process``).

EXPLAIN ANALYZE executes the query that it explains; of a pure read that is a pure read, and it passes.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.guard import process
from quorum.tools.guard.text import Allowed, Passed, Rejected
from quorum.tools.query import QueryError
from quorum.tools.sql import dialect_name

if TYPE_CHECKING:
    from quorum.tools.lint import Linter

VERDICTS = 256
"""Verdicts that one linter remembers."""

__all__ = ["Passed", "Rejected", "allowed", "check", "judge_list", "prepare"]


def check(sql: str, dialect: str) -> Passed | Rejected:
    """Judge ``sql``: a pure read passes, anything else is refused with the reason.

    Judging takes at most ``quorum.tools.guard.process.SECONDS`` of work, whatever the text. In an event
    loop call ``allowed``.

    Args:
        sql: One statement, or on BigQuery a script of DECLARE, SET and SQL-language TEMP FUNCTIONs
            that ends in one query. EXPLAIN of a query and the dialect's inspection statements pass.
        dialect: One of ``quorum.tools.sql.DIALECTS`` or ``STRICT_DIALECTS``.

    Raises:
        ConfigurationError: The dialect is unknown.
        GuardFailed: The guard's process cannot be started.
    """
    found = process.PROCESS.ask(sql, dialect_name(dialect))
    assert not isinstance(found, QueryError)  # the lint's
    return found


async def allowed(sql: str, linter: Linter) -> Allowed | QueryError:
    """Return the text that may run by guard and lint, or why none may; the event loop goes on meanwhile.

    A verdict depends on text and catalog alone, so the linter remembers the latest. A verdict that judging
    took too long is not remembered: it depends on the machine's load.

    Raises:
        GuardFailed: The guard's process cannot be started.
    """
    if known := linter.verdicts.get(sql):
        return known
    from asyncio import get_running_loop  # the guard's process needs none of it

    return await get_running_loop().run_in_executor(process.THREAD, _allowed, sql, linter)


def prepare(linter: Linter) -> None:
    """Have the guard's process learn the catalog in the background, before the first text is judged."""
    process.THREAD.submit(process.PROCESS.prepare, linter)


def _allowed(sql: str, linter: Linter) -> Allowed | QueryError:
    if known := linter.verdicts.get(sql):  # another caller asked while this one waited
        return known
    found = process.PROCESS.ask(sql, dialect_name(linter.catalog.dialect), linter)
    if isinstance(found, Passed):
        verdict: Allowed | QueryError = Allowed(found.sql, found.masks)
    else:
        verdict = found.error() if isinstance(found, Rejected) else found
    if found is not process.TOO_MUCH:
        linter.verdicts[sql] = verdict
        if len(linter.verdicts) > VERDICTS:
            del linter.verdicts[next(iter(linter.verdicts))]
    return verdict


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
