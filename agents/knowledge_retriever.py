"""External Knowledge Retriever: chunks of the user's documents (ReCAPAgent-SQL, section 3.3.2)."""

from __future__ import annotations

import asyncio

from quorum.knowledge.documents import Documents
from quorum.knowledge.index import Embedder

TOP_K = 5
WHOLE_FOLDER_TOKENS = 1_500  # below this the whole folder costs less than a wrong choice


async def retrieve(
    documents: Documents, question: str, *, top_k: int = TOP_K, embedder: Embedder | None = None
) -> str:
    """The chunks that bear on ``question``, each under a line that names its source.

    A folder below ``WHOLE_FOLDER_TOKENS`` is given whole. With an ``embedder`` the search is
    hybrid (lexical and dense), else lexical. No model is called.

    Returns:
        Text for the prompt; empty if nothing in the documents resembles the question.
    """
    whole = documents.all_text(limit=WHOLE_FOLDER_TOKENS)
    if whole is not None:
        return whole
    chunks = await asyncio.to_thread(documents.search, question, top_k, embedder=embedder)
    return "\n\n".join(f"[{chunk.source}]\n{chunk.text}" for chunk in chunks)
