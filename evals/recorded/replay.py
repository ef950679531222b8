"""Replay recorded candidates: every strategy of the vote under every stopping rule, without a model.

Strategies that ask one are left out. ``mbr`` votes by the rules of the recipe ``quorum``, where blank results
give way; the others as in the papers' recipes (``quorum.evals.recorded.expected.ReplayedVote``).

Candidates come from a ``quorum.evals.recorded.candidates.Source``: recorded ones, or an evaluation's. Each
model votes by itself; where there are several, all their candidates vote ``pooled`` as well, with weights
that are learned (``quorum.evals.recorded.weights``) from the questions before, in their ids' order. A model
that votes by itself is one expert, so that ``wma`` is ``majority`` there and ``rwma`` is ``random``.

Every row counts all questions of the folder. One that a model did not answer, or that the gold does not know,
counts as wrong. Draws and ties count at their expectation, and stopping rules at the mean over random orders
of arrival (``quorum.evals.recorded.expected``). Candidates that were not recorded cannot be asked for.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from quorum.evals.recorded.candidates import FINAL, POOLED, RecordedBallots, Source
from quorum.evals.recorded.expected import Metrics, ReplayedVote, arrivals, expected
from quorum.evals.recorded.weights import NEVER, Feedback, OnlineWeights, learn_question, start
from quorum.evals.reports.statistics import bootstrap_interval
from quorum.graph.ballots import Rules
from quorum.graph.stopping import find_stopping
from quorum.graph.strategies import STRATEGIES

STOPPINGS = (NEVER, "decided", "beta:0.8", "beta:0.9", "beta:0.95")
ORDERS = 20
RESAMPLES = 2_000
DIGITS = 6


@dataclass(frozen=True)
class ReplayRow:
    """The results of a strategy with a stopping rule; None where unknown: without gold, or final.

    Attributes:
        model: A model, or ``pooled``.
        strategy: One of ``STRATEGIES``, or ``final``: what the recorded pipeline itself chose.
        questions: All in the folder.
        ex: Execution accuracy over all of them, 0 to 1; ``ex_low`` to ``ex_high`` is its 95 % interval
            (percentile bootstrap over questions).
        pass_at_k: Share of questions with a right candidate: no strategy can do better.
        ties: Questions that ended in a tie, as expected over orders of arrival.
        samples_mean: Candidates asked per question, failed ones included.
        brier: Of the confidence in the answers given: 0 is perfect.
    """

    model: str
    strategy: str
    stopping: str
    questions: int
    ex: float | None
    ex_low: float | None
    ex_high: float | None
    pass_at_k: float | None
    ties: float | None
    samples_mean: float
    brier: float | None

    def as_dict(self) -> dict[str, Any]:
        """JSON-ready; numbers to ``DIGITS`` digits."""
        return {
            name: round(value, DIGITS) if isinstance(value, float) else value
            for name, value in vars(self).items()
        }


@dataclass(frozen=True)
class Replay:
    """The results of a replay.

    Attributes:
        rows: By model, ``pooled`` last; a model's ``final`` first.
        learned: How the pool's weights went; None without gold, or with a single model.
        without_gold: Questions that the gold does not know.
    """

    rows: list[ReplayRow]
    learned: OnlineWeights | None
    without_gold: list[str]


async def replay(
    source: Source,
    *,
    feedback: Feedback = "gold",
    orders: int = ORDERS,
    progress: Callable[[int, int], None] | None = None,
) -> Replay:
    """Count every vote over every question.

    Args:
        feedback: What weights are learned from; mistakes are counted by the gold.
        orders: Random orders of arrival that a stopping rule is averaged over; the same in every replay.
        progress: Called after each question with how many are done, of how many.

    Raises:
        ConfigurationError: A dialect is unknown.
    """
    learned, learnable = start(source), frozenset(source.learnable)
    outcomes: dict[tuple[str, str, str], list[Metrics]] = {}
    possible: dict[str, list[bool]] = {model: [] for model in source.names}
    for done, question in enumerate(source.questions, start=1):
        found = source.ballots(question)
        for model in source.names:
            recorded = found[model]
            weights = learned.weights if learned and model == POOLED else {}
            rules = Rules(weights, seed=0, dialect=recorded.dialect, overlaps=recorded.overlaps)
            possible[model].append(bool(recorded.right))
            async for strategy, stopping, outcome in _outcomes(recorded, rules, orders):
                outcomes.setdefault((model, strategy, stopping), []).append(outcome)
        if learned and question in learnable:
            await learn_question(learned, found, feedback)
        if progress:
            progress(done, len(source.questions))
    rows = [
        _row(*name, of_questions, possible[name[0]], known=source.known)
        for name, of_questions in outcomes.items()
        if name[1] != FINAL or any(outcome.answered for outcome in of_questions)
    ]
    return Replay(rows, learned, list(source.unknown))


async def _outcomes(
    recorded: RecordedBallots, rules: Rules, orders: int
) -> AsyncIterator[tuple[str, str, Metrics]]:
    """Yield a question's outcome by strategy and stopping rule, first what the recorded pipeline chose."""
    ballots, final = recorded.ballots, recorded.final
    yield FINAL, NEVER, Metrics(float(final or 0), samples=len(ballots), answered=float(final is not None))
    drawn = arrivals(ballots, recorded.question, orders)
    for strategy in STRATEGIES:
        vote = ReplayedVote(recorded, strategy, rules)
        for stopping in STOPPINGS:
            yield strategy, stopping, await vote.outcome(find_stopping(stopping), drawn)


def _row(
    model: str, strategy: str, stopping: str, outcomes: list[Metrics], possible: list[bool], *, known: bool
) -> ReplayRow:
    count, final = len(outcomes), strategy == FINAL
    mean = expected([(1 / count, outcome) for outcome in outcomes])
    low, high = bootstrap_interval([outcome.right for outcome in outcomes], resamples=RESAMPLES)
    return ReplayRow(
        model=model,
        strategy=strategy,
        stopping=stopping,
        questions=count,
        ex=mean.right if known else None,
        ex_low=low if known else None,
        ex_high=high if known else None,
        pass_at_k=fmean(possible) if known else None,
        ties=None if final else mean.tie * count,
        samples_mean=mean.samples,
        brier=mean.brier / mean.answered if known and mean.answered and not final else None,
    )
