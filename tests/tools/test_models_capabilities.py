"""Refusals as real endpoints word them, and the parameter that each is about."""

from __future__ import annotations

import pytest
from pydantic import BaseModel

from quorum.tools.models.backend import ModelSettings
from quorum.tools.models.capabilities import Capabilities, blamed
from quorum.tools.models.failures import Failure, FailureKind
from quorum.tools.models.openai_chat import OpenAIBackend
from quorum.tools.models.structured import Method

ALL = frozenset(
    [
        "temperature",
        "seed",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "tools",
        "strict",
        "stream_options",
    ]
)


class Plan(BaseModel):
    steps: list[str]


def refusal(message: str, parameter: str = "") -> Failure:
    return Failure(FailureKind.REQUEST, message, parameter=parameter)


@pytest.mark.parametrize(
    ("message", "parameter", "expected"),
    [
        ("Unsupported value: 'temperature' does not support 0.7; only (1) is.", "", "temperature"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "max_tokens", "max_tokens"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "", "max_tokens"),
        ("'response_format' of type 'json_schema' is not supported.", "", "response_format"),
        ("Structured outputs are off for this deployment", "", "response_format"),
        ("JSON mode is not available", "", "response_format"),
        ("registry.example/llama does not support tools", "", "tools"),
        ("tool_choice 'function' is not implemented", "tool_choice", "tools"),
        ("This model has no function calling", "", "tools"),
        ("Unknown parameter: 'tools[0].function.strict'.", "tools[0].function.strict", "strict"),
        ("extra fields not permitted: stream_options", "", "stream_options"),
        ("seed: extra inputs are not permitted", "", "seed"),
        ("Your seeds and temperatures are fine", "", ""),
        ("This content breaks our policy", "", ""),
        ("'messages' must alternate between user and assistant", "messages", ""),
    ],
)
def test_the_refused_parameter_is_recognised(message: str, parameter: str, expected: str) -> None:
    assert blamed(refusal(message, parameter), ALL) == expected


def test_only_what_was_sent_and_refused_teaches_anything() -> None:
    failure = refusal("temperature and seed are not supported", "temperature")
    assert blamed(failure, {"seed"}) == "seed"
    assert blamed(failure, set()) == ""
    known = Capabilities((Method.JSON_MODE, Method.TEXT))
    assert known.adapt(Failure(FailureKind.RATE, "too warm a temperature"), {"temperature"}, None, None) == ""
    assert known.kept({"temperature": 1.0}) == {"temperature": 1.0}


def test_a_strict_tool_is_asked_for_less_strictly_before_tools_are_given_up() -> None:
    backend = OpenAIBackend("m", ModelSettings(base_url="http://127.0.0.1:9/v1", max_output_tokens=None))
    assert backend.arguments(None, None, None, None) == {}
    sent = backend.arguments(None, None, Plan, Method.FUNCTION_CALLING)
    assert sent["strict"] is True
    assert backend.learned.adapt(refusal("'strict' is unknown"), sent, Plan, Method.FUNCTION_CALLING)
    again = backend.arguments(None, None, Plan, Method.FUNCTION_CALLING)
    assert "strict" not in again
    assert again["tools"] == sent["tools"]
