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

    from quorum.knowledge.verified import KnowledgeBase, VerifiedPair
    from quorum.settings import Settings
    from quorum.teaching import Intake

FILE = click.Path(path_type=Path)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON array")
FAILS = 1


@click.group(short_help="Look at, check and prune what was verified.")
def command() -> None:
    """Look at, check and prune what was verified: questions with their queries, and a team's notes.

    It is a folder of Markdown files (--kb, by default `kb` in .quorum), made for review in git:
    questions/*.md, which `quorum keep`, `quorum correct` and `quorum kb import` write, and notes/*.md, which
    you write. Runs read them anew each time.
    """


@command.command("show")
@click.argument("pair", required=False)
@AS_JSON
@setting_flags("kb", "home")
def show_command(pair: str | None, as_json: bool, **flags: Any) -> None:
    """List the verified questions, or show the one with this id whole."""
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
@AS_JSON
@setting_flags("kb", "home")
def search_command(text: str, as_json: bool, **flags: Any) -> None:
    """List the verified questions that bear on TEXT, the most similar first, as runs find them."""
    _list(_known(flags).similar(text, 20), as_json=as_json)


@command.command("verify")
@AS_JSON
@setting_flags("database", "kb", "home")
def verify_command(as_json: bool, **flags: Any) -> None:
    """Run the query of every pair of a database again, read-only.

    Exits with 1 if one fails, or reads a table whose columns have changed: it answers its question no more.
    A pair whose tables or columns are gone is shown to no model until its file is mended or forgotten.
    """
    from quorum.text import count, printable

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
@setting_flags("kb", "home")
def export_command(out: Path | None, **flags: Any) -> None:
    """Write the pairs as JSON lines, which `quorum kb import` and --demonstrations read."""
    from quorum.evals.paths import write_text

    lines = "".join(f"{json.dumps(_as_dict(pair), ensure_ascii=False)}\n" for pair in _known(flags).pairs)
    if out is None:
        click.echo(lines, nl=False)
    else:
        write_text(out, lines)


@command.command("forget")
@click.argument("pair")
@setting_flags("kb", "home")
def forget_command(pair: str, **flags: Any) -> None:
    """Delete the file of the verified question with this id."""
    from quorum.text import printable

    known = _known(flags)
    click.echo(f"Deleted: {printable(str(known.forget(known.find(pair))))}")


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
