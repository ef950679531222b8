"""Column exploration: small queries run one by one, corrected where they fail (ReFoRCE, Algorithm 1).

Every query and every correction is a step of the graph, so a run that was killed goes on where it was.
Exploration never ends a run: a model or database that fails ends the exploration with what it found.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from quorum.agents import column_explorer, exploration_corrector
from quorum.agents.column_explorer import MAX_QUERIES
from quorum.agents.exploration_corrector import MAX_TRIES, Correction, FailedTry
from quorum.agents.turns import ExplorationQuery
from quorum.graph.ballots import Cluster
from quorum.graph.contest import LABELS, contest, sides
from quorum.graph.context import Context
from quorum.graph.disagreement import Side, disagreements
from quorum.graph.nodes.models import first_available
from quorum.graph.nodes.step import Update
from quorum.graph.state import AttemptState, ExplorationState, RunState
from quorum.knowledge.errors import MalformedReply, ModelUnavailable
from quorum.tools.excerpt import MAX_ROWS, excerpt, row_limit
from quorum.tools.execute import QueryCache, execute
from quorum.tools.query import ErrorKind, QueryError

NOTHING: ExplorationState = {
    "waiting": [],
    "tried": [],
    "error": "",
    "kind": "",
    "mended": [],
    "findings": [],
}
EMPTY = "The query ran and returned no row."
NO_ROW = "(0 rows)"


async def begin(state: RunState, context: Context, *, max_queries: int = MAX_QUERIES) -> Update:
    """ColumnExplorer: write the queries, aimed at what strong answers disagree on.

    How they disagree becomes material for the candidates that are dealt from now on. Where only the
    schema is here nothing can be looked at, so nothing is written.
    """
    if not context.live:
        return {**_ended(context, NOTHING, "only the schema of the database is here."), "explored": True}
    prompt = await context.prompt(state["schema_ref"], state["documents_ref"])
    syntax = await _hints(context)
    told = await asyncio.to_thread(_rivals, state, context)
    rivals = [side.sql for side in told]
    differences = await asyncio.to_thread(disagreements, told, context.dialect) if told else []
    begun: Update = {"explored": True, "explored_at": state.get("dealt", 0)}
    if differences:
        ref = context.put(json.dumps(differences, ensure_ascii=False))
        begun["material"] = {**state.get("material", {}), "differences": ref}
    try:
        queries = await first_available(
            context,
            lambda model: column_explorer.write_queries(
                model,
                prompt,
                state["question"],
                syntax=syntax,
                rivals=rivals,
                differences=differences,
                max_queries=max_queries,
            ),
        )
    except (MalformedReply, ModelUnavailable) as error:
        return {**_ended(context, NOTHING, str(error)), **begun}
    waiting = [query.model_dump() for query in queries]
    context.trace.record(
        "exploration", agent="column_explorer", queries=waiting, rivals=rivals, differences=differences
    )
    return {"exploration": {**NOTHING, "waiting": waiting}, **begun}


async def run_query(state: RunState, context: Context) -> Update:
    """Run the first of the queries that wait; one that gives rows, as it is or corrected, is kept.

    An empty result is corrected once, then it is a finding itself.
    """
    now = state["exploration"]
    query, *rest = now["waiting"]
    limits = replace(context.database.limits, rows=min(MAX_ROWS, context.database.limits.rows))
    bounded = replace(context.database, limits=limits, cache=QueryCache())  # its rows are cut: not shared
    outcome = await execute(bounded, query["sql"], agent="column_explorer")
    if isinstance(outcome, QueryError):
        if outcome.kind is ErrorKind.UNAVAILABLE:
            return _ended(context, now, outcome.describe())
        return {"exploration": {**now, "error": outcome.describe(), "kind": outcome.kind.value}}
    if outcome.row_count == 0 and not now["tried"]:
        return {"exploration": {**now, "error": EMPTY, "kind": ErrorKind.EMPTY_RESULT.value}}
    limit = await asyncio.to_thread(row_limit, query["sql"], context.dialect)
    text = await asyncio.to_thread(excerpt, outcome, limit=limit)
    mended = bool(now["tried"]) and (outcome.row_count > 0 or now["tried"][-1]["error"] != EMPTY)
    waiting = now["mended"] if mended else rest
    return _found(context, now, text, waiting)


async def correct_query(state: RunState, context: Context) -> Update:
    """Correct the query that failed, in one call with those that wait and would fail likewise.

    What the reply mends among the others counts once the corrected query works. A reply that finds
    nothing wrong makes an empty result a finding; one that is malformed, or nothing new, gives the
    query up.
    """
    now = state["exploration"]
    queries = [ExplorationQuery(**query) for query in now["waiting"]]
    failed, rest = queries[0], queries[1:]
    try:
        said = await _correction(state, context, failed, rest)
    except ModelUnavailable as error:
        return _ended(context, now, str(error))
    except MalformedReply as error:
        return _given_up(context, now, str(error))
    if said.sql is None and now["kind"] == ErrorKind.EMPTY_RESULT:
        return _found(context, now, NO_ROW, now["waiting"][1:])
    if said.sql is None:
        return _given_up(context, now, "The correction has no query.")
    tried: list[AttemptState] = [*now["tried"], {"sql": failed.sql, "error": now["error"]}]
    if " ".join(said.sql.split()) in {" ".join(attempt["sql"].split()) for attempt in tried}:
        return _given_up(context, now, "The correction is a query that failed before.")
    context.trace.record("correction", agent="column_explorer", error=now["error"], **said.model_dump())
    corrected = failed.model_copy(update={"sql": said.sql})
    return {
        "exploration": {
            **now,
            "waiting": [query.model_dump() for query in (corrected, *rest)],
            "mended": [query.model_dump() for query in said.mended(rest)],
            "tried": tried,
            "error": "",
            "kind": "",
        }
    }


async def _correction(
    state: RunState, context: Context, failed: ExplorationQuery, rest: list[ExplorationQuery]
) -> Correction:
    now = state["exploration"]
    prompt = await context.prompt(state["schema_ref"], state["documents_ref"])
    syntax = await _hints(context)
    return await first_available(
        context,
        lambda model: exploration_corrector.correct_query(
            model,
            prompt,
            state["question"],
            failed,
            now["error"],
            kind=ErrorKind(now["kind"]),
            tried=[FailedTry(**attempt) for attempt in now["tried"]],
            waiting=rest,
            syntax=syntax,
        ),
    )


async def give_up_query(state: RunState, context: Context) -> Update:
    """Leave a query whose corrections are used up and go on with the next."""
    return _given_up(context, state["exploration"], state["exploration"]["error"])


async def keep_findings(state: RunState, context: Context) -> Update:
    """What was found becomes material for the candidates that are dealt from now on."""
    findings = [
        {"purpose": found["purpose"], "sql": found["sql"], "result": await context.text(found["ref"])}
        for found in state.get("exploration", NOTHING)["findings"]
    ]
    if not findings:
        return {"warnings": ["Column exploration found nothing."]}
    ref = context.put(json.dumps(findings, ensure_ascii=False))
    return {"material": {**state.get("material", {}), "findings": ref}}


def after_query(
    max_tries: int = MAX_TRIES,
) -> Callable[[RunState], Literal["run", "correct", "drop", "done"]]:
    """The router of the loop: the next query, a correction, giving up, or the end."""

    def route(state: RunState) -> Literal["run", "correct", "drop", "done"]:
        now = state.get("exploration", NOTHING)
        if state.get("stopped_by") or not now["waiting"]:
            return "done"
        if not now["error"]:
            return "run"
        return "correct" if len(now["tried"]) < max_tries else "drop"

    return route


def _found(context: Context, now: ExplorationState, text: str, waiting: list[dict[str, str]]) -> Update:
    """The query under work has told something; ``waiting`` are those that are left."""
    query, corrected = now["waiting"][0], bool(now["tried"])
    context.trace.record("finding", agent="column_explorer", **query, text=text, corrected=corrected)
    found = {**query, "ref": context.put(text)}
    return {"exploration": {**NOTHING, "waiting": waiting, "findings": [*now["findings"], found]}}


def _given_up(context: Context, now: ExplorationState, message: str) -> Update:
    context.trace.record(
        "exploration_given_up", agent="column_explorer", message=message, **now["waiting"][0]
    )
    return {"exploration": {**NOTHING, "waiting": now["waiting"][1:], "findings": now["findings"]}}


def _ended(context: Context, now: ExplorationState, message: str) -> Update:
    context.trace.record("exploration_ended", agent="column_explorer", message=message)
    return {
        "exploration": {**NOTHING, "findings": now["findings"]},
        "warnings": [f"Column exploration ended early: {message}"],
    }


def _rivals(state: RunState, context: Context) -> list[Side]:
    """The strong answers of a close vote, else the heaviest, in an order that says nothing of them."""
    vote = state.get("vote", {})
    heaviest = [Cluster(**told) for told in vote.get("clusters", [])[: len(LABELS)]]
    clusters = sorted(contest(vote) or heaviest, key=lambda cluster: cluster.key)
    return [side for side, _ in sides(clusters, state.get("candidates", []), context.trace.folder)]


async def _hints(context: Context) -> str:
    nested = any(column.fields for _, column in context.resources.catalog.columns())
    return await asyncio.to_thread(column_explorer.hints, context.dialect, nested=nested)
