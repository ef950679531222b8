"""Before any SQL: open the run, and look up the dialect's syntax."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from quorum.agents import explorers
from quorum.agents.explorers import PLAIN_TOPICS
from quorum.agents.planners import SYNTAX_RETRIEVER
from quorum.graph.context import Context
from quorum.graph.nodes.candidate import NO_PLAN
from quorum.graph.nodes.step import Update, lost, try_tell
from quorum.graph.nodes.voting import begins_alone
from quorum.graph.state import RunState, fresh
from quorum.knowledge import syntax

MATCHING = ("Strings",)
"""What ReFoRCE's writers and refiners are told of a dialect beside its card and nested columns."""


async def open_run(state: RunState, context: Context) -> Update:
    """Name the run, put the schema text where all nodes find it, and forget an earlier run of the thread.

    The update has only what changes, so that it can be read.
    """
    schema = context.resources.schema
    schema_ref = context.put(schema.text)
    context.trace.record(
        "schema",
        agent="catalog",
        run=context.trace.run_id,
        database=context.resources.catalog.name,
        dialect=context.dialect,
        tables=len(context.resources.catalog.tables),
        tokens=schema.tokens,
        whole=schema.whole,
        left_out=list(schema.left_out),
        notes=list(context.resources.catalog.notes),
        ref=schema_ref,
    )
    alone, asks = begins_alone(context), context.options.clarify
    new = fresh(state.question, context.trace.run_id, schema_ref=schema_ref, alone=alone, asks=asks)
    before = vars(state)
    return {name: value for name, value in new.items() if (value or before[name]) and value != before[name]}


async def retrieve_syntax(state: RunState, context: Context) -> Update:
    """Syntax Retriever: after planning, when syntax is requested (ReCAPAgent-SQL, Table 1)."""
    topics = await asyncio.to_thread(syntax.topics, context.dialect)
    if not topics:
        return {}
    steps = state.steps or NO_PLAN
    found = await try_tell(state, context, SYNTAX_RETRIEVER, "syntax", topics=topics, steps=steps)
    if found is None:
        return {"warnings": lost(SYNTAX_RETRIEVER)}
    if not found.features:
        return {}
    sections = await asyncio.to_thread(syntax.lookup, context.dialect, found.features)
    text = "\n\n".join(section.text for section in sections)
    return {"syntax_ref": context.put(text) if text else ""}


async def show_guidance(_: RunState, context: Context) -> Update:
    """Show writers and refiners how values are matched and nested columns read (paper 000, Listing 1).

    The Listing's third point, how names are quoted, stands in the dialect's card.
    """
    text = await hints(context, MATCHING)
    return {"syntax_ref": context.put(text) if text else ""}


async def hints(context: Context, plain: Sequence[str] = PLAIN_TOPICS) -> str:
    """The dialect's reference on ``plain`` topics, and on nested columns where the catalog has any."""
    nested = any(column.fields for _, column in context.resources.catalog.columns())
    return await asyncio.to_thread(explorers.hints, context.dialect, nested=nested, plain=plain)
