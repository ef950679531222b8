"""The schema that is asked for, and the object that is found in a reply."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from pydantic import BaseModel, Field, create_model

from quorum.tools.models.capabilities import blamed
from quorum.tools.models.failures import FailureKind, NoReply
from quorum.tools.models.structured import Problem, ProblemKind, form_of, function_of, parse


class Column(BaseModel):
    """A column."""

    name: str = Field(description="As in the schema.", max_length=60)
    kind: Literal["key", "value"] = "value"


class Verdict(BaseModel):
    """Judge the result."""

    valid: bool
    columns: list[Column] = Field(default_factory=list, description="Best first.")
    fix: str | None = None
    rows: int = Field(ge=0, description="Expected rows")


class Node(BaseModel):
    label: str
    children: list[Node] = []


OPEN = [create_model("Open", value=(kind, ...)) for kind in (dict[str, int], Any, tuple[int, str])]
GOOD = {"valid": True, "columns": [{"name": "id", "kind": "key"}], "fix": None, "rows": 3}


def test_all_is_required_and_closed_and_what_fields_hold_is_the_prompts_to_say() -> None:
    function = function_of(Verdict)
    assert function["strict"]
    text = json.dumps(function["parameters"])
    assert text.count('"additionalProperties": false') == text.count('"required": ["') == 2
    assert not any(f'"{word}"' in text for word in ("default", "title", "const", "$ref"))
    assert (function["name"], function["description"]) == ("Verdict", "Judge the result.")
    fields = function["parameters"]["properties"]
    assert fields["rows"] == {"minimum": 0, "type": "integer"}
    assert "As in the schema" not in json.dumps(function["parameters"])
    assert fields["fix"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


@pytest.mark.parametrize("output", [*OPEN, Node])
def test_a_model_that_strict_mode_cannot_express_is_not_strict(output: type[BaseModel]) -> None:
    assert function_of(output)["strict"] is False
    assert function_of(output)["parameters"]["properties"]


def test_the_form_tells_each_field_its_type_and_what_it_holds() -> None:
    assert (
        form_of(Verdict)
        == """Reply with one JSON object:
- `valid` (true or false)
- `columns` (list of objects): Best first.
  - `name` (string): As in the schema. (maximum length 60)
  - `kind` ("key" or "value")
- `fix` (string or null)
- `rows` (integer): Expected rows (at least 0)"""
    )
    assert form_of(Node).splitlines()[1:] == ["- `label` (string)", "- `children` (list of objects)"]
    assert form_of(OPEN[-1]).splitlines()[1].startswith("- `value` (list of any value)")


@pytest.mark.parametrize(
    "text",
    [
        "{}",
        "  {}\n",
        "```json\n{}\n```",
        "```\n{}\n```\nThat is my answer.",
        "Sure! Here it is: {} I hope that helps {smile}.",
        '<think>maybe {"valid": false, "rows": 1}?</think>\n{}',
        'First {"draft": 1}, then {}',
    ],
)
def test_the_object_is_found_wherever_it_stands(text: str) -> None:
    found = parse(text.replace("{}", json.dumps(GOOD, indent=1)), Verdict)
    assert found == Verdict.model_validate(GOOD)


def test_trailing_commas_and_raw_line_breaks_are_forgiven_but_strings_are_left_alone() -> None:
    text = '{"valid": true, "fix": "a, ]\n and \\",}\\"", "rows": 1, "columns": [{"name": "x",},],}'
    found = parse(text, Verdict)
    assert isinstance(found, Verdict)
    assert found.fix == 'a, ]\n and ",}"'
    assert [column.name for column in found.columns] == ["x"]


@pytest.mark.parametrize("text", ["", "no", "[1, 2]", "{", "{" * 5000, "[" * 100_000, '{"a":' * 3000, "null"])
def test_what_holds_no_object_is_a_problem_and_no_crash(text: str) -> None:
    found = parse(text, Verdict)
    assert isinstance(found, Problem)
    assert found.kind is ProblemKind.NO_JSON
    loose = create_model("Loose", note=(str, ""))
    assert isinstance(parse('{"note": "x", "inner": {"other": 1}', loose), Problem), "no part of a broken one"


ALL = frozenset({"temperature", "seed", "max_tokens", "max_completion_tokens"})
ALL |= {"response_format", "tools", "stream_options"}


@pytest.mark.parametrize(
    ("message", "parameter", "expected"),
    [
        ("Unsupported value: 'temperature' does not support 0.7; only (1) is.", "", "temperature"),
        ("Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens'.", "", "max_tokens"),
        ("'response_format' of type 'json_schema' is not supported.", "", "response_format"),
        ("JSON mode is not available", "", "response_format"),
        ("tool_choice 'function' is not implemented", "tool_choice", "tools"),
        ("This model has no function calling", "", "tools"),
        ("extra fields not permitted: stream_options", "", "stream_options"),
        ("Your seeds and temperatures are fine", "", ""),
        ("'messages' must alternate between user and assistant", "messages", ""),
    ],
)
def test_the_refused_parameter_is_recognised(message: str, parameter: str, expected: str) -> None:
    assert blamed(NoReply(FailureKind.REQUEST, message, parameter=parameter), ALL) == expected
