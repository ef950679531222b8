"""From a string to a model: ``provider:name``."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models.base import Backend, ModelSettings
from quorum.tools.models.model import Model
from quorum.tools.models.pace import Paces, Timing
from quorum.tools.record import Recorder, no_record

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


@dataclass(frozen=True)
class Provider:
    """Where a provider's factory lies and what it needs.

    Attributes:
        factory: ``module:callable``, called with the name and the settings, returns a ``Backend``.
        package: The distribution to install where an import fails.
        example: What a user writes.
    """

    factory: str
    package: str
    example: str


PROVIDERS: Mapping[str, Provider] = {
    "openai": Provider("quorum.tools.models.openai_chat:OpenAIBackend", "langchain-openai", "openai:gpt-4.1"),
    "offline": Provider("quorum.tools.models.providers:offline", "langchain-core", "offline"),
    "replay": Provider("quorum.tools.models.replay:replay", "langchain-core", "replay:events.jsonl"),
    "scripted": Provider(
        "quorum.tools.models.scripted:scripted_file", "langchain-core", "scripted:replies.json"
    ),
}


def make_model(
    spec: str | BaseChatModel | Model,
    *,
    settings: ModelSettings | None = None,
    ledger: Ledger | None = None,
    record: Recorder | None = None,
    paces: Paces | None = None,
) -> Model:
    """Make the model that ``spec`` names.

    Imports the provider's package and reads certificates or files, so it may block for a second:
    from a coroutine, call it in a thread.

    Args:
        spec: ``provider:name`` (see ``PROVIDERS``), a LangChain chat model, or a Model, which is
            bound to this ledger and recorder and otherwise shared as it is.
        ledger: The run's ledger; a new one without limits if None.
        paces: Shared by models of one endpoint, so that they keep one rate together.

    Raises:
        ConfigurationError: The provider is unknown, its package is missing, or the name, the key or
            a file is.
    """
    if isinstance(spec, Model):
        return spec.at(ledger=ledger, record=record)
    settings = settings or ModelSettings()
    backend = _backend(spec, settings)
    return Model(
        backend=backend,
        ledger=Ledger() if ledger is None else ledger,
        record=no_record if record is None else record,
        paces=paces or Paces(Timing()),
        temperature=settings.temperature,
    )


def make_models(
    specs: Iterable[str | BaseChatModel | Model],
    *,
    settings: ModelSettings | None = None,
    ledger: Ledger | None = None,
    record: Recorder | None = None,
) -> tuple[Model, ...]:
    """The models of one run, sharing a ledger and, where they share an endpoint, its rate."""
    ledger, paces = ledger or Ledger(), Paces(Timing())
    return tuple(
        make_model(spec, settings=settings, ledger=ledger, record=record, paces=paces) for spec in specs
    )


def check_priced(models: Iterable[Model], budget: Budget) -> None:
    """Refuse a dollar limit that could not be kept.

    Raises:
        ConfigurationError: ``budget`` limits the dollars and a model's price is unknown.
    """
    unknown = sorted({model.name for model in models if model.backend.price is None})
    if budget.max_usd is not None and unknown:
        raise ConfigurationError(
            f"A limit of ${budget.max_usd:g} cannot be kept: the price of {', '.join(unknown)} is unknown.",
            hint="Give it in the settings (prices), or limit the calls instead (max_calls).",
        )


def _backend(spec: str | BaseChatModel, settings: ModelSettings) -> Backend:
    if not isinstance(spec, str):
        from quorum.tools.models.local import ForeignBackend
        from quorum.tools.models.scripted import ScriptedChatModel, scripted_backend

        if isinstance(spec, ScriptedChatModel):
            return scripted_backend(spec, settings)
        return ForeignBackend(spec, settings)
    name, _, rest = spec.strip().partition(":")
    provider = PROVIDERS.get(name)
    if provider is None:
        known = ", ".join(entry.example for entry in PROVIDERS.values())
        raise ConfigurationError(
            f"The model {spec!r} is not understood: there is no provider {name!r}.",
            hint=f"Write provider:name, for example {known}.",
        )
    module, _, attribute = provider.factory.partition(":")
    try:
        backend: Backend = getattr(import_module(module), attribute)(rest, settings)
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] == "quorum":
            raise  # a fault of ours, not a missing package
        raise ConfigurationError(
            f"The provider {name!r} needs a package that is not installed ({error.name}).",
            hint=f"Install it: pip install {provider.package}",
        ) from error
    return backend


def offline(name: str, settings: ModelSettings) -> Backend:
    """The rule-based demonstration model; it needs no key and no network."""
    if name not in ("", "demo"):
        raise ConfigurationError(f"There is no model offline:{name}.", hint="Write offline.")
    from quorum.tools.models.local import LocalBackend
    from quorum.tools.offline.model import OfflineChatModel

    backend = LocalBackend("offline:demo", OfflineChatModel(), settings)
    backend.demonstration = True
    return backend
