"""A model's reply, read from its message: the text, the object in it, and its cost."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, Any, TypeGuard

from pydantic import BaseModel

from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.ledger import Usage
from quorum.tools.models.backend import Message, Output
from quorum.tools.models.prices import Price
from quorum.tools.models.structured import (
    NOT_TEXT,
    Method,
    Problem,
    ProblemKind,
    has_half_pair,
    parse,
    without_half_pairs,
)

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

_FILTERED = ("content_filter", "refusal", "safety")
_CUT = ("length", "max_tokens")
_MOST_TOKENS = 10**9  # of one call


@dataclass(frozen=True)
class Reply:
    """A model's reply.

    Attributes:
        text: As the model wrote it; a function call's arguments as JSON.
        parsed: The validated object; None without ``output`` or with a ``problem``.
        problem: Why the reply is unusable; None if it is fine.
        usage: Of this call, price included; ``model_seconds`` is the wall clock of the successful try.
        finish_reason: The provider's own word; empty if it sent none.
    """

    text: str
    parsed: BaseModel | None
    problem: Problem | None
    usage: Usage
    finish_reason: str
    method: Method | None


def message_of(reply: Any) -> AIMessage:
    """Return the message of a reply, also of a structured one, which is ``{"raw": message, "parsed": …}``.

    Raises:
        TypeError: It is not the assistant's.
    """
    from langchain_core.messages import AIMessage

    found = reply["raw"] if isinstance(reply, dict) else reply
    if not isinstance(found, AIMessage):
        role = getattr(found, "role", getattr(found, "type", type(found).__name__))
        raise TypeError(f"its role is {role!r}, not 'assistant'")
    return found


def text_of(message: AIMessage) -> str:
    """Return what the model wrote: its text, or the arguments of the tool it called, as JSON.

    Half a surrogate pair, which UTF-8 cannot hold, becomes U+FFFD.
    """
    return without_half_pairs(_raw_text(message))


def _raw_text(message: AIMessage) -> str:
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False)
    if message.invalid_tool_calls:
        return str(message.invalid_tool_calls[0]["args"] or "")
    return str(message.text)


def finish_reason(message: AIMessage) -> str:
    """Return the provider's own word for why the model stopped; empty if it says none."""
    metadata = message.response_metadata
    reasons = (metadata.get(name) for name in ("finish_reason", "stop_reason", "done_reason"))
    return without_half_pairs(str(next(filter(None, reasons), "")))


def judge(message: AIMessage, output: Output) -> BaseModel | Problem | None:
    """Return the validated object, what is wrong with the reply, or None for a good plain text."""
    text, reason = text_of(message), finish_reason(message).lower()
    refusal = message.additional_kwargs.get("refusal")
    if refusal or reason in _FILTERED:
        explanation = str(refusal or "The provider's filter stopped the reply.")
        return Problem(ProblemKind.REFUSAL, without_half_pairs(explanation))
    if reason in _CUT:
        return Problem(ProblemKind.LENGTH, "The reply was cut off at the output limit; give a shorter one.")
    if not text.strip():
        return Problem(ProblemKind.EMPTY, "The reply was empty.")
    if has_half_pair(_raw_text(message)):
        return NOT_TEXT
    return parse(text, output) if output else None


def recorded_reply(event: Mapping[str, Any], output: Output) -> Reply | None:
    """Return the reply of a ``model_call`` event; None if the event does not hold all of it."""
    try:
        text, kind, used = event["reply"], event["problem"].partition(": "), Usage(**event["usage"])
        problem = Problem(ProblemKind(kind[0]), kind[2]) if kind[0] else None
        method = Method(event["method"]) if event["method"] else None
        parsed = parse(text, output) if output and not problem else None
        reason = str(event["finish_reason"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None
    return None if isinstance(parsed, Problem) else Reply(text, parsed, problem, used, reason, method)


def usage_of(
    prompt: Sequence[Message], text: str, price: Price | None, message: AIMessage | None = None
) -> Usage:
    """Return the usage of one call: the provider's own counts, else an estimate that is counted as one.

    Counts that mean nothing (no integer, negative, a prompt of 0, absurdly high) are estimated, too.

    Args:
        price: None where unknown; then the dollars are None.
        message: None for a call of which only the prompt is known.
    """
    stated = _stated(message) if message is not None else None
    sent, cached, got = stated or (sum(_tokens(part["content"]) for part in prompt), 0, estimate_tokens(text))
    return Usage(
        model_calls=1,
        input_tokens=sent,
        output_tokens=got,
        cached_tokens=cached,
        usd=price.usd(sent, cached, got) if price else None,
        estimated_calls=0 if stated else 1,
    )


def _stated(message: AIMessage) -> tuple[int, int, int] | None:
    """Return the provider's counts: input, the part of it that was cached, output."""
    usage = message.usage_metadata
    if not usage:
        return None
    sent, got = usage["input_tokens"], usage["output_tokens"]
    cached = usage.get("input_token_details", {}).get("cache_read")
    if not sent or not _plausible(sent) or not _plausible(got):
        return None
    return sent, cached if _plausible(cached) and cached <= sent else 0, got


def _plausible(count: object) -> TypeGuard[int]:
    return type(count) is int and 0 <= count <= _MOST_TOKENS


_tokens = lru_cache(maxsize=32)(estimate_tokens)  # the long system message is the same in every call
