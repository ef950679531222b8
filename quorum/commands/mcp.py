"""``quorum mcp``: databases as tools of an assistant, over standard input and output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import is_installed, missing_extra

if TYPE_CHECKING:
    from quorum.settings import Settings


@click.command(cls=Command, short_help="Give an assistant a database as tools (MCP).")
@setting_flags()
def command(**flags: Any) -> None:
    """Give an assistant a database as tools: an MCP server on standard input and output.

    Its client starts it: "command": "quorum", "args": ["mcp", "--db", "shop.db"]. Each --db is a database of
    its own, which may be given a name: --db shop=postgresql://….
    """
    if not is_installed("mcp"):
        raise missing_extra("serve", "`quorum mcp`", needs="mcp")
    from quorum.commands.serve import named_databases
    from quorum.settings import Settings

    named = named_databases(flags.pop("database"))
    asyncio.run(_serve(Settings(**flags), named))


async def _serve(settings: Settings, named: dict[str, list[str]]) -> None:
    from mcp.server.stdio import stdio_server

    from quorum.serve.keys import Caller
    from quorum.serve.mcp import mcp_server
    from quorum.serve.service import Service

    service, who = Service(settings, named), Caller()
    server = mcp_server(service, lambda _: who)
    try:
        async with stdio_server() as (lines, replies):
            await server.run(lines, replies, server.create_initialization_options())
    finally:
        await service.aclose()
