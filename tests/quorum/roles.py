"""A loopback endpoint whose model answers every role of ``recap`` by the role's own tag."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

from tests.graph.shop import script
from tests.servers.chat_server import Answer, Request, say, tokens

_TASK = re.compile(r"<task>([a-z_]+)</task>")


def role_of(request: Request) -> str:
    """The role that asks."""
    found = _TASK.search(request.body["messages"][1]["content"])
    assert found, "every prompt names its task"
    return found[1]


def by_role(
    special: Callable[[str, Request], Answer | None] = lambda role, request: None, **roles: Any
) -> Callable[[Request], Answer]:
    """A server script; ``special`` may answer in the role's place."""
    replies = script(**roles)

    def answer(request: Request) -> Answer:
        role = role_of(request)
        return special(role, request) or say(json.dumps(replies[role]), usage=tokens(1200, 40, 1024))

    return answer
