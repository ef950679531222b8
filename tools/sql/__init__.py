"""SQL as data: the one place that reads it, with sqlglot's tokenizer and parser.

sqlglot is imported when first used, so that importing this module costs nothing.
"""

from __future__ import annotations

import logging
import re
from functools import cache, lru_cache
from typing import TYPE_CHECKING

from quorum.knowledge.errors import ConfigurationError, QuorumError

if TYPE_CHECKING:
    from sqlglot import Dialect, exp
    from sqlglot.tokenizer_core import Token

DIALECTS = ("bigquery", "duckdb", "mysql", "postgres", "snowflake", "sqlite")
"""The dialects that Quorum knows, by sqlglot's names."""

STRICT_DIALECTS = (
    *("athena", "clickhouse", "databricks", "doris", "exasol", "hive", "oracle", "presto", "redshift"),
    *("singlestore", "spark", "starrocks", "teradata", "trino", "tsql"),
)
"""Dialects of engines that are asked through SQLAlchemy, where no session forbids to write: the guard
judges them by stricter rules (``quorum.tools.guard.rules``), and the lint passes only what it knows."""

KNOWN_DIALECTS = frozenset(DIALECTS + STRICT_DIALECTS)
"""Those whose SQL can be judged and laid out."""

MAX_TOKENS = 32_000
"""Most tokens that are parsed; people's queries have below 3,000."""

MAX_NODES = 20_000
"""Most nodes that the parser may make, its wrong guesses included; it makes up to two for a token."""

MAX_GUESSES = 10_000
"""Most readings of nested types that the parser may have to try: each may be a type or a call."""

_DAY = re.compile(r"(?:19|20)\d{2}(?:-\d{2}(-\d{2})?)?([ T]\d{2}:\d{2}(:\d{2}(\.\d+)?)?)?")
_ALIASES = {"postgresql": "postgres", "mariadb": "mysql", "sqlite3": "sqlite", "mssql": "tsql"}


class SyntaxProblem(QuorumError):
    """SQL that could not be read.

    Attributes:
        message: What the parser expected, in one sentence.
        line, column: 1-based position, where known.
    """

    def __init__(self, message: str, line: int | None = None, column: int | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.line = line
        self.column = column


class TooComplex(SyntaxProblem):
    """SQL that would take the parser long."""


def dialect_name(dialect: str) -> str:
    """Return the canonical name of a dialect.

    Raises:
        ConfigurationError: The dialect is one of neither ``DIALECTS`` nor ``STRICT_DIALECTS``.
    """
    name = dialect.strip().casefold()
    name = _ALIASES.get(name, name)
    if name not in KNOWN_DIALECTS:
        known = ", ".join(DIALECTS + STRICT_DIALECTS)
        raise ConfigurationError(f"There is no SQL dialect {dialect!r}.", hint=f"Known dialects: {known}.")
    return name


@cache
def sqlglot_dialect(name: str) -> Dialect:
    """Return sqlglot's dialect object; parsing Commands is expected here, so its warning is not shown."""
    from sqlglot import Dialect

    logging.getLogger("sqlglot").addFilter(lambda record: "Falling back to parsing" not in str(record.msg))
    return Dialect.get_or_raise(name)


def parse_statements(sql: str, dialect: str, tokens: list[Token] | None = None) -> list[exp.Expr]:
    """Parse ``sql`` into its statements, empty ones left out.

    Args:
        tokens: Its tokens, where they are at hand.

    Raises:
        SyntaxProblem: It cannot be read, or nests too deeply to be read.
    """
    from sqlglot import exp
    from sqlglot.errors import ParseError, SqlglotError

    reader = sqlglot_dialect(dialect)
    try:
        tokens = reader.tokenize(sql) if tokens is None else tokens
        _check_work(tokens)
        read = _enclose_limits(tokens) if dialect == "sqlite" else tokens
        trees = reader.parser(max_nodes=MAX_NODES).parse(read, sql)
    except ParseError as error:
        first = error.errors[0] if error.errors else {}
        message = str(first.get("description") or error).strip().rstrip(".")
        if message.startswith("Maximum number of AST nodes"):
            raise TooComplex("It nests too deeply, in forms that can be read in many ways.") from None
        raise SyntaxProblem(f"{message}.", first.get("line"), first.get("col")) from None
    except SqlglotError as error:
        raise SyntaxProblem(f"{str(error).splitlines()[0].rstrip('.')}.") from None
    except RecursionError:
        raise SyntaxProblem("It nests too deeply.") from None
    return [tree for tree in trees if tree is not None and not isinstance(tree, exp.Semicolon)]


def parse_one_statement(sql: str, dialect: str) -> exp.Expr:
    """Parse exactly one statement.

    Raises:
        SyntaxProblem: It cannot be read, or it is none or more than one statement.
    """
    trees = parse_statements(sql, dialect)
    if len(trees) != 1:
        raise SyntaxProblem(f"One statement is expected; there are {len(trees)}.")
    return trees[0]


def tables_in(sql: str, dialect: str) -> list[str]:
    """Return the names of the tables that a query reads, as it writes them, each once, sorted, without CTEs.

    Raises:
        SyntaxProblem: It cannot be read.
        ConfigurationError: The dialect is unknown.
    """
    from sqlglot import exp

    tree = parse_one_statement(sql, dialect_name(dialect))
    own = {cte.alias.casefold() for cte in tree.find_all(exp.CTE)}
    names = {".".join(part.name for part in table.parts) for table in tree.find_all(exp.Table) if table.name}
    return sorted(name for name in names if name.casefold() not in own)


def fixed_dates(sql: str, dialect: str) -> list[str]:
    """Return the text literals of a query that are a year, a month or a day (``2024-05``), each once.

    Raises:
        SyntaxProblem: It cannot be read.
        ConfigurationError: The dialect is unknown.
    """
    from sqlglot import exp

    tree = parse_one_statement(sql, dialect_name(dialect))
    texts = (literal.name for literal in tree.find_all(exp.Literal) if literal.is_string)
    return list(dict.fromkeys(text for text in texts if _DAY.fullmatch(text)))


def without_hints(tree: exp.Expr) -> exp.Expr:
    """Remove optimizer hints from the tree, in place: they are comments that engines obey."""
    from sqlglot import exp

    for hint in list(tree.find_all(exp.Hint)):
        hint.pop()
    return tree


@lru_cache(maxsize=256)
def size(sql: str, dialect: str) -> int:
    """Return the number of a query's tokens without comments; of its words where it cannot be read.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    from sqlglot.errors import SqlglotError

    try:
        return len(sqlglot_dialect(dialect_name(dialect)).tokenize(sql))
    except SqlglotError:
        return len(sql.split())


def _check_work(tokens: list[Token]) -> None:
    """Refuse what the parser would take long for, though it is not long or makes no nodes on the way.

    ``STRUCT(STRUCT(1))`` may be a type or a call at every level, so the readings double with each.

    Raises:
        TooComplex: It is too much.
    """
    if len(tokens) > MAX_TOKENS:
        raise TooComplex(f"It has {len(tokens):,} tokens; at most {MAX_TOKENS:,} are read.")
    guesses = depth = 0
    opened: list[bool] = []  # for each open bracket, whether it may be that of a type
    before = ""
    for token in tokens:
        if token.text in ("(", "<"):
            opened.append(before in ("STRUCT", "OBJECT", "NESTED"))
            depth += opened[-1]
            guesses += 2**depth if opened[-1] else 0
        elif token.text in (")", ">") and opened:
            depth -= opened.pop()
        if guesses > MAX_GUESSES:
            raise TooComplex("It nests types too deeply.", token.line, token.col)
        before = token.token_type.name


def _enclose_limits(tokens: list[Token]) -> list[Token]:
    """Put brackets round SQLite's LIMIT expressions that hold ``%``, which the parser takes for PERCENT.

    The usual median has one: ``LIMIT 2 - (SELECT COUNT(*) FROM t) % 2``.
    """
    from sqlglot.tokenizer_core import Token, TokenType

    if not any(token.token_type == TokenType.MOD for token in tokens):
        return tokens
    result: list[Token] = []
    start = depth = 0  # start: where the current LIMIT expression begins in result; 0 outside of one
    modulo = False
    for token in [*tokens, None]:
        kind = token.token_type if token else TokenType.SEMICOLON
        ends = kind in (TokenType.COMMA, TokenType.OFFSET, TokenType.SEMICOLON) and depth == 0
        depth += (kind == TokenType.L_PAREN) - (kind == TokenType.R_PAREN)
        if start and (ends or depth < 0):
            if modulo:
                result.insert(start, Token(TokenType.L_PAREN, "("))
                result.append(Token(TokenType.R_PAREN, ")"))
            start = 0
        modulo = bool(start) and (modulo or (kind == TokenType.MOD and depth == 0))
        if token:
            result.append(token)
        if kind == TokenType.LIMIT:
            start, depth, modulo = len(result), 0, False
    return result
