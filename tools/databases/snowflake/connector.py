"""Snowflake by its own connector, which is imported in ``session`` and its neighbours."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, is_installed, missing_extra
from quorum.tools.databases.base import Account, Snapshot
from quorum.tools.databases.postgres.errors import sentence
from quorum.tools.databases.server import Gone, Link, Refusal, ServerConnector
from quorum.tools.databases.snowflake.errors import driver_errors, failure, query_error
from quorum.tools.databases.snowflake.session import Session, SnowflakeLink
from quorum.tools.databases.snowflake.url import Place, Target, together
from quorum.tools.databases.texts import unsendable
from quorum.tools.query import Estimate, Limits, QueryError

HINTS = (
    (
        "(?i)password|token|authenticat|JWT|empty",
        "Who asks stands in connections.toml (?connection=NAME) or in the URL, with a password (or "
        "SNOWFLAKE_PASSWORD), ?key_file=FILE (its passphrase in PRIVATE_KEY_PASSPHRASE), "
        "?authenticator=externalbrowser, or ?authenticator=oauth or programmatic_access_token with "
        "?token_file=FILE or SNOWFLAKE_TOKEN.",
    ),
    ("(?i)database|schema|warehouse|role", "Check the URL's names, and that the role may use them."),
)
"""What to do, by what the server says."""
REACH = "Is the account's name right, and can this machine reach Snowflake?"


class SnowflakeConnector(ServerConnector):
    """``snowflake://user@account/database/schema``; ``url.EXAMPLE`` says what else a URL may name.

    Snowflake has no read-only session: ``open`` proves none. What is sent is held to ``grammar``
    beside the guard; the role should be one that may only SELECT.
    """

    dialect = "snowflake"
    scheme = "snowflake"
    links = 8
    estimates = bills = True

    def __init__(self, target: Target) -> None:
        super().__init__()
        self._session = Session(target)

    @classmethod
    def from_url(cls, url: str) -> Self:
        target = Target.of(url)
        if not is_installed("snowflake.connector"):
            raise missing_extra("snowflake", "A Snowflake database", needs="snowflake-connector-python")
        return cls(target)

    @classmethod
    def joined(cls, urls: Sequence[str]) -> Self | None:
        """Databases of one account, for the same login."""
        targets = [Target.of(url) for url in urls]
        if any(replace(each, places=()) != replace(targets[0], places=()) for each in targets):
            return None
        return cls(replace(targets[0], places=together(place for each in targets for place in each.places)))

    @property
    def target(self) -> Target:
        """What may be read; whole once it is open."""
        return self._session.target

    @property
    def name(self) -> str:
        """The database's name, for people."""
        return self.target.current.database if self.target.places else self.target.connection

    @property
    def place(self) -> str:
        return self.target.place

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self._session.close)

    async def catalog(self, *, samples: int = 3) -> Catalog:
        return (await self.snapshot(samples=samples)).catalog

    async def snapshot(self, before: Snapshot | None = None, *, samples: int = 3) -> Snapshot:
        from quorum.tools.databases.snowflake.catalog import introspect

        return await introspect(self, before, samples)

    async def identity(self) -> tuple[str, ...]:
        from quorum.tools.databases.snowflake.account import identity_of

        return await identity_of(self)

    async def account(self) -> Account:
        from quorum.tools.databases.snowflake.account import account_of

        return await account_of(self)

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:
        self._check_open()
        return self.unsendable(sql) or await self.answered(
            sql, limits, lambda link: _estimate(link, sql, limits)
        )

    async def ask(self, sql: str, limits: Limits) -> list[dict[str, Any]]:
        """The rows of a statement of Quorum's own, which may be SHOW.

        Raises:
            Gone, Refusal, TimeoutError, DatabaseUnavailable: There are none to be had.
        """
        self._check_open()
        async with self._slots:
            return await self.on_link(limits.seconds, lambda link: _rows(link, sql, limits))

    async def connected(self) -> Link:
        try:
            return await self._logged_in()
        except ConfigurationError as error:
            raise DatabaseUnavailable(str(error.args[0]), hint=error.hint) from None
        except Gone as error:
            raise self._unreachable(error) from None
        except driver_errors() as error:
            if "requested schema" in str(error) and self.target.places:
                raise await self._schema_hidden() from None
            raise self._unreachable(failure(error)) from None

    async def _schema_hidden(self) -> DatabaseUnavailable:
        """Why there is no session in the schema that the URL names, as a session without it tells."""
        from quorum.tools.databases.snowflake.catalog import missing_right

        wanted = self.target.current
        async with SnowflakeConnector(replace(self.target, places=(Place(wanted.database),))) as database:
            try:
                return await missing_right(database, self.place, (wanted,), {})
            except (Gone, Refusal, TimeoutError) as error:
                return self._unreachable(error if isinstance(error, Refusal) else Gone(str(error)))

    async def _logged_in(self) -> Link:
        """A link on the session that is there, or on a new one."""
        link = SnowflakeLink(self._session)
        try:
            with suppress(Gone):
                await link.begin(0)
            if not link.sound:
                await link.close()
                link = SnowflakeLink(self._session)
            await link.in_thread(self._session.log_in)
        except BaseException:
            await link.close()
            raise
        return link

    def _unreachable(self, why: Gone | Refusal) -> DatabaseUnavailable:
        reason = self.scrubbed(why.message if isinstance(why, Refusal) else str(why))
        hint = next((hint for words, hint in HINTS if re.search(words, reason)), REACH)
        return DatabaseUnavailable(f"{self.place} cannot be opened: {reason}", hint=hint)

    def unsendable(self, sql: str) -> QueryError | None:
        return unsendable(sql, "snowflake")

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:  # noqa: ARG002
        return query_error(refusal)

    def scrubbed(self, text: str) -> str:
        return sentence(self.target.scrubbed(text))


async def _estimate(link: Link, sql: str, limits: Limits) -> Estimate:
    assert isinstance(link, SnowflakeLink)
    return await link.estimate(sql, limits)


async def _rows(link: Link, sql: str, limits: Limits) -> list[dict[str, Any]]:
    assert isinstance(link, SnowflakeLink)
    return await link.rows(sql, limits)
