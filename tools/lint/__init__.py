"""The lint: tables and columns are checked against the catalog before the database is asked.

It saves a database call and gives the refiner what databases do not: the position, the nearest
names, where a column really is. It never guesses: where a name may be right, it is silent.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import count, islice
from typing import TYPE_CHECKING, Any

from quorum.knowledge.catalog import Column, Table
from quorum.tools.lint.tables import CaseRules, Tables
from quorum.tools.query import ErrorKind, QueryError
from quorum.tools.sql import dialect_name

if TYPE_CHECKING:
    from sqlglot import exp

    from quorum.knowledge.catalog import Catalog
    from quorum.tools.guard.text import Allowed, Passed
    from quorum.tools.lint.lineage import Masks

__all__ = ["Linter"]

CLOSED = QueryError(
    ErrorKind.REFUSED,
    "Only a single query over the schema's tables may run here: EXPLAIN, PRAGMA, SHOW, DESCRIBE, scripts and "
    "functions that tell of the database itself are closed.",
    by="guard",
)

_NUMBERS = count()
_SHOWN = 3  # problems in one message: enough to repair in one go, few enough to read


class Linter:
    """Checks queries against one catalog, which is indexed once, at the first check.

    Attributes:
        number: Its own in this process, by which the guard's process knows it.
        verdicts: Of ``quorum.tools.guard.allowed`` by SQL text: what may run, or why nothing may.

    Args:
        catalog: Names in the database's true case.

    Raises:
        ConfigurationError: The catalog's dialect is unknown.
    """

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.number = next(_NUMBERS)
        self.verdicts: dict[str, Allowed | QueryError] = {}
        self._names = CaseRules(dialect_name(catalog.dialect))

    @cached_property
    def _tables(self) -> Tables:
        return Tables(self.catalog, self._names)

    @cached_property
    def outline(self) -> Catalog:
        """The catalog as far as the lint looks at it, quick to hand over: names, types and fields."""
        known: dict[tuple[object, ...], Column] = {}
        tables = []
        for table in self.catalog.tables:
            columns = tuple(
                known.setdefault((c.name, c.type, c.fields), Column(c.name, c.type, fields=c.fields))
                for c in table.columns
            )
            tables.append(Table(table.name, columns, table.schema, table.database, table.kind))
        withheld = self.catalog.withheld and replace(self.catalog.withheld, tables=frozenset(), key=b"")
        bare: dict[str, Any] = {"notes": (), "left_out": (), "filtered": ()}
        return replace(self.catalog, tables=tuple(tables), withheld=withheld, **bare)

    def prepare(self) -> None:
        """Index the catalog now; else the first check does, and the first one that finds a name wrong."""
        self._tables.prepare()

    def judge(self, found: Passed) -> Passed | QueryError:
        """Return what the guard passed, without its trees, or the first problem.

        Where rules withhold something, only queries may run: what inspects a database names and shows what it
        likes.
        """
        from quorum.tools.lint.resolver import inspects

        closed = self._tables.closed
        if closed and (found.kind != "query" or found.script or inspects(found.tree, found.dialect)):
            return CLOSED
        if problem := self.lint(found.tree):
            return problem
        masks: Masks = False
        if found.tree is not None and (withheld := self.catalog.withheld) and withheld.columns:
            from quorum.tools.lint.lineage import Lineage

            masks = Lineage(self._tables, withheld.columns).masks(found.tree)
        return replace(found, tree=None, script=(), masks=masks)

    def lint(self, tree: exp.Expr | None) -> QueryError | None:
        """Return the first problem, with up to two more; None if nothing is wrong.

        Args:
            tree: ``Passed.tree``; None (an inspection) has no problem.
        """
        problems = list(islice(self.problems(tree), _SHOWN))
        if not problems:
            return None
        return replace(problems[0], also=tuple(problem.describe() for problem in problems[1:]))

    def problems(self, tree: exp.Expr | None) -> Iterator[QueryError]:
        """Yield every table and column that does not resolve, in the order of the text, each once.

        The kinds are ``table_not_found``, ``column_not_found``, ``ambiguous_column``, and ``syntax`` where
        the name is a keyword; suggestions are written as the query must write them. Looking for them takes
        long, so it is done when the next problem is asked for.
        """
        from quorum.tools.lint.messages import Messages
        from quorum.tools.lint.resolver import Resolver

        if tree is None:
            return
        resolver, messages = Resolver(self._tables, tree.meta.get("variables", ())), Messages(self._tables)
        resolver.query(tree, None, {})
        if self._names.strict or self._tables.closed:
            resolver.check_other_tables(tree)
        messages_given: set[str] = set()
        seen: set[tuple[object, ...]] = set()
        for issue in sorted(resolver.issues, key=lambda issue: issue.place):
            if issue.key in seen:
                continue
            seen.add(issue.key)
            error = messages.error(issue)
            if error is not None and error.message not in messages_given:
                messages_given.add(error.message)
                yield error
