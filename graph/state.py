"""The graph's state: small, typed values. Long texts and results are named by their hash.

LangGraph's checkpoints hold what stands here, once per step; previews have at most 20 rows. Schema text,
retrieved documents and syntax lie in the run folder's blobs (fields ending in ``_ref`` are their SHA-256),
results in its ``results`` folder.

All defaults are here: a new question starts from ``fresh``, so nothing of an earlier question on the same
thread is left.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from enum import Enum
from functools import cache, partial
from typing import Annotated, Any, TypeVar, get_args, get_origin, get_type_hints

from pydantic import BaseModel, TypeAdapter, ValidationError
from typing_extensions import TypedDict  # Python < 3.12: typing's own lacks what pydantic needs

from quorum.agents.explorers import ExplorationQuery
from quorum.agents.writers import Reading
from quorum.graph.ballots import Vote
from quorum.knowledge.errors import ConfigurationError, first_in_words

PREVIEW_ROWS = 20

VERSION = 12
"""Version of the state's form; a run begun with another version cannot be resumed."""

Item = TypeVar("Item")


@dataclass(frozen=True)
class Failure:
    """The reason why a query, or a candidate, has no result.

    Attributes:
        kind: ``quorum.tools.query.ErrorKind``, or why a candidate could not go on.
    """

    kind: str
    message: str


@dataclass(frozen=True)
class Attempt:
    """An earlier query and what was wrong with it, so that it is not written again."""

    sql: str
    error: str


@dataclass(frozen=True)
class Turn:
    """An action that was taken and its outcome.

    Attributes:
        text: The query or the command.
        thought: Why it was taken, where the agent is shown its own thoughts again.
        by: The role that wrote the query, where it was another than the agent itself.
        done: False for a query that was replaced before it ran: it has not failed, and may be run yet.
    """

    action: str
    text: str
    observation: str
    thought: str = ""
    by: str = ""
    done: bool = True


def repeats(action: str, text: str, history: Sequence[Turn]) -> bool:
    """True if the very same action was done before; white space and a final ``;`` don't count."""

    def key(kind: str, text: str) -> tuple[str, str]:
        return kind, " ".join(text.rstrip("; \n").split())

    return key(action, text) in {key(turn.action, turn.text) for turn in history if turn.done}


@dataclass(frozen=True)
class Result:
    """A finished result: its file (relative to the run folder) and a description.

    Attributes:
        fingerprint: Ignores the order of rows; ``ordered_fingerprint`` does not.
        blank: Empty, or nothing but NULL, empty text or zero.
        blank_column: Some column is.
        no_values: Empty, or nothing but NULL.
        columns: The first columns; ``columns_left_out`` more are in the file.
        preview: The first rows, long cells shortened.
        nulls, distinct, types: Per column; ``distinct`` is None where values are nested.
    """

    file: str
    fingerprint: str
    ordered_fingerprint: str
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
    blank_column: bool = False

    def mark(self, *, ordered: bool) -> str:
        """The fingerprint with or without the order of rows."""
        return self.ordered_fingerprint if ordered else self.fingerprint


@dataclass(frozen=True)
class PromptExtras:
    """Prompts' texts besides schema, documents and plan: references, empty where there is none.

    Attributes:
        rows: Sample rows of each table.
        samples: The same as data, from which ``rows`` of a smaller schema are made.
        demonstrations: A JSON list of questions with their SQL.
        findings: A JSON list of what exploration found: purpose, sql, result.
        differences: A JSON list of sentences on how earlier answers disagree.
        given: A query to begin with, by which role, and its summary: the Reviser's, the ReadingWriter's.
    """

    rows: str = ""
    samples: str = ""
    demonstrations: str = ""
    findings: str = ""
    differences: str = ""
    given: str = ""


@dataclass(frozen=True)
class CandidateInput:
    """The start of a candidate.

    Attributes:
        number: From 0, in the order of dispatch.
        seed: Of its sampling.
    """

    id: str
    number: int
    model: str
    temperature: float
    seed: int
    extras: PromptExtras = field(default_factory=PromptExtras)


@dataclass(frozen=True)
class Remarks:
    """A writer's remarks on its query.

    Attributes:
        summary: What the rows show, in a sentence.
        assumptions: What the query rests on without the question having said it.
        readings: Other meanings of the question; None if nobody asked it for any.
        certainty: How probably the query is right, as its writer says, 0 to 1; None if it did not say.
    """

    summary: str = ""
    assumptions: list[str] = field(default_factory=list)
    readings: list[str] | None = None
    certainty: float | None = None


@dataclass(frozen=True)
class Candidate:
    """A finished candidate, as consensus and the answer see it.

    Attributes:
        informed: Its prompts showed the findings of an exploration.
        approved: The Validator's verdict; None if it was not asked.
        confirmed: Its result came twice; None where it need not (``quorum.graph.nodes.first_version``).
        refinements: Times the query was refined; ``failures`` counts those where it had failed.
        stands: Its empty result was examined, and nothing in the query was changed.
        remarks: Its writer's; None if it wrote none.
        ordered: Whether its writer says that the question asks for an order of the rows; None if it did not
            say.
        warnings: For the answer's reader.
    """

    id: str
    model: str
    temperature: float
    seed: int
    sql: str
    result: Result | None
    error: Failure | None
    approved: bool | None = None
    refinements: int = 0
    failures: int = 0
    stands: bool = False
    stopped_by: str = ""
    remarks: Remarks | None = None
    informed: bool = False
    ordered: bool | None = None
    confirmed: bool | None = None
    warnings: list[str] = field(default_factory=list)


@dataclass(frozen=True)
class Doubted:
    """A finding of a check of silent errors on a candidate's query (``quorum.tools.silent_errors``)."""

    candidate: str
    kind: str
    says: str


@dataclass(frozen=True)
class OtherReading:
    """Another reading of the question that was written and run, and whose result differs from the answer's.

    Attributes:
        says: What it takes the question to mean.
        answer: Its query with the result.
    """

    says: str
    answer: Candidate


@dataclass(frozen=True)
class Finding:
    """An exploration query with a finding; ``ref`` is its result as text."""

    purpose: str
    sql: str
    ref: str


@dataclass(frozen=True)
class Exploration:
    """Column exploration under way (``quorum.graph.nodes.exploration``).

    Attributes:
        waiting: Queries to run; the first is the current one.
        tried: Earlier forms of the first.
        error: Why the first failed.
        mended: Corrections of the others, applied once the first works.
    """

    waiting: list[ExplorationQuery] = field(default_factory=list)
    tried: list[Attempt] = field(default_factory=list)
    error: Failure | None = None
    mended: list[ExplorationQuery] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)


@dataclass(frozen=True)
class Grounding:
    """The schema that a candidate's prompts show, found in rounds (``quorum.graph.nodes.synthesis``).

    Attributes:
        rounds: Of searching so far.
        keywords: Searched for so far.
        columns: (full name of the table, column); a shared field group's first table stands for all.
        before: Those that the query of the round before was written on.
    """

    rounds: int = 0
    keywords: list[str] = field(default_factory=list)
    columns: list[tuple[str, str]] = field(default_factory=list)
    before: list[tuple[str, str]] = field(default_factory=list)

    def __post_init__(self) -> None:  # a checkpoint gives tuples back as lists
        for name in ("columns", "before"):
            object.__setattr__(self, name, [(table, column) for table, column in getattr(self, name)])

    @property
    def tables(self) -> list[str]:
        """Full names, in the order in which they were found."""
        return list(dict.fromkeys(table for table, _ in self.columns))


def order_counts(candidates: Iterable[Candidate]) -> bool:
    """True if the order of rows counts: more than half of the writers say that the question asks for one.

    A wrong yes costs more than a wrong no: right answers in different orders would not vote together. That
    still holds for rows with equal sort keys; ``mbr`` lets such answers support each other in part.
    """
    opinions = [candidate.ordered for candidate in candidates if candidate.ordered is not None]
    return 2 * sum(opinions) > len(opinions)


class UnfitState(ConfigurationError, ValueError):
    """A value of the state has another form than its field, because somebody edited it.

    A ValueError, because LangGraph's server answers those with status 400 and their message.
    """


_adapter = cache(TypeAdapter[Any])


def typed(kind: Any, values: Any, name: str = "") -> Any:
    """``values`` as the type ``kind``: dicts and lists become the classes that it names, at any depth.

    A checkpoint gives a node the classes that were stored. LangGraph's server reads the same checkpoint as
    plain JSON where it shows or forks a thread, and stores an edited state as the JSON that it was sent. So
    nodes, routers and reducers take what they are given through here.

    Args:
        name: Of the field that holds ``values``, for the message.

    Raises:
        UnfitState: The message names the place: ``candidates.0.id: missing``.
    """
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as error:
        problem = first_in_words(error, name)
        raise UnfitState(f"The state cannot be used: {problem}.", hint="Edit that value again.") from error


def gather(so_far: list[Item], more: list[Item] | None) -> list[Item]:
    """Reducer of lists that nodes append to; None empties the list, as a new run does."""
    return [] if more is None else so_far + typed(list[Any], more, "warnings")


def merge(so_far: list[Candidate], more: list[Candidate] | None) -> list[Candidate]:
    """Reducer of candidates: a candidate replaces its earlier form; None empties the list."""
    if more is None:
        return []
    known, new = (typed(list[Candidate], each, "candidates") for each in (so_far, more))
    return list({candidate.id: candidate for candidate in (*known, *new)}.values())


class RunInput(TypedDict):
    """The input of a run."""

    question: str


class RunOutput(TypedDict):
    """The output of a run: ``quorum.graph.answer.Answer`` as a plain dict."""

    answer: dict[str, Any]


@dataclass
class SharedState:
    """The state of a run and of each of its candidates: the question, and texts for prompts.

    Attributes:
        steps, expected_format: Of the plan; each may be empty.
    """

    question: str = ""
    run_id: str = ""
    schema_ref: str = ""
    documents_ref: str = ""
    syntax_ref: str = ""
    steps: list[str] = field(default_factory=list)
    expected_format: str = ""

    @property
    def shown_ref(self) -> str:
        """The schema text that prompts show."""
        return self.schema_ref


@dataclass
class RunState(SharedState):
    """Shared by all nodes of a run.

    Attributes:
        assumptions: Of a plan that all candidates follow.
        alone: One writer begins: one model votes, and nobody asked for a number of votes.
        asks: The user may be asked which answer is meant.
        long: Schema and documents take more tokens than ``link_above``.
        plans: Times a plan was asked for.
        critique: Of the plan; empty if it stands.
        batch: Candidate inputs to be sent now; ``dispatched`` counts all so far.
        first_round: Candidates of a first round of writing, while they do not vote.
        explored: An exploration took place, or none is possible.
        doubted: What checks of silent errors found in the winner, which is the ``objection`` then.
        objection: The Validator's, to the winner.
        revision: What the Reviser gives instead, as ``PromptExtras.given``; empty for nothing.
        stopped_by: The limit that ended the run.
        reopened: ``Context.session`` in which all candidates were asked again because no model had answered.
        readings: What else the question could mean, None if nobody looked; they run as ``r1``, ``r2``, ….
        read: What came of ``readings``.
        others: Those of ``read`` whose results differ from the answer's and from each other.
        reading: How the answer reads the question, where the ReadingWriter says so.
        clarified: The user has made the question more precise.
        meant: The reading that the user chose.
        verified: Verified questions that the prompts show, with who stands for them.
        sources: Files of the documents that the prompts show, with line and headings of a passage.
    """

    alone: bool = False
    asks: bool = False
    long: bool = False
    assumptions: list[str] = field(default_factory=list)
    plans: int = 0
    critique: str = ""
    extras: PromptExtras = field(default_factory=PromptExtras)
    batch: list[CandidateInput] = field(default_factory=list)
    dispatched: int = 0
    candidates: Annotated[list[Candidate], merge] = field(default_factory=list)
    first_round: list[Candidate] = field(default_factory=list)
    vote: Vote | None = None
    exploration: Exploration = field(default_factory=Exploration)
    explored: bool = False
    doubted: list[Doubted] = field(default_factory=list)
    objection: str = ""
    revision: str = ""
    stopped_by: str = ""
    reopened: str = ""
    readings: list[Reading] | None = None
    reading: str = ""
    read: Annotated[list[Candidate], merge] = field(default_factory=list)
    others: list[OtherReading] = field(default_factory=list)
    clarified: bool = False
    meant: str = ""
    verified: list[str] = field(default_factory=list)
    sources: list[str] = field(default_factory=list)
    warnings: Annotated[list[str], gather] = field(default_factory=list)
    answer: dict[str, Any] | None = None

    @property
    def winner(self) -> Candidate | None:
        """The candidate that stands for the answer, if there is one."""
        name = self.vote.winner if self.vote else None
        return next((candidate for candidate in self.candidates if candidate.id == name), None)

    @property
    def open_doubts(self) -> list[str]:
        """Findings of checks on the query that answers, which a model has let stand."""
        return [each.says for each in self.doubted if self.vote and each.candidate == self.vote.winner]

    @property
    def limited(self) -> bool:
        """The run or one of its candidates reached a limit: nothing more is started."""
        return bool(self.stopped_by) or any(candidate.stopped_by for candidate in self.candidates)


@dataclass
class CandidateState(SharedState):
    """The working state of one branch; none of it is shared with the other branches.

    Attributes:
        assumptions, plans, critique: As in ``RunState``, of a plan of its own.
        answer_sql, answer_remarks: The query that returned ``result``, and what was said beside it;
            ``sql`` and ``remarks`` are the current ones.
        writer: The role that wrote ``sql``.
        linked_ref: The schema text of what the SchemaLinker found for this candidate, if it did.
        refined_before: ``refinements`` of Action's earlier queries.
        earlier: Queries that failed, were rejected or replaced, each with the reason.
        exploration: Its own, where each candidate explores by itself.
        grounding: What the InfoAgent found, shown as ``linked_ref``.
        seen, confirmed, checks: Files of plausible results, whether one came twice, and how often the model
            stood by its query (``quorum.graph.nodes.first_version``).
        stage, stage_error, stage_ref, rewrites: Of CTE-based refinement (there, too).
    """

    input: CandidateInput = field(default_factory=lambda: CandidateInput("", 0, "", 0.0, 0))
    assumptions: list[str] = field(default_factory=list)
    plans: int = 0
    critique: str = ""
    history: list[Turn] = field(default_factory=list)
    actions: int = 0
    next: str = ""
    sql: str = ""
    writer: str = ""
    remarks: Remarks | None = None
    ordered: bool | None = None
    error: Failure | None = None
    result: Result | None = None
    answer_sql: str = ""
    answer_remarks: Remarks | None = None
    approved: bool | None = None
    linked_ref: str = ""
    refinements: int = 0
    refined_before: int = 0
    failures: int = 0
    stands: bool = False
    earlier: list[Attempt] = field(default_factory=list)
    exploration: Exploration = field(default_factory=Exploration)
    grounding: Grounding = field(default_factory=Grounding)
    seen: list[str] = field(default_factory=list)
    confirmed: bool | None = None
    checks: int = 0
    errors_in_a_row: int = 0
    stage: int = 0
    stage_error: str = ""
    stage_ref: str = ""
    rewrites: int = 0
    stopped_by: str = ""
    warnings: Annotated[list[str], gather] = field(default_factory=list)

    @property
    def shown_ref(self) -> str:
        """The schema linked for the candidate, else the run's (paper 004, 3.3.4)."""
        return self.linked_ref or self.schema_ref

    @property
    def ran(self) -> bool:
        """True if ``result`` is the current query's."""
        return bool(self.sql) and self.error is None and self.sql == self.answer_sql


def as_typed(state: Any) -> Any:
    """The state of a run or a candidate with ``typed`` values; another graph's, which no server keeps, as is.

    Raises:
        UnfitState: As ``typed``.
    """
    return typed(type(state), vars(state)) if isinstance(state, RunState | CandidateState) else state


def fresh(question: str, run_id: str = "", kind: type[RunState] = RunState, **known: Any) -> dict[str, Any]:
    """The state of a new question: every field at its default, except those in ``known``.

    A field with a reducer gets None, which empties it.
    """
    state = kind(question=question, run_id=run_id, **known)
    hints = _hints(kind)  # type: ignore[arg-type]  # classes hash
    emptied = {name: None for name, hint in hints.items() if get_origin(hint) is Annotated}
    return {item.name: getattr(state, item.name) for item in fields(state)} | emptied


_hints = cache(partial(get_type_hints, include_extras=True))


@cache
def classes_in(*states: Any) -> tuple[type, ...]:
    """Return the classes that states and their values are made of, at any depth."""
    found, waiting = dict[type, None](), [*states]
    while waiting:
        kind = waiting.pop()
        waiting += get_args(kind)
        if not isinstance(kind, type) or kind in found:
            continue
        if is_dataclass(kind) or issubclass(kind, BaseModel | Enum):
            found[kind] = None
            waiting += _hints(kind).values()
    return tuple(found)


STATE_TYPES = classes_in(RunState, CandidateState)
"""Types that a checkpoint may hold beside plain values."""


def branch_input(state: RunState, start: CandidateInput) -> CandidateState:
    """The state in which a candidate's branch begins."""
    return CandidateState(**{it.name: getattr(state, it.name) for it in fields(SharedState)}, input=start)


def set_fields(state: SharedState) -> dict[str, Any]:
    """Return the fields that differ from their defaults. A checkpoint keeps every field ever written."""
    default = vars(type(state)())
    return {name: value for name, value in vars(state).items() if value != default[name]}
