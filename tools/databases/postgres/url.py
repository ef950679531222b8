"""``postgresql://…`` as the parameters of a connection.

No message shows the URL: where it is malformed, the password may stand anywhere.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from urllib.parse import unquote

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import ServerTarget, names_in, server_options

OPTIONS = (
    *("application_name", "channel_binding", "connect_timeout", "dbname", "gssencmode", "host", "hostaddr"),
    *("keepalives", "keepalives_count", "keepalives_idle", "keepalives_interval", "krbsrvname"),
    *("load_balance_hosts", "passfile", "password", "port", "require_auth", "service", "sslcert", "sslcrl"),
    *("sslkey", "sslmode", "sslnegotiation", "sslpassword", "sslrootcert", "target_session_attrs"),
    *("tcp_user_timeout", "user"),
)
"""What libpq takes; what would change the session (``options``) is not among it."""
EXAMPLE = (
    "Write postgresql://user:password@host:5432/database?schema=a,b. What is left out comes from libpq's own "
    "places (PGHOST, PGUSER, .pgpass, a service). In a password / @ : ? # and % are written "
    "%2F %40 %3A %3F %23 %25."
)
_HOST = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\[\]:]*)(?::(?P<port>\d*))?")


@dataclass(frozen=True)
class Target(ServerTarget):
    """The parts of a URL; ``parameters`` are libpq's."""

    schemas: tuple[str, ...] = ()
    secrets = ("password", "sslpassword")

    @classmethod
    def of(cls, url: str) -> Target:
        """Parse ``postgresql://`` or ``postgres://``.

        Raises:
            ConfigurationError: It is malformed.
        """
        rest, _, query = url.partition("://")[2].partition("?")
        authority, _, database = rest.partition("/")
        userinfo, _, hosts = authority.rpartition("@")
        if "/" in database or "#" in rest or "@" in database or "@" in userinfo:
            raise ConfigurationError("The database's URL is malformed.", hint=EXAMPLE)
        user, _, password = userinfo.partition(":")
        named = _hosts(hosts) | {"user": user, "password": password, "dbname": database}
        parameters = {name: unquote(value) for name, value in named.items() if value}
        options = server_options(query, (*OPTIONS, "schema"), "PostgreSQL", EXAMPLE)
        schemas = names_in(options.pop("schema", ""))
        return cls(parameters | options, schemas)

    def joined(self, other: Target) -> Target | None:
        """Return the target with the schemas of both; None if they are not one database's, for one user."""
        if other.parameters != self.parameters:
            return None
        both = dict.fromkeys((*self.schemas, *other.schemas)) if self.schemas and other.schemas else ()
        return replace(self, schemas=tuple(both))

    @property
    def place(self) -> str:
        """The database's place, for people."""
        return f"postgresql://{self.address}/{self.parameters.get('dbname', '')}"


def _hosts(text: str) -> dict[str, str]:
    """``host`` and ``port`` as libpq takes them: lists where several are named."""
    found = [_HOST.fullmatch(part) for part in text.split(",")]
    known = [each for each in found if each]
    if len(known) < len(found):
        raise ConfigurationError("The host or port in the database's URL is malformed.", hint=EXAMPLE)
    hosts = ",".join(each["host"].strip("[]") for each in known)
    ports = ",".join(each["port"] or "" for each in known)
    return {"host": hosts, "port": ports if ports.strip(",") else ""}
