"""``quorum eval verify-gold``: find gold answers that no longer reproduce."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from quorum.text import count, one_line, printable

if TYPE_CHECKING:
    from quorum.evals.scoring import Verification

NOT_ALL_OK = 1

FILE = click.Path(path_type=Path)


@click.command(short_help="Find gold answers that no longer reproduce.")
@click.argument("suite")
@click.option("--data", type=FILE, metavar="DIR", help="the benchmark's folder")
@click.option("--db", metavar="URL", help="database of your own questions that name none")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="check the first N questions only")
@click.option("--ids", "ids_file", type=FILE, metavar="FILE", help="check these only: one id a line")
@click.option("--json", "as_json", is_flag=True, help='print {"<id>": {"state": …, "reason": …, "rows": …}}')
@click.option("--out", type=FILE, metavar="FILE", help="write the same JSON to a file")
def command(
    suite: str,
    data: Path | None,
    db: str | None,
    limit: int | None,
    ids_file: Path | None,
    as_json: bool,
    out: Path | None,
) -> None:
    """Run the gold of SUITE on its databases and say where it is no longer as published.

    SUITE is a benchmark, in the folder --data, or a .jsonl or .csv file with questions of your own.
    No model is asked. Questions whose gold does not reproduce are named with the reason; they stay in the
    suite, and reports list them apart.

    Exit codes: 0 all gold that can be checked here is as published; 1 some is not (it fails, differs
    or is empty); 2 usage, or a suite that cannot be read.
    """
    from quorum.evals.paths import write_text
    from quorum.evals.questions import read_ids
    from quorum.evals.scoring import verify_gold
    from quorum.evals.suites import part_of
    from quorum.render import counting
    from quorum.suites import open_suite

    ids = read_ids(ids_file) if ids_file else None
    loaded = part_of(open_suite(suite, data, db), ids=ids, limit=limit)
    questions = loaded.chosen(ids=ids, limit=limit)
    with counting("opening databases") as on_done:
        found = asyncio.run(verify_gold(loaded, questions, on_done=on_done))
    text = json.dumps(found.as_json(), ensure_ascii=False, indent=2)
    if out is not None:
        write_text(out, text + "\n")
    if as_json:
        click.echo(text)
    else:
        _show(loaded.name, found)
    for text in loaded.missing:
        click.echo(f"Missing: {printable(text)}", err=True)
    if not found.reproduces:
        raise SystemExit(NOT_ALL_OK)


def _show(name: str, found: Verification) -> None:
    """A table of states with counts, then every question that is not ok, with its reason."""
    from quorum.evals.scoring import MEANINGS
    from quorum.render import console, plain_table

    out = console()
    out.print(Text(f"{one_line(name, 60)}: the gold of {count(len(found.checks), 'question')}", style="bold"))
    rows = [(state, f"{number:,}", MEANINGS[state]) for state, number in found.counts.items()]
    out.print(plain_table("state | >questions | the gold", rows))
    for state, checks in found.apart().items():
        for id, check in checks.items():
            out.print(Text(f"{state:<9} {id}  {one_line(check.reason, 400)}"), soft_wrap=True)
    for id, text in found.remarks().items():
        out.print(Text(f"{'ok':<9} {id}  {one_line(text, 400)}", style="dim"), soft_wrap=True)
