"""Where a candidate's branch goes next: pure functions of its state."""

from __future__ import annotations

from typing import Literal

from quorum.graph.nodes.step import FINAL
from quorum.graph.state import CandidateState
from quorum.tools.query import ErrorKind


def halted(state: CandidateState) -> bool:
    """True if a limit was reached, the model failed, or it says that the data cannot answer."""
    return bool(state.stopped_by) or (state.error is not None and state.error.kind in FINAL)


def unavailable(state: CandidateState) -> bool:
    """True if the database could not be asked: no other SQL would help."""
    return state.error is not None and state.error.kind == ErrorKind.UNAVAILABLE


def unrepairable(state: CandidateState) -> bool:
    """True if no other SQL would help, or the user said no."""
    return unavailable(state) or (state.error is not None and state.error.kind == ErrorKind.NOT_APPROVED)


def after_model(state: CandidateState) -> Literal["go_on", "finish"]:
    """Go on, unless a limit or a failing model stopped the node."""
    return "finish" if halted(state) else "go_on"


def after_refinement(state: CandidateState) -> Literal["go_on", "finish"]:
    """Run a repaired query; end the branch if there is none (the error is still there)."""
    return "finish" if halted(state) or state.error else "go_on"


MAX_EMPTY = 1
"""Repairs of an empty result; after that the same one is believed, since an empty answer can be right."""


def after_run(
    state: CandidateState, *, max_refinements: int, max_empty: int = MAX_EMPTY
) -> Literal["done", "refine", "finish"]:
    """Route to the end with a result, to a repair, or to the end without one.

    Args:
        max_empty: Repairs of a result without rows, or without values, before it is believed.
    """
    error = state.error
    if halted(state) or unrepairable(state):
        return "finish"
    if error is None:
        return "done"
    before = sum(tried.error == error.message for tried in state.earlier)
    if error.kind == ErrorKind.EMPTY_RESULT and before >= max_empty:
        return "finish"
    return "refine" if state.refinements < max_refinements else "finish"
