"""The graph's state: small, plain, serialisable. Long texts and results are named by their hash.

LangGraph's checkpoints hold what stands here, once per step, so every value is a plain dict,
list, string or number, and previews have at most 20 rows. Schema text, retrieved documents and
syntax lie in the run folder's blobs (keys ending in ``_ref`` are their SHA-256), results in its
``results`` folder.
"""

from __future__ import annotations

from typing import Annotated, Any, NotRequired

from typing_extensions import TypedDict  # Python < 3.12: typing's own lacks what pydantic needs

PREVIEW_ROWS = 20


def gather(so_far: list[Any], more: list[Any] | None) -> list[Any]:
    """The reducer of lists that branches add to; None empties the list, as a new run does."""
    return [] if more is None else so_far + more


class ErrorState(TypedDict):
    """A ``QueryError``, or why a candidate could not go on, as plain values."""

    kind: str
    message: str


class ResultState(TypedDict):
    """A finished result: its file (relative to the run folder) and what tells it apart.

    ``ordered``: the order of its rows counts in the fingerprint, for the question asks for one.
    """

    file: str
    fingerprint: str
    ordered: NotRequired[bool]
    blank: bool
    no_values: bool
    columns: list[str]
    columns_left_out: int
    row_count: int
    truncated: str
    preview: list[list[Any]]
    nulls: list[int]
    distinct: list[int | None]
    types: list[str]


class PlanState(TypedDict):
    steps: list[str]
    expected_format: str


class CandidateRecord(TypedDict):
    """A finished candidate, as consensus and the answer see it.

    ``reading`` is what else its writer says the question could mean.
    """

    id: str
    model: str
    temperature: float
    seed: int
    sql: str
    result: ResultState | None
    error: ErrorState | None
    approved: bool | None
    refinements: int
    stopped_by: str
    reading: NotRequired[str]


class AttemptState(TypedDict):
    sql: str
    error: str


class ExplorationState(TypedDict):
    """Column exploration under way (``quorum.graph.nodes.exploration``).

    ``waiting`` are queries with ``purpose`` and ``sql``, the first under work: ``error`` of the kind
    ``kind`` says why it gave nothing, ``tried`` are its earlier forms, ``mended`` what the others become
    once it works. ``findings`` are ``purpose`` and ``sql`` with the ``ref`` of the result as text.
    """

    waiting: list[dict[str, str]]
    tried: list[AttemptState]
    error: str
    kind: str
    mended: list[dict[str, str]]
    findings: list[dict[str, str]]


class RunInput(TypedDict):
    """What a run starts from."""

    question: str


class RunOutput(TypedDict):
    """What a run ends with: ``quorum.graph.answer.Answer`` as a plain dict."""

    answer: dict[str, Any]


class CandidateInput(TypedDict):
    """What ``Send`` gives to one branch.

    ``material`` names what else its first prompt shows: blobs by kind (``quorum.graph.nodes.writing``).
    """

    question: str
    run_id: str
    schema_ref: str
    documents_ref: str
    syntax_ref: str
    plan: PlanState
    material: dict[str, str]
    candidate: str
    model: str
    temperature: float
    seed: int


class RunState(TypedDict, total=False):
    """Shared by all nodes of a run."""

    question: str
    run_id: str
    schema_ref: str
    documents_ref: str
    syntax_ref: str
    plan: PlanState
    material: dict[str, str]
    plan_rounds: int
    critique: str
    seats: list[CandidateInput]
    dealt: int
    candidates: Annotated[list[CandidateRecord], gather]
    presql: list[CandidateRecord]
    vote: dict[str, Any]
    exploration: ExplorationState
    explored: bool
    explored_at: int
    approvals: dict[str, bool]
    rejected: str
    revision: str
    stopped_by: str
    redealt: str
    clarified: str
    warnings: Annotated[list[str], gather]
    answer: dict[str, Any]


class TurnState(TypedDict):
    """One action of a candidate and what came of it."""

    action: str
    text: str
    observation: str
    thought: NotRequired[str]


class CandidateState(CandidateInput, total=False):
    """The working state of one branch; none of it is shared with the other branches.

    ``seen`` are fingerprints of plausible results (``quorum.graph.nodes.consistency``); ``stage`` to
    ``rewrites`` belong to CTE-based refinement (``quorum.graph.nodes.stages``).
    """

    history: list[TurnState]
    actions: int
    feedback: str
    next: str
    sql: str
    reading: str
    error: ErrorState | None
    result: ResultState | None
    answer_sql: str
    approved: bool | None
    linked_ref: str
    linkings: int
    refinements: int
    validations: int
    earlier: list[AttemptState]
    seen: list[str]
    errors_in_a_row: int
    stage: int
    stage_error: str
    stage_ref: str
    rewrites: int
    stopped_by: str
    candidates: list[CandidateRecord]


class CandidateOutput(TypedDict):
    """All that leaves a branch; a wider schema would make parallel branches clash."""

    candidates: list[CandidateRecord]
