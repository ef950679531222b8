"""Going on with a run: what it keeps to itself, what may be given anew, what must be given again."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quorum.graph.trace import REDACTED
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings
from quorum.tools.urls import mask_url

if TYPE_CHECKING:
    from quorum.graph.options import RunOptions

ANEW = ("max_calls", "max_usd", "deadline", "base_url", "timeout", "requests_per_second", "prices")
"""Limits and the way to the endpoint: flags that may be given anew, and then count."""

_NOT_KEPT = {*ANEW, "api_key", "home"}
_FLAGS = {"database": "--db", "models": "--model", "documents": "--docs", "base_url": "--base-url"}


def resumed_options(meta: dict[str, Any], settings: Settings) -> RunOptions:
    """The run's own options (``meta`` is its ``run.json``), with what is given anew.

    Raises:
        ConfigurationError: A flag asks for something that the run keeps to itself, or a URL that
            was kept without its password is not given again.
    """
    from quorum.graph.options import RunOptions

    kept = meta.get("options")
    if not isinstance(kept, dict) or not meta.get("question"):
        raise ConfigurationError("The run's run.json lacks its question or its options.", hint="Ask anew.")
    options = RunOptions.from_dict(kept)
    given = {name for name, source in settings.provenance().items() if source == "flag"}
    wrong = given - _NOT_KEPT - ({"database"} if REDACTED in options.database else set())
    if wrong:
        names = ", ".join(f"{name} ({_FLAGS[name]})" if name in _FLAGS else name for name in sorted(wrong))
        raise ConfigurationError(
            f"A run goes on with what it was asked with; it keeps its own {names}.",
            hint=f"Leave that out. What may be given anew: {', '.join(ANEW)}, api_key.",
        )
    for name in given.intersection(ANEW):
        setattr(options, name, getattr(settings, name))
    for name in ("database", "base_url"):
        if REDACTED in getattr(options, name):
            setattr(options, name, _given_again(name, getattr(options, name), settings))
    options.home = str(settings.home.absolute())
    return options


def _given_again(name: str, kept: str, settings: Settings) -> str:
    """The URL with its password; it must be the same URL."""
    given = getattr(settings, name)
    if not given:
        raise ConfigurationError(
            f"The run's {name} held a password, which is not kept: {mask_url(kept)}.",
            hint=f"Give it again with {_FLAGS[name]}, QUORUM_{name.upper()} or `{name}` in quorum.toml.",
        )
    if mask_url(_redacted(given, settings)) != mask_url(kept):
        raise ConfigurationError(
            f"The run's {name} is {mask_url(kept)}, not {mask_url(given)}.", hint="Give it as it was."
        )
    return str(given)


def _redacted(url: str, settings: Settings) -> str:
    for secret in sorted(settings.secrets(), key=len, reverse=True):
        url = url.replace(secret, REDACTED)
    return url
