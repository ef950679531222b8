"""Recorded candidates made ready to vote: one round a question, for each model and for all pooled."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.evals.recorded.candidates import RecordedCandidate, RecordedCandidates
from quorum.evals.scorers.spider2_rules import Spider2Gold
from quorum.graph.ballots import Ballot
from quorum.graph.evidence import ResultEvidence
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.tools.canonical import Canonical

POOLED = "pooled"
"""The candidates of all models together."""


@dataclass(frozen=True)
class Final:
    """What the recorded pipeline itself chose.

    Attributes:
        right: Whether it meets the gold.
        same: Ids of the candidates with an equal result.
    """

    right: bool
    same: frozenset[str]


@dataclass(frozen=True, eq=False)
class Round:
    """One question's candidates as they vote, and what is known of them.

    Attributes:
        ballots: By model, then by number; ids are ``model/number``, experts are models.
        evidence: Compares their results.
        judged: The gold has a result for the question.
        right: Ids of the candidates that meet the gold.
        final: None where nothing is recorded, and for the pool, which no pipeline chose from.
    """

    question: str
    ballots: tuple[Ballot, ...]
    evidence: ResultEvidence
    judged: bool
    right: frozenset[str]
    final: Final | None = None


@dataclass(frozen=True, eq=False)
class _Seen:
    """A candidate whose result was read: None and no mark if it failed."""

    candidate: RecordedCandidate
    form: Canonical | None
    mark: str
    blank: bool
    right: bool

    @property
    def name(self) -> str:
        return f"{self.candidate.model}/{self.candidate.number}"


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


def questions(recorded: RecordedCandidates) -> list[str]:
    """The ids of all questions, those too that some models did not answer; sorted."""
    return sorted({asked.question for asked in recorded})


def prepare(recorded: RecordedCandidates, question: str, gold: Spider2Gold | None) -> dict[str, Round]:
    """A question's round in each of ``groups``.

    Results are read and scored once. Two share a cluster if they agree within the tolerance, as in a
    run (``tools.results.cluster_keys``). A question that the gold does not know has no right candidate.
    """
    judged = gold is not None and question in gold.files
    scorer = gold if judged else None
    seen: list[_Seen] = []
    finals: dict[str, _Seen] = {}
    for model, asked in recorded.models.items():
        if answered := asked.get(question):
            seen += [_look(candidate, scorer) for candidate in answered.candidates]
            if answered.final:
                finals[model] = _look(answered.final, scorer)
    forms = {one.mark: one.form for one in seen if one.form}
    evidence = ResultEvidence.from_tables(forms)
    made = {}
    for group in groups(recorded):
        own = [one for one in seen if group in (one.candidate.model, POOLED)]
        made[group] = Round(
            question,
            tuple(_ballots(own)),
            evidence,
            judged,
            frozenset(one.name for one in own if one.right),
            _final(finals[group], own) if group in finals else None,
        )
    return made


def rounds(recorded: RecordedCandidates, gold: Spider2Gold | None) -> Iterator[dict[str, Round]]:
    """``prepare`` question by question, in the order of their ids."""
    return (prepare(recorded, question, gold) for question in questions(recorded))


def _look(candidate: RecordedCandidate, gold: Spider2Gold | None) -> _Seen:
    from quorum.tools.canonical import canonical
    from quorum.tools.results import fingerprint, is_blank

    right = gold is not None and gold.score(candidate.question, candidate.path).match
    table = candidate.table
    if table is None:
        return _Seen(candidate, None, "", False, right)
    form = canonical(table)
    return _Seen(candidate, form, fingerprint(form), is_blank(table), right)


def _ballots(seen: Sequence[_Seen]) -> Iterator[Ballot]:
    clusters = _clusters({one.mark: one.form for one in seen if one.form})
    for one in seen:
        yield Ballot(
            candidate=one.name,
            expert=one.candidate.model,
            sql=one.candidate.sql,
            fingerprint=one.mark,
            blank=one.blank,
            cluster=clusters.get(one.mark, ""),
        )


def _clusters(forms: Mapping[str, Canonical]) -> dict[str, str]:
    from quorum.tools.results import cluster_keys

    marks = sorted(forms)
    return dict(zip(marks, cluster_keys([forms[mark] for mark in marks]), strict=True))


def _final(chosen: _Seen, seen: Sequence[_Seen]) -> Final:
    from quorum.tools.results import equal

    form = chosen.form
    same = {one.name for one in seen if form and one.form and equal(one.form, form)}
    return Final(chosen.right, frozenset(same))
