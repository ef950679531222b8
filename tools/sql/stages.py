"""A query as its stages: each CTE, then the final SELECT, every one of them a query that can be run.

The text is cut by sqlglot's tokens and otherwise left as it is, so that a fault in one stage does not
keep the others from being run.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.tools.sql import SyntaxProblem, dialect_name, sqlglot_dialect

if TYPE_CHECKING:
    from sqlglot.tokenizer_core import Token

LAST = "result"
"""Name of the final SELECT's stage."""


@dataclass(frozen=True)
class Stage:
    """One stage of a query.

    Attributes:
        name: The CTE's name as written, quotes included; ``LAST`` for the final SELECT.
        body: Its own SELECT.
        sql: The stage as a query of its own, over the stages before it.
        span: Start and end of the body in the query's text.
        last: True for the final SELECT.
    """

    name: str
    body: str
    sql: str
    span: tuple[int, int]
    last: bool = False


def split_stages(sql: str, dialect: str) -> tuple[Stage, ...]:
    """Return the stages of ``sql`` in order; only the last one for a query without CTEs.

    Raises:
        SyntaxProblem: It cannot be cut into tokens, or a bracket of the WITH clause never closes.
        ConfigurationError: The dialect is unknown.
    """
    tokens = _tokens(sql, dialect)
    text = sql[: tokens[-1].end + 1] if tokens else ""
    stages, end = [], 0
    for name, start, end in _ctes(text, tokens):
        body = text[start:end].strip()
        stages.append(Stage(name, body, f"{text[: end + 1]}\nSELECT * FROM {name}", (start, end)))
    start = end + 1 if stages else 0
    return (*stages, Stage(LAST, text[start:].strip(), text, (start, len(text)), last=True))


def replace_stage(sql: str, dialect: str, number: int, body: str) -> str:
    """Return ``sql`` with another body in its stage of that number, from 0.

    Raises:
        SyntaxProblem: As ``split_stages``.
        IndexError: There is no such stage.
    """
    stages = split_stages(sql, dialect)
    text, (start, end) = stages[-1].sql, stages[number].span
    return f"{text[:start]}\n{body.strip().rstrip(';').rstrip()}\n{text[end:]}".strip()


def _tokens(sql: str, dialect: str) -> list[Token]:
    """Return the tokens, without semicolons at the end."""
    from sqlglot.errors import SqlglotError
    from sqlglot.tokenizer_core import TokenType

    try:
        tokens = list(sqlglot_dialect(dialect_name(dialect)).tokenize(sql))
    except SqlglotError as error:
        raise SyntaxProblem(f"{str(error).splitlines()[0].rstrip('.')}.") from None
    while tokens and tokens[-1].token_type == TokenType.SEMICOLON:
        tokens.pop()
    return tokens


def _ctes(sql: str, tokens: list[Token]) -> list[tuple[str, int, int]]:
    """Return the name of each CTE, and the start and end of its body without its brackets."""
    from sqlglot.tokenizer_core import TokenType

    if not tokens or tokens[0].token_type != TokenType.WITH:
        return []
    position = 2 if len(tokens) > 1 and tokens[1].token_type == TokenType.RECURSIVE else 1
    found: list[tuple[str, int, int]] = []
    while position < len(tokens):
        name = tokens[position]
        position += 1
        if position < len(tokens) and tokens[position].token_type == TokenType.L_PAREN:  # column names
            position = _closing(tokens, position) + 1
        while position < len(tokens) and tokens[position].token_type != TokenType.L_PAREN:
            position += 1  # AS, MATERIALIZED
        closing = _closing(tokens, position)
        found.append((sql[name.start : name.end + 1], tokens[position].end + 1, tokens[closing].start))
        position = closing + 2
        if closing + 1 >= len(tokens) or tokens[closing + 1].token_type != TokenType.COMMA:
            return found
    return found


def _closing(tokens: list[Token], opening: int) -> int:
    """Return the place at which the bracket at ``opening`` closes."""
    from sqlglot.tokenizer_core import TokenType

    depth = 0
    for position in range(opening, len(tokens)):
        kind = tokens[position].token_type
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if depth == 0:
            return position
    raise SyntaxProblem("A bracket of the WITH clause never closes.")
