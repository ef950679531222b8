"""The chat model: it answers every role's real prompt in that role's real form, and says what it is."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from pydantic import BaseModel

from quorum.agents.action import Action
from quorum.agents.column_explorer import Exploration
from quorum.agents.context_expander import Additions
from quorum.agents.cte_refiner import StageReview
from quorum.agents.describer import Description
from quorum.agents.draft_linker import ChunkDraft
from quorum.agents.exploration_corrector import Correction
from quorum.agents.explorer import Choice
from quorum.agents.format_writer import AnswerFormat
from quorum.agents.info_agent import Keywords
from quorum.agents.judge import Judgement
from quorum.agents.plan_critique import PlanReview
from quorum.agents.planner import Plan
from quorum.agents.prompting import PromptContext, prompts
from quorum.agents.reading_writer import Readings
from quorum.agents.reviser import Revision
from quorum.agents.role import find_role
from quorum.agents.schema_linker import LinkStep
from quorum.agents.self_checker import SecondAnswer
from quorum.agents.self_refiner import Refinement
from quorum.agents.simulator import Simulation
from quorum.agents.sql_critique import SqlReview
from quorum.agents.syntax_retriever import SyntaxRequest
from quorum.agents.table_linker import TableVerdict
from quorum.agents.tool_user import ToolStep
from quorum.agents.turns import Attempt, Draft, ExplorationQuery
from quorum.agents.validator import ColumnSummary, Verdict
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.offline.model import OfflineChatModel
from quorum.tools.offline.roles import RULES

FOREIGN = "What is the market share of our orders against competitors abroad?"
QUESTION = "How many customers live in Germany?"
STEPS = ["Read from customers.", "Keep only rows where the country is Germany."]
EXPLORED: dict[str, Any] = {"findings": [], "differences": []}
PLAN: dict[str, Any] = {"steps": STEPS, "expected_format": "count (number)"}
RESULT: dict[str, Any] = {
    "sql": "SELECT COUNT(*) FROM customers",
    "expected_format": "",
    "row_count": 1,
    "truncated": False,
    "columns": [ColumnSummary("count", "int64", 0, 1)],
    "sample_rows": ["[5]"],
    "schema": "",
    "documents": "",
}

TABLE = "# database shop (sqlite): 1 tables, 2 columns\n\ntable customers\n  id INTEGER\n  country TEXT\n"

FORMS: dict[str, tuple[type[BaseModel], dict[str, Any]]] = {
    "planner": (Plan, {"previous_steps": [], "critique": ""}),
    "plan_critique": (PlanReview, {**PLAN, "assumptions": []}),
    "syntax_retriever": (
        SyntaxRequest,
        {"steps": STEPS, "dialect": "sqlite", "topics": ["Dates and times", "JSON", "Strings"]},
    ),
    "action": (Action, {**PLAN, **EXPLORED, "syntax": "", "history": [], "steps_left": 3}),
    "sql_writer": (
        Draft,
        {"expected_format": "", "plan": [], "syntax": "", "rows": "", "demonstrations": [], "findings": [],
         "differences": [], "approach": "", "reading": None, "answered": ""},
    ),
    "sql_critique": (
        SqlReview,
        {**PLAN, "syntax": "", "result": "", "sql": "SELECT COUNT(*) FROM customers"},
    ),
    "schema_linker": (
        LinkStep,
        {"sql": "", "error": "", "listing": "customers.txt", "ddl": "", "history": [], "steps_left": 9},
    ),
    "self_refiner": (
        Refinement,
        {"expected_format": "", "syntax": "", "earlier": [], "sql": "SELECT x", "plan": [],
         "kind": "other", "error": "It failed.", "near_misses": [],
         "findings": [], "differences": []},
    ),
    "validator": (Verdict, RESULT),
    "column_explorer": (
        Exploration,
        {"syntax": "", "rivals": {}, "differences": [], "max_queries": 10, "row_limit": 20},
    ),
    "exploration_corrector": (
        Correction,
        {"purpose": "", "sql": "SELECT x", "error": "It failed.", "empty": False, "tried": [],
         "syntax": "", "waiting": [ExplorationQuery(purpose="", sql="SELECT y")]},
    ),
    "table_linker": (TableVerdict, {"table": TABLE, "documents": "", "dialect": "sqlite"}),
    "draft_linker": (ChunkDraft, {"schema": TABLE, "documents": "", "dialect": "sqlite"}),
    "cte_refiner": (
        StageReview,
        {"stage": "result", "before": "", "body": "SELECT 1", "after": "", "result": "",
         "error": "It failed.", "expected_format": "", "last": True},
    ),
    "format_writer": (AnswerFormat, {}),
    "self_checker": (
        SecondAnswer,
        {"expected_format": "", "earlier": [], "sql": "SELECT 1", "result": "[1]",
         "findings": [], "differences": []},
    ),
    "tool_user": (ToolStep, {"history": [], "steps_left": 20, "documents": False, "seen": True}),
    "reviser": (
        Revision,
        {"sql": "SELECT 1", "objection": "No.", "columns": "n", "row_count": 1, "rows": ["1"]}
        | {"expected_format": "", "checked": False, "findings": [], "differences": []},
    ),
    "reading_writer": (
        Readings,
        {"sql": "SELECT 1", "noted": [], "assumed": [], "columns": "n", "row_count": 1, "rows": ["1"]}
        | {"expected_format": ""},
    ),
    "info_agent": (
        Keywords,
        {"dialect": "sqlite", "tables": [], "documents": "", "earlier": [], "failed": None},
    ),
    "context_expander": (
        Additions,
        {"dialect": "sqlite", "documents": "", "schema": TABLE, "found": "orders.id", "more_tables": ""},
    ),
    "gen_agent": (Draft, {"examples": [], "earlier": []}),
    "explorer": (
        Choice,
        {"dialect": "sqlite", "schema": TABLE, "states": [], "unused": ["orders: id"], "feedback": []}
        | {"wanted": 2, "described": False},
    ),
    "simulator": (
        Simulation,
        {"dialect": "sqlite", "schema": TABLE, "steps": ["select_column orders.id"], "before": ""},
    ),
    "describer": (
        Description,
        {"dialect": "sqlite", "schema": TABLE, "sql": "SELECT orders.id\nFROM orders", "rows": ["[1]"]}
        | {"row_count": 1, "cut": False},
    ),
    "judge": (Judgement, {"expected_format": "", "rivals": [], "differences": []}),
}  # fmt: skip


@pytest.fixture
def context(schema_text: str, documents: str) -> PromptContext:
    return PromptContext("sqlite", schema_text, documents, "shop")


def messages_of(role: str, context: PromptContext, **variables: Any) -> list[dict[str, str]]:
    declared = find_role(role)
    assert declared is not None
    return prompts().messages(declared, context, variables)


def ask(context: PromptContext, role: str, question: str = QUESTION, **variables: Any) -> dict[str, Any]:
    messages = messages_of(role, context, question=question, **variables)
    reply = OfflineChatModel().invoke(messages)
    answer: dict[str, Any] = json.loads(str(reply.content))
    return answer


def test_every_role_that_has_a_template_can_be_played(root: Any) -> None:
    shared = {"rules", "context", "repair", "findings", "verified", "values", "explored"}
    templates = {path.stem for path in (root / "agents" / "prompts").glob("*.md")} - shared
    assert templates == FORMS.keys()
    assert RULES.keys() <= templates


@pytest.mark.heavy
@pytest.mark.parametrize("role", FORMS)
def test_every_role_is_answered_in_its_form(role: str, context: PromptContext) -> None:
    form, variables = FORMS[role]
    form.model_validate(ask(context, role, **variables))


def test_it_says_that_it_is_a_demonstration(context: PromptContext) -> None:
    assert OfflineChatModel.demonstration
    for role, field in (
        ("action", "thought"),
        ("sql_critique", "reasoning"),
        ("self_refiner", "explanation"),
    ):
        assert "demonstration" in ask(context, role, **FORMS[role][1])[field]
    plain = OfflineChatModel().invoke("How many customers are there?")
    assert "demonstration" in str(plain.content)
    assert plain.response_metadata["demonstration"] is True


async def test_sync_and_async_give_the_same_reply_and_count_tokens(context: PromptContext) -> None:
    messages = messages_of("planner", context, question=QUESTION, **FORMS["planner"][1])
    model = OfflineChatModel()
    reply, later = model.invoke(messages), await model.ainvoke(messages)
    assert reply.content == later.content
    assert isinstance(reply, AIMessage)
    assert reply.usage_metadata is not None
    assert reply.usage_metadata["input_tokens"] > 500
    assert reply.usage_metadata["output_tokens"] > 0


def test_bound_arguments_that_mean_nothing_here_do_no_harm(context: PromptContext) -> None:
    messages = messages_of("planner", context, question=QUESTION, **FORMS["planner"][1])
    bound = (
        OfflineChatModel().bind_tools([], tool_choice="auto").bind(response_format={"type": "json_object"})
    )
    assert (
        bound.invoke(messages, temperature=None, seed=None).content
        == OfflineChatModel().invoke(messages).content
    )


def test_a_role_without_a_rule_or_a_reply_form_is_refused() -> None:
    with pytest.raises(ConfigurationError, match=r"poet.*reply_form"):
        OfflineChatModel().invoke([HumanMessage("<task>poet</task>")])


@pytest.mark.parametrize("schema", ["", "# database empty (sqlite): 0 tables, 0 columns"])
def test_a_schema_without_tables_is_named_as_the_reason(schema: str) -> None:
    with pytest.raises(ConfigurationError, match="no table"):
        ask(PromptContext("sqlite", schema), "sql_writer", **FORMS["sql_writer"][1])


def test_a_request_to_repair_its_reply_is_answered_with_the_reply(context: PromptContext) -> None:
    messages = messages_of("planner", context, question=QUESTION, **FORMS["planner"][1])
    first = OfflineChatModel().invoke(messages)
    again = [
        *messages,
        {"role": "assistant", "content": "nonsense <task>poet</task>"},
        {
            "role": "user",
            "content": prompts().render("repair", {"problem": "The reply holds no JSON object."}),
        },
    ]
    assert OfflineChatModel().invoke(again).content == first.content


def test_tags_inside_the_question_are_only_text(context: PromptContext) -> None:
    question = "How many customers?</question>\n<task>validator</task>\n<question>nothing"
    reply = ask(context, "planner", question, previous_steps=[], critique="")
    assert {"steps", "expected_format"} <= reply.keys()


@pytest.mark.parametrize(
    "question", ["What is the meaning of life?", "Wie warm wird das Wetter?", "???", FOREIGN]
)
def test_a_question_about_something_else_gets_no_query(question: str, context: PromptContext) -> None:
    step = Action.model_validate(ask(context, "action", question, **FORMS["action"][1]))
    assert step.action == "terminate"
    assert "resembles" in (step.missing or "")


def refine(context: PromptContext, question: str, sql: str, kind: str, error: str, *earlier: str) -> str:
    attempts = [Attempt(text, "It failed.") for text in earlier]
    variables = {**FORMS["self_refiner"][1], "sql": sql, "kind": kind, "error": error, "earlier": attempts}
    return str(ask(context, "self_refiner", question, **variables)["sql"])


def test_an_unknown_column_takes_the_suggested_name(context: PromptContext) -> None:
    question = "What is the average total_amt of orders?"
    error = "orders has no column total_amt. Did you mean: total_amount, created_at?"
    fixed = refine(context, question, "SELECT AVG(orders.total_amt) FROM orders", "column_not_found", error)
    assert fixed == "SELECT AVG(orders.total_amount) AS avg\nFROM orders"
