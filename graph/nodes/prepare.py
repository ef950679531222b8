"""Before any SQL: open the run, retrieve documents and syntax, link a schema that is too large."""

from __future__ import annotations

import asyncio

from quorum.agents import knowledge_retriever, schema_linker, syntax_retriever
from quorum.graph.context import Context
from quorum.graph.nodes import planning
from quorum.graph.nodes.models import first_available
from quorum.graph.nodes.step import Update
from quorum.graph.state import RunState
from quorum.knowledge import syntax
from quorum.knowledge.errors import MalformedReply


async def open_run(_: RunState, context: Context) -> Update:
    """Name the run, put the schema text where all nodes find it, and forget an earlier run of the thread."""
    schema = context.resources.schema
    context.trace.record(
        "schema",
        agent="catalog",
        run=context.trace.run_id,
        database=context.resources.catalog.name,
        dialect=context.dialect,
        tables=len(context.resources.catalog.tables),
        tokens=schema.tokens,
        left_out=list(schema.left_out),
        notes=list(context.resources.catalog.notes),
    )
    return {
        "run_id": context.trace.run_id,
        "plan": planning.NO_PLAN,
        "material": {},
        "plan_rounds": 0,
        "critique": "",
        "dealt": 0,
        "candidates": None,
        "warnings": None,
        "vote": {},
        "explored": False,
        "stopped_by": "",
        "schema_ref": context.put(schema.text),
        "documents_ref": "",
        "syntax_ref": "",
    }


async def retrieve_documents(state: RunState, context: Context) -> Update:
    """External Knowledge Retriever: before the plan (ReCAPAgent-SQL, Table 1)."""
    documents = context.resources.documents
    if documents is None:
        return {}
    embedder = context.resources.embedder
    text = await knowledge_retriever.retrieve(documents, state["question"], embedder=embedder)
    context.trace.record("retrieval", agent="knowledge_retriever", text=text)
    notes = [f"Documents: {note}" for note in documents.notes]
    return {"documents_ref": context.put(text) if text else "", "warnings": notes}


async def link_large_schema(state: RunState, context: Context, *, max_steps: int) -> Update:
    """SchemaLinker on the whole question, only where the schema text exceeds ``link_above`` tokens."""
    if context.resources.schema.tokens <= context.options.link_above:
        return {}
    try:
        linked = await first_available(
            context,
            lambda model: schema_linker.link_schema(
                model,
                context.dialect,
                state["question"],
                context.resources.files,
                max_steps=max_steps,
            ),
        )
    except MalformedReply:
        linked = ""
    context.trace.record("linking", agent="schema_linker", linked_schema=linked)
    if not linked:
        return {"warnings": ["The schema is large and linking found nothing; the whole schema was used."]}
    return {"schema_ref": context.put(linked)}


async def retrieve_syntax(state: RunState, context: Context) -> Update:
    """Syntax Retriever: after planning, when syntax is requested (ReCAPAgent-SQL, Table 1)."""
    topics = await asyncio.to_thread(syntax.topics, context.dialect)
    if not topics:
        return {}
    steps = state["plan"]["steps"]
    try:
        wanted = await first_available(
            context,
            lambda model: syntax_retriever.request_syntax(
                model, context.dialect, state["question"], steps, topics
            ),
        )
    except MalformedReply:
        return {"warnings": ["The Syntax Retriever's reply could not be used; no reference was given."]}
    sections = await asyncio.to_thread(syntax.lookup, context.dialect, wanted) if wanted else []
    text = "\n\n".join(section.text for section in sections)
    context.trace.record("syntax", agent="syntax_retriever", features=wanted, text=text)
    return {"syntax_ref": context.put(text) if text else ""}
