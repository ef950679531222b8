"""Who may ask what: callers by their keys, and what they may spend in a month."""

from __future__ import annotations

import fcntl
import hashlib
import secrets
import tomllib
from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from threading import Lock
from typing import Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from quorum.graph.values import Bytes
from quorum.knowledge.errors import ConfigurationError, first_in_words
from quorum.serve.question import Refused

SHARES = 20
"""A question that names no limit of its own claims this part of a month's, but ``LEAST`` of what is left."""
LEAST = {"max_usd": 0.25, "max_calls": 30, "max_run_bytes": 2**30}
KINDS = {"max_usd": "dollars", "max_calls": "model calls", "max_run_bytes": "bytes"}
"""Limits of a month, each by the option that limits a question."""


@dataclass(frozen=True)
class Limits:
    """Amounts that a caller may use in a calendar month (UTC), and calls a minute; None for no limit."""

    max_usd: float | None = None
    max_calls: int | None = None
    max_bytes: int | None = None
    per_minute: int | None = None

    def of_month(self) -> dict[str, float | None]:
        """Return the limits of a month by the names of ``KINDS``."""
        return dict(zip(KINDS, (self.max_usd, self.max_calls, self.max_bytes), strict=True))


@dataclass(frozen=True)
class Caller:
    """A caller and its rights.

    Attributes:
        name: Of the key; empty where the service asks for none.
        databases, schemas: That it may see; None for all.
    """

    name: str = ""
    databases: frozenset[str] | None = None
    schemas: frozenset[str] | None = None
    limits: Limits = Limits()


class _Key(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    name: str = Field(pattern="^[A-Za-z0-9_-]{1,40}$")
    hash: str = Field(pattern="^[0-9a-f]{64}$")
    databases: frozenset[str] | None = None
    schemas: frozenset[str] | None = None
    max_usd: float | None = Field(None, gt=0)
    max_calls: int | None = Field(None, ge=1)
    max_bytes: Bytes | None = Field(None, ge=1)
    per_minute: int | None = Field(None, ge=1)


class Keys:
    """The keys of a file, which is read again when it has changed; it holds their SHA-256 only.

    Raises:
        ConfigurationError: The file cannot be read, or an entry is wrong.
    """

    def __init__(self, file: Path) -> None:
        self.file, self._read, self._callers = file, 0, dict[str, Caller]()
        self._load()

    def named(self, name: str) -> Caller | None:
        """Return the caller of that name."""
        self.caller("")  # reads the file again if it has changed
        return next((each for each in self._callers.values() if each.name == name), None)

    def caller(self, key: str) -> Caller | None:
        """Return who has a key; None for nobody."""
        with suppress(ConfigurationError, OSError):  # while it is being edited, what was read before counts
            if self.file.stat().st_mtime_ns != self._read:
                self._load()
        return self._callers.get(hash_of(key))

    def _load(self) -> None:
        try:
            self._read = self.file.stat().st_mtime_ns
            entries = tomllib.loads(self.file.read_text(encoding="utf-8")).get("key", [])
            found = [_Key.model_validate(each) for each in entries]
        except (OSError, ValueError) as error:
            said = first_in_words(error) if isinstance(error, ValidationError) else str(error)
            raise ConfigurationError(f"Cannot read the keys in {self.file}: {said}.") from None
        if len({each.name for each in found}) < len(found):
            raise ConfigurationError(f"Two keys in {self.file} have the same name.")
        about = ("max_usd", "max_calls", "max_bytes", "per_minute")
        self._callers = {
            each.hash: Caller(
                each.name, each.databases, each.schemas, Limits(*(getattr(each, name) for name in about))
            )
            for each in found
        }


def hash_of(key: str) -> str:
    """Return the hash of a key: its 256 random bits need no slow one."""
    return hashlib.sha256(key.encode(errors="replace")).hexdigest()


def add_key(file: Path, name: str) -> str:
    """Add a key to a file, which is made if need be, and return it: it is never shown again.

    Raises:
        ConfigurationError: The name is taken or malformed, or the file cannot be written.
    """
    key = f"qk_{secrets.token_urlsafe(32)}"
    try:
        entry = _Key(name=name, hash=hash_of(key))
    except ValidationError as error:
        raise ConfigurationError(f"{name!r} cannot name a key: {first_in_words(error)}.") from None
    if file.exists() and name in {each.name for each in Keys(file)._callers.values()}:
        raise ConfigurationError(
            f"There is a key {name!r} already.", hint=f"Take it out of {file}, or name another."
        )
    try:
        file.touch(mode=0o600)
        with file.open("a", encoding="utf-8") as out:
            out.write(f'[[key]]\nname = "{entry.name}"\nhash = "{entry.hash}"\n\n')
    except OSError as error:
        raise ConfigurationError(f"Cannot write {file}: {error.strerror}.") from error
    return key


@dataclass(frozen=True)
class Claim:
    """The part of the limited amounts that a question may use, by the names of ``KINDS``.

    Attributes:
        run: The question's id; empty for a query.
        inherited: True where a process that died had claimed it, and so noted nothing that it used.
    """

    month: str
    amounts: dict[str, float]
    run: str = ""
    inherited: bool = False

    @property
    def bytes(self) -> int | None:
        """Bytes, None for no limit."""
        found = self.amounts.get("max_run_bytes")
        return None if found is None else int(found)


class Purse:
    """The amounts that a caller has used, in a file for each month, to which all processes append.

    A question that begins claims what it may use, its end gives back what it did not. So questions that race
    for the last dollar cannot pass it. What a process that was killed had claimed stays used until its
    question goes on, with that claim.

    Args:
        file: Without its month: ``spent/name``.
    """

    def __init__(self, file: Path, limits: Limits) -> None:
        self.file, self.limits = file, limits
        self._lock, self._month, self._place = Lock(), "", 0
        self.used = dict.fromkeys((*KINDS, "questions", "dearest"), 0.0)
        self._open_claims = dict[str, list[float]]()

    @property
    def month(self) -> str:
        """The month that counts: ``2026-11``."""
        return f"{datetime.now(UTC):%Y-%m}"

    def claim(self, wanted: Mapping[str, Any], kinds: Collection[str] = tuple(KINDS), run: str = "") -> Claim:
        """Claim what a question may use, of each amount what it wants, or a part of the month's.

        Raises:
            Refused: A limit is reached, or the rest would not pay a question as dear as one before.
        """
        claims, limits = dict[str, float](), self.limits.of_month()
        with self._lock, self._open() as out:
            if known := self._open_claims.get(run):
                kept = {name: amount for name, amount in zip(KINDS, known, strict=True) if limits[name]}
                return Claim(self._month, kept, run, inherited=True)
            for name, limit in limits.items():
                if limit is None or name not in kinds:
                    continue
                left = limit - self.used[name]
                if left <= 0 or (name == "max_usd" and left < self.used["dearest"]):
                    hint = "It is free again next month, or as questions under way end."
                    said = f"This key's {KINDS[name]} of {self._month} are used: {left:g} left of {limit:g}."
                    raise Refused(said, 429, "limit", hint=hint)
                share = wanted.get(name) or max(limit / SHARES, LEAST[name])
                most = min(left, max(share, self.used["dearest"] if name == "max_usd" else 0))
                claims[name] = most if name == "max_usd" else int(most)
            self._add(out, claims, int(len(kinds) == len(KINDS)), run=run)
            return Claim(self._month, claims, run)

    def settle(self, claim: Claim, used: Mapping[str, float]) -> None:
        """Note what a question used, and give the rest of its claim back."""
        with self._lock, self._open() as out:
            current = claim.month == self._month
            if current and claim.run and claim.run not in self._open_claims:
                return  # who took the question over has noted it
            claims = claim.amounts if current else {}
            rest = {name: used[name] - claims.get(name, 0) for name in KINDS}
            self._add(out, rest, 0, used["max_usd"], claim.run)

    def look(self) -> dict[str, float]:
        """Return what was used this month."""
        with self._lock, self._open():
            return dict(self.used)

    def _open(self) -> Any:
        """Open and lock the month's file, and read what was added to it."""
        if self.month != self._month:
            self._month, self._place, self.used = self.month, 0, dict.fromkeys(self.used, 0.0)
            self._open_claims.clear()
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            file = self.file.with_name(f"{self.file.name}-{self._month}.txt").open("a+", encoding="ascii")
        except OSError as error:
            hint = "Set another folder with --home."
            raise ConfigurationError(
                f"Cannot write to {self.file.parent}: {error.strerror}.", hint=hint
            ) from error
        fcntl.flock(file, fcntl.LOCK_EX)  # until it is closed
        file.seek(self._place)
        for line in file.read().splitlines():
            numbers, run = line.split()[: len(self.used)], "".join(line.split()[len(self.used) :])
            amounts = [*map(float, numbers)]
            if run and amounts[len(KINDS)]:
                self._open_claims[run] = amounts[: len(KINDS)]
            else:
                self._open_claims.pop(run, None)
            for name, amount in zip(self.used, amounts, strict=False):
                self.used[name] = (
                    max(self.used[name], amount) if name == "dearest" else self.used[name] + amount
                )
        self._place = file.tell()
        return file

    def _add(
        self, out: Any, amounts: Mapping[str, float], questions: int, dearest: float = 0.0, run: str = ""
    ) -> None:
        line = [*(amounts.get(name, 0.0) for name in KINDS), questions, dearest]
        out.write(" ".join([*map(repr, line), run]).rstrip() + "\n")
