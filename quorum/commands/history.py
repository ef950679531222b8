"""``quorum history``: the runs, the latest first."""

from __future__ import annotations

import json
import re
from dataclasses import asdict
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorum.commands.options import setting_flags
from quorum.settings import Settings
from quorum.text import one_line
from quorum.tools.urls import anchored, location

if TYPE_CHECKING:
    from quorum.graph.runs import RunSummary

_UNITS = {"m": "minutes", "h": "hours", "d": "days", "w": "weeks"}


def _moment(_: click.Context, __: click.Parameter, given: str | None) -> datetime | None:
    """Return the time of ``2026-11-20``, or of ``2d`` before now."""
    try:
        if ago := re.fullmatch(r"([0-9]{1,6})([mhdw])", given or ""):
            return datetime.now().astimezone() - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(given).astimezone() if given is not None else None
    except (ValueError, OverflowError):
        raise click.BadParameter(f"{given!r} is no time; write 2026-11-20, or 2d (m, h, d, w).") from None


@click.command()
@click.argument("words", nargs=-1)
@click.option("--db", metavar="URL", help="only runs on this database")
@click.option("--since", callback=_moment, metavar="TIME", help="only later ones: 2026-11-20, 2d, 12h")
@click.option("-n", "limit", type=click.IntRange(min=1), metavar="N", default=20, help="at most  [20]")
@click.option("--json", "as_json", is_flag=True, help="print one JSON array")
@setting_flags("home")
def command(
    words: tuple[str, ...],
    db: str | None,
    since: datetime | None,
    limit: int,
    as_json: bool,
    home: str | None,
) -> None:
    """List the runs, the latest first; with WORDS those whose question has them all.

    `quorum history returned may` finds "How many orders were returned in May?". Wherever a RUN is named
    (`trace show`, `keep`, `correct`, `ask --resume`), give its id, the first letters of it, `last`, or
    `last~2` for the third last.
    """
    from quorum.graph.runs import list_runs

    folder, asked = Settings(home=home).home, " ".join(words).casefold().split()
    place = location(anchored(db, Path.cwd())) if db else ""

    def wanted(run: RunSummary) -> bool:
        found = all(word in run.question.casefold() for word in asked)
        return found and (not place or place in map(location, run.databases)) and _is_since(run, since)

    runs = list_runs(folder, wanted, limit + 1)
    if as_json:
        click.echo(json.dumps([asdict(run) for run in runs[:limit]], ensure_ascii=False, indent=2))
        return
    if not runs:
        click.echo(f"There is no run in {folder / 'runs'}{' that you ask for' * bool(words or db or since)}.")
    for run in runs[:limit]:
        demonstration = "  (demonstration)" if run.demonstration else ""
        status = run.status.replace("_", " ")
        click.echo(f"{run.id}  {status:<10}  {one_line(run.question, 80)}{demonstration}")
    if len(runs) > limit:
        click.echo("… and earlier ones (-n)")


def _is_since(run: RunSummary, moment: datetime | None) -> bool:
    try:
        return moment is None or datetime.fromisoformat(run.started).astimezone() >= moment
    except ValueError:
        return False
