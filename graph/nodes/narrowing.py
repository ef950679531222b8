"""The schema text that a run shows its agents: compressed, linked where it is long, or as the user says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Literal, TypeAlias

from quorum.agents import draft_linker, table_linker
from quorum.graph.context import Context
from quorum.graph.nodes.step import Update, ask_role
from quorum.graph.state import RunState
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.schema.render import SchemaText, render, render_plain
from quorum.knowledge.tokens import estimate_tokens
from quorum.tools.sql import SyntaxProblem
from quorum.tools.sql.linking import Linked, chunks, needed, prune, union, unit_texts, units, used

Linking: TypeAlias = Literal["tables", "drafts", "none"]
"""Ask of each table whether it is needed, draft SQL against each part, or leave the schema as it is."""


async def show_plain_schema(_: RunState, context: Context) -> Update:
    """Without compression: every table by itself, nothing left out (an ablation of ReFoRCE's Table 3)."""
    catalog = context.resources.catalog
    return show(context, catalog, await asyncio.to_thread(render_plain, catalog))


async def is_long(state: RunState, context: Context, above: int) -> bool:
    """Whether schema and documents take more than ``above`` tokens (ReFoRCE, section 3.2.1); if so, says it.

    Counted is the schema with every description and sample value and like tables grouped, not what a budget
    has left of it.
    """
    schema = context.resources.schema.whole
    documents = estimate_tokens(await context.text(state.documents_ref))
    if schema + documents <= above:
        return False
    context.trace.record("long_context", agent="catalog", schema=schema, documents=documents, above=above)
    return True


async def link_schema(
    state: RunState, context: Context, *, linking: Linking, above: int | None = None
) -> Update:
    """Link the schema where it ``is_long``, and show what was linked within the budget of schema text.

    By default ``above`` is the run's ``link_above``. What a malformed reply was about stays in; if nothing
    was linked the whole schema stays. Both add a warning.

    Raises:
        ModelUnavailable: No model answers.
    """
    above = context.options.link_above if above is None else above
    if linking == "none" or not await is_long(state, context, above):
        return {}
    link = _by_tables if linking == "tables" else _by_drafts
    linked, notes = await link(state, context, above)
    if not linked.tables:
        notes = [*notes, "The schema is large and linking found nothing; the whole schema was used."]
    role = table_linker.ROLE if linking == "tables" else draft_linker.ROLE
    context.trace.record("linking", agent=role.name, tables=list(linked.tables), notes=notes)
    if not linked.tables:
        return {"warnings": notes}
    chosen = await asyncio.to_thread(prune, context.resources.catalog, linked)
    text = await asyncio.to_thread(_text, chosen, context)
    return {**show(context, chosen, text), "warnings": notes}


async def _by_tables(state: RunState, context: Context, above: int) -> tuple[Linked, list[str]]:
    """One judgement per table; the tables stay whole unless what would be shown is still too long."""
    catalog = context.resources.catalog
    parts = await asyncio.to_thread(units, catalog)
    texts = await asyncio.to_thread(unit_texts, parts)
    documents = await context.text(state.documents_ref)
    linking = await ask_role(
        state,
        context,
        table_linker.ROLE,
        lambda model: table_linker.link_tables(
            model, context.dialect, state.question, texts, documents=documents
        ),
        event="tables_judged",
    )
    whole = dict.fromkeys((*linking.needed, *linking.unjudged))
    linked = needed(parts, whole)
    chosen = await asyncio.to_thread(prune, catalog, linked)
    shown = (await asyncio.to_thread(_text, chosen, context)).tokens + estimate_tokens(documents)
    if shown > above:
        linked = needed(parts, {**whole, **linking.needed})
    notes = [
        f"The TableLinker's reply on {name} could not be used; it stays whole." for name in linking.unjudged
    ]
    return linked, notes


async def _by_drafts(state: RunState, context: Context, _: int) -> tuple[Linked, list[str]]:
    """What draft queries against each part of the schema use; a part whose reply is lost stays whole."""
    catalog = context.resources.catalog
    parts = await asyncio.to_thread(chunks, catalog)
    texts = [(await asyncio.to_thread(_text, part, context)).text for part in parts]
    documents = await context.text(state.documents_ref)
    drafting = await ask_role(
        state,
        context,
        draft_linker.ROLE,
        lambda model: draft_linker.draft_chunks(
            model, context.dialect, state.question, texts, documents=documents
        ),
        event="drafts",
    )
    found, notes = await asyncio.to_thread(used_by, catalog, drafting.drafts)
    for number in drafting.unread:
        found.append(Linked(tables=tuple(table.full_name for table in parts[number].tables)))
        notes.append(f"The DraftLinker's reply on part {number + 1} could not be used; it stays whole.")
    whole = Linked(tables=union(catalog, found).tables)
    return whole, notes


def used_by(catalog: Catalog, drafts: Sequence[str]) -> tuple[list[Linked], list[str]]:
    """What each draft uses of the catalog, and notes on those that cannot be read."""
    found, notes = list[Linked](), list[str]()
    for sql in drafts:
        try:
            found.append(used(sql, catalog))
        except SyntaxProblem as problem:
            notes.append(f"A draft could not be read, so its tables are missing: {problem.message}")
    return found, notes


def _text(catalog: Catalog, context: Context) -> SchemaText:
    return render(catalog, budget=context.options.schema_tokens)


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
