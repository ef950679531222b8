"""The address and the key of an OpenAI-compatible endpoint, for chat models and embedding models alike."""

from __future__ import annotations

from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from pydantic import SecretStr

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.urls import mask_url

if TYPE_CHECKING:
    from quorum.tools.models.base import ModelSettings

OPENAI_URL = "https://api.openai.com/v1"


def address_of(url: str) -> str:
    """The endpoint's address for people: without password, key and whatever else is not the address.

    Raises:
        ConfigurationError: The URL is no address.
    """
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigurationError(f"base_url {mask_url(url)!r} is no address.", hint="Write https://host/v1.")
    netloc = parts.netloc.rpartition("@")[2]
    return parts._replace(netloc=netloc, query="", fragment="").geturl().rstrip("/")


def key_of(name: str, settings: ModelSettings, endpoint: str) -> SecretStr:
    """The key that was given; ``none`` for an endpoint that is not OpenAI's own.

    Args:
        name: The model's, for the error.

    Raises:
        ConfigurationError: OpenAI is asked without a key.
    """
    if settings.api_key is not None and settings.api_key.get_secret_value():
        return settings.api_key
    if endpoint.startswith(OPENAI_URL):
        raise ConfigurationError(
            f"{name} needs an API key.",
            hint="Set OPENAI_API_KEY, or OPENAI_BASE_URL for an endpoint that needs none.",
        )
    return SecretStr("none")  # local servers ask for no key, but the client insists on one
