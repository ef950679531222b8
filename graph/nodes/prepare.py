"""Before any SQL: open the run, show a dialect's guidance, write a plan, or the form of the answer."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Literal, TypeAlias

from quorum.agents import explorers
from quorum.agents.explorers import PLAIN_TOPICS
from quorum.agents.planners import FORMAT_WRITER, PLANNER
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, lost, try_tell
from quorum.graph.nodes.voting import begins_alone
from quorum.graph.state import RunState, fresh
from quorum.knowledge.syntax import NEEDS

QUOTING = ("Identifiers and quoting",)
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
    alone, asks = begins_alone(context), context.options.clarify != "off"
    new = fresh(
        state.question, context.trace.run_id, type(state), schema_ref=schema_ref, alone=alone, asks=asks
    )
    before = vars(state)
    return {name: value for name, value in new.items() if (value or before[name]) and value != before[name]}


async def show_guidance(_: RunState, context: Context, *, card: bool) -> Update:
    """Show writers and refiners how values are matched and nested columns read (paper 000, Listing 1).

    The Listing's third point, how names are quoted, stands in the dialect's ``card``, where prompts have one.
    """
    text = await hints(context, MATCHING if card else (*QUOTING, *MATCHING))
    return {"syntax_ref": context.put(text) if text else ""}


async def hints(context: Context, plain: Sequence[str] = PLAIN_TOPICS) -> str:
    """The dialect's reference on ``plain`` topics, and on nested columns where the catalog has any."""
    nested = NEEDS["nested"].search(context.resources.schema.text) is not None
    return await asyncio.to_thread(explorers.hints, context.dialect, nested=nested, plain=plain)


Planning: TypeAlias = Literal["auto", "always", "never"]
"""When a plan is written: for questions that need one, for all, for none."""

LONG_QUESTION = 25
"""Words from which a question needs a plan: single-query questions of benchmarks have 10 to 15, those
that ask for several steps 30 and more."""


def needs_plan(state: RunState, when: Planning) -> bool:
    """True if a plan is to be written: the question is long, or documents define its terms.

    One writer alone gets none.
    """
    if state.plans or when == "never" or (not state.dispatched and state.alone):
        return False
    return when == "always" or len(state.question.split()) >= LONG_QUESTION or bool(state.sources)


async def plan_if_needed(state: RunState, context: Context, *, when: Planning) -> Update:
    """Write a plan, uncriticised, if the question needs one.

    It leads one candidate only (``quorum.graph.nodes.writing``), so what it assumes and the form of its
    result are steps of it: nobody else sees them.
    """
    if not needs_plan(state, when):
        return {}
    made = await try_tell(state, context, PLANNER, "plan", previous_steps=[], critique="")
    if made is None:
        return {"plans": 1, "warnings": lost(PLANNER)}
    assumed = [f"Assume: {each}" for each in made.assumptions]
    result = [f"The result: {made.expected_format}"] if made.expected_format else []
    return {"steps": [*assumed, *made.steps, *result], "plans": 1}


async def write_format(state: RunState, context: Context) -> Update:
    """FormatWriter: write the answer's form before any SQL (ReFoRCE first version, equation 2).

    Every refinement shows it again.
    """
    written = await try_tell(state, context, FORMAT_WRITER, "format")
    return {"expected_format": written.text} if written else {"warnings": lost(FORMAT_WRITER)}
