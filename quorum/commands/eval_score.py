"""``quorum eval score``: score results that others produced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich.text import Text

from quorum.evals.reports.format import mean_plus_minus
from quorum.evals.suites import part_of
from quorum.suites import needed, open_suite
from quorum.text import count, one_line, printable

if TYPE_CHECKING:
    from quorum.evals.scoring import Scores
    from quorum.render import OnDone

SPIDER2 = {"spider2": "", "spider2-lite": "lite", "spider2-local": "lite", "spider2-snow": "snow"}
"""Suites that are scored by their gold results alone, with the edition that the gold must be of."""

FILE = click.Path(path_type=Path)


@click.command()
@click.argument("suite")
@click.option("--pred", type=FILE, metavar="FOLDER", required=True, help="the predictions")
@click.option("--gold", type=FILE, metavar="FOLDER", help="see above")
@click.option("--ids", "ids_file", type=FILE, metavar="FILE", help="score these only: one id a line")
@click.option("--db", metavar="URL", help="database of your own questions that name none")
@click.option("--json", "as_json", is_flag=True, help='print {"<id>": 0, 1 or null, …} and nothing else')
@click.option("--verbose", is_flag=True, help="say of every question why")
def command(
    suite: str,
    pred: Path,
    gold: Path | None,
    ids_file: Path | None,
    db: str | None,
    as_json: bool,
    verbose: bool,
) -> None:
    """Score the predictions in a folder by the rules of SUITE.

    \b
    spider2       <id>.csv by the official comparison; --gold holds exec_result/ and the *_eval.jsonl
                  (also spider2-lite, -local, -snow: the gold must be of that edition)
    spider1, spider1-test, bird, defog, ambrosia
                  <id>.csv or <id>.sql, which is run read-only and counts where both are there;
                  for bird also its predict_dev.json; --gold is the benchmark's folder
    FILE          the same for your own questions (.jsonl or .csv); --db is their database

    A question without a prediction scores 0: the score divides by all that were asked for. Where the
    gold SQL of a question cannot run, its score is null and it is in no mean. Spider 2.0's program gives
    0 to a question without a gold result, and so does spider2. Files that belong to no
    question are named on standard error.

    """
    from quorum.evals.questions import read_ids
    from quorum.render import counting

    ids = read_ids(ids_file) if ids_file else None
    with counting() as on_done:
        scores = _scored(suite, pred, gold, db, ids, on_done)
    if as_json:
        click.echo(json.dumps(scores.as_json(), indent=2))
    else:
        _show(suite, scores, verbose=verbose)
    for note in _notes(scores, pred):
        click.echo(note, err=True)


def _scored(
    suite: str,
    pred: Path,
    gold: Path | None,
    db: str | None,
    ids: tuple[str, ...] | None,
    on_done: OnDone,
) -> Scores:
    from quorum.evals.scoring import gold_suite, score_suite

    if suite in SPIDER2:
        loaded = gold_suite(needed(gold, "--gold"), SPIDER2[suite])
    else:
        loaded = open_suite(suite, gold, db, flag="--gold")
    for text in part_of(loaded, ids=ids).missing:
        click.echo(f"Missing: {printable(text)}", err=True)
    return asyncio.run(score_suite(loaded, pred, ids, on_done=on_done))


def _show(suite: str, scores: Scores, *, verbose: bool) -> None:
    """Every metric with its standard error; with ``verbose`` every question and why."""
    from quorum.render import console, plain_table

    means = [(metric, scores.mean(metric.name)) for metric in scores.scorer.metrics]
    rows = [(it.title, mean_plus_minus(mean) + " %" * (mean.n > 0), f"{mean.n:,}") for it, mean in means]
    out, asked = console(), count(len(scores.verdicts), "question")
    title = f"{one_line(suite, 60)}: {len(scores.answered):,} of {asked} answered"
    out.print(Text(title, style="bold"))
    out.print(plain_table("metric | >mean | >n", rows))
    out.print(Text(f"Rules: {scores.scorer.rules}. ± is the standard error.", style="dim"), soft_wrap=True)
    for id, verdict in scores.verdicts.items() if verbose else ():
        mark = {True: "right", False: "wrong", None: "?"}[verdict.match]
        out.print(Text(f"{mark:<6} {id}  {one_line(verdict.reason, 400)}"), soft_wrap=True)


def _notes(scores: Scores, pred: Path) -> Iterator[str]:
    """Yield notes that a reader of the figures must know."""
    predictions: Any = scores.predictions
    if not predictions.found:
        yield f"{pred} holds no prediction for any question: all score 0."
    if predictions.unknown:
        yield _named("Not scored, for the gold knows no such question:", predictions.unknown)
    if scores.unreadable:
        yield _named("Results that cannot be read score 0:", scores.unreadable)
    if predictions.unread:
        yield _named("Not read:", predictions.unread)
    yield from predictions.remarks
    if left := sorted(set(predictions.found) - set(scores.verdicts)):
        yield f"{count(len(left), 'prediction')} of questions that were not asked for."
    for id, verdict in scores.unscorable.items():
        yield f"Cannot be scored: {id} ({one_line(verdict.reason, 200)})"


def _named(text: str, names: Sequence[str]) -> str:
    return f"{text} {', '.join(one_line(name, 100) for name in names)} ({len(names):,})."
