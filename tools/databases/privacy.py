"""Which columns' values never leave the database as samples.

A sample goes into prompts, and so to whoever runs the model. Queries are not affected: what a
user may read, a user may ask for.
"""

from __future__ import annotations

import re

_PRIVATE = re.compile(
    r"\b(?:passwords?|passwd|pwd|passphrases?|pin codes?|secrets?|private keys?|api keys?"
    r"|(?:access|refresh|auth|session) tokens?|\w*ssn|social security|tax id|passport(?: number)?"
    r"|iban|cvv|cvc|credit cards?|(?:cc|card) number)\b"
)
_WORDS = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|[^A-Za-z0-9]+")


def is_private(column: str) -> bool:
    """Whether a column's name says that its values are secrets or identify a person to the state."""
    return _PRIVATE.search(_WORDS.sub(" ", column).casefold()) is not None
