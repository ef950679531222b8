"""``quorum eval retrieval``: how well retrieval finds the tables and columns of gold SQL."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from quorum.evals.reports.format import percent
from quorum.render import plain_table
from quorum.text import count, one_line, printable

if TYPE_CHECKING:
    from rich.console import Console

    from quorum.evals.running.retrieval import AtK, Retrieval
    from quorum.tools.models.embeddings import CachedEmbedder

FILE = click.Path(path_type=Path)


@click.command(short_help="Say how well retrieval finds gold tables and columns.")
@click.argument("suite")
@click.option("--data", type=FILE, metavar="DIR", help="the benchmark's folder")
@click.option("--db", metavar="URL", help="database of your own questions that name none")
@click.option(
    "--embedding-model", metavar="NAME", help="search by meaning too: openai:NAME, a hub name, a folder"
)
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="measure the first N questions only")
@click.option(
    "--budget", type=click.IntRange(min=1), metavar="N", help="tokens of the linked schema  [8,000]"
)
@click.option("--no-groups", is_flag=True, help="index each table of a shared field group by itself")
@click.option("--all-databases", is_flag=True, help="index those without a question, too")
@click.option("--json", "as_json", is_flag=True, help="print the figures as JSON and nothing else")
def command(
    suite: str,
    data: Path | None,
    db: str | None,
    embedding_model: str | None,
    limit: int | None,
    budget: int | None,
    no_groups: bool,
    all_databases: bool,
    as_json: bool,
) -> None:
    """Search the columns of SUITE's databases for its questions, and hold what is found against gold SQL.

    SUITE is a benchmark, in the folder --data, or a .jsonl or .csv file with questions of your own.
    No chat model is asked. The search is by words; with an embedding model by meaning, too, and by both.
    Tables that share all their columns are one, found where any of them is.

    Exit codes: 0 measured; 1 nothing could be; 2 usage, or a suite that cannot be read.
    """
    from quorum.eval_progress import indexing
    from quorum.evals.running.retrieval import BUDGET, Measuring
    from quorum.evals.suites import part_of
    from quorum.render import console
    from quorum.suites import open_suite

    loaded = part_of(open_suite(suite, data, db), ids=None, limit=None if all_databases else limit)
    with indexing(console(stderr=True)) as on_progress:
        measuring = Measuring(
            loaded,
            loaded.chosen(limit=limit),
            _embedder(embedding_model),
            budget or BUDGET,
            groups=not no_groups,
            whole_suite=all_databases,
            on_progress=on_progress,
        )
        found = asyncio.run(measuring.run())
    if as_json:
        click.echo(json.dumps(found.as_json(), ensure_ascii=False, indent=2))
    else:
        _show(found, console())
    for name, reason in found.unopened.items():
        click.echo(f"Not opened: {printable(name)}: {printable(reason)}", err=True)
    for text in loaded.missing:
        click.echo(f"Missing: {printable(text)}", err=True)
    if not found.questions:
        click.echo("No question has gold SQL that names a table of its database.", err=True)
        raise SystemExit(1)


def _embedder(name: str | None) -> CachedEmbedder | None:
    from quorum.graph.resources import open_embedder
    from quorum.settings import Settings
    from quorum.tools.urls import SAMPLE

    settings = Settings(database=[SAMPLE], models=["offline"], embedding_model=name)
    return open_embedder(settings.run_options(), api_key=settings.key)


def _show(found: Retrieval, out: Console) -> None:
    title = f"{one_line(found.suite, 60)}: {count(found.questions, 'question')} with gold SQL"
    title += f", {count(found.databases, 'database')}, {count(found.texts, 'column text')}"
    out.print(Text(title, style="bold"))
    if found.ungrouped != found.texts:
        out.print(Text(f"Without shared field groups: {count(found.ungrouped, 'column text')}."))
    for what, name in (("tables", "gold tables"), ("columns", "gold columns")):
        _show_recalls(name, {way: getattr(figures, what) for way, figures in found.ways.items()}, out)
    if not found.questions:
        return
    rows = [
        (
            way,
            *map(percent, (it.within, it.within_large)),
            *(f"{time:.1f}" for time in (it.build_seconds, it.p50_ms, it.p99_ms)),
        )
        for way, it in found.ways.items()
    ]
    head = "way | >questions | >of large schemas | >build, s | >p50, ms | >p99, ms"
    out.print(plain_table(head, rows, f"all gold tables within {found.budget:,} tokens"))
    large = f"The whole schema of {count(found.large, 'question')} exceeds {found.budget:,} tokens"
    never = f"the gold tables alone of {found.questions - found.reachable:,} do"
    out.print(
        Text(f"{large}, of the other {found.questions - found.large:,} nothing can be missed; {never}.")
    )


def _show_recalls(name: str, ways: dict[str, tuple[AtK, ...]], out: Console) -> None:
    """Print the mean recall and the share of questions with all of them, by the number of finds."""
    if not any(ways.values()):
        return
    head = " | >".join(["way", *(f"@{at.k}" for at in next(iter(ways.values())))])
    rows = [(way, *(f"{100 * at.recall:.1f} / {100 * at.all:.1f}" for at in it)) for way, it in ways.items()]
    out.print(plain_table(head, rows, f"{name}: recall / all found, %"))
