"""The Judge in a vote: a model decides between answers that are about equally strong."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence

from quorum.agents.critics import JUDGE, LABELS, SAMPLE_ROWS
from quorum.graph.ballots import Cluster
from quorum.graph.context import Context
from quorum.graph.disagreement import disagreements, sides
from quorum.graph.nodes.results import first_rows
from quorum.graph.nodes.step import UNUSABLE_OR_GONE, try_tell
from quorum.graph.state import RunState
from quorum.knowledge.errors import BudgetExceeded


async def better_cluster(state: RunState, context: Context, clusters: Sequence[Cluster]) -> str | None:
    """Judge: return the key of the better cluster; None if the model cannot tell. Every verdict is recorded.

    A failing model costs the judgement, never the vote.
    """
    answered = (cluster for cluster in clusters if cluster.fingerprint)
    shown = sorted(answered, key=lambda cluster: neutral_order(state.question, cluster))[: len(LABELS)]
    if len(shown) < 2:
        return None
    found = await asyncio.to_thread(sides, shown, state.candidates, context.trace.folder)
    differences = await asyncio.to_thread(disagreements, [side for side, _ in found], context.dialect)
    labelled: dict[str, Cluster] = dict(zip(LABELS, shown, strict=False))
    rivals = [
        {"label": side.label, "sql": each.sql, **first_rows(each.result, SAMPLE_ROWS)}
        for side, each in found
        if each.result is not None
    ]
    judged = await try_tell(
        state,
        context,
        JUDGE,
        "judgement",
        spare=(*UNUSABLE_OR_GONE, BudgetExceeded),
        about={"answers": {label: each.candidates for label, each in labelled.items()}},
        rivals=rivals,
        differences=differences,
    )
    better = labelled.get(judged.choice) if judged else None
    return better.key if better else None


def neutral_order(question: str, cluster: Cluster) -> str:
    """Return a sort key that says nothing about the cluster and is the same whenever the run repeats."""
    return hashlib.sha256(f"{question}\n{cluster.key}".encode()).hexdigest()
