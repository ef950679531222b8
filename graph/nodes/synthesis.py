"""SQLAgent's deployment stage: InfoAgent and GenAgent, in rounds (paper 001, section 3.3, Algorithm 3)."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal, TypeAlias

from quorum.agents.linkers import CONTEXT_EXPANDER, INFO_AGENT
from quorum.agents.writers import GEN_AGENT
from quorum.graph.ballots import UNANSWERABLE
from quorum.graph.context import Context
from quorum.graph.nodes.routes import halted, unrepairable
from quorum.graph.nodes.step import Update, record, tell, try_tell
from quorum.graph.state import Attempt, CandidateState, Failure, Grounding, Remarks
from quorum.knowledge.catalog import Catalog, Table
from quorum.knowledge.schema.render import render
from quorum.knowledge.search.columns import table_names, units
from quorum.knowledge.triplets import Example, Place
from quorum.tools.query import ErrorKind
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.linking import Linked, prune, used

Knowledge: TypeAlias = Literal["triplets", "trajectories", "static", "none"]
"""Examples that the GenAgent sees of the exploration (paper 001, Tables 3, 12 and 15)."""

RoundOutcome: TypeAlias = Literal["success", "execution_failed", "semantic_mismatch"]
"""Algorithm 3's three outcomes of a round."""

COLUMNS = 10
"""Columns that one keyword brings in at most."""

WHOLE = 20
"""A table of so few columns stays whole: leaving some out saves little and may cost a key."""

MAX_KEYWORD = 60
"""Characters of a keyword."""

NAMES = 80
"""Tables that the InfoAgent is told the names of."""

NEXT_TABLES = 8
"""Further tables that the ContextExpander may take columns from."""

EXPANDER_TOKENS = 3_000


def round_outcome(state: CandidateState) -> RoundOutcome:
    """Return the outcome of the last round; before the fidelity check, of its execution."""
    if state.error is not None or state.result is None:
        return "execution_failed"
    return "semantic_mismatch" if state.approved is False else "success"


async def ground(
    state: CandidateState, context: Context, *, agent: bool, tables: int, pruning: bool
) -> Update:
    """InfoAgent: find the columns that the question names, after a failed round those it overlooked.

    Args:
        agent: A model names the keywords; else the question itself is searched for (Table 12).
        tables: That one search brings in (paper 001, appendix A: three).
        pruning: Of an earlier round's context only what its query used stays (Table 12).
    """
    before = state.grounding
    earlier, catalog = _earlier(state), context.resources.catalog
    keywords = await _keywords(state, context, earlier) if agent else []
    index, embedder = context.resources.columns, context.resources.embedder
    queries = [*keywords] or [state.question]
    text = " ".join([state.question, *keywords])
    way: dict[str, Any] = {"embedder": embedder, "hybrid": _hybrid(context)}
    found = await asyncio.to_thread(index.tables, text, tables + len(before.tables), **way)
    fresh = [name for name in found if name not in before.tables][:tables]
    hits = [hit for query in queries for hit in await asyncio.to_thread(index.search, query, COLUMNS, **way)]
    kept = await asyncio.to_thread(_kept, before, earlier, catalog, pruning)
    names = [*dict.fromkeys([*(table for table, _ in kept), *fresh])]
    columns = [*kept, *((hit.table, hit.column) for hit in hits if hit.table in names)]
    columns += [place for name in fresh for place in _small(catalog, name)]
    grounding = Grounding(
        rounds=before.rounds + 1,
        keywords=[*before.keywords, *keywords],
        tables=names,
        columns=list(dict.fromkeys(columns)),
    )
    record(
        context,
        state,
        "grounding",
        INFO_AGENT.name,
        tables=names,
        fresh=fresh,
        columns=len(grounding.columns),
        embedder=embedder.name if embedder else "lexical",
    )
    return {
        "grounding": grounding,
        "linked_ref": _shown(grounding, context),
        "earlier": earlier,
        "error": None,
        "approved": None,
    }


def _hybrid(context: Context) -> bool:
    """True if columns are found by words and by embeddings (the paper: by embeddings)."""
    return context.resources.embedder is not None and context.options.retrieval == "hybrid"


async def _keywords(state: CandidateState, context: Context, earlier: Sequence[Attempt]) -> list[str]:
    names = await asyncio.to_thread(_table_names, context.resources.catalog)
    found = await try_tell(
        state,
        context,
        INFO_AGENT,
        "keywords",
        tables=names,
        earlier=state.grounding.keywords,
        failed=earlier[-1] if earlier else None,
    )
    return [keyword[:MAX_KEYWORD] for keyword in found.keywords] if found else []


def _table_names(catalog: Catalog) -> list[str]:
    """Names of the tables, those that differ in a number only as one."""
    return [name for unit in units(catalog) for name in table_names(unit)][:NAMES]


def _earlier(state: CandidateState) -> list[Attempt]:
    """The queries of the rounds before; the Validator adds its own objections."""
    if state.error is None or not state.sql:
        return state.earlier
    return [*state.earlier, Attempt(state.sql, state.error.message)]


def _kept(before: Grounding, earlier: Sequence[Attempt], catalog: Catalog, pruning: bool) -> list[Place]:
    """The columns of an earlier round that stay: with pruning those that its query used.

    Where that query cannot be read, nothing is known to be of no use.
    """
    columns = [(table, column) for table, column in before.columns]
    if not pruning or not earlier:
        return columns
    try:
        names = used(earlier[-1].sql, catalog).columns
    except SyntaxProblem:
        return columns
    return [place for place in columns if place in names]


def _small(catalog: Catalog, name: str) -> Iterable[Place]:
    table = _table(catalog, name)
    return ((name, column.name) for column in table.columns) if len(table.columns) <= WHOLE else ()


def _table(catalog: Catalog, name: str) -> Table:
    return next(table for table in catalog.find(name) if table.full_name == name)


def _shown(grounding: Grounding, context: Context) -> str:
    """The reference of the grounded schema's text; a table of which no column was found shows its key."""
    linked = Linked(tuple(grounding.tables), tuple((table, column) for table, column in grounding.columns))
    part = prune(context.resources.catalog, linked, bare="key")
    return context.put(render(part, budget=context.options.schema_tokens).text)


async def expand(state: CandidateState, context: Context) -> Update:
    """ContextExpander: add the keys, and whatever else, without which no query can be written."""
    grounding, catalog = state.grounding, context.resources.catalog
    more = await asyncio.to_thread(_next_tables, state, context)
    added = await try_tell(
        state,
        context,
        CONTEXT_EXPANDER,
        "context",
        schema=await asyncio.to_thread(_tables_text, grounding.tables, catalog),
        found=_found(grounding, catalog),
        more_tables=_tables_text(more, catalog) if more else "",
    )
    places = await asyncio.to_thread(_named, added.add if added else [], [*grounding.tables, *more], catalog)
    if not places:
        return {}
    tables = list(dict.fromkeys([*grounding.tables, *(table for table, _ in places)]))
    places += [place for name in tables if name not in grounding.tables for place in _small(catalog, name)]
    columns = list(dict.fromkeys([*((t, c) for t, c in grounding.columns), *places]))
    grounding = replace(grounding, tables=tables, columns=columns)
    return {"grounding": grounding, "linked_ref": _shown(grounding, context)}


def _found(grounding: Grounding, catalog: Catalog) -> str:
    """The columns found, a line for each table."""
    lines = []
    for name in grounding.tables:
        columns = [column for table, column in grounding.columns if table == name]
        whole = len(columns) == len(_table(catalog, name).columns)
        lines.append(f"{name}: {'all columns' if whole else ', '.join(columns)}")
    return "\n".join(lines)


def _next_tables(state: CandidateState, context: Context) -> list[str]:
    """Tables that those found refer to, then the next ones of the search."""
    catalog, own = context.resources.catalog, state.grounding.tables
    targets = [
        found.full_name
        for name in own
        for key in _table(catalog, name).foreign_keys
        if (found := catalog.table(key.ref_table))
    ]
    text = " ".join([state.question, *state.grounding.keywords])
    ranked = context.resources.columns.tables(
        text, NEXT_TABLES + len(own), embedder=context.resources.embedder, hybrid=_hybrid(context)
    )
    return [name for name in dict.fromkeys([*targets, *ranked]) if name not in own][:NEXT_TABLES]


def _tables_text(names: Iterable[str], catalog: Catalog) -> str:
    return render(prune(catalog, Linked(tuple(names))), budget=EXPANDER_TOKENS).text


def _named(names: Iterable[str], tables: Iterable[str], catalog: Catalog) -> list[Place]:
    """The columns of these tables that are named as ``table.column``; case and quotes do not count."""
    known: dict[str, Place] = {}
    for table in (_table(catalog, name) for name in tables):
        for column in table.columns:
            for spelt in (f"{table.full_name}.{column.name}", f"{table.name}.{column.name}"):
                known.setdefault(spelt.casefold(), (table.full_name, column.name))
    bare = (name.replace('"', "").replace("`", "").strip().casefold() for name in names)
    return list(dict.fromkeys(known[name] for name in bare if name in known))


async def write(
    state: CandidateState, context: Context, *, knowledge: Knowledge, joint: bool, shots: int
) -> Update:
    """GenAgent: retrieve examples of the exploration, and write the query.

    Args:
        joint: Examples are looked for by question and schema together, by meaning where there is an embedder;
            else by the question's words alone (Table 12).
        shots: Examples at most.
    """
    examples = await _examples(state, context, knowledge, joint, shots)
    written = await tell(
        state,
        context,
        GEN_AGENT,
        "writing",
        about={"examples": len(examples), "round": state.grounding.rounds},
        examples=examples[::-1],  # the nearest last
        earlier=state.earlier,
    )
    if written.missing:
        return {"sql": "", "error": Failure(UNANSWERABLE, written.missing)}
    remarks = Remarks(written.summary, written.assumptions, written.readings)
    again = state.refinements + 1 if state.earlier else 0
    return {
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
    """The nearest examples, best first."""
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
    record(
        context,
        state,
        "examples",
        GEN_AGENT.name,
        triplets=[triplet.id for triplet in found],
        embedder=embedder.name if embedder else "lexical",
    )
    return [Example(triplet.description, triplet.sql) for triplet in found]


class Rounds:
    """Routers of the loop, at most ``most`` rounds."""

    def __init__(self, most: int, *, max_empty: int) -> None:
        self.most, self.max_empty = most, max_empty

    def after_run(self, state: CandidateState) -> Literal["validate", "ground", "finish"]:
        """A result is checked; a failure begins another round, an empty result as often as it may."""
        if halted(state) or unrepairable(state):
            return "finish"
        if state.error is None:
            return "validate"
        empty = state.error.kind == ErrorKind.EMPTY_RESULT
        before = sum(tried.error == state.error.message for tried in state.earlier)
        believed = empty and before >= self.max_empty
        return "finish" if believed or state.grounding.rounds >= self.most else "ground"

    def after_check(self, state: CandidateState) -> Literal["ground", "finish"]:
        """Success ends the loop, and so does its last round."""
        aligned = round_outcome(state) == "success"
        return "finish" if halted(state) or aligned or state.grounding.rounds >= self.most else "ground"
