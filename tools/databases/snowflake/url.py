"""``snowflake://account/database/schema``: what may be read, and who asks. No message shows its secrets."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final
from urllib.parse import unquote, urlsplit

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import ServerTarget, names_in, server_options

OPTIONS: Final = {
    "warehouse": "warehouse",
    "role": "role",
    "authenticator": "authenticator",
    "key_file": "private_key_file",
    "token_file": "token_file_path",
}
"""Options of a URL that are parameters of the driver's, by its name."""
EXAMPLE = (
    "Write snowflake://user@account/database/schema?warehouse=W&role=R, or snowflake://?connection=NAME for "
    "one of connections.toml. Several schemas stand behind commas; other databases of the account are named "
    "by &database=OTHER or OTHER.SCHEMA. Names mean what they mean unquoted in SQL; quotes are written %22."
)
FROM_ENVIRONMENT: Final = {
    "user": "SNOWFLAKE_USER",
    "password": "SNOWFLAKE_PASSWORD",
    "token": "SNOWFLAKE_TOKEN",
    "private_key_file_pwd": "PRIVATE_KEY_PASSPHRASE",
}
"""Variables that Snowflake's own tools read, by the driver's parameter."""
SECRETS = ("password", "token", "private_key_file_pwd", "private_key_passphrase", "passcode", "private_key")
HERE: Final = ("127.0.0.1", "localhost", "::1")
_ACCOUNT = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_NAME = re.compile(r'"(?:[^"]|"")+"|[^\W\d][\w$]*')
_AUTHENTICATOR = re.compile(r"[A-Za-z_]+|https://[\w./-]+")


@dataclass(frozen=True)
class Schemas:
    """A database, or some of its schemas, by their exact names."""

    database: str
    schemas: tuple[str, ...] = ()

    def holds(self, database: str, schema: str) -> bool:
        """Return True if a schema is meant; the engine's own never is."""
        named = not self.schemas or schema in self.schemas
        return database == self.database and named and schema != "INFORMATION_SCHEMA"

    def __str__(self) -> str:
        return "/".join(filter(None, (self.database, ",".join(self.schemas))))


def together(places: Iterable[Schemas]) -> tuple[Schemas, ...]:
    """Places with each database once: all of it, if one of them means that."""
    schemas: dict[str, list[tuple[str, ...]]] = {}
    for place in places:
        schemas.setdefault(place.database, []).append(place.schemas)
    return tuple(
        Schemas(database, tuple(dict.fromkeys(n for names in found for n in names)) if all(found) else ())
        for database, found in schemas.items()
    )


@dataclass(frozen=True)
class Target(ServerTarget):
    """The parts of a URL.

    Attributes:
        places: What may be read; in the first unqualified names are looked up. None where only the named
            connection tells.
        connection: Name of a connection in ``connections.toml``.
    """

    secrets = SECRETS
    places: tuple[Schemas, ...] = ()
    connection: str = ""

    @classmethod
    def of(cls, url: str) -> Target:
        """Parse ``snowflake://``.

        Raises:
            ConfigurationError: It is malformed, or names no database.
        """
        rest, _, query = url.partition("://")[2].partition("?")
        before, _, path = rest.partition("/")
        who, at, account = before.rpartition("@")
        user, _, password = who.partition(":")
        if "@" in password or (at and not user) or (account and not _ACCOUNT.fullmatch(account)):
            raise ConfigurationError("The database's URL is malformed.", hint=EXAMPLE)
        known = (*OPTIONS, "connection", "endpoint", "database")
        options = server_options(query, known, "Snowflake", EXAMPLE)
        if not _AUTHENTICATOR.fullmatch(options.get("authenticator", "snowflake")):
            raise ConfigurationError("The authenticator is none of Snowflake's.", hint=EXAMPLE)
        connection, endpoint, others = (options.pop(name, "") for name in known[len(OPTIONS) :])
        given = {"user": unquote(user), "password": unquote(password), "account": account}
        parameters = {name: value for name, value in given.items() if value} | _endpoint(endpoint)
        parameters |= {OPTIONS[name]: value for name, value in options.items()}
        if connection and (account or path):
            raise ConfigurationError("A URL names an account or a connection, not both.", hint=EXAMPLE)
        if not connection and not (account and path):
            raise ConfigurationError("The URL names no account, or no database.", hint=EXAMPLE)
        places = [_other(name) for name in names_in(others)]
        if path:
            database, _, schemas = path.partition("/")
            names = dict.fromkeys(exact(unquote(each).strip()) for each in schemas.split(",") if schemas)
            places.insert(0, Schemas(exact(unquote(database).strip()), tuple(names)))
        return cls(parameters, tuple(places), connection)

    def joined(self, other: Target) -> Target | None:
        """Return the target with the places of both; None if they are not one account's, for one login."""
        if replace(other, places=self.places) != self:
            return None
        return replace(self, places=together((*self.places, *other.places)))

    @property
    def place(self) -> str:
        """The database's place, for people."""
        if self.connection:
            return f"snowflake://?connection={self.connection}"
        return f"snowflake://{self.parameters['account']}/{' + '.join(map(str, self.places))}"

    @property
    def current(self) -> Schemas:
        """The place where unqualified names are looked up."""
        return self.places[0]

    def allows(self, database: str, schema: str) -> bool:
        """Return True if tables of that schema may be read, by exact names."""
        return any(place.holds(database, schema) for place in self.places)

    def completed(self, connection: Mapping[str, Any]) -> Target:
        """With what the named connection and the environment say beside the URL.

        Raises:
            ConfigurationError: No database is named anywhere.
        """
        found = {name: value for name, value in connection.items() if name not in ("database", "schema")}
        found["private_key_file"] = found.pop("private_key_path", found.get("private_key_file"))
        found |= self.parameters
        for name, variable in FROM_ENVIRONMENT.items():
            if (value := os.environ.get(variable)) and not found.get(name):
                found[name] = value
        if not found.get("private_key_file"):
            found.pop("private_key_file_pwd", None)
        places = self.places
        if self.connection and connection.get("database"):
            schema = str(connection.get("schema") or "")
            main = Schemas(exact(str(connection["database"])), (exact(schema),) if schema else ())
            places = (main, *places)
        if not places:
            message = f"The connection {self.connection} names no database."
            raise ConfigurationError(message, hint="Name one there, or add &database=NAME to the URL.")
        return replace(self, parameters={k: v for k, v in found.items() if v is not None}, places=places)


def exact(name: str) -> str:
    """The name that an identifier means: upper case, unless it stands in double quotes.

    Raises:
        ConfigurationError: It is none.
    """
    if not _NAME.fullmatch(name):
        raise ConfigurationError("The URL holds what is no name of Snowflake's.", hint=EXAMPLE)
    return name[1:-1].replace('""', '"') if name.startswith('"') else name.upper()


def _other(text: str) -> Schemas:
    """``DATABASE`` or ``DATABASE.SCHEMA``."""
    names = re.fullmatch(rf"({_NAME.pattern})(?:\.({_NAME.pattern}))?", text.strip())
    if names is None:
        raise ConfigurationError("database=NAME or NAME.SCHEMA names another database.", hint=EXAMPLE)
    return Schemas(exact(names[1]), (exact(names[2]),) if names[2] else ())


def _endpoint(text: str) -> dict[str, Any]:
    """Host, port and protocol of a private link or an emulator; only this machine is asked without TLS."""
    if not text:
        return {}
    try:
        parts = urlsplit(text)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        host, port = "", None
    if not host or parts.path.strip("/") or parts.scheme not in ("http", "https"):
        raise ConfigurationError("endpoint is https://HOST or https://HOST:PORT.", hint=EXAMPLE)
    if parts.scheme == "http" and host not in HERE:
        raise ConfigurationError("Only an endpoint on this machine is asked without TLS.", hint=EXAMPLE)
    return {"host": host, "port": port or (443 if parts.scheme == "https" else 80), "protocol": parts.scheme}
