"""Text that means a number, a moment, JSON or a truth value: how it is told."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from quorum.tools.cells import Mask

NUMERIC = r"^\s*[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d{1,3})?\s*$"
ISO = r"^\s*\d{4}-\d{2}-\d{2}([T ]\d{2}:\d{2}(:\d{2}([.,]\d{1,9})?)?( ?(Z|UTC|[+-]\d{2}(:?\d{2})?))?)?\s*$"
NESTED = r"^\s*[\[{]"
TRUTH = r"(?i)^\s*(true|false)\s*$"
NO_DIGITS = r"(?i)^\s*(nan|[+-]?inf(inity)?)\s*$"
FEW = 50
"""Texts that are matched one by one: Arrow compiles a pattern anew for each call."""


def matches(texts: pa.Array, pattern: str) -> Mask:
    """Which of ``texts`` (no NULLs) the pattern is found in, as Arrow's RE2 reads it, few or many."""
    if len(texts) <= FEW and (plain := texts.to_pylist()) and all(map(str.isascii, plain)):
        search = _compiled(pattern).search
        return np.fromiter((search(text) is not None for text in plain), np.bool_, len(plain))
    return np.asarray(pc.match_substring_regex(texts, pattern).to_numpy(zero_copy_only=False), np.bool_)


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    """The pattern as Arrow's RE2 reads it in ASCII text: its blanks are five, and ``$`` is the very end."""
    return re.compile(pattern.replace(r"\s", r"[\t\n\f\r ]").replace("$", r"\Z"), re.ASCII)
