"""What a reader of figures must know: what they leave out, and what cannot be measured."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from quorum.evals.records import Record
from quorum.evals.reports.format import count, listed
from quorum.evals.reports.scores import WHY, Score, unscorable


def notes(
    overall: Score, records: Sequence[Record], shards: Sequence[int], shard_count: int, gold: str
) -> Iterator[str]:
    """Sentences for people, the most important first.

    Args:
        gold: What of their gold the questions were shown: ``tables``, ``columns``; empty for nothing.
    """
    if gold:
        yield from _given(records, gold)
    yield from _scorable(overall, records)
    if len(shards) < shard_count:
        absent = ", ".join(str(n) for n in range(1, shard_count + 1) if n not in shards)
        yield f"{len(shards)} of {shard_count} shards: the figures say nothing of shards {absent}."
    if not records:
        yield "No question has ended yet: there is nothing to measure."
    elif waiting := overall.questions - overall.recorded:
        yield (
            f"{count(waiting, 'question')} of {overall.questions} without a record yet: the run goes on, or "
            "was interrupted. Counted as wrong."
        )
    if failed := sum(not record.finished for record in records):
        yield (
            f"{count(failed, 'question')} failed for want of the model's endpoint or the database. "
            "Counted as wrong; the same `quorum eval run` asks again."
        )
    yield from _efforts(records)
    yield from _unmeasured(records)


def _given(records: Sequence[Record], gold: str) -> Iterator[str]:
    yield (
        f"An ablation, no result of a system: questions saw only the {gold} that their gold needs "
        f'("oracle {gold}").'
    )
    if whole := [record.id for record in records if not record.restricted]:
        yield f"{count(len(whole), 'question')} saw the whole schema, for want of gold: {listed(whole)}."


def _scorable(overall: Score, records: Sequence[Record]) -> Iterator[str]:
    if not overall.unscorable:
        return
    states = Counter(record.gold for record in records if unscorable(record))
    why = ", ".join(f"{WHY.get(state, state)} ({number})" for state, number in sorted(states.items()))
    if overall.ex is None:
        yield f"0 of {overall.questions} questions can be scored: {why}."
    else:
        yield (
            f"{count(overall.unscorable, 'question')} cannot be scored: {why}. Counted as wrong over all "
            "questions asked for, left out elsewhere."
        )


def _efforts(records: Sequence[Record]) -> Iterator[str]:
    unanswered = [record for record in records if record.status != "answered"]
    if met := sum(record.match is True for record in unanswered):
        yield (
            f"{count(met, 'question')} without an answer had a best effort that is right: it was withheld, "
            "or a limit ended the run. Counted as wrong, except where best efforts are counted."
        )


def _unmeasured(records: Sequence[Record]) -> Iterator[str]:
    ledgers = [record.usage for record in records if record.usage]
    if any(record.sql for record in records) and all(record.executes is None for record in records):
        yield "Whether SQL executes cannot be measured: no live database."
    if records and not any(record.linking for record in records):
        yield "Linking cannot be measured: no answer has both SQL and gold SQL that can be read."
    if without := len(records) - len(ledgers):
        yield (
            f"What {count(without, 'question')} cost is not known: no ledger was kept before the failure. "
            "Costs are those of the others."
        )
    if unpriced := sum(usage.get("usd") is None for usage in ledgers):
        yield (
            f"The price of {count(unpriced, 'question')} is not known: a model's price is not in Quorum's "
            "list (set `prices`)."
        )
    if guessed := sum(int(usage.get("estimated_calls") or 0) for usage in ledgers):
        yield f"The tokens of {count(guessed, 'model call')} are estimated: the provider did not state them."
