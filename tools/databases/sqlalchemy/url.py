"""SQLAlchemy URLs as they are asked for. No message shows one: it may hold secrets, also as parameters."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from urllib.parse import unquote, unquote_plus

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.databases.sqlalchemy.engines import ENGINES, NAMES, Engine
from quorum.tools.urls import REDACTED, url_secrets

PREFIX = "sqlalchemy+"
SCHEMAS = "quorum_schema"
EXAMPLE = (
    "Write dialect+driver://user:password@host:port/database as SQLAlchemy has it; ?quorum_schema=a,b names "
    "the schemas that may be read. In a password / @ : ? # and % are written %2F %40 %3A %3F %23 %25."
)
_PLACE = re.compile(
    r"(?:(?P<user>[^:@/?]*)[^@/?]*@)?(?P<host>\[[^\]]*\]|[^:/?@]*)(?P<port>:\d+)?(?:/(?P<database>[^?@]*))?"
)


@dataclass(frozen=True)
class Target:
    """The parts of a URL.

    Attributes:
        url: For SQLAlchemy, without what is Quorum's.
        name: SQLAlchemy's of the dialect.
        place: Where the database is, for people.
        user: Who asks; "nobody" where the URL does not say.
        schemas: Those whose tables are shown; none for the account's own default.
    """

    url: str = field(repr=False)
    name: str
    place: str
    user: str = ""
    schemas: tuple[str, ...] = ()
    _secrets: tuple[str, ...] = field(default=(), repr=False)

    @classmethod
    def of(cls, url: str) -> Target:
        """Parse a URL, with or without the prefix ``sqlalchemy+``.

        Raises:
            ConfigurationError: It is malformed, or its dialect is none of ``ENGINES``.
        """
        scheme, _, rest = url.partition("://")
        plain = scheme.removeprefix(PREFIX)
        name = plain.partition("+")[0]
        engine = ENGINES.get(name)
        if engine is None:
            raise _unknown(name)
        if engine.prefixed and plain == scheme:
            hint = f"Write {name}://…, or {PREFIX}{scheme}://… to ask it through SQLAlchemy all the same."
            raise ConfigurationError(f"There is a connector for {name} itself.", hint=hint)
        before, mark, query = rest.partition("?")
        found = _PLACE.fullmatch(before)
        if found is None:
            raise ConfigurationError("The database's URL is malformed.", hint=EXAMPLE)
        kept, schemas = _options(query)
        database = unquote(found["database"] or "")
        place = f"{name}://{found['host'].strip('[]')}{found['port'] or ''}/{database}"
        text = f"{plain}://{before}{mark if kept else ''}{'&'.join(kept)}"
        user = unquote(found["user"] or "") or "nobody"
        return cls(text, name, place, user, schemas, tuple(url_secrets(url)))

    def joined(self, other: Target) -> None:
        """Return nothing: of no engine it is known what it joins."""

    @property
    def engine(self) -> Engine:
        return ENGINES[self.name]

    @property
    def database(self) -> str:
        """The database's name, for people."""
        return self.place.rpartition("/")[2] or self.name

    def scrubbed(self, text: str) -> str:
        """A text of a driver's without secrets."""
        for secret in sorted(self._secrets, key=len, reverse=True):
            text = text.replace(secret, REDACTED)
        return text


def _unknown(name: str) -> ConfigurationError:
    if name in NAMES:
        hint = f"Write {NAMES[name]}://…, which is SQLAlchemy's name."
        return ConfigurationError(f"SQLAlchemy has no dialect {name}.", hint=hint)
    if name in ("sqlite", "duckdb", "snowflake", "bigquery", "mysql", "mariadb"):
        message = (
            f"There is a connector for {name} itself, which keeps more promises than SQLAlchemy's could."
        )
        return ConfigurationError(message, hint=f"Write {name}://….")
    message = f"SQL of {name or 'no engine'} cannot be judged: there is no reader for it, so it is not asked."
    return ConfigurationError(message, hint=f"SQLAlchemy's dialects that can be: {', '.join(ENGINES)}.")


def _options(query: str) -> tuple[list[str], tuple[str, ...]]:
    """The driver's parameters as they are written, and the schemas."""
    kept, schemas = [], list[str]()
    for part in filter(None, query.split("&")):
        name, _, value = part.partition("=")
        if name == SCHEMAS:
            schemas += [each.strip() for each in unquote_plus(value).split(",") if each.strip()]
        elif name == "plugin":
            raise ConfigurationError("SQLAlchemy's plugins are not loaded.", hint="Leave out plugin=.")
        else:
            kept.append(part)
    return kept, tuple(dict.fromkeys(schemas))
