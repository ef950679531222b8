"""What is sent to Snowflake at all: one query over the places that the URL names.

Snowflake knows no session that cannot write, and no free answer to what a text would do. So this stands
beside the guard and trusts nothing of it: a text begins with SELECT or WITH, is one query to the parser,
reads tables by their own names in places that were named, and calls only functions that are known to have no
effect.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from quorum.tools.databases.server import Refusal
from quorum.tools.databases.snowflake.errors import REFUSED
from quorum.tools.guard.vocabulary import function_names, words
from quorum.tools.sql import SyntaxProblem, parse_statements, sqlglot_dialect
from quorum.tools.sql.writing import write

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

    from quorum.tools.databases.snowflake.url import Target

TELLING = frozenset({"get_ddl", "identifier", "result_scan", "last_query_id", "getnextval"})
"""Functions that tell of what is not named in the text, or change it."""
TABLE_FUNCTIONS = frozenset({"Explode", "Generator", "SplitToTable", "StrtokSplitToTable"})
"""The parser's names of FLATTEN and its like, which read no table."""


def check(sql: str, target: Target) -> None:
    """See to it that a text is one query over what the URL names; takes some milliseconds.

    Raises:
        Refusal: It is something else, or cannot be read.
    """
    from sqlglot import exp
    from sqlglot.errors import SqlglotError

    try:
        tokens = sqlglot_dialect("snowflake").tokenize(sql)
        trees = parse_statements(sql, "snowflake", tokens)
    except SyntaxProblem as problem:
        place = f" error line {problem.line} at position {(problem.column or 1) - 1}" if problem.line else ""
        raise Refusal("001003", f"SQL compilation error:{place}\n{problem.message}") from None
    except SqlglotError as problem:
        raise Refusal("001003", str(problem).splitlines()[0]) from None
    if len(trees) != 1 or not isinstance(trees[0], exp.Query):
        raise Refusal(REFUSED, "Only one query is run at a time.")
    for reason in itertools.chain(_in_words(sql, tokens), _in_tree(trees[0], target)):
        raise Refusal(REFUSED, reason)


def _in_words(sql: str, tokens: list[Token]) -> Iterator[str]:
    """What the parser may take for something else."""
    end = 0
    for token in tokens:
        if sql[end : token.start].strip():
            yield "Comments are not sent."
        end = token.end + 1
        if token.token_type.name == "DARROW":
            yield "->> chains statements; only one is run."
        if token.text.startswith("@") and token.token_type.name not in ("STRING", "IDENTIFIER"):
            yield "Stages are not read."
    if sql[end:].strip():
        yield "Comments are not sent."
    built_in = sqlglot_dialect("snowflake").parser_class.FUNCTIONS
    for name, bracket in itertools.pairwise(tokens):
        quoted = name.token_type.name == "IDENTIFIER" and name.text != name.text.upper()
        if bracket.text == "(" and quoted and name.text.upper() in built_in:
            yield f'"{name.text}" is a function that somebody made.'
    for one, two, three in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if one.text == two.text == ".":
            yield "A name with two dots leaves out its schema; write it."
        if one.text in (".", "!") and three.text == "(" and not _is_outer_join(sql, three):
            yield f"Functions of a schema are not called: {two.text}."


def _is_outer_join(sql: str, bracket: Token) -> bool:
    """Whether it begins Oracle's ``(+)``."""
    return re.match(r"\(\s*\+\s*\)", sql[bracket.start :]) is not None


def _in_tree(tree: exp.Query, target: Target) -> Iterator[str]:
    from sqlglot import exp

    typed, known = words("typed"), function_names("snowflake") - TELLING
    for node in tree.walk():
        if isinstance(node, exp.Table):
            yield from _table(node, target)
        elif isinstance(node, exp.TableFromRows | exp.Lateral):
            if (
                not isinstance(node.this, exp.Query | exp.Values)
                and type(node.this).__name__ not in TABLE_FUNCTIONS
            ):
                yield f"{_said(node)} names no table of its own; write the table's name."
        elif isinstance(node, exp.Func):
            name = node.name if isinstance(node, exp.Anonymous) else type(node).__name__
            if (name.lower() not in known) if isinstance(node, exp.Anonymous) else (name not in typed):
                yield f"The function {name} is not called."
        elif isinstance(node, exp.Lock | exp.Into | exp.DML | exp.DDL | exp.Command):
            if not isinstance(node, exp.Query):
                yield f"{_said(node)} is no part of a query."
        elif isinstance(node, exp.Identifier) and node.name.upper() == "NEXTVAL":
            yield "NEXTVAL advances a sequence."


def _table(node: exp.Table, target: Target) -> Iterator[str]:
    """Whether the place of a table was named; names without one are looked up in such places alone."""
    from sqlglot import exp

    parts = node.parts
    if not all(isinstance(part, exp.Identifier) for part in parts) or len(parts) > 3:
        yield f"{_said(node)} is no table of the database."
        return
    names = [part.name if part.args.get("quoted") else part.name.upper() for part in parts]
    if len(names) > 1:
        database, schema = names[-3] if len(names) == 3 else target.current.database, names[-2]
        if not target.allows(database, schema):
            yield f"{database}.{schema} is not among what may be read: {target.place}."


def _said(node: exp.Expr) -> str:
    return write(node, "snowflake")[:100]
