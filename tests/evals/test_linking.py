"""Linking: what SQL uses, against what the nearest gold SQL uses."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.evals.records import Linking
from quorum.evals.running.linking import linking_of
from quorum.knowledge.catalog import Catalog, Column, Table
from tests.benchmarks.bench_linking import measured

TABLES = {"orders": ("id", "city", "total"), "customers": ("id", "name")}
CATALOG = Catalog(
    "shop",
    "sqlite",
    tuple(Table(name, tuple(Column(each, "TEXT") for each in columns)) for name, columns in TABLES.items()),
)
GOLD = "SELECT city, SUM(total) FROM orders GROUP BY city"


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (GOLD, Linking(1.0, 1.0, 1.0, 1.0)),
        ("SELECT city FROM orders", Linking(1.0, 1.0, 0.5, 1.0)),
        (
            "SELECT o.city, c.name FROM orders o JOIN customers c ON c.id = o.id",
            Linking(1.0, 0.5, 0.5, 0.25),
        ),
        ("SELECT name FROM customers", Linking(0.0, 0.0, 0.0, 0.0)),
        ("SELECT COUNT(*) FROM orders", Linking(1.0, 1.0, 0.0, None)),
        ("SELECT 1", Linking(0.0, None, 0.0, None)),
        ("SELECT FROM WHERE (", Linking(0.0, None, 0.0, None)),
    ],
)
def test_recall_and_precision(sql: str, expected: Linking) -> None:
    assert linking_of(sql, [GOLD], CATALOG) == expected


@pytest.mark.parametrize(
    ("sql", "gold"),
    [("", [GOLD]), (" \n", [GOLD]), (GOLD, []), (GOLD, ["not ( SQL"]), (GOLD, ["SELECT 1"])],
)
def test_nothing_is_told_without_sql_or_gold_that_can_be_read(sql: str, gold: list[str]) -> None:
    assert linking_of(sql, gold, CATALOG) is None


def test_the_nearest_of_several_gold_queries_counts() -> None:
    far, near = "SELECT name FROM customers", "SELECT city FROM orders"
    for golds in ([far, near, "not ( SQL"], [near, far]):
        assert linking_of("SELECT city FROM orders", golds, CATALOG) == Linking(1.0, 1.0, 1.0, 1.0)


@pytest.mark.heavy
async def test_linking_with_gold_loses_nothing_of_large_schemas(shared: Path) -> None:
    """``python -m tests.benchmarks.bench_linking`` says it of all."""
    found = await measured(shared / "data", databases={"TCGA_MITELMAN", "fhir_synthea"})
    long = {case.id: case for case in found if case.now and case.by_drafts}
    assert long.keys() == {"sf_bq176", "sf_bq166", "bq124"}
    for case in long.values():
        for kept in (case.by_drafts, case.by_verdicts):
            assert kept is not None
            assert (kept.table_recall, kept.column_recall) == (1.0, 1.0)
        assert case.problems == ()
        assert max(case.drafts, case.verdicts) < case.whole / 6
    assert [id for id, case in long.items() if case.before] == ["bq124"], "others were not linked before"
