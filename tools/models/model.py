"""A model as the agents see it: one call in, one reply or one clear error out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from quorum.tools.ledger import Ledger
from quorum.tools.models.base import Backend, Message, Output, Reply
from quorum.tools.models.call import Call
from quorum.tools.models.pace import Paces
from quorum.tools.record import Recall, Recorder, no_recall


@dataclass(frozen=True)
class Model:
    """A chat model bound to one run's ledger and recorder, with fixed sampling.

    Copies made by ``at`` share the client, the rate limit and what was learned about the endpoint.
    """

    backend: Backend
    ledger: Ledger
    record: Recorder
    paces: Paces
    temperature: float | None = None
    seed: int | None = None
    candidate: str | None = None
    recall: Recall = no_recall

    @property
    def name(self) -> str:
        """As the user named it, e.g. ``openai:gpt-4.1``."""
        return self.backend.name

    def at(
        self,
        *,
        temperature: float | None = None,
        seed: int | None = None,
        candidate: str | None = None,
        ledger: Ledger | None = None,
        record: Recorder | None = None,
        recall: Recall | None = None,
    ) -> Model:
        """A cheap copy with other sampling, or for another run."""
        return replace(
            self,
            temperature=self.temperature if temperature is None else temperature,
            seed=self.seed if seed is None else seed,
            candidate=self.candidate if candidate is None else candidate,
            ledger=self.ledger if ledger is None else ledger,
            record=self.record if record is None else record,
            recall=self.recall if recall is None else recall,
        )

    async def aclose(self) -> None:
        """Close the connections of the running event loop; the model stays usable."""
        await self.backend.aclose()

    async def complete(
        self,
        messages: Sequence[Message],
        *,
        role: str,
        output: Output = None,
        attempt: int = 1,
    ) -> Reply:
        """Ask the model once, trying again where a failure may pass.

        A reply that an interrupted process got to the same request is given again; it costs nothing.

        Args:
            role: The agent that asks; its account in the ledger.
            output: The form of a structured reply; None for plain text.
            attempt: Which asking of the same question this is, from 1, for the trace.

        Returns:
            The reply. One that is empty, cut off, refused or of the wrong form has a ``problem``.

        Raises:
            BudgetExceeded: The run's calls, dollars or time are used up.
            ModelUnavailable: No reply: unreachable, denied, or failing after the last try.
        """
        return await Call(self, [dict(message) for message in messages], role, output, attempt).reply()
