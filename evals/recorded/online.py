"""Expert weights learned online over replayed questions, and the curves that the paper draws of them.

SSEV, section 3.1.2, Algorithms 1 and 2, Figures 15-20: an expert is a model; it starts at weight 1, and a
question that it gets wrong by the gold costs it the factor 1 - epsilon, with epsilon = sqrt(ln N / T) for N
experts. T is the number of questions so far, for online nobody knows how many will come; all mistakes so
far cost by the epsilon of now (Auer, Cesa-Bianchi and Gentile 2002), so the pool soon follows the better
expert. (With the T of the whole replay, as in the paper's figures, it does so later, and its vote
is right less often in most orders of the questions.)

An expert of several candidates answers with the majority of their results, a tie at its expectation: half
a mistake costs (1 - epsilon)^(1/2), as Algorithm 2 writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from quorum.tools.experts import MIN_WEIGHT, Bounds, best_epsilon, bounds

COMPARED = ("wma", "mbr", "majority", "sql_majority")
"""Strategies whose mistakes are counted beside the experts'."""

DRAWN_EXPERT = "drawn expert"
"""Algorithm 2 as the paper has it: an expert is drawn by weight and its answer taken. The strategy ``rwma``
takes one of its candidates instead, for which the paper's bound says nothing."""


@dataclass
class OnlineWeights:
    """Weights relative to the best expert's, and what every expert and strategy lost in each question.

    Attributes:
        experts: Per expert what it lost, question by question: 0 right, 1 wrong.
        votes: What each of ``COMPARED`` lost, and ``DRAWN_EXPERT`` in expectation, question by question.
        history: The weights per expert before each question, and after the last.
    """

    experts: dict[str, list[float]]
    votes: dict[str, list[float]] = field(init=False)
    history: list[dict[str, float]] = field(init=False)

    def __post_init__(self) -> None:
        self.history = [dict.fromkeys(self.experts, 1.0)]
        self.votes = {name: [] for name in (*COMPARED, DRAWN_EXPERT)}

    @classmethod
    def of(cls, experts: Iterable[str]) -> OnlineWeights:
        """Before the first question."""
        return cls({name: [] for name in experts})

    @property
    def questions(self) -> int:
        """Number of questions learned from."""
        return len(self.history) - 1

    @property
    def weights(self) -> dict[str, float]:
        """Per expert, as they are now; the best one's is 1."""
        return self.history[-1]

    def learn(self, experts: Mapping[str, float], votes: Mapping[str, float]) -> None:
        """Record what the experts and the votes (``COMPARED``) lost in a question, and punish the experts."""
        total = sum(self.weights.values())
        drawn = sum(weight * experts[name] for name, weight in self.weights.items()) / total
        for name, lost in self.votes.items():
            lost.append(drawn if name == DRAWN_EXPERT else votes[name])
        for name, lost in self.experts.items():
            lost.append(experts[name])
        cost = 1 - best_epsilon(len(self.experts), len(self.history))
        made = {name: sum(lost) for name, lost in self.experts.items()}
        least = min(made.values())
        self.history.append({name: max(MIN_WEIGHT, cost ** (m - least)) for name, m in made.items()})

    def shares(self, expert: str) -> list[float]:
        """The expert's part of all weight before each question and after the last, 0 to 1."""
        return [weights[expert] / sum(weights.values()) for weights in self.history]

    def bounds(self, vote: str) -> list[Bounds]:
        """After each question: a vote's mistakes and regret, the best expert's, and the algorithms' bounds.

        The bounds are those of one epsilon, the best for so many questions.
        """
        best = [min(lost) for lost in zip(*map(accumulate, self.experts.values()), strict=True)]
        return [
            bounds(len(self.experts), number, made, least)
            for number, (made, least) in enumerate(
                zip(accumulate(self.votes[vote]), best, strict=True), start=1
            )
        ]
