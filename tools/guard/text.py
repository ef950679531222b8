"""The guard's verdicts, and its checks on the text before it is parsed: size, characters, nesting, comments.

What two readers could take differently is refused here, because the parser and the engine are
two readers.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Self

from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql import MAX_TOKENS, sqlglot_dialect

if TYPE_CHECKING:
    from sqlglot import exp
    from sqlglot.tokenizer_core import Token

    from quorum.tools.lint.lineage import Masks

MAX_CHARACTERS = 100_000
"""Longest SQL that is judged; people's queries are below 10,000."""

MAX_DEPTH = 100
"""Deepest nesting of brackets: far above what people write, far below what exhausts the parser's stack."""

# C0 and C1 controls, bidirectional overrides (they make text look different from what it is), stray BOMs
_FORBIDDEN = re.compile("[\x00-\x08\x0b\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ufeff]")
_COMMENT = re.compile(r"(?:--|#|//)[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_NESTING = frozenset({"postgres", "duckdb"})  # engines whose block comments nest, as the tokenizer's do
_QUOTED = frozenset(
    {"IDENTIFIER", "STRING", "NATIONAL_STRING", "RAW_STRING", "HEREDOC_STRING", "UNICODE_STRING"}
)
_QUOTED |= {"BYTE_STRING"}
_ODD = re.compile(r"[^ \t\r\n]")
_OPENING, _CLOSING = frozenset("([{"), frozenset(")]}")


@dataclass(frozen=True)
class Passed:
    """A pure read.

    Attributes:
        sql: The text to execute: what was judged, without comments and hints.
        dialect: Canonical name of its dialect.
        tree: The parsed query, as written (inside an EXPLAIN: the explained query); None for an
            inspection that is no query (``PRAGMA table_info(t)``), and where another process judged.
        kind: ``query``, ``explain`` or ``inspection``.
        script: The statements before the query, in order (BigQuery's DECLARE, SET, TEMP FUNCTION); empty
            where another process judged.
        masks: Which columns of the result are masked (``quorum.tools.lint.lineage``).
    """

    sql: str
    dialect: str
    tree: exp.Expr | None = field(default=None, compare=False)
    kind: str = "query"
    script: tuple[exp.Expr, ...] = field(default=(), compare=False)
    masks: Masks = False


class Allowed(str):
    """A text that may run; ``masks`` says which columns of its result are masked."""

    masks: Masks

    def __new__(cls, sql: str, masks: Masks = False) -> Self:
        made = super().__new__(cls, sql)
        made.masks = masks
        return made


@dataclass(frozen=True)
class Rejected:
    """SQL that must not reach a database.

    Attributes:
        reason: One sentence for people and models: what is refused and why.
        rule: Short name of the rule: ``syntax`` where the text could not be read at all.
        line, column: 1-based position, where known.
    """

    reason: str
    rule: str
    line: int | None = None
    column: int | None = None

    def error(self) -> QueryError:
        """Return the refusal as a failed query: of kind ``syntax`` or ``refused``, reported by the guard."""
        kind = ErrorKind.SYNTAX if self.rule in ("syntax", "empty") else ErrorKind.REFUSED
        return QueryError(kind, self.reason, self.line, self.column, by="guard")


class NotPure(Exception):
    """Say that a text is not known to be a pure read.

    Args:
        reason, rule: Of the refusal.
        at: The token to blame, or its line.

    Attributes:
        verdict: The refusal.
    """

    def __init__(self, reason: str, rule: str, at: Token | int | None = None) -> None:
        super().__init__(reason)
        place = (at, None) if at is None or isinstance(at, int) else (at.line, at.col)
        self.verdict = Rejected(reason, rule, *place)


@dataclass(frozen=True)
class Scanned:
    """Text that may be parsed.

    Attributes:
        sql: The text with every comment made spaces; what stays keeps its line and column.
        tokens: Its tokens.
    """

    sql: str
    tokens: list[Token]


def too_long(sql: str) -> Rejected | None:
    """Return the refusal of a text that is too long to be read."""
    if len(sql) <= MAX_CHARACTERS:
        return None
    reason = f"The SQL has {len(sql):,} characters; at most {MAX_CHARACTERS:,} are judged."
    return Rejected(reason, "too_long")


def check_memory(error: BaseException | None) -> None:
    """Raise the ``MemoryError`` that the tokenizer made another error of: it has to end the process."""
    while error := error and error.__context__:
        if isinstance(error, MemoryError):
            raise error from None


def scan(sql: str, dialect: str) -> Scanned:
    """Free ``sql`` of comments and tokenize it.

    Raises:
        NotPure: The text itself is not acceptable, or has no tokens.
    """
    from sqlglot.errors import SqlglotError

    if refusal := too_long(sql):
        raise NotPure(refusal.reason, refusal.rule)
    if found := _FORBIDDEN.search(sql):
        where = sql.count("\n", 0, found.start()) + 1
        code = f"U+{ord(found.group()):04X}"
        reason = f"The SQL holds the invisible character {code} in line {where}."
        raise NotPure(reason, "characters", where)
    try:
        tokens = sqlglot_dialect(dialect).tokenize(sql)
        if not tokens:
            raise NotPure("The SQL is empty.", "empty")
        if len(tokens) > MAX_TOKENS:
            raise NotPure(
                f"The SQL has {len(tokens):,} words and signs; at most {MAX_TOKENS:,} are judged.", "too_long"
            )
        read = tokens[:1] if is_command(tokens, dialect) else tokens  # the rest is scanned by itself
        _check_comments(sql, read, dialect)
        for check in (_check_characters, _check_nesting, *_CHECKS.get(dialect, ())):
            check(read, dialect)
        bare = _without_comments(sql, read)
        if bare != sql:
            tokens = sqlglot_dialect(dialect).tokenize(bare)  # the tokenizer reads GROUP BY as one word
    except SqlglotError as error:
        check_memory(error)
        raise NotPure(f"The SQL cannot be read: {str(error).splitlines()[0]}", "syntax") from None
    return Scanned(bare, tokens)


def _gaps(sql: str, tokens: list[Token]) -> Iterator[tuple[int, int]]:
    """Yield start and end of what is before each token; after the last one only if all were given."""
    end = 0
    for token in tokens:
        yield end, token.start
        end = token.end + 1
    yield end, len(sql)


def _without_comments(sql: str, tokens: list[Token]) -> str:
    """Return ``sql`` with everything between tokens made plain white space, character by character."""
    gaps = list(_gaps(sql, tokens))
    if len(tokens) == 1:
        gaps.pop()
    pieces, end = [], 0
    for start, stop in gaps:
        gap = sql[start:stop]
        pieces += [sql[end:start], _ODD.sub(" ", gap) if gap.strip(" \t\r\n") else gap]
        end = stop
    return "".join([*pieces, sql[end:]])


def is_command(tokens: list[Token], dialect: str) -> bool:
    """True for EXPLAIN and SHOW where the tokenizer does not look behind the word."""
    word = tokens[0].text.upper()
    if word == "SHOW":
        return dialect in ("duckdb", "postgres")
    return word == "EXPLAIN" and dialect != "mysql"


def plain(scanned: Scanned) -> str:
    """Return the tokens as they were written, one space between them."""
    return " ".join(scanned.sql[token.start : token.end + 1] for token in scanned.tokens)


def _check_nesting(tokens: list[Token], _: str) -> None:
    depth = dots = 0
    for token in tokens:
        dots = dots + 1 if token.text == "." else dots if token.text[:1].isalnum() else 0
        if dots > MAX_DEPTH:
            raise NotPure(f"A name in line {token.line} has more than {MAX_DEPTH} parts.", "nesting")
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth > MAX_DEPTH:
            raise NotPure(f"Brackets nest more than {MAX_DEPTH} deep in line {token.line}.", "nesting", token)


def _check_comments(sql: str, tokens: list[Token], dialect: str) -> None:
    """Refuse comments that are code for the engine, or that engines end at different places."""
    for start, stop in _gaps(sql, tokens):
        gap = sql[start:stop]
        if not gap or gap.isspace():
            continue
        if dialect == "mysql" and re.search(r"/\*M?!", gap):
            raise NotPure("A comment /*! … */ is code that MySQL runs, so it cannot be judged.", "comment")
        if dialect == "bigquery" and re.search(r"(#|--)\s*legacySQL", gap, re.IGNORECASE):
            raise NotPure("#legacySQL switches to another SQL dialect.", "comment")
        comments = _COMMENT.findall(gap)
        if any("\r" in text.rstrip("\r") for text in comments if not text.startswith("/*")):
            raise NotPure("A comment holds a carriage return; engines disagree on where it ends.", "comment")
        if dialect not in _NESTING and any("/*" in text[2:] for text in comments if text.startswith("/*")):
            raise NotPure("A comment opens inside a comment; engines disagree on where it ends.", "comment")


def _check_characters(tokens: list[Token], _: str) -> None:
    """Refuse characters that are part of a word to the parser and a space to DuckDB, such as U+200B."""
    for token in tokens:
        if not token.text.isprintable() and token.token_type.name not in _QUOTED:
            code = next(f"U+{ord(sign):04X}" for sign in token.text if not sign.isprintable())
            where = f"outside of quotes, in line {token.line}"
            raise NotPure(f"The SQL holds the invisible character {code} {where}.", "characters", token)


def _check_brackets(tokens: list[Token], _: str) -> None:
    """Refuse DuckDB's ``(SHOW setting)`` and ``(DESC 'file')``: to the parser a table SHOW with an alias."""
    for bracket, word, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        if bracket.text != "(" or word.token_type.name == "IDENTIFIER":
            continue
        kind, what = name.token_type.name, word.text.upper()
        listed = name.text.upper() in ("TABLES", "DATABASES")
        shows = what in ("SHOW", "DESC") and kind in ("VAR", "IDENTIFIER") and not listed
        if shows or (what in ("SHOW", "DESC", "TABLE") and kind.endswith("STRING")):
            reason = f"{what} {name.text} in brackets may tell a setting or read a file; use DESCRIBE."
            raise NotPure(reason, "statement", word)


def _check_stages(tokens: list[Token], _: str) -> None:
    """Refuse Snowflake's ``@stage`` references, which the parser reads in several ways, and its ``->>``."""
    for token in tokens:
        if token.token_type.name == "DARROW":  # to the parser it takes a field of JSON
            raise NotPure(
                "The operator ->> chains statements; only one may run at a time.", "statements", token
            )
        if token.text.startswith("@") and token.token_type.name not in ("STRING", "IDENTIFIER"):
            raise NotPure("The SQL reads a stage (@…), which is a file store.", "file", token)


def _check_calls(tokens: list[Token], dialect: str) -> None:
    """Refuse ``"Upper"(…)`` where quoted names are exact, so that it is not the engine's own UPPER."""
    fold = str.lower if dialect == "postgres" else str.upper
    known = sqlglot_dialect(dialect).parser_class.FUNCTIONS
    for token, following in itertools.pairwise(tokens):
        quoted = token.token_type.name == "IDENTIFIER" and following.text == "("
        if quoted and token.text.upper() in known and token.text != fold(token.text):
            reason = f'The function "{token.text}" is not {token.text.upper()}, but one that a user defined.'
            raise NotPure(reason, "function", token)


def _check_escapes(tokens: list[Token], _: str) -> None:
    """Refuse PostgreSQL's ``U&"\\0070g"``, one name to the engine and three words to the parser."""
    for letter, sign, name in zip(tokens, tokens[1:], tokens[2:], strict=False):
        near = letter.end + 1 == sign.start and sign.end + 1 == name.start
        if near and (letter.text.upper(), sign.text, name.token_type.name) == ("U", "&", "IDENTIFIER"):
            raise NotPure('A name is written U&"…", with escapes; write it plainly.', "characters", name)


_CHECKS = {
    "snowflake": (_check_stages, _check_calls),
    "postgres": (_check_calls, _check_escapes),
    "duckdb": (_check_escapes, _check_brackets),
}
"""Further checks of a dialect's tokens."""
