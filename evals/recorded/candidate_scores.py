"""Recorded candidates scored one by one: how good each is, their choice, and the best of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from quorum.evals.recorded.candidates import FINAL, RecordedCandidate, RecordedCandidates, RecordedQuestion
from quorum.evals.recorded.rounds import questions
from quorum.evals.reports.statistics import Mean, mean_of
from quorum.evals.scorers.spider2_rules import Spider2Gold
from quorum.evals.submissions.scoring import MISSING, asked_ids


@dataclass(frozen=True)
class ModelScores:
    """What a model's candidates are worth.

    Attributes:
        model: As the folder names it.
        right: By question id, of all questions asked for; by ``final`` and the candidates' numbers, whether
            each meets the gold. ``final`` is there and wrong where the recorded pipeline chose nothing.
    """

    model: str
    right: dict[str, dict[str, bool]]

    @property
    def candidates(self) -> int:
        """How many candidates there are, the final choices left out."""
        return sum(len(_numbered(each)) for each in self.right.values())

    @property
    def final(self) -> Mean:
        """EX of what the recorded pipeline chose."""
        return mean_of(float(each[FINAL]) for each in self.right.values())

    @property
    def candidate(self) -> Mean:
        """EX of a candidate drawn at random, the mean of the questions' means; without any it is 0."""
        shares = (_numbered(each) for each in self.right.values())
        return mean_of(sum(share) / len(share) if share else 0.0 for share in shares)

    @property
    def possible(self) -> Mean:
        """pass@k: the share of questions that any candidate has right."""
        return mean_of(float(any(_numbered(each))) for each in self.right.values())

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
    asked = asked_ids(questions(recorded), ids, f"{recorded.folder}")
    models = {name: ModelScores(name, {}) for name in recorded.models}
    reasons = {}
    for done, id in enumerate(asked, start=1):
        for name, answers in recorded.models.items():
            right = models[name].right[id] = {FINAL: False}
            reasons[name, id, FINAL] = MISSING
            for candidate in _all(answers.get(id)):
                label = FINAL if candidate.number is None else str(candidate.number)
                right[label], reasons[name, id, label] = _judged(candidate, gold)
        on_done(done, len(asked))
    return CandidateScores(models, reasons, tuple(id for id in asked if id not in gold.files))


def _judged(candidate: RecordedCandidate, gold: Spider2Gold) -> tuple[bool, str]:
    if candidate.question not in gold.standards:
        return False, "the gold does not know the question"
    score = gold.score(candidate.question, candidate.path)
    return score.match, score.reason


def _all(question: RecordedQuestion | None) -> list[RecordedCandidate]:
    if question is None:
        return []
    return [*([question.final] if question.final else []), *question.candidates]


def _numbered(right: dict[str, bool]) -> list[bool]:
    return [value for name, value in right.items() if name != FINAL]
