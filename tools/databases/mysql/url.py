"""``mysql://…`` as the parameters of a connection. No message shows the URL: it may hold a password."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import ServerTarget, names_in, server_options

OPTIONS = ("option_file", "socket", "ssl_ca", "ssl_cert", "ssl_key", "ssl_verify")
USUAL_OPTION_FILE = Path("~/.my.cnf")
EXAMPLE = (
    "Write mysql://user:password@host:3306/database?schema=a,b. What is left out comes from an option file "
    "(~/.my.cnf, or ?option_file=PATH). In a password / @ : ? # and % are written %2F %40 %3A %3F %23 %25."
)
_PLACE = re.compile(
    r"(?:(?P<user>[^:@/]*)(?::(?P<password>[^@/]*))?@)?"
    r"(?:\[(?P<ipv6>[0-9A-Fa-f:.]+)\]|(?P<host>[^\[\]:/@]*))(?::(?P<port>\d+))?(?:/(?P<database>[^/@#]*))?"
)


@dataclass(frozen=True)
class Target(ServerTarget):
    """The parts of a URL.

    Attributes:
        schemas: Databases whose tables are shown; the one in the URL if none is named apart.
    """

    schemas: tuple[str, ...] = ()

    @classmethod
    def of(cls, url: str) -> Target:
        """Parse ``mysql://`` or ``mariadb://``.

        Raises:
            ConfigurationError: It is malformed, or names no database.
        """
        rest, _, query = url.partition("://")[2].partition("?")
        found = _PLACE.fullmatch(rest)
        if found is None:
            raise ConfigurationError("The database's URL is malformed.", hint=EXAMPLE)
        named = {name: unquote(found[name] or "") for name in ("user", "password", "database")}
        named["host"] = found["ipv6"] or unquote(found["host"] or "")
        parameters: dict[str, Any] = {name: value for name, value in named.items() if value}
        if found["port"]:
            parameters["port"] = int(found["port"])
        options = server_options(query, (*OPTIONS, "schema"), "MySQL", EXAMPLE)
        more = names_in(options.pop("schema", ""))
        schemas = tuple(dict.fromkeys(name for name in (named["database"], *more) if name))
        if not schemas:
            raise ConfigurationError("The URL names no database.", hint=EXAMPLE)
        parameters.setdefault("database", schemas[0])
        return cls(parameters | _driver_options(options), schemas)

    def joined(self, other: Target) -> Target | None:
        """Return the target with the databases of both; None if they are not one server's, for one user."""
        if other.parameters | {"database": ""} != self.parameters | {"database": ""}:
            return None
        return replace(self, schemas=tuple(dict.fromkeys((*self.schemas, *other.schemas))))

    @property
    def server(self) -> str:
        """The server, as far as the URL names it."""
        known = ("host", "port", "unix_socket", "read_default_file")
        return repr({name: self.parameters.get(name) for name in known})

    @property
    def place(self) -> str:
        """The database's place, for people."""
        return f"mysql://{self.address}/{self.parameters['database']}"


def _driver_options(options: dict[str, str]) -> dict[str, Any]:
    """The driver's names of the URL's options."""
    found: dict[str, Any] = {
        name: options[name] for name in ("ssl_ca", "ssl_cert", "ssl_key") if name in options
    }
    if "socket" in options:
        found["unix_socket"] = options["socket"]
    if "ssl_verify" in options:
        if options["ssl_verify"] not in ("ca", "identity"):
            raise ConfigurationError("ssl_verify is ca or identity.", hint=EXAMPLE)
        found |= {"ssl_verify_cert": True, "ssl_verify_identity": options["ssl_verify"] == "identity"}
    if "option_file" in options:
        found["read_default_file"] = options["option_file"]
    return found
