"""How an evaluation went, as data: what every report, page and comparison is made of.

Shares are 0 to 1, times are seconds, sizes are bytes, money is US dollars. What cannot be known is None,
never 0 and never NaN. ``evals.reports.summarise`` makes summaries of folders; what stands in several parts is
defined where it is made.
"""

from __future__ import annotations

import dataclasses
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from quorum.evals.reports.calibration import Calibration
from quorum.evals.reports.costs import AgentCost, Cost, Throughput
from quorum.evals.reports.scores import GoldGroup, Score
from quorum.evals.reports.statistics import Mean, Share, Spread
from quorum.evals.reports.taxonomy import Category
from quorum.graph.options import RunOptions

SLICES = ("difficulty", "dialect", "database", "external knowledge")
"""By what scores are told apart: keys of ``Summary.slices``."""


@dataclass(frozen=True)
class Execution:
    """What became of the SQL, over the questions with SQL.

    Attributes:
        with_sql: Records with SQL, of all records.
        executes: It ran; over the records with SQL whose database is live.
        valid: It passes guard and lint; over the records with SQL.
    """

    with_sql: Share
    executes: Share
    valid: Share


@dataclass(frozen=True)
class LinkingScore:
    """Tables and columns of the answers' SQL against those of the gold SQL, over the records that have it.

    Attributes:
        questions: Records with linking.
        without_sql: Records without it because they have no SQL; what they would have missed is not known.
        table_strict, column_strict: Recall is 1: nothing that the gold uses is missed.
    """

    questions: int
    table_recall: Mean
    table_precision: Mean
    table_strict: Share
    column_recall: Mean
    column_precision: Mean
    column_strict: Share
    without_sql: int = 0


@dataclass(frozen=True)
class Votes:
    """How candidates voted, over the records with a vote.

    Attributes:
        questions: Records with a vote.
        candidates: Per question, failed ones included.
        agreeing: Share of a question's candidates that stand in the winner's cluster.
        ties: Questions whose vote was a tie.
        saved: Candidates that the stopping rule spared, per question.
        settled: How votes were settled beyond counting (``judge``, ``user``, …): number of questions.
    """

    questions: int
    candidates: Mean
    agreeing: Mean
    ties: Share
    saved: Spread
    settled: dict[str, int]


@dataclass(frozen=True)
class Line:
    """One question asked for, for tables of questions.

    Attributes:
        status: ``Record.status``, or ``not asked yet``.
        right: None if it cannot be told; False without an answer.
        category: Of ``Summary.unanswered`` or ``Summary.wrong``; empty if right or not known.
        reason: The scorer's, or the error in words.
        seconds: Wall clock; None without a ledger, as ``model_calls`` and ``tokens``.
        tokens: In and out together.
        folder: Place in ``Summary.folders`` of the folder that holds the run; None without a record.
        run: The run's folder relative to it; empty without.
    """

    id: str
    question: str
    database: str
    difficulty: str
    status: str
    right: bool | None
    category: str
    reason: str
    confidence: float | None
    model_calls: int | None
    seconds: float | None
    folder: int | None
    run: str
    tokens: int | None = None


@dataclass(frozen=True)
class Summary:
    """An evaluation in figures.

    Attributes:
        name: Names it among those reported together: its folder's name.
        folders: One per shard, as they were given.
        suite, rules, version, started: Of the manifest; ``rules`` says by whose rules answers are judged.
        options: All options of the runs that count for answers.
        shards: The numbers of the shards here; ``shard_count`` is how many there are (1 of 1 if not sharded).
        demonstration: Answers that the rule-based offline model took part in: they say nothing of a model.
        failed_endpoint: Records that failed for want of the endpoint or the database: asked again when the
            run is started again.
        without_ledger: Records whose cost is not known, because they failed before there was any.
        overall: Over all questions; ``slices`` by the names of ``SLICES``, each only where it tells
            questions apart.
        gold: Questions with unsound gold, by state.
        costs: In the order of reports.
        unanswered: Questions without an answer by kind of error; ``wrong`` answers by what is wrong.
            Each question stands in one category. Empty categories are left out.
        calibration: Of the confidence, over answers known to be right or wrong; None without any.
        linking, votes: None if no record has it.
        missing: What the suite's folder lacked, for people.
        notes: What cannot be measured and why, for people, most important first.
        lines: Every question asked for, in order.
    """

    name: str
    folders: tuple[Path, ...]
    suite: str
    rules: str
    version: str
    started: str
    recipe: str
    models: tuple[str, ...]
    options: dict[str, Any]
    shards: tuple[int, ...]
    shard_count: int
    demonstration: int
    failed_endpoint: int
    without_ledger: int
    overall: Score
    slices: dict[str, tuple[Score, ...]]
    gold: tuple[GoldGroup, ...]
    execution: Execution
    costs: tuple[Cost, ...]
    agents: tuple[AgentCost, ...]
    unanswered: tuple[Category, ...]
    wrong: tuple[Category, ...]
    calibration: Calibration | None
    linking: LinkingScore | None
    votes: Votes | None
    throughput: Throughput
    missing: tuple[str, ...]
    notes: tuple[str, ...]
    lines: tuple[Line, ...]

    @property
    def changed_options(self) -> dict[str, Any]:
        """The options that are not the default, without recipe and models."""
        usual = RunOptions().as_dict()
        return {
            name: value
            for name, value in self.options.items()
            if name not in ("recipe", "models") and (name not in usual or usual[name] != value)
        }

    def cost(self, name: str) -> Spread:
        """Of one resource, by its name in the ledger."""
        return next(cost.spread for cost in self.costs if cost.name == name)

    def as_dict(self) -> dict[str, Any]:
        """Ready for JSON: without NaN; folders are their last names: no path of the machine is in it."""
        values: dict[str, Any] = _plain(dataclasses.asdict(self))
        return values


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    return value.resolve().name if isinstance(value, Path) else value
