"""Snowflake by its own connector, which is imported in ``session`` and its neighbours."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from contextlib import suppress
from dataclasses import replace
from typing import Any

from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable
from quorum.tools.databases.base import Account
from quorum.tools.databases.introspection import CATALOG_SECONDS, listed, quoted
from quorum.tools.databases.server import GRACE_SECONDS, Gone, Refusal, ServerConnector
from quorum.tools.databases.snowflake.catalog import introspect, missing_right
from quorum.tools.databases.snowflake.errors import driver_errors, failure, query_error
from quorum.tools.databases.snowflake.session import Session, SnowflakeLink
from quorum.tools.databases.snowflake.url import Schemas, Target
from quorum.tools.query import Limits, QueryError
from quorum.tools.urls import names_in

LIMITS = Limits(rows=10_000, seconds=CATALOG_SECONDS)
ROLES = 40
"""Roles that are looked into; one role may hold others."""
SHOWN = 3
"""Objects that a sentence names."""
WHO = """
    SELECT CURRENT_USER() AS who, CURRENT_ROLE() AS role, CURRENT_SECONDARY_ROLES() AS others
"""
ADMINISTRATORS = ("ACCOUNTADMIN", "ORGADMIN", "SECURITYADMIN", "SYSADMIN", "USERADMIN")
HARMLESS = ("SELECT", "USAGE", "REFERENCES", "MONITOR", "READ", "REFERENCE_USAGE")
"""Privileges that change nothing; USAGE of a procedure does."""


class SnowflakeConnector(ServerConnector[SnowflakeLink, Target]):
    """``snowflake://user@account/database/schema``; ``url.EXAMPLE`` says what else a URL may name.

    Snowflake has no read-only session: ``open`` proves none. What is sent is held to the guard's rules and to
    the places that the URL names (``scope``); the role should be one that may only SELECT.
    """

    dialect = "snowflake"
    scheme = "snowflake"
    urls = Target
    driver = ("snowflake.connector", "snowflake-connector-python", "A Snowflake database")
    links = 8
    estimates = bills = True
    hints = (
        (
            "(?i)password|token|authenticat|JWT|empty",
            "Who asks stands in connections.toml (?connection=NAME) or in the URL, with a password (or "
            "SNOWFLAKE_PASSWORD), ?key_file=FILE (its passphrase in PRIVATE_KEY_PASSPHRASE), "
            "?authenticator=externalbrowser, or ?authenticator=oauth or programmatic_access_token with "
            "?token_file=FILE or SNOWFLAKE_TOKEN.",
        ),
        ("(?i)database|schema|warehouse|role", "Check the URL's names, and that the role may use them."),
    )
    reach = "Is the account's name right, and can this machine reach Snowflake?"

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._session = Session(target)

    @property
    def name(self) -> str:
        return self.target.current.database if self.target.places else self.target.connection

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self._session.close)

    catalog = introspect

    async def identity(self) -> tuple[str, ...]:
        """See ``Connector.identity``; policies may hang on any role of a session."""
        known = {name: self.target.parameters.get(name) for name in ("account", "host", "port")}
        places = [f"place: {place.database} {place.schemas}" for place in self.target.places]
        told = known | await self.who_asks()
        return (*places, *(f"{name}: {value}" for name, value in told.items()))

    async def account(self) -> Account:
        """See ``Connector.account``; roles that a role holds count as its own."""
        who = await self.who_asks()
        others = str(json.loads(who["OTHERS"] or "{}").get("roles", ""))
        try:
            roles = await self._roles([who["ROLE"], *names_in(others)])
        except (Gone, TimeoutError) as error:
            message = f"The account's rights cannot be read: {self.scrubbed(str(error))}"
            raise DatabaseUnavailable(message) from None
        acts = [f"acts as {role}" for role in roles if role in ADMINISTRATORS]
        name = f"{who['WHO']} in the role {who['ROLE']}"
        return Account(name, (*acts, *_sentences(roles)), sealed=False)

    async def who_asks(self) -> dict[str, Any]:
        """User and roles, by the names in ``WHO``.

        Raises:
            DatabaseUnavailable: They cannot be read.
        """
        try:
            (who,) = await self.rows(WHO.strip(), LIMITS)
        except (Gone, TimeoutError, Refusal) as error:
            raise DatabaseUnavailable(f"Who asks cannot be read: {self.scrubbed(str(error))}") from None
        return who

    async def _roles(self, first: list[str]) -> dict[str, list[dict[str, Any]]]:
        """The grants of roles, and of those that they hold."""
        found: dict[str, list[dict[str, Any]]] = {}
        todo = [role for role in first if role]
        while todo and len(found) < ROLES:
            role = todo.pop(0)
            if role in found:
                continue
            try:
                found[role] = await self.rows(f"SHOW GRANTS TO ROLE {quoted(role)}", LIMITS)
            except Refusal:  # it may act in the role, but not look at it
                found[role] = [{"privilege": "UNKNOWN RIGHTS", "granted_on": "ROLE", "name": role}]
            held = (
                each for each in found[role] if (each["granted_on"], each["privilege"]) == ("ROLE", "USAGE")
            )
            todo += [grant["name"].strip('"') for grant in held]
        return found

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
        async with SnowflakeConnector(replace(self.target, places=(Schemas(wanted.database),))) as database:
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


def _sentences(roles: dict[str, list[dict[str, Any]]]) -> list[str]:
    """Return what roles may do beyond reading, by privilege."""
    found: dict[str, list[str]] = defaultdict(list)
    for grant in (grant for grants in roles.values() for grant in grants):
        privilege, kind = str(grant["privilege"]), str(grant["granted_on"])
        if privilege not in HARMLESS or (privilege, kind) == ("USAGE", "PROCEDURE"):
            found[privilege].append(f"{kind.replace('_', ' ').lower()} {grant['name']}")
    return [f"has {name} on {listed(list(dict.fromkeys(on)), SHOWN)}" for name, on in found.items()]
