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

from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from quorum.evals.recorded.candidates import FINAL, POOLED, RecordedBallots, Source
from quorum.evals.recorded.expected import Outcome, ReplayedVote, arrivals, expected
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
class Row:
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

    rows: list[Row]
    learned: OnlineWeights | None
    without_gold: list[str]


@dataclass(eq=False)
class _Results:
    """Outcomes of a group's questions, one after the other.

    Attributes:
        possible: Whether a candidate is right.
        outcomes: By strategy and stopping rule.
    """

    possible: list[bool] = field(default_factory=list)
    outcomes: dict[tuple[str, str], list[Outcome]] = field(default_factory=dict)

    async def add(self, recorded: RecordedBallots, rules: Rules, orders: int) -> None:
        """Count every vote over one more question."""
        ballots, final = recorded.ballots, recorded.final
        drawn = arrivals(ballots, recorded.question, orders)
        self.possible.append(bool(recorded.right))
        for strategy in STRATEGIES:
            vote = ReplayedVote(recorded, strategy, rules)
            for stopping in STOPPINGS:
                outcome = await vote.outcome(find_stopping(stopping), drawn)
                self.outcomes.setdefault((strategy, stopping), []).append(outcome)
        chosen = Outcome(float(final or 0), samples=len(ballots), answered=float(final is not None))
        self.outcomes.setdefault((FINAL, NEVER), []).append(chosen)


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
    names, asked, learned = source.names, source.questions, start(source)
    learnable = frozenset(source.learnable)
    results = {name: _Results() for name in names}
    for done, question in enumerate(asked, start=1):
        found = source.ballots(question)
        for group in names:
            ballots = found[group]
            weights = learned.weights if learned and group == POOLED else {}
            rules = Rules(weights, seed=0, dialect=source.dialect_of(question), overlaps=ballots.overlaps)
            await results[group].add(ballots, rules, orders)
        if learned and question in learnable:
            await learn_question(learned, found, source.dialect_of(question), feedback)
        if progress:
            progress(done, len(asked))
    rows = [row for name in names for row in _rows(name, results[name], known=source.known)]
    return Replay(rows, learned, list(source.unknown))


def _rows(model: str, results: _Results, *, known: bool) -> list[Row]:
    """Return a group's rows, what the recorded pipeline chose first, if it did."""
    made = [_row(model, name, results, outcomes, known=known) for name, outcomes in results.outcomes.items()]
    chosen = any(outcome.answered for outcome in results.outcomes[FINAL, NEVER])
    kept = [row for row in made if chosen or row.strategy != FINAL]
    return sorted(kept, key=lambda row: row.strategy != FINAL)


def _row(
    model: str, name: tuple[str, str], results: _Results, outcomes: list[Outcome], *, known: bool
) -> Row:
    (strategy, stopping), count, final = name, len(outcomes), name[0] == FINAL
    mean = expected([(1 / count, outcome) for outcome in outcomes])
    low, high = bootstrap_interval([outcome.right for outcome in outcomes], resamples=RESAMPLES)
    return Row(
        model=model,
        strategy=strategy,
        stopping=stopping,
        questions=count,
        ex=mean.right if known else None,
        ex_low=low if known else None,
        ex_high=high if known else None,
        pass_at_k=fmean(results.possible) if known else None,
        ties=None if final else mean.tie * count,
        samples_mean=mean.samples,
        brier=mean.brier / mean.answered if known and mean.answered and not final else None,
    )
