"""The data types of a vote: ballots, clusters and the vote itself."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, TypeAlias

from quorum.tools.query import ErrorKind

if TYPE_CHECKING:
    from quorum.graph.result_overlaps import ResultOverlaps

LEAST_WEIGHT = 1e-12

UNANSWERABLE = "unanswerable"
"""``Ballot.error`` of a candidate that says that the data cannot answer."""

UNAVAILABLE = "model_unavailable"
"""The same of one whose model could not be reached."""

NO_VERDICT = (
    *("stopped", UNANSWERABLE, UNAVAILABLE),
    *(ErrorKind.UNAVAILABLE.value, ErrorKind.NOT_APPROVED.value),
)
"""Errors of a candidate of whose SQL nothing is known: a limit, the data, the model's endpoint, the database
or the user kept it from running. Its expert gains and loses nothing."""

FIRST = "first"
"""``Vote.stopping`` where the only writer's answer stands without another candidate."""

Decided: TypeAlias = Literal[
    "", "vote", "tie_rule", "draw", "judge", "revision", "evidence", "user", "verified"
]
"""What chose the winner: the weights, the tie rule, a draw, a model, what the data says, the user, or that a
person verified it before; empty without a winner."""


@dataclass(frozen=True)
class Ballot:
    """One candidate as the vote sees it.

    Attributes:
        candidate: The candidate's id.
        expert: The model that wrote it.
        sql: Its final SQL.
        fingerprint: Of its result (``quorum.tools.results.compare.fingerprint``); empty without a result.
        blank: Its result is empty, or all NULL, empty text or zero.
        error: Kind of its ``QueryError``; empty if it ran.
        approved: The validator's verdict; None if it was not asked.
        repairs: Refinement rounds it took.
        named: Its columns have the names that the plan gives them.
        size: Of its SQL, in tokens.
        cluster: What it votes for; the fingerprint where empty. Set it from
            ``quorum.tools.results.compare.cluster_keys`` to join results that agree within the tolerance.
    """

    candidate: str
    expert: str
    sql: str
    fingerprint: str = ""
    blank: bool = False
    error: str = ""
    approved: bool | None = None
    repairs: int = 0
    named: bool = False
    size: int = 0
    cluster: str = ""

    @property
    def choice(self) -> str:
        return self.cluster or self.fingerprint or self.error

    @property
    def reason(self) -> str:
        """The reason for not voting, such as ``failed: KIND`` or ``blank result``; else empty."""
        if self.error == UNANSWERABLE:
            return UNANSWERABLE
        if self.error:
            return f"failed: {self.error}"
        if not self.fingerprint:
            return "no result"
        return "blank result" if self.blank else ""


@dataclass(frozen=True)
class Cluster:
    """Candidates that voted for the same answer.

    Attributes:
        key: What they agree on: a fingerprint, the normalised SQL, or ``UNANSWERABLE``.
        fingerprint: Of the first candidate's result; empty where they say that the data cannot answer.
        candidates: Their ids; the first stands for the cluster.
        experts: The distinct experts among them, sorted.
        weight: In the strategy's unit: votes, weighted votes or expected agreement.
        share: Of the weight of all clusters, 0 to 1; set when the vote is counted.
        approved: Whether the validator approved any of them.
    """

    key: str
    fingerprint: str
    candidates: tuple[str, ...]
    experts: tuple[str, ...]
    weight: float
    share: float = 0.0
    approved: bool = False

    def __post_init__(self) -> None:
        _restore_tuples(self, "candidates", "experts")


@dataclass(frozen=True)
class Vote:
    """The outcome of a vote, including decisions made after counting.

    Attributes:
        winner: Id of the candidate that stands for the answer; None if no candidate has a result.
        clusters: By weight, the winner's first among equals, or where something else than weight chose it.
        share: That of the winner's cluster.
        tie: The heaviest clusters weighed the same; the winner is the best of them by the
            tie rule, and the answer is of low confidence.
        blank: Every result was blank, so those voted although blank results give way.
        seed: Of a draw; None if nothing was drawn.
        approved: The Validator's verdict on the winner; None if it was not asked.
        cast: All candidates, those without a vote too.
        experts: Distinct experts in all.
        excluded: Who did not vote, and why.
        unanswerable: Candidates that say that the data cannot answer.
        doubt: Share of the writers that named another reading of the question, 0 to 1; None if none could.
            Once such readings have run, how many have another result or failed.
        assumed: Assumptions that the answer's writers name, in the mean; None if none could.
        size: Tokens of the winner's query; 0 without one.
        certainty: How probably the answer is right, as its writers say in the mean, 0 to 1; None if none did.
        notes: For people: exclusions, blanks, objections.
        decided: What chose the winner; ``decision`` is a sentence on it, empty where the weights did.
        tied: Keys of the heaviest clusters where they weigh the same, the winner's first; empty
            without a tie. ``clusters`` holds them first, each with the candidate that stands for it.
        judged: A judge chose between the clusters.
        margin: The same answer wins whatever candidates of less than this total weight still vote for; None
            where the strategy cannot say, 0 or less where any candidate could change it.
        upheld: The user chose what the vote had chosen; None if nobody was asked.
        confidence: 0 to 1, of what the vote says now (``quorum.graph.confidence``).
        weights: The experts', as the run found them.
        stopping: The rule that says whether enough have voted.
        enough: What it says.
        saved: Candidates that it spared.
    """

    winner: str | None
    clusters: tuple[Cluster, ...]
    share: float = 0.0
    tie: bool = False
    strategy: str = ""
    blank: bool = False
    seed: int | None = None
    approved: bool | None = None
    cast: int = 0
    experts: int = 0
    excluded: tuple[tuple[str, str], ...] = ()
    unanswerable: tuple[str, ...] = ()
    doubt: float | None = None
    assumed: float | None = None
    size: int = 0
    certainty: float | None = None
    notes: tuple[str, ...] = ()
    decided: Decided = ""
    decision: str = ""
    tied: tuple[str, ...] = ()
    judged: bool = False
    margin: float | None = None
    upheld: bool | None = None
    confidence: float = 0.0
    weights: Mapping[str, float] = field(default_factory=dict)
    stopping: str = ""
    enough: bool = False
    saved: int = 0

    def __post_init__(self) -> None:
        _restore_tuples(self, "clusters", "notes", "tied", "unanswerable")
        object.__setattr__(self, "excluded", tuple((name, reason) for name, reason in self.excluded))

    @property
    def winning(self) -> Cluster | None:
        """The winner's cluster."""
        return next((cluster for cluster in self.clusters if self.winner in cluster.candidates), None)

    @property
    def heads(self) -> int:
        """Candidates that say that the data cannot answer, where these have no vote (``count_heads``)."""
        return sum(reason == UNANSWERABLE for _, reason in self.excluded)

    @property
    def cannot_answer(self) -> bool:
        """True if the vote says that the data cannot answer.

        It was voted for, or more candidates without a vote say so than agree on any answer. False where a
        revision was chosen.
        """
        most = max((len(cluster.candidates) for cluster in self.clusters), default=0)
        return self.decided != "revision" and (self.winner in self.unanswerable or self.heads > most)

    @property
    def answers(self) -> tuple[Cluster, ...]:
        """The clusters that have a result."""
        return tuple(cluster for cluster in self.clusters if cluster.fingerprint)

    @property
    def voters(self) -> int:
        """Candidates that voted."""
        return sum(len(cluster.candidates) for cluster in self.clusters)

    @property
    def low(self) -> bool:
        """Low confidence by rule: a tie, a single survivor of several candidates, or nothing but blanks."""
        return self.tie or self.blank or self.voters < 2 <= self.cast

    @property
    def remarks(self) -> tuple[str, ...]:
        """The notes and the decision, as sentences."""
        return (*self.notes, self.decision) if self.decision else self.notes


def _restore_tuples(value: object, *names: str) -> None:
    """A checkpoint gives tuples back as lists."""
    for name in names:
        object.__setattr__(value, name, tuple(getattr(value, name)))


@dataclass(frozen=True)
class Rules:
    """Inputs of a strategy besides the ballots.

    Attributes:
        weights: Per expert; 1.0 where an expert is not named (SSEV, equation 1).
        seed: For strategies that draw.
        dialect: Of the SQL, to normalise it.
        overlaps: For strategies that compare results.
        blanks_give_way: Blank results vote only where there are no others.
        count_heads: That the data cannot answer has no vote (``Vote.heads``).
    """

    weights: Mapping[str, float] = field(default_factory=dict)
    seed: int = 0
    dialect: str = ""
    overlaps: ResultOverlaps | None = None
    blanks_give_way: bool = False
    count_heads: bool = False

    def weight(self, expert: str) -> float:
        """Never below ``LEAST_WEIGHT``, so that a draw is possible among the worst."""
        return max(LEAST_WEIGHT, self.weights.get(expert, 1.0))


Strategy: TypeAlias = Callable[[Sequence[Ballot], Rules], Awaitable[Vote]]
"""Weighs ballots, all of which may vote; their order must not matter.

``hold_vote`` reads of the ``Vote`` that it returns: the weighed ``clusters``, the ``margin``, and a
``winner`` that was drawn with a ``seed``, or whose cluster wins whatever the others weigh.
"""


def rank(ballot: Ballot) -> tuple[bool, int, str, str]:
    """The tie rule's order, best first: approved, fewest repairs, smallest SHA-256 of the SQL.

    The hash (of the SQL with single blanks) favours nobody and nothing that depends on time; ids
    are compared only where two candidates have the same SQL.
    """
    return (ballot.approved is not True, ballot.repairs, _digest(ballot.sql), ballot.candidate)


def plainness(ballot: Ballot) -> tuple[bool, int, bool, int, str, str]:
    """Return the sort key of candidates that agree; the first stands for them.

    As ``rank``, but the plan's column names, then the shortest SQL come before the hash.
    """
    approved, repairs, digest, name = rank(ballot)
    return (approved, repairs, not ballot.named, ballot.size, digest, name)


@lru_cache(maxsize=256)  # votes sort the same ballots again and again
def _digest(sql: str) -> str:
    plain = " ".join(sql.split())
    return hashlib.sha256(plain.encode(errors="surrogatepass")).hexdigest()
