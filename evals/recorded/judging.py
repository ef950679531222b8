"""The Judge over recorded candidates: a model's verdicts, each asked for once and kept by its prompt.

A replay that was stopped goes on with the replies that it has; the same prompt costs nothing again. As in a
run the Judge is asked in the vote after the last candidate, and sees the close answers in an order that says
nothing about them. Of the schema it sees the tables that the question's candidates use.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from quorum.agents.judge import LABELS, SAMPLE_ROWS, Rival, judge
from quorum.evals.paths import check_no_file
from quorum.evals.recorded.ballots import RecordedBallots
from quorum.evals.recorded.told import Teller, Told
from quorum.graph.ballots import Ballot, Cluster
from quorum.graph.disagreement import Side, disagreements
from quorum.graph.nodes.judging import neutral_order
from quorum.knowledge.errors import BudgetExceeded, ConfigurationError, MalformedReply
from quorum.tools.models import Model
from quorum.tools.query import QueryResult

AT_ONCE = 8
COLUMNS = 100
"""Columns of a result that are shown, as in a run."""


class Replies:
    """A model's replies in a file, a line each, found again by what was asked.

    Raises:
        ConfigurationError: The file cannot be read or written.
    """

    def __init__(self, path: Path) -> None:
        check_no_file(path.parent, hint="Give another --out: a folder.")
        self.path = path
        self._known: dict[str, Mapping[str, Any]]
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            data = path.read_bytes() if path.is_file() else b""
            whole = data[: data.rfind(b"\n") + 1]  # a line that a kill cut short is asked again
            if whole != data:
                path.write_bytes(whole)
            events = [json.loads(line) for line in whole.splitlines()]
            self._known = {str(event["request"]): event for event in events}
        except OSError as error:
            raise ConfigurationError(f"{path} cannot be used: {error.strerror}.") from error
        except (ValueError, TypeError, KeyError) as error:
            raise ConfigurationError(f"{path} holds no replies.", hint="Give another --out.") from error

    def record(self, kind: str, **fields: Any) -> None:
        """Keep a reply (``quorum.tools.record.Recorder``)."""
        if kind == "model_call":
            kept = {name: value for name, value in fields.items() if name != "messages"}
            self._known[kept["request"]] = kept
            with self.path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(kept, ensure_ascii=False) + "\n")

    def recall(self, request: str) -> Mapping[str, Any] | None:
        """The reply to a request (``quorum.tools.record.Recall``)."""
        return self._known.get(request)


@dataclass(eq=False)
class ReplayedJudge:
    """Makes the judge of each recorded vote.

    Args:
        model: With the ledger that limits its calls, and ``Replies``.
        both_orders: Each judgement is asked for twice, the answers in the opposite order, and counts only
            where both choose the same.

    Attributes:
        asked: Judgements asked for.
        undecided: Of these, those in which the model could not tell, or did not agree with itself.
        unasked: Questions of the votes whose judgement a limit prevented, once for each model or pool.
    """

    model: Model
    teller: Teller
    both_orders: bool = False
    at_once: int = AT_ONCE
    asked: int = 0
    undecided: int = 0
    unasked: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._gate = asyncio.Semaphore(self.at_once)

    def of(self, recorded: RecordedBallots, dialect: str) -> _Judge:
        """The judge of one question's vote."""
        return _Judge(self, recorded, dialect)

    async def verdict(
        self, recorded: RecordedBallots, clusters: Sequence[Cluster], dialect: str
    ) -> str | None:
        """The key of the better cluster; None where the model cannot tell, or a limit was reached."""
        told = await self.teller(recorded.question)
        shown = sorted(clusters, key=lambda each: neutral_order(told.question, each))[: len(LABELS)]
        orders = [shown, shown[::-1]] if self.both_orders else [shown]
        try:
            async with self._gate:
                choices = [await self._choice(recorded, each, told, dialect) for each in orders]
        except BudgetExceeded:
            self.unasked.append(recorded.question)
            return None
        self.asked += 1
        choice = choices[0] if len(set(choices)) == 1 else None
        self.undecided += choice is None
        return choice

    async def _choice(
        self, recorded: RecordedBallots, shown: Sequence[Cluster], told: Told, dialect: str
    ) -> str | None:
        sides, rivals = await asyncio.to_thread(_rivals, recorded, shown)
        differences = await asyncio.to_thread(disagreements, sides, dialect)
        model = self.model.at(temperature=0.0)
        try:
            judged = await judge(model, told.context, told.question, rivals, differences)
        except MalformedReply:  # costs the judgement, as in a run
            return None
        labels = LABELS[: len(shown)]
        return shown[labels.index(judged.choice)].key if judged.choice in labels else None


@dataclass(frozen=True)
class _Judge:
    """``quorum.graph.ballots.Judge`` for one recorded vote."""

    replayed: ReplayedJudge
    recorded: RecordedBallots
    dialect: str

    async def choose(self, clusters: Sequence[Cluster], ballots: Sequence[Ballot]) -> str | None:  # noqa: ARG002 (the interface's)
        return await self.replayed.verdict(self.recorded, clusters, self.dialect)


def _rivals(recorded: RecordedBallots, shown: Sequence[Cluster]) -> tuple[list[Side], list[Rival]]:
    """The first candidate of each cluster, as the disagreement and as the Judge see it."""
    queries = {ballot.candidate: ballot.sql for ballot in recorded.ballots}
    sides, rivals = [], []
    for label, cluster in zip(LABELS, shown, strict=False):
        lead = cluster.candidates[0]
        table = recorded.table_of(lead)
        assert table is not None  # only candidates with a result vote
        sides.append(Side(label, queries[lead], table))
        first = table.select(range(min(COLUMNS, table.num_columns)))
        rows = QueryResult(first, 0.0).preview(SAMPLE_ROWS)
        rivals.append(Rival(queries[lead], list(first.column_names), table.num_rows, rows))
    return sides, rivals
