"""External Knowledge Retriever: chunks of the user's documents (ReCAPAgent-SQL, section 3.3.2).

Ours: verified questions with their queries, and values of the database that the question may name.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from quorum.agents.prompting import prompts
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.search.index import Embedder
from quorum.knowledge.triplets import Triplet
from quorum.knowledge.verified import VerifiedPair

TOP_K = 5
PAIRS = 3
"""Verified questions that prompts show, the most similar ones."""
TRIPLETS = 3
"""Explored queries that prompts show, the most similar ones."""
MISSING = 10
"""Columns that a prompt names because not all of their values are known."""
PAIR_TOKENS = 1_500
"""Of one of them at most; longer ones are not shown."""
WHOLE_TOKENS = 1_500  # documents below this cost less whole than a wrong choice


@dataclass(frozen=True)
class Passages:
    """What of documents a prompt shows.

    Attributes:
        text: Empty for nothing.
        sources: Each passage's file and line with the headings above it; of whole documents their names.
    """

    text: str = ""
    sources: tuple[str, ...] = ()


async def retrieve(
    documents: Documents,
    question: str,
    *,
    whole: int = WHOLE_TOKENS,
    top_k: int = TOP_K,
    embedder: Embedder | None = None,
) -> Passages:
    """The chunks that bear on ``question``, each under a line that names its source.

    Documents of at most ``whole`` tokens, all together, are given whole. With an ``embedder`` the search is
    hybrid (lexical and dense), else lexical. No model is called.

    Nothing is found if nothing in the documents resembles the question.
    """
    if (text := documents.all_text(limit=whole)) is not None:
        return Passages(text, tuple(documents.texts))
    chunks = await asyncio.to_thread(documents.search, question, top_k, embedder=embedder)
    shown = "\n\n".join(f"[{chunk.source}]\n{chunk.text}" for chunk in chunks)
    return Passages(shown, tuple(f"{chunk.source} {chunk.heading}".strip() for chunk in chunks))


def show_values(columns: Mapping[str, Sequence[str]], missing: Sequence[str]) -> str:
    """Values that the question may name, by column, as text for the prompt.

    Args:
        missing: Columns of which not all values are known; the first few are named.
    """
    quoted = {column: [_literal(text) for text in texts] for column, texts in columns.items()}
    return prompts().render("values", {"columns": quoted, "missing": list(missing[:MISSING])})


def _literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


def show_triplets(triplets: Sequence[Triplet]) -> str:
    """Explored queries with the questions that they answer, as text for the prompt."""
    return prompts().render("explored", {"triplets": list(triplets)})


def show_pairs(pairs: Sequence[VerifiedPair], told: str = "") -> str:
    """Verified questions with their queries, as text for the prompt; without notes that ``told`` has."""
    fresh = [replace(pair, note="") if pair.note and pair.note in told else pair for pair in pairs]
    return prompts().render("verified", {"pairs": fresh})
