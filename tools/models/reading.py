"""What a message of a model says, whether it is of use, and what it cost."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from pydantic import BaseModel

from knowledge.tokens import estimate_tokens
from tools.ledger import Usage
from tools.models.base import Message
from tools.models.prices import Price
from tools.models.structured import Problem, ProblemKind, parse

if TYPE_CHECKING:
    from langchain_core.messages import AIMessage

_FILTERED = "content_filter"
_CUT = ("length", "max_tokens")


def text_of(message: AIMessage) -> str:
    """What the model wrote: its text, or the arguments of the tool it called, as JSON."""
    if message.tool_calls:
        return json.dumps(message.tool_calls[0]["args"], ensure_ascii=False)
    if message.invalid_tool_calls:
        return str(message.invalid_tool_calls[0]["args"] or "")
    return str(message.text)


def finish_reason(message: AIMessage) -> str:
    """Why the model stopped, in the provider's own word; empty where it does not say."""
    return str(message.response_metadata.get("finish_reason") or "")


def judge(message: AIMessage, output: type[BaseModel] | None) -> BaseModel | Problem | None:
    """The validated object, what is wrong with the reply, or None for a good plain text."""
    text, reason = text_of(message), finish_reason(message)
    refusal = message.additional_kwargs.get("refusal")
    if refusal or reason == _FILTERED:
        return Problem(ProblemKind.REFUSAL, str(refusal or "The provider's filter stopped the reply."))
    if reason in _CUT:
        return Problem(ProblemKind.LENGTH, "The reply was cut off at the output limit; give a shorter one.")
    if not text.strip():
        return Problem(ProblemKind.EMPTY, "The reply was empty.")
    return parse(text, output) if output else None


def usage_of(
    prompt: Sequence[Message], text: str, price: Price | None, message: AIMessage | None = None
) -> Usage:
    """What one call used: the provider's own counts, or an estimate that is counted as one.

    Args:
        price: None where unknown; then the dollars are None.
        message: None for a call of which only the prompt is known.
    """
    stated = message.usage_metadata if message is not None else None
    if stated:
        sent, got = stated["input_tokens"], stated["output_tokens"]
        cached = stated.get("input_token_details", {}).get("cache_read") or 0
    else:
        sent = sum(_tokens(part["content"]) for part in prompt)
        got, cached = estimate_tokens(text), 0
    return Usage(
        model_calls=1,
        input_tokens=sent,
        output_tokens=got,
        cached_tokens=cached,
        usd=price.usd(sent, cached, got) if price else None,
        estimated_calls=0 if stated else 1,
    )


_tokens = lru_cache(maxsize=32)(estimate_tokens)  # the long system message is the same in every call
