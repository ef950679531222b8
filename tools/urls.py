"""Database and endpoint URLs: what in them is secret, how they are shown, where relative ones begin."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import parse_qsl, quote, unquote, unquote_plus, urlsplit

from quorum.knowledge.errors import ConfigurationError

SAMPLE = "sample"
"""The one database that has a name and no place: the project's own sample."""

ALMOST_URL = re.compile(r"([a-z][\w+.-]+):(?:/(?!/)|(?!/).*@)")
"""A URL that lacks slashes, such as ``postgresql:/user:password@host/db``: it is no file's path."""

REDACTED = "[redacted]"
"""Stands where a secret was: in traces, messages and URLs that are shown."""

_FILE_URL = re.compile(r"\s*(?:sqlite|duckdb|files|schema)://[^?]*$")
_SECRET = (
    r"\w*(?:password|passwd|pwd|passphrase|token|secret|signature|apikey|accesskey)"
    r"|odbc_connect|(?:[\w-]*[_-])?(?:key|sig|auth|authorization|credentials?|code)|[\w-]*-(?:token|secret)"
)
"""Names of parameters that hold secrets; ``sslkey`` and ``authenticator`` hold none."""

_SERVER = re.compile(
    r"(?:postgres(?:ql)?|mysql|mariadb|snowflake):/{0,2}[^:@/?#]*:(?P<secret>.*)@"
    r"|(?!https?:)[a-z][\w+.-]*:/{1,2}[^:@/?#]*:(?P<password>[^?]*)@"
)
"""A server's URL, even one that lacks slashes, with its password, even one that should have been encoded."""
_ODBC = re.compile(r"(?i)(?:^|;)\s*(?:pwd|password)\s*=\s*(\{(?:[^}]|\}\})*\}|[^;]*)")


def urls_in(text: str) -> list[str]:
    """Return the databases of a comma list.

    A server's URL may hold commas of its own (``?schema=a,b``): it ends before another URL, or the sample.
    """
    found: list[str] = []
    for part in text.split(","):
        begins = re.match(rf"\s*([a-z][\w+.-]*://|{SAMPLE}\s*$)", part)
        own = found and "://" in found[-1] and not _FILE_URL.match(found[-1])
        if own and not begins:
            found[-1] += f",{part}"
        else:
            found.append(part)
    return [url.strip() for url in found if url.strip()]


def url_secrets(url: str) -> list[str]:
    """Return the password and secret parameters of a URL, as written and decoded."""
    server = _SERVER.match(url)
    try:
        parts = urlsplit(url)
        found = [parts.password or "", _of(server)[0]]
    except ValueError:  # not a URL: whoever opens it will say so
        return [_of(server)[0]] if server else []
    found += [pwd for text in re.findall(r"(?i)odbc_connect=([^&#]*)", url) for pwd in _odbc_secrets(text)]
    found += re.findall(rf"(?i)(?:^|&)(?:{_SECRET})=([^&#]*)", parts.query)
    texts = {
        form
        for value in found
        for form in (value, unquote(value), unquote_plus(value), quote(unquote(value), safe=""))
    }
    return sorted(text for text in texts if text)


def _of(server: re.Match[str] | None) -> tuple[str, int, int]:
    """Return what ``_SERVER`` found: the password, its start and its end."""
    if server is None:
        return "", 0, 0
    name = "secret" if server["secret"] is not None else "password"
    return server[name], server.start(name), server.end(name)


def _odbc_secrets(text: str) -> list[str]:
    """Return the passwords in an ODBC connection string, as written and without braces."""
    found = _ODBC.findall(unquote_plus(text))
    return [form for pwd in found for form in (pwd, pwd.strip("{}"))]


def mask_url(url: str) -> str:
    """Return the URL with its secrets replaced, for people to read."""
    if server := _SERVER.match(url):
        _, start, end = _of(server)
        url = f"{url[:start]}{REDACTED}{url[end:]}"
    masked = re.sub(r"(?:(?<=://)|^(?=\S+$))([^/?#@:]*):[^/?#]*@", rf"\1:{REDACTED}@", url)
    return re.sub(rf"(?i)([?&](?:{_SECRET})=)[^&#]*", rf"\1{REDACTED}", masked)


def without_header_values(text: str) -> str:
    """Return a foreign text, such as an endpoint's error, without the values of headers that hold secrets."""
    return _HEADER.sub(rf"\1{REDACTED}", text)


_HEADER = re.compile(
    r"(?i)("
    r"\b(?:[\w-]*(?:authorization|api[-_]?key)|[\w-]*-(?:key|token|secret)|(?:set-)?cookie)\b[\"']?\s*[:=]\s*[\"']?"
    r"(?:(?:bearer|basic|negotiate|digest|token)\s+)?"
    r"|\bbearer\s+(?=\S{8})"
    r")[^\s\"',;}\])]+"
)


def locations(urls: Iterable[str]) -> str:
    """Return the locations of databases that are read as one (``location``)."""
    return "\n".join(map(location, urls))


def location(url: str) -> str:
    """Return a database's place without user and options; two spellings of one file are the same."""
    plain, _, query = url.partition("?")
    plain = re.sub(r"(?<=://)[^/@]*@", "", plain)
    scheme, mark, rest = plain.partition("://")
    if mark and scheme not in ("sqlite", "duckdb", "files", "schema"):
        named = re.search(r"(?:^|&)(connection=[^&#]*)", query)  # Snowflake's, which stands for an account
        return f"{plain}?{named[1]}" if named else plain
    return Path(unquote(rest.removeprefix("/")) if mark else plain).expanduser().resolve().as_posix()


def path_of(url: str, scheme: str, kind: str, example: str) -> str:
    """Return the path that ``scheme:///path`` names, percent-decoded; a relative one stays relative.

    Args:
        kind: ``file`` or ``folder``.
        example: How such a URL is written, as a hint.

    Raises:
        ConfigurationError: No path is named, or the URL has a host or options.
    """
    rest = url.removeprefix(f"{scheme}:")
    if rest == url or not rest.startswith("//"):
        raise ConfigurationError(f"{url} is no {scheme} URL.", hint=example)
    host, slash, path = rest[2:].partition("/")
    if host or not slash:
        reads = f"{scheme} reads a local {kind}"
        raise ConfigurationError(f"{mask_url(url)} names a host; {reads}.", hint=example)
    if "?" in path:
        hint = f"Write a question mark in a {kind}'s name as %3F."
        raise ConfigurationError(f"{mask_url(url)} has options; {scheme} takes none.", hint=hint)
    return unquote(path)


def options_of(url: str, *known: str) -> tuple[str, dict[str, list[str]]]:
    """Return a URL without its options (``?name=value&…``), and their values by name.

    Raises:
        ConfigurationError: An option is none of ``known``, or has no value.
    """
    plain, _, query = url.partition("?")
    found: dict[str, list[str]] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known or not value:
            hint = f"Known: {', '.join(f'{each}=VALUE' for each in known)}. A ? in a name is written %3F."
            raise ConfigurationError(f"{mask_url(url)} has an option {name!r} that does not fit.", hint=hint)
        found.setdefault(name, []).append(value)
    return plain, found


def server_options(query: str, known: Iterable[str], engine: str, example: str) -> dict[str, str]:
    """Return the options of a server's URL; one given twice is a comma list. No message shows a value.

    Raises:
        ConfigurationError: An option is none of ``known``, or has no value.
    """
    found: dict[str, str] = {}
    for name, value in parse_qsl(query, keep_blank_values=True):
        if name not in known or not value:
            what = f"option {name} like this" if name.isidentifier() else "such option"
            raise ConfigurationError(f"A {engine} URL has no {what}.", hint=example)
        found[name] = f"{found[name]},{value}" if name in found else value
    return found


def names_in(listed: str) -> tuple[str, ...]:
    """Return the names in a comma list, each once."""
    return tuple(dict.fromkeys(filter(None, map(str.strip, listed.split(",")))))


@dataclass(frozen=True)
class ServerTarget:
    """The parts of a server's URL.

    Attributes:
        parameters: The driver's, with secrets.
    """

    parameters: dict[str, Any] = field(repr=False)
    secrets: ClassVar[tuple[str, ...]] = ("password",)
    """Parameters that no text may show."""

    @property
    def address(self) -> str:
        """The server's host and port, as far as the URL names them."""
        host, port = (self.parameters.get(name, "") for name in ("host", "port"))
        return f"{host}:{port}" if port else host

    def scrubbed(self, text: str) -> str:
        """Return a text of the driver without secrets."""
        for name in self.secrets:
            if isinstance(secret := self.parameters.get(name), str) and secret:
                text = text.replace(secret, REDACTED)
        return text


def anchored(database: str, folder: Path) -> str:
    """Return a file database's relative path made absolute; other URLs, and ``sample``, as they are."""
    if database == SAMPLE:
        return database
    if "://" not in database and not ALMOST_URL.match(database):
        return str(folder / database) if not database.startswith("~") else database
    found = re.fullmatch(r"((?:sqlalchemy\+)?sqlite(?:\+\w+)?|duckdb|files):///([^/:~].*)", database)
    return f"{found[1]}:///{quote(folder.as_posix())}/{found[2]}" if found else database
