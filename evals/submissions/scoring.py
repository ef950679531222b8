"""Scores of predictions that others made, by each benchmark's own rules."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from quorum.evals.paths import check_folder
from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.reports.statistics import Mean, mean_of
from quorum.evals.scorers.base import EX, Metric, Prediction, RunSql, Scorer, Verdict, unscorable, wrong
from quorum.evals.scorers.spider2 import Spider2Scorer
from quorum.evals.scorers.spider2_rules import Score, Spider2Gold, load_gold
from quorum.evals.submissions.predictions import Found, Predictions, bird_file, find_predictions, read_bird
from quorum.evals.submissions.sweep import sweep
from quorum.evals.tabular.frames import UnreadableCsv, read_frame
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.query import QueryError

GOLD_FOLDER = Path("evaluation_suite", "gold")
MISSING = "there is no prediction"


@dataclass(frozen=True)
class Scores:
    """The verdicts on predictions.

    Attributes:
        metrics: That the verdicts have, ``ex`` first.
        rules: Whose rules they follow.
        verdicts: By id, of all questions asked for.
        answered: Ids of those that have a prediction that can be read.
        unreadable: Ids of those whose result is there and cannot be read; they score 0.
        predictions: What was found, and what belongs to no question.
    """

    metrics: tuple[Metric, ...]
    rules: str
    verdicts: dict[str, Verdict]
    answered: frozenset[str]
    predictions: Predictions
    unreadable: tuple[str, ...] = ()

    def as_json(self) -> dict[str, int | None]:
        """1 for each question that is right, 0 for one that is not, None where unknown."""
        return {id: None if v.match is None else int(v.match) for id, v in self.verdicts.items()}

    def mean(self, metric: str) -> Mean:
        """Over the questions where the metric is defined; without a prediction it is 0."""
        return mean_of(verdict.metrics.get(metric) for verdict in self.verdicts.values())

    @property
    def unscorable(self) -> dict[str, Verdict]:
        """The questions whose gold is unusable; they are in no mean."""
        return {id: verdict for id, verdict in self.verdicts.items() if verdict.match is None}


def open_gold(folder: Path, edition: str = "") -> Spider2Gold:
    """Spider 2.0's gold, from its own folder or from that of the benchmark.

    Args:
        edition: ``lite`` or ``snow``; empty if either will do.

    Raises:
        ConfigurationError: It is no gold, or that of the other edition.
    """
    check_folder(folder, hint="Name the benchmark's folder, or its evaluation_suite/gold, with --gold.")
    inner = folder / GOLD_FOLDER
    gold = load_gold(inner if inner.is_dir() else folder)
    if edition and gold.edition != edition:
        raise ConfigurationError(
            f"{gold.folder} is the gold of Spider 2.0-{gold.edition.title()}, not of -{edition.title()}.",
            hint="Name the other suite, or spider2 for either.",
        )
    return gold


def asked_ids(known: Sequence[str], ids: Iterable[str] | None, what: str) -> list[str]:
    """``ids`` in their order, or all.

    Raises:
        ConfigurationError: An id is not known.
    """
    if ids is None:
        return list(known)
    asked = list(ids)
    if strangers := [id for id in asked if id not in set(known)]:
        more = f" (and {len(strangers) - 1} more that were named)" if len(strangers) > 1 else ""
        raise ConfigurationError(
            f"{what} has no question {strangers[0]!r}{more}.",
            hint=f"Its ids are like {', '.join(known[:3])}.",
        )
    return asked


def score_results(
    gold: Spider2Gold,
    folder: Path,
    ids: Iterable[str] | None = None,
    *,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> Scores:
    """Score a folder of ``<id>.csv`` by Spider 2.0's official comparison.

    Args:
        ids: Questions asked for; all of the gold if None.
        on_done: Told how many questions are done, of how many.

    Raises:
        ConfigurationError: There is no such folder or question.
    """
    asked = asked_ids(gold.ids, ids, f"The gold in {gold.folder}")
    predictions = find_predictions(folder, gold.standards.keys())
    verdicts, unreadable = {}, []
    for id in asked:
        found = predictions.found.get(id, Found())
        try:
            frame = read_frame(found.csv) if found.csv else None
        except UnreadableCsv as error:
            verdicts[id] = wrong(Spider2Scorer.metrics, f"the result cannot be read: {error}")
            unreadable.append(id)
        else:
            score = gold.compare(id, frame) if frame else Score(False, MISSING)
            verdicts[id] = Verdict({EX: float(score.match)}, score.reason)
        on_done(len(verdicts), len(asked))
    answered = frozenset(id for id in asked if id in predictions.found).difference(unreadable)
    metrics, rules = Spider2Scorer.metrics, Spider2Scorer.rules
    return Scores(metrics, rules, verdicts, answered, predictions, tuple(unreadable))


async def score_suite(
    suite: Suite,
    pred: Path,
    ids: Iterable[str] | None = None,
    *,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> Scores:
    """Score predictions of a suite by its scorer: ``<id>.csv``, ``<id>.sql``, or BIRD's JSON file.

    Queries run read-only on the question's database. Where that cannot be opened, its questions cannot be
    scored.

    Args:
        ids: Questions asked for; all if None.
        on_done: Told how many questions are done, of how many.

    Raises:
        ConfigurationError: There are no predictions there, or a question is unknown.
    """
    predictions = _predictions(suite, pred)
    asked = suite.chosen(ids=ids)
    metrics, unreadable = suite.scorer.metrics, set[str]()

    async def judge(question: EvalQuestion, run: RunSql | None) -> Verdict:
        try:
            return await judged(question, predictions.found.get(question.id, Found()), suite.scorer, run)
        except UnreadableCsv as error:
            unreadable.add(question.id)
            return wrong(metrics, f"the result cannot be read: {error}")

    verdicts = await sweep(
        asked,
        judge,
        lambda _, reason: unscorable(metrics, reason, "not_live"),
        on_done=lambda done: on_done(done, len(asked)),
    )
    predicted = (id for id in verdicts if predictions.found.get(id, Found()) != Found())
    return Scores(
        metrics,
        suite.scorer.rules,
        verdicts,
        frozenset(predicted).difference(unreadable),
        predictions,
        tuple(id for id in verdicts if id in unreadable),
    )


def _predictions(suite: Suite, pred: Path) -> Predictions:
    file = bird_file(pred) if suite.name == "bird" else None
    if file is None:
        return find_predictions(pred, [question.id for question in suite.questions], sql=True)
    if suite.missing:
        raise ConfigurationError(
            f"{file} goes by the questions' places, and some are not here: {' '.join(suite.missing)}",
            hint="Complete the benchmark's folder, or give <id>.sql files.",
        )
    return read_bird(file, suite.questions)


async def judged(question: EvalQuestion, found: Found, scorer: Scorer, run: RunSql | None) -> Verdict:
    """The verdict on what was found for a question.

    Raises:
        UnreadableCsv: Its result cannot be read.
    """
    if found.sql and run is not None:
        outcome = await run(found.sql)
        if isinstance(outcome, QueryError):
            verdict = await scorer.score(question, Prediction(found.sql), run)
            return _because(verdict, f"the query fails: {outcome.describe()}")
        prediction = Prediction(found.sql, outcome.table, bool(outcome.truncated))
        return await scorer.score(question, prediction, run)
    if found.csv is not None and scorer.needs_sql:
        return wrong(scorer.metrics, "these rules judge a query, and there is only a result")
    verdict = await scorer.score(question, Prediction(found.sql, found.csv), run)
    if found == Found():
        return _because(verdict, MISSING)
    return verdict if found.csv else _because(verdict, "the query cannot run: its database is not here")


def _because(verdict: Verdict, reason: str) -> Verdict:
    """The verdict with the reason why nothing was compared, unless the gold is at fault."""
    return dataclasses.replace(verdict, reason=reason) if verdict.match is False else verdict
