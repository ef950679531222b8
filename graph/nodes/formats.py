"""The answer's expected form, said once before any SQL and repeated in every refinement."""

from __future__ import annotations

from agents import format_writer
from graph.context import Context
from graph.nodes.models import first_available
from graph.nodes.planning import NO_PLAN
from graph.nodes.step import Update
from graph.state import RunState
from knowledge.errors import MalformedReply


async def write_format(state: RunState, context: Context) -> Update:
    """FormatWriter: becomes the plan's expected format; there is no plan beside it."""
    prompt = await context.prompt(state["schema_ref"], state["documents_ref"])
    try:
        said = await first_available(
            context, lambda model: format_writer.write_format(model, prompt, state["question"])
        )
    except MalformedReply as error:
        context.trace.record("format", agent="format_writer", error=str(error))
        return {"warnings": ["The FormatWriter's reply could not be used."]}
    context.trace.record("format", agent="format_writer", **said.model_dump())
    return {"plan": {"steps": NO_PLAN["steps"], "expected_format": said.text}}
