"""What another result would change, in a sentence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from quorum.tools.silent_errors.evidence import many, value

if TYPE_CHECKING:
    from quorum.tools.differences import Differences


def effect(found: Differences, ordered: bool = False) -> str:
    """How the answer changes if the second result is the right one; ``ordered`` for its order alone."""
    before, after = found.rows
    if found.relation == "equal":
        return "The rows would come in another order." if ordered else ""
    if found.cell is not None and found.only == (0, 0):
        key, old, new = found.cell
        where = "" if key is None else f" for {value(key)}"
        return f"The answer{where} would be {value(new)} instead of {value(old)}."
    if before != after:
        return f"The answer would have {many(after, 'row', 'rows')} instead of {before:,}.{_example(found)}"
    return f"The answer would have other values in its {many(after, 'row', 'rows')}.{_example(found)}"


def _example(found: Differences) -> str:
    for verb, examples in (("more", found.examples[1]), ("less", found.examples[0])):
        if examples:
            return f" One {verb}: {_shown(examples[0])}."
    return ""


def _shown(example: Any) -> str:
    return ", ".join(map(value, example)) if isinstance(example, tuple | list) else value(example)
