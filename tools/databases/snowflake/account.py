"""Whom Snowflake takes a session for, and what its roles may do beyond reading."""

from __future__ import annotations

import json
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.base import Account
from quorum.tools.databases.introspection import CATALOG_SECONDS, quoted
from quorum.tools.databases.server import Gone, Refusal
from quorum.tools.query import Limits

if TYPE_CHECKING:
    from quorum.tools.databases.snowflake.connector import SnowflakeConnector

LIMITS = Limits(rows=10_000, seconds=CATALOG_SECONDS)
ROLES = 40
"""Roles that are looked into; one role may hold others."""
SHOWN = 3
"""Objects that a sentence names."""
WHO = """
    SELECT CURRENT_USER() AS who, CURRENT_ROLE() AS role, CURRENT_SECONDARY_ROLES() AS others
"""
ADMINISTRATORS = {
    "ACCOUNTADMIN": "acts as ACCOUNTADMIN, who may do everything in the account",
    "ORGADMIN": "acts as ORGADMIN, who may make accounts",
    "SECURITYADMIN": "acts as SECURITYADMIN, who may grant any right",
    "SYSADMIN": "acts as SYSADMIN, who owns warehouses and databases",
    "USERADMIN": "acts as USERADMIN, who may make users and roles",
}
WRITES = {
    "OWNERSHIP": "owns",
    "INSERT": "may insert rows into",
    "UPDATE": "may change rows of",
    "DELETE": "may delete rows of",
    "TRUNCATE": "may empty",
    "EVOLVE SCHEMA": "may add columns to",
    "MODIFY": "may change",
    "OPERATE": "may start and stop",
    "APPLY": "may apply",
    "ALL": "may do everything with",
    "WRITE": "may write files to",
    "MANAGE GRANTS": "may grant any right on",
    "EXECUTE TASK": "may run tasks of",
}
"""What a sentence says of an object, by the privilege on it."""
RUNS = ("PROCEDURE",)
"""Kinds of objects that do something where they may be used."""


async def identity_of(connector: SnowflakeConnector) -> tuple[str, ...]:
    """See ``Connector.identity``; policies may hang on any role of a session."""
    who = await who_asks(connector)
    known = ("account", "host", "port")
    where = [f"{name}: {connector.target.parameters.get(name)}" for name in known]
    places = [f"place: {place.database} {place.schemas}" for place in connector.target.places]
    return (*where, *places, *(f"{name}: {value}" for name, value in who.items()))


async def account_of(connector: SnowflakeConnector) -> Account:
    """See ``Connector.account``; roles that a role holds count as its own."""
    who = await who_asks(connector)
    try:
        roles = await _roles(connector, [who["ROLE"], *_others(who["OTHERS"])])
    except (Gone, TimeoutError) as error:
        message = f"The account's rights cannot be read: {connector.scrubbed(str(error))}"
        raise DatabaseUnavailable(message) from None
    name = f"{who['WHO']} in the role {who['ROLE']}"
    powers = [text for role, text in ADMINISTRATORS.items() if role in roles]
    return Account(name, (*powers, *_sentences(roles)), sealed=False)


async def who_asks(connector: SnowflakeConnector) -> dict[str, Any]:
    """User and roles, by the names in ``WHO``.

    Raises:
        DatabaseUnavailable: They cannot be read.
    """
    try:
        (who,) = await connector.rows(WHO.strip(), LIMITS)
    except (Gone, TimeoutError, Refusal) as error:
        raise DatabaseUnavailable(f"Who asks cannot be read: {connector.scrubbed(str(error))}") from None
    return who


def _others(told: Any) -> list[str]:
    """The secondary roles of a session, as ``CURRENT_SECONDARY_ROLES`` tells them."""
    roles = str(json.loads(told or "{}").get("roles", ""))
    return [role.strip() for role in roles.split(",") if role.strip()]


async def _roles(connector: SnowflakeConnector, first: list[str]) -> dict[str, list[dict[str, Any]]]:
    """The grants of roles, and of those that they hold."""
    found: dict[str, list[dict[str, Any]]] = {}
    todo = [role for role in first if role]
    while todo and len(found) < ROLES:
        role = todo.pop(0)
        if role in found:
            continue
        try:
            found[role] = await connector.rows(f"SHOW GRANTS TO ROLE {quoted(role)}", LIMITS)
        except Refusal:  # it may act in the role, but not look at it
            found[role] = [{"privilege": "HIDDEN", "granted_on": "ROLE", "name": role}]
        todo += [grant["name"].strip('"') for grant in found[role] if _is_role(grant)]
    return found


def _is_role(grant: dict[str, Any]) -> bool:
    return bool(grant["granted_on"] == "ROLE" and grant["privilege"] == "USAGE")


def _sentences(roles: dict[str, list[dict[str, Any]]]) -> list[str]:
    found: dict[str, list[str]] = defaultdict(list)
    for grant in (grant for grants in roles.values() for grant in grants):
        privilege, kind = str(grant["privilege"]), str(grant["granted_on"])
        what = f"{kind.replace('_', ' ').lower()} {grant['name']}"
        if privilege.startswith("CREATE"):
            found[f"may {privilege.lower()}s in"].append(what)
        elif privilege == "HIDDEN":
            found["may do what it cannot be told of in"].append(what)
        elif privilege in WRITES:
            found[WRITES[privilege]].append(what)
        elif privilege == "USAGE" and kind in RUNS:
            found["may run"].append(what)
    return [f"{text} {_few(list(dict.fromkeys(names)))}" for text, names in found.items()]


def _few(names: list[str]) -> str:
    more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
    return ", ".join(names[:SHOWN]) + more
