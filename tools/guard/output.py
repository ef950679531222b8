"""The text to execute.

Two ways lead to it. Where every word of the query is accounted for, by the tree or by a list of harmless
keywords, it is rebuilt from its own tokens: comments dropped, literals re-encoded. The engine then reads
exactly the words that were judged, in the author's own functions, line numbers and column headings. Otherwise
it is rendered from the tree, so that a word the parser skipped cannot reach the engine, and must read as that
tree again. Rendering alone would be simpler, but sqlglot renames functions as it renders, and on long
Snowflake queries that takes longer than all of the judging.
"""

from __future__ import annotations

import re
from functools import cache

from sqlglot import exp
from sqlglot.tokenizer_core import Token, TokenType

from quorum.tools.guard.text import NotPure
from quorum.tools.guard.vocabulary import SCRIPT_KEYWORDS, words
from quorum.tools.sql import SyntaxProblem, sqlglot_dialect
from quorum.tools.sql.writing import write, written

_PART = re.compile(r"[^\w$]+")


def rebuild(sql: str, tokens: list[Token], trees: list[exp.Expr], dialect: str) -> str | None:
    """Return the query from its own tokens; None where a word is not accounted for.

    Args:
        sql: Without comments; its words keep their lines and columns, so that an engine's error
            positions mean the author's text.
    """
    if not _accounted(tokens, trees, dialect):
        return None
    texts, rare, _ = _kinds()
    pieces: list[str] = []
    end = -1
    for token in tokens:
        written = sql[token.start : token.end + 1]
        if token.token_type in texts:
            written = _text_literal(written, token, dialect)
        elif token.token_type in rare or "\\" in written:
            return None
        pieces += [sql[end + 1 : token.start], written]
        end = token.end
    rebuilt = "".join(pieces).strip().rstrip("; \n")
    return rebuilt if _same(rebuilt, tokens, dialect) else None


@cache
def _kinds() -> tuple[frozenset[TokenType], frozenset[TokenType], frozenset[TokenType]]:
    """Return the token types of text, of rarer literals and of hints, and of all that is no bare word."""
    texts = frozenset({TokenType.STRING, TokenType.RAW_STRING, TokenType.HEREDOC_STRING})
    literals = frozenset(kind for kind in TokenType if kind.name.endswith("_STRING")) - texts
    return texts, literals | {TokenType.HINT}, texts | literals | {TokenType.IDENTIFIER}


def _accounted(tokens: list[Token], trees: list[exp.Expr], dialect: str) -> bool:
    """True if each unquoted word is in the trees, a harmless keyword, or a function that is called."""
    harmless = words("keywords").union(*(_names(tree) for tree in trees))
    if len(trees) > 1:
        harmless |= SCRIPT_KEYWORDS
    parser = sqlglot_dialect(dialect).parser_class
    quoted = _kinds()[2]
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        if token.token_type in quoted or not token.text[:1].isalpha():
            continue
        word = token.text.upper()
        called = following is not None and following.text == "("
        if word in harmless or (called and (word in parser.FUNCTIONS or word in parser.FUNCTION_PARSERS)):
            continue
        if " " not in word or not harmless.issuperset(word.split()):  # GROUP BY is one token
            return False
    return True


def _text_literal(written: str, token: Token, dialect: str) -> str:
    """Return a text literal as it may be executed: encoded again if it has escapes or odd quotes."""
    simple = written[0] in "'\"" and "\\" not in written and not written.startswith(("'''", '"""'))
    return written if simple else write(exp.Literal.string(token.text), dialect)


def _same(rebuilt: str, tokens: list[Token], dialect: str) -> bool:
    """True if the rebuilt text has the same tokens, however its text literals are quoted."""
    texts = _kinds()[0]
    before = [(None if t.token_type in texts else t.token_type, t.text) for t in tokens]
    again = sqlglot_dialect(dialect).tokenize(rebuilt)
    while before and before[-1][1] == ";":
        before.pop()
    return before == [(None if t.token_type in texts else t.token_type, t.text) for t in again]


def _names(tree: exp.Expr) -> set[str]:
    """Return every name that the tree holds, in capitals, and the parts of ``my-project.data``."""
    names: set[str] = set()
    for node in tree.walk():
        if isinstance(node, exp.Identifier | exp.Var | exp.Anonymous | exp.Placeholder | exp.JSONPathKey):
            names.add(node.name.upper())
        elif isinstance(node, exp.Func):
            names.add(node.sql_name().upper())
    return names.union(*(_PART.split(name) for name in names if _PART.search(name)))


def render(trees: list[exp.Expr], dialect: str) -> str:
    """Return all statements rendered from their trees, in a text that reads as these trees.

    Raises:
        NotPure: There is no such text.
    """
    try:
        return written(trees, dialect)
    except SyntaxProblem as problem:
        reason = f"The SQL cannot be rendered faithfully: {problem.message} Write it in a simpler form."
        raise NotPure(reason, "rendering") from None
