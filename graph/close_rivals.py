"""A close vote: which of its answers are strong enough to be compared, and what they say."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quorum.agents.critics import LABELS
from quorum.graph.ballots import Cluster, Vote
from quorum.graph.disagreement import Side
from quorum.graph.state import Candidate, order_counts
from quorum.graph.strategies import CLOSE, RIVALS
from quorum.tools.results.files import read_result


def close_rivals(vote: Vote | None) -> list[Cluster]:
    """The strong clusters of a vote, the winner's first, at most ``RIVALS``.

    An answer is strong if it has ``CLOSE`` times the heaviest one's weight and ``CLOSE`` times as many
    candidates as the winner: weight alone may come from similar answers (``mbr``), numbers alone from weak
    experts (``wma``).

    Returns:
        Nothing if the vote is clear, has no winner, or says that the data cannot answer.
    """
    winning = vote.winning if vote else None
    if vote is None or winning is None or vote.cannot_answer:
        return []
    weight = CLOSE * max(cluster.weight for cluster in vote.clusters) * (1 - 1e-9)
    voices = CLOSE * len(winning.candidates)
    rivals = [
        cluster
        for cluster in vote.clusters
        if cluster is not winning and cluster.weight >= weight and len(cluster.candidates) >= voices
    ]
    rivals.sort(key=lambda cluster: (-cluster.weight, cluster.key))
    return [winning, *rivals[: RIVALS - 1]] if rivals else []


def sides(
    clusters: Sequence[Cluster], candidates: Sequence[Candidate], folder: Path
) -> list[tuple[Side, Candidate]]:
    """The best candidate of each cluster as a side called A, B, … in this order; reads the results.

    Raises:
        QuorumError: A result's file cannot be read.
    """
    by_id = {candidate.id: candidate for candidate in candidates}
    speakers = [by_id[cluster.candidates[0]] for cluster in clusters[: len(LABELS)]]
    return list(zip(sides_of(speakers, folder, ordered=order_counts(candidates)), speakers, strict=True))


def sides_of(speakers: Sequence[Candidate], folder: Path, *, ordered: bool) -> list[Side]:
    """Candidates with a result as sides called A, B, … in this order; reads the results.

    Raises:
        QuorumError: A result's file cannot be read.
    """
    found = []
    for label, candidate in zip(LABELS, speakers, strict=False):
        assert candidate.result is not None
        table = read_result(folder / candidate.result.file)
        assumed = candidate.remarks.assumptions if candidate.remarks else []
        found.append(Side(label, candidate.sql, table, ordered=ordered, assumptions=assumed))
    return found
