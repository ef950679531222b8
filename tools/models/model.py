"""A model as the agents see it: one call in, one reply or one clear error out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from quorum.knowledge.errors import BudgetExceeded, ModelUnavailable
from quorum.tools.ledger import Ledger, Usage
from quorum.tools.models.backend import Backend, Message, Output
from quorum.tools.models.failures import Failure, FailureKind
from quorum.tools.models.pace import Paces, backoff
from quorum.tools.models.replies import Reply, finish_reason, judge, recorded_reply, text_of, usage_of
from quorum.tools.models.structured import Method, Problem, ProblemKind, form_of
from quorum.tools.record import Recall, Recorder, no_recall, request_of

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

LONGEST_WAIT = 120.0
"""Longest wait, in seconds, that an endpoint may ask for."""

REFUSED_SECONDS = 300.0
"""How long an endpoint may refuse all requests (429) before a call is given up. Rate limits are counted by
the minute, so refusals may last for some minutes."""

MOST_ADAPTATIONS = 12
"""Upper bound of adaptations; an endpoint that refuses everything fails here."""


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
        """Return the name as the user wrote it, e.g. ``openai:gpt-4.1``."""
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


@dataclass
class Call:
    """One ``complete`` with its tries."""

    model: Model
    messages: list[dict[str, str]]
    role: str
    output: Output
    attempt: int
    method: Method | None = None
    sent: list[dict[str, str]] = field(default_factory=list)  # the messages of the last request
    arguments: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    under_way: bool = False  # a request is out, or was when the call was cancelled
    adaptations: int = 0

    def __post_init__(self) -> None:
        self.backend, self.ledger, self.sent = self.model.backend, self.model.ledger, self.messages

    @cached_property
    def request(self) -> str:
        """Return the hash by which a recorded reply is found; the method of asking does not count."""
        asked = self.model
        output = self.output.__name__ if self.output else ""
        sampling = asked.temperature, asked.seed
        return request_of(asked.name, self.role, asked.candidate, *sampling, output, self.messages)

    @cached_property
    def least(self) -> Usage:
        """Return the least that a try costs: its prompt."""
        return usage_of(self.messages, "", self.backend.price)

    @property
    def least_usd(self) -> float:
        """Return its dollars, as far as they are known beforehand."""
        return (self.least.usd or 0.0) if self.backend.price else 0.0

    async def reply(self) -> Reply:
        """Return the reply; see ``Model.complete``."""
        event = self.model.recall(self.request)
        if event and (found := recorded_reply(event, self.output)):
            return found
        self.ledger.check_time()
        try:
            async with asyncio.timeout(self.ledger.remaining_seconds()) as deadline:
                message = await self.tries()
        except TimeoutError:
            if not deadline.expired():
                raise
            used = self.charge_lost_try() if self.under_way else {}
            raise self.out_of_time(f"{self.model.name} had not replied to the {self.role}.", used) from None
        return self.finish(message)

    async def tries(self) -> AIMessage:
        """Try until a message comes, the failure is final, or the tries are used up."""
        rate = self.backend.settings.requests_per_second if self.backend.endpoint else None
        pace, now = self.model.paces.of(self.backend.endpoint, rate), self.model.paces.timing.now
        failed, seen, since = 0, pace.successes, now()
        while True:
            self.ledger.reserve_call(self.least_usd)
            try:
                await pace.enter()
                outcome: AIMessage | Failure | None = None
                try:
                    outcome = await self.once()
                    self.under_way = False
                finally:
                    pace.leave(succeeded=outcome is not None and not isinstance(outcome, Failure))
            finally:
                self.ledger.release_call(self.least_usd)
            if not isinstance(outcome, Failure):
                return outcome
            if self.adapted(outcome):
                continue
            if outcome.kind is FailureKind.RATE and pace.successes > seen:
                failed, seen, since = 0, pace.successes, now()  # others get through: it is a matter of time
            wait = self.wait_after(outcome, failed, now() - since, answered=pace.successes > 0)
            failed += 1
            if outcome.kind is FailureKind.RATE:
                pace.cool_down(wait)
            else:
                await self.model.paces.timing.sleep(wait)

    async def once(self) -> AIMessage | Failure:
        """Send one request."""
        model, most = self.model, self.backend.settings.longest_reply
        self.method = self.backend.learned.method(self.output) if self.output else None
        self.sent = self.with_form()
        self.arguments = self.backend.arguments(model.temperature, model.seed, self.output, self.method)
        metadata = {"role": self.role, "candidate": model.candidate, "attempt": self.attempt}
        config: Any = {"run_name": self.role, "tags": [f"role:{self.role}"], "metadata": metadata}
        self.under_way, start = True, time.perf_counter()
        try:
            async with asyncio.timeout(most) as limit:
                return await self.backend.ask(self.sent, config, self.arguments)
        except TimeoutError as error:
            if not limit.expired():
                return self.backend.failure(error)
            text = f"The reply was not complete after {most:g} s."
            return Failure(FailureKind.ENDLESS, text, "Allow more time (timeout) or ask for less.")
        except self.backend.errors as error:
            return self.backend.failure(error)
        finally:
            self.seconds = time.perf_counter() - start

    def with_form(self) -> list[dict[str, str]]:
        """Return the messages, with the reply's form added to the task if they do not have it.

        It goes to the first user message, behind the prefix that all agents share.
        """
        form = form_of(self.output) if self.output and self.method is not Method.BUILT_IN else ""
        if any(form in message["content"] for message in self.messages):
            return self.messages
        place = next((i for i, m in enumerate(self.messages) if m["role"] == "user"), len(self.messages) - 1)
        asked = dict(self.messages[place])
        asked["content"] += "\n\n" + form
        return [*self.messages[:place], asked, *self.messages[place + 1 :]]

    def adapted(self, failure: Failure) -> bool:
        """Return True if the settings were changed so that the refused parameter is not sent again."""
        if self.adaptations >= MOST_ADAPTATIONS:
            return False
        change = self.backend.learned.adapt(failure, self.arguments, self.output, self.method)
        return self.note_change(change, failure.message)

    def wait_after(self, failure: Failure, failed: int, seconds: float, *, answered: bool) -> float:
        """Return the seconds to wait before the next try; raise if there is none.

        Args:
            failed, seconds: Tries before this one that failed, and since when there was no success.
            answered: The endpoint has answered some request.
        """
        billed = failure.kind in (FailureKind.TIMEOUT, FailureKind.ENDLESS)  # the provider did its work
        used = self.charge_lost_try() if billed else {}
        too_long = (failure.retry_after or 0.0) > LONGEST_WAIT
        tries = failure.tries(self.backend.settings.max_retries, answered=answered)
        patient = failure.kind is FailureKind.RATE and tries > 0 and seconds < REFUSED_SECONDS
        if too_long or (failed >= tries and not patient):
            self.note_failed(failure.kind.value, failure.message, used)
            more = f" ({failed + 1} tries)" if failed else ""
            more += f" It asks to wait {failure.retry_after:g} s." if too_long else ""
            raise ModelUnavailable(f"{self.model.name}: {failure.message}{more}", hint=failure.hint)
        wait = failure.retry_after or backoff(failed, self.model.paces.timing.chance())
        left = self.ledger.remaining_seconds()
        if left is not None and wait >= left:
            raise self.out_of_time(
                f"{self.model.name}: {failure.message} The next try would come too late.", used
            )
        lost = {"failure": failure.kind.value, "reason": failure.message, "seconds": round(self.seconds, 6)}
        self.note("model_retry", **lost, wait=wait, **used)
        return wait

    def charge_lost_try(self) -> dict[str, Any]:
        """Charge the least that a try without a reply cost. Return the event's field for it."""
        usage = replace(self.least, model_seconds=self.seconds)
        self.ledger.charge(self.role, usage, model=self.model.name)
        return {"usage": usage.as_dict()}

    def out_of_time(self, message: str, used: Mapping[str, Any]) -> BudgetExceeded:
        self.note_failed("deadline", message, used)
        limit = self.ledger.budget.seconds or 0.0
        return BudgetExceeded(f"The deadline of {limit:g} s ended the run. {message}", limit="deadline")

    def finish(self, message: AIMessage) -> Reply:
        """Return the message as a reply: judged, charged and recorded."""
        text, found = text_of(message), judge(message, self.output)
        problem = found if isinstance(found, Problem) else None
        parsed = found if isinstance(found, BaseModel) else None
        usage = usage_of(self.sent, text, self.backend.price, message)
        usage.model_seconds = self.seconds
        self.ledger.charge(self.role, usage, model=self.model.name)
        reply = Reply(text, parsed, problem, usage, finish_reason(message), self.method)
        self.note(
            "model_call",
            request=self.request,
            messages=self.sent,
            reply=text,
            parsed=parsed.model_dump(mode="json") if parsed else None,
            problem=f"{problem.kind}: {problem.message}" if problem else "",
            usage=usage.as_dict(),
            estimated=bool(usage.estimated_calls),
            seconds=round(self.seconds, 6),
            finish_reason=reply.finish_reason,
            temperature=self.model.temperature,
            seed=self.model.seed,
            method=self.method.value if self.method else None,
        )
        if problem and problem.kind is ProblemKind.NO_JSON and self.method:
            self.note_change(self.backend.learned.distrust(self.method), problem.message)
        return reply

    def note_change(self, change: str, reason: str) -> bool:
        """Record what was learned about the endpoint, if anything."""
        if change:
            self.adaptations += 1
            self.note("model_adapted", change=change, reason=reason)
        return bool(change)

    def note_failed(self, kind: str, reason: str, used: Mapping[str, Any]) -> None:
        seconds = round(self.seconds, 6)
        self.note("model_failed", messages=self.sent, failure=kind, reason=reason, seconds=seconds, **used)

    def note(self, kind: str, **fields: Any) -> None:
        """Record an event of this call."""
        about = {"agent": self.role, "candidate": self.model.candidate, "model": self.model.name}
        self.model.record(kind, **about, attempt=self.attempt, **fields)
