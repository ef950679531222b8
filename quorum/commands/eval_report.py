"""``quorum eval report``: say how evaluations went."""

from __future__ import annotations

import json
from pathlib import Path

import click

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="a JSON array, one object per evaluation, not Markdown")
@click.option(
    "--html",
    "page",
    type=FILE,
    metavar="FILE",
    help="write one page with plots (needs the extra plots)",
)
def command(folders: tuple[Path, ...], as_json: bool, page: Path | None) -> None:
    """Report on the evaluations in DIR..., which `quorum eval run` wrote.

    A DIR without an evaluation stands for those in its subfolders. Shards of one evaluation are put together;
    several evaluations are compared in a table, then reported one by one. An evaluation that is still running
    can be reported on: what has no answer yet counts as wrong, and the report says so.

    The report goes to standard output as Markdown, unless --html names a file for a page. That links
    every question to its trace, a page in the run's folder (some 150 KB each).
    """
    from quorum.evals.reports.evaluations import open_evaluations
    from quorum.evals.reports.report import as_dict, report, write_page

    found = open_evaluations(folders)
    if page is not None:
        from quorum.page import write_pages

        runs = ((asked.id, each.run_of(asked.id)) for each in found for asked, _ in each.frame.rows)
        write_pages((id, run) for id, run in runs if run is not None)
        write_page(found, page)
        click.echo(f"Page: {page}", err=True)
    if as_json:
        values = [as_dict(each) for each in found]
        click.echo(json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False))
    elif page is None:
        click.echo(report(found), nl=False)
