"""What is sent to Snowflake: one query that the guard's rules pass, over the places that the URL names.

Snowflake has no session that cannot write and no free answer to what a text would do. So each text is held
to the guard's rules once more when it is sent, and the guard knows nothing of the places.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quorum.tools.databases.server import Refusal
from quorum.tools.databases.snowflake.errors import REFUSED
from quorum.tools.guard.rules import judge
from quorum.tools.guard.text import NotPure, scan
from quorum.tools.sql import SyntaxProblem, parse_statements
from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    from sqlglot import exp

    from quorum.tools.databases.snowflake.url import Target

TELLING = ("get_ddl", "identifier", "result_scan", "last_query_id", "getnextval")
"""Functions that tell of what is not named in the text, or change it."""


def check(sql: str, target: Target) -> None:
    """See to it that a text is one query over what the URL names; takes some milliseconds.

    Raises:
        Refusal: It is something else, or cannot be read.
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        scanned = scan(sql, "snowflake")
    except NotPure as refused:
        code = REFUSED if refused.verdict.rule != "syntax" else "001003"
        raise Refusal(code, str(refused)) from None
    if scanned.sql != sql:
        raise Refusal(REFUSED, "Comments are not sent.")
    try:
        trees = parse_statements(sql, "snowflake", scanned.tokens)
    except SyntaxProblem as problem:
        place = f" error line {problem.line} at position {(problem.column or 1) - 1}" if problem.line else ""
        raise Refusal("001003", f"SQL compilation error:{place}\n{problem.message}") from None
    except SqlglotError as problem:
        raise Refusal("001003", str(problem).splitlines()[0]) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise Refusal(REFUSED, "Only one query is run at a time.")
    for one, two in itertools.pairwise(scanned.tokens):
        if one.text == two.text == ".":
            raise Refusal(REFUSED, "A name with two dots leaves out its schema; write it.")
        if two.text == "(" and one.text.lower() in TELLING:
            raise Refusal(REFUSED, f"The function {one.text} is not called.")
    try:
        judge(trees[0], "snowflake", endless=False)
    except NotPure as refused:
        raise Refusal(REFUSED, str(refused)) from None
    for table in trees[0].find_all(exp.Table):
        for reason in _out_of_scope(table, target):
            raise Refusal(REFUSED, reason)


def _out_of_scope(table: exp.Table, target: Target) -> Iterator[str]:
    """Say that the place of a table was not named; names without one are looked up in such places alone."""
    from sqlglot import exp

    parts = table.parts
    if not all(isinstance(part, exp.Identifier) for part in parts) or len(parts) > 3:
        yield f"{write(table, 'snowflake')[:100]} is no table of the database."
        return
    names = [part.name if part.args.get("quoted") else part.name.upper() for part in parts]
    if len(names) > 1:
        database, schema = names[-3] if len(names) == 3 else target.current.database, names[-2]
        if not target.allows(database, schema):
            yield f"{database}.{schema} is not among what may be read: {target.place}."
