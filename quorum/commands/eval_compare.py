"""``quorum eval compare``: two evaluations compared, question by question."""

from __future__ import annotations

import json
from pathlib import Path

import click

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object")
@click.option("--out", type=FILE, metavar="FILE", help="write Markdown with the SQL of both sides")
def command(a: Path, b: Path, as_json: bool, out: Path | None) -> None:
    """Compare the evaluations in folders A and B over the questions that both ask for.

    A and B are what `quorum eval run` wrote; a folder whose subfolders are the shards of one evaluation
    is read as one. Differences are B minus A, with a 95 % interval (paired bootstrap) and McNemar's
    exact test. Where EX is known on neither side, as over schemas, valid SQL and linking are compared.

    The file of --out links to the traces of the questions that flipped; each trace's page is written into
    its run's folder.
    """
    from quorum.evals.paths import write_text
    from quorum.evals.reports.compare import compare, markdown_of
    from quorum.evals.reports.evaluations import open_evaluation
    from quorum.evals.reports.templating import TRACE_PAGE, relative_link
    from quorum.page import write_pages

    found = compare(open_evaluation(a), open_evaluation(b))
    if out is not None:
        runs = ((flip.a.id, half.run_of(flip.a.id)) for flip in found.flips for half in (found.a, found.b))
        traced = write_pages((id, run) for id, run in runs if run is not None)

        def link(run: Path) -> str:
            return relative_link(run / TRACE_PAGE, out.parent) if run in traced else ""

        write_text(out, markdown_of(found, link))
    if as_json:
        click.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
    else:
        click.echo(markdown_of(found), nl=False)
    if out is not None:
        click.echo(f"Written: {out}", err=True)
