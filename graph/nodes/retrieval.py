"""External Knowledge Retriever: passages of the user's documents (ReCAPAgent-SQL, section 3.3.2).

Ours: the team's notes, verified questions with their queries, explored queries, and values of the database
that the question may name. A question that a person has verified is answered by its query, which runs again.
No model is asked.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from quorum.agents.prompting import prompts
from quorum.graph.ballots import Cluster, Vote
from quorum.graph.context import Context, seconds_for_values
from quorum.graph.nodes.results import keep_result
from quorum.graph.nodes.step import Update
from quorum.graph.state import Candidate, RunState
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.tokens import estimate_tokens
from quorum.knowledge.triplets import Triplet
from quorum.knowledge.verified import VerifiedPair
from quorum.tools.execute import execute
from quorum.tools.query import QueryError
from quorum.tools.sql import fixed_dates
from quorum.tools.sql.linking import changed_tables

TOP_K = 5
PAIRS = 3
"""Verified questions that prompts show, the most similar ones."""
TRIPLETS = 3
"""Explored queries that prompts show, the most similar ones."""
PAIR_TOKENS = 1_500
"""Of one of them at most; longer ones are not shown."""
WHOLE_TOKENS = 1_500  # documents below this cost less whole than a wrong choice


async def retrieve_knowledge(state: RunState, context: Context) -> Update:
    """Answer a question that a person has verified; else retrieve what helps to answer it."""
    verified = await recall(state, context)
    if "vote" in verified:
        return verified
    found = await retrieve_documents(state, context)
    documents = await context.text(found.get("documents_ref", ""))
    long = context.resources.schema.whole + estimate_tokens(documents) > context.options.link_above
    warnings = [*verified.get("warnings", ()), *found.get("warnings", ())]
    return found | ({"long": long} if long else {}) | ({"warnings": warnings} if warnings else {})


async def retrieve_documents(state: RunState, context: Context) -> Update:
    """External Knowledge Retriever: before the plan (ReCAPAgent-SQL, Table 1).

    A question's own documents are shown whole as far as ``document_tokens`` go: ReFoRCE's prompts hold all
    of its external knowledge, the E of its equation 1. After them come the team's notes, verified questions
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
    texts = [text for text, _ in found]
    examples = {pair.file for pair in pairs}  # these are not documents: ``verified`` has them
    sources = [source for _, named in found for source in named if source not in examples]
    if pairs:
        told = "\n".join(texts)
        fresh = [replace(pair, note="") if pair.note and pair.note in told else pair for pair in pairs]
        texts.append(prompts().render("verified", {"pairs": fresh}))
    texts += [prompts().render("explored", {"triplets": triplets})] if triplets else []
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


async def _passages(documents: Documents, state: RunState, context: Context) -> tuple[str, Sequence[str]]:
    """Return what bears on the question, each passage under a line that names its source, and the sources.

    Few documents are shown whole, whatever the question. Of others at most ``TOP_K`` chunks are found, none
    if nothing resembles the question; with an embedder the search is hybrid (lexical and dense).
    """
    whole = context.options.document_tokens if documents.own else WHOLE_TOKENS
    if (text := documents.all_text(limit=whole)) is not None:
        return text, tuple(documents.texts)
    embedder = context.resources.embedder
    chunks = await asyncio.to_thread(documents.search, state.question, TOP_K, embedder=embedder)
    shown = "\n\n".join(f"[{chunk.source}]\n{chunk.text}" for chunk in chunks)
    return shown, [f"{chunk.source} {chunk.heading}".strip() for chunk in chunks]


async def _values(state: RunState, context: Context) -> str:
    if not context.matched_values:
        return ""
    bound = seconds_for_values(context.ledger)
    found, missing = await context.resources.matches(state.question, context.matched_values, bound)
    if found or missing:
        values = [f"{column}: {text}" for column, texts in found.items() for text in texts]
        context.trace.record("values", agent="knowledge_retriever", values=values, missing=missing)
    if not found:
        return ""
    quoted = {column: [text.replace("'", "''") for text in texts] for column, texts in found.items()}
    return prompts().render("values", {"columns": quoted})


async def _triplets(state: RunState, context: Context) -> list[Triplet]:
    """Return the explored queries most like the question, in recipes that show any."""
    if not context.resources.explored.triplets:
        return []
    found = await asyncio.to_thread(
        context.resources.explored.similar,
        state.question,
        context.recipe.triplets,
        embedder=context.resources.embedder,
    )
    return [each for each in found if estimate_tokens(each.sql) <= PAIR_TOKENS]


async def _verified(state: RunState, context: Context) -> list[VerifiedPair]:
    """Return the verified questions most like this one whose queries the schema still allows."""
    known, embedder = context.resources.knowledge, context.resources.embedder
    if known.empty:
        return []
    found = await asyncio.to_thread(known.similar, state.question, 3 * PAIRS, embedder=embedder)
    short = [pair for pair in found if estimate_tokens(pair.as_text()) <= PAIR_TOKENS]
    fits = [pair for pair in short if isinstance(await context.database.judge(pair.sql), str)]
    return fits[:PAIRS]


VERIFIED_CONFIDENCE = 0.98
"""Of an answer that a person has verified: by rule, for no recorded vote shows it."""

VERIFIED = "verified"
CHANGED = "The query {} ({}) was not run: the columns of {} have changed since. Keep it again, or correct it."
FIXED = "The verified query holds fixed dates ({}): it answers for them, whenever it is asked."


async def recall(state: RunState, context: Context) -> Update:
    """Run the query of a verified question of the same words; where it fails now, that is said."""
    pair = context.resources.knowledge.exact(state.question) if context.live else None
    if pair is None:
        return {}
    if changed := await asyncio.to_thread(changed_tables, pair, context.resources.linter.catalog):
        return {"warnings": [CHANGED.format(pair.credit, pair.file, ", ".join(changed))]}
    left = context.ledger.remaining_seconds()
    limits = context.database.limits.within(None if left is None else left / 2)
    database = replace(context.database, limits=limits)
    outcome = await execute(database, pair.sql, agent="recall", candidate=VERIFIED)
    if isinstance(outcome, QueryError):
        return {"warnings": [f"The query {pair.credit} fails now ({pair.file}): {outcome.message}"]}
    context.trace.record("recall", agent="recall", file=pair.file, credit=pair.credit)
    result = await keep_result(outcome, context.trace.folder)
    candidate = Candidate(
        id=VERIFIED,
        model=VERIFIED,
        temperature=0.0,
        seed=context.options.seed,
        sql=pair.sql,
        result=result,
        error=None,
    )
    cluster = Cluster(result.fingerprint, result.fingerprint, (VERIFIED,), (VERIFIED,), 1.0, 1.0)
    vote = Vote(
        winner=VERIFIED,
        clusters=(cluster,),
        share=1.0,
        cast=1,
        experts=1,
        decided="verified",
        decision=f"This very question was {pair.credit}; its query was run anew ({pair.file}).",
        confidence=VERIFIED_CONFIDENCE,
    )
    dates = await asyncio.to_thread(fixed_dates, pair.sql, context.dialect)
    return {
        "candidates": [candidate],
        "vote": vote,
        "warnings": [FIXED.format(", ".join(dates))] if dates else [],
    }
