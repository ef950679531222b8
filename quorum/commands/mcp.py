"""``quorum mcp``: databases as tools of an assistant, over standard input and output."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.knowledge.errors import is_installed, missing_extra

if TYPE_CHECKING:
    from quorum.serve.service import Service


@click.command(cls=Command)
@click.option(
    "--max-usd-total", type=click.FloatRange(0, min_open=True), metavar="N", help="dollars for all questions"
)
@setting_flags()
def command(max_usd_total: float | None, **flags: Any) -> None:
    """Give an assistant a database as tools: an MCP server on standard input and output.

    Its client starts it: "command": "quorum", "args": ["mcp", "--db", "shop.db"]. Each --db is a database of
    its own, as for `quorum serve`, which has the same tools at /mcp.
    """
    if not is_installed("mcp"):
        raise missing_extra("serve", "`quorum mcp`", needs="mcp")
    from quorum.commands.serve import served
    from quorum.serve.service import Service
    from quorum.tools.ledger import Budget, Ledger

    total = Ledger(Budget(max_usd=max_usd_total)) if max_usd_total else None
    asyncio.run(_serve(Service(*served(flags), shared=total, remote=False)))


async def _serve(service: Service) -> None:
    from mcp.server.stdio import stdio_server

    from quorum.serve.keys import Caller
    from quorum.serve.mcp import mcp_server

    server = mcp_server(service, lambda _: Caller())
    try:
        async with stdio_server() as (lines, replies):
            await server.run(lines, replies, server.create_initialization_options())
    finally:
        await service.aclose()
