"""``quorum trace``: the runs, and each of them step by step."""

from __future__ import annotations

import json
from pathlib import Path

import click

from quorum.commands.options import setting_flags
from quorum.knowledge.errors import ConfigurationError


@click.group(short_help="List runs, or show one step by step.")
def command() -> None:
    """List runs, or show one step by step."""


@command.command("list")
@click.argument("words", nargs=-1)
@setting_flags("home")
@click.option("--json", "as_json", is_flag=True, help="print one JSON array")
@click.option(
    "-n", "limit", type=click.IntRange(min=1), default=20, show_default=True, help="at most N, latest first"
)
def list_command(words: tuple[str, ...], home: str | None, as_json: bool, limit: int) -> None:
    """List the runs, the latest first; with WORDS those whose question has them all.

    `quorum trace list returned may` finds "How many orders were returned in May?".
    """
    from dataclasses import asdict

    from quorum.graph.runs import list_runs
    from quorum.settings import Settings
    from quorum.text import one_line, printable

    folder = Settings(home=home).home
    wanted = " ".join(words).casefold().split()
    runs = [run for run in list_runs(folder) if all(word in run.question.casefold() for word in wanted)]
    if as_json:
        click.echo(json.dumps([asdict(run) for run in runs[:limit]], ensure_ascii=False, indent=2))
        return
    if not runs:
        about = f" whose question has: {printable(' '.join(words))}" if words else ""
        click.echo(f"There is no run in {folder / 'runs'}{about}.")
    for run in runs[:limit]:
        demonstration = "  (demonstration)" if run.demonstration else ""
        status = run.status.replace("_", " ")
        click.echo(f"{run.id}  {status:<10}  {one_line(run.question, 80)}{demonstration}")
    if len(runs) > limit:
        click.echo(f"… and {len(runs) - limit} more (-n)")


@command.command("show")
@click.argument("run")
@setting_flags("home")
@click.option(
    "--html", "page", type=click.Path(path_type=Path), metavar="FILE", help="write one self-contained page"
)
@click.option("--full", is_flag=True, help="with whole prompts and replies")
@click.option("--json", "as_json", is_flag=True, help="print run, events and answer as one JSON object")
def show_command(run: str, home: str | None, page: Path | None, full: bool, as_json: bool) -> None:
    """Show a RUN step by step: its id, a unique beginning of it, or `last`."""
    from quorum.graph.runs import RunFolder
    from quorum.settings import Settings

    folder = RunFolder.open(Settings(home=home).home, run)
    if as_json and page is None:
        from quorum.graph.trace import plain

        answer = folder.answer()
        events = [event if full else plain(event, _beginning) for event in folder.events()]
        found = {"run": folder.meta(), "events": events, "answer": answer and answer.model_dump(mode="json")}
        click.echo(json.dumps(found, ensure_ascii=False, indent=2))
        return
    from quorum.report import report_of

    report = report_of(folder)
    if page is None:
        from quorum.render import console, show_report

        show_report(report, console(), full=full)
        return
    from quorum.page import page_of

    try:
        page.write_text(page_of(report), encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(f"Cannot write {page}: {error.strerror}.") from error
    click.echo(f"{page} ({page.stat().st_size // 1024:,} KB): open it in a browser, it needs no network.")


def _beginning(text: str) -> str:
    """Return a text, cut where it is long."""
    return text if len(text) <= 1024 else f"{text[:120]}…"
