"""Recorded candidates scored one by one: how good each is, their choice, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from quorum.evals.recorded.candidates import FINAL, RecordedCandidates
from quorum.evals.reports.statistics import Mean, mean_of
from quorum.evals.scorers.spider2_rules import Spider2Gold
from quorum.evals.submissions.scoring import MISSING, asked_ids


@dataclass(frozen=True)
class ModelScores:
    """The scores of a model's candidates.

    Attributes:
        right: By question id, of all questions asked for; by ``final`` and the candidates' numbers, whether
            each meets the gold. ``final`` is there and wrong where the recorded pipeline chose nothing.
    """

    right: dict[str, dict[str, bool]] = field(default_factory=dict)

    @property
    def numbered(self) -> list[list[bool]]:
        """By question, whether each candidate is right, the final choices left out."""
        return [[ok for name, ok in each.items() if name != FINAL] for each in self.right.values()]

    @property
    def candidates(self) -> int:
        """How many candidates there are, the final choices left out."""
        return sum(map(len, self.numbered))

    @property
    def final(self) -> Mean:
        """EX of what the recorded pipeline chose."""
        return mean_of(float(each[FINAL]) for each in self.right.values())

    @property
    def candidate(self) -> Mean:
        """EX of a candidate drawn at random, the mean of the questions' means; without any it is 0."""
        return mean_of(sum(own) / len(own) if own else 0.0 for own in self.numbered)

    @property
    def possible(self) -> Mean:
        """pass@k: the share of questions that any candidate has right."""
        return mean_of(float(any(own)) for own in self.numbered)

    def as_json(self) -> dict[str, dict[str, int]]:
        return {id: {name: int(right) for name, right in each.items()} for id, each in self.right.items()}


@dataclass(frozen=True)
class CandidateScores:
    """The verdicts on a folder of recorded candidates.

    Attributes:
        models: By name, each over the same questions.
        reasons: By model, question and candidate: which gold is met, or why none is.
        without_gold: Questions that the gold lacks; none of their candidates is right.
    """

    models: dict[str, ModelScores]
    reasons: dict[tuple[str, str, str], str]
    without_gold: tuple[str, ...]


def score_candidates(
    recorded: RecordedCandidates,
    gold: Spider2Gold,
    ids: Iterable[str] | None = None,
    *,
    on_done: Callable[[int, int], None] = lambda *_: None,
) -> CandidateScores:
    """Score every recorded result, question by question, so that each gold is read once.

    Args:
        ids: Questions asked for; all that any model has if None.
        on_done: Told how many questions are done, of how many.

    Raises:
        ConfigurationError: A question is unknown.
    """
    asked = asked_ids(recorded.questions, ids, f"{recorded.folder}")
    models = {name: ModelScores() for name in recorded.models}
    reasons = {}
    for done, id in enumerate(asked, start=1):
        for name, answers in recorded.models.items():
            right = models[name].right[id] = {FINAL: False}
            reasons[name, id, FINAL] = MISSING
            for candidate in answers[id].all if id in answers else ():
                label = candidate.label
                right[label], reasons[name, id, label] = False, "the gold does not know the question"
                if id in gold.standards:
                    score = gold.score(id, candidate.path)
                    right[label], reasons[name, id, label] = score.match, score.reason
        on_done(done, len(asked))
    return CandidateScores(models, reasons, tuple(id for id in asked if id not in gold.files))
