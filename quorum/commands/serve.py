"""``quorum serve``: questions over HTTP, and a page to ask on."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import ConfigurationError, is_installed, missing_extra
from quorum.tools.urls import urls_in

if TYPE_CHECKING:
    from quorum.settings import Settings

_NAMED = re.compile(r"([A-Za-z0-9_-]{1,40})=(.+)", re.DOTALL)


@click.command(cls=Command, short_help="Serve questions over HTTP, with a page to ask on.")
@click.option(
    "--host", default="127.0.0.1", metavar="HOST", help="to listen at; another one needs --keys  [127.0.0.1]"
)
@click.option(
    "--port",
    type=click.IntRange(0, 65535),
    default=8642,
    metavar="N",
    help="to listen at; 0 takes a free one  [8642]",
)
@click.option("--open", "open_page", is_flag=True, help="open the page in a browser")
@setting_flags()
def command(host: str, port: int, open_page: bool, **flags: Any) -> None:
    """Serve questions over HTTP, with a page to ask on.

    Each --db is a database of its own, which may be given a name: --db shop=postgresql://…; several URLs
    with commas between are read in one question.
    """
    for package in ("starlette", "uvicorn"):
        if not is_installed(package):
            raise missing_extra("serve", "`quorum serve`", needs=package)
    from quorum.settings import Settings

    named = named_databases(flags.pop("database"))
    settings = Settings(**flags)
    if not named and settings.database:
        named = named_databases([",".join(settings.database)])
    settings.changed(
        database=[url for urls in named.values() for url in urls]
    ).run_options()  # says what lacks
    asyncio.run(_serve(settings, named, host, port, open_page=open_page))


def named_databases(given: Sequence[str]) -> dict[str, list[str]]:
    """Return URLs by the names under which they are served.

    Example: ``shop=sqlite:///a.db`` is ``shop``, ``sqlite:///data/sales.db`` is ``sales``.

    Raises:
        ConfigurationError: Two have one name.
    """
    found: dict[str, list[str]] = {}
    for text in given:
        match = _NAMED.fullmatch(text) if "://" not in text.partition("=")[0] else None
        name, rest = match.groups() if match else ("", text)
        urls = urls_in(rest)
        name = (
            name or re.sub(r"[^A-Za-z0-9_-]+", "-", Path(urls[0].partition("?")[0]).stem)[:40] or "database"
        )
        if name in found:
            raise ConfigurationError(
                f"Two databases are called {name!r}.", hint="Give them names: --db NAME=URL."
            )
        found[name] = urls
    return found


async def _serve(
    settings: Settings, named: dict[str, list[str]], host: str, port: int, *, open_page: bool
) -> None:
    import uvicorn

    from quorum.serve.http import LOOPBACK, make_app
    from quorum.serve.service import Service
    from quorum.serve.takeover import looking_after

    service = Service(settings, named)
    app = make_app(service, hosts=LOOPBACK if host in LOOPBACK else frozenset())
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", server_header=False, timeout_graceful_shutdown=3
    )
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    at = f"http://{f'[{host}]' if ':' in host else host}:{socket.getsockname()[1]}/"
    click.echo(f"Serving {', '.join(named)} at {at}; Ctrl-C ends it.", err=True)
    if open_page:
        import webbrowser

        asyncio.get_running_loop().call_later(0.5, webbrowser.open, at)
    try:
        async with looking_after(service):
            await server.serve(sockets=[socket])
    finally:
        await service.aclose()
