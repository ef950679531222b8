"""Why a request got no reply: the kinds of failure, and the client's exceptions explained for people."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any
from urllib.parse import urljoin, urlsplit

from quorum.tools.models.pace import retry_after
from quorum.tools.urls import REDACTED, without_header_values

LATER = "Try again later, or ask for less at once (votes, requests_per_second)."
_TOO_LONG = "Give the schema fewer tokens, or use a model with a longer context."
_LONGEST, _SHOWN = 4_000, 400
"""Characters of an endpoint's words that are searched for secrets, and that are shown."""
_NOT_THERE = {"ConnectError", "ConnectTimeout", "ProxyError", "UnsupportedProtocol", "ConnectionError"}
_BROKEN_OFF = {"APIConnectionError", "ReadError", "WriteError", "RemoteProtocolError"}


class FailureKind(StrEnum):
    """Reasons for which a try gets no reply."""

    RATE = "rate"  # 429
    SERVER = "server"  # 5xx, or the connection broke
    UNREACHABLE = "unreachable"  # no connection at all
    TIMEOUT = "timeout"  # silence
    ENDLESS = "endless"  # bytes without end
    BROKEN = "broken"  # an answer that is no chat completion
    REQUEST = "request"  # 400, 413, 422: what was asked for
    TOO_LONG = "too_long"  # the prompt, for this model
    DENIED = "denied"  # the key, the model's name, the address, the quota


@dataclass(frozen=True)
class NoReply:
    """A try that got no reply, as a value.

    Attributes:
        message: What happened, for people; never holds a key.
        hint: What to do about it.
        retry_after: Seconds that the endpoint asks to wait; None if it does not say.
        parameter: The request's parameter that was refused, if the endpoint names it.
    """

    kind: FailureKind
    message: str
    hint: str = ""
    retry_after: float | None = None
    parameter: str = ""

    def tries(self, max_retries: int, *, answered: bool = False) -> int:
        """Return the number of further tries that make sense: few if the endpoint never answered or is slow.

        Args:
            answered: The endpoint has answered before, so the failure may pass.
        """
        most = {
            FailureKind.RATE: max_retries,
            FailureKind.SERVER: max_retries,
            FailureKind.UNREACHABLE: max_retries if answered else 1,
            FailureKind.TIMEOUT: 1,
            FailureKind.BROKEN: 2,
        }
        return min(max_retries, most.get(self.kind, 0))


class NotSupported(Exception):
    """The model's class has no such way to structured replies.

    Attributes:
        parameter: The parameter of OpenAI's requests that corresponds to it.
    """

    def __init__(self, parameter: str, why: str) -> None:
        super().__init__(sentence("The model's class does not support it", why or "not implemented"))
        self.parameter = parameter


@dataclass(frozen=True)
class Explainer:
    """Turns exceptions of a provider's client into failures.

    It judges by status and class name, which the exceptions of all providers' packages have in common.

    Attributes:
        endpoint: The address, or the provider's name.
        timeout: Seconds of silence after which the client gives up.
        secrets: Texts that no message may show.
    """

    endpoint: str
    model: str
    timeout: float
    secrets: tuple[str, ...] = field(default=(), repr=False)
    key_hint: str = "Is the API key right, and may it use this model?"
    address_hint: str = ""

    def failure(self, error: Exception) -> NoReply:
        """Explain an exception; secrets, and headers that an endpoint echoes, are masked."""
        found = self._meaning(error)
        text = shorten(found.message, _LONGEST)
        for secret in self.secrets:
            text = text.replace(secret, REDACTED) if len(secret) > 4 else text
        return replace(found, message=shorten(without_header_values(text), _SHOWN))

    def _meaning(self, error: Exception) -> NoReply:
        if isinstance(error, NotSupported):
            return NoReply(FailureKind.REQUEST, str(error), parameter=error.parameter)
        for cause in causes(error):
            if status := _status_of(cause):
                return self._refusal(cause, status)
        names, root = {type(cause).__name__ for cause in causes(error)}, [*causes(error)][-1]
        why = str(root) or type(root).__name__
        if names & _NOT_THERE:
            hint = "Is the address right, the server running, the network up?"
            return NoReply(FailureKind.UNREACHABLE, sentence(f"No connection to {self.endpoint}", why), hint)
        if any("Timeout" in name for name in names):
            text = f"{self.endpoint} was silent for {self.timeout:g} s."
            return NoReply(FailureKind.TIMEOUT, text, "Allow more time (timeout) or try again later.")
        if names & _BROKEN_OFF:
            text = sentence(f"The connection to {self.endpoint} broke", why)
            return NoReply(FailureKind.SERVER, text, LATER)
        return self._no_completion(error)

    def _no_completion(self, error: Exception) -> NoReply:
        """Explain an exception that is neither a refusal nor a connection error."""
        return NoReply(FailureKind.BROKEN, f"{type(error).__name__}: {error}")

    def _refusal(self, error: BaseException, status: int) -> NoReply:
        """Explain an HTTP status; the client's own class or code counts where it is clearer."""
        from langchain_core.exceptions import ContextOverflowError

        code, response, wait = getattr(error, "code", ""), getattr(error, "response", None), None
        headers = getattr(response, "headers", None) or {}
        kind, what, hint = FailureKind.REQUEST, "The request was refused", self.address_hint
        if status < 400:  # who is there must see neither prompt nor key
            there = urlsplit(urljoin(self.endpoint, str(headers.get("location", ""))))
            address = f"{there.scheme}://{there.netloc.rpartition('@')[2]}{there.path}"
            text = f"{self.endpoint} redirects to {address}, which was not asked and got nothing."
            return NoReply(FailureKind.DENIED, text, "If that is meant, give the new address as base_url.")
        if code == "insufficient_quota":  # comes as 429, but waiting does not help
            kind, what, hint = FailureKind.DENIED, "The account has no credit", "Check its plan and billing."
        elif status in (408, 409, 425, 429):
            kind, what, hint = FailureKind.RATE, "The endpoint refuses for now", LATER
        elif status >= 500:
            kind, what, hint = FailureKind.SERVER, "The endpoint failed", LATER
        elif status in (401, 403):
            kind, what, hint = FailureKind.DENIED, "The endpoint denies access", self.key_hint
        elif status == 404:
            kind, what = FailureKind.DENIED, f"Not found at {self.endpoint}"
            hint = f"Is the model called {self.model!r} there? {self.address_hint}".strip()
        elif isinstance(error, ContextOverflowError) or code == "context_length_exceeded":
            kind, what, hint = FailureKind.TOO_LONG, "The prompt is too long", _TOO_LONG
        elif status in (400, 422):
            hint = ""
        if kind in (FailureKind.RATE, FailureKind.SERVER):
            wait = retry_after(headers.get("retry-after"))
        text = sentence(f"{what} ({status})", _words_of(error))
        return NoReply(kind, text, hint, wait, str(getattr(error, "param", "") or ""))


def _status_of(error: BaseException) -> int | None:
    """Return the HTTP status in a client's exception; None if there is none."""
    response = getattr(error, "response", None)
    found = (getattr(error, "status_code", None), getattr(response, "status_code", None))
    for value in (*found, getattr(error, "code", None)):
        if isinstance(value, int) and 300 <= value < 600:
            return value
    return None


def _words_of(error: BaseException) -> str:
    """Return the endpoint's own words."""
    body: Any = getattr(error, "body", None)
    for _ in range(2):  # some clients keep the whole body, some the error in it
        if isinstance(body, dict):
            body = body.get("message") or body.get("error")
    return str(body or getattr(error, "message", "") or error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """Yield the error and what led to it, outermost first."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def sentence(what: str, why: str) -> str:
    """Return ``what: why.``"""
    return f"{what}: {why.strip().rstrip('.')}."


def shorten(text: str, most: int = 300) -> str:
    """Return the text as one line of at most ``most`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}…"
