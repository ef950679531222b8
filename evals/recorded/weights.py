"""Expert weights learned online over replayed questions, and the curves that the paper draws of them.

SSEV, section 3.1.2, Algorithms 1 and 2, Figures 15-20: an expert is a model; it starts at weight 1, and a
question that it gets wrong costs it the factor 1 - epsilon, with epsilon = sqrt(ln N / T) for N experts and
T questions. Where experts have one candidate each, this is done as written: afterwards T is known.

Where an expert has several candidates, it answers with the majority of their results, a tie at its
expectation: half a mistake costs (1 - epsilon)^(1/2), as Algorithm 2 writes it. T is then the number of
questions so far, for online nobody knows how many will come; all mistakes so far cost by the epsilon of now
(Auer, Cesa-Bianchi and Gentile 2002), so the pool soon follows the better expert. (With the T of the whole
replay it does so later, and its vote is right less often in most orders of the questions.)

**Why the bound of Algorithm 1 holds for any number of different answers.** If the winner is wrong, the
right answer weighs no more than the winner, so experts that are wrong hold half of all weight W at least,
whether or not they agree, and W falls to (1 - epsilon/2) W or less. The best expert's weight,
(1 - epsilon)^M*, is a part of W, so (1 - epsilon)^M* <= N (1 - epsilon/2)^M, which gives
M <= 2 (1 + epsilon) M* + 2 ln N / epsilon. A tie that is half lost counts as half a mistake, and W falls as
for a whole one. What this takes for granted is checked question by question (``OnlineWeights.no_bound``).
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from itertools import accumulate
from typing import Literal

from quorum.evals.recorded.candidates import POOLED, RecordedBallots, Source
from quorum.evals.recorded.expected import ReplayedVote
from quorum.evals.reports.format import count
from quorum.graph.ballots import NO_VERDICT, UNANSWERABLE, Rules
from quorum.graph.stopping import find_stopping
from quorum.graph.strategies import WEIGHTED
from quorum.tools.experts import MAX_EPSILON, Bounds, best_epsilon, bounds

COMPARED = ("wma", "majority", "sql_majority")
"""Strategies whose mistakes are counted beside the experts'."""

DRAWN_EXPERT = "drawn expert"
"""Algorithm 2 as the paper has it, in expectation: an expert is drawn by weight and its answer taken. The
strategy ``rwma`` takes one of its candidates instead, for which the paper's bound says nothing."""

DRAWN_ONCE = "drawn expert, once"
"""The same as it came out with ``OnlineWeights.seed``."""

BOUNDED = ("wma", DRAWN_EXPERT)
"""Votes of which the algorithms bound the mistakes."""

SEVERAL = "an expert has several candidates, each with its whole weight; see --paper"
FEW = "of so few questions epsilon is above 1/2, where the algorithms' bounds do not hold"
TINY = 1e-6  # weights so near to each other tie in a vote
UNLIKE = "in {} the weights were not learned from what counts as a mistake"
OVERRULED = (
    "in {} the vote was wrong though experts with most of the weight were right, with different results"
)


@dataclass
class OnlineWeights:
    """Weights relative to the best expert's, and what every expert and strategy lost in each question.

    Attributes:
        experts: Per expert what it lost, question by question: 0 right, 1 wrong.
        rounds: T, where it is known and each expert has one candidate.
        seed: Of the draws of ``DRAWN_ONCE``, one for each question.
        punished: Per expert what it was punished for, question by question; None where nothing was known.
        votes: What each of ``COMPARED`` lost, ``DRAWN_EXPERT`` and ``DRAWN_ONCE``, question by question.
        history: The weights per expert before each question, and after the last.
        overruled: Questions in which ``wma`` was wrong though the experts that were right held most of the
            weight: the gold accepts several results, or not all that are equal within the tolerance.
    """

    experts: dict[str, list[float]]
    rounds: int | None = None
    seed: int = 0
    punished: dict[str, list[float | None]] = field(init=False)
    votes: dict[str, list[float]] = field(init=False)
    history: list[dict[str, float]] = field(init=False)
    overruled: int = 0

    def __post_init__(self) -> None:
        self.punished = {name: [] for name in self.experts}
        self.history = [dict.fromkeys(self.experts, 1.0)]
        self.votes = {name: [] for name in (*COMPARED, DRAWN_EXPERT, DRAWN_ONCE)}

    @property
    def questions(self) -> int:
        """Number of questions learned from."""
        return len(self.history) - 1

    @property
    def weights(self) -> dict[str, float]:
        """Per expert, as they are now; the best one's is 1."""
        return self.history[-1]

    def epsilon(self, number: int) -> float:
        """Return the cost of a mistake after so many questions; without a known T at most 1/2."""
        if self.rounds is None:
            return min(MAX_EPSILON, best_epsilon(len(self.experts), number))
        return best_epsilon(len(self.experts), self.rounds)

    def learn(
        self,
        experts: Mapping[str, float],
        votes: Mapping[str, float],
        punished: Mapping[str, float | None] | None = None,
    ) -> None:
        """Record what the experts and the votes (``COMPARED``) lost in a question, and punish the experts.

        Args:
            punished: What the feedback says of the experts; what they lost if None.
        """
        weights, total = self.weights, sum(self.weights.values())
        drawn = random.Random(f"{self.seed} {self.questions}").choices([*weights], [*weights.values()])[0]
        lost = {
            **{name: votes[name] for name in COMPARED},
            DRAWN_EXPERT: sum(weight * experts[name] for name, weight in weights.items()) / total,
            DRAWN_ONCE: experts[drawn],
        }
        for name, losses in self.votes.items():
            losses.append(lost[name])
        for name in self.experts:
            self.experts[name].append(experts[name])
            self.punished[name].append(experts[name] if punished is None else punished[name])
        self.overruled += lost["wma"] > 0 and lost[DRAWN_EXPERT] < 0.5 - TINY
        cost = 1 - self.epsilon(len(self.history))
        made = {name: sum(filter(None, losses)) for name, losses in self.punished.items()}
        least = min(made.values())
        self.history.append({name: cost ** (m - least) for name, m in made.items()})

    def shares(self, expert: str) -> list[float]:
        """The expert's part of all weight before each question and after the last, 0 to 1."""
        return [weights[expert] / sum(weights.values()) for weights in self.history]

    def no_bound(self, vote: str) -> str:
        """Return why the algorithms' bounds do not hold for a vote; "" if they hold."""
        if vote not in BOUNDED:
            return "only WMA, and RWMA in expectation, have one"
        if self.rounds is None:
            return SEVERAL
        pairs = zip(
            zip(*self.experts.values(), strict=True), zip(*self.punished.values(), strict=True), strict=True
        )
        if unlike := sum(lost != punished for lost, punished in pairs):
            return UNLIKE.format(count(unlike, "question"))
        if self.epsilon(1) > MAX_EPSILON:
            return FEW
        return OVERRULED.format(count(self.overruled, "question")) if vote == "wma" and self.overruled else ""

    def bounds(self, vote: str) -> list[Bounds]:
        """After each question: a vote's mistakes and regret, the best expert's, and the algorithms' bounds.

        The bounds are those of one epsilon, and hold where ``no_bound`` says nothing.
        """
        best = [min(lost) for lost in zip(*map(accumulate, self.experts.values()), strict=True)]
        return [
            bounds(len(self.experts), number, made, least, self.epsilon(number))
            for number, (made, least) in enumerate(
                zip(accumulate(self.votes[vote]), best, strict=True), start=1
            )
        ]

    def bound(self, vote: str) -> float | None:
        """Most mistakes that the vote can make, or is expected to; None where no bound holds."""
        if self.no_bound(vote) or not self.questions:
            return None
        last = self.bounds(vote)[-1]
        return last.wma if vote == "wma" else last.rwma


Feedback = Literal["gold", "execution"]
"""Who says that an expert was wrong: the verdicts of the gold, or that its SQL did not run (SSEV, 3.1.2)."""

NEVER = "never"


def start(source: Source) -> OnlineWeights | None:
    """Level weights of the source's experts; None where there is a single one, or nothing is known."""
    if not source.learnable or POOLED not in source.names:
        return None
    experts: dict[str, list[float]] = {name: [] for name in source.models}
    return OnlineWeights(experts, None if source.several else len(source.learnable))


async def learn_question(
    learned: OnlineWeights, found: Mapping[str, RecordedBallots], feedback: Feedback
) -> None:
    """Learn from one question: an expert's answer is the majority of its own candidates."""
    rules = Rules(seed=0, dialect=found[POOLED].dialect)
    weighted = replace(rules, weights=learned.weights)
    lost = {name: await _lost(found.get(name), "majority", rules) for name in learned.experts}
    votes = {
        name: await _lost(found[POOLED], name, weighted if name in WEIGHTED else rules) for name in COMPARED
    }
    punished = {name: _punished(found.get(name), lost[name], feedback) for name in learned.experts}
    learned.learn(lost, votes, punished)


def _punished(found: RecordedBallots | None, lost: float, feedback: Feedback) -> float | None:
    """Return the loss that an expert is punished for; None if none of its SQL could be judged.

    That the data cannot answer is wrong by a gold that has an answer; execution says nothing of it.
    """
    ballots = found.ballots if found else ()
    ran = any(ballot.fingerprint for ballot in ballots)
    silent = set(NO_VERDICT) - ({UNANSWERABLE} if feedback == "gold" else set())
    if ballots and not ran and all(ballot.error in silent for ballot in ballots):
        return None
    return lost if feedback == "gold" else float(not ran)


async def learn(source: Source, feedback: Feedback = "gold") -> OnlineWeights | None:
    """Return the weights after all questions, in the order of ids; None where ``start`` gives none."""
    if learned := start(source):
        for question in source.learnable:
            await learn_question(learned, source.ballots(question), feedback)
    return learned


async def _lost(found: RecordedBallots | None, strategy: str, rules: Rules) -> float:
    """Return the probability that the vote's answer is wrong."""
    if found is None:
        return 1.0
    outcome = await ReplayedVote(found, strategy, rules).outcome(find_stopping(NEVER), [found.ballots])
    return 1 - outcome.right


def taught(learned: OnlineWeights) -> Iterator[dict[str, bool]]:
    """Yield rounds for ``quorum.tools.experts.ExpertLedger``: per question, whom the feedback calls right."""
    for punished in zip(*learned.punished.values(), strict=True):
        yield {
            name: not loss for name, loss in zip(learned.punished, punished, strict=True) if loss is not None
        }
