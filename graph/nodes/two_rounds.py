"""Two rounds of writing (SSEV, paper 004, section 3.1.1): what PreSQL is shown, and the schema it links.

A PreSQL candidate is called ``p1``, ``p2``, …, the PostSQL candidates ``c1``, ``c2``, … as any other.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict, replace
from typing import Literal

from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.schema_linking import show, used_by
from quorum.graph.nodes.step import Update
from quorum.graph.nodes.voting import candidate_input
from quorum.graph.state import RunState
from quorum.knowledge.schema.render import render
from quorum.tools.sample_rows import SampleRows, sample_rows
from quorum.tools.sql.linking import prune, union


async def show_rows(state: RunState, context: Context, *, max_rows: int, max_tables: int) -> Update:
    """Cell value references: a few rows of each table, shown to every writer."""
    found = await sample_rows(context.database, agent="sample_rows", rows=max_rows, max_tables=max_tables)
    text = found.text(context.resources.catalog)
    context.trace.record(
        "sample_rows", agent="sample_rows", tables=len(found.tables), text=text, notes=list(found.notes)
    )
    if not text:
        return {"warnings": list(found.notes)}
    extras = replace(state.extras, samples=context.put(found.to_json()), rows=context.put(text))
    return {"extras": extras, "warnings": list(found.notes)}


async def show_demonstrations(state: RunState, context: Context, *, max_shots: int) -> Update:
    """Few-shot demonstrations: the most similar questions with their SQL, if the run has a file of them."""
    demonstrations, embedder = context.resources.demonstrations, context.resources.embedder
    if demonstrations is None or not max_shots:
        return {}
    near = await asyncio.to_thread(demonstrations.nearest, state.question, max_shots, embedder=embedder)
    shots = [asdict(shot) for shot in reversed(near)]  # the nearest stands next to the question
    context.trace.record("demonstrations", agent="demonstrations", shots=shots)
    ref = context.put(json.dumps(shots, ensure_ascii=False))
    return {"extras": replace(state.extras, demonstrations=ref)}


async def dispatch_presql(state: RunState, context: Context) -> Update:
    """All candidates of the first round at once: a rule that stops early is for the last vote."""
    votes = context.votes
    batch = [candidate_input(state, context, number, prefix="p") for number in range(votes)]
    return {"batch": batch, "dispatched": votes}


async def link_presql(state: RunState, context: Context) -> Update:
    """Link the schema by parsing: all tables and columns of the PreSQL, the winner's alone after a vote.

    Schema and sample rows are then reduced to these. Failed SQL links as well; SQL that cannot be parsed
    links nothing, and if nothing is linked the whole schema stays.
    """
    chosen = [state.winner] if state.winner else state.candidates
    catalog = context.resources.catalog
    found, unread = await asyncio.to_thread(used_by, catalog, [candidate.sql for candidate in chosen])
    linked = await asyncio.to_thread(union, catalog, found)
    context.trace.record(
        "linking",
        agent="presql_linker",
        candidates=[candidate.id for candidate in chosen],
        linked_schema=str(linked),
        tables=list(linked.tables),
        columns=[list(column) for column in linked.columns],
        unknown=list(linked.unknown),
        unread=unread,
    )
    if not linked.tables:
        return {"warnings": ["No PreSQL names a table of the schema, so PostSQL saw the whole schema."]}
    pruned = await asyncio.to_thread(prune, catalog, linked, bare="key")
    schema = await asyncio.to_thread(render, pruned, budget=context.options.schema_tokens)
    samples = SampleRows.from_json(await context.text(state.extras.samples)).text(pruned)
    extras = replace(state.extras, rows=context.put(samples) if samples else "")
    return {**show(context, pruned, schema), "extras": extras}


async def begin_postsql(state: RunState, _: Context, *, presql_votes: bool) -> Update:
    """Begin the second round; candidates of the first do not vote in it, unless the recipe says so."""
    again: Update = {"dispatched": 0, "vote": None, "first_round": []}
    return again if presql_votes else {**again, "candidates": None, "first_round": state.candidates}


async def recall_presql(state: RunState, context: Context) -> Update:
    """Let PreSQL vote where no PostSQL has a result and no more is coming."""
    to_come = state.dispatched < context.votes and not state.limited
    if to_come or any(c.result for c in state.candidates) or not any(c.result for c in state.first_round):
        return {}
    return {
        "candidates": state.first_round,
        "first_round": [],
        "warnings": ["No PostSQL has a result, so the vote was on PreSQL."],
    }


def after_presql_vote(state: RunState) -> Literal["dispatch", "link", "answer"]:
    """Link next; answer if a limit was reached or the data has no answer; ask again if no model answered."""
    if state.limited or (state.vote and state.vote.cannot_answer):
        return "answer"
    return "link" if state.vote else "dispatch"


def after_link(state: RunState) -> Literal["begin", "vote"]:
    """Write PostSQL next; vote on PreSQL if a limit was reached, or all of it says that there is no
    answer."""
    errors = [candidate.error.kind if candidate.error else "" for candidate in state.candidates]
    return "vote" if state.limited or set(errors) == {UNANSWERABLE} else "begin"
