"""The `offline` chat model: rules behind LangChain's interface."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, ClassVar

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult
from typing_extensions import override

from tools.offline.prompt import Prompt
from tools.offline.roles import answer

GREETING = (
    "This is Quorum's offline demonstration: rules, no language model. It answers only the prompts of "
    "Quorum's agents. For questions of your own choose a real model, such as openai:gpt-4.1."
)


class OfflineChatModel(BaseChatModel):
    """A rule-based chat model that reads Quorum's tagged prompts; it needs no key and no network.

    It replies with the JSON form of the prompt's role. At temperature 0 (the default) it takes the
    best reading of a question, above it the reading that ``seed`` picks, so that candidates differ.
    Other sampling arguments and bound tools are accepted and ignored.

    Raises:
        ConfigurationError: The prompt's role is not one that the rules can play,
            or the schema in the prompt has no table.
        SchemaTextError: The schema is not in the form of ``knowledge.schema_text``.
    """

    demonstration: ClassVar[bool] = True
    """Whoever shows an answer of this model says that it is a demonstration."""

    temperature: float = 0.0
    seed: int = 0

    @property
    def _llm_type(self) -> str:
        return "offline"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model": "offline:demo", "temperature": self.temperature, "seed": self.seed}

    @override
    def bind_tools(self, tools: Sequence[Any], **kwargs: Any) -> Any:
        """The model itself: it knows the form of every role without tools."""
        return self.bind(**kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        text = "\n\n".join(str(message.text) for message in messages if message.type != "ai")
        temperature, seed = kwargs.get("temperature"), kwargs.get("seed")
        prompt = Prompt(
            text,
            self.temperature if temperature is None else float(temperature),
            self.seed if seed is None else int(seed),
        )
        reply = json.dumps(answer(prompt), ensure_ascii=False) if prompt.get("task") else GREETING
        message = AIMessage(
            content=reply,
            usage_metadata=_usage(text, reply),
            response_metadata={"model_name": "offline:demo", "finish_reason": "stop", "demonstration": True},
        )
        return ChatResult(generations=[ChatGeneration(message=message)])


def _usage(prompt: str, reply: str) -> UsageMetadata:
    """Estimated tokens, four characters each: there is no tokenizer, but budgets should bite."""
    read, written = len(prompt) // 4 + 1, len(reply) // 4 + 1
    return UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
