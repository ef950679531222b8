"""Minimum Bayes risk over real results."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.graph.ballots import Ballot, Rules, Vote
from quorum.graph.result_overlaps import ResultOverlaps
from quorum.graph.stopping import find_stopping
from quorum.graph.strategies import STRATEGIES, WEIGHTED, hold_vote
from quorum.tools.results.canonical import is_blank
from quorum.tools.results.compare import fingerprint
from quorum.tools.results.files import write_result

Columns = dict[str, list[Any]]
NAMES = ["Ada", "Bo", "Cy"]
BASE: Columns = {"name": NAMES, "total": [3, 2, 1]}
WIDER: Columns = {"who": NAMES, "n": [3.0, 2.0, 1.0], "city": ["x", "y", "z"]}
OTHER_FIGURES: Columns = {"name": NAMES, "total": [30, 20, 10]}


def vote(results: Sequence[Columns], strategy: str = "mbr", experts: str = "", **rules: Any) -> Vote:
    """A vote of candidates ``c0``, ``c1``, … with these results."""
    tables = [pa.table(result) for result in results]
    overlaps = ResultOverlaps({fingerprint(table): table for table in tables})
    ballots = []
    for n, (table, expert) in enumerate(zip(tables, experts or "m" * len(tables), strict=False)):
        mark = fingerprint(table)
        about: dict[str, Any] = {"blank": is_blank(table), "cluster": overlaps.clusters[mark]}
        ballots.append(Ballot(f"c{n}", expert, f"SELECT {n}", mark, **about))
    return asyncio.run(hold_vote(ballots, strategy, Rules(overlaps=overlaps, **rules)))


def groups(held: Vote) -> list[set[str]]:
    return [set(cluster.candidates) for cluster in held.clusters]


def test_results_that_differ_in_an_extra_column_support_each_other() -> None:
    only_totals: Columns = {"total": [1, 2, 3]}
    results = [BASE, WIDER, OTHER_FIGURES, OTHER_FIGURES, only_totals]
    assert vote(results, "majority").winner in ("c2", "c3")
    held = vote(results)
    assert groups(held) == [{"c0", "c1", "c4"}, {"c2", "c3"}]
    assert held.winner == "c1"
    assert not held.tie
    assert sum(cluster.share for cluster in held.clusters) == pytest.approx(1)


def test_the_form_that_most_have_stands_for_those_that_agree() -> None:
    """So no column is shown that one candidate alone thought of; of equals the wider one is."""
    assert vote([BASE, WIDER, OTHER_FIGURES]).winner == "c1"
    unasked: Columns = {**BASE, "sum": [6, 6, 6]}
    held = vote([BASE, BASE, unasked])
    assert groups(held) == [{"c0", "c1", "c2"}]
    assert held.winner in ("c0", "c1")
    assert held.clusters[0].candidates[-1] == "c2"
    assert vote([BASE, unasked, BASE, unasked]).winner in ("c1", "c3")  # as many lack a column as do not
    assert vote([BASE, BASE, unasked], experts="AAB", weights={"A": 0.4}).winner == "c2"


def test_what_more_than_half_say_exactly_wins() -> None:
    near: Columns = {"name": NAMES, "total": [3, 2, 9], "city": ["x", "y", "z"]}
    held = vote([BASE] * 5 + [near] * 4)
    assert held.winner in ("c0", "c1", "c2", "c3", "c4")
    assert held.clusters[0].weight < held.clusters[1].weight  # near the first in most, and with more to show
    assert not held.tie
    assert vote([BASE] * 4 + [near] * 4).winner in ("c4", "c5", "c6", "c7")


def test_weights_count_in_mbr() -> None:
    results: list[Columns] = [BASE, {"z": ["q"]}, {"z": ["q"]}]
    assert vote(results, experts="ABB").winner in ("c1", "c2")
    assert vote(results, experts="ABB", weights={"B": 0.3}).winner == "c0"


CELLS = st.sampled_from([0, 1, 2.5, "a", "b", None])


@st.composite
def results(draw: st.DrawFn) -> list[Columns]:
    """Results that often share columns and rows."""
    rows = draw(st.integers(1, 3))
    column = st.lists(CELLS.map(str), min_size=rows, max_size=rows)
    pool = draw(st.lists(column, min_size=1, max_size=4))
    picked = st.lists(st.sampled_from(range(len(pool))), min_size=1, max_size=3)
    return [
        {f"c{place}": pool[index] for place, index in enumerate(picks)}
        for picks in draw(st.lists(picked, min_size=1, max_size=6))
    ]


@pytest.mark.heavy
@settings(max_examples=150)
@given(results(), st.integers(0, 5), st.integers(0, 4), st.sampled_from(list(STRATEGIES)), st.data())
def test_what_is_decided_stays_decided(
    made: list[Columns], same: int, more: int, strategy: str, data: st.DataObject
) -> None:
    cut = data.draw(st.integers(1, len(made)))
    now, later = [*made[:cut], *[made[0]] * same], [*made[cut:], *[made[-1]] * more]
    experts = "".join(data.draw(st.sampled_from("AB")) for _ in (*now, *later))
    rules: dict[str, Any] = {"weights": {"A": 1.0, "B": 0.4}, "dialect": "sqlite"}
    weighs = rules["weights"] if strategy in WEIGHTED else {}
    held = vote(now, strategy, experts, **rules)
    if find_stopping("decided").enough(held, [weighs.get(name, 1.0) for name in experts[len(now) :]]):
        after = vote([*now, *later], strategy, experts, **rules)
        assert held.winning is not None
        assert after.winning is not None
        assert after.winning.fingerprint == held.winning.fingerprint


def test_evidence_reads_files_as_it_reads_tables(tmp_path: Path) -> None:
    made = [pa.table(BASE), pa.table(WIDER), pa.table({"name": NAMES, "total": [3.001, 2, 1]})]
    tables = {fingerprint(table): table for table in made}
    from_files = ResultOverlaps({mark: write_result(tables[mark], tmp_path) for mark in tables})
    in_memory = ResultOverlaps(tables)
    assert from_files.clusters == in_memory.clusters
    assert len(set(from_files.clusters.values())) == 2  # 3 and 3.001 vote for the same
    one, other = (Ballot(mark, "m", "", mark) for mark in list(tables)[:2])
    found = asyncio.run(from_files.overlap(one, other))
    assert found == asyncio.run(in_memory.overlap(one, other))
    assert found.relation == "within"
    assert asyncio.run(from_files.overlap(other, one)) == found.reversed
    assert ResultOverlaps({}).clusters == {}
