"""The front door: ``ask`` a question, get an ``Answer``; the command line is ``quorum.cli``.

Names are loaded when first used, so that ``import quorum`` costs nothing.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from quorum.answer import Answer
    from quorum.api import ask, ask_sync, explore, explore_sync
    from quorum.graph.approval import Approval
    from quorum.graph.clarification import Clarification
    from quorum.session import Quorum
    from quorum.settings import Settings
    from quorum.teaching import correct, correct_sync, keep

__version__ = "0.2.0"

__all__ = [
    "Answer",
    "Approval",
    "Clarification",
    "Quorum",
    "Settings",
    "ask",
    "ask_sync",
    "correct",
    "correct_sync",
    "explore",
    "explore_sync",
    "keep",
]

_HOMES = {
    "Answer": "quorum.answer",
    "Approval": "quorum.graph.approval",
    "Clarification": "quorum.graph.clarification",
    "Quorum": "quorum.session",
    "Settings": "quorum.settings",
    "ask": "quorum.api",
    "ask_sync": "quorum.api",
    "correct": "quorum.teaching",
    "correct_sync": "quorum.teaching",
    "explore": "quorum.api",
    "explore_sync": "quorum.api",
    "keep": "quorum.teaching",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'quorum' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
