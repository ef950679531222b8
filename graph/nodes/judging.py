"""The Judge in a vote: a model decides between answers that are about equally strong."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from quorum.agents.judge import LABELS, Judgement, Rival, judge
from quorum.graph.ballots import Ballot, Cluster
from quorum.graph.contest import sides
from quorum.graph.context import Context
from quorum.graph.disagreement import disagreements
from quorum.graph.nodes.models import first_available
from quorum.graph.nodes.planning import format_of
from quorum.graph.state import RunState
from quorum.knowledge.errors import BudgetExceeded, MalformedReply, ModelUnavailable
from quorum.tools.models import Model


class ModelJudge:
    """``quorum.graph.ballots.Judge`` for one vote of a run.

    It is asked once, when no candidate is still to come: in the vote of an earlier wave it cannot
    tell, unless it is asked ``early``. That a model fails it costs the judgement, never the vote.
    """

    def __init__(self, state: RunState, context: Context, *, early: bool = False) -> None:
        self._state, self._context, self._early = state, context, early

    async def choose(self, clusters: Sequence[Cluster], ballots: Sequence[Ballot]) -> str | None:  # noqa: ARG002 (the interface's)
        """The key of the better cluster; None where the model cannot tell. Every verdict is recorded."""
        if self._state["dealt"] < self._context.votes and not self._early:
            return None
        shown = sorted(clusters, key=lambda cluster: _order(self._state["question"], cluster))[: len(LABELS)]
        try:
            judged = await self._ask(shown)
        except (MalformedReply, ModelUnavailable, BudgetExceeded) as error:
            self._context.trace.record("judgement", agent="judge", error=str(error))
            return None
        by_label: dict[str, Cluster] = dict(zip(LABELS, shown, strict=False))
        named = {label: cluster.candidates for label, cluster in by_label.items()}
        self._context.trace.record("judgement", agent="judge", answers=named, **judged.model_dump())
        better = by_label.get(judged.choice)
        return better.key if better else None

    async def _ask(self, clusters: Sequence[Cluster]) -> Judgement:
        state, context = self._state, self._context
        prompt = await context.prompt(state["schema_ref"], state["documents_ref"])
        records = state["candidates"]
        found = await asyncio.to_thread(sides, clusters, records, context.trace.folder)
        told = [side for side, _ in found]
        differences = await asyncio.to_thread(disagreements, told, context.dialect)
        results = [(record["sql"], record["result"]) for _, record in found]
        rivals = [
            Rival(sql, result["columns"], result["row_count"], result["preview"])
            for sql, result in results
            if result is not None
        ]

        async def call(model: Model) -> Judgement:
            return await judge(
                model.at(temperature=0.0),
                prompt,
                state["question"],
                rivals,
                differences,
                expected_format=format_of(state["plan"]),
            )

        return await first_available(context, call)


class NoJudge:
    """``quorum.graph.ballots.Judge`` where a verdict was given before, or none is wanted: it cannot tell."""

    async def choose(self, clusters: Sequence[Cluster], ballots: Sequence[Ballot]) -> str | None:  # noqa: ARG002 (the interface's)
        """None."""
        return None


def _order(question: str, cluster: Cluster) -> str:
    """An order that tells nothing of the clusters, and is the same whenever the run is repeated."""
    return hashlib.sha256(f"{question}\n{cluster.key}".encode()).hexdigest()
