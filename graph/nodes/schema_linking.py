"""The schema text that a run shows its agents: compressed, and linked where it is long."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

from quorum.agents.linkers import (
    DRAFT_LINKER,
    SCHEMA_LINKER,
    TABLE_LINKER,
    draft_chunks,
    link_files,
    link_tables,
)
from quorum.agents.role import Role
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, tell, try_tell
from quorum.graph.state import CandidateState, RunState, SharedState
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.schema.render import SchemaText, render, render_plain
from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.linking import Linked, chunks, named, needed, prune, union, unit_texts, units, used

NOTHING = "The schema is large and linking found nothing; the whole schema was used."


async def show_plain_schema(_: RunState, context: Context) -> Update:
    """Without compression: every table by itself, nothing left out (an ablation of ReFoRCE's Table 3)."""
    catalog = context.resources.catalog
    return show(context, catalog, await asyncio.to_thread(render_plain, catalog))


async def is_long(state: RunState, context: Context, above: int) -> bool:
    """True if schema and documents take more than ``above`` tokens (ReFoRCE, section 3.2.1); recorded if so.

    Counted is the schema with every description and sample value and like tables grouped, not what a budget
    has left of it.
    """
    schema = context.resources.schema.whole
    documents = estimate_tokens(await context.text(state.documents_ref))
    if schema + documents <= above:
        return False
    context.trace.record("long_context", agent="catalog", schema=schema, documents=documents, above=above)
    return True


async def link_by_files(state: RunState, context: Context, *, max_steps: int) -> Update:
    """SchemaLinker: link a long schema by reading schema files, by at most ``max_steps`` commands."""
    if not await is_long(state, context, context.options.link_above):
        return {}
    linked = await _by_files(state, context, max_steps=max_steps)
    return await _show_linked(context, linked, [], context.options.schema_tokens)


async def link_by_tables(state: RunState, context: Context, *, above: int) -> Update:
    """TableLinker: link a long schema by one judgement per table.

    The tables stay whole unless what would be shown is still too long. One whose reply is lost stays in.

    Args:
        above: The limit in tokens; a schema below it is shown whole.

    Raises:
        ModelUnavailable: No model answers.
    """
    catalog, budget = context.resources.catalog, max(context.options.schema_tokens, above)
    if not await is_long(state, context, above):
        if not context.resources.schema.left_out:
            return {}
        return show(context, catalog, await asyncio.to_thread(render, catalog, budget=budget))
    parts = await asyncio.to_thread(units, catalog)
    texts = await asyncio.to_thread(unit_texts, parts)
    linking: Any = await tell(state, context, TABLE_LINKER, "tables_judged", by=link_tables, tables=texts)
    whole = dict.fromkeys((*linking.needed, *linking.unjudged))
    linked = needed(parts, whole)
    chosen = await asyncio.to_thread(prune, catalog, linked)
    documents = estimate_tokens(await context.text(state.documents_ref))
    if (await asyncio.to_thread(render, chosen, budget=budget)).tokens + documents > above:
        linked = needed(parts, {**whole, **linking.needed})
    notes = [
        f"The TableLinker's reply on {name} could not be used; it stays whole." for name in linking.unjudged
    ]
    _record(context, TABLE_LINKER, linked, notes)
    return await _show_linked(context, linked, notes, budget)


async def link_by_drafts(state: RunState, context: Context) -> Update:
    """DraftLinker: link a long schema by what draft queries against each part of it use.

    A part whose reply is lost stays whole.

    Raises:
        ModelUnavailable: No model answers.
    """
    catalog, budget = context.resources.catalog, context.options.schema_tokens
    if not await is_long(state, context, context.options.link_above):
        return {}
    parts = await asyncio.to_thread(chunks, catalog)
    texts = [(await asyncio.to_thread(render, part, budget=budget)).text for part in parts]
    drafting: Any = await tell(state, context, DRAFT_LINKER, "drafts", by=draft_chunks, chunks=texts)
    found, unread = await asyncio.to_thread(used_by, catalog, drafting.drafts)
    notes = [f"A draft could not be read, so its tables are missing: {why}" for why in unread]
    for number in drafting.unread:
        found.append(Linked(tables=tuple(table.full_name for table in parts[number].tables)))
        notes.append(f"The DraftLinker's reply on part {number + 1} could not be used; it stays whole.")
    linked = Linked(tables=union(catalog, found).tables)
    _record(context, DRAFT_LINKER, linked, notes)
    return await _show_linked(context, linked, notes, budget)


def _record(context: Context, role: Role[Any], linked: Linked, notes: Sequence[str]) -> None:
    context.trace.record("linking", agent=role.name, tables=list(linked.tables), notes=list(notes))


async def _show_linked(context: Context, linked: Linked, notes: list[str], budget: int) -> Update:
    """Show what was linked, within a budget of tokens; the whole schema stays where nothing was."""
    if not linked.tables:
        return {"warnings": [*notes, NOTHING]}
    chosen = await asyncio.to_thread(prune, context.resources.catalog, linked)
    schema = await asyncio.to_thread(render, chosen, budget=budget)
    return {**show(context, chosen, schema), "warnings": notes}


async def link_after_error(state: CandidateState, context: Context, *, max_steps: int) -> Update:
    """SchemaLinker: when a table or column was not found (ReCAPAgent-SQL, Table 1).

    From then on the candidate's prompts show only what was linked (3.3.4); the whole schema if nothing was.
    A plan is made anew from it.
    """
    error = state.error.message if state.error else ""
    linked = await _by_files(state, context, max_steps=max_steps, sql=state.sql, error=error)
    if not linked.tables:
        return {"linked_ref": ""}
    chosen = await asyncio.to_thread(prune, context.resources.catalog, linked)
    schema = await asyncio.to_thread(render, chosen, budget=context.options.schema_tokens)
    return {"linked_ref": context.put(schema.text), "plans": 0}


async def _by_files(state: SharedState, context: Context, **given: Any) -> Linked:
    """Return what the SchemaLinker names; nothing if it found nothing, or its reply is lost."""
    call = {"by": link_files, "files": context.resources.files, **given}
    found = await try_tell(state, context, SCHEMA_LINKER, "linking", **call)
    text = (found.linked_schema if found else None) or ""
    return await asyncio.to_thread(named, text, context.resources.catalog)


def used_by(catalog: Catalog, queries: Sequence[str]) -> tuple[list[Linked], list[str]]:
    """Return what each query uses of the catalog, and why some cannot be read."""
    found, unread = list[Linked](), list[str]()
    for sql in filter(str.strip, queries):
        try:
            found.append(used(sql, catalog))
        except SyntaxProblem as problem:
            unread.append(problem.message)
    return found, unread


def show(context: Context, part: Catalog, schema: SchemaText) -> Update:
    """Show this schema text, of a part of the catalog or of all, from now on."""
    ref = context.put(schema.text)
    names = {table.full_name: [column.name for column in table.columns] for table in part.tables}
    context.trace.record(
        "schema_shown",
        agent="catalog",
        tokens=schema.tokens,
        whole=schema.whole,
        left_out=list(schema.left_out),
        ref=ref,
        names=context.put(json.dumps(names, ensure_ascii=False)),
    )
    return {"schema_ref": ref}
