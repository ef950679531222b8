"""From a string to a model: ``provider:name``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from quorum.knowledge.errors import ConfigurationError, install_command
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models.backend import Backend, ChatBackend, ModelSettings
from quorum.tools.models.failures import shorten
from quorum.tools.models.model import Model
from quorum.tools.models.pace import Paces, Timing
from quorum.tools.record import Recorder, no_record

if TYPE_CHECKING:
    from langchain_core.language_models import BaseChatModel


EXAMPLES = (
    "Write provider:name, for example openai:gpt-4.1, anthropic:claude-sonnet-4-5, ollama:qwen3, offline, "
    "replay:events.jsonl."
)


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
        spec: ``provider:name`` (see ``EXAMPLES``), a LangChain chat model, or a Model, which is
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
    specs: Iterable[str | BaseChatModel | Model], *, settings: ModelSettings | None = None
) -> tuple[Model, ...]:
    """Make the models of one run, which share a ledger and, at one endpoint, its rate."""
    ledger, paces = Ledger(), Paces(Timing())
    return tuple(make_model(spec, settings=settings, ledger=ledger, paces=paces) for spec in specs)


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
    """Make the backend; its module is imported here, because a provider's package takes up to a second."""
    if not isinstance(spec, str):
        from quorum.tools.models.scripted import ScriptedChatModel

        if isinstance(spec, ScriptedChatModel):
            return Backend(spec.source, spec, settings)
        return ChatBackend(spec, settings)
    provider, _, name = spec.strip().partition(":")
    match provider:
        case "openai":
            from quorum.tools.models.openai_chat import OpenAIBackend

            return OpenAIBackend(name, settings)
        case "offline" if name in ("", "demo"):
            from quorum.tools.offline.model import OfflineChatModel

            backend = Backend("offline:demo", OfflineChatModel(), settings)
            backend.demonstration = True
            return backend
        case "offline":
            raise ConfigurationError(f"There is no model offline:{name}.", hint="Write offline.")
        case "replay":
            from quorum.tools.models.scripted import replay

            return replay(name, settings)
    if name and provider.islower():
        return _langchain(provider, name, settings)
    raise ConfigurationError(
        f"The model {spec!r} is not understood: there is no provider {provider!r}, or no name behind it.",
        hint=EXAMPLES,
    )


def _langchain(provider: str, name: str, settings: ModelSettings) -> Backend:
    """Make a model of any provider that LangChain has a package for; that package's variable has the key."""
    from langchain.chat_models import init_chat_model

    limit: dict[str, Any] = (
        {} if settings.max_output_tokens is None else {"max_tokens": settings.max_output_tokens}
    )
    try:  # without retries: the one retry layer is Model.complete
        chat = init_chat_model(
            name, model_provider=provider, timeout=settings.timeout, max_retries=0, **limit
        )
    except ImportError as error:
        hint = re.sub(r"`pip install ([\w-]+)`", lambda found: install_command(found[1]), f"{error}.")
        raise ConfigurationError(
            f"The provider {provider!r} needs a package that is not installed.", hint=hint
        ) from error
    except Exception as error:  # no such provider, no key: the packages have no common root
        raise ConfigurationError(
            f"The model {provider}:{name} cannot be made: {shorten(str(error), 600)}", hint=EXAMPLES
        ) from error
    return ChatBackend(
        chat, settings, f"{provider}:{name}", {"temperature", "seed"} & type(chat).model_fields.keys()
    )
