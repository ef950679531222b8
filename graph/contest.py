"""A close vote: which of its answers are strong enough to be compared, and what they say."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from quorum.graph.ballots import Cluster
from quorum.graph.disagreement import Side
from quorum.graph.state import CandidateRecord
from quorum.graph.strategies import CLOSE, RIVALS
from quorum.tools.results import read_result

LABELS = ("A", "B", "C")


def contest(vote: Mapping[str, Any]) -> list[Cluster]:
    """The strong clusters of a vote (``Vote.as_dict()``), the winner's first, at most ``RIVALS``.

    Strong is an answer with ``CLOSE`` times the heaviest one's weight, given by ``CLOSE`` times as
    many candidates as the winner: weight alone may be borrowed from answers that resemble it
    (``mbr``), numbers alone may be those of weak experts (``wma``).

    Returns:
        Nothing if the vote is clear, or has no winner.
    """
    clusters = [Cluster(**cluster) for cluster in vote.get("clusters", [])]
    winning = next((c for c in clusters if vote.get("winner") in c.candidates), None)
    if winning is None:
        return []
    weight = CLOSE * max(cluster.weight for cluster in clusters) * (1 - 1e-9)
    voices = CLOSE * len(winning.candidates)
    rivals = [
        cluster
        for cluster in clusters
        if cluster is not winning and cluster.weight >= weight and len(cluster.candidates) >= voices
    ]
    rivals.sort(key=lambda cluster: (-cluster.weight, cluster.key))
    return [winning, *rivals[: RIVALS - 1]] if rivals else []


def sides(
    clusters: Sequence[Cluster], records: Sequence[CandidateRecord], folder: Path
) -> list[tuple[Side, CandidateRecord]]:
    """The best candidate of each cluster as a side called A, B or C in this order; reads the results.

    Raises:
        QuorumError: A result's file cannot be read.
    """
    by_id = {record["id"]: record for record in records}
    found = []
    for label, cluster in zip(LABELS, clusters, strict=False):
        record = by_id[cluster.candidates[0]]
        assert record["result"] is not None  # only candidates with a result vote
        table = read_result(folder / record["result"]["file"])
        ordered = record["result"].get("ordered", False)
        found.append((Side(label, record["sql"], table, ordered=ordered), record))
    return found
