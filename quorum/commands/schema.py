"""``quorum schema``: a schema as the models see it."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorum.knowledge.errors import ConfigurationError
from quorum.text import count, one_line, printable
from quorum.tools.urls import SAMPLE, mask_url

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Catalog
    from quorum.tools.databases.catalog_cache import CatalogCache


@click.group()
def command() -> None:
    """Show a schema as the models see it.

    It comes from a database's URL, from a folder of schema files (Spider 2.0's layout: DDL.csv and
    one JSON file per table), or is the sample database's. Several databases are shown
    as one question sees them.
    """


@command.command("show")
@click.argument("sources", metavar="URL-or-FOLDER...", nargs=-1, required=True)
@click.option("--budget", type=click.IntRange(min=1), metavar="TOKENS", help="for descriptions and samples")
@click.option("--json", "as_json", is_flag=True, help="print the catalog as one JSON object")
def show_command(sources: tuple[str, ...], budget: int | None, as_json: bool) -> None:
    """Print the schema text that goes into prompts."""
    from quorum.knowledge.schema.render import render

    catalogs = list(catalogs_of(*sources))
    if as_json:
        found = [asdict(replace(each, withheld=None)) | {"hash": each.hash} for each in catalogs]
        click.echo(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False, indent=2))
        return
    for catalog in catalogs:
        click.echo(printable(render(catalog, budget=budget).text))


@command.command("refresh")
@click.argument("url", metavar="URL")
def refresh_command(url: str) -> None:
    """Read a database again, and cache its catalog for the questions to come.

    A database file that has changed, and a folder of data files, are read again without being asked to.
    """
    from quorum.graph.resources import catalog_cache
    from quorum.settings import Settings

    settings, begun = Settings(), time.perf_counter()
    anew = replace(catalog_cache(settings), age=0)
    catalog = asyncio.run(live_catalog([url], settings.home, cache=anew))
    columns = count(sum(len(table.columns) for table in catalog.tables), "column")
    tables, seconds = count(len(catalog.tables), "table"), time.perf_counter() - begun
    click.echo(f"{catalog.name}: {tables}, {columns}, read in {seconds:.1f} s")
    for remark in catalog.notes:
        click.echo(one_line(remark, 160), err=True)


def catalogs_of(*sources: str) -> Iterator[Catalog]:
    """The catalogs that a URL, a path as of ``--db`` or a folder of schema files holds, one after the other.

    Several sources are databases that are read as one.

    Raises:
        ConfigurationError: There is nothing of that name, or it is no description of a database.
        DatabaseUnavailable: The database cannot be opened.
    """
    alone = sources[0] if len(sources) == 1 else ""
    if alone and Path(alone).is_dir() and (folders := _described_folders(alone)):
        from quorum.knowledge.folder import load_folder

        yield from map(load_folder, folders)
        return
    for source in sources:
        if source != SAMPLE and "://" not in source and not Path(source).exists():
            hint = "Give a URL (sqlite:///shop.db), a folder of schema files, or sample."
            raise ConfigurationError(f"There is no {mask_url(source)}.", hint=hint)
    from quorum.graph.resources import catalog_cache
    from quorum.settings import Settings

    settings = Settings()
    yield asyncio.run(live_catalog(sources, settings.home, cache=catalog_cache(settings)))


def _described_folders(source: str) -> tuple[Path, ...]:
    """The folders of schema files at or below a folder; none where it holds data files.

    Raises:
        ConfigurationError: It holds neither.
    """
    from quorum.knowledge.folder import find_database_folders
    from quorum.tools.databases.duckdb.sources import reader_of

    try:
        return find_database_folders(source)
    except ConfigurationError:
        if not any(reader_of(path.name) for path in Path(source).rglob("*")):
            raise
        return ()


async def live_catalog(urls: Sequence[str], home: Path, *, cache: CatalogCache) -> Catalog:
    """Open databases read-only and introspect them, or take the cached catalogs.

    Raises:
        ConfigurationError: The URL is malformed, or its driver is missing.
        DatabaseUnavailable: It cannot be opened, or holds no table.
    """
    from quorum.graph.resources import database_urls, read_catalog
    from quorum.tools.databases import connect_all

    where = await asyncio.to_thread(database_urls, urls, home)
    async with await asyncio.to_thread(connect_all, where) as connector:
        return await read_catalog(connector, None, cache=cache)
