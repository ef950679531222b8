"""OpenAI's Chat Completions over the service, so that any chat front end can ask a database.

A model is a database, ``shop``, or a database with a recipe, ``shop/reforce``. The last message is the
question, or the reply to what the one before waits for. Each answer ends with the link of its trace, by which
the next message finds the conversation that it goes on.
"""

from __future__ import annotations

import json
import re
import time
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import JSONResponse, Response

from quorum.evals.reports.format import fenced, markdown
from quorum.graph.answering import NeedsReply
from quorum.graph.context import LONGEST_QUESTION
from quorum.knowledge.errors import QuorumError
from quorum.serve.bodies import Body, asks
from quorum.serve.question import Question, Refused
from quorum.serve.routes import ApiCall, EventStream, route

_LINK = re.compile(r"\([^()\s]*/v1/questions/([A-Za-z0-9._-]{1,81})/trace\)")


class Message(BaseModel):
    """A message of a chat."""

    model_config = ConfigDict(extra="ignore")
    role: Literal["system", "developer", "user", "assistant", "tool", "function"]
    content: str | list[dict[str, Any]] | None = None

    @property
    def text(self) -> str:
        parts = self.content if isinstance(self.content, list) else [{"text": self.content}]
        return "\n".join(str(each.get("text") or "") for each in parts).strip()


class Completion(Body):
    """A request as OpenAI's; what a database needs no word of (temperature and the like) is ignored."""

    model_config = ConfigDict(extra="ignore")
    model: str = Field(max_length=90)
    messages: list[Message] = Field(min_length=1, max_length=500)
    stream: bool = False
    stream_options: dict[str, Any] | None = None


@route("GET /v1/models", "application/json")
async def models(call: ApiCall) -> Response:
    """List the databases as models of the Chat Completions API."""
    about = {"object": "model", "created": 0, "owned_by": "quorum"}
    data = [{"id": name, **about} for name in call.service.databases(call.who)]
    return JSONResponse({"object": "list", "data": data})


@route("POST /v1/chat/completions", "application/json", "text/event-stream")
async def complete(call: ApiCall, body: Completion) -> Response:
    """Answer the last message of a chat as OpenAI's API does, whole or streamed."""
    said = [each for each in body.messages if each.role in ("user", "assistant") and each.text]
    if not said or said[-1].role != "user":
        raise Refused("The last message must be the user's.", 422, "fields")
    question = await _asked(call, body.model, said)
    head = {"id": question.id, "created": int(time.time()), "model": body.model}
    at = f"{call.request.base_url}v1/questions/{question.id}/trace"
    if body.stream:
        usage = bool((body.stream_options or {}).get("include_usage"))
        return EventStream(_streamed(question, head, at, usage=usage), media_type="text/event-stream")
    text, used = await _outcome(question, at)
    message = {"role": "assistant", "content": text}
    choice = {"index": 0, "message": message, "finish_reason": "stop", "logprobs": None}
    return JSONResponse({**head, "object": "chat.completion", "choices": [choice], "usage": used})


async def _asked(call: ApiCall, model: str, said: list[Message]) -> Question:
    """Begin the question of the last message; where the one before it waits, reply to that."""
    database, _, recipe = model.partition("/")
    options, text = {"recipe": recipe} if recipe else {}, said[-1].text
    if len(text) > LONGEST_QUESTION:
        raise Refused(f"The question has more than {LONGEST_QUESTION:,} characters.", 422, "fields")
    before = _LINK.findall(said[-2].text) if said[1:] else []
    for id in before[-1:]:
        with suppress(Refused):  # it is not there any more
            found = await call.service.question(call.who, id)
            if found.waiting:
                return await call.service.reply(call.who, id, text)
            if found.status == "answered" and found.database == database:
                return await call.service.ask(call.who, text, after=id, **options)
    return await call.service.ask(call.who, text, database=database, **options)


async def _outcome(question: Question, at: str) -> tuple[str, dict[str, int]]:
    """Return what a question comes to as Markdown, with its trace's address, and the tokens that it used."""
    usage: dict[str, Any] = {}
    try:
        answer = await question.answer()
        text, usage = question.clean(answer.to_markdown()), answer.usage
    except NeedsReply as waiting:
        query = getattr(waiting.asked, "sql", "")
        lines = [
            fenced(each) if each == query else markdown(each, 1000)
            for each in asks(waiting.asked, question.database)
        ]
        text = "\n\n".join(lines)
    text = f"{text}\n\n[Trace]({at})"
    read, written = int(usage.get("input_tokens") or 0), int(usage.get("output_tokens") or 0)
    return text, {"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written}


async def _streamed(
    question: Question, head: dict[str, Any], at: str, *, usage: bool
) -> AsyncIterator[bytes]:
    """Yield the steps, each as a line of a quotation, and then what the question comes to."""

    def chunk(delta: dict[str, str], end: str | None = None, **more: Any) -> bytes:
        choices = [{"index": 0, "delta": delta, "finish_reason": end, "logprobs": None}]
        body = {**head, "object": "chat.completion.chunk", "choices": choices, **more}
        return f"data: {json.dumps(body)}\n\n".encode()

    yield chunk({"role": "assistant", "content": ""})
    async for _, step in question.steps():
        if step and step.live:
            yield chunk({"content": f"> {markdown(f'{step.agent}: {step.gist}', 200)}\n"})
    try:
        text, used = await _outcome(question, at)
    except QuorumError as error:
        text, used = f"**Failed**: {markdown(question.clean(str(error)), 1000)}", {}
    yield chunk({"content": f"\n{text}"})
    yield chunk({}, "stop")
    if usage:
        yield chunk({}, choices=[], usage=used)
    yield b"data: [DONE]\n\n"
