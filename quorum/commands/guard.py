"""``quorum guard``: is this SQL a pure read?"""

from __future__ import annotations

import json
import sys
from pathlib import Path

import click

from quorum.pipes import standard_input

REFUSED = 1


@click.command(short_help="Judge whether SQL is a pure read.")
@click.argument("sql", required=False)
@click.option("--dialect", metavar="D", help="sqlite, duckdb, postgres, mysql, snowflake or bigquery")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="LIST.jsonl",
    help='judge a list of {"dialect": …, "sql": …}, one verdict per line; - is standard input',
)
@click.option("--json", "as_json", is_flag=True, help="print the verdict as a JSON object")
def command(sql: str | None, dialect: str | None, file: Path | None, as_json: bool) -> None:
    """Judge SQL without running it; `-` reads it from standard input.

    Exits with 0 if it is a pure read, with 1 if it is refused (the reason is printed). With
    --file, one JSON object is printed per line of the list, in order, and the exit code is 0; a
    line that cannot be judged, a blank one too, is refused.
    """
    from quorum.text import printable
    from quorum.tools.guard import Passed, check, judge_list

    if file is not None:
        if sql is not None or dialect is not None:
            raise click.UsageError("--file brings its own SQL and dialects.")
        piped = str(file) == "-"
        for line in judge_list(sys.stdin.buffer if piped else file):
            click.echo(json.dumps(line, ensure_ascii=False))
        return
    if sql is None or dialect is None:
        raise click.UsageError("Give --dialect and the SQL, or --file.")
    verdict = check(standard_input() if sql == "-" else sql, dialect)
    reason = "" if isinstance(verdict, Passed) else verdict.reason
    if as_json:
        click.echo(
            json.dumps({"verdict": "refused" if reason else "pass", "reason": reason}, ensure_ascii=False)
        )
    else:
        click.echo(f"refused: {printable(reason)}" if reason else "pass: a pure read")
    if reason:
        raise SystemExit(REFUSED)
