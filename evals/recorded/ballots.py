"""Recorded candidates made ready to vote: a question's ballots, for each model and for all pooled."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from quorum.graph.ballots import Ballot
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.evals.recorded.candidates import RecordedCandidate, RecordedCandidates
    from quorum.evals.scorers.spider2_rules import Spider2Gold
    from quorum.tools.results.canonical import Canonical

POOLED = "pooled"
"""The candidates of all models together."""


@dataclass(frozen=True, eq=False)
class RecordedBallots:
    """One question's ballots, with what is known of its candidates.

    Attributes:
        ballots: By model, then by number; ids are ``model/number``, experts are models.
        overlaps: Compares their results.
        right: Ids of the candidates that are known to meet the gold.
        final: Whether the recorded pipeline's own choice meets the gold; None where nothing is recorded, and
            for the pool, which no pipeline chose from.
        as_final: Ids of the candidates whose result equals that choice's.
    """

    question: str
    ballots: tuple[Ballot, ...]
    overlaps: ResultOverlaps
    right: frozenset[str]
    final: bool | None = None
    as_final: frozenset[str] = frozenset()

    def of(self, expert: str) -> RecordedBallots:
        """Only the candidates of one expert."""
        return self._only([ballot for ballot in self.ballots if ballot.expert == expert])

    def _only(self, kept: Collection[Ballot]) -> RecordedBallots:
        own = {ballot.candidate for ballot in kept}
        return replace(self, ballots=tuple(kept), right=self.right & own, as_final=self.as_final & own)

    def as_in_paper(self) -> RecordedBallots:
        """Only the first candidate of each expert, and blank results vote too."""
        first = {ballot.expert: ballot for ballot in reversed(self.ballots)}
        return self._only([replace(each, blank=False) for each in self.ballots if each in first.values()])


@dataclass(frozen=True, eq=False)
class Source:
    """Candidates that can vote again: recorded ones, or those of an evaluation.

    Attributes:
        models: Sorted.
        questions: Ids, sorted.
        known: Something says which candidates are right.
        unknown: Questions of which nothing says so.
        learnable: Questions that say something of every expert: weights are learned from these.
        several: A model may have several candidates in a question.
        dialect_of: The SQL dialect of a question.
        ballots: A question's, in each of ``names``.
        told: What a judge is told of a question; None where that is not known.
    """

    models: Sequence[str]
    questions: Sequence[str]
    known: bool
    unknown: Sequence[str]
    learnable: Sequence[str]
    several: bool
    dialect_of: Callable[[str], str]
    ballots: Callable[[str], Mapping[str, RecordedBallots]]

    @property
    def names(self) -> list[str]:
        """The models, and ``POOLED`` where there are several."""
        return [*self.models, POOLED] if len(self.models) > 1 else list(self.models)

    def as_in_paper(self) -> Source:
        """The setting of SSEV, section 3.1.2: one candidate of each model in each question, the first, and
        all results vote, blank ones too."""
        ballots = self.ballots

        def first(question: str) -> dict[str, RecordedBallots]:
            return {name: found.as_in_paper() for name, found in ballots(question).items()}

        return replace(self, several=False, ballots=first)


def source_of(
    recorded: RecordedCandidates, gold: Spider2Gold | None = None, *, dialect: str = "snowflake"
) -> Source:
    """Recorded candidates as a source.

    Args:
        gold: Without it nothing can be right.
        dialect: Of the recorded SQL.

    Raises:
        ConfigurationError: The gold knows none of the questions, or a model has the name of the pool.
    """
    groups(recorded)
    asked = recorded.questions
    unknown = [question for question in asked if gold and question not in gold.files]
    if gold and len(unknown) == len(asked):
        raise ConfigurationError(
            f"The gold in {gold.folder} knows none of the {len(asked)} questions in {recorded.folder}.",
            hint=f"They are like {', '.join(asked[:3])}; give the gold of their edition.",
        )
    return Source(
        models=list(recorded.models),
        questions=asked,
        known=gold is not None,
        unknown=unknown,
        learnable=[question for question in asked if question not in unknown] if gold else [],
        several=any(len(each.candidates) > 1 for each in recorded),
        dialect_of=lambda _: dialect,
        ballots=lambda question: ballots_of(recorded, question, gold),
    )


def groups(recorded: RecordedCandidates) -> list[str]:
    """The models, and ``POOLED`` where there are several.

    Raises:
        ConfigurationError: A model is called ``POOLED``.
    """
    models = list(recorded.models)
    if POOLED in models:
        raise ConfigurationError(
            f"{recorded.folder} has a model called {POOLED!r}, which names all models together.",
            hint="Rename its folder.",
        )
    return [*models, POOLED] if len(models) > 1 else models


def ballots_of(
    recorded: RecordedCandidates, question: str, gold: Spider2Gold | None
) -> dict[str, RecordedBallots]:
    """A question's ballots in each of ``groups``.

    Results are read and scored once. Two share a cluster if they agree within the tolerance, as in a run
    (``quorum.tools.results.cluster_keys``). A question that the gold does not know has no right candidate.
    """
    from quorum.tools.results.compare import equal

    scorer = gold if gold and question in gold.files else None
    answers = [asked[question] for asked in recorded.models.values() if question in asked]
    read = [_read(candidate, scorer) for answer in answers for candidate in answer.candidates]
    finals = {answer.model: _read(answer.final, scorer) for answer in answers if answer.final}
    forms = {ballot.fingerprint: form for ballot, form, _ in read if form}
    overlaps = ResultOverlaps.from_tables(forms)
    made = {}
    for group in groups(recorded):
        own = [each for each in read if group in (each[0].expert, POOLED)]
        right = frozenset(ballot.candidate for ballot, _, is_right in own if is_right)
        voting = _clustered([ballot for ballot, _, _ in own], forms)
        made[group] = RecordedBallots(question, voting, overlaps, right)
        if group in finals:
            _, chosen, is_right = finals[group]
            like = [ballot.candidate for ballot, form, _ in own if form and chosen and equal(form, chosen)]
            made[group] = replace(made[group], final=is_right, as_final=frozenset(like))
    return made


def _read(candidate: RecordedCandidate, gold: Spider2Gold | None) -> tuple[Ballot, Canonical | None, bool]:
    """The candidate's ballot, its result (None if it failed), and whether that meets the gold."""
    from quorum.tools.results.canonical import canonical, is_blank
    from quorum.tools.results.compare import fingerprint

    right = gold is not None and gold.score(candidate.question, candidate.path).match
    ballot = Ballot(_id(candidate), candidate.model, candidate.sql)
    table = candidate.table
    if table is None:
        return ballot, None, right
    form = canonical(table)
    return replace(ballot, fingerprint=fingerprint(form), blank=is_blank(table)), form, right


def _id(candidate: RecordedCandidate) -> str:
    return f"{candidate.model}/{candidate.number}"


def _clustered(ballots: Sequence[Ballot], forms: Mapping[str, Canonical]) -> tuple[Ballot, ...]:
    """The ballots with what they vote for."""
    from quorum.tools.results.compare import cluster_keys

    marks = sorted({ballot.fingerprint for ballot in ballots if ballot.fingerprint})
    clusters = dict(zip(marks, cluster_keys([forms[mark] for mark in marks]), strict=True))
    return tuple(replace(ballot, cluster=clusters.get(ballot.fingerprint, "")) for ballot in ballots)
