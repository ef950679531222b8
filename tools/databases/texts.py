"""The text of a query as each engine reads it: words, names, texts and comments; and what is never sent.

This is the lock below the guard. It parses nothing and trusts nothing of the parser: it only knows where an
engine's quotes and comments end, so a word in a comment hides nothing and a quote in a comment opens nothing.
What two engines could read in two ways is refused.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from typing import NamedTuple

from quorum.tools.guard.vocabulary import (
    FIELD_CALLS,
    NAMESPACES,
    SETTINGS,
    function_names,
    is_open,
    is_system,
    words,
)
from quorum.tools.query import ErrorKind, QueryError

QUERIES = ("SELECT", "WITH")
READS = (*QUERIES, "VALUES", "TABLE", "EXPLAIN", "SHOW")
"""First words of statements that PostgreSQL and MySQL may be sent."""

UNSHOWN = frozenset(("user", "for", "processlist", "variables", "binlog", "relaylog"))
"""Words of MySQL's SHOW that tell of accounts, settings or sessions."""

_DOUBLED = r"'(?:[^']|'')*'"
_ESCAPED = r"'(?:[^'\\]|\\.|'')*'"
_CAREFUL = r"'(?:[^'\\]|\\[^'\\]|\\\\|'')*'"
"""A text in which no backslash stands before the quote: engines with and without escapes agree on its end."""
_QUOTED = r'"(?:[^"]|"")*"'
_BACKTICKED = r"`(?:[^`]|``)*`"
_LINE = r"--[^\r\n]*"
_SPACE = r"[ \t\n\v\f\r]+"
_WORD = r"[A-Za-z_\x80-\U0010ffff][\w$\x80-\U0010ffff]*"


@dataclass(frozen=True)
class Lexis:
    """An engine's way to write texts and names, as regular expressions.

    Attributes:
        line: A comment to the end of its line.
        word: A bare word. Non-ASCII characters, spaces among them, are letters to engines.
        nested: Whether a comment may hold comments.
    """

    texts: str = _CAREFUL
    names: str = _QUOTED
    line: str = _LINE
    word: str = _WORD
    nested: bool = False

    @cached_property
    def pattern(self) -> re.Pattern[str]:
        """One token; ``odd`` is the beginning of what cannot be read."""
        parts = {
            "skip": rf"{_SPACE}|(?:{self.line})(?=\r?\n|\r?\Z)",
            "block": r"/\*",
            "text": self.texts,
            "name": self.names,
            "word": self.word,
            "number": r"\d+",
            "odd": r"['\"`]|\$[\w\x80-\U0010ffff]*\$|" + self.line,
            "sign": rf"(?:(?!/\*|{self.line})[-+*/<>=~!@\#%^&|?])+|.",
        }
        joined = "|".join(f"(?P<{kind}>{part})" for kind, part in parts.items())
        return re.compile(joined, re.DOTALL | re.ASCII)


_MYSQL = Lexis(
    texts=f"{_ESCAPED}|" + _ESCAPED.replace("'", '"'),
    names=_BACKTICKED,
    line=r"(?:\#|--(?=[\x00-\x20\x7f]|\Z))[^\r\n]*",
    word=r"(?!\d+(?![\w$\x80-\U0010ffff]))[\w$\x80-\U0010ffff]+",
)
"""Of a session without ANSI_QUOTES and NO_BACKSLASH_ESCAPES, in UTF-8."""
_BIGQUERY_TEXTS = (r"'''(?:[^\\]|\\.)*?'''", r"'(?!'')(?:[^'\\\n]|\\.)*'")
_TAG = r"\$(?:[A-Za-z_\x80-\U0010ffff][\w\x80-\U0010ffff]*)?\$"
LEXES = {
    "postgres": Lexis(
        texts=rf"[eE]{_ESCAPED}|[uU]&{_DOUBLED}|{_DOUBLED}|(?P<tag>{_TAG}).*?(?P=tag)",
        nested=True,
    ),
    "mysql": _MYSQL,
    **dict.fromkeys(("doris", "singlestore", "starrocks"), _MYSQL),
    "snowflake": Lexis(texts=rf"{_ESCAPED}|\$\$.*?\$\$", line=rf"{_LINE}|//[^\r\n]*"),
    "bigquery": Lexis(
        texts="|".join((*_BIGQUERY_TEXTS, *(each.replace("'", '"') for each in _BIGQUERY_TEXTS))),
        names=r"`(?:[^`\\]|\\.)*`",
        line=rf"{_LINE}|\#[^\r\n]*",
    ),
    "tsql": Lexis(texts=_DOUBLED, names=rf"{_QUOTED}|\[(?:[^\]]|\]\])*\]", nested=True),
    "oracle": Lexis(
        texts="|".join(
            [rf"[qQ]'{re.escape(a)}.*?{re.escape(b)}'" for a, b in ("[]", "{}", "()", "<>")]
            + [r"[qQ]'(?P<mark>[^\[{(<\s]).*?(?P=mark)'", _DOUBLED]
        )
    ),
}
"""By dialect; of others only what they all read alike is read."""
_OTHER = Lexis(names=rf"{_QUOTED}|{_BACKTICKED}")


@dataclass(frozen=True)
class Token:
    """A part of a query.

    Attributes:
        kind: ``word`` (bare), ``name`` (quoted), ``text``, ``number`` or ``sign``.
        text: Of a name what stands inside its quotes.
        start: Where it begins, in characters.
        upper: A bare word or a sign in capitals; of anything else its kind, so that no keyword equals it.
    """

    kind: str
    text: str
    start: int
    upper: str


class Unreadable(ValueError):
    """A text of which it is not sure where its texts and comments end."""


class Obeyed(Unreadable):
    """A comment that is a command."""


@lru_cache(4)  # a text is looked at several times before it is sent
def tokens(sql: str, dialect: str) -> Sequence[Token]:
    """The query without comments and spaces.

    Raises:
        Unreadable: It holds a comment that engines obey, or what they may read in different ways.
    """
    return tuple(_tokens(sql, dialect))


def _tokens(sql: str, dialect: str) -> Iterator[Token]:
    lexis, place, before = LEXES.get(dialect, _OTHER), 0, ""
    while found := lexis.pattern.match(sql, place):
        kind = str(found.lastgroup)
        start, place, text = place, found.end(), found[0]
        if kind == "block":
            place = _end_of_block(sql, start, nested=lexis.nested)
        if kind in ("skip", "block"):
            continue
        if kind == "odd" or (dialect == "oracle" and text.startswith("'") and before in _ALTERNATIVE):
            shown = sql[start : start + 20]
            raise Unreadable(f"It is not clear where the text or comment ends that begins with {shown!r}.")
        if dialect == "postgres":
            _check_escapes(before, kind, text, sql[place : place + 1])
        if kind == "name":
            mark = text[-1]
            text = text[1:-1].replace(2 * mark, mark)
        before = found[0]
        upper = text.upper() if kind in ("word", "sign") else f" {kind}"
        yield Token(kind, text, start, upper)


_BLOCK = re.compile(r"/\*|\*/")
_ALTERNATIVE = ("q", "Q", "nq", "nQ", "Nq", "NQ")


def _check_escapes(before: str, kind: str, text: str, after: str) -> None:
    """PostgreSQL: the escapes of a text last for those that continue it, and ``U&"…"`` is another name."""
    if kind == "text" and before[:2] in ("e'", "E'") and text.startswith("'"):
        raise Unreadable("A text with escapes is continued by another text; write one.")
    if kind == "sign" and text == "&" and before in ("u", "U") and after == '"':
        raise Unreadable('A name is written U&"…", with escapes; write it plainly.')


def _end_of_block(sql: str, start: int, *, nested: bool) -> int:
    """Return where a comment ends that begins with ``/*``."""
    if re.match(r"/\*(?:M?!|\+)", sql[start : start + 4]):  # hints may set variables
        raise Obeyed("Comments that the server would obey are not sent.")
    depth = 0
    for mark in _BLOCK.finditer(sql, start):
        opens = mark[0] == "/*"
        depth += 1 if opens else -1
        if depth > 1 and not nested:
            raise Unreadable("A comment opens inside a comment; engines disagree on where it ends.")
        if depth == 0:
            return mark.end()
    raise Unreadable("A comment does not end.")


def unsendable(sql: str, dialect: str, first: Collection[str] = QUERIES) -> QueryError | None:
    """Return why a text is never sent: it is not one statement that begins with a word of ``first``."""
    try:
        sql.encode()
    except UnicodeEncodeError:
        return QueryError(ErrorKind.SYNTAX, "The text cannot be encoded as UTF-8.")
    if "\0" in sql:  # protocols end there, and what was judged is more than what runs
        return QueryError(ErrorKind.SYNTAX, "The text holds a NUL character.")
    try:
        found = list(tokens(sql, dialect))
    except Unreadable as problem:
        kind = ErrorKind.PERMISSION if isinstance(problem, Obeyed) else ErrorKind.SYNTAX
        return QueryError(kind, str(problem))
    while found and found[-1].upper == ";":
        found.pop()
    if not found:
        return QueryError(ErrorKind.SYNTAX, "The text holds no query.")
    begins = next((token.upper for token in found if token.upper != "("), "")
    if begins not in first:
        return _refused(f"Only queries are sent to the server: {', '.join(first)}.")
    said = {token.upper for token in found}
    if ";" in said:
        return QueryError(ErrorKind.SYNTAX, "Only one statement is sent at a time.")
    if begins == "EXPLAIN" and not said.isdisjoint(("CREATE", "EXECUTE", "DECLARE")):
        return _refused("Only queries are explained.")
    if "INTO" in said:
        return _refused("INTO stores a result; only reads are sent to the server.")
    return None


def uncallable(sql: str, dialect: str) -> QueryError | None:
    """Return why a text may not run: it calls what is not known to be harmless, or reads accounts.

    A name before a bracket is a function on the guard's list, a keyword, a type, or an alias: ``x AS t(a)``,
    ``(…) t(a)``, ``WITH t(a) AS (…)``. So ``pg_read_file('x')`` is refused however it is written, and so is a
    function of the database's own. A read-only session would run it: no session forbids to read the server's
    files, to make a replication slot, to notify or to end other sessions.
    """
    found = tokens(sql, dialect)
    return next(_refusals(found, dialect), None)


class FunctionCall(NamedTuple):
    """A function that a text calls.

    Attributes:
        qualifier: The name of its schema, in lower case; ``?`` where it has several parts.
        name: As the engine folds it.
        quoted: Whether the name is written in quotes.
    """

    qualifier: str
    name: str
    quoted: bool


def calls(found: Sequence[Token], dialect: str) -> Iterator[FunctionCall]:
    """The functions that a text calls."""
    brackets = _brackets(found)
    for place, (token, following) in enumerate(pairwise(found)):
        if following.upper != "(" or token.kind not in ("word", "name"):
            continue
        keyword = token.kind == "word" and token.upper in words(f"{dialect}_brackets")
        if keyword or _is_alias(found, place, brackets):
            continue
        name = token.text if token.kind == "name" and dialect == "postgres" else token.text.lower()
        dotted = place > 0 and found[place - 1].upper == "."
        alone = dotted and found[max(place - 3, 0)].upper != "."
        qualifier = found[place - 2].text.lower() if alone and place > 1 else "?"
        yield FunctionCall(qualifier if dotted else "", name, token.kind == "name")


def _refusals(found: Sequence[Token], dialect: str) -> Iterator[QueryError]:
    known, own = function_names(dialect), NAMESPACES.get(dialect, ())
    for qualifier, name, _ in calls(found, dialect):
        if name not in known or (qualifier and qualifier not in own):
            full = f"{qualifier}.{name}".lstrip(".?")
            yield _refused(
                f"The function {full} is not on the list of functions known to have no side effects."
            )
    if found[0].upper == "SHOW":
        said = [token.text.lower() for token in found[1:] if token.upper != ";"]
        if dialect == "mysql" and not UNSHOWN.isdisjoint(said):
            yield _refused("SHOW tells of no account, setting or session.")
        if dialect == "postgres" and " ".join(said) not in SETTINGS:
            yield _refused(f"The setting {' '.join(said)} is not on the list of those that tell no secret.")
    for before, token, following in zip(found, found[1:], [*found[2:], None], strict=False):
        if dialect == "postgres" and before.upper == "." and FIELD_CALLS.fullmatch(token.text.lower()):
            yield _refused(f"The field {token.text} may call a function.")
        if dialect == "mysql" and (before.upper, token.upper[:1]) == (":", "="):
            yield _refused("The query assigns a variable.")
        if dialect == "mysql" and token.upper == "." and following is not None:
            path = [before.text.lower(), following.text.lower()]
            if before.text.lower() != "sys" and is_system(path, dialect) and not is_open(path, dialect):
                yield _refused(f"{'.'.join(path)} is the engine's own and describes no data.")


def _is_alias(found: Sequence[Token], place: int, brackets: dict[int, int]) -> bool:
    """Return True if the name before a bracket is no call: an alias, or a type after AS or ``::``."""
    if place == 0:
        return False
    before, earlier = found[place - 1], found[max(place - 2, 0)]
    cast = before.upper == earlier.upper == ":" and earlier.start + 1 == before.start
    if before.upper == "AS" or cast:
        return True
    if found[place].upper == "OPERATOR":
        return [each.upper for each in found[place + 2 : place + 4]] == ["PG_CATALOG", "."]
    if before.upper == ")":  # DISTINCT ON (a) f(b), a OPERATOR(+) f(b)
        return found[brackets.get(place - 1, 0) - 1].upper not in ("ON", "OPERATOR")
    end = brackets.get(place + 1, len(found)) + 1
    after = [each.upper for each in found[end : end + 6]]
    if before.upper not in ("WITH", "RECURSIVE", ",") or after[:1] != ["AS"]:
        return False
    after = [word for word in after[1:] if word not in ("NOT", "MATERIALIZED")]
    query = after[1:2] in (["("], ["SELECT"], ["WITH"], ["TABLE"]) or after[1:3] == ["VALUES", "("]
    return after[:1] == ["("] and query


def _brackets(found: Sequence[Token]) -> dict[int, int]:
    """The place of the bracket that belongs to each round bracket."""
    pairs, opened = dict[int, int](), list[int]()
    for place, token in enumerate(found):
        if token.upper == "(":
            opened.append(place)
        elif token.upper == ")" and opened:
            begin = opened.pop()
            pairs |= {begin: place, place: begin}
    return pairs


def _refused(why: str) -> QueryError:
    return QueryError(ErrorKind.PERMISSION, why)
