"""How a question's run went, by its events: who explored, how the first vote ended, what candidates took."""

from __future__ import annotations

from collections import Counter, defaultdict

from quorum.evals.records import Course, Effort
from quorum.graph.runs import Event, RunFolder

EXPLORATION = "exploration"
"""The event in which a ColumnExplorer writes its queries."""


def course_of(run: RunFolder) -> Course:
    """Read a finished run's events.

    Raises:
        QuorumError: A line of them is no event.
    """
    used: dict[str, Counter[str]] = defaultdict(Counter)
    explorers: set[str] = set()
    ended: dict[str, Event] = {}
    first_tie: bool | None = None
    for event in run.events():
        name, kind = str(event.get("candidate") or ""), event["kind"]
        used[name] += _spent(event)
        if kind == EXPLORATION:
            explorers.add(name)
        elif kind == "candidate":
            ended[name] = event
        elif kind == "vote" and first_tie is None:
            first_tie = bool(event.get("tie"))
    efforts = (
        Effort(
            repairs=int(event.get("refinements") or 0),
            explored=name in explorers or bool(event.get("informed")),
            calls=used[name]["calls"],
            tokens=used[name]["tokens"],
            queries=used[name]["queries"],
        )
        for name, event in ended.items()
    )
    return Course(explored=bool(explorers), first_tie=first_tie, efforts=tuple(efforts))


def _spent(event: Event) -> Counter[str]:
    """What an event's usage adds (``quorum.tools.ledger.Usage``)."""
    usage = event.get("usage")
    if not isinstance(usage, dict):
        return Counter()
    tokens = int(usage.get("input_tokens") or 0) + int(usage.get("output_tokens") or 0)
    calls, queries = int(usage.get("model_calls") or 0), int(usage.get("queries") or 0)
    return Counter(calls=calls, queries=queries, tokens=tokens)
