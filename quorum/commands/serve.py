"""``quorum serve``: questions over HTTP, and a page to ask on."""

from __future__ import annotations

import asyncio
import ctypes
import os
import re
from collections.abc import Sequence
from contextlib import nullcontext, suppress
from pathlib import Path
from socket import AddressFamily, create_server, has_dualstack_ipv6
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import ConfigurationError, is_installed, missing_extra
from quorum.settings import Settings
from quorum.shell import SIGNALS
from quorum.tools.databases import connect_all
from quorum.tools.urls import SAMPLE, urls_in

if TYPE_CHECKING:
    from quorum.serve.service import Service
    from quorum.settings import Settings

_MALLOC = {-8: 1, -3: 2**16}
"""``M_ARENA_MAX`` and ``M_MMAP_THRESHOLD``, by their numbers in ``malloc.h``."""


@click.command(cls=Command)
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
@click.option(
    "--keys", "key_file", type=click.Path(path_type=Path), metavar="FILE", help="who may ask: API keys"
)
@click.option("--new-key", metavar="NAME", help="add a key to the file, print it, and end")
@click.option("--open", "open_page", is_flag=True, help="open the page in a browser")
@setting_flags()
def command(
    host: str, port: int, key_file: Path | None, new_key: str | None, open_page: bool, **flags: Any
) -> None:
    """Serve questions over HTTP, with a page to ask on.

    Each --db is a database of its own, which may be given a name: --db shop=postgresql://…; several URLs
    with commas between are read in one question. Without --keys it listens at this machine only.
    """
    for package in ("starlette", "uvicorn", "mcp"):
        if not is_installed(package):
            raise missing_extra("serve", "`quorum serve`", needs=package)
    from quorum.serve.keys import KeyFile, add_key

    if new_key is not None:
        if key_file is None:
            raise click.UsageError("Say where: --keys FILE.")
        click.echo(add_key(key_file, new_key))
        click.echo(f"Added to {key_file}, which holds its hash only: this is not shown again.", err=True)
        return
    hold_no_free_memory()
    from quorum.serve.http import LOOPBACK
    from quorum.serve.service import Service

    if host not in LOOPBACK and key_file is None:
        raise ConfigurationError(
            f"At {host} everybody could ask.",
            hint="Name a file of API keys: --keys FILE; --new-key NAME adds one.",
        )
    keys = KeyFile(key_file) if key_file else None
    asyncio.run(_serve(Service(*served(flags), keys=keys), host, port, open_page=open_page))


def served(flags: dict[str, Any]) -> tuple[Settings, dict[str, list[str]]]:
    """Return the settings that flags give, and the databases by the names under which they are served.

    Raises:
        ConfigurationError: A setting is wrong or missing.
        DatabaseUnavailable: A file is not there.
    """
    named = named_databases(flags.pop("database"))
    settings = Settings(**flags)
    if not named and settings.database:
        named = named_databases([",".join(settings.database)])
    urls = [url for urls in named.values() for url in urls]
    settings.changed(database=urls).run_options()  # says what lacks
    for served in named.values():
        if SAMPLE not in served:
            connect_all(served)
    return settings, named


def named_databases(given: Sequence[str]) -> dict[str, list[str]]:
    """Return URLs by the names under which they are served.

    Example: ``shop=sqlite:///a.db`` is ``shop``, ``sqlite:///data/sales.db`` is ``sales``.

    Raises:
        ConfigurationError: Two have one name.
    """
    found: dict[str, list[str]] = {}
    for text in given:
        name, _, rest = text.partition("=")
        if not re.fullmatch("[A-Za-z0-9_-]{1,40}", name) or not rest:
            name, rest = "", text
        urls = urls_in(rest)
        stem = Path(urls[0].partition("?")[0]).stem
        name = name or re.sub(r"[^A-Za-z0-9_-]+", "-", stem)[:40] or "database"
        if name in found:
            raise ConfigurationError(
                f"Two databases are called {name!r}.", hint="Give them names: --db NAME=URL."
            )
        found[name] = urls
    return found


def hold_no_free_memory() -> None:
    """Have glibc keep one heap for all threads, and map blocks of 64 KiB and more, which then go back.

    Else free memory grows in each thread's heap: from 281 MB after 500 questions to 288 after 2,000; so it
    is 272 to 275 (``bench_serve``). With garbage that waits for its collection: 281 to 293 before, 272 to 279
    with both, 273 to 285 with mapped blocks alone, 278 to 290 with two heaps, 279 to 288 with
    ``malloc_trim`` every 5 s.
    """
    with suppress(OSError, AttributeError):  # another C library
        for option, value in _MALLOC.items():
            ctypes.CDLL("libc.so.6").mallopt(option, value)


async def _serve(service: Service, host: str, port: int, *, open_page: bool) -> None:
    import uvicorn

    from quorum.serve.http import LOOPBACK, make_app
    from quorum.serve.keys import Caller
    from quorum.serve.takeover import looking_after

    app = make_app(service, LOOPBACK if host in LOOPBACK else frozenset())
    config = uvicorn.Config(
        app, host=host, port=port, log_level="warning", server_header=False, timeout_graceful_shutdown=3
    )
    server = uvicorn.Server(config)
    six = ":" in host
    family = AddressFamily.AF_INET6 if six else AddressFamily.AF_INET
    both = six and has_dualstack_ipv6()
    try:  # before the line below: whoever reads it may ask at once
        socket = create_server((host, port), family=family, backlog=config.backlog, dualstack_ipv6=both)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot listen at {host}, port {port}: {os.strerror(error.errno or 0)}.",
            hint="Give another --port; 0 takes a free one.",
        ) from error
    place = f"http://{f'[{host}]' if ':' in host else host}:{socket.getsockname()[1]}/"
    click.echo(f"Serving {', '.join(service.databases(Caller()))} at {place}; Ctrl-C ends it.", err=True)
    if open_page:
        import webbrowser

        asyncio.get_running_loop().call_later(0.5, webbrowser.open, place)
    server.capture_signals = nullcontext  # type: ignore[assignment]  # its own way ends the process at once
    for signal in SIGNALS:
        asyncio.get_running_loop().add_signal_handler(signal, server.handle_exit, signal, None)
    try:
        async with looking_after(service):
            await server.serve(sockets=[socket])
    finally:
        left = service.running
        await service.aclose()
    click.echo(f"Ended.{f' Questions that can go on: {left}.' if left else ''}", err=True)
