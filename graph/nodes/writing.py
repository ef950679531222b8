"""A candidate's first query, written in one call from schema, question and what else is known."""

from __future__ import annotations

import json
from collections.abc import Sequence

from quorum.agents import sql_writer
from quorum.agents.sql_writer import Finding, Style
from quorum.graph.context import Context
from quorum.graph.nodes.candidate import candidate_model, note
from quorum.graph.nodes.planning import NO_PLAN
from quorum.graph.nodes.step import Update
from quorum.graph.state import CandidateState
from quorum.knowledge.demonstrations import Demonstration

FREE: tuple[Style, ...] = ("",)
"""Every candidate writes as its model likes."""


async def write_sql(state: CandidateState, context: Context, *, styles: Sequence[Style] = FREE) -> Update:
    """SqlWriter: the whole query; ``styles`` take turns over the candidates.

    The state's ``material`` adds to the prompt: ``rows`` (text), ``demonstrations`` (a JSON list of
    question and sql), ``findings`` (a JSON list of purpose, sql and result), ``differences`` (a JSON
    list of sentences). A plan, if there is one, is shown to those whose style is free or led by it: the
    others read the question for themselves, and so their agreement says more.
    """
    material = state.get("material", {})
    plan = state["plan"] if state["plan"] != NO_PLAN else {"steps": [], "expected_format": ""}
    steps = [] if plan["steps"] == NO_PLAN["steps"] else plan["steps"]  # a format may stand alone
    style = styles[(int(state["candidate"][1:]) - 1) % len(styles)]
    demonstrations = await context.text(material.get("demonstrations", ""))
    findings = await context.text(material.get("findings", ""))
    differences = await context.text(material.get("differences", ""))
    written = await sql_writer.write_sql(
        candidate_model(state, context),
        await context.prompt(state["schema_ref"], state["documents_ref"]),
        state["question"],
        expected_format=plan["expected_format"],
        plan=steps if style in ("", "plan-led") else [],
        syntax=await context.text(state["syntax_ref"]),
        rows=await context.text(material.get("rows", "")),
        demonstrations=[Demonstration(**shot) for shot in json.loads(demonstrations or "[]")],
        findings=[Finding(**finding) for finding in json.loads(findings or "[]")],
        differences=json.loads(differences or "[]"),
        style="" if style == "plan-led" and not steps else style,
    )
    note(context, state, "writing", "sql_writer", style=style, **written.model_dump())
    return {"sql": written.sql, "reading": written.other_reading or "", "error": None}
