"""Before any SQL: open the run, retrieve documents and syntax, link a schema that is too large."""

from __future__ import annotations

import asyncio

from agents import knowledge_retriever, schema_linker, syntax_retriever
from graph.context import Context
from graph.nodes import planning
from graph.nodes.models import first_available
from graph.nodes.step import Update
from graph.state import RunState
from knowledge import syntax
from knowledge.errors import MalformedReply


async def open_run(_: RunState, context: Context) -> Update:
    """Name the run and put the schema text where all nodes find it."""
    schema = context.schema
    context.trace.record(
        "schema",
        agent="catalog",
        database=context.database.catalog.name,
        dialect=context.dialect,
        tables=len(context.database.catalog.tables),
        tokens=schema.tokens,
        left_out=list(schema.left_out),
        notes=list(context.database.catalog.notes),
    )
    skipped = context.documents.notes if context.documents else ()
    return {
        "run_id": context.trace.run_id,
        "plan": planning.NO_PLAN,
        "schema_ref": context.put(schema.text),
        "documents_ref": "",
        "syntax_ref": "",
        "warnings": [f"Documents: {note}" for note in skipped],
    }


async def retrieve_documents(state: RunState, context: Context) -> Update:
    """External Knowledge Retriever: before the plan (ReCAPAgent-SQL, Table 1)."""
    if context.documents is None:
        return {}
    text = await knowledge_retriever.retrieve(context.documents, state["question"], embedder=context.embedder)
    context.trace.record("retrieval", agent="knowledge_retriever", text=text)
    return {"documents_ref": context.put(text) if text else ""}


async def link_large_schema(state: RunState, context: Context) -> Update:
    """SchemaLinker on the whole question, only where the schema text exceeds ``link_above`` tokens."""
    if context.schema.tokens <= context.options.link_above:
        return {}
    try:
        linked = await first_available(
            context,
            lambda model: schema_linker.link_schema(model, context.dialect, state["question"], context.files),
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
