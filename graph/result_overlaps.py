"""How far the results of candidates agree, for a vote by overlap."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.graph.ballots import Ballot

if TYPE_CHECKING:
    from quorum.tools.results.canonical import Canonical
    from quorum.tools.results.compare import TableLike
    from quorum.tools.results.overlap import Overlap


class ResultOverlaps:
    """Compares results by fingerprint, each loaded and each pair compared once, when first asked for.

    Args:
        results: By fingerprint; a path is of a file that ``quorum.tools.results.files.write_result`` kept.
        ordered: The order of rows counts.
    """

    def __init__(self, results: Mapping[str, TableLike | Path], *, ordered: bool = False) -> None:
        self._results, self._ordered = dict(sorted(results.items())), ordered
        self._forms: dict[str, Canonical] = {}
        self._overlaps: dict[tuple[str, str], Overlap] = {}

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Fingerprint -> what it votes for: results that agree within the tolerance share one.

        Reads every result; call it in a thread.

        Raises:
            QuorumError: A result's file is missing or damaged.
        """
        from quorum.tools.results.compare import cluster_keys

        marks = list(self._results)
        if len(marks) < 2:
            return dict(zip(marks, marks, strict=True))
        return dict(
            zip(marks, cluster_keys(list(map(self._form, marks)), ordered=self._ordered), strict=True)
        )

    async def aclusters(self) -> dict[str, str]:
        """``clusters`` without blocking the event loop."""
        return self.clusters if len(self._results) < 2 else await asyncio.to_thread(lambda: self.clusters)

    async def overlap(self, a: Ballot, b: Ballot) -> Overlap:
        """Return how far the results of two candidates agree; not at all where one has none.

        Raises:
            KeyError: A result of theirs is not among those given.
            QuorumError: A result's file is missing or damaged.
        """
        from quorum.tools.results.overlap import Overlap

        first, second = sorted((a.fingerprint, b.fingerprint))
        if not first:
            return Overlap("differs", (0, 0), 0.0)
        if (first, second) not in self._overlaps:
            self._overlaps[first, second] = await asyncio.to_thread(self._compare, first, second)
        found = self._overlaps[first, second]
        return found if a.fingerprint == first else found.reversed

    def _compare(self, first: str, second: str) -> Overlap:
        from quorum.tools.results.overlap import overlap

        return overlap(self._form(first), self._form(second), ordered=self._ordered)

    def _form(self, mark: str) -> Canonical:
        from quorum.tools.results.canonical import canonical
        from quorum.tools.results.files import read_result

        if mark not in self._forms:
            found = self._results[mark]
            self._forms[mark] = canonical(read_result(found) if isinstance(found, Path) else found)
        return self._forms[mark]
