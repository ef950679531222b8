"""Token counts without a tokenizer: an estimate that needs no download."""

from __future__ import annotations

import re

_PIECE = re.compile(
    r"[^\w\n]?(?:[A-Z]{1,2}(?![a-z])|[A-Z]?[a-z]{1,8})|_?[A-Z]{1,2}(?![a-z])|_?[A-Z]?[a-z]{1,8}"
    r"|[0-9]{1,3}|[^\W\d_]{1,2}|[^\w\s]{1,2}\n*|\n+"
)


def estimate_tokens(text: str) -> int:
    """About how many tokens o200k, the tokenizer of current OpenAI models, makes of ``text``.

    Counts the pieces that such a tokenizer starts from, long ones cut where it would. Measured
    against o200k on 200 texts (the schema texts of 105 databases, SQL, Python, English papers):
    within 9 % over each kind, 0.79 to 1.30 of the truth for a single text, the extremes being
    schemas of mostly upper-case names.
    """
    return len(_PIECE.findall(text))
