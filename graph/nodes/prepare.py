"""Before any SQL: open the run, retrieve documents and syntax, link a schema that is too large."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from quorum.agents import column_explorer, knowledge_retriever, syntax_retriever
from quorum.agents.knowledge_retriever import Passages
from quorum.graph.context import Context
from quorum.graph.nodes.candidate import NO_PLAN, link_schema, linked_part
from quorum.graph.nodes.narrowing import is_long, show
from quorum.graph.nodes.step import Update, lost, try_role
from quorum.graph.state import RunState, fresh
from quorum.knowledge import syntax
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.tokens import estimate_tokens
from quorum.knowledge.triplets import Triplet
from quorum.knowledge.verified import VerifiedPair
from quorum.tools.models import Model

MATCHING = ("Strings",)
"""What ReFoRCE's writers and refiners are told of a dialect beside its card and nested columns."""


async def open_run(state: RunState, context: Context) -> Update:
    """Name the run, put the schema text where all nodes find it, and forget an earlier run of the thread.

    The update has only what changes, so that it can be read.
    """
    schema = context.resources.schema
    schema_ref = context.put(schema.text)
    context.trace.record(
        "schema",
        agent="catalog",
        run=context.trace.run_id,
        database=context.resources.catalog.name,
        dialect=context.dialect,
        tables=len(context.resources.catalog.tables),
        tokens=schema.tokens,
        whole=schema.whole,
        left_out=list(schema.left_out),
        notes=list(context.resources.catalog.notes),
        ref=schema_ref,
    )
    new, before = fresh(state.question, context.trace.run_id, schema_ref=schema_ref), vars(state)
    return {name: value for name, value in new.items() if (value or before[name]) and value != before[name]}


async def retrieve_documents(state: RunState, context: Context) -> Update:
    """External Knowledge Retriever: before the plan (ReCAPAgent-SQL, Table 1).

    A question's own documents are shown whole as far as ``document_tokens`` go: ReFoRCE's prompts hold all
    of its external knowledge (paper 000, equation 1). After them come the team's notes, verified questions
    like this one, and values that it seems to name.
    """
    documents, known = context.resources.documents, context.resources.knowledge
    values = await _values(state, context)
    explored = context.resources.explored
    triplets = await _triplets(state, context)
    if documents is None and known.empty and not values and not triplets and not explored.problems:
        return {}
    pairs = await _verified(state, context)
    found = [await _passages(each, state, context) for each in (documents, known.notes) if each]
    texts = [passages.text for passages in found]
    examples = {pair.file for pair in pairs}  # these are not documents: ``verified`` has them
    sources = [source for passages in found for source in passages.sources if source not in examples]
    texts += [knowledge_retriever.show_pairs(pairs, "\n".join(texts))] if pairs else []
    texts += [knowledge_retriever.show_triplets(triplets)] if triplets else []
    texts += [values]
    text = "\n\n".join(filter(None, texts))
    verified = [f"{' '.join(pair.question.split())} ({pair.credit})" for pair in pairs]
    context.trace.record(
        "retrieval",
        agent="knowledge_retriever",
        text=text,
        tokens=estimate_tokens(text),
        verified=[pair.file for pair in pairs],
        triplets=[triplet.id for triplet in triplets],
        sources=sources,
    )
    notes = [f"Documents: {note}" for note in (documents.notes if documents else [])]
    notes += [f"Knowledge base: {problem}" for problem in known.problems]
    notes += [f"Exploration: {problem}" for problem in explored.problems]
    ref = context.put(text) if text else ""
    return {"documents_ref": ref, "verified": verified, "sources": sources, "warnings": notes}


async def _passages(documents: Documents, state: RunState, context: Context) -> Passages:
    whole = context.options.document_tokens if documents.own else knowledge_retriever.WHOLE_TOKENS
    embedder = context.resources.embedder
    return await knowledge_retriever.retrieve(documents, state.question, whole=whole, embedder=embedder)


async def _values(state: RunState, context: Context) -> str:
    if not context.matched_values or not context.reads_unasked:
        return ""
    left = context.ledger.remaining_seconds()
    bound = None if left is None else left / 4
    most, scan = context.matched_values, context.options.max_bytes
    found, missing = await context.resources.matches(state.question, most, bound, scan)
    if found or missing:
        values = [f"{column}: {text}" for column, texts in found.items() for text in texts]
        context.trace.record("values", agent="knowledge_retriever", values=values, missing=missing)
    return knowledge_retriever.show_values(found, missing) if found else ""


async def _triplets(state: RunState, context: Context) -> list[Triplet]:
    """The explored queries most like the question, in recipes that show any, shorter than a verified one."""
    if not context.resources.explored.triplets:
        return []
    found = await asyncio.to_thread(
        context.resources.explored.similar,
        state.question,
        context.recipe.triplets,
        embedder=context.resources.embedder,
    )
    return [each for each in found if estimate_tokens(each.sql) <= knowledge_retriever.PAIR_TOKENS]


async def _verified(state: RunState, context: Context) -> list[VerifiedPair]:
    """The verified questions most like this one whose queries the schema still allows."""
    known, most = context.resources.knowledge, knowledge_retriever.PAIRS
    embedder = context.resources.embedder
    found = await asyncio.to_thread(known.similar, state.question, 3 * most, embedder=embedder)
    short = [pair for pair in found if estimate_tokens(pair.as_text()) <= knowledge_retriever.PAIR_TOKENS]
    fits = [pair for pair in short if isinstance(await context.database.judge(pair.sql), str)]
    return fits[:most]


async def link_large_schema(state: RunState, context: Context, *, max_steps: int) -> Update:
    """SchemaLinker on the whole question, only where schema and documents exceed ``link_above`` tokens."""
    if not await is_long(state, context, context.options.link_above):
        return {}
    found = await link_schema(state, context, max_steps=max_steps)
    linked = await asyncio.to_thread(linked_part, found, context)
    if linked is None:
        return {"warnings": ["The schema is large and linking found nothing; the whole schema was used."]}
    return show(context, *linked)


async def retrieve_syntax(state: RunState, context: Context) -> Update:
    """Syntax Retriever: after planning, when syntax is requested (ReCAPAgent-SQL, Table 1)."""
    topics = await asyncio.to_thread(syntax.topics, context.dialect)
    if not topics:
        return {}

    async def call(model: Model) -> dict[str, Any]:
        wanted = await syntax_retriever.request_syntax(
            model, context.dialect, state.question, state.steps or NO_PLAN, topics
        )
        sections = await asyncio.to_thread(syntax.lookup, context.dialect, wanted) if wanted else []
        return {"features": wanted, "text": "\n\n".join(section.text for section in sections)}

    found = await try_role(state, context, syntax_retriever.ROLE, call, event="syntax")
    if found is None:
        return {"warnings": lost(syntax_retriever.ROLE)}
    return {"syntax_ref": context.put(found["text"]) if found["text"] else ""}


async def show_guidance(_: RunState, context: Context) -> Update:
    """Show writers and refiners how values are matched and nested columns read (paper 000, Listing 1).

    The Listing's third point, how names are quoted, stands in the dialect's card.
    """
    text = await hints(context, MATCHING)
    return {"syntax_ref": context.put(text) if text else ""}


async def hints(context: Context, plain: Sequence[str] = column_explorer.PLAIN_TOPICS) -> str:
    """The dialect's reference on ``plain`` topics, and on nested columns where the catalog has any."""
    nested = any(column.fields for _, column in context.resources.catalog.columns())
    return await asyncio.to_thread(column_explorer.hints, context.dialect, nested=nested, plain=plain)
