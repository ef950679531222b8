"""``quorum eval export``: the submission that a benchmark wants, from an evaluation's folder."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorum.evals.paths import check_no_file
from quorum.text import count, one_line

if TYPE_CHECKING:
    from quorum.evals.records import Manifest
    from quorum.evals.submissions import Exported, Format

FORMATS = ("spider2-csv", "spider2-sql", "bird")
FILE = click.Path(path_type=Path)


@click.command()
@click.argument("folder", metavar="DIR", type=FILE)
@click.option("--format", "kind", type=click.Choice(FORMATS), required=True)
@click.option("--out", type=FILE, metavar="FOLDER", required=True, help="a new or empty folder")
def command(folder: Path, kind: Format, out: Path) -> None:
    """Write the answers of the evaluation in DIR as its benchmark's program reads them.

    DIR is what `quorum eval run` wrote, or a folder whose subfolders are the shards of one evaluation.

    \b
    spider2-csv  FOLDER/<id>.csv, results as pandas writes them (evaluate.py --mode exec_result)
    spider2-sql  FOLDER/<id>.sql, the queries (evaluate.py --mode sql)
    bird         FOLDER/predict_dev.json, {"0": "SQL\\t----- bird -----\\tdatabase", …}

    For Spider 2.0 a question without an answer has no file, and scores 0. BIRD's program pairs entries
    with its gold by their place, so there it has a query that fails. What a run ended with but did not
    stand by, a best effort, is written as well.
    """
    from quorum.evals.reports.evaluations import open_evaluation
    from quorum.evals.submissions import export

    check_no_file(out, hint="Give another --out: a folder.")
    found = open_evaluation(folder)
    exported = export(found, kind, out)
    total = count(len(found.manifest.asked), "question")
    click.echo(f"{out}: {len(exported.written):,} of {total} written as {kind}.")
    for line in _notes(found.manifest, exported, kind):
        click.echo(line, err=True)


def _notes(manifest: Manifest, exported: Exported, kind: Format) -> list[str]:
    """Return what a user must know of the files."""
    lines = []
    if exported.best_efforts:
        efforts = count(len(exported.best_efforts), "best effort")
        lines.append(f"Among them: {efforts} of runs that ended without an answer.")
    if exported.left_out:
        lines.append(f"Without an answer: {count(len(exported.left_out), 'question')}.")
        lines += [f"  {id}: {one_line(reason, 160)}" for id, reason in exported.left_out.items()]
    if kind == "bird":
        entries = count(len(manifest.asked), "entry", "entries")
        lines.append(f"BIRD's gold must list the same questions in the same order: these are {entries}.")
    lines += [f"The suite's folder was not whole: {one_line(text, 300)}" for text in manifest.missing]
    return lines
