"""The one tree of exceptions. Every message says what happened; ``hint`` says what to do.

It lives on the lowest floor because every floor raises from it. What a database answers to a
query is not here: a failed query is a value, ``quorum.tools.query.QueryError``.
"""

from __future__ import annotations

import csv
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING


class QuorumError(RuntimeError):
    """Root of all errors that Quorum raises on purpose.

    A RuntimeError, because LangGraph's server shows the messages of Python's own errors only.

    Attributes:
        hint: What the reader can do about it; may be empty.
    """

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.hint = hint

    def __str__(self) -> str:
        message = super().__str__()
        return f"{message} {self.hint}" if self.hint else message


class ConfigurationError(QuorumError):
    """Something the user set, named or left out makes the run impossible."""


class DatabaseUnavailable(QuorumError):
    """The database is missing, locked, corrupt, empty of tables, or refuses the connection."""


class ModelUnavailable(QuorumError):
    """The model's endpoint cannot be reached, refuses the key, or keeps failing."""


class MachineFailed(QuorumError):
    """This machine ran out of disk, memory or open files: whatever is asked next would fail too."""


class LeaseLost(QuorumError):
    """Another process may have taken the run over, so that this one writes nothing more of it."""


class MalformedReply(QuorumError):
    """A model's reply did not fit the expected form, even after the allowed repairs."""


class BudgetExceeded(QuorumError):
    """A hard limit of the run was reached.

    Attributes:
        limit: The limit's name: ``max_calls``, ``max_usd``, ``max_run_bytes`` or ``deadline``.
    """

    def __init__(self, message: str, *, limit: str = "", hint: str = "") -> None:
        super().__init__(message, hint=hint)
        self.limit = limit


@contextmanager
def read_errors(
    what: object, *, hint: str = "", kind: type[QuorumError] = ConfigurationError
) -> Iterator[None]:
    """Say why ``what`` cannot be read, where reading it inside fails.

    Raises:
        QuorumError: It is not there, no UTF-8 text, or has another form; of ``kind``.
    """
    try:
        yield
    except (OSError, ValueError, TypeError, LookupError, RecursionError, csv.Error) as error:
        why: object = error
        if isinstance(error, OSError):
            why = error.strerror or error
        elif isinstance(error, KeyError):
            why = f"it lacks {error}"
        elif isinstance(error, UnicodeDecodeError):
            why = "it is no UTF-8 text"
        raise kind(f"{what} cannot be read: {why}.", hint=hint) from error


DISTRIBUTION = "quorum-sql"
"""The name of the installed distribution, whose metadata lists what each extra of pyproject.toml installs."""


def is_installed(module: str) -> bool:
    """True if a module can be imported. The parents of a dotted name are imported to find out."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:  # a parent is missing
        return False


def install_command(*requirements: str) -> str:
    """The command that installs packages for the Python that runs this.

    Example: ```/env/bin/python -m pip install 'python-calamine>=0.5'```, backquotes included.
    """
    return f"`{shlex.join([sys.executable, '-m', 'pip', 'install', *requirements])}`"


def install_hint(extra: str) -> str:
    """Return how to install an extra: by its packages, because Quorum is on no package index."""
    from importlib.metadata import PackageNotFoundError, requires  # 20 ms, for the few who need them

    try:
        listed = [text.partition(";") for text in requires(DISTRIBUTION) or ()]
    except PackageNotFoundError:  # run from a folder that is not installed
        return f"Install the packages that pyproject.toml lists for the extra {extra}."
    needed = [name.strip() for name, _, marker in listed if re.search(rf"extra == ['\"]{extra}['\"]", marker)]
    return f"Install it with {install_command(*needed)}."


def missing_extra(extra: str, what: str, *, needs: str) -> ConfigurationError:
    """The error to raise where an optional package is not installed.

    Args:
        extra: The extra in pyproject.toml that installs it.
        what: What cannot be done without it, in the singular: begins the message.
        needs: The package.
    """
    return ConfigurationError(f"{what} needs the package {needs}.", hint=install_hint(extra))


if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_KINDS = {
    "a valid string": "a text",
    "a valid integer": "a whole number",
    "a valid number": "a number",
    "a valid boolean": "true or false",
    "a valid list": "a list",
    "a valid tuple": "a list",
    "a valid dictionary": "an object",
    "a dictionary": "an object",
}
_KIND = re.compile("|".join(_KINDS))


def in_words(problem: ErrorDetails) -> str:
    """One of ``ValidationError.errors()``: ``missing``, ``must be a text``, or a validator's own words."""
    if problem["type"] == "missing":
        return "missing"
    message = problem["msg"].removeprefix("Value error, ")
    text = _KIND.sub(lambda kind: _KINDS[kind[0]], re.sub(r"^\w+ should", "must", message))
    return re.split(", unable to | or (?:an )?instance of ", text)[0]


def first_in_words(error: ValidationError, name: str = "") -> str:
    """The first problem with its place, below ``name``: ``rows.0: must be a list``."""
    problem = error.errors(include_url=False)[0]
    where = ".".join(map(str, (*([name] if name else []), *problem["loc"])))
    return f"{where}: {in_words(problem)}" if where else in_words(problem)
