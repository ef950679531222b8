"""What an endpoint turned out to support, and requests that ask for no more than that."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from quorum.tools.models.base import Failure, Sampling
from quorum.tools.models.structured import Method, Schema

_LADDER = (Method.JSON_SCHEMA, Method.FUNCTION_CALLING, Method.JSON_MODE, Method.TEXT)

# Words by which endpoints name what they refuse, where they do not name the parameter itself.
_WORDS = {
    "response_format": r"response_format|json_schema|json_object|structured.outputs?|json mode|guided",
    "tools": r"tools?|tool_choice|functions?|function.calling|function_call",
    "max_completion_tokens": r"max_completion_tokens",
    "max_tokens": r"max_tokens",
    "stream_options": r"stream_options|include_usage",
    "temperature": r"temperature",
    "seed": r"seed",
}


class Capabilities:
    """What is known of one model behind one endpoint; learned from its refusals, kept in the process.

    Args:
        method: Ask for structured replies this way only; None starts with the best.
        token_limit: The parameter that limits the reply, tried first.
    """

    def __init__(self, method: Method | None, token_limit: str) -> None:
        self.ladder: tuple[Method, ...] = (method,) if method else _LADDER
        self.token_limits = [token_limit, *({"max_tokens", "max_completion_tokens"} - {token_limit})]
        self.dropped: set[str] = set()
        self.refused_schemas: set[str] = set()

    def method(self, schema: Schema) -> Method:
        """The best way left to ask for this output."""
        if schema.name in self.refused_schemas and Method.JSON_SCHEMA in self.ladder[:-1]:
            return self.ladder[self.ladder.index(Method.JSON_SCHEMA) + 1]
        return self.ladder[0]

    def arguments(self, sampling: Sampling, schema: Schema | None, method: Method | None) -> dict[str, Any]:
        """The request's parameters beside model and messages.

        Those that the LangChain class would rewrite, or handle by another code path, travel in
        ``extra_body``, which is merged into the request as it is.
        """
        asked: dict[str, Any] = {"temperature": sampling.temperature, "seed": sampling.seed}
        body: dict[str, Any] = {}
        if self.token_limits:
            body[self.token_limits[0]] = sampling.max_output_tokens
        if schema is not None and method is Method.JSON_SCHEMA:
            form = {"name": schema.name, "schema": schema.body, "strict": schema.strict}
            body["response_format"] = {"type": "json_schema", "json_schema": form}
        elif schema is not None and method is Method.FUNCTION_CALLING:
            asked |= self._tool(schema)
        elif method is Method.JSON_MODE:
            body["response_format"] = {"type": "json_object"}
        kept = {k: v for k, v in asked.items() if v is not None and k not in self.dropped}
        body = {k: v for k, v in body.items() if v is not None}
        return kept | {"extra_body": body} if body else kept

    def _tool(self, schema: Schema) -> dict[str, Any]:
        function: dict[str, Any] = {
            "name": schema.name,
            "description": schema.description,
            "parameters": schema.body,
        }
        if schema.strict and "strict" not in self.dropped:
            function["strict"] = True
        choice = {"type": "function", "function": {"name": schema.name}}
        return {"tools": [{"type": "function", "function": function}], "tool_choice": choice}

    def adapt(self, failure: Failure, sent: Mapping[str, Any], schema: Schema | None) -> str:
        """Learn from a refused request; says what changes, or is empty if nothing can.

        Where a parallel call has learned the same already, the answer is what it learned.
        """
        asked = {*sent, *sent.get("extra_body", {}), "stream_options"}
        if any("strict" in tool["function"] for tool in sent.get("tools", ())):
            asked.add("strict")
        parameter = blamed(failure, asked)
        if parameter in ("response_format", "tools"):
            return self._next_method(failure, sent, schema)
        if parameter in ("max_tokens", "max_completion_tokens"):
            return self._next_limit(parameter)
        if not parameter:
            return ""
        self.dropped.add(parameter)
        return f"{parameter} is not sent any more"

    def _next_limit(self, refused: str) -> str:
        if refused in self.token_limits:
            self.token_limits.remove(refused)
        instead = f"{self.token_limits[0]} is sent instead" if self.token_limits else "no limit is sent"
        return f"{refused} is not sent any more, {instead}"

    def _next_method(self, failure: Failure, sent: Mapping[str, Any], schema: Schema | None) -> str:
        used = _method_of(sent)
        this_one = re.search(r"invalid schema", failure.message, re.IGNORECASE)
        if this_one and schema is not None and used is Method.JSON_SCHEMA and len(self.ladder) > 1:
            self.refused_schemas.add(schema.name)
            return f"the schema of {schema.name} is refused; it is asked for by {self.method(schema)}"
        if used in self.ladder and self.ladder.index(used) + 1 < len(self.ladder):
            self.ladder = self.ladder[self.ladder.index(used) + 1 :]
        elif used in self.ladder:
            return ""
        return f"structured replies are asked for by {self.ladder[0]} instead of {used}"

    def distrust(self, method: Method) -> str:
        """Write the schema into the prompt from now on: the endpoint took the method and ignored it."""
        if method is Method.TEXT or len(self.ladder) == 1:
            return ""
        self.ladder = (Method.TEXT,)
        return f"the endpoint accepts {method} but does not obey it; the schema goes into the prompt"


def _method_of(sent: Mapping[str, Any]) -> Method:
    if "tools" in sent:
        return Method.FUNCTION_CALLING
    form = sent.get("extra_body", {}).get("response_format", {}).get("type")
    return {"json_schema": Method.JSON_SCHEMA, "json_object": Method.JSON_MODE}.get(form, Method.TEXT)


def blamed(failure: Failure, asked: set[str]) -> str:
    """The parameter that a refusal is about, of those that were sent; empty where it is about none."""
    named = failure.parameter.replace("tool_choice", "tools")
    if "strict" in asked and re.search(r"\bstrict\b", f"{named} {failure.message}"):
        return "strict"
    for parameter in asked & _WORDS.keys():
        if re.match(rf"{parameter}\b", named):
            return parameter
    places = {}
    for parameter in asked & _WORDS.keys():
        if found := re.search(rf"(?<![\w-])(?:{_WORDS[parameter]})(?![\w-])", failure.message, re.IGNORECASE):
            places[parameter] = found.start()
    return min(places, key=lambda parameter: (places[parameter], parameter), default="")
