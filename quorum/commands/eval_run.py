"""``quorum eval run``: ask a benchmark's questions, many at a time, and keep what came of each."""

from __future__ import annotations

import asyncio
import hashlib
import json
import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from quorum.commands.options import Command, setting_flags
from quorum.evals.paths import check_no_file
from quorum.evals.suites import part_of
from quorum.settings import Settings
from quorum.shell import Interrupted, interruptible
from quorum.suites import open_suite
from quorum.text import count, printable
from quorum.tools.urls import SAMPLE

if TYPE_CHECKING:
    from quorum.eval_progress import Tally
    from quorum.evals.questions import GoldParts
    from quorum.evals.running.runner import Evaluation
    from quorum.graph.options import RunOptions
    from quorum.settings import Settings

UNFINISHED = 1
LONGEST_NAME = 120
FILES = (256, 16)
"""Files that may have to be open: at all times, and for each question that is being asked."""


def _shard(_: click.Context, __: click.Parameter, given: str) -> tuple[int, int]:
    """``2/8`` is the second of eight."""
    found = re.fullmatch(r"([0-9]+)/([0-9]+)", given)
    if not found or not 1 <= int(found[1]) <= int(found[2]):
        raise click.BadParameter(f"{given!r} is no shard; write 2/8 for the second of eight.")
    return int(found[1]), int(found[2])


def _sample(_: click.Context, __: click.Parameter, given: tuple[str, ...]) -> dict[str, int]:
    """``ambiguous:30``, or ``30`` of all questions."""
    found: dict[str, int] = {}
    for each in given:
        group, _colon, number = each.rpartition(":")
        if not number.isdecimal() or int(number) < 1 or group in found:
            raise click.BadParameter(f"{each!r} is no sample; write ambiguous:30, each group once.")
        found[group] = int(number)
    return found


@click.command(cls=Command)
@click.argument("suite")
@click.option("--data", type=click.Path(path_type=Path), metavar="DIR", help="the benchmark's folder")
@click.option("--db", "database", metavar="URL", help="of own questions that name none")
@click.option("--limit", type=click.IntRange(min=1), metavar="N", help="the first N questions only")
@click.option("--ids", type=click.Path(path_type=Path), metavar="FILE", help="only those, one id per line")
@click.option(
    "--sample", multiple=True, callback=_sample, metavar="[GROUP:]N", help="N of a group, see above"
)
@click.option(
    "--shard", callback=_shard, metavar="K/N", default="1/1", help="every Nth question, from the Kth"
)
@click.option("--concurrency", type=click.IntRange(min=1), metavar="C", default=8, help="at a time  [8]")
@click.option("--workers", type=click.IntRange(min=1), metavar="N", default=1, help="processes that ask  [1]")
@click.option("--cluster", metavar="ADDRESS", default="", help="ask in the workers of this Dask scheduler")
@click.option("--out", type=click.Path(path_type=Path), metavar="DIR", help="where the evaluation is kept")
@click.option(
    "--gold", type=click.Choice(["tables", "columns"]), help="show each question only those, see above"
)
@click.option(
    "--clarify", type=click.Choice(["gold", "off"]), help="simulate a user who is asked, see above  [off]"
)
@setting_flags(without=("database", "clarify"))
@click.option("--json", "as_json", is_flag=True, help="print one JSON object at the end")
@click.option("--quiet", "-q", is_flag=True, help="no progress on standard error")
def command(
    suite: str,
    data: Path | None,
    limit: int | None,
    ids: Path | None,
    sample: dict[str, int],
    shard: tuple[int, int],
    concurrency: int,
    workers: int,
    cluster: str,
    out: Path | None,
    gold: GoldParts | None,
    clarify: str | None,
    as_json: bool,
    quiet: bool,
    **flags: Any,
) -> None:
    """Ask the questions of SUITE, many at a time, and keep what came of each as it ends.

    SUITE is spider1, spider1-test, bird, spider2-lite, spider2-local, spider2-snow, defog or
    ambrosia, in the folder --data, or a .jsonl or .csv file with questions of your own.

    Whatever stops it, the same command goes on: it repeats nothing that is finished, and asks again what
    failed for lack of the model's endpoint or the database. Without --out the evaluation is kept in a folder
    named after suite, recipe and models. Limits such as --max-calls hold for each question.

    --sample ambiguous:30 asks thirty questions of the group `ambiguous`, drawn by their ids: the same ones
    each time, and among those of a larger sample. It may be repeated; groups are those that reports show
    apart, and difficulties. --shard 1/2 and 2/2 make of a sample two halves that share no question.

    --gold is for ablations (ReFoRCE, Tables 3 and 4): each question sees only the tables that the benchmark
    publishes as needed or that its gold SQL reads, or only the columns that its gold SQL uses. A question
    whose gold is not known sees the whole schema. Reports say so: such figures are no results of a system.

    --clarify gold simulates a user where a run may ask which answer is meant (at most once): one who knows
    the gold, and chooses the answer that meets it, if any does. Reports show the share of right answers with
    that question beside EX, how often it was asked and how often in vain; all other figures are those
    without a reply.

    One process uses one processor core: with --workers N, N processes share the questions. It pays where
    hundreds are asked at a time, or the model replies fast. --cluster tcp://HOST:8786 shares them among the
    workers of a Dask cluster, which find Quorum, the databases and --out at the same places. Both need the
    extra cluster. What a lost worker had under way, another one goes on with.

    Exit codes: 0 all questions have their final record; 1 some failed for lack of an endpoint (the same
    command asks them again); 2 usage, configuration or a full disk; 130 Ctrl-C (the same command goes on; a
    second Ctrl-C ends at once).
    """
    from quorum.eval_progress import Tally
    from quorum.evals.questions import read_ids
    from quorum.evals.running.runner import Evaluation

    asks = {"gold": "always", "off": "off", None: None}
    settings = Settings(**flags, clarify=asks[clarify])
    wanted = read_ids(ids) if ids else None
    loaded = part_of(open_suite(suite, data, flags["database"]), ids=wanted, limit=limit, sample=sample)
    simulated = clarify == "gold"
    options = _options(settings)
    kind = (f"-gold-{gold}" if gold else "") + "-clarified" * simulated
    name = _name(loaded.name + kind, options.recipe, options.models, shard)
    folder = out or settings.home / "evals" / name
    check_no_file(folder, hint="Give another --out: a folder.")
    chosen = loaded.chosen(ids=wanted, limit=limit, shard=shard, sample=sample)
    evaluation = Evaluation(
        loaded, options, chosen, folder, concurrency, shard, gold, simulated, settings.key
    )
    evaluation.check()
    tally = Tally(len(chosen))
    status, message = ask_all(evaluation, tally, workers, cluster, quiet=quiet)
    _close(evaluation, tally, message, as_json=as_json, status=status)
    raise SystemExit(status)


def _options(settings: Settings) -> RunOptions:
    """Return the options of the runs. Each question brings its own database.

    What a user keeps or explores has no say in what is measured, unless a flag names it.
    """
    from quorum.evals.running.databases import replace_options

    options = settings.changed(database=[SAMPLE]).run_options()
    for name in ("kb", "explored"):
        if settings.provenance()[name] != "flag":
            options = replace_options(options, **{name: None})
        elif not getattr(options, name).is_dir():
            raise click.UsageError(f"--{name} names {getattr(options, name)}, which is no folder.")
    return options


def _name(suite: str, recipe: str, models: Sequence[str], shard: tuple[int, int]) -> str:
    """The evaluation's folder where no --out is given: the same for the same command."""
    suite = re.sub(r"\.(jsonl|csv)$", "", suite, flags=re.IGNORECASE)  # own questions are named by their file
    parts = [suite, recipe, "+".join(models), *([f"{shard[0]}of{shard[1]}"] if shard != (1, 1) else [])]
    name = re.sub(r"[^A-Za-z0-9._+-]+", "-", "-".join(parts)).strip("-.")
    if len(name) <= LONGEST_NAME:
        return name
    return f"{name[:LONGEST_NAME]}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def ask_all(
    evaluation: Evaluation, tally: Tally, workers: int, cluster: str, *, quiet: bool
) -> tuple[int, str]:
    """Run an evaluation with progress on standard error; returns the exit status and why it is unfinished."""
    from quorum.eval_progress import TallyBoard
    from quorum.evals.running.cluster import workers_of
    from quorum.evals.running.runner import GaveUp, run_evaluation
    from quorum.render import console

    if workers > evaluation.concurrency:
        raise click.UsageError(
            f"{workers} workers cannot share {evaluation.concurrency} questions at a time."
        )
    if workers > 1 and cluster:
        raise click.UsageError("--workers starts processes here, --cluster has its own: give one of them.")
    _allow_files(evaluation.concurrency)  # before there are workers, which inherit it
    if not quiet:
        _announce(evaluation, f" on {cluster}" if cluster else f" in {workers} processes" * (workers > 1))
    status, message = 0, ""
    with TallyBoard(tally, console(stderr=True), quiet=quiet) as board:

        def stopping() -> None:
            board.stop()
            click.echo("Stopping what is under way; Ctrl-C again ends at once.", err=True)

        run = partial(run_evaluation, evaluation, on_begin=board.begin, on_record=board.record)

        async def work() -> None:
            if workers == 1 and not cluster:
                await run()
                return
            async with workers_of(workers, address=cluster) as others:
                await run(workers=others)

        try:
            asyncio.run(interruptible(work(), stopping))
        except Interrupted as ended:
            status, message = ended.status, "Interrupted. The same command goes on."
        except GaveUp as error:
            status, message = UNFINISHED, f"Given up. {error}"
    unfinished = sum(not record.finished for record in tally.records.values())
    if not status and unfinished:
        status, message = (
            UNFINISHED,
            f"{unfinished} failed for want of an endpoint: the same command asks them again.",
        )
    return status, message


def _announce(evaluation: Evaluation, where: str) -> None:
    options, (number, of) = evaluation.options, evaluation.shard
    parts = (
        evaluation.suite.name + (f" {number}/{of}" if of > 1 else ""),
        count(len(evaluation.questions), "question"),
        f"{evaluation.concurrency} at a time{where}",
        f"recipe {options.recipe}",
        printable(", ".join(options.models)),
        *([f"each with its gold {evaluation.gold} only"] if evaluation.gold else []),
        *(["a simulated user may be asked"] if evaluation.simulated else []),
    )
    click.echo(" · ".join(parts), err=True)
    for text in evaluation.suite.missing:
        click.echo(f"Missing: {printable(text)}", err=True)
    click.echo(f"Kept in {evaluation.folder}", err=True)


def _close(evaluation: Evaluation, tally: Tally, message: str, *, as_json: bool, status: int) -> None:
    folder = evaluation.folder
    if as_json:
        about = {
            "status": "finished" if status == 0 else "interrupted" if status > UNFINISHED else "unfinished",
            "message": printable(message),
            "folder": str(folder),
            "suite": evaluation.suite.name,
            "recipe": evaluation.options.recipe,
            "models": evaluation.options.models,
            "shard": f"{evaluation.shard[0]}/{evaluation.shard[1]}",
            "gold": evaluation.gold,
            "missing": list(evaluation.suite.missing),
        }
        click.echo(json.dumps(about | tally.summary(), ensure_ascii=False))
    else:
        for line in tally.closing():
            click.echo(printable(line))
        click.echo(f"Kept in {folder}; report: quorum eval report {folder}")
    if message:
        click.echo(printable(message), err=True)


def _allow_files(concurrency: int) -> None:
    """Allow as many open files as so many questions at a time may need, as far as the system does."""
    import resource

    always, each = FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = always + each * concurrency
    if soft != resource.RLIM_INFINITY and soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))
