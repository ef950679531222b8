"""Who may ask what: callers by their keys, and what they may spend in a month."""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import secrets
import tomllib
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Any, NamedTuple

from pydantic import ConfigDict, Field, TypeAdapter, ValidationError

from quorum.graph.values import Bytes
from quorum.knowledge.atomic import replace_file
from quorum.knowledge.errors import ConfigurationError, first_in_words
from quorum.serve.bodies import Spent
from quorum.serve.question import Refused

SHARES = 20
"""A question that names no limit of its own claims this part of a month's, but ``LEAST`` of what is left."""
LEAST = {"max_usd": 0.25, "max_calls": 30, "max_run_bytes": 2**30}
KINDS = {"max_usd": "dollars", "max_calls": "model calls", "max_run_bytes": "bytes"}
"""Limits of a month, each by the option that limits a question."""


@dataclass(frozen=True)
class Caller:
    """A caller: what it may see and do, and what it may use in a calendar month (UTC); None for no limit.

    Attributes:
        name: Of the key; empty where the service asks for none.
        databases, schemas: That it may see; None for all.
        sql: True if it may run queries of its own.
        per_minute: Requests.
        hash: Of the key: these are the entries of its file, too.
    """

    __pydantic_config__ = ConfigDict(extra="forbid", hide_input_in_errors=True, validate_default=True)

    name: Annotated[str, Field(pattern="^[A-Za-z0-9_-]{1,40}$")] = ""
    databases: frozenset[str] | None = None
    schemas: frozenset[str] | None = None
    sql: bool = True
    max_usd: Annotated[float | None, Field(gt=0)] = None
    max_calls: Annotated[int | None, Field(ge=1)] = None
    max_bytes: Annotated[Bytes | None, Field(ge=1)] = None
    per_minute: Annotated[int | None, Field(ge=1)] = None
    hash: Annotated[str, Field(pattern="^[0-9a-f]{64}$")] = field(default="", repr=False)

    def limits(self) -> dict[str, float | None]:
        """Return the limits of a month by the names of ``KINDS``."""
        return dict(zip(KINDS, (self.max_usd, self.max_calls, self.max_bytes), strict=True))


_CALLER = TypeAdapter(Caller)
_LOG = logging.getLogger(__name__)


class KeyFile:
    """The keys of a file, which is read again when it has changed; it holds their SHA-256 only.

    Attributes:
        fault: What is wrong in the file as it is now, while what was read before counts; else empty.

    Raises:
        ConfigurationError: The file cannot be read, or an entry is wrong.
    """

    def __init__(self, file: Path) -> None:
        self.file, self.fault, self._read, self._callers = file, "", 0, dict[str, Caller]()
        self._load()

    def named(self, name: str) -> Caller | None:
        """Return the caller of that name."""
        self.look()
        return next((each for each in self._callers.values() if each.name == name), None)

    def caller(self, key: str) -> Caller | None:
        """Return who has a key; None for nobody."""
        self.look()
        return self._callers.get(hash_of(key))

    def look(self) -> str:
        """Read the file again if it has changed; return ``fault``."""
        try:
            if self.file.stat().st_mtime_ns != self._read:
                self._load()
            self.fault = ""
        except (ConfigurationError, OSError) as error:
            if str(error) != self.fault:
                _LOG.error("%s The keys that were read before count.", error)
            self.fault = str(error)
        return self.fault

    def _load(self) -> None:
        found, place = list[Caller](), ""
        try:
            state = self.file.stat().st_mtime_ns
            entries = tomllib.loads(self.file.read_text(encoding="utf-8")).get("key", [])
            for number, entry in enumerate(entries, 1):
                place = f"key {number}, "
                found.append(_CALLER.validate_python(entry))
        except (OSError, TypeError, ValueError) as error:
            said = place + first_in_words(error) if isinstance(error, ValidationError) else str(error)
            raise ConfigurationError(f"Cannot read the keys in {self.file}: {said}.") from None
        if len({each.name for each in found}) < len(found):
            raise ConfigurationError(f"Two keys in {self.file} have the same name.")
        self._read, self._callers = state, {each.hash: each for each in found}


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
        entry = _CALLER.validate_python({"name": name, "hash": hash_of(key)})
    except ValidationError as error:
        raise ConfigurationError(f"{name!r} cannot name a key: {first_in_words(error)}.") from None
    if file.exists() and name in {each.name for each in KeyFile(file)._callers.values()}:
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


class Claim(NamedTuple):
    """The part of the limited amounts that a question may use, by the names of ``KINDS``.

    Attributes:
        run: The question's id; empty for a query.
        inherited: True where a process that died had claimed it, and so noted nothing that it used.
    """

    month: str
    amounts: dict[str, float]
    run: str = ""
    inherited: bool = False


class Purse:
    """The amounts that a caller has used, in a file for each month, which all processes share.

    A question that begins claims what it may use, its end gives back what it did not. So questions that race
    for the last dollar cannot pass it. What a process that was killed had claimed stays used until its
    question goes on, with that claim.

    Args:
        file: Without its month: ``spent/name``.
    """

    def __init__(self, file: Path, who: Caller) -> None:
        self.file, self.who = file, who

    def claim(self, wanted: Mapping[str, Any], kinds: Collection[str] = tuple(KINDS), run: str = "") -> Claim:
        """Claim what a question may use, of each amount what it wants, or a part of the month's.

        Raises:
            Refused: A limit is reached, or the rest would not pay a question as dear as one before.
        """
        claims = dict[str, float]()
        with self._locked() as (month, used, open_claims):
            if run in open_claims:
                return Claim(month, open_claims[run], run, inherited=True)
            for name, limit in self.who.limits().items():
                if limit is None or name not in kinds:
                    continue
                left = limit - used[name]
                if left <= 0 or (name == "max_usd" and left < used["dearest"]):
                    hint = "It is free again next month, or as questions under way end."
                    said = f"This key's {KINDS[name]} of {month} are used: {left:g} left of {limit:g}."
                    raise Refused(said, 429, "limit", hint=hint)
                share = wanted.get(name) or max(limit / SHARES, LEAST[name])
                most = min(left, max(share, used["dearest"] if name == "max_usd" else 0))
                claims[name] = most if name == "max_usd" else int(most)
            for name, amount in claims.items():
                used[name] += amount
            if run:
                used["questions"] += 1
                open_claims[run] = claims
        return Claim(month, claims, run)

    def settle(self, claim: Claim, amounts: Mapping[str, float]) -> None:
        """Note what a question used, and give the rest of its claim back."""
        with self._locked() as (month, used, open_claims):
            current = claim.month == month
            if current and claim.run and open_claims.pop(claim.run, None) is None:
                return  # who took the question over has noted it
            for name in KINDS:
                used[name] += amounts[name] - (claim.amounts.get(name, 0) if current else 0)
            used["dearest"] = max(used["dearest"], amounts["max_usd"])

    def spent(self) -> Spent:
        """Return what was used this month, and what is left of it."""
        with self._locked() as (month, used, _):
            amounts = dict[str, Any]()
            for name, (of, most) in zip(("usd", "calls", "bytes"), self.who.limits().items(), strict=True):
                left = None if most is None else max(0, most - used[of])
                amounts |= {name: used[of], f"left_{name}": left}
            return Spent(name=self.who.name, month=month, questions=int(used["questions"]), **amounts)

    @contextmanager
    def _locked(self) -> Iterator[tuple[str, dict[str, float], dict[str, dict[str, float]]]]:
        """Lock the month's file; give the month (UTC), the amounts and the open claims, and write these."""
        month = f"{datetime.now(UTC):%Y-%m}"
        path = self.file.with_name(f"{self.file.name}-{month}.json")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            gate = path.with_suffix(".lock").open("ab")
        except OSError as error:
            said = f"Cannot write to {path.parent}: {error.strerror}."
            raise ConfigurationError(said, hint="Set another folder with --home.") from error
        with gate:
            fcntl.flock(gate, fcntl.LOCK_EX)  # until it is closed
            nothing: Any = {"used": dict.fromkeys((*KINDS, "questions", "dearest"), 0), "claims": {}}
            found = json.loads(path.read_bytes()) if path.exists() else nothing
            before = json.dumps(found)
            yield month, found["used"], found["claims"]
            if (made := json.dumps(found)) != before:
                replace_file(path, made.encode())
