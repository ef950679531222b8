"""``quorum guard``: is this SQL a pure read?"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorum.shell import standard_input
from quorum.text import printable
from quorum.tools.results.readable import size_text

if TYPE_CHECKING:
    from quorum.tools.guard import Passed, Rejected
    from quorum.tools.query import Estimate, QueryError

REFUSED = 1


@click.command()
@click.argument("sql", required=False)
@click.option("--dialect", metavar="D", help="sqlite, duckdb, postgres, mysql, snowflake or bigquery")
@click.option(
    "--file",
    "file",
    type=click.Path(exists=True, dir_okay=False, allow_dash=True, path_type=Path),
    metavar="LIST.jsonl",
    help='judge a list of {"dialect": …, "sql": …}, one verdict per line; - is standard input',
)
@click.option(
    "--db",
    "databases",
    metavar="URL",
    multiple=True,
    help="a database, by whose dialect it is judged; says what the SQL would read; several are read as one",
)
@click.option("--json", "as_json", is_flag=True, help="print the verdict as a JSON object")
def command(
    sql: str | None, dialect: str | None, file: Path | None, databases: tuple[str, ...], as_json: bool
) -> None:
    """Judge SQL without running it; `-` reads it from standard input.

    With --db a table or column that is not there is named, with the nearest names, and the database is asked
    what the SQL would read, by a dry run or EXPLAIN, as far as it tells. Of several databases it says which
    part is read in each.

    Exits with 0 if it is a pure read, with 1 if it is refused (the reason is printed). With
    --file, one JSON object is printed per line of the list, in order, and the exit code is 0; a
    line that cannot be judged, a blank one too, is refused.
    """
    from quorum.tools.guard import check, judge_list

    if file is not None:
        if sql is not None or dialect is not None or databases:
            raise click.UsageError("--file brings its own SQL and dialects.")
        piped = str(file) == "-"
        for line in judge_list(sys.stdin.buffer if piped else file):
            click.echo(json.dumps(line, ensure_ascii=False))
        return
    if sql is None or (dialect is None) == (not databases):
        raise click.UsageError("Give --dialect or --db and the SQL, or --file.")
    text = standard_input() if sql == "-" else sql
    if databases:
        verdict, told = asyncio.run(_by_database(text, databases))
    else:
        verdict, told = check(text, str(dialect)), None
    _show(verdict, told, as_json=as_json)


async def _by_database(
    sql: str, urls: Sequence[str]
) -> tuple[Passed | Rejected, Estimate | QueryError | None]:
    """The verdict by the databases' dialect, and what they say that the SQL would read.

    A table or column that is not there is named with the nearest ones, before a database is asked.
    """
    from quorum.graph.resources import database_urls, seen_catalog
    from quorum.settings import Settings
    from quorum.tools.admission import estimate
    from quorum.tools.databases import connect_all
    from quorum.tools.databases.many.connector import ManyConnector
    from quorum.tools.guard import Passed, allowed, check
    from quorum.tools.lint import Linter
    from quorum.tools.query import Limits, QueryError

    settings = Settings()
    where = await asyncio.to_thread(database_urls, urls, settings.home)
    async with await asyncio.to_thread(connect_all, where) as connector:
        verdict = await asyncio.to_thread(check, sql, connector.dialect)
        if not isinstance(verdict, Passed):
            return verdict, None
        linter = Linter(await seen_catalog(connector, settings))
        if isinstance(wrong := await allowed(sql, linter), QueryError):
            return verdict, wrong
        if isinstance(connector, ManyConnector):
            return verdict, await connector.estimate_parts(verdict.sql, Limits())
        return verdict, await estimate(connector, verdict.sql, Limits())


def _show(verdict: Passed | Rejected, told: Estimate | QueryError | None, *, as_json: bool) -> None:
    from quorum.tools.guard import Passed
    from quorum.tools.query import QueryError

    reason = "" if isinstance(verdict, Passed) else verdict.reason
    wrong = told.describe() if isinstance(told, QueryError) else ""
    if as_json:
        found: dict[str, object] = {"verdict": "refused" if reason else "pass", "reason": reason}
        found |= {"error": wrong} if wrong else {"estimate": asdict(told)} if told else {}
        click.echo(json.dumps(found, ensure_ascii=False))
    else:
        click.echo(f"refused: {printable(reason)}" if reason else "pass: a pure read")
        if wrong:
            who = "schema" if isinstance(told, QueryError) and told.by == "lint" else "database"
            click.echo(f"the {who} says: {printable(wrong)}")
        elif told and not isinstance(told, QueryError):
            size = f"cannot be told ({told.unknown})" if told.bytes is None else size_text(told.bytes)
            how = "" if told.bytes is None else ", which is billed" if told.billed else ", estimated"
            click.echo(f"would read: {printable(size)}{how}")
            for part in told.parts:
                click.echo(f"  {printable(part)}")
    if reason or wrong:
        raise SystemExit(REFUSED)
