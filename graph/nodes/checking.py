"""Checks of silent errors in the winning query, without a model; what they find is an objection to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import Literal

from quorum.graph.context import Context
from quorum.graph.nodes.readings import needs_readings
from quorum.graph.nodes.step import Update
from quorum.graph.state import Doubted, RunState
from quorum.tools.execute import QueryCache
from quorum.tools.results.files import read_result
from quorum.tools.silent_errors import suspicions

AGENT = "checks"


async def check_winner(state: RunState, context: Context) -> Update:
    """Ask the data about errors that no engine reports; each changes the result, as a query beside it shows.

    Nothing is asked about a verified answer, or one that the user chose, nor once a limit was reached.
    """
    winner, vote = state.winner, state.vote
    settled = vote is None or vote.decided in ("user", "verified")
    if settled or winner is None or winner.result is None or winner.result.truncated or state.limited:
        return {}
    # a cache of its own: what is cut here must not be a candidate's result
    database = replace(context.database, cache=QueryCache())
    found = await suspicions(
        database,
        winner.sql,
        partial(read_result, context.trace.folder / winner.result.file),
        agent=AGENT,
        candidate=winner.id,
        question=state.question,
    )
    for each in found:
        about = {"suspicion" if name == "kind" else name: text for name, text in vars(each).items()}
        context.trace.record("suspicion", agent=AGENT, candidate=winner.id, **about)
    doubted = [Doubted(winner.id, str(each.kind), f"{each.says} {each.matters}".strip()) for each in found]
    return {"doubted": doubted, "objection": "\n".join(each.says for each in doubted)}


def after_check(most_readings: int) -> Callable[[RunState], Literal["revise", "read", "answer"]]:
    """Return the router after the checks.

    The writer's model weighs what was found, unless a limit was reached. Where there is nothing to weigh, no
    other reading to write and nothing to ask, the answer follows at once.
    """

    def route(state: RunState) -> Literal["revise", "read", "answer"]:
        if state.objection and state.doubted and not state.limited:
            return "revise"
        return "read" if state.asks or needs_readings(state, most_readings) else "answer"

    return route
