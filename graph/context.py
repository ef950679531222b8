"""A run's surroundings: plain options in, live handles out.

``open_context`` is the one function that turns ``RunOptions`` into a ``Context``; the front door,
the benchmarks and Studio all come through it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import quote

from pydantic import SecretStr

from agents.base import PromptContext
from graph.options import SAMPLE, RunOptions
from graph.recipes import find_recipe
from graph.recipes.recipe import Recipe
from graph.runs import Event
from graph.trace import Trace
from knowledge.compress import SchemaText, render
from knowledge.documents import Documents
from knowledge.index import Embedder, SentenceTransformerEmbedder
from knowledge.schema_files import SchemaFiles
from tools.databases import connect
from tools.execute import Database
from tools.ledger import Budget, Ledger
from tools.lint import Linter
from tools.models import Model, ModelSettings, check_priced, make_models
from tools.query import Limits
from tools.sample import sample_database, sample_documents
from tools.urls import url_secrets

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True)
class Context:
    """Live handles of one run; built once, shared by all its nodes.

    Attributes:
        models: By spec, in the order given.
        owned: True when the graph itself opened it (Studio) and so closes it.
    """

    options: RunOptions
    recipe: Recipe
    database: Database
    schema: SchemaText
    files: SchemaFiles
    models: dict[str, Model]
    documents: Documents | None
    embedder: Embedder | None
    ledger: Ledger
    trace: Trace
    owned: bool = False

    @property
    def dialect(self) -> str:
        return self.database.catalog.dialect

    @property
    def home(self) -> Path:
        """The folder for runs, the sample database and expert weights."""
        return Path(self.options.home)

    @property
    def demonstration(self) -> bool:
        """Whether the rule-based offline model takes part."""
        return any(spec.partition(":")[0] == "offline" for spec in self.models)

    def put(self, text: str) -> str:
        """Keep a text for later nodes; returns its reference for the state."""
        return self.trace.put(text)

    async def text(self, ref: str) -> str:
        """The text behind a reference; empty for an empty one."""
        return await self.trace.aget(ref) if ref else ""

    async def prompt(self, schema_ref: str, documents_ref: str) -> PromptContext:
        """The part of the prompt that all roles and candidates of the question share."""
        return PromptContext(
            dialect=self.dialect,
            database=self.database.catalog.name,
            schema=await self.text(schema_ref),
            documents=await self.text(documents_ref),
        )

    async def aclose(self) -> None:
        """Close the database, the models' clients and the trace; safe to call twice."""
        await self.database.connector.close()
        for model in self.models.values():
            await model.aclose()
        await self.trace.aclose()


async def open_context(
    options: RunOptions,
    question: str,
    *,
    resume: str = "",
    api_key: str = "",
    listener: Callable[[Event], None] | None = None,
    chat_models: Mapping[str, BaseChatModel] | None = None,
    owned: bool = False,
) -> Context:
    """Open everything that a run needs.

    Args:
        resume: Id of an interrupted run that goes on; its ledger continues.
        api_key: The models' key; without it the provider's own environment variable counts.
        listener: Hears every event of the trace, as it happens.
        chat_models: LangChain chat models of your own, by the spec that ``options.models`` names.

    Raises:
        ConfigurationError: An option, a model or a folder is wrong.
        DatabaseUnavailable: The database cannot be opened or read.
    """
    home, recipe = Path(options.home), find_recipe(options.recipe, options.switches)
    url, documents = await asyncio.to_thread(_sources, options, home)
    redact = [*url_secrets(url), *url_secrets(options.base_url), *([api_key] if api_key else [])]
    trace = await asyncio.to_thread(_open_trace, home, options, question, resume, redact, listener)
    try:
        ledger = await asyncio.to_thread(_ledger, options, trace, bool(resume))
        models = await asyncio.to_thread(_models, options, api_key, ledger, trace, chat_models or {})
        embedder = SentenceTransformerEmbedder(options.embedding_model) if options.embedding_model else None
        database = await _database(options, url, ledger, trace)
    except BaseException:
        await trace.aclose()
        raise
    catalog = database.catalog
    schema = await asyncio.to_thread(render, catalog, budget=options.schema_tokens)
    return Context(
        options=options,
        recipe=recipe,
        database=database,
        schema=schema,
        files=SchemaFiles(catalog, documents.texts if documents else None),
        models=models,
        documents=documents,
        embedder=embedder,
        ledger=ledger,
        trace=trace,
        owned=owned,
    )


def _sources(options: RunOptions, home: Path) -> tuple[str, Documents | None]:
    """The database's URL and the documents; the sample brings its own documents."""
    url, folder = options.database, options.documents
    if url == SAMPLE:
        url = f"sqlite:///{quote(str(sample_database(home / 'sample').resolve()))}"
        folder = folder or str(sample_documents())
    return url, Documents.load(Path(folder), cache=home / "index") if folder else None


def _open_trace(
    home: Path,
    options: RunOptions,
    question: str,
    resume: str,
    redact: list[str],
    listener: Callable[[Event], None] | None,
) -> Trace:
    if resume:
        return Trace.resume(home, resume, redact=redact, listener=listener)
    meta = {"question": question, "options": options.as_dict()}
    return Trace.create(home, meta=meta, redact=redact, listener=listener)


def _ledger(options: RunOptions, trace: Trace, resumed: bool) -> Ledger:
    budget = Budget(options.max_calls, options.max_usd, options.deadline)
    if not resumed:
        return Ledger(budget)
    spent = trace.usage_so_far()
    return Ledger(budget, spent_seconds=spent.seconds, total=spent.total, by_agent=spent.by_agent)


def _models(
    options: RunOptions, api_key: str, ledger: Ledger, trace: Trace, own: Mapping[str, BaseChatModel]
) -> dict[str, Model]:
    settings = ModelSettings(
        base_url=options.base_url,
        api_key=SecretStr(api_key) if api_key else None,
        temperature=0.0,
        timeout=options.timeout,
        requests_per_second=options.requests_per_second,
        prices=options.prices,
    )
    specs = [own.get(spec, spec) for spec in options.models]
    made = make_models(specs, settings=settings, ledger=ledger, record=trace.record)
    check_priced(made, ledger.budget)
    return dict(zip(options.models, made, strict=True))


async def _database(options: RunOptions, url: str, ledger: Ledger, trace: Trace) -> Database:
    connector = await asyncio.to_thread(connect, url)
    await connector.open()
    try:
        catalog = await connector.catalog()
        linter = await asyncio.to_thread(Linter, catalog)
    except BaseException:
        await connector.close()
        raise
    return Database(
        connector=connector,
        catalog=catalog,
        linter=linter,
        limits=Limits(options.max_rows, options.max_bytes, options.query_seconds),
        ledger=ledger,
        record=trace.record,
    )
