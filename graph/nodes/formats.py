"""The answer's expected form, said once before any SQL and repeated in every refinement."""

from __future__ import annotations

from quorum.agents import format_writer
from quorum.graph.context import Context
from quorum.graph.nodes.models import first_available
from quorum.graph.nodes.planning import NO_PLAN
from quorum.graph.nodes.step import Update
from quorum.graph.state import RunState
from quorum.knowledge.errors import MalformedReply


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
