"""``quorum correct``: the right query for a run's question."""

from __future__ import annotations

import asyncio

import click

from quorum.commands.keep import BY, NOTE, show_taught
from quorum.commands.options import setting_flags
from quorum.settings import Settings
from quorum.shell import standard_input


@click.command()
@click.argument("run")
@click.option("--sql", required=True, metavar="SQL", help="the right query; - reads it from standard input")
@NOTE
@BY
@setting_flags("database", "kb", "home")
def command(
    run: str, sql: str, note: str, by: str, database: tuple[str, ...], kb: str | None, home: str | None
) -> None:
    """Keep the right query for the question of a RUN: its id, the first letters of it, `last` or `last~2`.

    The query is judged and run first, read-only. It is kept with the one that it corrects, which questions
    like it see too. --db is needed only where the run's URL held a password.
    """
    from quorum.teaching import correct

    given = standard_input() if sql == "-" else sql
    settings = Settings(database=database, kb=kb, home=home)
    show_taught(asyncio.run(correct(run, given, note=note, by=by, settings=settings)))
