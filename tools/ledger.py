"""The ledger: what a run has used, per agent, per model and in all, and the hard limits on it."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any

from quorum.knowledge.errors import BudgetExceeded
from quorum.tools.results.readable import size_text


@dataclass
class Usage:
    """Amounts used. Token counts are the provider's own; ``usd`` is None once any call had no price.

    ``cached_tokens`` are part of ``input_tokens``. ``model_seconds`` and ``query_seconds`` add up
    over parallel calls, so they may exceed the wall clock. ``estimated_calls`` counts the calls whose
    tokens the provider did not state. ``bytes`` are those of results; ``read_bytes`` those that engines
    report or bill; ``estimated_bytes`` the estimates of queries for which the engine reports nothing;
    ``slot_seconds`` the time of an engine's processors.
    """

    model_calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    usd: float | None = 0.0
    model_seconds: float = 0.0
    queries: int = 0
    rows: int = 0
    bytes: int = 0
    read_bytes: int = 0
    estimated_bytes: int = 0
    slot_seconds: float = 0.0
    query_seconds: float = 0.0
    estimated_calls: int = 0

    def add(self, other: Usage) -> None:
        """Add another usage in place; an unknown price makes the sum unknown."""
        mine = vars(self)
        for name, more in vars(other).items():
            mine[name] = None if mine[name] is None or more is None else mine[name] + more

    def as_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Budget:
    """Hard limits of a run; None means no limit. ``seconds`` is wall clock from the run's start.

    ``max_usd`` may be exceeded by the calls under way: what a reply costs is known when it is there.
    ``read_bytes`` are those that all queries may read together, as far as estimates go beforehand.
    """

    max_calls: int | None = None
    max_usd: float | None = None
    seconds: float | None = None
    read_bytes: int | None = None


@dataclass
class Ledger:
    """Collects usage and enforces the budget. One per run, shared by all agents.

    ``spent_seconds`` is wall clock that an earlier, interrupted process spent on the same run. ``shared`` is
    the ledger of several runs, which counts this one's calls and whose budget holds for all of them together.
    """

    budget: Budget = field(default_factory=Budget)
    spent_seconds: float = 0.0
    clock: Callable[[], float] = time.monotonic
    total: Usage = field(default_factory=Usage)
    by_agent: dict[str, Usage] = field(default_factory=dict)
    by_model: dict[str, Usage] = field(default_factory=dict)
    reserved_calls: int = 0
    reserved_usd: float = 0.0
    reserved_bytes: int = 0
    shared: Ledger | None = None
    _refusal: BudgetExceeded | None = None

    def __post_init__(self) -> None:
        self._start = self.clock()

    def charge(self, agent: str, usage: Usage, *, model: str = "") -> None:
        """Add ``usage`` to the agent's account, to that of the model if one was asked, and to the total."""
        self.by_agent.setdefault(agent, Usage()).add(usage)
        if model:
            self.by_model.setdefault(model, Usage()).add(usage)
        self.total.add(usage)
        if self.shared:
            self.shared.charge(agent, usage, model=model)

    def as_dict(self) -> dict[str, Any]:
        """Return totals, accounts ``by_agent`` and ``by_model``, and ``seconds``, ready for JSON."""
        accounts = {"by_agent": self.by_agent, "by_model": self.by_model}
        shown = {of: {name: used.as_dict() for name, used in each.items()} for of, each in accounts.items()}
        return self.total.as_dict() | shown | {"seconds": round(self.seconds(), 3)}

    def seconds(self) -> float:
        """Return the wall clock of the run so far, in seconds."""
        return self.spent_seconds + self.clock() - self._start

    def remaining_seconds(self) -> float | None:
        """Return the seconds until the deadline, never below 0; None without one."""
        limit = self.budget.seconds
        return None if limit is None else max(0.0, limit - self.seconds())

    def check_time(self) -> None:
        """Raise ``BudgetExceeded`` once the deadline has passed."""
        if self.remaining_seconds() == 0.0:
            raise BudgetExceeded(f"The deadline of {self.budget.seconds:g} s has passed.", limit="deadline")

    def reserve_call(self, usd: float = 0.0) -> None:
        """Claim the right to one more model call; pair with ``release_call``.

        Calls under way count, so parallel candidates cannot overshoot ``max_calls``. Their dollars
        count as far as they are known beforehand: ``usd`` is what the call costs at least.

        Raises:
            BudgetExceeded: The calls, the dollars or the time are used up.
        """
        self.check_time()
        limit, spent = self.budget.max_calls, self.total.model_calls + self.reserved_calls
        if limit is not None and spent >= limit:
            raise BudgetExceeded(f"All {limit} model calls of the budget are used.", limit="max_calls")
        self._check_dollars(usd)
        if self.shared:
            self.shared.reserve_call(usd)
        self.reserved_calls += 1
        self.reserved_usd += usd

    def _check_dollars(self, usd: float) -> None:
        limit, spent = self.budget.max_usd, self.total.usd
        if limit is None or spent is None:
            return
        if spent >= limit or spent + self.reserved_usd + usd > limit:
            under_way = f", ${self.reserved_usd + usd:.4f} about to be" if spent < limit else ""
            self._refusal = BudgetExceeded(
                f"The budget of ${limit:g} is used up: ${spent:.4f} spent{under_way}.", limit="max_usd"
            )
            raise self._refusal

    def spent(self) -> BudgetExceeded | None:
        """Return the error of dollars that are used up: a call was refused for want of them, or would be."""
        with suppress(BudgetExceeded):
            self._check_dollars(0.0)
        return self._refusal

    def remaining_bytes(self) -> int | None:
        """Return the bytes that queries may still read, without those reserved; None without a limit."""
        limit, spent = self.budget.read_bytes, self.total.read_bytes + self.total.estimated_bytes
        return None if limit is None else max(0, limit - spent - self.reserved_bytes)

    def check_bytes(self, expected: int = 0) -> None:
        """Raise ``BudgetExceeded`` if the bytes are used up, or a query would read more than are left."""
        left, limit = self.remaining_bytes(), self.budget.read_bytes
        if left is None or limit is None or (left > 0 and expected <= left):
            return
        used = f"{size_text(limit - left)} of {size_text(limit)} are used or being read"
        more = f", and the next query would read {size_text(expected)}" if expected else ""
        raise BudgetExceeded(f"The budget of bytes to read ends here: {used}{more}.", limit="max_run_bytes")

    @contextmanager
    def reserve_bytes(self, expected: int) -> Iterator[None]:
        """Reserve what a query would read, for as long as the block lasts; what it read is charged apart.

        Raises:
            BudgetExceeded: As ``check_bytes``.
        """
        self.check_bytes(expected)
        self.reserved_bytes += expected
        try:
            yield
        finally:
            self.reserved_bytes -= expected

    def release_call(self, usd: float = 0.0) -> None:
        """Give a reservation back, with the same ``usd``; what the call used is charged apart."""
        self.reserved_calls -= 1
        self.reserved_usd = max(0.0, self.reserved_usd - usd)
        if self.shared:
            self.shared.release_call(usd)
