"""Snowflake by its own connector, which is imported in ``session`` and its neighbours."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any, Self

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases.server import GRACE_SECONDS, Gone, Refusal, ServerConnector
from quorum.tools.databases.snowflake.account import account_of, identity_of
from quorum.tools.databases.snowflake.catalog import introspect, missing_right
from quorum.tools.databases.snowflake.errors import driver_errors, failure, query_error
from quorum.tools.databases.snowflake.session import Session, SnowflakeLink
from quorum.tools.databases.snowflake.url import Place, Target, together
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


class SnowflakeConnector(ServerConnector[SnowflakeLink, Target]):
    """``snowflake://user@account/database/schema``; ``url.EXAMPLE`` says what else a URL may name.

    Snowflake has no read-only session: ``open`` proves none. What is sent is held to the guard's rules and to
    the places that the URL names (``scope``); the role should be one that may only SELECT.
    """

    dialect = "snowflake"
    scheme = "snowflake"
    parse = Target.of
    driver = ("snowflake.connector", "snowflake-connector-python", "A Snowflake database")
    links = 8
    estimates = bills = True
    hints = HINTS
    reach = "Is the account's name right, and can this machine reach Snowflake?"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._session = Session(target)

    @classmethod
    def joined(cls, urls: Sequence[str]) -> Self | None:
        """Databases of one account, for the same login."""
        targets = [Target.of(url) for url in urls]
        if any(replace(each, places=()) != replace(targets[0], places=()) for each in targets):
            return None
        return cls(replace(targets[0], places=together(place for each in targets for place in each.places)))

    @property
    def name(self) -> str:
        """The database's name, for people."""
        return self.target.current.database if self.target.places else self.target.connection

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self._session.close)

    catalog, identity, account = introspect, identity_of, account_of

    async def reread(self, names: Collection[str], *, samples: int = 3) -> Catalog:
        return await introspect(self, samples=samples, only=names)

    async def estimate(self, sql: str, limits: Limits) -> Estimate | QueryError | None:
        self._check_open()
        if problem := self.unsendable(sql):
            return problem
        found = await self.answered(sql, limits, lambda link: link.estimate(sql, limits))
        return found if isinstance(found, QueryError) else found[0]

    async def rows(self, sql: str, limits: Limits) -> list[dict[str, Any]]:
        """Return the rows of a statement of Quorum's own, which may be SHOW.

        Raises:
            Gone, Refusal, TimeoutError, DatabaseUnavailable: There are none to be had.
        """
        self._check_open()
        async with self._slots, self.link(limits.seconds) as link:
            return await link.within(link.rows(sql, limits), limits.seconds + GRACE_SECONDS)

    async def connect(self) -> SnowflakeLink:
        try:
            link = await self._logged_in()
        except ConfigurationError as error:
            raise DatabaseUnavailable(str(error.args[0]), hint=error.hint) from None
        except driver_errors() as error:
            if "requested schema" in str(error) and self.target.places:
                raise await self._schema_hidden() from None
            raise failure(error) from None
        self.target = self._session.target
        return link

    async def _schema_hidden(self) -> DatabaseUnavailable:
        """Return why there is no session in the schema that the URL names; a session without it tells."""
        wanted = self.target.current
        async with SnowflakeConnector(replace(self.target, places=(Place(wanted.database),))) as database:
            try:
                return await missing_right(database, self.place, (wanted,), {})
            except (Gone, Refusal, TimeoutError) as error:
                return self.unreachable(error)

    async def _logged_in(self) -> SnowflakeLink:
        """Make a link on the session that is there, or on a new one."""
        link = SnowflakeLink(self._session)
        try:
            with suppress(Gone):
                await link.start(0)
            if not link.sound:
                await link.close()
                link = SnowflakeLink(self._session)
            await link.in_thread(self._session.log_in)
        except BaseException:
            await link.close()
            raise
        return link

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:  # noqa: ARG002
        return query_error(refusal)
