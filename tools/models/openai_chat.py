"""OpenAI and every endpoint that speaks its chat completions: Azure, vLLM, Ollama, Together, …"""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import openai
from langchain_openai import ChatOpenAI
from typing_extensions import override

from quorum.tools.models.backend import Backend, ModelSettings, Output
from quorum.tools.models.capabilities import LADDER, Capabilities
from quorum.tools.models.endpoint import OPENAI_URL, Endpoint, httpx
from quorum.tools.models.prices import price_of
from quorum.tools.models.structured import Method, function_of

if TYPE_CHECKING:
    from langchain_core.runnables import Runnable

# LangChain's advice to its own callers; here the next method is tried, and the trace says so.
warnings.filterwarnings("ignore", "Invalid schema for OpenAI|This model does not support OpenAI", UserWarning)

IDLE_SECONDS = 30.0
"""Seconds that an idle connection is kept."""

_BODY = ("max_tokens", "max_completion_tokens", "response_format")
"""Parameters that the LangChain class would rewrite, or handle by another code path: with a
``response_format`` its client raises over replies that are cut off or filtered, and their tokens are lost.
They go into ``extra_body``, which is merged into the request unchanged."""


class OpenAIBackend(Backend):
    """One model behind one endpoint.

    Each request under way has an HTTP client of its own, the one used last or a new one: httpx's pool looks
    at all of its connections for every request, which at a hundred requests at once costs 17 % of the CPU
    of an evaluation (``recap``). A client outlives no event loop: its connections belong to the loop.
    """

    errors: tuple[type[Exception], ...] = (
        openai.OpenAIError,
        # What the client and LangChain raise over an answer that is no chat completion:
        ValueError,
        KeyError,
        TypeError,
        IndexError,
        AttributeError,
        RecursionError,
    )
    _chat: ChatOpenAI

    def __init__(self, model: str, settings: ModelSettings) -> None:
        self.explainer = self._endpoint = endpoint = Endpoint.of(model, settings)
        self.name, self.settings, self.endpoint = f"openai:{model}", settings, endpoint.endpoint
        self.price = price_of(model, settings.prices)
        limits = ["max_tokens", "max_completion_tokens"]  # either name, tried in this order
        if self.endpoint.startswith(OPENAI_URL):
            limits.reverse()
        self.learned = Capabilities(LADDER, limits)
        self._idle: WeakKeyDictionary[asyncio.AbstractEventLoop, list[ChatOpenAI]] = WeakKeyDictionary()
        self._chat = ChatOpenAI(
            model=model,
            **endpoint.options,
            max_retries=0,  # the one retry layer is Model.complete
            use_responses_api=False,
            stream_chunk_timeout=settings.timeout,
            # never used, see ``_connected``; LangChain's own would read the certificates twice more
            http_client=endpoint.client(),
            http_async_client=endpoint.async_client(),
        )

    def _connected(self) -> ChatOpenAI:
        """Return a copy of the chat model on an HTTP client of its own."""
        options = self._endpoint.options
        limits = httpx.Limits(keepalive_expiry=IDLE_SECONDS)
        http_client = self._endpoint.async_client(timeout=options["timeout"], limits=limits)
        client = self._chat.root_async_client.with_options(http_client=http_client)
        return self._chat.model_copy(
            update={"root_async_client": client, "async_client": client.chat.completions}
        )

    @override
    async def aclose(self) -> None:
        """Close the running loop's clients."""
        for chat in self._idle.pop(asyncio.get_running_loop(), []):
            await chat.root_async_client.close()

    @override
    def arguments(
        self, temperature: float | None, seed: int | None, output: Output, method: Method | None
    ) -> dict[str, Any]:
        asked = super().arguments(temperature, seed, output, method)
        if self.learned.token_limits and self.settings.max_output_tokens is not None:
            asked[self.learned.token_limits[0]] = self.settings.max_output_tokens
        if method is Method.JSON_MODE:
            asked["response_format"] = {"type": "json_object"}
        elif output is not None and method is Method.JSON_SCHEMA:
            function = function_of(output)
            form = {name: function[name] for name in ("name", "strict")} | {"schema": function["parameters"]}
            asked["response_format"] = {"type": "json_schema", "json_schema": form}
        elif output is not None and method is Method.FUNCTION_CALLING:
            function = {name: part for name, part in function_of(output).items() if name != "strict"}
            asked["tools"] = [{"type": "function", "function": function}]  # strict is often refused
            asked["tool_choice"] = {"type": "function", "function": {"name": function["name"]}}
        return self.learned.kept(asked)

    @override
    @contextmanager
    def asking(self, arguments: dict[str, Any]) -> Iterator[tuple[Runnable[Any, Any], dict[str, Any]]]:
        given = dict(arguments)
        if body := {name: given.pop(name) for name in _BODY if name in given}:
            given["extra_body"] = body
        idle = self._idle.setdefault(asyncio.get_running_loop(), [])
        chat = idle.pop() if idle else self._connected()
        chat.stream_usage = "stream_options" not in self.learned.dropped
        try:
            yield chat, given
        finally:
            idle.append(chat)
