"""A candidate's first query, written in one call from schema, question and what else is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quorum.agents import sql_writer
from quorum.agents.sql_writer import Style
from quorum.agents.turns import Finding
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, ask_role, record
from quorum.graph.state import CandidateState, Failure, PromptExtras, Remarks
from quorum.knowledge.demonstrations import Demonstration

FREE: tuple[Style, ...] = ("",)
"""No style is prescribed."""


async def write_sql(state: CandidateState, context: Context, *, styles: Sequence[Style] = FREE) -> Update:
    """SqlWriter: the whole query; ``styles`` take turns over the candidates.

    A plan is shown only to the candidate that it leads: the others read the question independently, so their
    agreement says more. It leads the first whose turn it is, in a run of fewer candidates the last one.
    """
    extras = state.input.extras
    style = styles[state.input.number % len(styles)]
    if "plan-led" in styles:
        led = bool(state.steps) and state.input.number == min(context.votes, len(styles)) - 1
        style = "plan-led" if led else "" if style == "plan-led" else style
    prompt, syntax = await context.prompt(state), await context.text(state.syntax_ref)
    rows = await context.text(extras.rows)
    demonstrations = [Demonstration(**shot) for shot in await items(context, extras.demonstrations)]
    findings, differences = await explored(extras, context)
    written = await ask_role(
        state,
        context,
        sql_writer.ROLE,
        lambda model: sql_writer.write_sql(
            model,
            prompt,
            state.question,
            expected_format=state.expected_format,
            plan=state.steps if style == "plan-led" else [],
            syntax=syntax,
            rows=rows,
            demonstrations=demonstrations,
            findings=findings,
            differences=differences,
            style=style,
        ),
        event="writing",
        style=style,
    )
    if written.missing:
        return {"sql": "", "error": Failure(UNANSWERABLE, written.missing)}
    remarks = Remarks(written.summary, written.assumptions, written.readings)
    return {"sql": written.sql, "remarks": remarks, "ordered": written.ordered, "error": None}


async def take_query(state: CandidateState, context: Context) -> Update:
    """Begin a branch with the query that another role has written."""
    given = json.loads(await context.text(state.input.extras.given))
    record(context, state, "writing", given["by"], sql=given["sql"])
    return {"sql": given["sql"], "remarks": Remarks(given.get("summary", "")), "error": None}


async def explored(extras: PromptExtras, context: Context) -> tuple[list[Finding], list[str]]:
    """What exploration found, and the differences between earlier answers that it was aimed at."""
    findings = [Finding(**finding) for finding in await items(context, extras.findings)]
    return findings, await items(context, extras.differences)


async def items(context: Context, ref: str) -> list[Any]:
    """The JSON list behind a reference; empty for none."""
    items: list[Any] = json.loads(await context.text(ref) or "[]")
    return items
