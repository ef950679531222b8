"""Chat Completions, as the openai client speaks them."""

from __future__ import annotations

from typing import Any

import pytest
from openai import APIStatusError, AsyncOpenAI

from quorum.tools.models.scripted import scripted
from tests.graph.shop import GOOD, QUESTION, script, written
from tests.quorum.serve.conftest import ABOVE_SIX, DIFFER, Make, served


async def test_the_openai_client_asks_streams_goes_on_and_replies(make: Make) -> None:
    view = {"ask": "view", "view": {"first": 1}, "words": "", "question": "?"}
    model = scripted(script(sql_writer=written(GOOD), question_rewriter=view))
    async with served(make({"m:a": model})) as client:
        chat = AsyncOpenAI(api_key="-", base_url=f"{client.base_url}/v1", max_retries=0)
        assert [each.id async for each in chat.models.list()] == ["shop"]
        said: Any = [{"role": "system", "content": "x"}, {"role": "user", "content": QUESTION}]
        whole = await chat.chat.completions.create(model="shop", messages=said)
        text = str(whole.choices[0].message.content)
        assert "| Lyon | 3 |" in text
        assert whole.usage.total_tokens > 0
        said += [{"role": "assistant", "content": text}, {"role": "user", "content": "Only the first!"}]
        streamed = await chat.chat.completions.create(model="shop/single", messages=said, stream=True)
        parts = [part async for part in streamed]
        text = "".join(part.choices[0].delta.content or "" for part in parts)
        assert "> QuestionRewriter: " in text
        assert "Understood as: the result before: its first 1 rows" in text
        with pytest.raises(APIStatusError, match="no database 'none'"):
            await chat.chat.completions.create(model="none", messages=said)


async def test_a_question_back_is_answered_by_the_next_message(make: Make) -> None:
    service = make(DIFFER, recipe="recap", votes=2, clarify="on")
    async with served(service) as client:
        chat = AsyncOpenAI(api_key="-", base_url=f"{client.base_url}/v1", max_retries=0)
        said: Any = [{"role": "user", "content": QUESTION}]
        for reply in ("B", ""):
            got = await chat.chat.completions.create(model="shop", messages=said)
            text = str(got.choices[0].message.content)
            said += [{"role": "assistant", "content": text}, {"role": "user", "content": reply}]
        assert "Which answer is meant?" in said[1]["content"]
        assert ABOVE_SIX.partition("WHERE")[2].split()[0] in said[3]["content"]
