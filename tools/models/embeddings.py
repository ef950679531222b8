"""Embedding models by name: ``openai:NAME`` at an OpenAI-compatible endpoint, else sentence-transformers."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.knowledge.search.index import Embedder, SentenceTransformerEmbedder
from quorum.tools.models.base import ModelSettings
from quorum.tools.models.embedding_cache import CachedEmbedder, unit_vectors
from quorum.tools.models.endpoint import OPENAI_URL, address_of, key_of
from quorum.tools.models.failures import sentence, shorten
from quorum.tools.models.pace import backoff, retry_after
from quorum.tools.urls import REDACTED, url_secrets, without_header_values

if TYPE_CHECKING:
    import httpx

    from quorum.knowledge.search.index import Vectors

OPENAI = "openai:"
BATCH = 256
"""Texts in one request, and between two times that the cache is written."""
REPLY_BYTES = 64 * 2**20  # 256 vectors of 3,072 numbers take 17 MB of JSON at most
LONGEST_WAIT = 120.0
"""Longest wait, in seconds, that an endpoint may ask for."""
CONNECT_SECONDS = 4.0

_LATER = "Try again later."


def make_embedder(name: str, settings: ModelSettings, home: Path) -> CachedEmbedder:
    """The embedding model of that name, which embeds no text twice.

    Args:
        name: ``openai:NAME``, or a sentence-transformers model by hub name or folder.
        home: Below it, in ``index/embeddings.sqlite``, vectors are kept.

    Raises:
        ConfigurationError: The model has no name, the endpoint no address, or OpenAI no key.
    """
    inner: Embedder
    if name.startswith(OPENAI):
        inner = OpenAIEmbedder(name.removeprefix(OPENAI), settings)
    else:
        inner = SentenceTransformerEmbedder(name)
    return CachedEmbedder(inner, home / "index" / "embeddings.sqlite", BATCH)


class OpenAIEmbedder:
    """A model behind ``POST /embeddings`` of an OpenAI-compatible endpoint; one request an ``encode``.

    Args:
        settings: Of which count the address, the key, ``timeout`` and ``max_retries``.
        sleep: Waits so many seconds.

    Raises:
        ConfigurationError: The model has no name, the endpoint no address, or OpenAI no key.
    """

    def __init__(
        self, model: str, settings: ModelSettings, *, sleep: Callable[[float], None] = time.sleep
    ) -> None:
        if not model:
            raise ConfigurationError(
                "The embedding model has no name.",
                hint="Write openai:NAME, e.g. openai:text-embedding-3-small.",
            )
        url = settings.base_url or OPENAI_URL
        self._model, self._settings, self._sleep = model, settings, sleep
        self._endpoint = address_of(url)
        self._key = key_of(f"{OPENAI}{model}", settings, self._endpoint)
        parts = urlsplit(url)
        self._url = parts._replace(path=f"{parts.path.rstrip('/')}/embeddings", fragment="").geturl()

    @property
    def name(self) -> str:
        """With the endpoint's address, for the same name may be another model elsewhere."""
        return f"{OPENAI}{self._model}" + ("" if self._endpoint == OPENAI_URL else f"@{self._endpoint}")

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See ``Embedder.encode``.

        Raises:
            ModelUnavailable: The endpoint cannot be reached, refuses, keeps failing, or sends no vectors.
        """
        sent = [text or " " for text in texts]  # an empty text is refused
        tries = 0
        while isinstance(outcome := self._once(sent), _Passing):
            if tries == self._settings.max_retries:
                raise self._error(outcome.message, outcome.hint)
            wait = backoff(tries, random.random()) if outcome.wait is None else outcome.wait
            self._sleep(min(wait, LONGEST_WAIT))
            tries += 1
        return outcome

    def _once(self, texts: list[str]) -> Vectors | _Passing:
        """One request; a failure that may pass as a value."""
        import httpx

        silence = self._settings.timeout
        limits = httpx.Timeout(silence, connect=min(CONNECT_SECONDS, silence))
        try:
            with (
                httpx.Client(timeout=limits) as client,  # follows no redirect: nobody else sees text or key
                client.stream("POST", self._url, headers=self._headers, json=self._body(texts)) as response,
            ):
                content = _read(response)
        except httpx.TimeoutException:
            return _Passing(f"{self._endpoint} was silent for {silence:g} s.", _LATER)
        except httpx.InvalidURL as error:
            raise self._error(f"base_url is no address: {error}.", "Write https://host/v1.") from None
        except httpx.HTTPError as error:
            why = sentence(f"No connection to {self._endpoint}", str(error) or type(error).__name__)
            return _Passing(why, "Is the address right, the server running, the network up?")
        if response.status_code == 200:
            return self._vectors(content, len(texts))
        return self._refused(response, content)

    @property
    def _headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self._key.get_secret_value()}"}

    def _body(self, texts: list[str]) -> dict[str, Any]:
        return {"model": self._model, "input": texts}

    def _refused(self, response: httpx.Response, content: bytes) -> _Passing:
        """What another status than 200 means.

        Raises:
            ModelUnavailable: It will not pass.
        """
        status, said = response.status_code, _said(content)
        if response.has_redirect_location:
            there = response.url.join(response.headers["location"])
            text = f"{self._endpoint} redirects to {there.scheme}://{there.host}, which got nothing."
            raise self._error(text, "If that is meant, give the new address as base_url.")
        passing = (status in (408, 409, 425, 429) or status >= 500) and "insufficient_quota" not in said
        what = "refuses for now" if status < 500 else "failed"
        if passing:
            wait = retry_after(response.headers.get("retry-after"))
            return _Passing(sentence(f"{self._endpoint} {what} ({status})", said), _LATER, wait)
        hints = {
            401: "Is the API key right (OPENAI_API_KEY), and may it use this model?",
            403: "Is the API key right (OPENAI_API_KEY), and may it use this model?",
            404: f"Is the model called {self._model!r} there? Is base_url right? It usually ends in /v1.",
        }
        raise self._error(sentence(f"{self._endpoint} refuses ({status})", said), hints.get(status, ""))

    def _vectors(self, content: bytes, count: int) -> Vectors:
        """The vectors of a reply.

        Raises:
            ModelUnavailable: They are not as many, not alike, or no numbers.
        """
        try:
            given = sorted(json.loads(content)["data"], key=lambda each: int(each["index"]))
            if [int(each["index"]) for each in given] != list(range(count)):
                raise ValueError(f"{len(given)} vectors for {count} texts")
            return unit_vectors([each["embedding"] for each in given])
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            why = f"{type(error).__name__}, {error}" if isinstance(error, KeyError) else str(error)
            text = sentence(f"{self._endpoint} sent something that is no list of embeddings", why)
            hint = "Is base_url right? It usually ends in /v1. Is this an embedding model?"
            raise self._error(text, hint) from None

    def _error(self, message: str, hint: str) -> ModelUnavailable:
        """For people; secrets that an endpoint echoes are masked."""
        for secret in (self._key.get_secret_value(), *url_secrets(self._settings.base_url)):
            message = message.replace(secret, REDACTED) if len(secret) > 4 else message
        text = f"The embedding model {OPENAI}{self._model} gave no vectors: {without_header_values(message)}"
        return ModelUnavailable(shorten(text, 500), hint=hint)


class _Passing:
    """A failure that may pass; ``wait`` is how many seconds the endpoint asks to wait, if it does."""

    def __init__(self, message: str, hint: str, wait: float | None = None) -> None:
        self.message, self.hint, self.wait = message, hint, wait


def _read(response: httpx.Response) -> bytes:
    """The whole reply, as far as it may be long: what is cut off is no JSON."""
    return b"".join(_up_to(response.iter_bytes(), REPLY_BYTES))


def _up_to(parts: Iterator[bytes], most: int) -> Iterator[bytes]:
    for part in parts:
        if (most := most - len(part)) < 0:
            return
        yield part


def _said(content: bytes) -> str:
    """The endpoint's own words, with the error's code."""
    try:
        error = json.loads(content)["error"]
        if not isinstance(error, dict):
            return shorten(str(error))
        return shorten(" ".join(str(error[name]) for name in ("message", "code") if error.get(name)))
    except (ValueError, KeyError, TypeError, RecursionError):
        return shorten(content[:1000].decode("utf-8", "replace")) or "no word"
