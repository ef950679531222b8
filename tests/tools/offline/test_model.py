"""The chat model: it answers every role's real prompt in that role's real form, and says what it is."""

from __future__ import annotations

import json
from dataclasses import replace
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
from quorum.agents.schema_linker import LinkStep, Look
from quorum.agents.self_checker import SecondAnswer
from quorum.agents.self_refiner import Refinement
from quorum.agents.simulator import Simulation
from quorum.agents.sql_critique import SqlReview
from quorum.agents.syntax_retriever import SyntaxRequest
from quorum.agents.table_linker import TableVerdict
from quorum.agents.tool_user import ToolStep
from quorum.agents.turns import Attempt, Draft, ExplorationQuery, Turn
from quorum.agents.validator import ColumnSummary, Verdict
from quorum.graph.nodes.candidate import REJECTED
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.schema_files import SchemaFiles
from quorum.knowledge.schema_text import parse_schema
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
    sampling = {name: variables.pop(name) for name in ("temperature", "seed") if name in variables}
    messages = messages_of(role, context, question=question, **variables)
    reply = OfflineChatModel().invoke(messages, **sampling)
    answer: dict[str, Any] = json.loads(str(reply.content))
    return answer


def test_every_role_that_has_a_template_can_be_played(root: Any) -> None:
    shared = {"rules", "context", "repair", "findings", "verified", "values", "explored"}
    templates = {path.stem for path in (root / "agents" / "prompts").glob("*.md")} - shared
    assert templates == FORMS.keys()
    assert RULES.keys() <= templates


@pytest.mark.parametrize("role", FORMS)
@pytest.mark.parametrize("sampling", [{}, {"temperature": 0.8, "seed": 3}])
def test_every_role_is_answered_in_its_form(
    role: str, sampling: dict[str, Any], context: PromptContext
) -> None:
    form, variables = FORMS[role]
    form.model_validate(ask(context, role, **variables, **sampling))


@pytest.mark.parametrize(
    ("sql", "corrected"),
    [("SELECT id FROM t WHERE id < 0", "SELECT id FROM t "), ("SELECT id FROM t", None)],
)
def test_an_empty_exploration_loses_its_filter_or_is_the_finding(
    sql: str, corrected: str | None, context: PromptContext
) -> None:
    given = FORMS["exploration_corrector"][1] | {"sql": sql, "empty": True, "error": "No row."}
    assert ask(context, "exploration_corrector", **given)["sql"] == corrected


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
        ask(PromptContext("sqlite", schema), "planner", previous_steps=[], critique="")


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
    assert ask(context, "planner", question, previous_steps=[], critique="").keys() == {
        "steps",
        "expected_format",
    }


def test_the_plan_tells_tables_joins_and_filters(context: PromptContext) -> None:
    question = "What is the average rating of reviews of customers from France?"
    plan = ask(context, "planner", question, previous_steps=[], critique="")
    text = " ".join(plan["steps"])
    assert "reviews" in text
    assert "reviews.customer_id = customers.customer_id" in text
    assert "'france'" in text
    assert plan["expected_format"] == "avg_rating"


def test_a_plan_without_any_table_is_sent_back(context: PromptContext) -> None:
    vague: dict[str, Any] = {"steps": ["Think hard."], "expected_format": "answer", "assumptions": []}
    review = ask(context, "plan_critique", **vague)
    assert review["update_plan"]
    assert "customers" in review["feedback"]


def test_dates_and_shards_call_for_their_topics(context: PromptContext) -> None:
    topics = ["Dates and times", "JSON", "Set operations"]
    asked: dict[str, Any] = {
        "steps": ["Keep events.occurred_at >= '2024-02-01'."],
        "dialect": "sqlite",
        "topics": topics,
    }
    assert ask(context, "syntax_retriever", **asked) == {"features": ["Dates and times"]}


def test_a_questioned_result_leads_to_another_reading_and_then_to_an_end(context: PromptContext) -> None:
    question = "Show the name and the number of orders of customers in each country"
    common = {**PLAN, **EXPLORED, "syntax": "", "steps_left": 2}
    first = ask(context, "action", question, **common, history=[])
    history = [Turn("sql", first["sql"], "5 rows")]
    rejected = [replace(history[0], observation=f"5 rows\n{REJECTED} Drop a column.")]
    second = ask(context, "action", question, **common, history=rejected)
    assert second["action"] == "sql"
    assert second["sql"] != first["sql"]
    assert ask(context, "action", question, **common, history=history)["action"] == "terminate"


@pytest.mark.parametrize(
    "question", ["What is the meaning of life?", "Wie warm wird das Wetter?", "???", FOREIGN]
)
def test_a_question_about_something_else_gets_no_query(question: str, context: PromptContext) -> None:
    step = Action.model_validate(ask(context, "action", question, **FORMS["action"][1]))
    assert step.action == "terminate"
    assert "resembles" in step.thought


def test_a_value_that_the_query_leaves_out_is_a_fault(context: PromptContext) -> None:
    question = "How many orders have the coupon code 'SPRING24'?"
    known = {**PLAN, "syntax": "", "result": ""}
    wrong = ask(context, "sql_critique", question, **known, sql="SELECT COUNT(*) FROM orders")
    assert not wrong["correct"]
    assert "spring24" in wrong["sql"]
    assert ask(context, "sql_critique", question, **known, sql=wrong["sql"])["correct"]


def test_the_schema_linker_explores_and_ends_with_columns(schema_text: str, context: PromptContext) -> None:
    files = SchemaFiles(parse_schema(schema_text))
    question = "What is the average total_amt of orders?"
    error = "orders has no column total_amt. Did you mean: total_amount?"
    history: list[Look] = []
    for steps_left in range(8, 0, -1):
        variables = {
            "sql": "SELECT total_amt FROM orders",
            "error": error,
            "listing": files.run("ls"),
            "ddl": "",
        }
        step = ask(context, "schema_linker", question, **variables, history=history, steps_left=steps_left)
        if step["command"] is None:
            break
        history.append(Look(step["command"], files.run(step["command"])))
    linked = parse_schema(step["linked_schema"])
    assert linked.dialect == "sqlite"
    assert [table.name for table in linked.tables] == ["orders"]
    assert linked.tables[0].column("total_amount")
    assert 1 <= len(history) <= 4


@pytest.mark.parametrize(
    ("rows", "nulls", "empty"), [(0, 0, True), (3, 3, True), (3, 1, False), (3, 0, False)]
)
def test_the_validator_rejects_what_is_empty_or_all_null(
    rows: int, nulls: int, empty: bool, context: PromptContext
) -> None:
    columns = [ColumnSummary("count", "int64", nulls, 1)]
    verdict = Verdict.model_validate(
        ask(context, "validator", **{**RESULT, "row_count": rows, "columns": columns})
    )
    assert verdict.accepted is not empty
    assert verdict.result_empty is empty
    assert bool(verdict.suggest_fix) is empty


def refine(context: PromptContext, question: str, sql: str, kind: str, error: str, *earlier: str) -> str:
    attempts = [Attempt(text, "It failed.") for text in earlier]
    variables = {**FORMS["self_refiner"][1], "sql": sql, "kind": kind, "error": error, "earlier": attempts}
    return str(ask(context, "self_refiner", question, **variables)["sql"])


def test_an_unknown_column_takes_the_suggested_name(context: PromptContext) -> None:
    question = "What is the average total_amt of orders?"
    error = "orders has no column total_amt. Did you mean: total_amount, created_at?"
    fixed = refine(context, question, "SELECT AVG(orders.total_amt) FROM orders", "column_not_found", error)
    assert fixed == "SELECT AVG(orders.total_amount) AS avg_total_amount\nFROM orders"


def test_a_column_that_lives_in_another_table_brings_its_join(context: PromptContext) -> None:
    question = "What is the average refund_amt per channel of orders?"
    error = "orders has no column refund_amt. Did you mean: returns.refund_amount?"
    sql = "SELECT AVG(orders.refund_amt), orders.channel FROM orders GROUP BY orders.channel"
    fixed = refine(context, question, sql, "column_not_found", error)
    assert "AVG(returns.refund_amount)" in fixed
    assert "JOIN" in fixed


def test_an_empty_result_leads_to_a_look_inside_longer_texts(context: PromptContext) -> None:
    first = ask(context, "action", **FORMS["action"][1])["sql"]
    assert "LOWER(customers.country) = 'germany'" in first
    wider = refine(context, QUESTION, first, "empty_result", "The query returned no rows.")
    assert "LOWER(customers.country) LIKE '%germany%'" in wider


@pytest.mark.parametrize("kind", ["syntax", "timeout", "ambiguous_column", "type_mismatch", "other"])
def test_other_failures_get_a_query_that_was_not_shown(kind: str, context: PromptContext) -> None:
    question = "Show the name and the number of orders of customers in each country"
    first = ask(context, "action", question, **FORMS["action"][1])["sql"]
    second = refine(context, question, first, kind, "It failed.")
    third = refine(context, question, second, kind, "It failed.", first)
    assert len({first, second, third}) == 3
