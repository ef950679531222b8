"""``quorum votes``: how the vote does on candidates that were recorded, and what its confidence is worth."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from quorum.commands.options import setting_flags
from quorum.evals.paths import write_text
from quorum.evals.reports.format import listed
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings
from quorum.text import count, one_line

if TYPE_CHECKING:
    from rich.table import Table

    from quorum.evals.recorded.candidates import Source
    from quorum.evals.recorded.refit import KnownVote, Refit
    from quorum.evals.recorded.replay import Replay, ReplayRow
    from quorum.evals.recorded.weights import Feedback, OnlineWeights

ORDERS = 20

FILE = click.Path(path_type=Path)
FEEDBACK = click.option(
    "--feedback",
    type=click.Choice(["gold", "execution"]),
    default="gold",
    show_default=True,
    help="weights are learned from: who was right by the gold, or whose SQL ran",
)


@click.group()
def command() -> None:
    """Replay votes over recorded candidates."""


@command.command("replay")
@click.argument("folder", type=FILE)
@click.option(
    "--gold",
    type=FILE,
    metavar="FOLDER",
    help="of recorded candidates: evaluation_suite/gold of Spider 2.0; without it no answer can be right",
)
@click.option(
    "--paper", is_flag=True, help="as in SSEV: one candidate a model, its first; blank results vote"
)
@FEEDBACK
@click.option("--json", "as_json", is_flag=True, help="print one JSON array of rows")
@click.option(
    "--orders",
    type=click.IntRange(min=1),
    default=ORDERS,
    show_default=True,
    help="random orders of arrival that a stopping rule is averaged over",
)
@click.option("--dialect", default="snowflake", show_default=True, help="of recorded SQL")
@click.option("--out", type=FILE, metavar="DIR", help="folder of curves  [.quorum/replay]")
def replay_command(
    folder: Path,
    gold: Path | None,
    paper: bool,
    feedback: Feedback,
    as_json: bool,
    orders: int,
    dialect: str,
    out: Path | None,
) -> None:
    """Replay every vote over the candidates in FOLDER, without a model.

    FOLDER holds an evaluation (what `quorum eval run` wrote), or <model>/<question>/K.sql and K.csv for
    the candidates K = 0, 1, … and final.sql, final.csv for the one that the recorded pipeline chose. Each
    model votes by itself, then all of them pooled: there each model is an expert, and its weight is
    learned from the questions before, in the order of their ids. A model by itself is one expert, so wma
    is majority there, and rwma is random. With one candidate a model (--paper) the weights, and the bounds
    on mistakes, are those of SSEV's algorithms.

    EX counts all questions of FOLDER; those without candidate or gold are wrong. Ties and draws count at
    their expectation. With gold and several models, curves of weights, error and regret are written
    as SVG and PNG (needs the extra plots).

    """
    from quorum.evals.recorded.replay import replay
    from quorum.render import console, counting

    source = _source(folder, gold, dialect)
    source = source.as_in_paper() if paper else source
    with counting() as on_done:
        found = asyncio.run(replay(source, feedback=feedback, orders=orders, progress=on_done))
    if as_json:
        click.echo(json.dumps([row.as_dict() for row in found.rows], ensure_ascii=False, indent=2))
    else:
        for model in dict.fromkeys(row.model for row in found.rows):
            console().print(_table(model, found.rows))
    for note in _notes(found, known=source.known):
        click.echo(note, err=True)
    if found.learned:
        _draw(found.learned, out or Settings().home / "replay")


def _source(folder: Path, gold: Path | None, dialect: str) -> Source:
    """The candidates of an evaluation, or recorded ones."""
    from quorum.evals.recorded.candidates import load_candidates, source_of, source_of_records
    from quorum.evals.reports.evaluations import is_evaluation, open_evaluation
    from quorum.evals.scorers.spider2 import load_gold

    if not is_evaluation(folder):
        return source_of(load_candidates(folder), load_gold(gold) if gold else None, dialect=dialect)
    if gold:
        raise click.UsageError(f"{folder} is an evaluation, whose verdicts are recorded: leave out --gold.")
    opened = open_evaluation(folder)
    return source_of_records(opened.records, opened.places)


@command.command("teach")
@click.argument("folder", type=FILE)
@FEEDBACK
@setting_flags("home")
def teach_command(folder: Path, feedback: Feedback, home: str | None) -> None:
    """Teach the weights of --home what the evaluation in FOLDER says of its experts.

    Later runs whose votes are weighted (wma, rwma, mbr, judge) begin with these weights. The first
    candidate of each expert counts, in the order of the questions' ids; what was learned before stays. An
    evaluation that is taught twice counts twice.
    """
    from quorum.evals.recorded.weights import learn, taught
    from quorum.graph.context import experts_in

    learned = asyncio.run(learn(_source(folder, None, "").as_in_paper(), feedback))
    if learned is None:
        raise ConfigurationError(
            f"Of the experts in {folder} nothing is known.",
            hint="Name an evaluation with gold whose questions several models answered.",
        )
    ledger = experts_in(Settings(home=home).home)
    weights = ledger.update(*taught(learned), feedback=feedback, epsilon=learned.epsilon(1))
    for name in learned.experts:
        click.echo(f"{name}: weight {weights[name]:.4g}")
    click.echo(f"Learned from {count(learned.questions, 'question')}: {ledger.path}", err=True)


@command.command("calibrate")
@click.argument("folders", nargs=-1, required=True, metavar="FOLDER...", type=FILE)
@click.option(
    "--gold",
    type=FILE,
    metavar="FOLDER",
    help="the gold results of recorded candidates, as for `quorum votes replay`",
)
@click.option("--out", type=FILE, metavar="FILE", help="write the new calibration there")
def calibrate_command(folders: tuple[Path, ...], gold: Path | None, out: Path | None) -> None:
    """Refit the confidence of votes to outcomes that are known.

    Each FOLDER holds evaluations with gold (what `quorum eval run` wrote, or a folder of such), or recorded
    candidates as `quorum votes replay` reads them. Of recorded candidates the first, the first two, … vote,
    of each model and of all pooled.

    The new calibration is fitted to all votes; each question counts the same. What such a fit is worth is
    shown by two more, each fitted to half of the questions and checked on the others, beside the one that
    ships, which may have seen some of them: Brier score (0 is perfect; base is that of always saying the
    share of right answers) and AUROC (how probably a right answer has more confidence than a wrong one).
    --out writes it in the form of graph/confidence.json, which it may replace.
    """
    from quorum.evals.recorded.refit import refit
    from quorum.render import console

    found = refit([vote for folder in folders for vote in _known_votes(folder, gold)])
    if out is not None:
        write_text(out, json.dumps(asdict(found.calibration), indent=1) + "\n")
        click.echo(f"Calibration: {out}", err=True)
    console().print(_checks(found))


def _known_votes(folder: Path, gold: Path | None) -> list[KnownVote]:
    from quorum.evals.recorded.refit import votes_of_candidates, votes_of_records
    from quorum.evals.reports.evaluations import is_evaluation, open_evaluations

    if is_evaluation(folder):
        return [vote for each in open_evaluations([folder]) for vote in votes_of_records(each)]
    source = _source(folder, gold, "")
    if not source.known:
        raise ConfigurationError(
            f"Which candidates in {folder} are right is not known.", hint="Name their gold with --gold."
        )
    return asyncio.run(votes_of_candidates(source))


def _checks(found: Refit) -> Table:
    from quorum.render import plain_table

    title = f"{count(found.calibration.votes, 'vote')}; each checked by a fit without its question"
    rows = []
    for source, both in found.checks.items():
        for name, each in zip(("as it ships", "refitted"), both, strict=True):
            rank = "" if each.auroc is None else f"{each.auroc:.3f}"
            figures = (f"{each.n:,}", f"{each.brier:.3f}", f"{each.brier_base:.3f}", rank)
            rows.append([f"{source or 'all'}, {name}", *figures])
    return plain_table("confidence | >votes | >Brier | >base | >AUROC", rows, title)


def _draw(learned: OnlineWeights, folder: Path) -> None:
    """Write the curves; without the extra `plots` say so, the table is printed already."""
    from quorum.evals.recorded.curves import draw_curves

    try:
        files = draw_curves(learned, folder)
    except ConfigurationError as error:
        click.echo(f"No curves were drawn. {error}", err=True)
        return
    click.echo(f"Curves: {', '.join(str(file) for file in files)}.", err=True)


def _table(model: str, rows: Sequence[ReplayRow]) -> Table:
    """Return a model's strategies, the best first and marked."""
    from quorum.render import plain_table

    own = sorted((row for row in rows if row.model == model), key=_order)
    best = next((row for row in own if row.ex is not None and row.strategy != "final"), None)
    limit = own[0].pass_at_k
    possible = "" if limit is None else f": {100 * limit:.1f} % could be answered (pass@k)"
    head = "strategy | stopping | >EX % | >95 % | >ties | >samples | >Brier"
    cells = [_cells(row, best=row is best) for row in own]
    return plain_table(head, cells, one_line(model, 40) + possible)


def _order(row: ReplayRow) -> tuple[float, float]:
    """Sort by accuracy, then by the candidates that were asked for it."""
    return (-round(row.ex or 0.0, 6), round(row.samples_mean, 6))


def _cells(row: ReplayRow, *, best: bool) -> list[str]:
    return [
        f"{row.strategy} *" if best else row.strategy,
        row.stopping,
        _percent(row.ex),
        "" if row.ex_low is None else f"{_percent(row.ex_low)}-{_percent(row.ex_high)}",
        "" if row.ties is None else f"{row.ties:.1f}",
        f"{row.samples_mean:.2f}",
        "" if row.brier is None else f"{row.brier:.3f}",
    ]


def _percent(part: float | None) -> str:
    return "" if part is None else f"{100 * part:.1f}"


def _notes(found: Replay, *, known: bool) -> Iterator[str]:
    """Say what the figures rest on."""
    if found.rows:
        asked = count(found.rows[0].questions, "question")
        yield f"{asked}; * is a model's best: of equals, the one with the fewest samples."
    if not known:
        why = "no --gold, or an evaluation without verdicts"
        yield f"No answer is known to be right ({why}): no EX, and all weights are equal."
    elif found.without_gold:
        missing = count(len(found.without_gold), "question")
        yield f"The gold lacks {missing}, which count as wrong: {listed(found.without_gold)}."
    if found.learned and found.learned.questions:
        yield from _learned(found.learned)


def _learned(learned: OnlineWeights) -> Iterator[str]:
    from quorum.evals.recorded.weights import BOUNDED, DRAWN_EXPERT, DRAWN_ONCE

    votes = {
        "wma": "wma",
        DRAWN_EXPERT: "an expert drawn by weight",
        DRAWN_ONCE: f"drawn with seed {learned.seed}",
    }
    made = []
    for vote, words in votes.items():
        bound = learned.bound(vote)
        limit = "" if bound is None else f" (bound {bound:.1f})"
        made.append(f"{sum(learned.votes[vote]):.1f} {words}{limit}")
    best = min(map(sum, learned.experts.values()))
    asked = count(learned.questions, "question")
    yield f"Pooled, mistakes in {asked} with gold and all experts: {', '.join(made)}, {best:.1f} the best."
    yield f"Weights at the end: {', '.join(f'{name} {each:.3g}' for name, each in learned.weights.items())}."
    for why in dict.fromkeys(filter(None, map(learned.no_bound, BOUNDED))):
        yield f"Where no bound is shown, none holds: {why}."
