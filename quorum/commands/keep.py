"""``quorum keep``: a run's answer is right, and its question is answered by its query from now on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from quorum.commands.options import setting_flags
from quorum.settings import Settings
from quorum.text import SHOWN_ROWS, count, printable

if TYPE_CHECKING:
    from quorum.teaching import Taught

NOTE = click.option(
    "--note", default="", metavar="TEXT", help="what settled the reading, for later questions"
)
BY = click.option("--by", default="", metavar="NAME", help="who stands for it  [who is logged in]")


@click.command()
@click.argument("run")
@NOTE
@BY
@setting_flags("kb", "home")
def command(run: str, note: str, by: str, kb: str | None, home: str | None) -> None:
    """Keep the answer of a RUN as verified: its id, the first letters of it, `last` or `last~2`.

    From now on its very question is answered by its query, run anew, and questions like it see both as an
    example. It is one file in the knowledge base, for git and for colleagues; `quorum kb` shows them all.
    Models whose candidates gave this answer keep their weight in votes, others lose some.
    """
    from quorum.teaching import keep

    show_taught(keep(run, note=note, by=by, settings=Settings(kb=kb, home=home)))


def show_taught(taught: Taught) -> None:
    """Print what was kept and where, and what it changed."""
    from quorum.render import console, rows_table

    if taught.result is not None:
        rows = [list(row.values()) for row in taught.result.table.slice(0, SHOWN_ROWS).to_pylist()]
        console().print(rows_table(taught.result.columns, rows))
        click.echo(count(taught.result.row_count, "row"))
    click.echo(f"Kept, {printable(taught.pair.credit)}: {printable(taught.pair.question)}")
    click.echo(f"  {taught.file} (id {taught.pair.id})")
    if taught.replaced:
        click.echo(f"It takes the place of another query, {printable(taught.replaced)}.")
    if taught.right or taught.wrong:
        told = [("right", taught.right), ("wrong", taught.wrong)]
        click.echo("Experts: " + "; ".join(f"{how} {', '.join(names)}" for how, names in told if names) + ".")
    if taught.warning:
        click.echo(f"Warning: {printable(taught.warning)}", err=True)
    if taught.dates:
        dates = ", ".join(taught.dates)
        click.echo(f"The query holds fixed dates ({dates}): asked again later, it answers for them.")
