"""``quorum kb``: what people verified, as files: look at it, check it, take in and hand out pairs, forget."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.keep import BY
from quorum.commands.options import setting_flags
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
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
    from quorum.text import printable

    store = _store(flags, triplets)
    if pair is None:
        _list(store, store.items, as_json=as_json)
        if not as_json:
            click.echo(store.summary, err=True)
        return
    item = store.find(pair)
    text = store.whole(item)
    click.echo(_json(store.as_dict(item)) if as_json else "\n".join(map(printable, text.split("\n"))))


@command.command("search")
@click.argument("text")
@TRIPLETS
@AS_JSON
@setting_flags("database", "kb", "explored", "home")
def search_command(text: str, triplets: bool, as_json: bool, **flags: Any) -> None:
    """List the verified questions that bear on TEXT, the most similar first, as runs find them."""
    store = _store(flags, triplets)
    _list(store, store.similar(text), as_json=as_json)


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

    store, failed = asyncio.run(_verified(_settings(flags), triplets))
    if as_json:
        click.echo(_json([store.as_dict(item) | {"error": failed.get(item.id)} for item in store.items]))
    for item in () if as_json else store.items:
        if item.id in failed:
            asked = store.as_dict(item)["question"]
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

    store = _store(flags, triplets)
    lines = "".join(f"{json.dumps(store.as_dict(item), ensure_ascii=False)}\n" for item in store.items)
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

    click.echo(f"Deleted: {printable(_store(flags, triplets).forget(pair))}")


class _Pairs:
    """The verified questions; with ``database`` those of it. Problems of files are said on standard error."""

    def __init__(self, settings: Settings, database: Database | None = None) -> None:
        from quorum.knowledge.verified import KnowledgeBase
        from quorum.text import printable

        known = KnowledgeBase.load(settings.knowledge)
        catalog = database and database.catalog
        self.known = known.of(catalog.name, catalog.dialect) if catalog else known
        self.items, self.problems, self.find = self.known.pairs, known.problems, known.find
        for problem in self.problems:
            click.echo(f"Warning: {printable(problem)}", err=True)

    @property
    def summary(self) -> str:
        notes = f", {len(self.known.texts):,} with notes" if self.known.texts else ""
        return f"{self.known.folder}: {len(self.items):,} verified{notes}"

    def similar(self, text: str) -> Any:
        return self.known.similar(text, 20)

    async def verify(self, database: Database) -> dict[Any, str]:
        from quorum.teaching import verify

        return {**await verify(self.known, database)}

    def forget(self, id: str) -> str:
        return str(self.known.forget(self.find(id)))

    def as_dict(self, pair: Any) -> dict[str, Any]:
        return {"id": pair.id} | {name: value for name, value in asdict(pair).items() if value}

    def line(self, pair: Any) -> tuple[str, str]:
        return pair.question, f"({pair.credit})"

    def whole(self, pair: Any) -> str:
        return str(pair.as_text().rstrip())


class _Triplets:
    """The triplets of an explored database."""

    def __init__(self, settings: Settings, database: Database) -> None:
        from quorum.graph.resources import explored_in
        from quorum.tools.triplet_store import load_explored

        self.folder = explored_in(settings.explored_root, settings, database.catalog)
        self.learned, self.catalog = load_explored(self.folder), database.catalog
        self.items, self.problems, self.find = self.learned.triplets, (), self.learned.find
        if self.learned.problems:
            raise ConfigurationError(self.learned.problems[0])

    @property
    def summary(self) -> str:
        tried = f"{len(self.items):,} triplets of {len(self.learned.expansions):,} attempts"
        return f"{tried}; nobody has checked them."

    def similar(self, text: str) -> Any:
        return self.learned.nearest(text, (), 20)

    async def verify(self, database: Database) -> dict[Any, str]:
        from quorum.teaching import verify_triplets

        return {**await verify_triplets(self.learned, database)}

    def forget(self, id: str) -> str:
        from contextlib import closing

        from quorum.tools.triplet_store import TripletStore

        triplet = self.find(id)
        with closing(TripletStore.open(self.folder, self.catalog)) as store:
            store.forget(triplet.id)
        return f"triplet {id}"

    def as_dict(self, it: Any) -> dict[str, Any]:
        return {"id": it.id, "question": it.description, "sql": it.sql, "tables": list(it.tables)}

    def line(self, triplet: Any) -> tuple[str, str]:
        return triplet.description, ""

    def whole(self, triplet: Any) -> str:
        return f"{triplet.description}\n\n{triplet.sql}"


def _store(flags: dict[str, Any], triplets: bool) -> _Pairs | _Triplets:
    from quorum.teaching import opened

    async def learned() -> _Triplets:
        async with opened(settings) as database:
            return _Triplets(settings, database)

    settings = _settings(flags)
    return asyncio.run(learned()) if triplets else _Pairs(settings)


async def _verified(settings: Settings, triplets: bool) -> tuple[_Pairs | _Triplets, dict[Any, str]]:
    from quorum.teaching import opened

    async with opened(settings) as database:
        store = (_Triplets if triplets else _Pairs)(settings, database)
        return store, await store.verify(database)


async def _taken_in(file: Path, settings: Settings, by: str) -> Intake:
    from quorum.knowledge.verified import pairs_in
    from quorum.teaching import opened, take_in

    pairs = pairs_in(file)
    async with opened(settings) as database:
        return await take_in(pairs, database, settings.knowledge, by=by)


def _settings(flags: dict[str, Any]) -> Settings:
    from quorum.settings import Settings

    return Settings(**flags)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2)


def _list(store: _Pairs | _Triplets, items: Iterable[Any], *, as_json: bool) -> None:
    from quorum.text import one_line

    if as_json:
        click.echo(_json(list(map(store.as_dict, items))))
        return
    for item in items:
        asked, more = store.line(item)
        click.echo(f"{item.id:>4}  {one_line(asked, 80)}  {one_line(more, 60)}".rstrip())
