"""Which answers of a close vote are strong enough to be compared, and how they differ, in sentences.

The results say what differs (``quorum.tools.results.differences``), the queries why
(``quorum.tools.sql.summary``). What made no difference is left out: equal results, columns with the same
values, grouping that leaves the rows the same. The same rows in another order differ where the question
asks for one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from quorum.agents.critics import LABELS
from quorum.graph.ballots import Cluster, Vote
from quorum.graph.state import Candidate, order_counts
from quorum.graph.strategies import CLOSE, RIVALS
from quorum.tools.results.compare import equal
from quorum.tools.results.differences import Differences, differences
from quorum.tools.results.files import read_result
from quorum.tools.results.readable import readable

if TYPE_CHECKING:
    import pyarrow as pa

    from quorum.tools.sql.summary import QuerySummary

MAX_PER_KIND = 4  # sentences on columns, on conditions, on rows
MAX_NAMED = 3  # things named in one sentence
MAX_TEXT = 200  # characters of an expression that is told
MAX_CELL = 60  # characters of a cell
ONLY_ROWS = ("removes duplicates by", "groups by")
"""Clauses that have made no difference where the rows are the same."""


@dataclass(frozen=True)
class Side:
    """One of the answers that disagree.

    Attributes:
        label: What users call it: A, B, C.
        sql: One query of those that gave it.
        table: Its result.
        ordered: The question asks for an order of the rows, so another order is another answer.
        assumptions: What the query rests on, as its writer says.
    """

    label: str
    sql: str
    table: pa.Table = field(repr=False)
    ordered: bool = False
    assumptions: Sequence[str] = ()

    def __str__(self) -> str:
        return f"answer {self.label}"


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
        for cluster in vote.answers
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


def disagreement(a: Side, b: Side, dialect: str) -> list[str]:
    """Sentences on how two answers differ in columns, conditions and rows; empty if they are equal.

    The order of the arguments does not count.

    Raises:
        ConfigurationError: The dialect is unknown.
    """
    from quorum.tools.sql.summary import summarise

    first, second = sorted((a, b), key=lambda side: side.label)
    found = differences(first.table, second.table)
    ordered = first.ordered and second.ordered
    if found.relation == "equal" and (not ordered or equal(first.table, second.table, ordered=True)):
        return []
    one, other = summarise(first.sql, dialect), summarise(second.sql, dialect)
    pair = _AnswerPair((first, second), found, (one, other) if one and other else None, ordered)
    kinds = (pair.columns(), pair.conditions(), pair.rows())
    sentences = [sentence for kind in kinds for sentence in islice(kind, MAX_PER_KIND)]
    return list(map(_sentence, sentences or [f"{first} and {second} have different values"]))


def disagreements(sides: Sequence[Side], dialect: str) -> list[str]:
    """Say how the first answer differs from each of the others; what each assumes comes first."""
    found = [sentence for other in sides[1:] for sentence in disagreement(sides[0], other, dialect)]
    assumed = [_assumed(side) for side in sides if side.assumptions] if found else []
    return list(dict.fromkeys([*assumed, *found]))


def _assumed(side: Side) -> str:
    said = " ".join(" ".join(each.split()) for each in side.assumptions)
    return _sentence(f"{side} assumes: {said.rstrip('.')}")


@dataclass(frozen=True)
class _AnswerPair:
    """Two answers and how they differ; ``summaries`` is None where a query cannot be read."""

    sides: tuple[Side, Side]
    found: Differences
    summaries: tuple[QuerySummary, QuerySummary] | None
    ordered: bool

    @property
    def same_rows(self) -> bool:
        """True if one result merely has more columns, or its rows in another order."""
        return self.found.relation in ("equal", "contains", "within")

    def columns(self) -> Iterator[str]:
        found = self.found
        if self.same_rows:
            more = 0 if found.relation == "contains" else 1
            names = [self._name(more, place) for place in found.differing[more]]
            count = "1 column" if len(names) == 1 else f"{len(names)} columns"
            yield from [f"{self.sides[more]} has {count} more: {_listed(map(_code, names))}"] if names else []
            return
        agreeing = _listed(_code(self._name(0, place)) for place, _ in found.agreeing)
        if agreeing and not self.other_rows:
            yield f"{self.sides[0]} and {self.sides[1]} agree in {agreeing}"
        elif agreeing and not found.key and not any(found.differing):
            yield "each column has the same values in both, but they stand in different rows"
        yield from self._own("shows", *self._differing())

    def conditions(self) -> Iterator[str]:
        if self.summaries and not self.same_rows:
            one, other = (each.clauses for each in self.summaries)
            for verb in one:
                if verb not in ONLY_ROWS or self.other_rows:
                    yield from self._own(verb, one[verb], other[verb])

    def rows(self) -> Iterator[str]:
        (a, b), found = self.sides, self.found
        if found.relation == "equal":
            yield f"{a} and {b} have the same rows in another order"
        if self.ordered and self.summaries and self.summaries[0].order != self.summaries[1].order:
            sorting = [_listed(map(_code, each.order)) or "nothing" for each in self.summaries]
            yield f"{a} is sorted by {sorting[0]}; {b} by {sorting[1]}"
        if found.rows[0] != found.rows[1]:
            yield f"{a} has {_rows(found.rows[0])}, {b} {_rows(found.rows[1])}"
        key = f"{_code(self._name(0, found.key[0]))} " if found.key else ""
        if key or found.only != found.rows or not any(found.differing):
            for side, count, some in zip(self.sides, found.only, found.examples, strict=True):
                if count:
                    yield f"only {side} has {key}{_listed(map(_value, some), count)}"
        if found.cell:
            row, *cells = found.cell
            texts = map(_plain, cells)
            one, two = (x if len(x) <= MAX_TEXT else f"a text of {len(x):,} characters" for x in texts)
            yield f"{f'for {_value(row)}, ' if key else ''}{a} says {one}, {b} {two}"

    @property
    def other_rows(self) -> bool:
        """True if rows are in one result only."""
        return self.found.rows[0] != self.found.rows[1] or any(self.found.only)

    def _differing(self) -> list[list[str]]:
        """The columns whose values differ, as expressions, or as names where the query does not say."""
        places, tables = self.found.differing, [side.table for side in self.sides]
        known = self.summaries and [each.columns for each in self.summaries]
        if known and all(len(shown) == t.num_columns for shown, t in zip(known, tables, strict=True)):
            shown = [[(known[side][place], place) for place in places[side]] for side in (0, 1)]
            return [
                [text if len(text) <= MAX_TEXT else self._name(side, place) for text, place in of_side]
                for side, of_side in enumerate(shown)
            ]
        return [[self._name(side, place) for place in places[side]] for side in (0, 1)]

    def _name(self, side: int, place: int) -> str:
        return str(self.sides[side].table.column_names[place])

    def _own(self, verb: str, *parts: Iterable[str]) -> Iterator[str]:
        """A sentence on what only one side has, as far as a sentence can say it."""
        one, other = (list(dict.fromkeys(part)) for part in parts)
        own = [text for text in one if text not in other], [text for text in other if text not in one]
        if any(len(text) > MAX_TEXT for texts in own for text in texts):
            return
        texts = [_listed(map(_code, texts)) for texts in own]
        a, b = self.sides
        if all(texts):
            yield f"{a} {verb} {texts[0]}; {b} {texts[1]}"
        elif any(texts):
            yield f"only {a if texts[0] else b} {verb} {texts[0] or texts[1]}"


def _rows(count: int) -> str:
    return "no rows" if count == 0 else "1 row" if count == 1 else f"{count:,} rows"


def _code(text: str) -> str:
    return f"`{' '.join(text.split())}`"


def _plain(value: Any) -> str:
    """A cell on one line."""
    if isinstance(value, tuple):
        return f"({', '.join(map(_value, value))})"
    return " ".join(readable(value).split()) or "''"


def _value(value: Any) -> str:
    text = _plain(value)
    return text if len(text) <= MAX_CELL or isinstance(value, tuple) else f"{text[: MAX_CELL - 1]}…"


def _listed(things: Iterable[str], count: int | None = None) -> str:
    """``a, b and 3 more``; ``count`` is how many there are where ``things`` are examples."""
    every = list(things)
    total = len(every) if count is None else count
    shown = every[:MAX_NAMED]
    if total > len(shown):
        return f"{', '.join(shown)} and {total - len(shown):,} more"
    return " and ".join([", ".join(shown[:-1]), shown[-1]] if len(shown) > 1 else shown)


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:]}."
