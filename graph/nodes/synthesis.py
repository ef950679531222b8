"""SQLAgent's deployment stage: InfoAgent and GenAgent, in rounds (SQLAgent, Algorithm 3).

``quorum.graph.recipes.sqlagent.wire_candidate`` has the steps in the algorithm's order, with its lines.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from quorum.agents.linkers import CONTEXT_EXPANDER, INFO_AGENT
from quorum.agents.writers import GEN_AGENT
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.routes import halted, unrepairable
from quorum.graph.nodes.step import Update, record, tell, try_tell
from quorum.graph.state import Attempt, CandidateState, Failure, Grounding, Remarks
from quorum.knowledge.catalog import Catalog, ColumnRef
from quorum.knowledge.schema.layouts import units
from quorum.knowledge.schema.render import render
from quorum.knowledge.search.columns import table_names
from quorum.knowledge.search.index import Embedder
from quorum.knowledge.triplets import Example
from quorum.tools.query import ErrorKind
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.linking import Linked, prune, used

Knowledge: TypeAlias = Literal["triplets", "trajectories", "static", "none"]
"""Examples that the GenAgent sees of the exploration (paper 001, Tables 3, 12 and 15)."""

RoundOutcome: TypeAlias = Literal["success", "error", "empty", "mismatch", "end"]
"""The outcome of a round; ``end`` is a failure after which no other round begins."""

WHOLE = 20
"""A table of so few columns stays whole: leaving some out saves little and may cost a key."""

MAX_KEYWORD = 60
"""Characters of a keyword."""

NAMES = 80
"""Tables of which InfoAgent and ContextExpander see the names."""

EXPANDER_TOKENS = 3_000


async def ground(
    state: CandidateState, context: Context, *, agent: bool, named: bool, tables: int, columns: int
) -> Update:
    """InfoAgent: name keywords and search for them (SQLAgent, Algorithm 3, lines 6 and 7).

    After a failed round they are keywords that it overlooked. What they find joins that round's context, of
    which ``prune_unused`` takes away what the failed query did not use. Tables that a keyword names come
    first. Where the context lacked a table, those that it has are not found again in place of others.

    Args:
        agent: A model names the keywords; else the question itself is searched for (Table 12).
        named: The columns' texts name their tables.
        tables: That one search brings in (appendix A: three).
        columns: That one keyword brings in.
    """
    before, resources = state.grounding, context.resources
    failed = [Attempt(state.sql, state.error.message)] if state.error else []
    earlier = [*state.earlier, *failed]  # the Validator adds its own objections
    keywords = await _keywords(state, context, earlier) if agent else []
    queries = [text for text in keywords or [state.question] if text not in before.keywords]
    index, embedder = resources.columns if named else resources.columns.unnamed, resources.embedder
    way: dict[str, Any] = {"embedder": embedder, "hybrid": False}
    way["hybrid"] = embedder is not None and context.options.retrieval == "hybrid"
    there = before.tables if state.error and state.error.kind == NOT_FOUND else []
    asked = " ".join(queries), tables + len(there)
    found = await asyncio.to_thread(index.tables, *asked, **way) if queries else []
    called = await asyncio.to_thread(index.called, queries)
    found = [name for name in dict.fromkeys([*called, *found]) if name not in there][:tables]
    hits = [hit for query in queries for hit in await asyncio.to_thread(index.search, query, columns, **way)]
    places = [(hit.table, hit.column) for hit in hits if hit.table in {*before.tables, *found}]
    places += [place for name in found for place in _whole(resources.catalog, name)]
    grounding = Grounding(
        rounds=before.rounds + 1,
        keywords=[*before.keywords, *queries],
        columns=list(dict.fromkeys([*before.columns, *places])),
        before=before.columns,
    )
    return {"grounding": grounding, "earlier": earlier, "error": None}


async def _keywords(state: CandidateState, context: Context, earlier: Sequence[Attempt]) -> list[str]:
    names = await asyncio.to_thread(_table_names, context.resources.catalog)
    found = await try_tell(
        state,
        context,
        INFO_AGENT,
        "keywords",
        tables=names,
        earlier=state.grounding.keywords,
        found=state.grounding.tables,
        failed=earlier[-1] if earlier else None,
    )
    return [keyword[:MAX_KEYWORD] for keyword in found.keywords] if found else []


def _table_names(catalog: Catalog) -> list[str]:
    """Return the names of the tables, those that differ in a number only as one."""
    return [name for unit in units(catalog) for name in table_names(unit)][:NAMES]


def _columns(catalog: Catalog, name: str) -> list[ColumnRef]:
    table = next(table for table in catalog.find(name) if table.full_name == name)
    return [(name, column.name) for column in table.columns]


def _whole(catalog: Catalog, name: str) -> list[ColumnRef]:
    """Return the columns that come with a table: all of a small one, the first of a wide one."""
    columns = _columns(catalog, name)
    return columns[: 1 if len(columns) > WHOLE else None]


NOT_FOUND = "not_found"
"""Kind of the failure of a round whose context lacks what the question needs."""


async def expand(state: CandidateState, context: Context) -> Update:
    """ContextExpander: add what is missing, such as keys to join by (SQLAgent, Algorithm 3, line 8)."""
    grounding = state.grounding
    if not grounding.columns:
        return {}
    schema = await asyncio.to_thread(_text, grounding, context, EXPANDER_TOKENS)
    others = [name for name in _table_names(context.resources.catalog) if name not in grounding.tables]
    added = await try_tell(state, context, CONTEXT_EXPANDER, "context", schema=schema, others=others)
    places = _named(added.add if added else [], context)
    new = {name for name, _ in places} - {*grounding.tables}
    places += [place for name in sorted(new) for place in _whole(context.resources.catalog, name)]
    columns = list(dict.fromkeys([*grounding.columns, *places]))
    return {"grounding": replace(grounding, columns=columns)}


def _named(names: Iterable[str], context: Context) -> list[ColumnRef]:
    """Return the columns that are named as ``table.column``; case and quotes do not count."""
    bare = (name.replace('"', "").replace("`", "").strip().rpartition(".") for name in names)
    found = (
        (each, each.column(column))
        for table, _, column in bare
        for each in context.resources.catalog.find(table)
    )
    return [
        (context.resources.columns.first[table.full_name], column.name) for table, column in found if column
    ]


async def prune_unused(state: CandidateState, context: Context) -> Update:
    """InfoAgent: take away what the failed query did not use (SQLAgent, Algorithm 3, line 9)."""
    grounding, resources = state.grounding, context.resources
    if not state.earlier:
        return {}
    sql, first = state.earlier[-1].sql, resources.columns.first
    lost = await asyncio.to_thread(unused, grounding.before, sql, resources.catalog, first)
    left = replace(grounding, columns=[place for place in grounding.columns if place not in lost])
    dropped = [name for name in grounding.tables if name not in left.tables]
    record(context, state, "pruning", INFO_AGENT.name, tables=dropped, columns=len(lost))
    return {"grounding": left}


def unused(
    columns: Sequence[ColumnRef], sql: str, catalog: Catalog, first: Mapping[str, str]
) -> set[ColumnRef]:
    """Return those columns of a context that a failed query has no use for.

    A table that it names keeps all its columns where it is small, and where the query names none of them, or
    one that does not exist: ``SELECT town FROM customers`` may mean any. Nothing is useless to a query that
    cannot be read, or names no table that exists.

    Args:
        first: ``ColumnIndex.first``.
    """
    try:
        names = used(sql, catalog)
    except SyntaxProblem:
        return set()
    tables = {first[name] for name in names.tables}
    named = {(first[table], column) for table, column in names.columns}
    wide = {table for table, _ in named if len(_columns(catalog, table)) > WHOLE}
    whole = tables if names.unknown else tables - wide
    return {place for place in columns if place not in named and place[0] not in whole} if tables else set()


def _text(grounding: Grounding, context: Context, budget: int) -> str:
    """Return the schema text of a context, of a shared field group all tables; of an empty one the whole."""
    columns: dict[str, list[str]] = {}
    for table, column in grounding.columns:
        columns.setdefault(table, []).append(column)
    members = [(name, head) for name, head in context.resources.columns.first.items() if head in columns]
    places = tuple((name, column) for name, head in members for column in columns[head])
    part = prune(context.resources.catalog, Linked(tuple(name for name, _ in members), places))
    return render(part, budget=budget).text


async def write(
    state: CandidateState, context: Context, *, knowledge: Knowledge, joint: bool, shots: int, most: int
) -> Update:
    """GenAgent: find explored examples, and write the query (SQLAgent, Algorithm 3, lines 10 to 12).

    What it lacks is searched for in another round, unless it sees every table or has no round left.

    Args:
        most: Rounds.
        joint: Examples are looked for by question and schema together, by meaning where there is an embedder;
            else by the question's words alone (Table 12).
        shots: Examples at most.
    """
    grounding = state.grounding
    shown = context.put(await asyncio.to_thread(_text, grounding, context, context.options.schema_tokens))
    state = replace(state, linked_ref=shown)
    seen = {"tables": grounding.tables, "columns": len(grounding.columns)}
    record(context, state, "grounding", INFO_AGENT.name, **seen, embedder=_way(context.resources.embedder))
    examples = await _examples(state, context, knowledge, joint, shots)
    whole = {*context.resources.columns.first.values()} <= {*grounding.tables}
    last = whole or grounding.rounds >= most
    written = await tell(
        state,
        context,
        GEN_AGENT,
        "writing",
        about={"examples": len(examples), "round": state.grounding.rounds},
        examples=examples[::-1],  # the nearest last
        earlier=[each for each in state.earlier if each.sql],
        last=last,
    )
    if written.missing:
        failure = Failure(UNANSWERABLE if last else NOT_FOUND, written.missing)
        return {"linked_ref": shown, "sql": "", "error": failure}
    remarks = Remarks(written.summary, written.assumptions, written.readings, written.certainty)
    again = state.refinements + 1 if state.earlier else 0
    return {
        "linked_ref": shown,
        "sql": written.sql,
        "writer": GEN_AGENT.name,
        "remarks": remarks,
        "ordered": written.ordered,
        "error": None,
        "refinements": again,
    }


async def _examples(
    state: CandidateState, context: Context, knowledge: Knowledge, joint: bool, shots: int
) -> list[Example]:
    """Return the nearest examples, best first."""
    if knowledge == "none" or not shots:
        return []
    explored = context.resources.static if knowledge == "static" else context.resources.explored
    embedder = context.resources.embedder if joint else None
    if knowledge == "trajectories":
        steps = await asyncio.to_thread(explored.trajectories, state.question, shots, embedder=embedder)
        return [
            Example(f"{step.action} {step.detail}: {step.message or step.outcome}", step.sql)
            for step in steps
        ]
    names = [".".join(place) for place in state.grounding.columns] if joint else []
    found = await asyncio.to_thread(explored.nearest, state.question, names, shots, embedder=embedder)
    shown = [triplet.id for triplet in found]
    record(context, state, "examples", GEN_AGENT.name, triplets=shown, embedder=_way(embedder))
    return [Example(triplet.description, triplet.sql) for triplet in found]


def _way(embedder: Embedder | None) -> str:
    return embedder.name if embedder else "lexical"


def after_writing(state: CandidateState) -> Literal["run", "search", "finish"]:
    """Run the query; search again for what it lacks."""
    if halted(state):
        return "finish"
    return "search" if state.error else "run"


def round_outcome(state: CandidateState, *, most: int) -> RoundOutcome:
    """Return the outcome of a round so far (SQLAgent, Algorithm 3, lines 14 to 24).

    It is asked for after the query ran, and again after the result was checked.

    Args:
        most: Rounds (line 5).
    """
    error = state.error
    if halted(state) or unrepairable(state):
        return "end"
    if error is None and state.approved is not False:
        return "success"
    empty = error is not None and error.kind == ErrorKind.EMPTY_RESULT
    if state.grounding.rounds >= most:
        return "end"
    return "mismatch" if error is None else "empty" if empty else "error"
