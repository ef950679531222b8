"""An evaluation's view of a run's events: schema shown, failed calls, choices, explorations."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from quorum.evals.records import Course
from quorum.graph.nodes import voting
from quorum.graph.runs import Event, RunFolder
from quorum.tools.sql.linking import Linked


class RunEvents:
    """Learns from a run's events, live (call it) and from the trace of earlier processes (``learn``).

    Args:
        replied: Called when a model has replied.

    Attributes:
        linked: The schema was linked, or linking was asked to.
        choices: That a user was asked to choose from.
    """

    def __init__(self, replied: Callable[[], None] = lambda: None) -> None:
        self.replied = replied
        self.linked = False
        self.choices: Sequence[Mapping[str, Any]] = ()
        self._names = ""  # blob of the linked schema's columns by table, as JSON; empty for the whole schema
        self._failures: dict[str, set[str]] = {}  # by candidate; of calls for none, under ""
        self._explored = False
        self._first_tie: bool | None = None

    def __call__(self, event: Event) -> None:
        if event["kind"] == "model_call":
            self.replied()
        self.learn(event)

    def learn(self, event: Mapping[str, Any]) -> None:
        """Read an event. A resumed run repeats what failed outside the candidates."""
        name = str(event.get("candidate") or "")
        match event["kind"]:
            case "model_failed":
                self._failures.setdefault(name, set()).add(str(event.get("failure", "")))
            case "begun":
                self._failures.pop("", None)
            case voting.ASKED_ANEW:  # all candidates begin again
                self._failures.clear()
            case "clarification":
                self.choices = event.get("choices") or ()
            case "long_context":
                self.linked = True
            case "linking" if not name:  # what a candidate has linked for itself does not count
                self.linked, self._names = True, ""
            case "schema_shown":
                self._names = event.get("names", "")
            case "exploration":
                self._explored = True
            case "vote" if self._first_tie is None:
                self._first_tie = bool(event.get("tie"))

    @property
    def refusals(self) -> set[str]:
        """Kinds of failed calls (``quorum.tools.models.failures.FailureKind``) that were not repeated."""
        return set().union(*self._failures.values())

    @property
    def course(self) -> Course:
        """The run's course: explorations, the end of the first vote."""
        return Course(self._explored, self._first_tie)

    def linked_part(self, run: RunFolder) -> Linked | None:
        """Return the linked part of the catalog; None for the whole.

        Raises:
            QuorumError: The run lacks its names.
        """
        if not (self.linked and self._names):
            return None
        names: dict[str, list[str]] = json.loads(run.get(self._names))
        columns = tuple((table, column) for table, each in names.items() for column in each)
        return Linked(tuple(names), columns)
