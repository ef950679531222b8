"""The abstract connector. A driver is imported in its own module only, inside what connects."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import ClassVar, Self

from quorum.knowledge.catalog import Catalog, Table
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult

GROUPING = (
    r"(?i)must appear in the GROUP BY clause|aggregate functions? (\w+ )?(are )?not (allowed|supported here)|"
    r"aggregate function(s| calls) cannot be nested|cannot contain aggregates|GROUP BY (term|position)|"
    r"uses ungrouped column|arguments to GROUPING|must be a grouping column|"  # PostgreSQL, DuckDB
    r"misuse of aggregate|HAVING clause on a non-aggregate|"  # SQLite
    r"neither grouped nor aggregated|aggregations of aggregations|"  # BigQuery
    r"not a valid GROUP BY expression|nor in the GROUP BY clause|invalid aggregate function|"  # Snowflake
    r"(isn't|is not) in GROUP BY|aggregated query without GROUP BY|invalid use of group function|"  # MySQL
    r"can't group on|in 'group statement'"
)
"""What engines say of a query that groups or aggregates what it may not (``ErrorKind.GROUPING``)."""


def by_code(kinds: Mapping[ErrorKind, str]) -> dict[str, ErrorKind]:
    """Return the kind of each code of an engine's errors; those of one kind are the words of a text.

    Raises:
        ValueError: A code has two kinds.
    """
    pairs = [(code, kind) for kind, codes in kinds.items() for code in codes.split()]
    if len(found := dict(pairs)) < len(pairs):
        raise ValueError("A code of an error has two kinds.")
    return found


def line_and_column(before: str) -> tuple[int, int]:
    """Return line and column, from 1, of the place after a text."""
    return before.count("\n") + 1, len(before) - before.rfind("\n")


@dataclass(frozen=True)
class Account:
    """The account that a server takes a connector for.

    Attributes:
        powers: What it may do beyond reading tables, and only the session forbids it: each ends a sentence
            that begins with the name.
        sealed: Whether the session cannot write. Else the guard and the connector's own look at each text are
            all that keeps the powers from being used.
        gaps: What of ``Connector``'s promises does not hold, a sentence each; where there are any, the powers
            are not known.
    """

    name: str
    powers: tuple[str, ...] = ()
    sealed: bool = True
    gaps: tuple[str, ...] = ()


class Connector(ABC):
    """One database, read-only.

    Whatever SQL reaches ``run``, it writes nothing. It is created unopened by ``from_url`` and
    used as an async context manager; all its methods may be called concurrently from one event loop.
    """

    dialect: str
    """sqlglot's name of the dialect; empty until ``open`` where it depends on the database."""

    estimates: bool = False
    """Whether ``estimate`` tells what most queries would read."""

    bills: bool = False
    """Whether it is paid for by what is read, or by the time that takes: nothing is read there that nobody
    asked for."""

    live: ClassVar[bool] = True
    """Whether queries can run at all; False where only the schema is available
    (``quorum.tools.databases.schema``)."""

    several: ClassVar[bool] = False
    """Whether it reads several databases as one, in parts that its results tell (``QueryResult.parts``)."""

    scheme: ClassVar[str]
    """The URL scheme that selects this connector, e.g. ``sqlite``."""

    @classmethod
    @abstractmethod
    def from_url(cls, url: str) -> Self:
        """Make an unopened connector.

        Raises:
            ConfigurationError: The URL is malformed for this engine, or its driver is not
                installed (the hint names the extra to install).
        """

    @classmethod
    def joined(cls, urls: Sequence[str]) -> Self | None:  # noqa: ARG003
        """An unopened connector that reads all of several URLs of its scheme and joins their tables itself.

        Returns:
            None where the engine cannot: they are other servers, accounts or files.

        Raises:
            ConfigurationError: As ``from_url``.
        """
        return None

    def owner(self, table: Table) -> tuple[Connector, Table]:
        """Return the database that holds a table of the catalog, and the table as it is there: another one
        only if several databases are read as one."""
        return self, table

    @abstractmethod
    async def open(self) -> None:
        """Connect and prove that the session is read-only, by a write that must fail.

        Where the engine knows no such session (BigQuery), ``run`` has it say of each text that it is a query.
        A closed connector may be opened again.

        Raises:
            DatabaseUnavailable: Missing, corrupt, locked, refused, or not a database; the
                message names which and the hint says what to do. Never creates a database.
        """

    @abstractmethod
    async def close(self) -> None:
        """Release everything; safe to call twice or unopened.

        Running queries are killed and return an ``unavailable`` error.
        """

    async def account(self) -> Account | None:
        """Return the account that asks; None if the database knows no accounts.

        Raises:
            DatabaseUnavailable: The connection is gone.
        """
        return None

    @abstractmethod
    async def catalog(self, *, samples: int = 3) -> Catalog:
        """Introspect: tables, views, columns, types, comments, keys, row counts, nested fields.

        Internal tables are hidden. Of a table of a dozen rows at most all values are kept, of others it is
        told which columns hold NULLs and whether rows are exact duplicates. Counting and sampling are bounded
        in time: what is estimated or left out for that reason, and what could not be read (a broken view), is
        in the notes.

        Args:
            samples: Distinct sample values per column, most frequent first among the rows looked
                at, each cut to 60 characters. A column that repeats a dozen values at most shows
                them all; one whose name says that they are private shows none, and the notes say so.

        Raises:
            DatabaseUnavailable: The connection is gone, or the database holds no table.
        """

    async def identity(self) -> tuple[str, ...]:
        """Whatever decides what ``catalog`` shows: which database, who asks, what its session is told.

        No secret is among it. Catalogs of another identity are never taken for this one's
        (``quorum.tools.databases.catalog_cache``).

        Returns:
            Nothing where reading the catalog is so quick that it is not kept.

        Raises:
            DatabaseUnavailable: The connection is gone, or cannot tell.
        """
        return ()

    def stamp(self, sentence: str = "") -> str:  # noqa: ARG002
        """A text that changes with the files that a sentence of ``Catalog.left_out`` is about.

        Without a sentence, with all that the database consists of. Empty where nothing tells.
        """
        return ""

    async def reread(self, names: Collection[str], *, samples: int = 3) -> Catalog:  # noqa: ARG002
        """Read tables of ``Catalog.filtered`` again; other tables may be left out.

        Args:
            names: Their full names.

        Raises:
            DatabaseUnavailable: As ``catalog``.
        """
        return await self.catalog(samples=samples)

    @abstractmethod
    async def run(self, sql: str, limits: Limits) -> QueryResult | QueryError:
        """Run one statement that the guard has passed.

        Rows beyond ``limits.rows`` or ``limits.bytes`` are not fetched and the result says so.
        ``limits.scan`` is kept by ``quorum.tools.admission``, and here too where the engine can.
        After ``limits.seconds`` the query is cancelled for real, on the server or by killing
        its process, and a ``timeout`` error is returned. The connector stays usable.
        Cancelling the awaiting task cancels the query as well. Waiting for a free connection
        does not count towards the seconds.

        Returns:
            The result, or a ``QueryError`` whose kind is the taxonomy's, never an exception
            for what the database says about the SQL.

        Raises:
            DatabaseUnavailable: The connector is not open.
        """

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:  # noqa: ARG002
        """Estimate what a statement that the guard has passed would read, without running it; free of charge.

        What cannot be told is never a low number: ``Estimate.bytes`` is None then.

        Returns:
            None where the engine cannot tell; a ``QueryError`` where it says that the SQL is wrong, or the
            estimate could not be had within ``limits.seconds``.

        Raises:
            DatabaseUnavailable: The connector is not open.
        """
        return None

    async def __aenter__(self) -> Self:
        await self.open()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
