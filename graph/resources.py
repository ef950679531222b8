"""What runs can share: an open database with its catalog, the models' clients and limits, documents.

One question opens its own and closes it; a benchmark or a server opens them once, so that its
questions share connections, the rate limit, what was learned about an endpoint, and the catalog.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeAlias, TypeVar, cast
from urllib.parse import quote

from pydantic import SecretStr

from quorum.agents.role import by_role
from quorum.graph.options import Options, RunOptions
from quorum.knowledge.catalog import Catalog, ColumnRef, Withheld
from quorum.knowledge.definitions import with_properties
from quorum.knowledge.demonstrations import Demonstrations
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.naming import write_full_name
from quorum.knowledge.schema.files import SchemaFiles
from quorum.knowledge.schema.render import SchemaText, render
from quorum.knowledge.search.columns import ColumnIndex
from quorum.knowledge.search.index import Embedder
from quorum.knowledge.search.values import ValueIndex
from quorum.knowledge.triplets import Explored, explored_folder
from quorum.knowledge.verified import KnowledgeBase
from quorum.tools import guard
from quorum.tools.database_facts import SECONDS, read_values
from quorum.tools.databases import connect_all
from quorum.tools.databases.base import Connector
from quorum.tools.databases.catalog_cache import CatalogCache
from quorum.tools.databases.embedded import with_file_descriptions
from quorum.tools.ledger import Budget
from quorum.tools.lint import Linter
from quorum.tools.models import Model, ModelSettings, check_priced, make_models
from quorum.tools.models.embeddings import CachedEmbedder, make_embedder
from quorum.tools.sample import sample_database, sample_documents
from quorum.tools.sql.linking import marks_hold
from quorum.tools.triplet_store import load_explored
from quorum.tools.urls import SAMPLE, locations, url_secrets

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel

S = TypeVar("S")
T = TypeVar("T")

IMPORTING = threading.Lock()
"""Held by a thread that imports large packages: two that meet in one could each find half of it."""


@dataclass(frozen=True)
class Resources:
    """Open handles that runs can share.

    Attributes:
        schema_tokens: Budget of ``schema``.
        models: Those that vote, by spec, in the order given; bound to no run's ledger yet.
        role_models: Those of roles that have their own, by role; bound to no run's ledger yet.
        knowledge: What was verified of this database.
        explored: What was learned of it by exploring; ``static`` by an exploration that ran nothing.
        secrets: Texts that no trace may hold.
        home: Folder in which indexes are kept; None keeps them in memory only.
    """

    connector: Connector
    catalog: Catalog
    linter: Linter
    schema: SchemaText
    schema_tokens: int
    files: SchemaFiles
    models: Mapping[str, Model]
    documents: Documents | None
    demonstrations: Demonstrations | None
    embedder: Embedder | None
    knowledge: KnowledgeBase
    explored: Explored = field(default_factory=Explored)
    static: Explored = field(default_factory=Explored)
    role_models: Mapping[str, Model] = field(default_factory=dict)
    secrets: tuple[str, ...] = ()
    _values: _Values = field(default_factory=lambda: _Values(), repr=False)
    _closing: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)

    @cached_property
    def columns(self) -> ColumnIndex:
        """The index of the columns of the catalog that agents see."""
        return ColumnIndex(self.catalog)

    async def matches(
        self, question: str, k: int, seconds: float | None = None
    ) -> tuple[dict[str, list[str]], list[str]]:
        """Values that the question seems to name, by column, and the columns of which values were not read.

        Columns are those of the catalog that agents see, spelt as SQL needs them.

        They are read when first asked for, and kept as long as the resources.

        Args:
            seconds: In which they are to be read; None for no other bound than ``read_values`` has.

        Raises:
            DatabaseUnavailable: The database is closed.
        """
        index = await asyncio.shield(self.read_values(seconds))
        dialect, spelt = self.catalog.dialect, dict[ColumnRef, str]()
        for table, column in self.catalog.columns():
            parts = [part for part in (table.database, table.schema, table.name) if part]
            spelt[table.full_name, column.name] = write_full_name([*parts, column.name], dialect)
        found = await asyncio.to_thread(index.match, question, k, spelt)
        by_column: dict[str, list[str]] = {}
        for match in found:
            by_column.setdefault(spelt[match.table, match.column], []).append(match.text)
        missing = sorted(spelt[place] for place in (index.unread | index.cut) if place in spelt)
        return by_column, missing

    def read_values(self, seconds: float | None = None) -> asyncio.Task[ValueIndex]:
        """Begin to read the values that ``matches`` looks at, unless that was begun; again if it failed."""
        task = self._values.reading
        if task is None or (task.done() and (task.cancelled() or task.exception())):
            bound = SECONDS if seconds is None else seconds
            task = asyncio.ensure_future(read_values(self.connector, self.linter.catalog, bound))
            self._values.reading = task
        return task

    def showing(self, part: Catalog) -> Self:
        """The same handles, with a part of the catalog for the agents; the lint keeps to the whole."""
        texts = self.documents.texts if self.documents else None
        schema = render(part, budget=self.schema_tokens)
        return replace(self, catalog=part, schema=schema, files=SchemaFiles(part, texts))

    async def renewed(self) -> Self:
        """Return the same handles, with the verified answers read again if their folder has changed.

        Raises:
            ConfigurationError: The folder cannot be read.
        """
        before, catalog = self.knowledge, self.catalog
        if not await asyncio.to_thread(before.changed):
            return self
        now = await asyncio.to_thread(KnowledgeBase.load, before.folder)
        known = now.of(catalog.name, catalog.dialect)
        if catalog.withheld:
            _, known = await asyncio.to_thread(_seen, catalog.withheld, None, known)
        return replace(self, knowledge=known)

    async def aclose(self) -> None:
        """Close the database and the models' clients; safe to call twice."""
        await self._closing.aclose()


OnOpen: TypeAlias = Callable[[Resources], Awaitable[None]]
"""Awaited as soon as a database is open, with resources that may have no models yet."""

OPENED_WITH = frozenset({
    "database", "catalog_age", "documents", "kb", "explored", "demonstrations", "models", "model_for",
    "base_url", "timeout", "requests_per_second", "prices", "schema_tokens", "embedding_model", "home",
    "show", "hide", "mask", "checkpoints",
})  # fmt: skip
"""Options that resources are opened with; runs that share them may differ in all others."""


@dataclass
class _Values:
    """The index of a database's values, which is made once for all runs that share it."""

    reading: asyncio.Task[ValueIndex] | None = None

    async def aclose(self) -> None:
        """Stop reading."""
        if self.reading is not None:
            self.reading.cancel()
            await asyncio.gather(self.reading, return_exceptions=True)


@dataclass(frozen=True)
class OpenModels:
    """The models of runs, bound to no ledger yet.

    Attributes:
        models, role_models: As ``Resources``.
        secrets: Texts that no trace may hold.
    """

    models: Mapping[str, Model]
    role_models: Mapping[str, Model]
    secrets: tuple[str, ...] = ()
    _closing: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)

    async def aclose(self) -> None:
        """Close the clients; safe to call twice."""
        await self._closing.aclose()


def secrets_of(options: RunOptions, api_key: str = "") -> tuple[str, ...]:
    """Texts that no trace may hold: the models' key, and what is secret in URLs."""
    settings = _settings(options, api_key)
    found = [settings.api_key.get_secret_value()] if settings.api_key else []
    for url in (settings.base_url, options.checkpoints, *options.database):
        found += url_secrets(url)
    return tuple(filter(None, found))


async def open_models(
    options: RunOptions,
    *,
    api_key: str = "",
    chat_models: Mapping[str, BaseChatModel] | None = None,
) -> OpenModels:
    """Open the models that ``options`` name; arguments and errors as ``open_resources``.

    Raises:
        ConfigurationError: A model or a price is wrong.
    """
    own = chat_models or {}
    async with AsyncExitStack() as stack:
        models = await asyncio.to_thread(_models, options, api_key, own)
        for spec, model in models.items():
            if spec not in own:
                stack.push_async_callback(model.aclose)
        return OpenModels(
            models={spec: models[spec] for spec in options.models},
            role_models={role: models[spec] for role, spec in by_role(options.model_for).items()},
            secrets=secrets_of(options, api_key),
            _closing=stack.pop_all(),
        )


async def open_resources(
    options: RunOptions,
    *,
    api_key: str = "",
    chat_models: Mapping[str, BaseChatModel] | None = None,
    models: OpenModels | None = None,
    on_open: OnOpen | None = None,
) -> Resources:
    """Open the models, the database and the documents that ``options`` name.

    Args:
        api_key: The models' key; without one, ``OPENAI_API_KEY`` counts.
        chat_models: LangChain chat models of your own, by the spec that ``options`` name.
        models: Models that are open already and stay so: several databases share them and one rate limit.
        on_open: Awaited as soon as the database is open, with resources that may have no models yet.

    Raises:
        ConfigurationError: A model, a price, a folder or a URL is wrong.
        DatabaseUnavailable: The database cannot be opened or read.
    """
    urls, documents = await asyncio.to_thread(_sources, options)
    few = options.demonstrations
    demonstrations = await asyncio.to_thread(Demonstrations.load, few) if few else None
    knowledge = await asyncio.to_thread(KnowledgeBase.load, options.kb) if options.kb else KnowledgeBase()
    async with AsyncExitStack() as stack:

        async def all_models() -> OpenModels:
            if models is not None:
                return models
            opened = await open_models(options, api_key=api_key, chat_models=chat_models)
            stack.push_async_callback(opened.aclose)
            return opened

        async def database() -> Resources:
            connector = await asyncio.to_thread(connect_all, urls)
            stack.push_async_callback(connector.close)
            await connector.open()
            catalog = await read_catalog(connector, documents, cache=catalog_cache(options))
            values, linter = _Values(), Linter(catalog)
            stack.push_async_callback(values.aclose)
            if connector.live:
                guard.prepare(linter)
            own, known = documents, knowledge.of(catalog.name, catalog.dialect)
            shots = demonstrations
            if withheld := catalog.withheld:
                own, known = await asyncio.to_thread(_seen, withheld, own, known)
                fits = [each for each in shots.items if not withheld.named(repr(each))] if shots else []
                shots = replace(shots, items=tuple(fits)) if shots else None
            opened = Resources(
                connector=connector,
                catalog=catalog,
                linter=linter,
                schema=await asyncio.to_thread(render, catalog, budget=options.schema_tokens),
                schema_tokens=options.schema_tokens,
                files=SchemaFiles(catalog, own.texts if own else None),
                models={},
                documents=own,
                demonstrations=shots,
                embedder=open_embedder(options, api_key=api_key),
                knowledge=known,
                explored=await asyncio.to_thread(_explored, options, catalog),
                static=await asyncio.to_thread(_explored, options, catalog, static=True),
                _values=values,
            )
            if on_open is not None:
                await on_open(opened)
            return opened

        # a provider's package takes as long to load as a database to open
        asked, opened = await both(all_models(), database())
        secrets = (*asked.secrets, *secrets_of(options, api_key))
        about: dict[str, Any] = {"models": asked.models, "role_models": asked.role_models}
        return replace(opened, **about, secrets=secrets, _closing=stack.pop_all())


async def both(first: Awaitable[S], second: Awaitable[T]) -> tuple[S, T]:
    """Run both at the same time and return their results; if both fail, raise the first one's error."""
    one, other = await asyncio.gather(first, second, return_exceptions=True)
    for result in (one, other):
        if isinstance(result, BaseException):
            raise result
    return cast("tuple[S, T]", (one, other))


def _seen(
    withheld: Withheld, documents: Documents | None, known: KnowledgeBase
) -> tuple[Documents | None, KnowledgeBase]:
    """Return documents and verified answers without what names a hidden table."""
    from quorum.tools.rights import seen_documents, seen_knowledge

    return documents and seen_documents(documents, withheld), seen_knowledge(known, withheld)


async def to_the_end(work: Callable[[], T], undo: Callable[[T], object]) -> T:
    """Run ``work`` in a thread; where this is cancelled, wait for the thread and undo what it made."""
    task = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        if task.exception() is None:
            undo(task.result())
        raise


def _sources(options: Options) -> tuple[list[str], Documents | None]:
    """The databases' URLs and the documents; the sample brings its own documents."""
    folder, home = options.documents, options.home
    if SAMPLE in options.database:
        folder = folder or sample_documents()
    urls = database_urls(options.database, home)
    return urls, Documents.load(folder) if folder else None


def database_urls(urls: Iterable[str], home: Path) -> list[str]:
    """The URLs that can be opened; the sample database is made where it is missing."""

    def sample() -> str:
        return f"sqlite:///{quote(str(sample_database(home / 'sample').resolve()))}"

    return [sample() if url == SAMPLE else url for url in urls]


def catalog_cache(options: Options) -> CatalogCache:
    """Return the cache of the catalogs of servers' databases, which keeps to the options' rights."""
    rules = tuple(options.show), tuple(options.hide), tuple(options.mask)
    rights = None
    if any(rules):
        from quorum.tools.rights import Rights

        rights = Rights(*rules, options.home)
    return CatalogCache(options.home / "catalogs", options.catalog_age, rights)


async def seen_catalog(connector: Connector, options: Options) -> Catalog:
    """Return the catalog without what documents say, but as far as the options' rights show it.

    Raises:
        ConfigurationError: The documents cannot be read, which may have tags for the rights.
        DatabaseUnavailable: The database cannot be read.
    """
    cache = catalog_cache(options)
    if cache.rights is None:
        return await cache.catalog(connector)
    _, documents = await asyncio.to_thread(_sources, options)
    return await read_catalog(connector, documents, cache=cache)


async def read_catalog(
    connector: Connector,
    documents: Documents | None,
    *,
    samples: int = 3,
    cache: CatalogCache | None = None,
) -> Catalog:
    """The catalog as agents see it, with what is said beside the database's file and defined in documents.

    Args:
        cache: Where a server's catalog is cached; without it the database is read.

    Raises:
        DatabaseUnavailable: The database cannot be read.
    """
    cached = cache is not None and cache.rights is None
    reading = cache.catalog(connector, samples=samples) if cache and cached else None
    catalog = await (reading or connector.catalog(samples=samples))
    catalog = await asyncio.to_thread(_described, catalog, connector, documents)
    return await cache.rights.seen(catalog, connector) if cache and cache.rights else catalog


def _described(catalog: Catalog, connector: Connector, documents: Documents | None) -> Catalog:
    catalog = with_file_descriptions(connector, catalog)
    return with_properties(catalog, documents.texts) if documents else catalog


def explored_in(root: Path, options: Options, catalog: Catalog, *, static: bool = False) -> Path:
    """The folder of the options' database below ``root``, whose catalog this is."""
    where = locations(database_urls(options.database, options.home))
    return explored_folder(root, catalog, where, static=static)


def _explored(options: RunOptions, catalog: Catalog, *, static: bool = False) -> Explored:
    """Return what was explored of tables that still have the columns that they had then."""
    if options.explored is None:
        return Explored()
    found = load_explored(explored_in(options.explored, options, catalog, static=static))
    fits = tuple(triplet for triplet in found.triplets if marks_hold(triplet.tables, catalog))
    if lost := len(found.triplets) - len(fits):
        found.problems.append(
            f"{lost} of {len(found.triplets)} explored triplets are of tables that changed."
        )
    return replace(found, triplets=fits)


def _settings(options: RunOptions, api_key: str) -> ModelSettings:
    """Return what holds for every model; a role has its own temperature (``Model.at``)."""
    key = api_key or os.environ.get("OPENAI_API_KEY", "")
    return ModelSettings(
        base_url=options.base_url or os.environ.get("OPENAI_BASE_URL", ""),
        api_key=SecretStr(key) if key else None,
        temperature=0.0,
        timeout=options.timeout,
        requests_per_second=options.requests_per_second,
        prices=options.prices,
    )


def _models(options: RunOptions, api_key: str, own: Mapping[str, BaseChatModel]) -> dict[str, Model]:
    specs = [own.get(spec, spec) for spec in options.specs]
    with IMPORTING:
        made = make_models(specs, settings=_settings(options, api_key))
    check_priced(made, Budget(max_usd=options.max_usd))
    return dict(zip(options.specs, made, strict=True))


def open_embedder(options: RunOptions, *, api_key: str = "") -> CachedEmbedder | None:
    """The embedding model that ``options`` name; None if they name none.

    Raises:
        ConfigurationError: The model has no name, or needs a key that is not there.
    """
    if not options.embedding_model:
        return None
    return make_embedder(options.embedding_model, _settings(options, api_key), options.home)
