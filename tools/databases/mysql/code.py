"""Code of a MySQL or MariaDB database's own that a plain query would call.

A read-only transaction stops neither sleeping, nor locks, nor reading and writing the server's files, nor SET
GLOBAL; the guard lets no query name what does so. But a function that the server lacks is looked for in the
current database: a stored one may bear the name of a harmless one that another server has, as ``split_part``.
And a view calls whatever it was made of, already when the catalog is read.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from quorum.tools.databases.texts import Token, Unreadable, calls, tokens, uncallable
from quorum.tools.query import ErrorKind, QueryError

FUNCTIONS = """
    SELECT DATABASE() AS home, routine_name AS name FROM information_schema.routines
    WHERE routine_schema = DATABASE() AND routine_type = 'FUNCTION'
"""
VIEWS = """
    SELECT DATABASE() AS home, table_schema AS place, table_name AS name, view_definition AS definition
    FROM information_schema.views WHERE table_schema NOT IN ('mysql', 'sys', 'performance_schema')
"""
UNSEEN = "what it is made of may not be seen (GRANT SHOW VIEW lets Quorum look)"
Name = tuple[str, str]
OwnRows = Callable[[str, str], Awaitable[list[dict[str, Any]]]]
"""``ServerConnector.own_rows``."""


@dataclass(frozen=True)
class OwnCode:
    """The functions and views that a query may not name.

    Attributes:
        functions: Names, in lower case, of the functions of the current database.
        views: Why each view may not be read, by database and name in lower case.
    """

    home: str = ""
    functions: frozenset[str] = frozenset()
    views: Mapping[Name, str] = field(default_factory=dict)

    @classmethod
    async def of(cls, own_rows: OwnRows) -> OwnCode:
        """Read it from a server. A function that the account may not see it may not call either.

        Raises:
            DatabaseUnavailable: It cannot be read.
        """
        what = "The database's own functions and views"
        functions, views = await own_rows(FUNCTIONS, what), await own_rows(VIEWS, what)
        home = "".join({str(row["home"] or "").lower() for row in (*functions, *views)})
        texts = {(row["place"].lower(), row["name"].lower()): row["definition"] or "" for row in views}
        harmful = await asyncio.to_thread(_harmful, texts)
        return cls(home, frozenset(row["name"].lower() for row in functions), harmful)

    def refusal(self, sql: str) -> QueryError | None:
        """Return why a query may not run; None if it names nothing of the kind."""
        found = tokens(sql, "mysql")
        for token, after in pairwise(found):
            if after.upper == "(" and token.text.lower() in self.functions:
                why = f"{token.text} is a function of the database's own, which may do more than read."
                return QueryError(ErrorKind.PERMISSION, why)
        for place, name in _named(found, self.home) if self.views else ():
            if why := self.views.get((place, name), ""):
                return QueryError(ErrorKind.PERMISSION, f"The view {place}.{name} is not read: {why}.")
        return None


def _harmful(texts: Mapping[Name, str]) -> dict[Name, str]:
    """Views that call what is not known to be harmless, or read a view that does; with the reason."""
    found = {view: why for view, text in texts.items() if (why := _problem(text))}
    reads = {
        view: set(_named(tokens(text, "mysql"), "")) for view, text in texts.items() if view not in found
    }
    while more := {view: found[name] for view in reads for name in reads[view] if name in found}:
        found |= more
        reads = {view: names for view, names in reads.items() if view not in found}
    return found


def _problem(definition: str) -> str:
    """Return why a view may do more than read, or "". The server quotes names of stored functions."""
    if not definition:
        return UNSEEN
    try:
        problem = uncallable(definition, "mysql")
        stored = next((each for each in calls(tokens(definition, "mysql"), "mysql") if each.quoted), None)
    except Unreadable as error:
        return str(error).rstrip(".")
    if stored:
        return f"it calls {stored.name}, a function of the database's own"
    return problem.message.rstrip(".") if problem else ""


def _named(found: Iterable[Token], home: str) -> Iterable[Name]:
    """Tables that a text may name, as database and name in lower case; columns and aliases are among them."""
    before = schema = ""
    for token in found:
        if token.kind in ("word", "name"):
            yield schema if before == "." else home, token.text.lower()
            schema = token.text.lower()
        before = token.upper
