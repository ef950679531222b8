"""Dollars for all questions of an evaluation together.

Each question gets a limit, at least twice what the dearest so far has cost, and half of it again is set aside
for replies that are under way when it is reached. Only if those cost more is the total exceeded. Where the
total cannot pay that, no further question is asked.

Processes that go on count what earlier ones spent, also on runs that were discarded, and for each run that
was cut short as much as the dearest question: the model may have billed a reply that was lost.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

from quorum.evals.folder import RUNS
from quorum.evals.questions import EvalQuestion
from quorum.evals.records import Record
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import QuorumError

ASIDE = 1.5
"""Dollars set aside for a dollar of a question's limit."""

LOST = "lost.txt"
"""File of the evaluation's folder: dollars that no run accounts for, a line each time."""


def note_lost(folder: Path, usd: float) -> None:
    """Note dollars that no run of the evaluation accounts for."""
    with (folder / LOST).open("a", encoding="ascii") as file:  # a line in one piece: it is short
        file.write(f"{usd!r}\n")


def spent_on(run: RunFolder) -> float:
    """Return the dollars that a run has spent, by its events; 0 where they cannot be read."""
    return float(run.usage().get("usd") or 0.0)


@dataclass(eq=False)
class TotalBudget:
    """Decides which questions the total can pay.

    Args:
        at_once: Questions that are asked at a time.

    Attributes:
        spent: By all processes so far.
        dearest: Dollars of the dearest question that asked a model; None while none has ended.
        closed: No further question is asked: the total cannot pay it.
    """

    usd: float
    at_once: int = 1
    spent: float = 0.0
    dearest: float | None = None
    closed: bool = False
    _aside: dict[str, float] = field(default_factory=dict)
    _earlier: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._changed = asyncio.Condition()

    def begin(self, folder: Path, finished: Collection[Record]) -> None:
        """Count what earlier processes spent in the evaluation's folder."""
        for record in finished:
            self._count(record)
        ids = {record.id for record in finished}
        runs = [RunFolder(run) for run in (folder / RUNS).glob("*") if run.name not in ids]
        self._earlier = {run.run_id: spent_on(run) for run in runs}
        dearest = max([self.dearest or 0.0, *self._earlier.values()])
        for run in runs:
            if dearest and _cut_short(run):
                note_lost(folder, dearest)
        lost = folder / LOST
        lines = lost.read_text(encoding="ascii").splitlines() if lost.exists() else []
        self.spent += sum(self._earlier.values()) + sum(map(float, lines))

    async def claim(self, question: EvalQuestion) -> EvalQuestion | None:
        """Return the question with its limit, as soon as the total can pay it; None if it never can."""
        async with self._changed:
            while not self.closed:
                if aside := self._share():
                    self._aside[question.id] = aside
                    return replace(question, max_usd=aside / ASIDE)
                self.closed = not self._aside
                if not self.closed:
                    await self._changed.wait()
            self._changed.notify_all()
            return None

    def _share(self) -> float:
        """Return the dollars to set aside for one more question; 0 if it has to wait.

        The first question is asked alone: then it is known what one costs.
        """
        free = max(0.0, self.usd - self.spent - sum(self._aside.values()))
        if self.dearest is None:
            return 0.0 if self._aside else free
        least, slots = ASIDE * 2 * self.dearest, max(1, self.at_once - len(self._aside))
        return max(least, free / slots) if free >= least else 0.0

    async def settle(self, record: Record) -> None:
        """Count what a question has cost, and give back what is left of its share."""
        async with self._changed:
            aside = self._aside.pop(record.id)
            earlier = self._earlier.pop(record.id, 0.0)
            self._count(record)
            self.spent -= earlier if record.resumed else 0.0
            if record.error == "max_usd":  # it would have cost more than its limit
                self.dearest = max(self.dearest or 0.0, aside)
            self._changed.notify_all()

    def _count(self, record: Record) -> None:
        usd = float(record.usage.get("usd") or 0.0)
        self.spent += usd
        if record.usage.get("model_calls"):
            self.dearest = max(self.dearest or 0.0, usd)


def _cut_short(run: RunFolder) -> bool:
    """Return True if a run has neither an answer nor an error that ended it."""
    with suppress(QuorumError, KeyError):
        return run.answer() is None and not run.error()
    return True
