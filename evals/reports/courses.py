"""What exploration and repairs cost, and what rounds of candidates are worth (ReFoRCE, paper 000, Tables 1, 6
and 7).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from quorum.evals.records import Effort, Record
from quorum.evals.reports.statistics import Mean, Share, mean_of, share_of

LEVELS: dict[str, Callable[[Effort], bool]] = {
    "no repair": lambda effort: not effort.explored and effort.repairs == 0,
    "one or two repairs": lambda effort: not effort.explored and effort.repairs in (1, 2),
    "three repairs or more": lambda effort: not effort.explored and effort.repairs > 2,
    "with an exploration": lambda effort: effort.explored,
}
"""Tables 6 and 7; a candidate stands in one of them."""


@dataclass(frozen=True)
class Level:
    """What the candidates of one level took.

    Attributes:
        calls, queries: Of models and of the database, per candidate.
        tokens: In and out, per model call; None without a call.
    """

    title: str
    candidates: int
    calls: Mean
    queries: Mean
    tokens: float | None


@dataclass(frozen=True)
class Courses:
    """How runs went, over the records that tell.

    Attributes:
        explored: Questions with a column exploration.
        first_ties: First votes that were a tie, of those held.
        first_round: Of the questions explored whose first round was set aside and that can be scored: some
            candidate of it is right.
        last_round: Of the same questions, some candidate of the last round is.
        levels: In their order; empty ones are left out.
    """

    explored: Share
    first_ties: Share
    first_round: Share
    last_round: Share
    levels: tuple[Level, ...]


def courses(records: Iterable[Record]) -> Courses | None:
    """How the runs went; None where no candidate was repaired and nothing explored."""
    told = [(record, record.course) for record in records if record.course is not None]
    efforts = [effort for _, course in told for effort in course.efforts]
    if not any(effort.repairs or effort.explored for effort in efforts):
        return None
    rounds = [pair for record, _ in told if (pair := _rounds(record)) is not None]
    return Courses(
        explored=share_of(course.explored for _, course in told),
        first_ties=share_of(course.first_tie for _, course in told if course.first_tie is not None),
        first_round=share_of(first for first, _ in rounds),
        last_round=share_of(last for _, last in rounds),
        levels=tuple(
            _level(title, own) for title, fits in LEVELS.items() if (own := [e for e in efforts if fits(e)])
        ),
    )


def _rounds(record: Record) -> tuple[bool, bool] | None:
    """Whether some candidate is right in the first round, and in the last; None without two, or unknown."""
    first = [row.match for row in record.candidates if row.superseded and row.match is not None]
    last = [row.match for row in record.voters if row.match is not None]
    return (any(first), any(last)) if first and last else None


def _level(title: str, efforts: Sequence[Effort]) -> Level:
    calls = sum(effort.calls for effort in efforts)
    return Level(
        title=title,
        candidates=len(efforts),
        calls=mean_of(effort.calls for effort in efforts),
        queries=mean_of(effort.queries for effort in efforts),
        tokens=sum(effort.tokens for effort in efforts) / calls if calls else None,
    )
