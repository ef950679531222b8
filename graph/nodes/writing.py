"""A candidate's first query, written in one call from schema, question and what else is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quorum.agents.writers import APPROACHES, SQL_WRITER, Style
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.prepare import LONG_QUESTION
from quorum.graph.nodes.step import Update, record, tell
from quorum.graph.state import CandidateState, Failure, PromptExtras, Remarks

FREE: tuple[Style, ...] = ("",)
"""No style is prescribed."""


async def write_sql(state: CandidateState, context: Context, *, styles: Sequence[Style] = FREE) -> Update:
    """SqlWriter: the whole query; ``styles`` take turns over the candidates.

    A plan is shown only to the candidate that it leads: the others read the question independently, so their
    agreement says more. It leads the first whose turn it is, in a run of fewer candidates the last one. Only
    a short question is written directly.
    """
    extras = state.input.extras
    style = styles[state.input.number % len(styles)]
    style = "" if style == "direct" and len(state.question.split()) >= LONG_QUESTION else style
    if "plan-led" in styles:
        led = bool(state.steps) and state.input.number == min(context.votes, len(styles)) - 1
        style = "plan-led" if led else "" if style == "plan-led" else style
    plan = state.steps if style == "plan-led" else []
    written = await tell(
        state,
        context,
        SQL_WRITER,
        "writing",
        about={"style": style},
        plan=plan,
        syntax=await context.text(state.syntax_ref),
        rows=await context.text(extras.rows),
        demonstrations=await items(context, extras.demonstrations),
        approach=APPROACHES[style],
        **await findings_of(extras, context),
    )
    if written.missing:
        return {"sql": "", "error": Failure(UNANSWERABLE, written.missing)}
    remarks = Remarks(written.summary, written.assumptions, written.readings, written.certainty)
    return {"sql": written.sql, "remarks": remarks, "ordered": written.ordered, "error": None}


async def take_query(state: CandidateState, context: Context) -> Update:
    """Begin a branch with the query that another role has written."""
    given = json.loads(await context.text(state.input.extras.given))
    record(context, state, "writing", given["by"], sql=given["sql"])
    return {"sql": given["sql"], "remarks": Remarks(given.get("summary", "")), "error": None}


async def findings_of(extras: PromptExtras, context: Context) -> dict[str, Any]:
    """Return the variables of ``findings.md``."""
    found, differences = await items(context, extras.findings), await items(context, extras.differences)
    return {"findings": found, "differences": differences}


async def items(context: Context, ref: str) -> list[Any]:
    """Return the JSON list behind a reference; empty for none."""
    items: list[Any] = json.loads(await context.text(ref) or "[]")
    return items
