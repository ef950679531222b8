"""Gold that no longer reproduces: every question's gold against its live database, by the suite's scorer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.base import GoldCheck, GoldState, RunSql
from quorum.evals.submissions.sweep import sweep

MEANINGS: dict[GoldState, str] = {
    "ok": "runs, and is as published",
    "differs": "is not as published",
    "fails": "does not run",
    "empty": "has no row",
    "missing": "is not there, or not as SQL that could be run",
    "not_live": "cannot run: its database is not here",
}
"""What is the matter with a gold in each state, in the order of reports."""

UNCHECKED: tuple[GoldState, ...] = ("missing", "not_live")
"""States of gold that could not be run."""


@dataclass(frozen=True)
class Verification:
    """The outcome of each question's gold.

    Attributes:
        checks: By question id, in the suite's order.
    """

    checks: dict[str, GoldCheck]

    @property
    def counts(self) -> dict[GoldState, int]:
        """Questions in each state that occurs."""
        found = Counter(check.state for check in self.checks.values())
        return {state: found[state] for state in MEANINGS if found[state]}

    @property
    def reproduces(self) -> bool:
        """Whether all gold that could be checked here is as published."""
        return all(check.state in ("ok", *UNCHECKED) for check in self.checks.values())

    def apart(self) -> dict[GoldState, dict[str, GoldCheck]]:
        """The questions whose gold is not ok, by its state."""
        return {
            state: {id: check for id, check in self.checks.items() if check.state == state}
            for state in self.counts
            if state != "ok"
        }

    def remarks(self) -> dict[str, str]:
        """What is to be known of gold that is ok, e.g. that it depends on the date; by question."""
        return {id: check.reason for id, check in self.checks.items() if check.state == "ok" and check.reason}

    def as_json(self) -> dict[str, dict[str, Any]]:
        return {
            id: {"state": check.state, "reason": check.reason, "rows": check.rows}
            for id, check in self.checks.items()
        }


async def verify_gold(
    suite: Suite,
    questions: Sequence[EvalQuestion],
    *,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> Verification:
    """Run the gold of ``questions`` and compare it with what is published; no model is asked.

    A database that cannot be opened has no gold that runs: its questions are in the state ``fails``.

    Args:
        on_done: Told how many questions are done, of how many.

    Raises:
        ConfigurationError: A database's URL is malformed, or its driver is missing.
    """

    async def check(question: EvalQuestion, run: RunSql | None) -> GoldCheck:
        return await suite.scorer.verify(question, run)

    checks = await sweep(
        questions,
        check,
        lambda _, reason: GoldCheck("fails", reason),
        on_done=lambda done: on_done(done, len(questions)),
    )
    return Verification(checks)
