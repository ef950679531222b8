"""What a tree search learned of a database (SQLAgent, paper 001, section 3.2).

Every expansion of the tree, tried once each, and the triplets of those that worked: a schema fragment S, a
query Q over it and its description U. Nobody has checked a triplet: a query that ran is an example, never a
verified answer (``quorum.knowledge.verified``). An index over triplets that does not fit them is rebuilt.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Literal, TypeAlias

from quorum.knowledge.catalog import Catalog, ColumnRef
from quorum.knowledge.search.index import Embedder, TextIndex
from quorum.knowledge.search.lexical import distinctive, terms

ExpansionOutcome: TypeAlias = Literal[
    "worked", "failed", "empty", "trivial", "known", "pointless", "personal", "unusable"
]
"""What became of an expansion: a triplet; its query failed; gave no rows or no values; was trivial; asks what
a triplet asks already; asks an unlikely question; holds personal data; its model's reply had no form."""

LEAST_SHARED = 2
"""Words that a question and a triplet share at least where the triplet is shown unasked."""


@dataclass(frozen=True)
class Expansion:
    """A node of the tree: the query state of its parent with one action more.

    Attributes:
        id: From 1, in the order of trying; 0 is the empty state.
        action: One of the seven (``quorum.agents.explorers.Action``).
        columns: That it is about; of a join the two that are equal.
        detail: Function, comparison or direction, in the model's words.
        sql: The query that was tried; empty where there was none.
        message: Why there is no triplet.
    """

    id: int
    parent: int
    action: str
    columns: tuple[ColumnRef, ...]
    detail: str
    sql: str
    outcome: ExpansionOutcome
    message: str = ""


@dataclass(frozen=True)
class Triplet:
    """A schema fragment S, a query Q and its description U.

    Attributes:
        id: Of the expansion that it comes from.
        shape: Equal for queries that differ in literals, white space and names of their own only.
        tables: Of S, each with a hash of its columns' names and types (``sql.linking.table_marks``).
        columns: Of S.
    """

    id: int
    sql: str
    shape: str
    description: str
    tables: dict[str, str] = field(hash=False)
    columns: tuple[ColumnRef, ...] = ()


@dataclass(frozen=True)
class Example:
    """A query as a prompt shows it: with the question that it answers, or with what came of it."""

    description: str
    sql: str


def explored_folder(root: Path, catalog: Catalog, where: str, *, static: bool = False) -> Path:
    """Return the folder of a database's triplets below ``root``; unexecuted ones have another.

    Args:
        where: The database's location (``quorum.tools.urls.location``): two of one name are two.
    """
    name = re.sub(r"\W+", "-", catalog.name).strip("-")[:40] or "database"
    mark = hashlib.sha256(
        repr((catalog.name, catalog.dialect, where)).encode("utf-8", "surrogatepass")
    ).hexdigest()
    return root / f"{name}-{mark[:8]}{'-static' if static else ''}"


@dataclass(eq=False)
class Explored:
    """The results of exploring a database, for reading.

    Attributes:
        triplets: Those that may be shown.
        expansions: All that was tried, what failed as well.
        problems: Sentences on what could not be read, or fits no more.
    """

    triplets: tuple[Triplet, ...] = ()
    expansions: tuple[Expansion, ...] = ()
    problems: list[str] = field(default_factory=list)

    def nearest(
        self, question: str, context: Iterable[str], k: int, *, embedder: Embedder | None = None
    ) -> list[Triplet]:
        """The triplets whose queries are nearest to a question and the schema that it is about, best first.

        Question and context are one text, compared with Q and U (the paper compares with Q alone, by a model
        that was trained on code). By shared words (BM25) without an embedder; what shares none is left out.
        Triplets that grew from one query differ little: the best of each such branch come first.

        Args:
            context: Names of the tables and columns in question; none to search by the question alone.

        Raises:
            ConfigurationError: The embedder's package or model is missing.
        """
        if not self.triplets:
            return []
        ranked = self._joint.search(" ".join((question, *context)), len(self.triplets), embedder)
        return self._spread([self.triplets[i] for i, _ in ranked])[:k]

    def _spread(self, triplets: list[Triplet]) -> list[Triplet]:
        """Keep the order, but put the first of each branch of the tree before all others."""
        parents = {step.id: step.parent for step in self.expansions}
        firsts: dict[int, Triplet] = {}
        for triplet in triplets:
            root = triplet.id
            while parents.get(root):
                root = parents[root]
            firsts.setdefault(root, triplet)
        best = list(firsts.values())
        return best + [triplet for triplet in triplets if triplet not in best]

    def similar(self, question: str, k: int, *, embedder: Embedder | None = None) -> list[Triplet]:
        """Those of ``nearest`` that bear on a question: they share some words that mean something.

        Raises:
            ConfigurationError: As ``nearest``.
        """
        asked = distinctive(terms(question))
        needed = min(LEAST_SHARED, len(asked))
        return [
            triplet
            for triplet in self.nearest(question, (), k, embedder=embedder)
            if len(asked & set(terms(f"{triplet.description} {triplet.sql}"))) >= needed > 0
        ]

    def trajectories(self, question: str, k: int, *, embedder: Embedder | None = None) -> list[Expansion]:
        """The expansions nearest to a question, failed ones among them (an ablation: paper 001, Table 15)."""
        found = self._raw.search(question, k, embedder) if self.expansions else []
        return [self.expansions[i] for i, _ in found]

    @cached_property
    def _joint(self) -> TextIndex:
        texts = [f"{triplet.description}\n{triplet.sql}" for triplet in self.triplets]
        return TextIndex(texts)

    @cached_property
    def _raw(self) -> TextIndex:
        texts = [f"{step.action} {step.detail}\n{step.sql}\n{step.message}" for step in self.expansions]
        return TextIndex(texts)
