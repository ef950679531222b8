"""``quorum schema``: a schema as the models see it, and its measures."""

from __future__ import annotations

import asyncio
import json
import time
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import click

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import SAMPLE

if TYPE_CHECKING:
    from quorum.knowledge.catalog import Catalog

budget_option = click.option(
    "--budget", type=click.IntRange(min=1), metavar="TOKENS", help="for descriptions and samples"
)


@click.group(short_help="Show a schema as the models see it, or measure it.")
def command() -> None:
    """Show a schema as the models see it, or measure it.

    It comes from a database's URL, from a folder of schema files (Spider 2.0's layout: DDL.csv and
    one JSON file per table), or is the sample database's.
    """


@command.command("show")
@click.argument("source", metavar="URL-or-FOLDER")
@budget_option
@click.option("--json", "as_json", is_flag=True, help="print the catalog as one JSON object")
def show_command(source: str, budget: int | None, as_json: bool) -> None:
    """Print the schema text that goes into prompts."""
    from quorum.knowledge.compress import render
    from quorum.text import printable

    catalogs = catalogs_of(source)
    if as_json:
        found = [asdict(catalog) | {"hash": catalog.hash} for catalog in catalogs]
        click.echo(json.dumps(found[0] if len(found) == 1 else found, ensure_ascii=False, indent=2))
        return
    for catalog in catalogs:
        click.echo(printable(render(catalog, budget=budget).text))


@command.command("stats")
@click.argument("source", metavar="URL-or-FOLDER")
@budget_option
@click.option("--json", "as_json", is_flag=True, help='print {"total": …, "databases": […]}')
def stats_command(source: str, budget: int | None, as_json: bool) -> None:
    """Measure the schema text: tables, columns, bytes and tokens, per database and in all."""
    from quorum.knowledge.stats import catalog_stats, stats

    if Path(source).is_dir():
        found = stats(source, budget=budget)
    else:
        begun = time.perf_counter()
        (catalog,) = catalogs_of(source)
        found = catalog_stats(catalog, budget=budget, load_seconds=time.perf_counter() - begun)
    if as_json:
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
    else:
        _show_stats(found)


def _show_stats(found: dict[str, Any]) -> None:
    from quorum.text import count, one_line

    names = ("tables", "columns", "nested_paths", "bytes", "tokens")
    click.echo(f"{'':<44}" + "".join(f"{name.replace('_', ' '):>14}" for name in names))
    rows = [(one_line(row["name"], 43), row) for row in found["databases"]]
    if len(rows) > 1:
        rows.append((count(found["total"]["databases"], "database"), found["total"]))
    for name, row in rows:
        click.echo(f"{name:<44}" + "".join(f"{row[key]:>14,}" for key in names))
    for name, row in rows:
        for remark in (*row.get("left_out", ()), *row.get("notes", ())):
            click.echo(f"{name}: {one_line(remark, 160)}", err=True)
    total = found["total"]
    click.echo(
        f"read in {total['load_seconds']:.2f} s, grouped and written in {total['seconds']:.2f} s", err=True
    )


def catalogs_of(source: str) -> list[Catalog]:
    """The catalogs that a URL, a database file or a folder of schema files holds.

    Raises:
        ConfigurationError: There is nothing of that name, or it is no description of a database.
        DatabaseUnavailable: The database cannot be opened.
    """
    if Path(source).is_dir():
        from quorum.knowledge.folder import find_database_folders, load_folder

        return [load_folder(folder) for folder in find_database_folders(source)]
    if source != SAMPLE and "://" not in source and not Path(source).exists():
        hint = "Give a URL (sqlite:///shop.db), a folder of schema files, or sample."
        raise ConfigurationError(f"There is no {source}.", hint=hint)
    from quorum.settings import Settings

    return [asyncio.run(live_catalog(source, Settings().home))]


async def live_catalog(url: str, home: Path, *, samples: int = 3) -> Catalog:
    """Open a database read-only and introspect it.

    Raises:
        ConfigurationError: The URL is malformed, or its driver is missing.
        DatabaseUnavailable: It cannot be opened, or holds no table.
    """
    from quorum.tools.databases import connect

    if url == SAMPLE:
        from quorum.tools.sample import sample_database

        path = await asyncio.to_thread(sample_database, home / "sample")
        url = f"sqlite:///{quote(str(path.resolve()))}"
    async with await asyncio.to_thread(connect, url) as connector:
        return await connector.catalog(samples=samples)
