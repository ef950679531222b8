"""A candidate's first query, written in one call from schema, question and what else is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quorum.agents import sql_writer
from quorum.agents.sql_writer import Style
from quorum.agents.turns import Draft, Finding, Reading
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, ask_role
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
    asked = json.loads(await context.text(extras.reading) or "{}")
    reading = Reading(**asked["reading"]) if asked else None
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
            reading=reading,
            answered=asked.get("answered", ""),
        ),
        event="writing",
        style=style,
    )
    if written.missing:
        return {"sql": "", "error": Failure(UNANSWERABLE, written.missing)}
    readings = written.readings if isinstance(written, Draft) else None
    remarks = Remarks(written.summary, written.assumptions, readings)
    return {"sql": written.sql, "remarks": remarks, "ordered": written.ordered, "error": None}


async def explored(extras: PromptExtras, context: Context) -> tuple[list[Finding], list[str]]:
    """What exploration found, and the differences between earlier answers that it was aimed at."""
    findings = [Finding(**finding) for finding in await items(context, extras.findings)]
    return findings, await items(context, extras.differences)


async def items(context: Context, ref: str) -> list[Any]:
    """The JSON list behind a reference; empty for none."""
    items: list[Any] = json.loads(await context.text(ref) or "[]")
    return items
