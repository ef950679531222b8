"""The schema that is asked for, and the object that is found in a reply."""

from __future__ import annotations

import json
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import BaseModel, Field, RootModel

from quorum.tools.models.capabilities import Capabilities, blamed
from quorum.tools.models.failures import Failure, FailureKind
from quorum.tools.models.structured import (
    Method,
    Problem,
    ProblemKind,
    form_of,
    function_of,
    objects_in,
    parse,
    without_trailing_commas,
)


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


class Free(BaseModel):
    counts: dict[str, int]


class Anything(BaseModel):
    value: Any


class Pair(BaseModel):
    pair: tuple[int, str]


GOOD = {"valid": True, "columns": [{"name": "id", "kind": "key"}], "fix": None, "rows": 3}


def _objects(node: Any) -> list[dict[str, Any]]:
    """All object schemas in a schema."""
    if isinstance(node, list):
        return [found for part in node for found in _objects(part)]
    if not isinstance(node, dict):
        return []
    mine = [node] if "properties" in node and isinstance(node["properties"], dict) else []
    return mine + [found for part in node.values() for found in _objects(part)]


def test_every_object_is_closed_and_every_field_required() -> None:
    function = function_of(Verdict)
    assert function["strict"]
    parts = _objects(function["parameters"])
    assert len(parts) == 2
    for part in parts:
        assert part["required"] == list(part["properties"])
        assert part["additionalProperties"] is False
    text = json.dumps(function["parameters"])
    assert not any(f'"{word}"' in text for word in ("default", "title", "const", "$ref"))


def test_constraints_stay_and_what_fields_hold_is_the_prompts_to_say() -> None:
    function = function_of(Verdict)
    assert (function["name"], function["description"]) == ("Verdict", "Judge the result.")
    fields = function["parameters"]["properties"]
    assert fields["rows"] == {"minimum": 0, "type": "integer"}
    assert "As in the schema" not in json.dumps(function["parameters"])
    assert fields["fix"]["anyOf"] == [{"type": "string"}, {"type": "null"}]


def test_fields_may_be_called_as_the_words_of_a_schema() -> None:
    class Odd(BaseModel):
        default: int = 3
        properties: list[str] = []

    fields = function_of(Odd)["parameters"]["properties"]
    assert fields.keys() == {"default", "properties"}
    assert all("default" not in part for part in fields.values())


@pytest.mark.parametrize("output", [Free, Anything, Pair, Node])
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
    assert form_of(Pair).splitlines()[1].startswith("- `pair` (list of any value)")


def test_a_root_model_over_a_list_is_refused() -> None:
    with pytest.raises(TypeError, match="wrap its value"):
        function_of(RootModel[list[int]])


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


def test_a_wrong_form_is_one_line_that_names_the_fields() -> None:
    found = parse('{"valid": "perhaps", "columns": [{"name": 1}]}', Verdict)
    assert isinstance(found, Problem)
    assert found.kind is ProblemKind.INVALID
    assert "\n" not in found.message
    for part in ("valid: must be true or false", "columns.0.name: must be a text", "rows: missing"):
        assert part in found.message


def test_an_inner_object_of_a_broken_reply_is_not_taken_for_the_reply() -> None:
    class Loose(BaseModel):
        note: str = ""

    found = parse('{"note": "x", "inner": {"other": 1}', Loose)
    assert isinstance(found, Problem)


@pytest.mark.parametrize("text", ["", "no", "[1, 2]", "{", "{" * 5000, "[" * 100_000, '{"a":' * 3000, "null"])
def test_what_holds_no_object_is_a_problem_and_no_crash(text: str) -> None:
    found = parse(text, Verdict)
    assert isinstance(found, Problem)
    assert found.kind is ProblemKind.NO_JSON


_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(
    st.dictionaries(st.text(), _json, min_size=1), st.booleans(), st.sampled_from(["{}", "```json\n{}\n```"])
)
def test_any_object_survives_fencing_and_comma_removal(
    value: dict[str, Any], ascii_only: bool, frame: str
) -> None:
    text = json.dumps(value, ensure_ascii=ascii_only)
    assert without_trailing_commas(text) == text
    if "```" not in text:
        assert next(objects_in(frame.replace("{}", text, 1))) == value


ALL = frozenset(
    [
        "temperature",
        "seed",
        "max_tokens",
        "max_completion_tokens",
        "response_format",
        "tools",
        "stream_options",
    ]
)


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
    assert known.adapt(Failure(FailureKind.RATE, "too warm a temperature"), {"temperature"}, None) == ""
    assert known.kept({"temperature": 1.0}) == {"temperature": 1.0}
