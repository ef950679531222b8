"""The features that an endpoint supports, learned from its refusals."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from typing import Any

from quorum.tools.models.failures import FailureKind, NoReply
from quorum.tools.models.structured import Method

LADDER = (Method.JSON_SCHEMA, Method.FUNCTION_CALLING, Method.JSON_MODE, Method.TEXT)

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
    """The known abilities of one model behind one endpoint; kept in the process.

    Args:
        ladder: Ways to ask for structured replies, tried in this order; the last one is never left.
        token_limits: Names of the parameter that limits the reply, tried in this order.
    """

    def __init__(self, ladder: tuple[Method, ...], token_limits: Sequence[str] = ()) -> None:
        self.ladder, self.token_limits = ladder, list(token_limits)
        self.dropped: set[str] = set()

    def kept(self, arguments: dict[str, Any]) -> dict[str, Any]:
        """Return the arguments without those that were refused."""
        return {name: value for name, value in arguments.items() if name not in self.dropped}

    def adapt(self, failure: NoReply, sent: Collection[str], method: Method | None) -> str:
        """Change the settings that made the request fail. Return a description of the change, or "".

        If a parallel call has learned the same already, the result is the same.

        Args:
            sent: Names of the parameters in the request.
        """
        if failure.kind is not FailureKind.REQUEST:
            return ""
        parameter = blamed(failure, {*sent, "stream_options"})
        if parameter in ("response_format", "tools"):
            return self._next_method(method)
        if parameter in ("max_tokens", "max_completion_tokens"):
            if parameter in self.token_limits:
                self.token_limits.remove(parameter)
            instead = f"{self.token_limits[0]} is sent instead" if self.token_limits else "no limit is sent"
            return f"{parameter} is not sent any more, {instead}"
        self.dropped |= {parameter} - {""}
        return f"{parameter} is not sent any more" if parameter else ""

    def _next_method(self, method: Method | None) -> str:
        if method in self.ladder:
            left = self.ladder[self.ladder.index(method) + 1 :]
            if not left:
                return ""
            self.ladder = left
        return f"structured replies are asked for by {self.ladder[0]} instead of {method}"


def blamed(failure: NoReply, asked: Collection[str]) -> str:
    """Return the sent parameter that a refusal is about; empty if none."""
    named = failure.parameter.replace("tool_choice", "tools")
    known = _WORDS.keys() & set(asked)
    for parameter in known:
        if re.match(rf"{parameter}\b", named):
            return parameter
    places = {}
    for parameter in known:
        if found := re.search(rf"(?<![\w-])(?:{_WORDS[parameter]})(?![\w-])", failure.message, re.IGNORECASE):
            places[parameter] = found.start()
    return min(places, key=lambda parameter: (places[parameter], parameter), default="")
