"""Self-consistency inside a candidate: a result counts once it was returned twice.

An option of ReFoRCE's first version (paper 003, section 3.2.4 and Appendix B): a result that is empty, or has
a column of nothing but NULL, empty text or zero, is not plausible; numbers agree as in the vote; three errors
in a row end the loop, and a result that was never confirmed is treated as an empty one: it votes only where
nothing better does.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Literal

from quorum.agents.refiners import SELF_CHECKER
from quorum.graph.context import Context
from quorum.graph.nodes import candidate, writing
from quorum.graph.nodes.routes import MAX_EMPTY, Routes, halted
from quorum.graph.nodes.step import Update, record, same_query, tell
from quorum.graph.state import PREVIEW_ROWS, Attempt, CandidateState, Result
from quorum.tools.query import QueryResult
from quorum.tools.results.canonical import canonical
from quorum.tools.results.compare import equal
from quorum.tools.results.excerpt import excerpt, row_limit
from quorum.tools.results.files import read_result

EARLIER_ROWS = 3
"""Rows shown of a result that a later query has replaced."""

ERRORS_IN_A_ROW = 3  # paper 003, Appendix B


async def run_and_compare(state: CandidateState, context: Context, *, agent: str) -> Update:
    """Execute, and note whether the same result was returned before (ReFoRCE first version, 3.2.4)."""
    update = await candidate.run_sql(state, context, agent=agent)
    if update["error"] is not None:
        return {**update, "errors_in_a_row": state.errors_in_a_row + 1}
    result: Result = update["result"]
    update |= {"errors_in_a_row": 0, "confirmed": False}
    if result.blank or result.blank_column:
        return update
    again = await asyncio.to_thread(_came, result, state, context.trace.folder)
    return update | {"confirmed": again, "seen": [*state.seen, result.file]}


def _came(result: Result, state: CandidateState, folder: Path) -> bool:
    """True if the result was returned before, by the vote's tolerance; reads the results' files."""
    if result.file in state.seen:
        return True
    now = canonical(read_result(folder / result.file))
    return any(equal(now, read_result(folder / file), ordered=bool(state.ordered)) for file in state.seen)


async def answer_again(state: CandidateState, context: Context) -> Update:
    """SelfChecker: the model sees its result and writes the query it trusts now, perhaps the same."""
    result = state.result
    assert result is not None  # the router comes here with a result only
    shown, kept = await asyncio.to_thread(_excerpts, result, state.sql, context.dialect, context.trace.folder)
    again = await tell(
        state,
        context,
        SELF_CHECKER,
        "second_answer",
        sql=state.sql,
        result=shown,
        earlier=[{"sql": tried.sql, "result": tried.error} for tried in state.earlier],
        **await writing.explored(state.input.extras, context),
    )
    if same_query(again.sql, [state.sql]):
        return {"checks": state.checks + 1}
    earlier = [*state.earlier, Attempt(state.sql, kept)]
    return {"sql": again.sql, "refinements": state.refinements + 1, "earlier": earlier}


def _excerpts(result: Result, sql: str, dialect: str, folder: Path) -> tuple[str, str]:
    """Return a result's excerpt, and a shorter one for later prompts; reads its file."""
    whole = QueryResult(read_result(folder / result.file), 0.0, result.truncated)
    limit = row_limit(sql, dialect)
    now, later = (excerpt(whole, rows=rows, limit=limit) for rows in (PREVIEW_ROWS, EARLIER_ROWS))
    return now, later


async def conclude(state: CandidateState, context: Context) -> Update:
    """Treat a result that was never confirmed as an empty one."""
    if state.result is None or state.confirmed:
        return {}
    record(context, state, "unconfirmed", "self_checker", fingerprint=state.result.fingerprint)
    return {"result": replace(state.result, blank=True, no_values=True)}


def after_run(
    max_refinements: int, max_empty: int = MAX_EMPTY
) -> Callable[[CandidateState], Literal["again", "refine", "end"]]:
    """Route after a query in the loop of self-consistency (ReFoRCE first version, Algorithm 2).

    Confirmed or out of rounds it ends, an error leads to its repair, all else to another answer. Rounds are
    repairs and further answers together.
    """
    plain = Routes(max_refinements, max_empty=max_empty)

    def route(state: CandidateState) -> Literal["again", "refine", "end"]:
        if state.refinements + state.checks >= max_refinements:
            return "end"
        if state.error:
            ended = state.errors_in_a_row >= ERRORS_IN_A_ROW or plain.after_run(state) == "finish"
            return "end" if ended else "refine"
        return "end" if state.confirmed or halted(state) else "again"

    return route
