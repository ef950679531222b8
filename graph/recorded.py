"""What interrupted processes of a run recorded, found again by what asked for it."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterable

from quorum.graph.runs import Event
from quorum.tools.urls import REDACTED


class Recorded:
    """Model calls and queries of earlier processes, by their requests (``quorum.tools.record.request_of``).

    A reply that held a secret is not here: the trace has it without.
    """

    def __init__(self, events: Iterable[Event]) -> None:
        self._calls = defaultdict[tuple[str, str], deque[Event]](deque)
        self._queries: dict[str, Event] = {}
        self.approvals: list[Event] = []
        for event in events:
            request = event.get("request", "")
            if event["kind"] == "model_call" and request and REDACTED not in str(event.get("reply")):
                self._calls[event.get("task", ""), request].append(event)
            elif event["kind"] == "query" and request:
                self._queries[request] = event
            elif event["kind"] in ("approval_asked", "approval"):
                self.approvals.append(event)

    def call(self, task: str, request: str) -> Event | None:
        """The ``model_call`` event of a request in that execution of a step.

        A step that makes one request several times gets each reply once, in the order in which they came;
        the same request in another step is another call.
        """
        found = self._calls.get((task, request))
        return found.popleft() if found else None

    def query(self, request: str) -> Event | None:
        """The ``query`` event of a request in any step: the same text runs once per run."""
        return self._queries.get(request)
