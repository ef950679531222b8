"""DraftLinker: drafts SQL against each part of a schema that is too large to be shown at once.

The tables that the drafts use are the linked schema: what a model reaches for when it writes says more
than what it claims to need. Ours, after SSEV's PreSQL, by which it links (paper 004, section 3.1.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from quorum.agents.base import ask, ask_each
from quorum.agents.role import Form, Role
from quorum.tools.models import Model


class ChunkDraft(Form):
    """A query over one part of the schema, or none."""

    missing: str = Field(
        default="", description="What tables of other parts must give, in one sentence; empty if nothing."
    )
    sql: str | None = Field(description="The draft; null if this part has nothing to do with the question.")


ROLE = Role("draft_linker", "DraftLinker", "drafts {sql}", ChunkDraft)


@dataclass(frozen=True)
class Drafting:
    """The drafts of a schema's parts.

    Attributes:
        drafts: SQL, one text for each part that offered something, in the parts' order.
        unread: Numbers of the parts, from 0, whose reply could not be read.
    """

    drafts: tuple[str, ...]
    unread: tuple[int, ...] = ()


async def draft_chunk(
    model: Model, dialect: str, question: str, schema: str, *, documents: str = ""
) -> ChunkDraft:
    """Draft SQL for ``question`` from one part of the schema."""
    return await ask(model, ROLE, dialect=dialect, question=question, schema=schema, documents=documents)


async def draft_chunks(
    model: Model, dialect: str, question: str, chunks: Sequence[str], *, documents: str = ""
) -> Drafting:
    """Draft against every part, some at a time; a malformed reply costs that part alone.

    Raises:
        ModelUnavailable, BudgetExceeded: As ``quorum.agents.base.ask``; the other calls are cancelled.
    """

    async def drafted(schema: str) -> ChunkDraft:
        return await draft_chunk(model, dialect, question, schema, documents=documents)

    replies = await ask_each(chunks, drafted)
    drafts = tuple(draft.sql.strip() for draft in replies if draft and draft.sql and draft.sql.strip())
    return Drafting(drafts, tuple(number for number, draft in enumerate(replies) if draft is None))
