"""``quorum kb``: what people verified, as files: look at it, check it, take in and hand out pairs, forget."""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.keep import BY
from quorum.commands.options import setting_flags

if TYPE_CHECKING:
    from collections.abc import Iterable

    from quorum.knowledge.triplets import Explored, Triplet
    from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
    from quorum.settings import Settings
    from quorum.teaching import Intake
    from quorum.tools.execute import Database

FILE = click.Path(path_type=Path)
TRIPLETS = click.option(
    "--triplets", is_flag=True, help="what `quorum explore` learned of --db, not what was verified"
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON array")
FAILS = 1


@click.group(short_help="Look at, check and prune what was verified.")
def command() -> None:
    """Look at, check and prune what was verified: questions with their queries, and a team's notes.

    It is a folder of Markdown files (--kb, by default `kb` in .quorum), made for review in git:
    questions/*.md, which `quorum keep`, `quorum correct` and `quorum kb import` write, and notes/*.md, which
    you write. Runs read them anew each time. What a model found by itself (`quorum explore`) is kept apart,
    in `explored` in .quorum: --triplets looks at that.
    """


@command.command("show")
@click.argument("pair", required=False)
@TRIPLETS
@AS_JSON
@setting_flags("database", "kb", "explored", "home")
def show_command(pair: str | None, triplets: bool, as_json: bool, **flags: Any) -> None:
    """List the verified questions, or show the one with this id whole."""
    if triplets:
        _show_triplets(_settings(flags), pair, as_json=as_json)
        return
    known = _known(flags)
    if pair is not None:
        found = known.find(pair)
        click.echo(json.dumps(_as_dict(found), ensure_ascii=False, indent=2) if as_json else _shown(found))
        return
    _list(known.pairs, as_json=as_json)
    if not as_json:
        notes = f", {len(known.texts):,} with notes" if known.texts else ""
        click.echo(f"{known.folder}: {len(known.pairs):,} verified{notes}", err=True)


@command.command("search")
@click.argument("text")
@TRIPLETS
@AS_JSON
@setting_flags("database", "kb", "explored", "home")
def search_command(text: str, triplets: bool, as_json: bool, **flags: Any) -> None:
    """List the verified questions that bear on TEXT, the most similar first, as runs find them."""
    if triplets:
        found = asyncio.run(_learned(_settings(flags))).nearest(text, (), 20)
        _list_triplets(found, as_json=as_json)
        return
    _list(_known(flags).similar(text, 20), as_json=as_json)


@command.command("verify")
@TRIPLETS
@AS_JSON
@setting_flags("database", "kb", "explored", "home")
def verify_command(triplets: bool, as_json: bool, **flags: Any) -> None:
    """Run the query of every pair of a database again, read-only, or of every explored triplet.

    Exits with 1 if one fails, or reads a table whose columns have changed: it answers its question no more.
    A pair whose tables or columns are gone is shown to no model until its file is mended or forgotten.
    """
    from quorum.text import count, printable

    if triplets:
        _verify_triplets(_settings(flags), as_json=as_json)
        return
    known, failed = asyncio.run(_verified(_settings(flags)))
    _say_problems(known)
    if as_json:
        rows = [
            {"id": pair.id, "question": pair.question, "error": failed.get(pair.id)} for pair in known.pairs
        ]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    for pair in known.pairs if not as_json else ():
        if pair.id in failed:
            click.echo(
                f"{pair.id}  {printable(pair.question)}\n  {printable(failed[pair.id])}\n  {pair.file}"
            )
    held = len(known.pairs) - len(failed)
    click.echo(f"{held:,} of {count(len(known.pairs), 'query', 'queries')} held.", err=True)
    if failed or known.problems:
        raise SystemExit(FAILS)


@command.command("import")
@click.argument("file", type=FILE)
@BY
@setting_flags("database", "kb", "home")
def import_command(file: Path, by: str, **flags: Any) -> None:
    """Keep the pairs of FILE whose queries run on --db: JSON lines with question and sql, or as Spider's.

    A pair that names another database is passed over. Exits with 1 if a query was not kept.
    """
    from quorum.text import count, printable

    found = asyncio.run(_taken_in(file, _settings(flags), by))
    for question, why in found.refused.items():
        click.echo(f"Not kept: {printable(question)}\n  {printable(why)}", err=True)
    known = f"; {count(found.known, 'pair')} known already" if found.known else ""
    others = f"; {count(found.elsewhere, 'pair')} of other databases passed over" if found.elsewhere else ""
    click.echo(f"Kept {count(found.kept, 'pair')}{known}{others}.")
    if found.refused:
        raise SystemExit(FAILS)


@command.command("export")
@click.option("--out", type=FILE, metavar="FILE", help="write there instead of to standard output")
@TRIPLETS
@setting_flags("database", "kb", "explored", "home")
def export_command(out: Path | None, triplets: bool, **flags: Any) -> None:
    """Write the pairs as JSON lines, which `quorum kb import` and --demonstrations read."""
    from quorum.evals.paths import write_text

    if triplets:
        rows = list(map(_triplet_dict, asyncio.run(_learned(_settings(flags))).triplets))
    else:
        rows = list(map(_as_dict, _known(flags).pairs))
    lines = "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    if out is None:
        click.echo(lines, nl=False)
    else:
        write_text(out, lines)


@command.command("forget")
@click.argument("pair")
@TRIPLETS
@setting_flags("database", "kb", "explored", "home")
def forget_command(pair: str, triplets: bool, **flags: Any) -> None:
    """Delete the file of the verified question with this id, or an explored triplet."""
    from quorum.text import printable

    if triplets:
        asyncio.run(_forget_triplet(_settings(flags), pair))
        click.echo(f"Forgotten: {printable(pair)}")
        return
    known = _known(flags)
    click.echo(f"Deleted: {printable(str(known.forget(known.find(pair))))}")


def _show_triplets(settings: Settings, id: str | None, *, as_json: bool) -> None:
    learned = asyncio.run(_learned(settings))
    if id is None:
        _list_triplets(learned.triplets, as_json=as_json)
        if not as_json:
            tried = f"{len(learned.triplets):,} triplets of {len(learned.expansions):,} attempts"
            click.echo(f"{tried}; nobody has checked them.", err=True)
        return
    triplet = learned.find(id)
    if as_json:
        click.echo(json.dumps(_triplet_dict(triplet), ensure_ascii=False, indent=2))
        return
    from quorum.text import printable

    click.echo("\n".join(map(printable, [triplet.description, "", *triplet.sql.split("\n")])))


def _verify_triplets(settings: Settings, *, as_json: bool) -> None:
    """Exits with 1 if a triplet's query fails, gives nothing now, or reads a table that changed."""
    from quorum.text import count, printable

    learned, failed = asyncio.run(_held(settings))
    if as_json:
        rows = [_triplet_dict(each) | {"error": failed.get(each.id)} for each in learned.triplets]
        click.echo(json.dumps(rows, ensure_ascii=False, indent=2))
    for each in learned.triplets if not as_json else ():
        if each.id in failed:
            click.echo(f"{each.id}  {printable(each.description)}\n  {printable(failed[each.id])}")
    held = len(learned.triplets) - len(failed)
    click.echo(f"{held:,} of {count(len(learned.triplets), 'query', 'queries')} held.", err=True)
    if failed:
        raise SystemExit(FAILS)


async def _held(settings: Settings) -> tuple[Explored, dict[int, str]]:
    from quorum.teaching import opened, verify_triplets

    async with opened(settings) as database:
        learned = _learned_of(settings, database)
        return learned, await verify_triplets(learned, database)


async def _learned(settings: Settings) -> Explored:
    from quorum.teaching import opened

    async with opened(settings) as database:
        return _learned_of(settings, database)


def _learned_of(settings: Settings, database: Database) -> Explored:
    from quorum.graph.resources import explored_in
    from quorum.knowledge.errors import ConfigurationError
    from quorum.tools.triplet_store import load_explored

    learned = load_explored(explored_in(settings.explored_root, settings, database.catalog))
    if learned.problems:
        raise ConfigurationError(learned.problems[0])
    return learned


async def _forget_triplet(settings: Settings, id: str) -> None:
    from quorum.graph.resources import explored_in
    from quorum.teaching import opened
    from quorum.tools.triplet_store import TripletStore

    async with opened(settings) as database:
        triplet = _learned_of(settings, database).find(id)
        folder = explored_in(settings.explored_root, settings, database.catalog)
        store = TripletStore.open(folder, database.catalog)
        try:
            store.forget(triplet.id)
        finally:
            store.close()


def _triplet_dict(triplet: Triplet) -> dict[str, Any]:
    return {
        "id": triplet.id,
        "question": triplet.description,
        "sql": triplet.sql,
        "tables": list(triplet.tables),
    }


def _list_triplets(triplets: Iterable[Triplet], *, as_json: bool) -> None:
    from quorum.text import one_line

    if as_json:
        click.echo(json.dumps(list(map(_triplet_dict, triplets)), ensure_ascii=False, indent=2))
        return
    for each in triplets:
        click.echo(f"{each.id:4}  {one_line(each.description, 100)}")


def _settings(flags: dict[str, Any]) -> Settings:
    from quorum.settings import Settings

    return Settings(**flags)


def _known(flags: dict[str, Any]) -> KnowledgeBase:
    """The knowledge base; what was left out of it is said on standard error."""
    from quorum.knowledge.verified import KnowledgeBase

    known = KnowledgeBase.load(_settings(flags).knowledge)
    _say_problems(known)
    return known


def _say_problems(known: KnowledgeBase) -> None:
    from quorum.text import printable

    for problem in known.problems:
        click.echo(f"Warning: {printable(problem)}", err=True)


async def _verified(settings: Settings) -> tuple[KnowledgeBase, dict[str, str]]:
    from quorum.knowledge.verified import KnowledgeBase
    from quorum.teaching import opened, verify

    async with opened(settings) as database:
        known = KnowledgeBase.load(settings.knowledge).of(database.catalog.name, database.catalog.dialect)
        return known, await verify(known, database)


async def _taken_in(file: Path, settings: Settings, by: str) -> Intake:
    from quorum.knowledge.verified import pairs_in
    from quorum.teaching import opened, take_in

    pairs = pairs_in(file)
    async with opened(settings) as database:
        return await take_in(pairs, database, settings.knowledge, by=by)


def _as_dict(pair: VerifiedPair) -> dict[str, Any]:
    return {"id": pair.id} | {name: value for name, value in asdict(pair).items() if value}


def _shown(pair: VerifiedPair) -> str:
    from quorum.text import printable

    return "\n".join(map(printable, pair.as_text().rstrip().split("\n")))


def _list(pairs: Iterable[VerifiedPair], *, as_json: bool) -> None:
    from quorum.text import one_line

    if as_json:
        click.echo(json.dumps([_as_dict(pair) for pair in pairs], ensure_ascii=False, indent=2))
        return
    for pair in pairs:
        click.echo(f"{pair.id}  {one_line(pair.question, 80)}  ({one_line(pair.credit, 60)})")
