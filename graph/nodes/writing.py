"""A candidate's first query, written in one call from schema, question and what else is known."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from quorum.agents import sql_writer
from quorum.agents.sql_writer import Finding, Style
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, ask_role
from quorum.graph.state import CandidateState
from quorum.knowledge.demonstrations import Demonstration

FREE: tuple[Style, ...] = ("",)
"""No style is prescribed."""


async def write_sql(state: CandidateState, context: Context, *, styles: Sequence[Style] = FREE) -> Update:
    """SqlWriter: the whole query; ``styles`` take turns over the candidates.

    A plan is shown only to candidates whose style is free or plan-led: the others read the question
    independently, so their agreement says more.
    """
    extras = state.input.extras
    style = styles[state.input.number % len(styles)]
    prompt, syntax = await context.prompt(state), await context.text(state.syntax_ref)
    rows = await context.text(extras.rows)
    demonstrations = [Demonstration(**shot) for shot in await _items(context, extras.demonstrations)]
    findings = [Finding(**finding) for finding in await _items(context, extras.findings)]
    differences = await _items(context, extras.differences)
    if style == "plan-led" and not state.steps:
        style = ""
    written = await ask_role(
        state,
        context,
        sql_writer.ROLE,
        lambda model: sql_writer.write_sql(
            model,
            prompt,
            state.question,
            expected_format=state.expected_format,
            plan=state.steps if style in ("", "plan-led") else [],
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
    return {
        "sql": written.sql,
        "reading": written.other_reading or "",
        "ordered": written.ordered,
        "error": None,
    }


async def _items(context: Context, ref: str) -> list[Any]:
    """The JSON list behind a reference; empty for none."""
    items: list[Any] = json.loads(await context.text(ref) or "[]")
    return items
