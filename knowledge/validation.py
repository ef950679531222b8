"""What is wrong with a value, in words: pydantic's messages speak of inputs, strings and dictionaries."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

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
    told = _KIND.sub(lambda kind: _KINDS[kind[0]], message.replace("Input should", "must", 1))
    return re.split(", unable to | or (?:an )?instance of ", told)[0]


def first_in_words(error: ValidationError, name: str = "") -> str:
    """The first problem with its place, below ``name``: ``rows.0: must be a list``."""
    problem = error.errors(include_url=False)[0]
    where = ".".join(map(str, (*([name] if name else []), *problem["loc"])))
    return f"{where}: {in_words(problem)}" if where else in_words(problem)
