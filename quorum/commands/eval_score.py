"""``quorum eval score``: score results that others produced."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
from rich import box
from rich.table import Table
from rich.text import Text

from quorum.knowledge.errors import ConfigurationError
from quorum.text import count, one_line, printable

if TYPE_CHECKING:
    from quorum.evals.recorded.candidate_scores import CandidateScores
    from quorum.evals.reports.statistics import Mean
    from quorum.evals.scorers.base import Metric
    from quorum.evals.submissions.scoring import Scores
    from quorum.render import OnDone

SPIDER2 = {"spider2": "", "spider2-lite": "lite", "spider2-local": "lite", "spider2-snow": "snow"}
"""Suites that are scored by their gold results alone, with the edition that the gold must be of."""

CANDIDATES = "candidates"

FILE = click.Path(path_type=Path)


@click.command(short_help="Score results that somebody else produced.")
@click.argument("suite")
@click.option("--pred", type=FILE, metavar="FOLDER", required=True, help="the predictions")
@click.option("--gold", type=FILE, metavar="FOLDER", help="see above")
@click.option("--ids", "ids_file", type=FILE, metavar="FILE", help="score these only: one id a line")
@click.option("--db", metavar="URL", help="database of your own questions that name none")
@click.option("--timings", is_flag=True, help="bird: measure R-VES, see above")
@click.option("--json", "as_json", is_flag=True, help='print {"<id>": 0, 1 or null, …} and nothing else')
@click.option("--verbose", is_flag=True, help="say of every question why")
def command(
    suite: str,
    pred: Path,
    gold: Path | None,
    ids_file: Path | None,
    db: str | None,
    timings: bool,
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
    candidates    <model>/<question>/K.csv and final.csv, as `quorum votes replay` reads them; --gold
                  as for spider2

    A question without a prediction scores 0: the score divides by all that were asked for. Where the
    gold SQL of a question cannot run, its score is null and it is in no mean. Spider 2.0's program gives
    0 to a question without a gold result, and so do spider2 and candidates. Files that belong to no
    question are named on standard error.

    --timings runs the gold query and the prediction of every right answer 100 times each in turns to
    measure BIRD's R-VES: on a machine that does nothing else, and only to compare figures that were
    measured there.

    For candidates, --json prints {"<model>": {"<id>": {"final": 0 or 1, "0": 0 or 1, …}}}.
    """
    from quorum.evals.questions import read_ids
    from quorum.render import counting

    ids = read_ids(ids_file) if ids_file else None
    if timings:
        _check_timed(suite)
    if suite == CANDIDATES:
        _score_candidates(pred, gold, ids, as_json=as_json, verbose=verbose)
        return
    with counting() as on_done:
        scores = _scored(suite, pred, gold, db, ids, on_done, timings=timings)
    if as_json:
        click.echo(json.dumps(scores.as_json(), indent=2))
    else:
        _show(suite, scores, verbose=verbose)
    for note in _notes(scores, pred):
        click.echo(note, err=True)


def _check_timed(suite: str) -> None:
    """Refuse timings where nothing runs, whatever else is wrong; other suites refuse for themselves."""
    if suite in (CANDIDATES, *SPIDER2):
        raise ConfigurationError(
            f"--timings measures R-VES, a metric of bird; {suite} runs no query.", hint="Leave it out."
        )


def _scored(
    suite: str,
    pred: Path,
    gold: Path | None,
    db: str | None,
    ids: tuple[str, ...] | None,
    on_done: OnDone,
    *,
    timings: bool,
) -> Scores:
    from quorum.evals.submissions.scoring import open_gold, score_results, score_suite
    from quorum.evals.submissions.sweep import DATABASES_AT_ONCE
    from quorum.evals.suites import part_of
    from quorum.evals.suites.bird import timed
    from quorum.suites import needed, open_suite

    if suite in SPIDER2:
        return score_results(open_gold(needed(gold, "--gold"), SPIDER2[suite]), pred, ids, on_done=on_done)
    loaded = open_suite(suite, gold, db, flag="--gold")
    loaded = timed(loaded) if timings else loaded
    for text in part_of(loaded, ids=ids).missing:
        click.echo(f"Missing: {printable(text)}", err=True)
    at_once = 1 if timings else DATABASES_AT_ONCE
    return asyncio.run(score_suite(loaded, pred, ids, at_once=at_once, on_done=on_done))


def _score_candidates(
    pred: Path, gold: Path | None, ids: tuple[str, ...] | None, *, as_json: bool, verbose: bool
) -> None:
    from quorum.evals.recorded.candidate_scores import score_candidates
    from quorum.evals.recorded.candidates import load_candidates
    from quorum.evals.submissions.scoring import open_gold
    from quorum.render import counting
    from quorum.suites import needed

    known = open_gold(needed(gold, "--gold"))
    with counting() as on_done:
        found = score_candidates(load_candidates(pred), known, ids, on_done=on_done)
    if as_json:
        values = {name: model.as_json() for name, model in found.models.items()}
        click.echo(json.dumps(values, ensure_ascii=False, indent=2))
    else:
        _show_candidates(found, verbose=verbose)
    if found.without_gold:
        click.echo(_named("The gold has no result, so all count as wrong, for", found.without_gold), err=True)


def _show(suite: str, scores: Scores, *, verbose: bool) -> None:
    """Every metric with its standard error; with ``verbose`` every question and why."""
    asked = count(len(scores.verdicts), "question")
    table = _table("metric", "mean", "n")
    for metric in scores.metrics:
        mean = scores.mean(metric.name)
        table.add_row(metric.title, _figure(mean, metric), f"{mean.n:,}")
    title = f"{one_line(suite, 60)}: {len(scores.answered):,} of {asked} answered"
    verdicts = {id: (verdict.match, verdict.reason) for id, verdict in scores.verdicts.items()}
    _print(title, table, f"Rules: {scores.rules}", verdicts if verbose else {})


def _show_candidates(found: CandidateScores, *, verbose: bool) -> None:
    asked = max((len(model.right) for model in found.models.values()), default=0)
    table = _table("model", "candidates", "EX of final", "EX of a candidate", "pass@k")
    for name, model in found.models.items():
        means = (model.final, model.candidate, model.possible)
        table.add_row(one_line(name, 40), f"{model.candidates:,}", *map(_figure, means))
    verdicts = {
        "/".join(key): (found.models[key[0]].right[key[1]][key[2]], reason)
        for key, reason in found.reasons.items()
    }
    title = f"recorded candidates: {count(asked, 'question')} per model"
    _print(title, table, "Spider 2.0's official comparison", verdicts if verbose else {})


def _table(*names: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table


def _print(title: str, table: Table, rules: str, verdicts: Mapping[str, tuple[bool | None, str]]) -> None:
    from quorum.render import console

    out = console()
    out.print(Text(title, style="bold"))
    out.print(table)
    out.print(Text(f"{rules}. ± is the standard error.", style="dim"), soft_wrap=True)
    for name, (match, reason) in verdicts.items():
        mark = {True: "right", False: "wrong", None: "?"}[match]
        out.print(Text(f"{mark:<6} {name}  {one_line(reason, 400)}"), soft_wrap=True)


def _figure(mean: Mean, metric: Metric | None = None) -> str:
    """``62.7 ± 6.0 %`` of shares, ``71.25 ± 3.10`` of points."""
    if mean.mean is None:
        return "–"
    share = metric is None or metric.unit == "share"
    scale, digits, unit = (100, 1, " %") if share else (1, 2, "")
    error = "" if mean.se is None else f" ± {scale * mean.se:.{digits}f}"
    return f"{scale * mean.mean:.{digits}f}{error}{unit}"


def _notes(scores: Scores, pred: Path) -> Iterator[str]:
    """What a reader of the figures must know."""
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
