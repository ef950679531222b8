"""What the offline model answers where answers are compared."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorum.tools.offline.roles import Prompt


def judge(prompt: Prompt) -> dict[str, Any]:
    """The only answer that the rules would give too, or that has all values of the question in its query."""
    own = " ".join(prompt.read().sql().split())
    queries = [" ".join(sql.split()) for sql in prompt.all("answer")]
    values = re.findall(r"'([^'%]+)'", own)
    same = [place for place, sql in enumerate(queries) if sql == own]
    told = [place for place, sql in enumerate(queries) if all(v.lower() in sql.lower() for v in values)]
    found = same if len(same) == 1 else told
    choice = "ABC"[found[0]] if len(found) == 1 else "cannot tell"
    why = (
        "The rules read the question so"
        if found is same
        else f"Values asked for: {', '.join(values) or 'none'}"
    )
    return {"reason": f"{why}. This is a demonstration: rules, no language model.", "choice": choice}


def reviser(_: Prompt) -> dict[str, Any]:
    """The rules know nothing that the query does not say already: it stands."""
    return {"explanation": "The rules see no fault. This is a demonstration, no language model.", "sql": None}


JUDGES = (judge, reviser)
