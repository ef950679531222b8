"""``quorum eval compare``: two evaluations compared, question by question."""

from __future__ import annotations

import json
from pathlib import Path

import click

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("a", type=FILE)
@click.argument("b", type=FILE)
@click.option("--json", "as_json", is_flag=True, help="print one JSON object, with the SQL of both sides")
def command(a: Path, b: Path, as_json: bool) -> None:
    """Compare the evaluations in folders A and B over the questions that both ask for.

    A and B are what `quorum eval run` wrote; a folder whose subfolders are the shards of one evaluation
    is read as one. Differences are B minus A, with a 95 % interval (paired bootstrap) and McNemar's
    exact test. Where EX is known on neither side, as over schemas, valid SQL and linking are compared.
    """
    from quorum.evals.reports.compare import compare, markdown_of
    from quorum.evals.reports.evaluations import open_evaluation

    found = compare(open_evaluation(a), open_evaluation(b))
    if as_json:
        click.echo(json.dumps(found.as_dict(), ensure_ascii=False, indent=2))
    else:
        click.echo(markdown_of(found), nl=False)
