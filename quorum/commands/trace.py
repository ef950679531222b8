"""``quorum trace``: a run step by step."""

from __future__ import annotations

import json
from pathlib import Path

import click

from quorum.commands.options import setting_flags
from quorum.evals.paths import write_text
from quorum.settings import Settings


@click.group()
def command() -> None:
    """Show a run step by step."""


@command.command("show")
@click.argument("run")
@setting_flags("home")
@click.option(
    "--html", "page", type=click.Path(path_type=Path), metavar="FILE", help="write one self-contained page"
)
@click.option("--full", is_flag=True, help="with whole prompts and replies")
@click.option("--json", "as_json", is_flag=True, help="print run, events and answer as one JSON object")
def show_command(run: str, home: str | None, page: Path | None, full: bool, as_json: bool) -> None:
    """Show a RUN step by step: its id, the first letters of it, `last` or `last~2`."""
    from quorum.graph.runs import RunFolder

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

    write_text(page, page_of(report))
    click.echo(f"{page} ({page.stat().st_size // 1024:,} KB): open it in a browser, it needs no network.")


def _beginning(text: str) -> str:
    """Return a text, cut where it is long."""
    return text if len(text) <= 1024 else f"{text[:120]}…"
