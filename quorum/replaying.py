"""The judge of `quorum votes replay`: its model and what it is told, and what is said of it afterwards."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

from quorum.evals.recorded.ballots import Source
from quorum.evals.recorded.candidates import RecordedCandidates
from quorum.evals.recorded.judging import ReplayedJudge, Replies
from quorum.evals.recorded.told import SuiteTeller, Teller
from quorum.evals.scorers.spider2_rules import Spider2Gold
from quorum.evals.suites import load_suite
from quorum.graph.options import RunOptions
from quorum.graph.resources import open_models
from quorum.knowledge.errors import ConfigurationError
from quorum.settings import Settings
from quorum.text import count, dollars
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models import check_priced
from quorum.tools.urls import SAMPLE

REPLIES = "replies.jsonl"


@asynccontextmanager
async def judge_of(
    settings: Settings | None,
    source: Source,
    folder: Path,
    limits: Budget,
    at_once: int,
    *,
    both_orders: bool,
) -> AsyncIterator[ReplayedJudge | None]:
    """The judge of a replay, its model open; None where no settings name one.

    Args:
        folder: Where its replies are kept.
        limits: On what it is asked anew, all together.

    Raises:
        ConfigurationError: The model cannot be made, or nothing is known of the questions.
    """
    if settings is None:
        yield None
        return
    options = settings.changed(database=SAMPLE).run_options()  # no database is asked
    if source.told is None:
        raise ConfigurationError(
            "A judge has to know the questions.",
            hint="Name with --gold the gold inside its benchmark's folder.",
        )
    replies = Replies(folder / REPLIES)
    opened = await open_models(options, api_key=settings.key)
    try:
        check_priced(opened.models.values(), limits)
        (model,) = opened.models.values()
        bound = model.at(ledger=Ledger(limits), record=replies.record, recall=replies.recall)
        yield ReplayedJudge(bound, source.told, both_orders=both_orders, at_once=at_once)
    finally:
        await opened.aclose()


def teller_of(recorded: RecordedCandidates, gold: Spider2Gold) -> Teller:
    """What the benchmark around a gold says of recorded questions.

    Raises:
        ConfigurationError: The gold does not lie in its benchmark's folder.
    """

    def queries(id: str) -> list[str]:
        answers = [asked[id] for asked in recorded.models.values() if id in asked]
        return [each.sql for answer in answers for each in answer.candidates]

    usual = RunOptions()
    suite = load_suite(f"spider2-{gold.edition}", gold.folder.resolve().parents[1])
    return SuiteTeller(
        suite, queries, schema_tokens=usual.schema_tokens, document_tokens=usual.document_tokens
    )


def said_of(judge: ReplayedJudge) -> Iterator[str]:
    """What the judge was asked and what it took, for people."""
    spent = judge.model.ledger.total
    if judge.model.backend.demonstration:
        yield "Demonstration: the rule-based offline model judged, not a language model."
    yield (
        f"The judge was asked in {count(judge.asked, 'close vote')} and could not tell in "
        f"{judge.undecided:,}: {count(spent.model_calls, 'new model call')}, {spent.input_tokens:,} tokens "
        f"in, {spent.output_tokens:,} out, {dollars(spent.usd)}."
    )
    if judge.unasked:
        yield (
            f"A limit was reached: {count(len(judge.unasked), 'close vote')} not judged. The same command "
            "with a larger one goes on."
        )
