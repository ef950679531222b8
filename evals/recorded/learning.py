"""Weights learned after the fact: candidates vote again, question by question in the order of ids.

An evaluation holds its votes with level weights, for learned ones would depend on the order in which its
questions end, and shards could not be merged. What WMA and RWMA (SSEV, section 3.1.2) would have made of the
same candidates is found here, from any source of them.
"""

from __future__ import annotations

from collections.abc import Collection, Coroutine, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Literal, TypeVar, get_args

from quorum.evals.recorded.ballots import POOLED, RecordedBallots, Source
from quorum.evals.recorded.expected import ReplayedVote
from quorum.evals.recorded.online import COMPARED, OnlineWeights
from quorum.graph.ballots import NO_VERDICT, UNANSWERABLE, Rules
from quorum.graph.stopping import find_stopping
from quorum.graph.strategies import WEIGHTED

Feedback = Literal["gold", "execution"]
"""Who says that an expert was wrong: the verdicts of the gold, or that its SQL did not run (SSEV, 3.1.2)."""

Result = TypeVar("Result")
FEEDBACKS: tuple[Feedback, ...] = get_args(Feedback)
WITHOUT_OVERLAPS = tuple(name for name in COMPARED if name != "mbr")
NEVER = "never"


def start(source: Source, compared: Iterable[str] = COMPARED) -> OnlineWeights | None:
    """Level weights of the source's experts; None where there is a single one, or nothing is known."""
    if not source.learnable or POOLED not in source.names:
        return None
    return OnlineWeights.of(source.models, None if source.several else len(source.learnable), compared)


def learn_question(
    learned: OnlineWeights,
    found: Mapping[str, RecordedBallots],
    lost: Mapping[str, float],
    votes: Mapping[str, float],
    feedback: Feedback,
) -> None:
    """Learn from one question what the experts lost, as the feedback sees it."""
    told = {name: _told(found.get(name), lost[name], feedback) for name in learned.experts}
    learned.learn(lost, votes, told)


def _told(found: RecordedBallots | None, lost: float, feedback: Feedback) -> float | None:
    """What an expert is punished for; None if none of its SQL could be judged.

    That the data cannot answer is wrong by a gold that has an answer; execution says nothing of it.
    """
    ballots = found.ballots if found else ()
    ran = any(ballot.fingerprint for ballot in ballots)
    silent = set(NO_VERDICT) - ({UNANSWERABLE} if feedback == "gold" else set())
    if ballots and not ran and all(ballot.error in silent for ballot in ballots):
        return None
    return lost if feedback == "gold" else float(not ran)


async def learn(
    source: Source, compared: Collection[str] = WITHOUT_OVERLAPS
) -> dict[Feedback, OnlineWeights]:
    """The weights after all questions, in the order of ids, by feedback; empty where ``start`` gives none.

    Nothing here waits for anything: strategies that compare no results and ask no model do not.
    """
    every = {name: learned for name in FEEDBACKS if (learned := start(source, compared))}
    weighted = [name for name in compared if name in WEIGHTED]
    for question in source.learnable if every else ():
        found = source.ballots(question)
        rules = Rules(seed=0, dialect=source.dialect_of(question))
        lost = {name: await _lost(found.get(name), "majority", rules) for name in source.models}
        level = {name: await _lost(found[POOLED], name, rules) for name in compared if name not in weighted}
        for feedback, learned in every.items():
            own = replace(rules, weights=learned.weights)
            votes = level | {name: await _lost(found[POOLED], name, own) for name in weighted}
            learn_question(learned, found, lost, votes, feedback)
    return every


def at_once(coroutine: Coroutine[Any, Any, Result]) -> Result:
    """What a coroutine that waits for nothing returns, whether or not an event loop runs here."""
    try:
        coroutine.send(None)
    except StopIteration as end:
        found: Result = end.value
        return found
    raise AssertionError("it waits")  # a fault of ours: learn() says that it does not


async def _lost(found: RecordedBallots | None, strategy: str, rules: Rules) -> float:
    """How probably the vote's answer is wrong."""
    if found is None:
        return 1.0
    outcome = await ReplayedVote(found, strategy, rules).outcome(find_stopping(NEVER), [found.ballots])
    return 1 - outcome.right


def taught(learned: OnlineWeights) -> Iterator[dict[str, bool]]:
    """Rounds for ``quorum.tools.experts.ExpertLedger``: per question, whom the feedback calls right."""
    for told in zip(*learned.told.values(), strict=True):
        yield {name: not loss for name, loss in zip(learned.told, told, strict=True) if loss is not None}
