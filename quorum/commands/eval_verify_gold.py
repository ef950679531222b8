"""``quorum eval verify-gold``: find gold answers that no longer reproduce."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click
from rich.text import Text

from quorum.evals.suites import part_of
from quorum.suites import open_suite
from quorum.text import count, one_line, printable

if TYPE_CHECKING:
    from quorum.evals.scorers.base import GoldCheck, GoldState

NOT_ALL_OK = 1

MEANINGS: dict[GoldState, str] = {
    "ok": "runs, and is as published",
    "differs": "is not as published",
    "fails": "does not run",
    "empty": "has no row",
    "missing": "is not there, or not as SQL that could be run",
    "not_live": "cannot run: its database is not here",
}
"""What is the matter with a gold in each state, in the order of reports."""

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("suite")
@click.option("--data", type=FILE, metavar="DIR", help="the benchmark's folder")
@click.option("--db", metavar="URL", help="database of your own questions that name none")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="check the first N questions only")
@click.option("--ids", "ids_file", type=FILE, metavar="FILE", help="check these only: one id a line")
@click.option("--json", "as_json", is_flag=True, help='print {"<id>": {"state": …, "reason": …, "rows": …}}')
def command(
    suite: str,
    data: Path | None,
    db: str | None,
    limit: int | None,
    ids_file: Path | None,
    as_json: bool,
) -> None:
    """Run the gold of SUITE on its databases and say where it is no longer as published.

    SUITE is a benchmark, in the folder --data, or a .jsonl or .csv file with questions of your own.
    No model is asked. Questions whose gold does not reproduce are named with the reason; they stay in the
    suite, and reports list them apart.

    Exit codes: 0 all gold that can be checked here is as published; 1 some is not (it fails, differs
    or is empty); 2 usage, or a suite that cannot be read.
    """
    from quorum.evals.questions import read_ids
    from quorum.evals.scoring import UNCHECKED, verify_gold
    from quorum.render import counting

    ids = read_ids(ids_file) if ids_file else None
    loaded = part_of(open_suite(suite, data, db), ids=ids, limit=limit)
    questions = loaded.chosen(ids=ids, limit=limit)
    with counting("opening databases") as on_done:
        found = asyncio.run(verify_gold(loaded, questions, on_done=on_done))
    if as_json:
        checks = {id: asdict(check) for id, check in found.items()}
        click.echo(json.dumps(checks, ensure_ascii=False, indent=2))
    else:
        _show(loaded.name, found)
    for text in loaded.missing:
        click.echo(f"Missing: {printable(text)}", err=True)
    if any(check.state not in ("ok", *UNCHECKED) for check in found.values()):
        raise SystemExit(NOT_ALL_OK)


def _show(name: str, found: Mapping[str, GoldCheck]) -> None:
    """A table of states with counts, then every question that is not ok or has a remark, with the reason."""
    from quorum.render import console, plain_table

    out, counts = console(), Counter(check.state for check in found.values())
    out.print(Text(f"{one_line(name, 60)}: the gold of {count(len(found), 'question')}", style="bold"))
    rows = [(state, f"{counts[state]:,}", says) for state, says in MEANINGS.items() if counts[state]]
    out.print(plain_table("state | >questions | the gold", rows))
    for state in (*list(MEANINGS)[1:], "ok"):
        for id, check in found.items():
            if check.state == state and (state != "ok" or check.reason):
                style = "dim" if state == "ok" else ""
                out.print(Text(f"{state:<9} {id}  {one_line(check.reason, 400)}", style), soft_wrap=True)
