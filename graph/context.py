"""A run's surroundings: plain options in, live handles out.

``RunOptions`` is the graph's context schema: plain values that LangGraph Studio shows as a form.
``open_context`` is the one function that turns them into a ``Context``; the front door, the
benchmarks and Studio all come through it.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from weakref import WeakKeyDictionary

from pydantic import SecretStr

from agents.base import PromptContext
from graph.consensus import find_strategy
from graph.recipes import find_recipe
from graph.recipes.recipe import Recipe
from graph.runs import Event
from graph.trace import Trace
from knowledge.compress import SchemaText, render
from knowledge.documents import Documents
from knowledge.errors import ConfigurationError, ModelUnavailable
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

SAMPLE = "sample"
"""As a database: the project's own sample, built on first use."""


@dataclass(eq=False)
class RunOptions:
    """Options of a run. Every field is plain and has a default, so Studio can show a form.

    Attributes:
        database: URL of the database, or ``sample``.
        switches: The recipe's switches and limits that are set otherwise.
        models: Specs ``provider:name``; several share the candidates between them as experts.
        votes: Candidates in all.
        documents: Folder of documents that define business terms; empty for none.
        strategy: Consensus strategy; ``auto`` is ``majority`` for one model, ``wma`` for several.
        temperature: Of every model's candidates after its first, which is drawn at 0.
        max_calls, max_usd, deadline: Hard limits (calls, dollars, seconds); None for no limit.
        max_rows, max_bytes, query_seconds: Limits of one query.
        schema_tokens: Budget for descriptions and samples in the schema text.
        link_above: Schema texts of more tokens than this are linked before planning.
        retrieval: ``lexical``, or ``hybrid`` with ``embedding_model``.
        home: Folder for runs, the sample database and expert weights.
    """

    database: str = SAMPLE
    recipe: str = "recap"
    switches: dict[str, Any] = field(default_factory=dict)
    models: list[str] = field(default_factory=lambda: ["offline"])
    votes: int = 3
    documents: str = ""
    strategy: str = "auto"
    temperature: float = 0.7
    seed: int = 0
    base_url: str = ""
    timeout: float = 120.0
    requests_per_second: float | None = None
    max_calls: int | None = None
    max_usd: float | None = None
    deadline: float | None = None
    max_rows: int = 100_000
    max_bytes: int = 64 * 2**20
    query_seconds: float = 60.0
    schema_tokens: int = 30_000
    link_above: int = 60_000
    retrieval: str = "lexical"
    embedding_model: str = ""
    prices: dict[str, dict[str, float]] = field(default_factory=dict)
    home: str = ".quorum"

    def __post_init__(self) -> None:
        if self.votes < 1:
            raise ConfigurationError(f"votes is {self.votes}; at least one candidate is needed.")
        if not self.models:
            raise ConfigurationError("No model is configured.", hint="Name one, e.g. openai:gpt-4.1.")
        if self.retrieval not in ("lexical", "hybrid"):
            raise ConfigurationError(f"retrieval is {self.retrieval!r}; it is lexical or hybrid.")
        if self.retrieval == "hybrid" and not self.embedding_model:
            raise ConfigurationError("Hybrid retrieval needs embedding_model, a sentence-transformers model.")
        if self.strategy != "auto":
            find_strategy(self.strategy)
        self.models = list(dict.fromkeys(self.models))

    def api_key(self) -> str:
        """The models' key; not a field, so that no form, trace or checkpoint ever holds it."""
        return ""

    @classmethod
    def from_dict(cls, values: dict[str, Any]) -> RunOptions:
        """Options from ``run.json``; keys of other versions are left out."""
        known = {item.name for item in fields(cls)}
        return cls(**{key: value for key, value in values.items() if key in known})

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


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


_attached: WeakKeyDictionary[RunOptions, Context] = WeakKeyDictionary()
_own: OrderedDict[str, asyncio.Task[Context]] = OrderedDict()
"""Contexts that graphs opened for themselves, by run: an interrupted run finds its own again."""

MOST_OWN = 16
"""So many runs may stand interrupted in one process; the oldest is closed and opens anew when it goes on."""


def attach(options: RunOptions, context: Context) -> None:
    """Make ``context`` the one that nodes find for these very options."""
    _attached[options] = context


async def context_of(options: RunOptions, question: str, run_id: str = "") -> Context:
    """The context of the running graph; opened here if nobody attached one (Studio).

    Raises:
        ConfigurationError, DatabaseUnavailable: As ``open_context``.
    """
    if options in _attached:
        return _attached[options]
    if run_id not in _own:
        opening = open_context(options, question, resume=run_id, api_key=options.api_key(), owned=True)
        if not run_id:
            context = await opening
            attach(options, context)
            _own[context.trace.run_id] = asyncio.ensure_future(_ready(context))
            await _close_oldest()
            return context
        _own[run_id] = asyncio.ensure_future(opening)
    context = await asyncio.shield(_own[run_id])
    attach(options, context)
    return context


async def close_own(context: Context) -> None:
    """Close a context that the graph itself opened; does nothing to others."""
    if context.owned:
        _own.pop(context.trace.run_id, None)
        await context.aclose()


async def _ready(context: Context) -> Context:
    return context


async def _close_oldest() -> None:
    while len(_own) > MOST_OWN:
        _, oldest = _own.popitem(last=False)
        await (await oldest).aclose()


async def first_available(models: list[Model], call: Callable[[Model], Any]) -> Any:
    """``await call(model)`` with the first model whose endpoint answers.

    Raises:
        ModelUnavailable: None does; the last one's reason.
    """
    for model in models[:-1]:
        try:
            return await call(model)
        except ModelUnavailable:
            continue
    return await call(models[-1])
