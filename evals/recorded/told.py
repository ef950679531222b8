"""What the Judge of a replay is told of a question: by its suite, or as the prompts of its run told it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from quorum.agents.knowledge_retriever import retrieve
from quorum.agents.prompting import PromptContext
from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.running.databases import catalog_of
from quorum.evals.running.linking import golds_of
from quorum.graph.runs import RunFolder
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.compress import render
from quorum.knowledge.documents import Documents
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.linking import Linked, prune


@dataclass(frozen=True)
class Told:
    """What the Judge is told of a question beside the answers."""

    question: str
    context: PromptContext


Teller: TypeAlias = Callable[[str], Awaitable[Told]]
"""What is told of the question of an id; raises ``ConfigurationError`` where that is not known."""


class SuiteTeller:
    """Tells of a suite's questions: their text, the tables that candidates use, their documents.

    Args:
        queries: The SQL of a question's candidates.
        schema_tokens, document_tokens: As the options of a run.
    """

    def __init__(
        self,
        suite: Suite,
        queries: Callable[[str], Sequence[str]],
        *,
        schema_tokens: int,
        document_tokens: int,
    ) -> None:
        self._questions = {question.id: question for question in suite.questions}
        self._name, self._queries = suite.name, queries
        self._tokens, self._document_tokens = schema_tokens, document_tokens
        self._told: dict[str, asyncio.Task[Told]] = {}
        self._catalogs: dict[str, asyncio.Task[Catalog]] = {}

    async def __call__(self, id: str) -> Told:
        """What is told of a question.

        Raises:
            ConfigurationError: The suite does not have it.
            DatabaseUnavailable: Its schema cannot be read.
        """
        if id not in self._questions:
            raise ConfigurationError(
                f"What the question {id} says is not known: {self._name} does not have it.",
                hint="Name the gold inside the benchmark's folder, with its questions and schemas.",
            )
        if id not in self._told:
            self._told[id] = asyncio.ensure_future(self._tell(self._questions[id]))
        return await asyncio.shield(self._told[id])

    async def _tell(self, question: EvalQuestion) -> Told:
        if question.url not in self._catalogs:
            self._catalogs[question.url] = asyncio.ensure_future(catalog_of(question.url))
        whole = await asyncio.shield(self._catalogs[question.url])
        part = await asyncio.to_thread(_used_by, self._queries(question.id), whole)
        schema = await asyncio.to_thread(render, part, budget=self._tokens)
        documents = Documents.of(dict(question.knowledge), own=True)
        shown = await retrieve(documents, question.question, whole=self._document_tokens)
        name = question.shown_as or whole.name
        return Told(question.question, PromptContext(question.dialect, schema.text, shown.text, name))


async def told_by_run(folder: Path) -> Told:
    """What a run's prompts told of its question.

    Raises:
        ConfigurationError: Its trace does not say, as those of earlier versions.
        QuorumError: Its trace is damaged.
    """
    run = RunFolder(folder)
    found: dict[str, str] = {}
    for event in await asyncio.to_thread(lambda: list(run.events())):
        match event["kind"]:
            case "schema":
                found |= {name: str(event.get(name, "")) for name in ("database", "dialect", "ref")}
            case "schema_shown":
                found["ref"] = str(event.get("ref", ""))
            case "retrieval":
                found["documents"] = str(event.get("text", ""))
    if not found.get("ref"):
        raise ConfigurationError(
            f"{folder} does not say which schema its prompts showed.",
            hint="Its run was made by an earlier version: ask its questions anew, or leave the Judge out.",
        )
    context = PromptContext(
        found["dialect"], run.get(found["ref"]), found.get("documents", ""), found["database"]
    )
    return Told(str(run.meta()["question"]), context)


def _used_by(queries: Sequence[str], catalog: Catalog) -> Catalog:
    """The tables that any of the queries uses, whole; all where none can be read."""
    tables = [Linked(each.tables) for each in golds_of(queries, catalog)]
    return prune(catalog, *tables) if tables else catalog
