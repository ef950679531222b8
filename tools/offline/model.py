"""The `offline` chat model: rules behind LangChain's interface."""

from __future__ import annotations

import json
from typing import Any, ClassVar

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.outputs import ChatGeneration, ChatResult

from quorum.tools.offline.roles import NOTE, Prompt, answer


class OfflineChatModel(BaseChatModel):
    """A rule-based chat model that reads Quorum's tagged prompts; it needs no key and no network.

    It replies with the JSON form of the prompt's role. Sampling arguments and bound tools are accepted and
    ignored: its candidates do not differ.

    Raises:
        ConfigurationError: The prompt has a role without a rule and asks for no form,
            or the schema in the prompt has no table.
    """

    demonstration: ClassVar[bool] = True
    """Whoever shows an answer of this model says that it is a demonstration."""

    @property
    def _llm_type(self) -> str:
        return "offline"

    def bind_tools(self, *_: Any, **kwargs: Any) -> Any:
        """The model itself: it knows the form of every role without tools."""
        return self.bind(**kwargs)

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        text = "\n\n".join(str(message.text) for message in messages if message.type != "ai")
        prompt = Prompt(text)
        reply = json.dumps(answer(prompt), ensure_ascii=False) if prompt.get("task") else NOTE
        read, written = len(text) // 4 + 1, len(reply) // 4 + 1  # tokens, of four characters
        usage = UsageMetadata(input_tokens=read, output_tokens=written, total_tokens=read + written)
        about = {"model_name": "offline:demo", "finish_reason": "stop", "demonstration": True}
        message = AIMessage(content=reply, usage_metadata=usage, response_metadata=about)
        return ChatResult(generations=[ChatGeneration(message=message)])
