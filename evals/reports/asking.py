"""What one question to the user is worth: accuracy with it, how often it is asked, and how often in vain."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.evals.records import Asking, Record
from quorum.evals.reports.statistics import Mean, Share, mean_of, share_of

if TYPE_CHECKING:
    from quorum.evals.reports.scores import Pair


@dataclass(frozen=True)
class OneQuestion:
    """A simulated user's questions, over all questions asked for; without an answer nothing is right.

    Where a question has several right readings, the user means one of them, and only that is right; else any
    accepted result is.

    Attributes:
        without: Answers as they stand that are what the user means.
        ex: With one question: the user chose what they mean, or was not offered it and the answer is.
        without_all, ex_all: The same in the mean over all readings that they may mean; None where no question
            has several.
        asked: Of all questions, those in which the user was asked.
        helped: Of these, the answer was not what they mean, and a choice was.
        needless: Of these, the answer was what they mean.
        unhelpful: Of these, neither was.
    """

    without: Share
    ex: Share
    without_all: Mean | None
    ex_all: Mean | None
    asked: Share
    helped: Share
    needless: Share
    unhelpful: Share


def one_question(pairs: Sequence[Pair]) -> OneQuestion | None:
    """The figures of an evaluation; None where no user was simulated."""
    records = [record for _, record in pairs]
    if not any(record and record.asking for record in records):
        return None
    asked = [record for record in records if record and record.asking and record.asking.choices]
    without, ex = ([_right(record, question=question) for record in records] for question in (False, True))
    several = any(record and record.asking and record.asking.readings > 1 for record in records)
    without_all, ex_all = (
        mean_of(_mean(record, question=question) for record in records) if several else None
        for question in (False, True)
    )
    return OneQuestion(
        without=share_of(without),
        ex=share_of(ex),
        without_all=without_all,
        ex_all=ex_all,
        asked=share_of(record in asked for record in records),
        helped=share_of(not _right(r) and _right(r, question=True) for r in asked),
        needless=share_of(_right(r) for r in asked),
        unhelpful=share_of(not _right(r, question=True) for r in asked),
    )


def right_with_question(record: Record | None) -> bool:
    """Whether the user of a question got what they mean, with one question where the run asks it."""
    return _right(record, question=True)


def _right(record: Record | None, *, question: bool = False) -> bool:
    if record is None or (user := record.asking) is None:
        return False
    return _serves(record, user, user.intent, question=question)


def _mean(record: Record | None, *, question: bool) -> float:
    """The share of the readings that the user may mean with which they get it."""
    if record is None or (user := record.asking) is None:
        return 0.0
    intents: Sequence[int | None] = range(user.readings) if user.readings else [None]
    return sum(_serves(record, user, intent, question=question) for intent in intents) / len(intents)


def _serves(record: Record, user: Asking, intent: int | None, *, question: bool) -> bool:
    if question and any(user.suits(choice, intent) for choice in user.choices):
        return True
    return record.status == "answered" and user.suits(record, intent)
