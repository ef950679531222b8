"""``quorum eval report``: say how evaluations went."""

from __future__ import annotations

import json
from pathlib import Path

import click

FILE = click.Path(path_type=Path)


@click.command(short_help="Say how evaluations went: Markdown, or an HTML page with plots.")
@click.argument("folders", nargs=-1, required=True, metavar="DIR...", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="a JSON array, one object per evaluation, not Markdown")
@click.option(
    "--html",
    "page",
    type=FILE,
    metavar="FILE",
    help="write one page with plots (needs the extra plots)",
)
@click.option(
    "--traces/--no-traces", default=True, show_default=True, help="with --html, a page of every run"
)
@click.option(
    "--out",
    type=FILE,
    metavar="FILE",
    help="write the Markdown (or JSON) there  [standard output]",
)
def command(
    folders: tuple[Path, ...], as_json: bool, page: Path | None, traces: bool, out: Path | None
) -> None:
    """Report on the evaluations in DIR..., which `quorum eval run` wrote.

    A DIR without an evaluation stands for those in its subfolders. Shards of one evaluation are put together;
    several evaluations are compared in a table, then reported one by one. An evaluation that is still running
    can be reported on: what has no answer yet counts as wrong, and the report says so.

    The report goes to standard output as Markdown, unless --out or --html names a file for it. The page links
    every question to its trace, a page in the run's folder (some 150 KB each).
    """
    from quorum.evals.paths import write_text
    from quorum.evals.reports.evaluations import open_evaluations
    from quorum.evals.reports.report import as_dict, report, write_page

    found = open_evaluations(folders)
    if page is not None:
        if traces:
            from quorum.page import write_pages

            runs = ((asked.id, each.run_of(asked.id)) for each in found for asked, _ in each.frame.rows)
            write_pages((id, run) for id, run in runs if run is not None)
        write_page(found, page)
        click.echo(f"Page: {page}", err=True)
    if as_json:
        values = [as_dict(each) for each in found]
        text = json.dumps(values, ensure_ascii=False, indent=2, allow_nan=False) + "\n"
    else:
        text = report(found)
    if out is not None:
        write_text(out, text)
        click.echo(f"Report: {out}", err=True)
    elif as_json or page is None:
        click.echo(text, nl=False)
