"""Dollars for all questions of an evaluation together, whichever processes ask them."""

from __future__ import annotations

import sys
from asyncio import CancelledError
from pathlib import Path

from quorum.knowledge.errors import MachineFailed
from quorum.tools.ledger import Budget, Ledger, Usage


class TotalUsedUp(MachineFailed):
    """The dollars for all questions are used up; a larger total resumes the run."""


class TotalBudget(Ledger):
    """The ledger that all runs of an evaluation share: one file, to which each process appends.

    A call that begins claims as much as the dearest so far has cost; its end takes the claim back. What a
    process that was killed had claimed stays, since the provider may have billed the replies that were lost.
    """

    def __init__(self, usd: float, folder: Path) -> None:
        super().__init__(Budget(max_usd=usd))
        self.limit, self.file = usd, folder / "spent.txt"
        self.used = self.dearest = 0.0
        self._claims: list[float] = []
        self._place = 0

    def charge(self, agent: str, usage: Usage, *, model: str = "") -> None:  # noqa: ARG002
        """Append the dollars; the runs' own ledgers count the rest."""
        if usage.usd:
            self._append(usage.usd)

    def reserve_call(self, usd: float = 0.0) -> None:
        """Claim dollars for one more call.

        Raises:
            TotalUsedUp: The total cannot pay it.
        """
        self._read()
        claim = max(usd, self.dearest)
        if self.used >= self.limit or self.used + claim > self.limit:
            raise TotalUsedUp(f"The total of ${self.limit:g} cannot pay what is open.")
        self._claims.append(claim)
        self._append(claim)

    def release_call(self, usd: float = 0.0) -> None:  # noqa: ARG002
        """Take a claim back, unless the call was cancelled: then its reply is lost, and may be billed."""
        claim = self._claims.pop()
        if not isinstance(sys.exception(), CancelledError):
            self._append(-claim)

    def _append(self, usd: float) -> None:
        with self.file.open("a", encoding="ascii") as file:  # a line in one piece: it is short
            file.write(f"{usd!r}\n")

    def _read(self) -> None:
        """Add up what all processes have appended since the last look."""
        if self.file.exists():
            with self.file.open(encoding="ascii") as file:
                file.seek(self._place)
                added = [float(line) for line in file.read().split()]
                self._place = file.tell()
            self.used += sum(added)
            self.dearest = max(self.dearest, *added, 0.0)
