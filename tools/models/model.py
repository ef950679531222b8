"""A model as the agents see it: one call in, one reply or one clear error out."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

from pydantic import BaseModel

from quorum.knowledge.errors import BudgetExceeded, ModelUnavailable
from quorum.tools.ledger import Ledger, Usage
from quorum.tools.models.backend import Backend, Message, Output
from quorum.tools.models.failures import FailureKind, NoReply
from quorum.tools.models.pace import Paces, backoff
from quorum.tools.models.replies import (
    Reply,
    finish_reason,
    judge,
    message_of,
    recorded_reply,
    text_of,
    usage_of,
)
from quorum.tools.models.structured import Method, Problem, form_of
from quorum.tools.record import Recall, Recorder, no_recall, request_of

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage
    from langchain_core.runnables import RunnableConfig

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
        """Return a cheap copy with other sampling, or for another run; None leaves a value as it is."""
        given = {name: value for name, value in locals().items() if name != "self" and value is not None}
        return replace(self, **given)

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
        call = ModelCall(self, [dict(message) for message in messages], role, output, attempt)
        event = self.recall(call.request)
        if event and (found := recorded_reply(event, output)):
            return found
        self.ledger.check_time()
        try:
            async with asyncio.timeout(self.ledger.remaining_seconds()) as deadline:
                while call.message is None:
                    async with call.sending() as config:
                        with self.backend.asking(call.arguments) as (chat, given):
                            call.message = message_of(await chat.ainvoke(call.sent, config, **given))
                    if call.failure:
                        await call.recover(call.failure)
        except TimeoutError:
            if not deadline.expired():
                raise
            used = call.charge_lost_try() if call.under_way else {}
            raise call.out_of_time(f"{self.name} had not replied to the {role}.", used) from None
        return call.finish(call.message)


@dataclass
class ModelCall:
    """One ``complete`` with its tries; ``message`` is what the last one brought, else ``failure`` why not."""

    model: Model
    messages: list[dict[str, str]]
    role: str
    output: Output
    attempt: int
    message: AIMessage | None = None
    failure: NoReply | None = None
    method: Method | None = None
    sent: list[dict[str, str]] = field(default_factory=list)  # the messages of the last request
    arguments: dict[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    under_way: bool = False  # a request is out, or was when the call was cancelled
    answered: bool = False  # the last request
    failed: int = 0  # tries since the last success of any call at the endpoint
    adaptations: int = 0

    def __post_init__(self) -> None:
        self.backend, self.ledger, self.sent = self.model.backend, self.model.ledger, self.messages
        rate = self.backend.settings.requests_per_second if self.backend.endpoint else None
        self.pace, self.timing = self.model.paces.of(self.backend.endpoint, rate), self.model.paces.timing
        self.seen, self.since = self.pace.successes, self.timing.now()

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

    @asynccontextmanager
    async def sending(self) -> AsyncIterator[RunnableConfig]:
        """Make one request ready when it is its turn; an error of the endpoint inside becomes ``failure``."""
        model, most, self.failure = self.model, self.backend.settings.longest_reply, None
        async with self.turn():
            self.method = self.backend.learned.ladder[0] if self.output else None
            self.sent = self.with_form()
            self.arguments = self.backend.arguments(model.temperature, model.seed, self.output, self.method)
            metadata = {"role": self.role, "candidate": model.candidate, "attempt": self.attempt}
            config: RunnableConfig = {"run_name": self.role, "tags": [f"role:{self.role}"]}
            self.under_way, start = True, time.perf_counter()
            try:
                async with asyncio.timeout(most) as limit:
                    yield {**config, "metadata": metadata}
                self.answered = True
            except TimeoutError as error:
                self.failure = self.backend.failure(error)
                if limit.expired():
                    text = f"The reply was not complete after {most:g} s."
                    hint = "Allow more time (timeout) or ask for less."
                    self.failure = NoReply(FailureKind.ENDLESS, text, hint)
            except self.backend.errors as error:
                self.failure = self.backend.failure(error)
            finally:
                self.seconds = time.perf_counter() - start
            self.under_way = False

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """Reserve a call in the ledger and a place at the endpoint for one request."""
        self.ledger.reserve_call(self.least_usd)
        self.answered = False
        try:
            await self.pace.enter()
            try:
                yield
            finally:
                self.pace.leave(succeeded=self.answered)
        finally:
            self.ledger.release_call(self.least_usd)

    async def recover(self, failure: NoReply) -> None:
        """Change the request or wait, so that it can be tried again; raise if there is no further try."""
        if self.adaptations < MOST_ADAPTATIONS:
            change = self.backend.learned.adapt(failure, self.arguments, self.method)
            if change:
                self.adaptations += 1
                self.note("model_adapted", change=change, reason=failure.message)
                return
        refused = failure.kind is FailureKind.RATE
        if refused and self.pace.successes > self.seen:  # others get through: it is a matter of time
            self.failed, self.seen, self.since = 0, self.pace.successes, self.timing.now()
        wait = self.wait_after(failure)
        self.failed += 1
        if refused:
            self.pace.cool_down(wait)
        else:
            await self.timing.sleep(wait)

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

    def wait_after(self, failure: NoReply) -> float:
        """Return the seconds to wait before the next try; raise if there is none."""
        failed, answered = self.failed, self.pace.successes > 0
        billed = failure.kind in (FailureKind.TIMEOUT, FailureKind.ENDLESS)  # the provider did its work
        used = self.charge_lost_try() if billed else {}
        too_long = (failure.retry_after or 0.0) > LONGEST_WAIT
        tries = failure.tries(self.backend.settings.max_retries, answered=answered)
        patient = (
            failure.kind is FailureKind.RATE
            and tries > 0
            and self.timing.now() - self.since < REFUSED_SECONDS
        )
        if too_long or (failed >= tries and not patient):
            self.note_failed(failure.kind.value, failure.message, used)
            more = f" ({failed + 1} tries)" if failed else ""
            more += f" It asks to wait {failure.retry_after:g} s." if too_long else ""
            raise ModelUnavailable(f"{self.model.name}: {failure.message}{more}", hint=failure.hint)
        wait = failure.retry_after or backoff(failed, self.timing.chance())
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
        return reply

    def note_failed(self, kind: str, reason: str, used: Mapping[str, Any]) -> None:
        seconds = round(self.seconds, 6)
        self.note("model_failed", messages=self.sent, failure=kind, reason=reason, seconds=seconds, **used)

    def note(self, kind: str, **fields: Any) -> None:
        """Record an event of this call."""
        about = {"agent": self.role, "candidate": self.model.candidate, "model": self.model.name}
        self.model.record(kind, **about, attempt=self.attempt, **fields)
