"""``quorum kb``: what people verified, as files: look at it, check it, take in and hand out pairs, forget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.keep import BY
from quorum.commands.options import setting_flags
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings
from quorum.text import count, one_line, printable

if TYPE_CHECKING:
    from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
    from quorum.teaching import Intake

AS_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON array")
FAILS = 1
MOST_SIMILAR = 20


@click.group()
def command() -> None:
    """Look at, check and prune what was verified: questions with their queries, and a team's notes.

    It is a folder of Markdown files (--kb, by default `kb` in .quorum), made for review in git:
    questions/*.md, which `quorum keep`, `quorum correct` and `quorum kb import` write, and notes/*.md, which
    you write. Runs read them anew each time. What a model found by itself (`quorum explore`) is kept apart,
    in `explored` in .quorum: `export --triplets` lists that.
    """


@command.command("show")
@click.argument("pair", required=False)
@setting_flags("kb", "home")
@AS_JSON
def show_command(pair: str | None, as_json: bool, **flags: Any) -> None:
    """List the verified questions, or show the one with this id whole."""
    known = _known(flags)
    if pair is None:
        _list(known.pairs, as_json=as_json)
        if not as_json:
            notes = f", {len(known.texts):,} with notes" if known.texts else ""
            click.echo(f"{known.folder}: {len(known.pairs):,} verified{notes}", err=True)
        return
    found = known.find(pair)
    click.echo(_json(_as_dict(found)) if as_json else printable(found.as_text().rstrip()))


@command.command("search")
@click.argument("text")
@setting_flags("kb", "home")
@AS_JSON
def search_command(text: str, as_json: bool, **flags: Any) -> None:
    """List the verified questions that bear on TEXT, the most similar first, as runs find them."""
    _list(_known(flags).similar(text, MOST_SIMILAR), as_json=as_json)


@command.command("verify")
@setting_flags("database", "kb", "home")
@AS_JSON
def verify_command(as_json: bool, **flags: Any) -> None:
    """Run the query of every pair of a database again, read-only.

    Exits with 1 if one fails, or reads a table whose columns have changed: it answers its question no more.
    A pair whose tables or columns are gone is shown to no model until its file is mended or forgotten.
    """
    from quorum.teaching import opened, verify

    known = _known(flags)

    async def verified() -> tuple[Sequence[VerifiedPair], dict[str, str]]:
        async with opened(Settings(**flags)) as database:
            pairs = known.of(database.catalog.name, database.catalog.dialect).pairs
            return pairs, await verify(pairs, database)

    pairs, failed = asyncio.run(verified())
    if as_json:
        click.echo(_json([_as_dict(pair) | {"error": failed.get(pair.id)} for pair in pairs]))
    for pair in () if as_json else pairs:
        if pair.id in failed:
            lines = (f"{pair.id}  {pair.question}", failed[pair.id], pair.file)
            click.echo("\n  ".join(map(printable, lines)))
    click.echo(f"{len(pairs) - len(failed):,} of {count(len(pairs), 'query', 'queries')} held.", err=True)
    if failed or known.problems:
        raise SystemExit(FAILS)


@command.command("import")
@click.argument("file", type=click.Path(path_type=Path))
@BY
@setting_flags("database", "kb", "home")
def import_command(file: Path, by: str, **flags: Any) -> None:
    """Keep the pairs of FILE whose queries run on --db: JSON lines with question and sql, or as Spider's.

    A pair that names another database is passed over. Exits with 1 if a query was not kept.
    """
    from quorum.knowledge.verified import pairs_in
    from quorum.teaching import opened, take_in

    pairs, settings = pairs_in(file), Settings(**flags)

    async def taken_in() -> Intake:
        async with opened(settings) as database:
            return await take_in(pairs, database, settings.knowledge, by=by)

    found = asyncio.run(taken_in())
    for question, why in found.refused.items():
        click.echo(f"Not kept: {printable(question)}\n  {printable(why)}", err=True)
    known = f"; {count(found.known, 'pair')} known already" if found.known else ""
    others = f"; {count(found.elsewhere, 'pair')} of other databases passed over" if found.elsewhere else ""
    click.echo(f"Kept {count(found.kept, 'pair')}{known}{others}.")
    if found.refused:
        raise SystemExit(FAILS)


@command.command("export")
@click.option("--triplets", is_flag=True, help="what `quorum explore` learned of --db, not what was verified")
@setting_flags("database", "kb", "explored", "home")
def export_command(triplets: bool, **flags: Any) -> None:
    """Print the pairs as JSON lines, which `quorum kb import` and --demonstrations read."""
    found = asyncio.run(_learned(flags)) if triplets else map(_as_dict, _known(flags).pairs)
    for line in found:
        click.echo(json.dumps(line, ensure_ascii=False))


@command.command("forget")
@click.argument("pair")
@setting_flags("kb", "home")
def forget_command(pair: str, **flags: Any) -> None:
    """Delete the file of the verified question with this id."""
    known = _known(flags)
    click.echo(f"Deleted: {printable(str(known.forget(known.find(pair))))}")


def _known(flags: dict[str, Any]) -> KnowledgeBase:
    """Return what is verified; what cannot be read of it is said on standard error."""
    from quorum.knowledge.verified import KnowledgeBase

    known = KnowledgeBase.load(Settings(**flags).knowledge)
    for problem in known.problems:
        click.echo(f"Warning: {printable(problem)}", err=True)
    return known


async def _learned(flags: dict[str, Any]) -> list[dict[str, Any]]:
    """Return the triplets of an explored database."""
    from quorum.graph.resources import explored_in
    from quorum.teaching import opened
    from quorum.tools.triplet_store import load_explored

    settings = Settings(**flags)
    async with opened(settings) as database:
        folder = explored_in(settings.explored_root, settings, database.catalog)
        found = await asyncio.to_thread(load_explored, folder)
    if found.problems:
        raise ConfigurationError(found.problems[0])
    return [
        {"id": each.id, "question": each.description, "sql": each.sql, "tables": list(each.tables)}
        for each in found.triplets
    ]


def _as_dict(pair: VerifiedPair) -> dict[str, Any]:
    return {"id": pair.id} | {name: value for name, value in asdict(pair).items() if value}


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _list(pairs: Sequence[VerifiedPair], *, as_json: bool) -> None:
    if as_json:
        click.echo(_json(list(map(_as_dict, pairs))))
        return
    for pair in pairs:
        click.echo(f"{pair.id}  {one_line(pair.question, 80)}  ({one_line(pair.credit, 60)})")
