"""Evidence: small queries at once, where the schema's profile is odd or a check fired."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from typing import Literal

from quorum.agents import prober
from quorum.graph.context import Context
from quorum.graph.nodes.step import UNUSABLE_OR_GONE, Update, record, try_role
from quorum.graph.state import RunState
from quorum.knowledge.errors import BudgetExceeded
from quorum.knowledge.oddities import oddities
from quorum.knowledge.schema_text import parse_schema
from quorum.tools.excerpt import excerpt, row_limit
from quorum.tools.execute import execute
from quorum.tools.query import QueryError


async def probe(state: RunState, context: Context) -> Update:
    """Prober: settle doubts before a query is written, or before the one that was checked is revised.

    Nobody is asked where there is no doubt, nor where reading is paid for or each query is asked about. What
    fails, or says nothing, is left out; a limit that is reached here costs the look alone.
    """
    if state.limited or not context.reads_unasked:
        return {}
    prompt = await context.prompt(state)
    doubts = [each.says for each in state.doubted]
    if not doubts:
        doubts = await asyncio.to_thread(lambda: oddities(parse_schema(prompt.schema)))
    if not doubts:
        return {}
    sql = state.winner.sql if state.winner else ""
    try:
        probes = await try_role(
            state,
            context,
            prober.ROLE,
            lambda model: prober.write_probes(
                model.at(temperature=0.0), prompt, state.question, doubts, sql=sql
            ),
            event="probes",
            spare=UNUSABLE_OR_GONE,
            doubts=doubts,
        )
        found = await asyncio.gather(
            *(_look(context, query.purpose, query.sql) for query in (probes.queries if probes else ()))
        )
    except BudgetExceeded as error:
        return {"warnings": [f"Odd data was not looked into: {error.limit} was reached."]}
    evidence = [each for each in found if each]
    for each in evidence:
        record(context, state, "finding", prober.ROLE.name, **(each | {"text": each["result"]}))
    ref = context.put(json.dumps(evidence, ensure_ascii=False)) if evidence else ""
    return {"extras": replace(state.extras, evidence=ref)} if ref else {}


async def _look(context: Context, purpose: str, sql: str) -> dict[str, str] | None:
    outcome = await execute(context.bounded, sql, agent=prober.ROLE.name)
    if isinstance(outcome, QueryError):
        return None
    limit = await asyncio.to_thread(row_limit, sql, context.dialect)
    text = await asyncio.to_thread(excerpt, outcome, limit=limit)
    return {"purpose": purpose, "sql": sql, "result": text}


def after_probing(state: RunState) -> Literal["revise", "write", "go_on"]:
    """On to who decides about the checked query, beyond a limit past it; else to the writers."""
    if not state.doubted:
        return "write"
    return "go_on" if state.limited else "revise"
