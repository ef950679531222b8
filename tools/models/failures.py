"""Why a request gave no reply, and what the exceptions of the providers' clients have in common."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class FailureKind(StrEnum):
    """Why a try gave no reply."""

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
class Failure:
    """A try that gave no reply, as a value.

    Attributes:
        message: What happened, for people; never holds a key.
        hint: What to do about it.
        retry_after: Seconds that the endpoint asks to wait; None where it does not say.
        parameter: The request's parameter that was refused, where the endpoint names it.
    """

    kind: FailureKind
    message: str
    hint: str = ""
    retry_after: float | None = None
    parameter: str = ""

    def tries(self, max_retries: int, *, answered: bool = False) -> int:
        """Number of further tries that make sense; few where the endpoint never answered or is too slow.

        Args:
            answered: The endpoint has answered before, so the failure may pass.
        """
        match self.kind:
            case FailureKind.RATE | FailureKind.SERVER:
                return max_retries
            case FailureKind.UNREACHABLE if answered:
                return max_retries
            case FailureKind.UNREACHABLE | FailureKind.TIMEOUT:
                return min(1, max_retries)
            case FailureKind.BROKEN:
                return min(2, max_retries)
            case _:
                return 0


def status_of(error: BaseException) -> int | None:
    """The HTTP status in a client's exception; None where there is none."""
    response = getattr(error, "response", None)
    found = (getattr(error, "status_code", None), getattr(response, "status_code", None))
    for value in (*found, getattr(error, "code", None)):
        if isinstance(value, int) and 400 <= value < 600:
            return value
    return None


def said_in(error: BaseException) -> str:
    """The endpoint's own words."""
    body: Any = getattr(error, "body", None)
    for _ in range(2):  # some clients keep the whole body, some the error in it
        if isinstance(body, dict):
            body = body.get("message") or body.get("error")
    return str(body or getattr(error, "message", "") or error)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The error and what led to it, outermost first."""
    seen: BaseException | None = error
    while seen is not None:
        yield seen
        seen = seen.__cause__ or seen.__context__


def sentence(what: str, why: str) -> str:
    """``what: why.``"""
    return f"{what}: {why.strip().rstrip('.')}."


def shorten(text: str, most: int = 300) -> str:
    """One line of at most ``most`` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= most else f"{flat[:most]}…"
