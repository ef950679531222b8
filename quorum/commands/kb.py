"""``quorum kb``: what people verified, as files: look at it, check it, take in and hand out pairs, forget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from quorum.commands.keep import BY
from quorum.commands.options import Decorated, setting_flags
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.settings import Settings
    from quorum.tools.execute import Database

Found = TypeVar("Found")

FILE = click.Path(path_type=Path)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="print one JSON array")
FAILS = 1


def stored(command: Decorated) -> Decorated:
    """Add the flags that say which store is meant."""
    said = "what `quorum explore` learned of --db, not what was verified"
    flags = setting_flags("database", "kb", "explored", "home")(command)
    return click.option("--triplets", is_flag=True, help=said)(flags)


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
@stored
@AS_JSON
def show_command(pair: str | None, triplets: bool, as_json: bool, **flags: Any) -> None:
    """List the verified questions, or show the one with this id whole."""
    from quorum.text import printable

    store = _store(flags, triplets)
    if pair is None:
        _list(store.items, as_json=as_json)
        if not as_json:
            click.echo(store.summary, err=True)
        return
    item = store.find(pair)
    text = f"{item.description}\n\n{item.sql}" if triplets else item.as_text().rstrip()
    click.echo(_json(_as_dict(item)) if as_json else "\n".join(map(printable, text.split("\n"))))


@command.command("search")
@click.argument("text")
@stored
@AS_JSON
def search_command(text: str, triplets: bool, as_json: bool, **flags: Any) -> None:
    """List the verified questions that bear on TEXT, the most similar first, as runs find them."""
    _list(_store(flags, triplets).similar(text), as_json=as_json)


@command.command("verify")
@stored
@AS_JSON
def verify_command(triplets: bool, as_json: bool, **flags: Any) -> None:
    """Run the query of every pair of a database again, read-only, or of every explored triplet.

    Exits with 1 if one fails, or reads a table whose columns have changed: it answers its question no more.
    A pair whose tables or columns are gone is shown to no model until its file is mended or forgotten.
    """
    from quorum.settings import Settings
    from quorum.teaching import verify
    from quorum.text import count, printable

    async def verified(database: Database) -> tuple[_Store, Mapping[Any, str]]:
        store = (_triplets if triplets else _pairs)(Settings(**flags), database)
        return store, await verify(store.items, database)

    store, failed = asyncio.run(_opened(flags, verified))
    if as_json:
        click.echo(_json([_as_dict(item) | {"error": failed.get(item.id)} for item in store.items]))
    for item in () if as_json else store.items:
        if item.id in failed:
            asked = _as_dict(item)["question"]
            lines = (f"{item.id}  {asked}", failed[item.id], getattr(item, "file", ""))
            click.echo("\n  ".join(map(printable, filter(None, lines))))
    held = len(store.items) - len(failed)
    click.echo(f"{held:,} of {count(len(store.items), 'query', 'queries')} held.", err=True)
    if failed or store.problems:
        raise SystemExit(FAILS)


@command.command("import")
@click.argument("file", type=FILE)
@BY
@setting_flags("database", "kb", "home")
def import_command(file: Path, by: str, **flags: Any) -> None:
    """Keep the pairs of FILE whose queries run on --db: JSON lines with question and sql, or as Spider's.

    A pair that names another database is passed over. Exits with 1 if a query was not kept.
    """
    from quorum.knowledge.verified import pairs_in
    from quorum.settings import Settings
    from quorum.teaching import take_in
    from quorum.text import count, printable

    pairs, folder = pairs_in(file), Settings(**flags).knowledge
    found = asyncio.run(_opened(flags, lambda database: take_in(pairs, database, folder, by=by)))
    for question, why in found.refused.items():
        click.echo(f"Not kept: {printable(question)}\n  {printable(why)}", err=True)
    known = f"; {count(found.known, 'pair')} known already" if found.known else ""
    others = f"; {count(found.elsewhere, 'pair')} of other databases passed over" if found.elsewhere else ""
    click.echo(f"Kept {count(found.kept, 'pair')}{known}{others}.")
    if found.refused:
        raise SystemExit(FAILS)


@command.command("export")
@click.option("--out", type=FILE, metavar="FILE", help="write there instead of to standard output")
@stored
def export_command(out: Path | None, triplets: bool, **flags: Any) -> None:
    """Write the pairs as JSON lines, which `quorum kb import` and --demonstrations read."""
    from quorum.evals.paths import write_text

    store = _store(flags, triplets)
    lines = "".join(f"{json.dumps(_as_dict(item), ensure_ascii=False)}\n" for item in store.items)
    if out is None:
        click.echo(lines, nl=False)
    else:
        write_text(out, lines)


@command.command("forget")
@click.argument("pair")
@stored
def forget_command(pair: str, triplets: bool, **flags: Any) -> None:
    """Delete the file of the verified question with this id, or an explored triplet."""
    from quorum.text import printable

    store = _store(flags, triplets)
    click.echo(f"Deleted: {printable(str(store.forget(store.find(pair))))}")


@dataclass(frozen=True)
class _Store:
    """Verified questions, or the triplets of an explored database: pairs of a question and a query.

    Attributes:
        summary: How many there are, and where.
        forget: Deletes one; returns the words for it.
    """

    items: Sequence[Any]
    summary: str
    find: Callable[[str], Any]
    similar: Callable[[str], Sequence[Any]]
    forget: Callable[[Any], object]
    problems: Sequence[str] = ()


def _pairs(settings: Settings, database: Database | None = None) -> _Store:
    """Return the verified questions; with ``database`` those of it. Problems are said on standard error."""
    from quorum.knowledge.verified import KnowledgeBase
    from quorum.text import printable

    base = known = KnowledgeBase.load(settings.knowledge)
    if database:
        known = base.of(database.catalog.name, database.catalog.dialect)
    for problem in base.problems:
        click.echo(f"Warning: {printable(problem)}", err=True)
    notes = f", {len(known.texts):,} with notes" if known.texts else ""
    return _Store(
        known.pairs,
        f"{known.folder}: {len(known.pairs):,} verified{notes}",
        known.find,
        lambda text: known.similar(text, 20),
        known.forget,
        base.problems,
    )


def _triplets(settings: Settings, database: Database) -> _Store:
    from quorum.graph.resources import explored_in
    from quorum.tools.triplet_store import TripletStore, load_explored

    folder = explored_in(settings.explored_root, settings, database.catalog)
    learned = load_explored(folder)
    if learned.problems:
        raise ConfigurationError(learned.problems[0])

    def forget(triplet: Any) -> str:
        with closing(TripletStore.open(folder, database.catalog)) as store:
            store.forget(triplet.id)
        return f"triplet {triplet.id}"

    tried = f"{len(learned.triplets):,} triplets of {len(learned.expansions):,} attempts"
    return _Store(
        learned.triplets,
        f"{tried}; nobody has checked them.",
        learned.find,
        lambda text: learned.nearest(text, (), 20),
        forget,
    )


def _as_dict(item: Any) -> dict[str, Any]:
    if hasattr(item, "description"):
        return {"id": item.id, "question": item.description, "sql": item.sql, "tables": list(item.tables)}
    return {"id": item.id} | {name: value for name, value in asdict(item).items() if value}


async def _opened(flags: dict[str, Any], use: Callable[[Database], Awaitable[Found]]) -> Found:
    from quorum.settings import Settings
    from quorum.teaching import opened

    async with opened(Settings(**flags)) as database:
        return await use(database)


def _store(flags: dict[str, Any], triplets: bool) -> _Store:
    from quorum.settings import Settings

    async def learned(database: Database) -> _Store:
        return _triplets(Settings(**flags), database)

    return asyncio.run(_opened(flags, learned)) if triplets else _pairs(Settings(**flags))


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _list(items: Iterable[Any], *, as_json: bool) -> None:
    from quorum.text import one_line

    if as_json:
        click.echo(_json(list(map(_as_dict, items))))
        return
    for item in items:
        credit = f"({item.credit})" if hasattr(item, "credit") else ""
        asked = one_line(_as_dict(item)["question"], 80)
        click.echo(f"{item.id:>4}  {asked}  {one_line(credit, 60)}".rstrip())
