"""Rules for engines whose session does not forbid to write: what is not known to read is refused.

They come on top of the rules for all dialects. A relation is a name, never a function, a file or a place on
another server, and stands with its schema (the lint then wants it in the catalog). A function is one of the
engine's that is known to be pure. Clauses that set something, and marks for parameters, are refused.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache

from sqlglot import exp
from sqlglot.tokenizer_core import Token

from quorum.tools.guard.text import Refused
from quorum.tools.guard.vocabulary import listed, words
from quorum.tools.sql import sqlglot_dialect
from quorum.tools.sql.writing import write

_FIRST = ("SELECT", "WITH", "(")
_ALTERNATIVE = re.compile(r"(?<!\\)(?:\\\\)*\\['\"`]")
_PLAIN = re.compile(r"[\w$#]+")
_PLACE = re.compile(r"[/\\:]")
_CLAUSES = {
    "Select": "with_ expressions distinct from_ laterals joins connect pivots prewhere where group having"
    " qualify windows distribute sort cluster order limit offset sample",
    "SetOperation": "with_ this expression distinct by_name side kind on order limit offset laterals joins",
    "Subquery": "with_ this alias laterals joins pivots order limit offset sample where",
    "Table": "this alias db catalog laterals joins pivots version when only sample",
    "With": "expressions recursive",
    "Limit": "this expression offset limit_options expressions",
}
"""What a query may be made of, by sqlglot's names; settings, formats, locks and hints are not among them."""
_SYSTEM = re.compile(
    r"(?i)system|sys|information_schema|pg_\w+|master|msdb|tempdb|dbc|exa_\w+|performance_schema|mysql"
)


def strict_text(sql: str, tokens: Sequence[Token], dialect: str) -> Refused | None:
    """The refusal of a text, free of comments, that an engine might read otherwise than the parser."""
    first = tokens[0]
    if first.text.upper() not in _FIRST:
        reason = f"{first.text.upper()} is not a query; on {dialect} only SELECT and WITH are asked."
        return Refused(reason, "statement", first.line, first.col)
    if _ALTERNATIVE.search(sql):
        reason = "A backslash stands before a quote: engines disagree on whether the text ends there."
        return Refused(reason, "characters")
    functions, own = _functions(dialect), _own(dialect)
    for before, token, following in zip([None, *tokens], tokens, tokens[1:], strict=False):
        name, quoted = token.text.upper(), token.token_type.name == "IDENTIFIER"
        if following.text != "(" or name not in functions or _begins_clause(name, before):
            continue
        if quoted or (name not in own and name.lower() not in listed(dialect)):
            reason = (
                f"The function {token.text} is not known to be one of {dialect}'s own without side effects."
            )
            return Refused(reason, "function", token.line, token.col)
    return None


def _begins_clause(name: str, before: Token | None) -> bool:
    """Whether a word that sqlglot has as a function is CROSS APPLY's, or stands in JSON_TABLE."""
    earlier = before.text.upper() if before is not None else ""
    return (name == "APPLY" and earlier in ("CROSS", "OUTER")) or (
        name == "COLUMNS" and bool(before) and earlier != ","
    )


@cache
def _functions(dialect: str) -> frozenset[str]:
    """The functions that sqlglot reads as more than a name with arguments."""
    parser = sqlglot_dialect(dialect).parser_class
    return frozenset(parser.FUNCTIONS) | frozenset(parser.FUNCTION_PARSERS)


@cache
def _own(dialect: str) -> frozenset[str]:
    """Those that sqlglot reads so in this dialect but not in all, whether engines have them or not."""
    return _functions(dialect) - _functions("")


def strict_node(node: exp.Expr, dialect: str) -> Refused | None:
    """The refusal of a node, or of what hangs on it."""
    kind = "SetOperation" if isinstance(node, exp.SetOperation) else type(node).__name__
    if kind in words("strict_nodes") or (kind == "Pivot" and dialect == "oracle"):
        reason = f"{write(node, dialect)} cannot be judged on {dialect}; write it without."
        return Refused(reason, "statement")
    known = _CLAUSES.get(kind)
    if known and (clause := next((k for k, v in node.args.items() if v and k not in known.split()), "")):
        return Refused(f"{clause.strip('_').upper()} is not part of a plain query on {dialect}.", "clause")
    if isinstance(node, exp.Table):
        return _relation(node, dialect)
    if isinstance(node, exp.Anonymous) and isinstance(node.this, exp.Identifier) and node.this.quoted:
        return Refused(f"The name of the function {node.name} is quoted: it may be a user's.", "function")
    if isinstance(node, exp.Fetch) and not isinstance(node.args.get("count"), exp.Literal):
        return Refused("FETCH takes a number.", "clause")
    if isinstance(node, exp.In) and isinstance(node.args.get("field"), exp.Column | exp.Dot):
        return Refused(
            f"{write(node, dialect)} may read a table that it does not say so of; use a query.", "table"
        )
    if isinstance(node, exp.Identifier) and not node.quoted:
        if not _PLAIN.fullmatch(node.name):
            return Refused(f"{node.name} is no plain name.", "table")
        if dialect == "tsql" and node.name.lower() in words("tsql_statements"):
            reason = f"{node.name.upper()} begins a statement of its own; only one query may run."
            return Refused(reason, "statements")
    if dialect == "oracle" and (
        isinstance(node, exp.Dot) or (isinstance(node, exp.Column) and node.args.get("db"))
    ):
        reason = f"{write(node, dialect)} may call a function; write a column as alias.column."
        return Refused(reason, "function")
    if isinstance(node, exp.Column) and node.name.lower() in ("nextval", "currval"):
        return Refused(f"{write(node, dialect)} advances a sequence.", "sequence")
    return None


def _relation(node: exp.Table, dialect: str) -> Refused | None:
    """A relation's own name."""
    if not isinstance(node.this, exp.Identifier):
        return None  # a function, which its own rule judges
    parts = [node.args.get("catalog"), node.args.get("db"), node.this]
    written = [part for part in parts if part is not None]
    if not all(isinstance(part, exp.Identifier) and part.name for part in written):
        return Refused(f"{write(node, dialect)} leaves out the schema; name it.", "table")
    names = [part.name for part in written if isinstance(part, exp.Identifier)]
    if any(map(_PLACE.search, names)):
        return Refused(f"{'.'.join(names)} names a file or a place, not a table of the database.", "file")
    if any(map(_SYSTEM.fullmatch, names[:-1])) or re.match(r"(?i)g?v_?\$", names[-1]):
        return Refused(f"{'.'.join(names)} is the engine's own and describes no data.", "table")
    return None
