"""What two evaluations say of each other, as data. ``quorum.evals.reports.compare.compare`` makes it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from quorum.evals.reports.statistics import Share

Change: TypeAlias = Literal["gained", "lost"]
Letter: TypeAlias = Literal["a", "b"]


@dataclass(frozen=True)
class Half:
    """One of the two evaluations.

    Attributes:
        name: Of its folder.
        ex: Over the questions that are compared.
        asked: Questions that it asks for.
        unanswered: Of the questions shared, those without a final record (not reached, or no endpoint), which
            are not compared.
        shard: Which shards were found; ``1/1`` if it is whole.
    """

    name: str
    ex: Share
    asked: int
    unanswered: int
    recipe: str
    models: tuple[str, ...]
    shard: str
    demonstration: bool


@dataclass(frozen=True)
class Side:
    """One evaluation's data on a question.

    Attributes:
        run: Folder of its trace, relative to the evaluation's folder; empty without.
    """

    sql: str
    reason: str
    error: str
    run: str


@dataclass(frozen=True)
class Flip:
    """A question that one of the two has right. ``gained``: B has, A has not."""

    id: str
    question: str
    database: str
    difficulty: str
    change: Change
    a: Side
    b: Side


@dataclass(frozen=True)
class Pair:
    """A figure of both evaluations.

    Attributes:
        unit: Of a metric ``share`` or ``points``; of a cost as ``quorum.evals.reports.costs.Cost.unit``.
        ratio: B's to A's, of costs; None where it is not defined.
    """

    name: str
    title: str
    unit: str
    a: float | None
    b: float | None
    ratio: float | None = None


@dataclass(frozen=True)
class Measure:
    """A share per question, of both, over the ``n`` questions where both have it.

    Attributes:
        a, b: Means, 0 to 1.
        low, high: 95 % interval of B minus A (paired bootstrap).
        gained, lost: Questions where only B, or only A, has it; None of what is more than yes or no.
        p_value: Of McNemar's exact test, two-sided; None as ``gained``.
    """

    name: str
    title: str
    n: int
    a: float | None = None
    b: float | None = None
    low: float | None = None
    high: float | None = None
    gained: int | None = None
    lost: int | None = None
    p_value: float | None = None


@dataclass(frozen=True)
class Difference:
    """An option that differs."""

    option: str
    a: Any
    b: Any


@dataclass(frozen=True)
class Comparison:
    """Two evaluations compared; differences are B minus A.

    Attributes:
        rules: Whose judge both.
        shared: Questions that both ask for; ``only_a``, ``only_b`` count the others.
        unscorable: Ids of shared questions whose gold is unusable: they are not compared.
        both_right, gained, lost, both_wrong: How the compared questions split.
        difference: Of EX, -1 to 1, with its 95 % interval (paired bootstrap); None where nothing is compared.
        p_value: Of McNemar's exact test, two-sided.
        metrics: Means over the questions compared where both define the metric; ``ex`` first. After them
            pass@k, some reading right, and EX with one question where both simulated a user.
        unscored: Questions that ended in both with EX known in neither, as over schemas.
        measures: What is known of the SQL of those; empty without any.
        costs: Means per question, over the ``priced`` questions that ended in both.
    """

    suite: str
    rules: str
    a: Half
    b: Half
    shared: int
    only_a: int
    only_b: int
    unscorable: tuple[str, ...]
    both_right: int
    gained: int
    lost: int
    both_wrong: int
    difference: float | None
    low: float | None
    high: float | None
    p_value: float
    metrics: tuple[Pair, ...]
    unscored: int
    measures: tuple[Measure, ...]
    costs: tuple[Pair, ...]
    priced: int
    differing: tuple[Difference, ...]
    flips: tuple[Flip, ...]

    @property
    def compared(self) -> int:
        return self.both_right + self.gained + self.lost + self.both_wrong

    def as_dict(self) -> dict[str, Any]:
        return dataclasses.asdict(self) | {"compared": self.compared}


Link: TypeAlias = Callable[[Letter, Side], str]
"""Where the trace of a run of A or B is found from the file that shows it; empty if nowhere."""
