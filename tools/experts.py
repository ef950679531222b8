"""Expert weights that outlive a run: the ledger behind weighted majority voting.

SSEV, section 3.1.2, Algorithms 1 and 2: an expert (a model) starts at weight 1; a mistake costs
the factor 1 - epsilon, with epsilon = sqrt(ln N / T). Weights are kept relative to the best
expert's, which is always 1: only their ratios matter to a vote, and a newcomer starts level.
"""

from __future__ import annotations

import json
import math
import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorum.knowledge.atomic import lock, replace_file
from quorum.knowledge.errors import ConfigurationError, QuorumError, first_in_words

Feedback = Literal["gold", "user", "execution"]
"""Who says that an expert was wrong: a gold answer, the user, or that its SQL did not run."""

HORIZON = 64  # the first guess of T
MAX_EPSILON = 0.5  # the mistake bounds hold up to here; in the file no mistake costs more
LOCK_SECONDS = 30.0


def best_epsilon(experts: int, rounds: int) -> float:
    """Return sqrt(ln N / T) (SSEV, Algorithm 1, step 6); 0 for a single expert, who has no rival.

    It is at most 1 (T < ln N): a mistake cannot cost more than the whole weight.
    """
    return min(1.0, math.sqrt(math.log(max(1, experts)) / max(1, rounds)))


def guessed_epsilon(experts: int, round_: int) -> float:
    """Return epsilon in a round where nobody knows T: it is 64 up to round 64, then 128 up to round 128, …

    This is the doubling trick without its restarts: weights stay.
    """
    return best_epsilon(experts, HORIZON << max(0, math.ceil(math.log2(round_ / HORIZON))))


class Expert(BaseModel):
    """One expert's record."""

    model_config = ConfigDict(extra="forbid")

    weight: float = Field(default=1.0, gt=0, le=1)
    rounds: int = Field(default=0, ge=0)
    mistakes: int = Field(default=0, ge=0)


class Book(BaseModel):
    """The whole file. ``votes`` and ``vote_mistakes`` are of the vote's own outcome."""

    model_config = ConfigDict(extra="forbid")

    version: Literal[2] = 2
    rounds: int = Field(default=0, ge=0)
    votes: int = Field(default=0, ge=0)
    vote_mistakes: int = Field(default=0, ge=0)
    feedback: dict[Feedback, int] = {}
    experts: dict[str, Expert] = {}


@dataclass(frozen=True)
class Bounds:
    """The vote's mistakes against those of its best expert over ``rounds`` rounds.

    Attributes:
        mistakes: Of the vote.
        best: Of the best expert (M*).
        regret: (mistakes - best) / rounds.
        wma: Most mistakes that Algorithm 1 can make: 2 (1 + e) M* + 2 ln N / e.
        rwma: Most mistakes expected of Algorithm 2: (1 + e) M* + ln N / e.
    """

    rounds: int
    mistakes: float
    best: float
    regret: float
    wma: float
    rwma: float


def bounds(experts: int, rounds: int, mistakes: float, best: float, epsilon: float | None = None) -> Bounds:
    """Return mistake bounds and regret; expected mistakes need not be whole.

    The paper prints the first bound (SSEV, Algorithm 1, step 7) as (2 + e) M* + 2 ln N / e, which does not
    hold in general; Littlestone and Warmuth's 2 (1 + e), from which its second form follows, does. The other
    is printed as here (SSEV, Algorithm 2, step 5).
    """
    e = best_epsilon(experts, rounds) if epsilon is None else epsilon
    cost = math.log(experts) / e if e else 0.0
    regret = (mistakes - best) / rounds if rounds else 0.0
    return Bounds(rounds, mistakes, best, regret, 2 * (1 + e) * best + 2 * cost, (1 + e) * best + cost)


class ExpertLedger:
    """Weights in a JSON file, safe with many writing processes.

    A write takes a lock file next to it and replaces the file whole, so readers need no lock.
    """

    def __init__(self, path: Path) -> None:
        self.path = path

    def weights(self, experts: Iterable[str]) -> dict[str, float]:
        """Return each expert's weight; 1 if it is new.

        Raises:
            ConfigurationError: The file is damaged.
        """
        known = self.read().experts
        return {name: known[name].weight if name in known else 1.0 for name in experts}

    def update(
        self,
        *rounds: Mapping[str, bool],
        feedback: Feedback,
        vote: bool | None = None,
        epsilon: float | None = None,
    ) -> dict[str, float]:
        """Record rounds, all or none, and punish who was wrong; returns the new weights of all experts.

        Args:
            rounds: Per expert whether it was right.
            feedback: Who says so.
            vote: Whether the vote of each round was right, where known.
            epsilon: Cost of a mistake, 0.5 at most counts; ``guessed_epsilon`` of each round if None.

        Raises:
            ConfigurationError: The file is damaged.
            QuorumError: Another process holds the lock for 30 seconds.
        """
        with _locked(self.path):
            book = self.read()
            for outcomes in rounds:
                _punish(book, outcomes, feedback, vote, epsilon)
            text = json.dumps(book.model_dump(), indent=1, sort_keys=True)
            replace_file(self.path, text.encode(), durable=True)
        return {name: expert.weight for name, expert in book.experts.items()}

    def read(self) -> Book:
        """Return the whole ledger; an empty one where there is no file yet.

        Raises:
            ConfigurationError: The file is damaged. It is never reset silently.
        """
        try:
            return Book.model_validate_json(self.path.read_bytes())
        except FileNotFoundError:
            return Book()
        except (ValidationError, OSError) as error:
            why = first_in_words(error) if isinstance(error, ValidationError) else str(error).splitlines()[0]
            raise ConfigurationError(
                f"The expert weights in {self.path} cannot be read ({why}).",
                hint="Restore the file, or move it away to start again with equal weights.",
            ) from error


def _punish(
    book: Book,
    outcomes: Mapping[str, bool],
    feedback: Feedback,
    vote: bool | None,
    epsilon: float | None,
) -> None:
    """Record one round and punish who was wrong (SSEV, Algorithm 1, step 5)."""
    book.rounds += 1
    book.feedback[feedback] = book.feedback.get(feedback, 0) + 1
    if vote is not None:
        book.votes += 1
        book.vote_mistakes += not vote
    for name in outcomes:
        book.experts.setdefault(name, Expert())
    e = min(MAX_EPSILON, guessed_epsilon(len(book.experts), book.rounds) if epsilon is None else epsilon)
    weights = {name: expert.weight for name, expert in book.experts.items()}
    for name, right in outcomes.items():
        expert = book.experts[name]
        expert.rounds += 1
        expert.mistakes += not right
        weights[name] *= 1.0 if right else 1 - e
    best = max(weights.values(), default=1.0)
    for name, expert in book.experts.items():
        expert.weight = max(sys.float_info.min, weights[name] / best)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold ``path``'s lock file; the system frees it when the process ends, however it ends."""
    path.parent.mkdir(parents=True, exist_ok=True)
    deadline = time.monotonic() + LOCK_SECONDS
    with path.with_name(path.name + ".lock").open("a+b") as file:
        while not lock(file):
            if time.monotonic() > deadline:
                raise QuorumError(
                    f"Another process has locked {file.name} for {LOCK_SECONDS:g} s.",
                    hint="End it, or use another home folder.",
                )
            time.sleep(0.01)
        yield
