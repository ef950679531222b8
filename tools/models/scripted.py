"""Chat models that reply by role, candidate and turn: from a script, or from a run's recording."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import InputTokenDetails, UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import BaseModel, PrivateAttr
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.backend import Backend, ModelSettings
from quorum.tools.record import BLOB, stored_text


@dataclass(frozen=True)
class Prompt:
    """One request to a scripted model.

    Attributes:
        role: The agent that asks; empty when called without Quorum's metadata.
        turn: Number of earlier requests of this role of this candidate.
        messages: ``(role, text)`` in order.
    """

    role: str
    candidate: str | None
    turn: int
    messages: tuple[tuple[str, str], ...]
    temperature: float | None
    seed: int | None

    @property
    def text(self) -> str:
        """Return all messages as one text."""
        return "\n".join(text for _, text in self.messages)


Answer = str | Mapping[str, Any] | BaseModel | AIMessage | Exception
"""Text, or an object sent as JSON; an exception is raised."""

Said = Answer | Sequence[Answer] | Callable[[Prompt], Answer]
"""One answer for every turn, a list that is used up turn by turn, or a function."""

Script = Sequence[Answer] | Mapping[str, Said] | Callable[[Prompt], Answer]
"""Answers in order; or by role (``writer``) or role and candidate (``writer/2``); or a function."""


class ScriptedChatModel(BaseChatModel):
    """Replies from ``script``; made by ``scripted``."""

    script: Any
    source: str = "scripted"
    _turns: Counter[tuple[str, int | None]] = PrivateAttr(default_factory=Counter)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def _generate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        metadata = (run_manager.metadata if run_manager else None) or {}
        role, candidate = str(metadata.get("role", "")), metadata.get("candidate")
        prompt = Prompt(
            role=role,
            candidate=candidate,
            turn=self._turns[role, candidate],
            messages=tuple((message.type, str(message.text)) for message in messages),
            temperature=kwargs.get("temperature"),
            seed=kwargs.get("seed"),
        )
        answer = self._answer(prompt)
        self._turns[role, candidate] += 1
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=_as_message(answer))])

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> ChatResult:
        return self._generate(messages, stop, run_manager, **kwargs)  # in the loop: nothing to wait for

    def _answer(self, prompt: Prompt) -> Answer:
        said, turn = self.script, self._turns.total()
        if isinstance(said, Mapping):
            said = said.get(f"{prompt.role}/{prompt.candidate}", said.get(prompt.role, []))
            turn = prompt.turn
        said = said(prompt) if callable(said) else said
        if isinstance(said, str | Mapping | BaseModel | AIMessage | Exception):
            return said
        if turn >= len(said):
            whose = f"role {prompt.role!r}, candidate {prompt.candidate}"
            raise ConfigurationError(f"{self.source} has no reply left for {whose} ({len(said)} in all).")
        found: Answer = said[turn]
        return found


def _as_message(answer: Answer) -> AIMessage:
    if isinstance(answer, AIMessage):
        return answer
    if isinstance(answer, BaseModel):
        return AIMessage(answer.model_dump_json())
    return AIMessage(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))


def scripted(script: Script) -> ScriptedChatModel:
    """Return a scripted chat model, to be given to ``make_model``."""
    return ScriptedChatModel(script=script)


def replay(name: str, settings: ModelSettings) -> Backend:
    """Return the backend that repeats a recording, by role, candidate and turn.

    A run's ``events.jsonl`` is a recording: its ``model_call`` events hold all that is needed. Other lines
    are skipped. A line without ``kind`` counts as a model call, so that a recording can be written by hand:
    ``{"agent": "writer", "reply": "…"}``.

    Raises:
        ConfigurationError: The file is missing, is not JSONL, or holds no reply.
    """
    script: dict[str, list[AIMessage]] = {}
    demonstration = False
    try:
        for line in filter(str.strip, Path(name).read_text(encoding="utf-8").split("\n")):
            event = json.loads(line)
            demonstration |= str(event.get("model", "")).startswith("offline")
            if event.get("kind", "model_call") == "model_call" and "reply" in event:
                candidate = event.get("candidate")
                key = str(event.get("agent", "")) + ("" if candidate is None else f"/{candidate}")
                script.setdefault(key, []).append(_recorded_message(event, Path(name).parent))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The recording {name!r} cannot be read: {error}",
            hint="Write replay:FILE with the events.jsonl of a run.",
        ) from error
    if not script:
        raise ConfigurationError(f"The recording {name!r} holds no reply of a model.")
    source = f"replay:{name}"
    backend = Backend(source, ScriptedChatModel(script=script, source=source), settings)
    backend.demonstration = demonstration
    return backend


def _recorded_message(event: Mapping[str, Any], folder: Path) -> AIMessage:
    """Return the reply of an event; a long one lies in the ``blobs`` of the run's folder."""
    reply: Any = event["reply"]
    if isinstance(reply, Mapping) and BLOB in reply:
        reply = stored_text(folder, reply[BLOB])
    elif not isinstance(reply, str):
        reply = json.dumps(reply, ensure_ascii=False)
    message = AIMessage(reply, response_metadata={"finish_reason": event.get("finish_reason") or "stop"})
    if usage := event.get("usage"):
        sent, got = int(usage.get("input_tokens", 0)), int(usage.get("output_tokens", 0))
        cached = InputTokenDetails(cache_read=int(usage.get("cached_tokens", 0)))
        message.usage_metadata = UsageMetadata(
            input_tokens=sent, output_tokens=got, total_tokens=sent + got, input_token_details=cached
        )
    return message
