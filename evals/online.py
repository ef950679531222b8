"""Expert weights learned online over replayed questions, and the curves that the paper draws of them.

SSEV, section 3.1.2, Algorithms 1 and 2, Figures 15-20: an expert is a model; it starts at weight 1, and a
question that it gets wrong by the gold costs it the factor 1 - epsilon, with epsilon = sqrt(ln N / T) for N
experts and T questions. An expert of several candidates answers with their majority, a tie of them at its
expectation: losing half a question costs (1 - epsilon)^(1/2), as Algorithm 2 writes it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import accumulate

from tools.experts import MIN_WEIGHT, Bounds, best_epsilon, bounds


@dataclass
class OnlineWeights:
    """Weights relative to the best expert's, and what every expert and strategy lost in each round.

    Attributes:
        experts: Per expert what it lost, round by round: 0 right, 1 wrong.
        epsilon: The cost of a mistake.
        strategies: Per strategy what its vote lost, round by round.
        history: The weights per expert before each round, and after the last.
    """

    experts: dict[str, list[float]]
    epsilon: float
    strategies: dict[str, list[float]] = field(default_factory=dict)
    history: list[dict[str, float]] = field(init=False)

    def __post_init__(self) -> None:
        self.history = [dict.fromkeys(self.experts, 1.0)]

    @classmethod
    def over(cls, experts: Iterable[str], rounds: int) -> OnlineWeights:
        """For so many rounds, with the epsilon that is best for them."""
        lost: dict[str, list[float]] = {name: [] for name in experts}
        return cls(lost, best_epsilon(len(lost), rounds))

    @property
    def rounds(self) -> int:
        return len(self.history) - 1

    @property
    def weights(self) -> dict[str, float]:
        """Per expert, as they are now; the best one's is 1."""
        return self.history[-1]

    def learn(self, experts: Mapping[str, float], strategies: Mapping[str, float]) -> None:
        """Record what was lost in a round, and punish the experts."""
        for name, lost in self.experts.items():
            lost.append(experts[name])
        for name, loss in strategies.items():
            self.strategies.setdefault(name, []).append(loss)
        cost = 1 - self.epsilon
        lighter = {name: weight * cost ** experts[name] for name, weight in self.weights.items()}
        best = max(lighter.values())
        self.history.append({name: max(MIN_WEIGHT, weight / best) for name, weight in lighter.items()})

    def shares(self, expert: str) -> list[float]:
        """The expert's part of all weight before each round and after the last, 0 to 1."""
        return [weights[expert] / sum(weights.values()) for weights in self.history]

    def bounds(self, strategy: str) -> list[Bounds]:
        """After each round: a strategy's mistakes and regret, the best expert's, the algorithms' bounds."""
        best = [min(lost) for lost in zip(*map(accumulate, self.experts.values()), strict=True)]
        return [
            bounds(len(self.experts), number, made, least, self.epsilon)
            for number, (made, least) in enumerate(
                zip(accumulate(self.strategies[strategy]), best, strict=True), start=1
            )
        ]
