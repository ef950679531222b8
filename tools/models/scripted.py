"""A chat model with scripted replies, by role and turn."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManagerForLLMRun, CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from pydantic import BaseModel, PrivateAttr
from typing_extensions import override

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.base import Backend, ModelSettings


@dataclass(frozen=True)
class Prompt:
    """What a scripted model is asked.

    Attributes:
        role: The agent that asks; empty when called without Quorum's metadata.
        turn: How often this role of this candidate has asked before.
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
        """All messages as one text."""
        return "\n".join(text for _, text in self.messages)


Answer = str | Mapping[str, Any] | BaseModel | AIMessage | Exception
"""Text, or an object sent as JSON; an exception is raised."""

Said = Answer | Sequence[Answer] | Callable[[Prompt], Answer]
"""One answer for every turn, a list that is used up turn by turn, or a function."""

Script = Sequence[Answer] | Mapping[str, Said] | Callable[[Prompt], Answer]
"""Answers in order; or by role (``writer``) or role and candidate (``writer/2``); or a function."""


class ScriptedChatModel(BaseChatModel):
    """Replies from ``script``. Make one with ``scripted``."""

    script: Any
    source: str = "scripted"
    _turns: Counter[tuple[str, int | None]] = PrivateAttr(default_factory=Counter)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._say(messages, run_manager.metadata if run_manager else None, kwargs)

    @override
    async def _agenerate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: AsyncCallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        return self._say(messages, run_manager.metadata if run_manager else None, kwargs)

    def _say(
        self, messages: list[BaseMessage], metadata: Mapping[str, Any] | None, asked: Mapping[str, Any]
    ) -> ChatResult:
        metadata = metadata or {}
        role, candidate = str(metadata.get("role", "")), metadata.get("candidate")
        prompt = Prompt(
            role=role,
            candidate=candidate,
            turn=self._turns[role, candidate],
            messages=tuple((message.type, str(message.text)) for message in messages),
            temperature=asked.get("temperature"),
            seed=asked.get("seed"),
        )
        answer = self._answer(prompt)
        self._turns[role, candidate] += 1
        if isinstance(answer, Exception):
            raise answer
        return ChatResult(generations=[ChatGeneration(message=_as_message(answer))])

    def _answer(self, prompt: Prompt) -> Answer:
        if callable(self.script):
            answer: Answer = self.script(prompt)
            return answer
        answers, turn = self.script, prompt.turn
        if isinstance(answers, Mapping):
            given = answers.get(f"{prompt.role}/{prompt.candidate}", answers.get(prompt.role, []))
            if callable(given):
                said: Answer = given(prompt)
                return said
            if isinstance(given, str | Mapping | BaseModel | AIMessage | Exception):
                return given
            answers = given
        else:
            turn = self._turns.total()
        if turn >= len(answers):
            whose = f"role {prompt.role!r}, candidate {prompt.candidate}"
            raise ConfigurationError(f"{self.source} has no reply left for {whose} ({len(answers)} in all).")
        found: Answer = answers[turn]
        return found


def _as_message(answer: Answer) -> AIMessage:
    if isinstance(answer, AIMessage):
        return answer
    if isinstance(answer, BaseModel):
        return AIMessage(answer.model_dump_json())
    return AIMessage(answer if isinstance(answer, str) else json.dumps(answer, ensure_ascii=False))


def scripted(script: Script) -> ScriptedChatModel:
    """A scripted chat model, to be given to ``make_model``."""
    return ScriptedChatModel(script=script)


def scripted_backend(chat: ScriptedChatModel, settings: ModelSettings) -> Backend:
    """The backend around a scripted chat model."""
    return Backend(chat.source, chat, settings)


def scripted_file(name: str, settings: ModelSettings) -> Backend:
    """Replies from a JSON file: a list, or an object with a reply or a list of them by role.

    Raises:
        ConfigurationError: The file is missing or holds something else.
    """
    try:
        script = json.loads(Path(name).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ConfigurationError(
            f"The script {name!r} cannot be read: {error}", hint="Write scripted:FILE.json."
        ) from error
    if not isinstance(script, list | dict):
        raise ConfigurationError(f"The script {name!r} is neither a list nor an object.")
    return scripted_backend(ScriptedChatModel(script=script, source=f"scripted:{name}"), settings)
