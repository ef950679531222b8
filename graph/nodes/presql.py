"""Two rounds of writing (SSEV, paper 004, section 3.1.1): what PreSQL is shown, and the schema it links.

A PreSQL candidate is called ``p1``, ``p2``, …, the PostSQL candidates ``c1``, ``c2``, … as any other.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import asdict
from typing import Literal

from quorum.graph.context import Context
from quorum.graph.nodes.routes import limited
from quorum.graph.nodes.step import Update
from quorum.graph.nodes.voting import seat
from quorum.graph.state import CandidateInput, RunState
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.compress import render
from quorum.tools.linking import Linked, prune, union, used
from quorum.tools.sample_rows import SampleRows, sample_rows
from quorum.tools.sql import SyntaxProblem


async def show_rows(state: RunState, context: Context, *, max_rows: int, max_tables: int) -> Update:
    """Cell value references: a few rows of each table, for everybody who writes."""
    found = await sample_rows(context.database, agent="sample_rows", rows=max_rows, max_tables=max_tables)
    text = found.text(context.resources.catalog)
    context.trace.record(
        "sample_rows", agent="sample_rows", tables=len(found.tables), text=text, notes=list(found.notes)
    )
    if not text:
        return {"warnings": list(found.notes)}
    refs = {"samples": context.put(found.to_json()), "rows": context.put(text)}
    return {"material": {**state.get("material", {}), **refs}, "warnings": list(found.notes)}


async def show_demonstrations(state: RunState, context: Context, *, max_shots: int) -> Update:
    """Few-shot demonstrations: the most similar questions with their SQL, if the run has a file of them."""
    demonstrations, embedder = context.resources.demonstrations, context.resources.embedder
    if demonstrations is None or not max_shots:
        return {}
    near = await asyncio.to_thread(demonstrations.nearest, state["question"], max_shots, embedder=embedder)
    shots = [asdict(shot) for shot in reversed(near)]  # the nearest stands next to the question
    context.trace.record("demonstrations", agent="demonstrations", shots=shots)
    ref = context.put(json.dumps(shots, ensure_ascii=False))
    return {"material": {**state.get("material", {}), "demonstrations": ref}}


async def deal_presql(state: RunState, context: Context) -> Update:
    """Give all candidates of the first round their seats: a rule that stops early is for the last vote."""
    votes = context.votes
    seats: list[CandidateInput] = [
        {**seat(state, context, number), "candidate": f"p{number + 1}"} for number in range(votes)
    ]
    return {"seats": seats, "dealt": votes}


async def link_presql(state: RunState, context: Context) -> Update:
    """Link the schema by parsing: all tables and columns of the PreSQL, the winner's alone after a vote.

    The schema that follows shows these, and so do the sample rows. SQL that failed links as well; what
    cannot be read links nothing, and if nothing is linked the whole schema stays.
    """
    records = state.get("candidates", [])
    winner = state["vote"].get("winner")
    chosen = [record for record in records if record["id"] == winner] or records
    catalog = context.resources.catalog
    linked, unread = await asyncio.to_thread(_link, [record["sql"] for record in chosen], catalog)
    context.trace.record(
        "linking",
        agent="presql_linker",
        candidates=[record["id"] for record in chosen],
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
    material = dict(state.get("material", {}))
    if rows := SampleRows.from_json(await context.text(material.get("samples", ""))).text(pruned):
        material["rows"] = context.put(rows)
    else:
        material.pop("rows", None)
    return {"schema_ref": context.put(schema.text), "material": material}


def _link(queries: list[str], catalog: Catalog) -> tuple[Linked, list[str]]:
    """What the queries use together, and why some could not be read."""
    linked, unread = [], []
    for sql in filter(str.strip, queries):
        try:
            linked.append(used(sql, catalog))
        except SyntaxProblem as problem:
            unread.append(problem.message)
    return union(catalog, linked), unread


async def begin_postsql(state: RunState, _: Context, *, presql_votes: bool) -> Update:
    """The second round's candidates are dealt anew; those of the first wait, unless they vote as well."""
    fresh: Update = {"dealt": 0, "vote": {}, "presql": []}
    return fresh if presql_votes else {**fresh, "candidates": None, "presql": state.get("candidates", [])}


async def recall_presql(state: RunState, context: Context) -> Update:
    """PreSQL votes after all where no PostSQL has a result and none will come: better than no answer."""
    records, presql = state.get("candidates", []), state.get("presql", [])
    to_come = state["dealt"] < context.votes and not limited(state)
    if to_come or any(r["result"] for r in records) or not any(r["result"] for r in presql):
        return {}
    return {
        "candidates": presql,
        "presql": [],
        "warnings": ["No PostSQL has a result, so the vote was on PreSQL."],
    }


def after_vote(state: RunState) -> Literal["deal", "link", "answer"]:
    """On to linking; to the answer where a limit was reached; back where no model answered at all."""
    if limited(state):
        return "answer"
    return "link" if state["vote"] else "deal"


def after_link(state: RunState) -> Literal["begin", "vote"]:
    """On to PostSQL; the PreSQL itself is voted on where a limit was reached."""
    return "vote" if limited(state) else "begin"
