"""The tree search's steps: choose actions, simulate each in a branch of its own, keep what came of it.

The branches of a round run at a time; one step alone writes the store and the tree (paper 001, section 3.2).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal

from quorum.agents.explorers import DESCRIBER, EXPLORER, SIMULATOR
from quorum.agents.prompting import show_row
from quorum.agents.role import sentence
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, record, try_tell
from quorum.graph.state import SharedState, gather
from quorum.graph.tree_search import Checked, SearchTree
from quorum.knowledge.catalog import Catalog, ColumnRef
from quorum.knowledge.schema.render import render
from quorum.knowledge.triplets import Expansion, ExpansionOutcome, Triplet
from quorum.tools.execute import execute
from quorum.tools.masking import about_persons, looks_personal, masked, masked_rows, without_personal
from quorum.tools.query import QueryError, QueryResult
from quorum.tools.results.canonical import blank_reason
from quorum.tools.results.values import plain_rows
from quorum.tools.sql.linking import marks_of, used
from quorum.tools.sql.writing import shape
from quorum.tools.triplet_store import TripletStore

SCHEMA_TOKENS, FRAGMENT_TOKENS = 3_000, 2_000
"""Budgets of what the Explorer sees, and of a schema fragment."""

ROWS, MAX_CELL = 5, 80
"""Of a result that the Describer sees: rows, and characters of a cell."""

MAX_QUESTION = 500
"""Characters of a triplet's description; prompts of many questions show it."""

MAX_MISSES = 3
"""Choices in a row without an action that can be tried, after which the search ends."""


@dataclass
class Search:
    """A search under way: its tree, where its triplets are kept, and when it ends.

    Attributes:
        coverage: Share of fields at which it ends (paper 001, appendix J.1: 0.9).
        attempts: Expansions at most, earlier processes' included (J.1: 300).
        branches: Expansions at a time.
        execution: Queries are run; else they are only parsed and linted (Table 3's static view).
        personal: Queries that hold personal data are kept, and shown to models as they are.
    """

    tree: SearchTree
    store: TripletStore
    coverage: float = 0.9
    attempts: int = 300
    branches: int = 4
    execution: bool = True
    personal: bool = False

    @property
    def tried(self) -> int:
        """Expansions so far."""
        return len(self.store.expansions)

    @property
    def ended(self) -> str:
        """The reason why nothing more is tried; empty before the end."""
        if self.tree.coverage >= self.coverage:
            return "coverage"
        return "attempts" if self.tried >= self.attempts else ""


@dataclass(frozen=True)
class Tried:
    """The outcome of an action in its branch; ``triplet`` is what worked, which has no number yet."""

    checked: Checked
    outcome: ExpansionOutcome
    sql: str = ""
    message: str = ""
    triplet: Triplet | None = None


def _either(before: str, after: str) -> str:
    return after or before


@dataclass
class SearchState(SharedState):
    """The state of the search itself.

    Attributes:
        batch: Actions to be tried now.
        refused: Why actions of the last choice could not be tried.
        misses: Choices in a row of which none could.
        tried: By this process, in order.
    """

    batch: list[Checked] = field(default_factory=list)
    refused: list[str] = field(default_factory=list)
    misses: int = 0
    tried: Annotated[list[Tried], gather] = field(default_factory=list)
    kept: int = 0
    stopped_by: Annotated[str, _either] = ""


@dataclass
class SimulationState(SharedState):
    """The state of one branch."""

    checked: Checked = field(default_factory=lambda: Checked(0, "", (), "", ""))
    sql: str = ""
    result: QueryResult | None = None
    stopped_by: str = ""
    tried: list[Tried] = field(default_factory=list)


async def choose(state: SearchState, context: Context, *, search: Search) -> Update:
    """Explorer: the next round's actions, of which those that cannot be tried are told back."""
    tree, wanted = search.tree, min(search.branches, search.attempts - search.tried)
    shown = await asyncio.to_thread(tree.reachable)
    schema = await asyncio.to_thread(_text, shown, SCHEMA_TOKENS, search.personal)
    choice = await try_tell(
        state,
        context,
        EXPLORER,
        "choice",
        about={"coverage": tree.coverage, "tried": search.tried},
        at={"seed": context.options.seed + search.tried},
        schema=schema,
        states=tree.state_texts(),
        unused=tree.unused(shown),
        feedback=[*tree.feedback(shown), *state.refused],
        wanted=wanted,
        described=any(column.description for _, column in shown.columns()),
    )
    batch, refused = list[Checked](), list[str]()
    for action in choice.actions[:wanted] if choice else ():
        detail = action.detail if search.personal else masked(action.detail)
        checked = tree.check(action.model_copy(update={"detail": detail}))
        if isinstance(checked, str):
            refused.append(sentence(f"{action.action} {', '.join(action.columns)}: {checked}"))
        elif checked not in batch:
            batch.append(checked)
    return {"batch": batch, "refused": refused, "misses": 0 if batch else state.misses + 1}


async def simulate(state: SimulationState, context: Context, *, search: Search) -> Update:
    """Simulator: the query of a new state."""
    checked, tree = state.checked, search.tree
    before = tree.by_id[checked.state].sql if checked.state else ""
    schema = await asyncio.to_thread(_text, tree.fragment(checked), FRAGMENT_TOKENS, search.personal)
    written = await try_tell(
        state,
        context,
        SIMULATOR,
        "simulation",
        about={"step": checked.step},
        at={"seed": context.options.seed + search.tried},
        schema=schema,
        steps=[*tree.steps(checked.state), checked.step],
        before=before,
    )
    if written is None:
        return _ended(checked, "unusable", message="The Simulator's reply could not be used.")
    return {"sql": written.sql}


async def run_query(state: SimulationState, context: Context, *, search: Search) -> Update:
    """The two stages of validation: parse and lint, then execution (paper 001, SQL Simulation)."""
    checked, sql = state.checked, state.sql
    if not search.personal and looks_personal(sql):
        return _ended(checked, "personal", message="The query holds what looks like personal data.")
    outcome = await _outcome(search, context, sql)
    if isinstance(outcome, QueryError):
        message = outcome.describe() if search.personal else masked(outcome.describe())
        return _ended(checked, "failed", sql, message)
    found = await asyncio.to_thread(used, sql, search.tree.catalog)
    if problem := trivial(checked, found.columns):
        return _ended(checked, "trivial", sql, problem)
    if outcome and (blank := await asyncio.to_thread(blank_reason, outcome.table)):
        return _ended(checked, "empty", sql, f"The result is {blank}.")
    form = await asyncio.to_thread(shape, sql, context.dialect)
    if form in search.tree.shapes:
        return _ended(checked, "known", sql, "An example asks the same already.")
    return {"result": outcome}


def trivial(checked: Checked, columns: tuple[ColumnRef, ...]) -> str:
    """Return why a query shows nothing of the database; empty if it does.

    Trivial is a query that reads no column, or not every column of the action it is to try.
    """
    if not columns:
        return "The query reads no column."
    missing = [".".join(place) for place in checked.places if place not in columns]
    return f"The query does not use {', '.join(missing)}." if missing else ""


async def _outcome(search: Search, context: Context, sql: str) -> QueryResult | QueryError | None:
    """Return the result, or why there is none; None if nothing is to run and nothing is wrong."""
    if search.execution:
        return await execute(context.bounded, sql, agent=SIMULATOR.name)
    judged = await context.database.judge(sql)
    return judged if isinstance(judged, QueryError) else None


async def describe(state: SimulationState, context: Context, *, search: Search) -> Update:
    """Describer: the description U, or why the query is pointless."""
    checked, sql, result = state.checked, state.sql, state.result
    catalog = search.tree.catalog
    part = search.tree.fragment(checked)
    schema = await asyncio.to_thread(_text, part, FRAGMENT_TOKENS, search.personal)
    plain = await asyncio.to_thread(_plain_columns, sql, catalog)
    rows = await asyncio.to_thread(_first_rows, result, not search.personal, plain) if result else []
    described = await try_tell(
        state,
        context,
        DESCRIBER,
        "description",
        schema=schema,
        sql=sql,
        rows=rows,
        row_count=result.row_count if result else 0,
        cut=bool(result and result.truncated),
    )
    if described is None:
        return _ended(checked, "unusable", sql, "The Describer's reply could not be used.")
    if not described.useful:
        why = described.objection if search.personal else masked(described.objection)
        return _ended(checked, "pointless", sql, why or "Nobody would ask it.")
    if not search.personal and looks_personal(described.description):
        return _ended(checked, "personal", message="The description holds what looks like personal data.")
    question = " ".join(described.description.split())[:MAX_QUESTION]
    triplet = await asyncio.to_thread(_triplet, sql, question, catalog)
    return {"tried": [Tried(checked, "worked", sql, triplet=triplet)]}


async def keep(
    state: SearchState, context: Context, *, search: Search, told: Callable[[Search], None] | None
) -> Update:
    """Commit what the branches found, each in a transaction, and propagate it through the tree."""
    for tried in state.tried[state.kept :]:
        expansion, triplet = _numbered(search, tried)
        await asyncio.to_thread(search.store.add, expansion, triplet)
        search.tree.add(expansion)
        if triplet:
            search.tree.cover(triplet)
        record(
            context,
            state,
            "expansion",
            EXPLORER.name,
            number=expansion.id,
            step=tried.checked.step,
            sql=expansion.sql,
            outcome=expansion.outcome,
            message=triplet.description if triplet else expansion.message,
            coverage=search.tree.coverage,
        )
    if told:
        told(search)
    return {"kept": len(state.tried), "batch": []}


def _numbered(search: Search, tried: Tried) -> tuple[Expansion, Triplet | None]:
    """The next node of the tree; two branches of a round may have found the same."""
    if tried.triplet and tried.triplet.shape in search.tree.shapes:
        message = "An example asks the same already."
        tried = replace(tried, outcome="known", message=message, triplet=None)
    id, at = search.tried + 1, tried.checked
    expansion = Expansion(
        id, at.state, at.action, at.places, at.detail, tried.sql, tried.outcome, tried.message
    )
    return expansion, replace(tried.triplet, id=id) if tried.triplet else None


def after_choice(state: SearchState) -> Literal["simulate", "choose", "end"]:
    """The router after a choice: its branches, another choice where nothing could be tried, or the end."""
    if state.stopped_by or state.misses >= MAX_MISSES:
        return "end"
    return "simulate" if state.batch else "choose"


def after_keeping(state: SearchState, *, search: Search) -> Literal["choose", "end"]:
    """Route after a round."""
    return "end" if state.stopped_by or search.ended else "choose"


def after_simulation(state: SimulationState) -> Literal["go_on", "end"]:
    """The router in a branch: on, unless its outcome is known or a limit is reached."""
    return "end" if state.tried or state.stopped_by else "go_on"


def _ended(checked: Checked, outcome: ExpansionOutcome, sql: str = "", message: str = "") -> Update:
    return {"tried": [Tried(checked, outcome, sql, message)]}


def _text(part: Catalog, budget: int, personal: bool) -> str:
    """Schema text, in which values that look personal are masked unless they may be shown."""
    return render(part if personal else without_personal(part), budget=budget).text


def _plain_columns(sql: str, catalog: Catalog) -> set[str] | None:
    """Names of what a query may show of persons: its plain columns; all but these are withheld.

    None where it reads nothing about persons, so that nothing can hide behind a name that it gives.
    """
    names = {column for _, column in used(sql, catalog).columns}
    plain = {name.casefold() for name in names if not about_persons(name)}
    return plain if len(plain) < len({name.casefold() for name in names}) else None


def _first_rows(result: QueryResult, mask: bool, plain: set[str] | None) -> list[str]:
    """The first rows as JSON, the columns' names first; with ``mask`` personal data are withheld."""
    rows = plain_rows(result.table.slice(0, ROWS))
    if mask:
        rows = masked_rows(result.columns, rows, plain)
    return [show_row(row, MAX_CELL) for row in (result.columns, *rows)]


def _triplet(sql: str, description: str, catalog: Catalog) -> Triplet:
    """A query with its description, the marks of the tables that it reads, its columns and its shape."""
    found = used(sql, catalog)
    marks = marks_of(found.tables, catalog)
    return Triplet(0, sql, shape(sql, catalog.dialect), description, marks, found.columns)
