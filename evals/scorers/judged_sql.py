"""What scorers share that judge a prediction by executing its SQL beside the gold SQL."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import Prediction, RunSql, Scorer, Verdict, predicted_by, unscorable
from quorum.evals.scorers.rows import NoRows, Rows, given_rows, loosely, run_rows


@dataclass(frozen=True)
class Given:
    """What is judged: SQL to execute, or rows where there is none.

    Attributes:
        rows: Of a prediction without SQL, or why it has none.
        loose: They were read from a CSV file, and the gold's are to be read alike.
    """

    sql: str
    rows: Rows | NoRows | None = None
    loose: bool = False

    async def against(self, gold: str, run: RunSql, text: Callable[[str], str]) -> Pair | NoRows:
        """The rows of gold and prediction.

        Args:
            text: What is executed for a query.

        Returns:
            ``NoRows`` where the gold has none, and so nothing can be judged.
        """
        expected = await run_rows(run, text(gold))
        if isinstance(expected, NoRows):
            return NoRows(f"the gold SQL does not run: {expected.reason}")
        if self.rows is None:
            return Pair(expected, await run_rows(predicted_by(run), text(self.sql)))
        if self.loose:
            expected = [tuple(map(loosely, row)) for row in expected]
        return Pair(expected, self.rows)


@dataclass(frozen=True)
class Pair:
    """The rows of a gold query, and those of a prediction or why it has none."""

    gold: Rows
    found: Rows | NoRows


async def given_by(scorer: Scorer, prediction: Prediction, question: EvalQuestion) -> Given | Verdict:
    """What is judged of a prediction: its SQL, whatever result comes with it; else its result.

    Without either the gold is run all the same: its state is its own.

    Raises:
        UnreadableCsv: Its file is no CSV.
    """
    if not question.gold_sql:
        return unscorable(scorer.metrics, "the question has no gold SQL", "missing")
    if prediction.sql:
        return Given(prediction.sql)
    rows = await given_rows(prediction)
    return Given("", rows, isinstance(prediction.result, Path))
