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
from quorum.knowledge.oddities import oddities
from quorum.knowledge.schema_text import parse_schema
from quorum.tools.excerpt import excerpt, row_limit
from quorum.tools.execute import execute
from quorum.tools.query import QueryError


async def probe(state: RunState, context: Context) -> Update:
    """Prober: settle doubts before a query is written, or before the one that was checked is revised.

    Nobody is asked where there is no doubt. What fails, or says nothing, is left out.
    """
    if state.limited or not context.live:
        return {}
    prompt = await context.prompt(state)
    doubts = [each.says for each in state.doubted]
    if not doubts:
        doubts = await asyncio.to_thread(lambda: oddities(parse_schema(prompt.schema)))
    if not doubts:
        return {}
    sql = state.winner.sql if state.winner else ""
    probes = await try_role(
        state,
        context,
        prober.ROLE,
        lambda model: prober.write_probes(model.at(temperature=0.0), prompt, state.question, doubts, sql=sql),
        event="probes",
        spare=UNUSABLE_OR_GONE,
        doubts=doubts,
    )
    found = await asyncio.gather(
        *(_look(context, query.purpose, query.sql) for query in (probes.queries if probes else ()))
    )
    findings = [each for each in found if each]
    for each in findings:
        record(context, state, "finding", prober.ROLE.name, **(each | {"text": each["result"]}))
    ref = context.put(json.dumps(findings, ensure_ascii=False)) if findings else ""
    return {"extras": replace(state.extras, findings=ref)} if ref else {}


async def _look(context: Context, purpose: str, sql: str) -> dict[str, str] | None:
    outcome = await execute(context.bounded, sql, agent=prober.ROLE.name)
    if isinstance(outcome, QueryError):
        return None
    limit = await asyncio.to_thread(row_limit, sql, context.dialect)
    text = await asyncio.to_thread(excerpt, outcome, limit=limit)
    return {"purpose": purpose, "sql": sql, "result": text}


def after_probing(state: RunState) -> Literal["revise", "write"]:
    """On to who decides about the checked query, else to the writers."""
    return "revise" if state.doubted else "write"
