"""Who may ask what: callers, their rights, and what they may spend."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Limits:
    """What a caller may use in a calendar month, and how often it may call; None for no limit."""

    max_usd: float | None = None
    max_calls: int | None = None
    max_bytes: int | None = None
    per_minute: int | None = None


@dataclass(frozen=True)
class Caller:
    """Who asks.

    Attributes:
        name: Of the key; empty where the service asks for none.
        databases, schemas: That it may see; None for all.
    """

    name: str = ""
    databases: frozenset[str] | None = None
    schemas: frozenset[str] | None = None
    limits: Limits = Limits()
