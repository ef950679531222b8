"""What is accepted of a role's reply: every form that roles declare, with fields missing or of another kind.

The forms come from the roles themselves, so a new role is held to the same.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, get_args, get_origin

import pytest
from pydantic import BaseModel

from quorum.agents.critics import Judgement, SqlReview
from quorum.agents.explorers import Correction, ExplorationQuery
from quorum.agents.linkers import LinkStep
from quorum.agents.planners import AnswerFormat, Plan, SyntaxRequest
from quorum.agents.refiners import Refinement, Repair, Revision, StageReview
from quorum.agents.role import roles
from quorum.agents.writers import Action, Draft, Readings, ToolStep
from quorum.tools.models.structured import Problem, parse
from tests.graph.shop import example

SQL = "SELECT 1"


def forms_in(form: Any) -> Iterator[type[BaseModel]]:
    """A form and those of the objects inside it."""
    if isinstance(form, type) and issubclass(form, BaseModel):
        yield form
        for field in form.model_fields.values():
            yield from forms_in(field.annotation)
    for part in get_args(form):
        yield from forms_in(part)


REPLIES = {role.reply for role in roles().values()} | {Repair}
FORMS = sorted(
    {form for reply in REPLIES for form in forms_in(reply)}, key=lambda form: (form.__module__, form.__name__)
)
each_form = pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)


def replied(form: type[BaseModel], given: dict[str, Any]) -> Any:
    return parse(json.dumps(given), form)


@each_form
def test_the_example_of_each_form_is_accepted_and_what_it_lacks_is_ignored(form: type[BaseModel]) -> None:
    whole = replied(form, example(form))
    assert isinstance(whole, form), whole
    assert replied(form, example(form) | {"confidence": [1], "note": "Mine."}) == whole


@each_form
def test_a_missing_field_costs_a_reply_only_where_the_form_declares_that_it_is_needed(
    form: type[BaseModel],
) -> None:
    """Null counts as nothing where a field may be missing."""
    for name, field in form.model_fields.items():
        given = {key: value for key, value in example(form).items() if key != name}
        found = replied(form, given)
        if isinstance(found, Problem):  # the field is needed, or a rule of the form wants it
            prose = field.annotation in (str, list[str]) and not field.metadata
            assert not prose, f"{name}: no words are needed unless the field says so"
            assert name in re.findall(r"\w+", found.message)
        else:
            assert not field.is_required()
            assert replied(form, given | {name: None}) == found, name


@each_form
def test_another_kind_of_value_is_taken_where_its_meaning_is_plain(form: type[BaseModel]) -> None:
    for name, field in form.model_fields.items():
        given, kind = example(form), field.annotation
        if get_origin(kind) is list:
            assert replied(form, given | {name: given[name][0]}) == replied(form, given), name
            assert replied(form, given | {name: [*given[name], None]}) == replied(form, given), name
            assert replied(form, given | {name: " "}) == replied(form, given | {name: []}), name
        elif kind is str:
            assert getattr(replied(form, given | {name: 2024}), name) == "2024"
        elif kind is int:
            assert getattr(replied(form, given | {name: "12"}), name) == 12
        elif kind is bool:
            assert getattr(replied(form, given | {name: "false", "sql": SQL}), name) is False


def test_the_fullest_of_several_objects_counts() -> None:
    text = 'Not {"sql": "SELECT 1"} but {"explanation": "It was wrong.", "sql": "SELECT 2"}, I think.'
    assert getattr(parse(text, Repair), "sql", None) == "SELECT 2"


def test_an_item_that_lacks_what_it_needs_costs_itself() -> None:
    found = replied(Correction, {"sql": SQL, "later": [{"number": 1}, {"number": "2", "sql": "SELECT 2"}]})
    assert [(each.number, each.sql) for each in found.later] == [(2, "SELECT 2")]


READING = {"meaning": "Counts the sales that were shipped to each city.", "sql": SQL}


@pytest.mark.parametrize(
    ("form", "given", "field", "kept"),
    [
        (Draft, {"sql": f"\n{SQL} "}, "sql", SQL),
        *((Draft, {"sql": SQL, "missing": text}, "missing", None) for text in (" ", "null", "None", "N/A")),
        (Draft, {"sql": "", "missing": "There is no weight."}, "sql", None),
        (Draft, {"sql": SQL, "readings": "N/A"}, "readings", []),
        (Readings, {"readings": []}, "answered", ""),
        (Readings, {"readings": [], "answered": "None."}, "answered", ""),
        (Readings, {"readings": [], "answered": " Counts\nall sales. "}, "answered", "Counts all sales."),
        (Draft, {"sql": SQL, "readings": "Paid orders."}, "readings", ["Paid orders."]),
        (Draft, {"sql": SQL, "readings": ["Paid.", "none", "Open."]}, "readings", ["Paid.", "Open."]),
        (Draft, {"sql": SQL, "readings": list("1234")}, "readings", list("123")),
        (Readings, {"readings": [READING | {"sql": ""}, "Paid?"]}, "readings", []),
        (Readings, {"readings": [READING | {"meaning": None}]}, "readings", []),
        (Revision, {"sql": " "}, "sql", None),
        (AnswerFormat, {"header": " n:integer ", "rows": "one row"}, "text", "n:integer; one row"),
        (ToolStep, {"action": "sql", "sql": f"\n{SQL} ", "command": "ls"}, "text", SQL),
        (ToolStep, {"action": "look", "sql": SQL, "command": " ls "}, "text", "ls"),
        (ToolStep, {"action": "answer", "sql": SQL, "command": "ls"}, "text", SQL),
        (ToolStep, {"action": "answer", "sql": " ", "command": None}, "text", ""),
        (Refinement, {"sql": None}, "sql", None),
        (SyntaxRequest, {"features": ["A", " ", "B", "C", "D"]}, "features", ["A", "B", "C"]),
    ],
)
def test_what_a_reply_comes_to(form: type[BaseModel], given: dict[str, Any], field: str, kept: Any) -> None:
    assert getattr(replied(form, given), field) == kept


@pytest.mark.parametrize(
    ("form", "given", "problem"),
    [
        (Draft, {"sql": " "}, "give the query in sql"),
        (Draft, {"sql": SQL, "missing": "There is no weight."}, "only one can be meant"),
        (Repair, {"sql": None}, "sql"),
        (Correction, {"sql": " "}, "sql is empty"),
        (StageReview, {"accept": False, "sql": " "}, "new sql"),
        (SqlReview, {"correct": False}, "the corrected query"),
        (AnswerFormat, {"header": " , "}, "no column"),
        (Plan, {"steps": [" "]}, "no steps"),
        (LinkStep, {"thought": "Hm."}, "a command or the linked_schema"),
        (Action, {"action": "sql"}, "needs the query"),
        (Action, {"action": "look", "sql": SQL}, "needs a command"),
        (ToolStep, {"action": "sql", "sql": " "}, "needs the query"),
        (ToolStep, {"action": "look", "sql": SQL}, "needs a command"),
        (ToolStep, {"action": "drop"}, "action"),
        (Judgement, {"choice": "the second"}, "choice"),
    ],
)
def test_what_is_sent_back(form: type[BaseModel], given: dict[str, Any], problem: str) -> None:
    found = replied(form, given)
    assert isinstance(found, Problem)
    assert problem in found.message


def test_a_correction_mends_the_queries_that_wait_by_number() -> None:
    one, two, three = (ExplorationQuery(sql=f"SELECT {name}") for name in "abc")
    later = [{"number": number, "sql": sql} for number, sql in ((2, "SELECT 2"), (9, "SELECT 9"), (3, " "))]
    mended = Correction.model_validate({"sql": SQL, "later": later}).mended([one, two, three])
    assert mended == [one, two.model_copy(update={"sql": "SELECT 2"}), three]
