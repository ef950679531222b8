"""A run's surroundings: plain options in, live handles out.

``open_context`` is the one function that turns ``RunOptions`` into a ``Context``; the front door,
the benchmarks and Studio all come through it.
"""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from quorum.agents.prompting import PromptContext
from quorum.graph.options import Options, RunOptions
from quorum.graph.recipes.recipe import Recipe
from quorum.graph.resources import OnOpen, Resources, both, open_resources, secrets_of, to_the_end
from quorum.graph.runs import Event, RunFolder, new_run_id
from quorum.graph.state import VERSION, SharedState
from quorum.graph.stopping import Stopping, find_stopping
from quorum.graph.trace import Trace
from quorum.graph.values import ALWAYS, NEVER
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.admission import estimates_bytes
from quorum.tools.databases.base import Connector
from quorum.tools.execute import Database, QueryCache
from quorum.tools.experts import ExpertLedger
from quorum.tools.garbage import rare_collections
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models import Model, check_priced

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


LONGEST_QUESTION = 20_000
"""Characters. Every prompt of a run holds the question."""


@dataclass(frozen=True)
class Context:
    """Live handles of one run; built once, shared by all its nodes.

    Attributes:
        models: Those that vote, by spec, in the order given, bound to this run's ledger and trace.
        role_models: Those of roles that have their own, by role, bound likewise.
        weights: The experts' weights as the run found them; empty for a single model.
        resumed: The run was begun by another process.
        owned: True when the graph itself opened it (Studio) and so closes it.
        session: Id of this opening; a resumed run has another one.
        bounded_cache: Outcomes of queries of ``bounded``: each text runs once for all candidates.
    """

    options: RunOptions
    recipe: Recipe
    resources: Resources
    database: Database
    models: Mapping[str, Model]
    role_models: Mapping[str, Model]
    weights: Mapping[str, float]
    ledger: Ledger
    trace: Trace
    resumed: bool = False
    owned: bool = False
    session: str = field(default_factory=lambda: uuid4().hex)
    bounded_cache: QueryCache = field(default_factory=QueryCache, repr=False)
    _closing: AsyncExitStack = field(default_factory=AsyncExitStack, repr=False)
    _texts: dict[str, str] = field(default_factory=dict, repr=False)

    @property
    def dialect(self) -> str:
        """sqlglot's name of the database's dialect."""
        return self.resources.catalog.dialect

    @property
    def live(self) -> bool:
        """True if queries can run; False where only the schema is available."""
        return self.database.connector.live

    @property
    def bounded(self) -> Database:
        """The database for queries of which few rows are shown: outcomes are cut, in a cache of their own."""
        from quorum.tools.results.excerpt import MAX_ROWS

        limits = replace(self.database.limits, rows=min(MAX_ROWS, self.database.limits.rows))
        return replace(self.database, limits=limits, cache=self.bounded_cache)

    @property
    def votes(self) -> int:
        """Candidates at most; each model writes one at least."""
        return self.options.votes or max(self.recipe.votes, len(self.models))

    @property
    def matched_values(self) -> int:
        """Return how many values of the database its prompts show at most."""
        return matched_values(self.options, self.recipe, self.database.connector)

    @property
    def strategy(self) -> str:
        """The strategy of the vote; for ``auto`` of both ``majority`` for one model, else ``wma``."""
        named = [name for name in (self.options.strategy, self.recipe.strategy) if name != "auto"]
        return named[0] if named else "wma" if len(self.models) > 1 else "majority"

    @property
    def stopping(self) -> Stopping:
        """When enough candidates have voted."""
        named = self.options.stopping
        return find_stopping(self.recipe.stopping if named == "auto" else named)

    @property
    def temperature(self) -> float:
        """The temperature of candidates that are sampled."""
        given = self.options.temperature
        return self.recipe.temperature if given is None else given

    @property
    def demonstration(self) -> bool:
        """True if the rule-based offline model takes part."""
        asked = (*self.models.values(), *self.role_models.values())
        return any(model.backend.demonstration for model in asked)

    def put(self, text: str) -> str:
        """Keep a text for later nodes; returns its reference for the state.

        Secrets are removed in the trace only; prompts of this process see the text as it is.
        """
        ref = self.trace.put(text)
        self._texts[ref] = text
        return ref

    async def text(self, ref: str) -> str:
        """The text behind a reference; empty for an empty one."""
        if ref and ref not in self._texts:
            self._texts[ref] = await asyncio.to_thread(self.trace.get, ref)
        return self._texts[ref] if ref else ""

    async def prompt(self, state: SharedState) -> PromptContext:
        """The part of the prompt that all roles and candidates of the question share."""
        return PromptContext(
            dialect=self.dialect,
            database=self.resources.catalog.name,
            schema=await self.text(state.shown_ref),
            documents=await self.text(state.documents_ref),
            house=getattr(self.recipe, "prompts", "house") == "house",
            question=state.question,
            expected_format=state.expected_format,
        )

    async def aclose(self) -> None:
        """Close the trace, and the resources unless they are shared; safe to call twice."""
        await self._closing.aclose()


async def open_context(
    options: RunOptions,
    recipe: Recipe | Callable[[], Recipe],
    question: str,
    *,
    resume: str = "",
    api_key: str = "",
    listener: Callable[[Event], None] | None = None,
    chat_models: Mapping[str, BaseChatModel] | None = None,
    resources: Resources | Callable[[OnOpen], Awaitable[Resources]] | None = None,
    owned: bool = False,
    run_id: str = "",
    shared: Ledger | None = None,
    meta: Mapping[str, Any] | None = None,
) -> Context:
    """Open everything that a run needs.

    The run's folder is made first: a start that is interrupted leaves a run that can be resumed. A failure
    leaves nothing behind, but for a run with a lease.

    Args:
        recipe: The one that ``options`` name, with their switches (``quorum.graph.recipes.find_recipe``); or
            what loads it, which is called in a thread while the resources open.
        run_id: Of a new run; without it the run gets one that sorts by time.
        resume: Id of an interrupted run that goes on; its ledger continues.
        api_key, chat_models: As ``open_resources``.
        listener: Hears every event of the trace, as it happens.
        resources: Shared resources, which stay open, or what opens them; by default the run opens and closes
            its own.
        shared: The ledger of several runs, whose budget holds for all of them together.
        meta: Kept in a new run's ``run.json``.

    Raises:
        ConfigurationError: An option, a model or a folder is wrong, the question is too long, or the run that
            is to go on was begun by another version.
        DatabaseUnavailable: The database cannot be opened or read.
    """
    _check_length(question)
    secrets = resources.secrets if isinstance(resources, Resources) else secrets_of(options, api_key)
    trace = await to_the_end(
        lambda: _trace(options, question, run_id, resume, secrets, listener, meta), Trace.close
    )
    async with AsyncExitStack() as stack:
        await stack.enter_async_context(_closing(trace, new=not resume))
        stack.enter_context(rare_collections())
        ledger = await asyncio.to_thread(trace.ledger) if resume else Ledger()
        ledger.shared = shared
        ledger.budget = Budget(options.max_calls, options.max_usd, options.deadline, options.max_run_bytes)
        loading = asyncio.ensure_future(_loaded(recipe))

        async def on_open(found: Resources) -> None:
            shown = matched_values(options, await loading, found.connector)
            if shown and found.knowledge.exact(question) is None:
                found.read_values(seconds_for_values(ledger))

        async def opened() -> Resources:
            if isinstance(resources, Resources):
                await on_open(resources)
                return resources
            if resources is not None:
                return await resources(on_open)
            made = await open_resources(options, api_key=api_key, chat_models=chat_models, on_open=on_open)
            stack.push_async_callback(made.aclose)
            return made

        loaded, handles = await both(loading, opened())
        if resources is not None:  # opened for runs that may have had no such limit
            check_priced(
                (*handles.models.values(), *handles.role_models.values()), Budget(max_usd=options.max_usd)
            )
        several = len(handles.models) > 1
        known = experts_in(options.home)
        weights = await asyncio.to_thread(known.weights, list(handles.models)) if several else {}
        return Context(
            options=options,
            recipe=loaded,
            resources=handles,
            database=_database(options, handles, ledger, trace),
            models=_bound(handles.models, ledger, trace),
            role_models=_bound(handles.role_models, ledger, trace),
            weights=weights,
            ledger=ledger,
            trace=trace,
            resumed=bool(resume),
            owned=owned,
            _closing=stack.pop_all(),
        )


async def _loaded(recipe: Recipe | Callable[[], Recipe]) -> Recipe:
    return recipe if isinstance(recipe, Recipe) else await asyncio.to_thread(recipe)


def matched_values(options: RunOptions, recipe: Recipe, connector: Connector) -> int:
    """Return how many values of the database prompts show at most.

    It is 0 where reading them costs, or where the user wants to approve each query.
    """
    unasked = connector.live and not connector.bills and options.approve != ALWAYS
    given = recipe.matched_values if options.matched_values is None else options.matched_values
    return given if unasked else 0


def seconds_for_values(ledger: Ledger) -> float | None:
    """Return a quarter of the time that is left to the run; None without a deadline."""
    left = ledger.remaining_seconds()
    return None if left is None else left / 4


@asynccontextmanager
async def _closing(trace: Trace, *, new: bool) -> AsyncIterator[None]:
    """Close the trace; a new run that an error, which is no interruption, keeps from beginning is gone.

    One with a lease has failed, or is another process's: others know of it.
    """
    gone = False
    try:
        yield
    except Exception as error:
        trace.over, gone = new, new and not trace.lease
        if new and trace.lease:
            trace.record("failed", agent="run", error=type(error).__name__, message=str(error))
        raise
    finally:
        await trace.aclose()
        if gone:
            await asyncio.to_thread(shutil.rmtree, trace.folder)


def unkept(connector: Connector, options: Options) -> list[str]:
    """Name the limits on bytes that have no effect, as the database does not estimate what queries read."""
    by_bytes = options.approve not in (NEVER, ALWAYS)
    given = {"max_bytes": options.max_bytes, "max_run_bytes": options.max_run_bytes}
    given |= {f"approve={options.approve}": 0 if by_bytes else None}
    if not connector.live or estimates_bytes(connector):
        return []
    told = f"{connector.dialect or 'the engine'} does not tell what queries would read"
    return [f"{name} has no effect here: {told}." for name, value in given.items() if value is not None]


def _check_length(question: str) -> None:
    if len(question) > LONGEST_QUESTION:
        raise ConfigurationError(
            f"The question has {len(question):,} characters; {LONGEST_QUESTION:,} is the most.",
            hint="Ask in a few sentences, and put what explains them into documents.",
        )


def _database(options: RunOptions, resources: Resources, ledger: Ledger, trace: Trace) -> Database:
    catalog, approver = resources.catalog, None
    if options.approve != NEVER:
        from quorum.graph.approval import Approvals

        approver = Approvals(options.approve, catalog.name, catalog.dialect, trace)
    return Database(
        connector=resources.connector,
        catalog=catalog,
        linter=resources.linter,
        limits=options.query_limits,
        ledger=ledger,
        record=trace.record,
        folder=trace.results,
        recall=trace.recorded_query,
        approver=approver,
    )


def _bound(models: Mapping[str, Model], ledger: Ledger, trace: Trace) -> dict[str, Model]:
    run: dict[str, Any] = {"ledger": ledger, "record": trace.record, "recall": trace.recorded_call}
    return {name: model.at(**run) for name, model in models.items()}


def experts_in(home: Path) -> ExpertLedger:
    """The expert weights kept under ``home``."""
    return ExpertLedger(home / "experts.json")


def _trace(
    options: RunOptions,
    question: str,
    run_id: str,
    resume: str,
    secrets: Sequence[str],
    listener: Callable[[Event], None] | None,
    meta: Mapping[str, Any] | None,
) -> Trace:
    run_id, lease = run_id or new_run_id(), None
    about = {**(meta or {}), "question": question, "options": options.as_dict(), "state": VERSION}
    if resume:
        found = RunFolder.open(options.home, resume)
        _check_version(found)
        if "thread" in found.meta():
            from quorum.graph.leases import lease_of

            lease = lease_of(options.checkpoints, found)
    elif options.checkpoints:
        from quorum.graph.leases import leases_at, new_thread

        lease = leases_at(options.checkpoints).take(new_thread(run_id))
        about["thread"] = lease.run
    given: dict[str, Any] = {"redact": secrets, "listener": listener, "lease": lease}
    try:
        if resume:
            return Trace.resume(options.home, resume, **given)
        return Trace.create(options.home, run_id, meta=about, **given)
    except BaseException:
        if lease:
            lease.release(ended=not resume, answered=False)
        raise


def _check_version(run: RunFolder) -> None:
    if (run.checkpoint.exists() or "thread" in run.meta()) and run.meta().get("state") != VERSION:
        raise ConfigurationError(
            f"The run {run.run_id} was begun by another version of Quorum and cannot go on.",
            hint="Ask its question again; its trace can still be read.",
        )
