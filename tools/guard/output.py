"""The text to execute.

Two ways lead to it. Where every word of the query is accounted for, by the tree or by a list of harmless
keywords, it is rebuilt from its own tokens: comments dropped, literals encoded anew. The engine then reads
exactly the words that were judged, in the author's own functions, line numbers and column headings.
Otherwise it is rendered from the tree, so that a word the parser skipped cannot reach the engine, and the
rendering is read and judged again. Rendering alone would be simpler, but sqlglot rewrites as it renders
(``a:b`` becomes GET_PATH, unnested columns are qualified anew), and on long Snowflake queries that takes
longer than all of the judging.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from tools.guard.rules import judge
from tools.guard.verdict import Refused
from tools.guard.vocabulary import words
from tools.sql import SyntaxProblem, parse_statements, sqlglot_dialect, without_hints

if TYPE_CHECKING:
    from collections.abc import Iterator

    from sqlglot import exp
    from sqlglot.tokens import Token

_ROUNDS = 3
"""Renderings until the text must render to itself (BigQuery's qualified names need two)."""


def rebuild(sql: str, tokens: list[Token], trees: list[exp.Expression], dialect: str) -> str | None:
    """The query from its own tokens; None where a word is not accounted for.

    Line breaks stay, so that an engine's line numbers mean the author's lines.
    """
    known = set().union(*(_names(tree) for tree in trees)) if trees else set()
    functions = sqlglot_dialect(dialect).parser_class.FUNCTIONS
    keywords = words("keywords")
    pieces: list[str] = []
    end = -1
    for position, token in enumerate(tokens):
        text = _literal(sql[token.start : token.end + 1], token, dialect)
        if text is None:
            return None
        word = token.text.upper()
        if _is_word(token) and word not in known and word not in keywords:
            called = position + 1 < len(tokens) and tokens[position + 1].text == "("
            if not (called and word in functions):
                return None
        pieces += [_space(sql[end + 1 : token.start]), text]
        end = token.end
    rebuilt = "".join(pieces).strip().rstrip("; \n")
    return rebuilt if _same(rebuilt, tokens, dialect) else None


def _is_word(token: Token) -> bool:
    kind = token.token_type.name
    return kind == "IDENTIFIER" or (kind not in ("STRING", "RAW_STRING", "HEREDOC_STRING") and token.text[:1].isalpha())


def _literal(written: str, token: Token, dialect: str) -> str | None:
    """The token as it may be executed: text with escapes is encoded anew; None for rarer literals."""
    from sqlglot import exp

    kind = token.token_type.name
    if kind in ("STRING", "RAW_STRING", "HEREDOC_STRING"):
        plain = written[0] in "'\"" and "\\" not in written and not written.startswith(("'''", '"""'))
        return written if plain and kind == "STRING" else exp.Literal.string(token.text).sql(dialect)
    if kind.endswith("_STRING") or "\\" in written:
        return None
    return written


def _space(gap: str) -> str:
    """What stands between two tokens: its line breaks, or one space if there is anything."""
    return "\n" * gap.count("\n") or (" " if gap else "")


def _same(rebuilt: str, tokens: list[Token], dialect: str) -> bool:
    again = sqlglot_dialect(dialect).tokenize(rebuilt)
    before = [(t.token_type, t.text) for t in tokens]
    after = [(t.token_type, t.text) for t in again]
    while before and before[-1][1] == ";":
        before.pop()
    text = {"RAW_STRING": "STRING", "HEREDOC_STRING": "STRING"}
    return [(text.get(k.name, k.name), t) for k, t in before] == [(text.get(k.name, k.name), t) for k, t in after]


def _names(tree: exp.Expression) -> set[str]:
    return {name.upper() for name in _all_names(tree)}


def _all_names(tree: exp.Expression) -> Iterator[str]:
    """Every name that the tree holds."""
    from sqlglot import exp

    for node in tree.walk():
        if isinstance(node, exp.Identifier | exp.Var | exp.Anonymous | exp.Placeholder | exp.JSONPathKey):
            yield node.name
        elif isinstance(node, exp.Func):
            yield node.sql_name()


def render(trees: list[exp.Expression], dialect: str, local_functions: frozenset[str]) -> str | Refused:
    """All statements rendered from their trees; the rendering is read and judged again."""
    sql, again = _text(trees, dialect), trees
    for _ in range(_ROUNDS):
        try:
            again = parse_statements(sql, dialect)
        except SyntaxProblem as problem:
            return Refused(f"The SQL cannot be rendered faithfully: {problem.message}", "rendering")
        before, sql = sql, _text(again, dialect)
        if sql == before and len(again) == len(trees):
            break
    else:
        return Refused("The SQL cannot be rendered faithfully; write it in a simpler form.", "rendering")
    return judge(again[-1], dialect, local_functions) or sql


def _text(trees: list[exp.Expression], dialect: str) -> str:
    """Hints go too: MySQL's SET_VAR changes settings."""
    generator = sqlglot_dialect(dialect)
    return ";\n".join(
        generator.generate(without_hints(tree), comments=False, normalize_functions=False) for tree in trees
    )
