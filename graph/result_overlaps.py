"""How far the results of candidates agree, for a vote by overlap."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.graph.ballots import Ballot

if TYPE_CHECKING:
    from quorum.tools.results.canonical import Canonical
    from quorum.tools.results.compare import Result
    from quorum.tools.results.overlap import Overlap


class ResultOverlaps:
    """Compares results by fingerprint, each loaded and each pair compared once, when first asked for.

    Args:
        loaders: Per fingerprint a function that gives the result.
        ordered: The order of rows counts.
    """

    def __init__(self, loaders: Mapping[str, Callable[[], Result]], *, ordered: bool = False) -> None:
        self._loaders, self._ordered = dict(sorted(loaders.items())), ordered
        self._forms: dict[str, Canonical] = {}
        self._overlaps: dict[tuple[str, str], Overlap] = {}

    @classmethod
    def from_tables(cls, tables: Mapping[str, Result], *, ordered: bool = False) -> ResultOverlaps:
        """Compare results in memory, by fingerprint."""
        return cls({mark: partial(tables.__getitem__, mark) for mark in tables}, ordered=ordered)

    @classmethod
    def from_files(cls, files: Mapping[str, Path], *, ordered: bool = False) -> ResultOverlaps:
        """Compare results that ``quorum.tools.results.write_result`` kept, by fingerprint."""
        from quorum.tools.results.files import read_result

        return cls({mark: partial(read_result, path) for mark, path in files.items()}, ordered=ordered)

    @cached_property
    def clusters(self) -> dict[str, str]:
        """Fingerprint -> what it votes for: results that agree within the tolerance share one.

        Reads every result; call it in a thread.

        Raises:
            QuorumError: A result's file is missing or damaged.
        """
        from quorum.tools.results.compare import cluster_keys

        marks = list(self._loaders)
        if len(marks) < 2:
            return dict(zip(marks, marks, strict=True))
        return dict(
            zip(marks, cluster_keys(list(map(self._form, marks)), ordered=self._ordered), strict=True)
        )

    async def aclusters(self) -> dict[str, str]:
        """``clusters`` without blocking the event loop."""
        return self.clusters if len(self._loaders) < 2 else await asyncio.to_thread(lambda: self.clusters)

    async def overlap(self, a: Ballot, b: Ballot) -> Overlap:
        """Return how far the results of two candidates agree; not at all where one has none.

        Raises:
            KeyError: A result of theirs is not among the loaders.
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

        if mark not in self._forms:
            self._forms[mark] = canonical(self._loaders[mark]())
        return self._forms[mark]
