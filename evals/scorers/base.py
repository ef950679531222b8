"""The contract of a scorer: it declares its metrics and judges one prediction at a time."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar, Literal, Protocol, TypeAlias, TypeVar

from quorum.evals.questions import EvalQuestion
from quorum.tools.query import QueryError, QueryResult

if TYPE_CHECKING:
    import pyarrow as pa


class RunSql(Protocol):
    """Runs SQL on the question's database through ``quorum.tools.execute``; the same SQL runs once.

    What it returns raises ``DatabaseUnavailable`` where the connection is lost: the SQL is not at fault.
    """

    def __call__(self, sql: str) -> Awaitable[QueryResult | QueryError]: ...

    def again(self, sql: str) -> Awaitable[QueryResult | QueryError]:
        """Run SQL even if its outcome is known."""

    @property
    def predicted(self) -> RunSql:
        """Runs predictions, under limits of their own; what gold has returned is not run again."""


EX = "ex"
"""The metric that every scorer has first: execution accuracy, 0 or 1 per question."""


@dataclass(frozen=True)
class Metric:
    """A figure per question, 0 to 1, whose mean over questions is reported with its standard error.

    Attributes:
        name: Key in verdicts, e.g. ``soft_f1``.
        title: In tables.
        meaning: One sentence, with the source of the rule.
        only: The group of questions (``EvalQuestion.groups``) that it is defined for; empty for all.
    """

    name: str
    title: str
    meaning: str
    only: str = ""


@dataclass(frozen=True)
class Prediction:
    """A prediction to be judged.

    Attributes:
        sql: Empty if only a result is there.
        result: A table, a CSV file with a header, or None where there is no result.
        truncated: The result was cut, so it can match no gold beyond the cut.
    """

    sql: str = ""
    result: pa.Table | Path | None = None
    truncated: bool = False


GoldState: TypeAlias = Literal["ok", "missing", "fails", "differs", "empty", "not_live"]
"""``missing``: the suite has none. ``fails``: no gold SQL runs. ``differs``: it runs, and its result is not
the one published. ``empty``: it runs and returns no row. ``not_live``: its database is not here."""


@dataclass(frozen=True)
class Verdict:
    """A scorer's judgement of a prediction.

    Attributes:
        metrics: By the names of the scorer's metrics; None where one is not defined. ``ex`` is None only
            where the gold is unusable (``gold`` says why).
        reason: Which gold is met, or why none is, for people.
        gold: State of the question's gold, as far as judging had to look; the prediction does not change it.
        gold_rows: Rows of the gold result, of several the one nearest to the prediction's; None if not known.
        met: Where each gold query is another reading of the question (``Scorer.by_reading``), the places of
            those whose result this is.
    """

    metrics: Mapping[str, float | None]
    reason: str = ""
    gold: GoldState = "ok"
    gold_rows: int | None = None
    met: tuple[int, ...] = ()

    @property
    def match(self) -> bool | None:
        """True if the answer is right; None if unknown."""
        value = self.metrics.get(EX)
        return None if value is None else value >= 1.0


@dataclass(frozen=True)
class GoldCheck:
    """The result of ``verify`` on a question's gold.

    Attributes:
        state: Of the gold.
        reason: For people; empty if all is well.
        rows: Of the first gold result; None if there is none.
    """

    state: GoldState
    reason: str = ""
    rows: int | None = None


@dataclass(frozen=True)
class Scorer(ABC):
    """Judges predictions by one benchmark's official rules.

    Attributes:
        metrics: Declared, ``ex`` first.
        rules: Where the rules come from, for reports: program and date.
        by_reading: The gold queries of a question are one for each of its right readings, not different
            ways to the same.
    """

    metrics: ClassVar[tuple[Metric, ...]]
    rules: ClassVar[str]
    by_reading: ClassVar[bool] = False

    @abstractmethod
    async def score(self, question: EvalQuestion, prediction: Prediction, run: RunSql | None) -> Verdict:
        """Judge a prediction.

        Args:
            run: On the question's database; None where that is not live: gold files still count.
        """

    def of_shown(self, question: EvalQuestion, shown: Sequence[Verdict]) -> Mapping[str, float | None]:  # noqa: ARG002 - most judge the answer alone
        """Return the metrics that judge all results that an answer shows, in place of its verdict's.

        Args:
            shown: The verdict on the answer, then those on its other readings' results.
        """
        return {}

    def gold_files(self, question: EvalQuestion) -> tuple[Path, ...]:  # noqa: ARG002 - most have none
        """Return the files with the question's gold; their content is a part of the question."""
        return ()

    def executed(self, sql: str) -> str:
        """Return the text that is executed for a gold query."""
        return sql

    async def verify(self, question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        """Check that the question's gold can be reproduced here, and scores as a match of itself."""
        from quorum.evals.scorers.gold_check import check_queries

        return await check_queries(self, question, run)

    def wrong(self, reason: str, gold: GoldState = "ok", gold_rows: int | None = None) -> Verdict:
        """Return the verdict on a prediction that has no result: 0 in every metric."""
        return Verdict({metric.name: 0.0 for metric in self.metrics}, reason, gold, gold_rows)

    def unscorable(self, reason: str, gold: GoldState) -> Verdict:
        """Return the verdict where the gold is unusable: no metric is defined."""
        return Verdict({metric.name: None for metric in self.metrics}, reason, gold)

    def without_gold(self, question: EvalQuestion, run: RunSql | None) -> Verdict | None:
        """Return the verdict where there are no gold queries, or no database to run them on; else None."""
        if not question.gold_sql:
            return self.unscorable("the question has no gold SQL", "missing")
        return None if run else self.unscorable("the database is not here", "not_live")


Gold = TypeVar("Gold")


def best_of(
    golds: Sequence[Gold], grade: Callable[[Gold], int], distance: Callable[[Gold], int]
) -> tuple[int, Gold]:
    """Return the best grade that a prediction has against accepted results, and the result that gives it.

    Args:
        grade: 2 if the result is the gold's, 1 if it has the gold's and more, 0 if it is another.
        distance: Decides between golds of grade 0: the least wins.
    """
    grades = [grade(gold) for gold in golds]
    best = max(grades)
    return best, golds[grades.index(best)] if best else min(golds, key=distance)
