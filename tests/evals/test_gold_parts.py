"""Evaluations in which questions see only what their gold needs, and what linking kept in ordinary ones."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.folder import EvalFolder
from quorum.evals.questions import EvalQuestion, GoldParts
from quorum.evals.records import Linking, Record
from quorum.evals.reports.evaluations import open_evaluations
from quorum.evals.reports.report import report
from quorum.evals.running.databases import DatabasePool
from quorum.evals.running.linking import gold_part, golds_of, linking_of, linking_of_schema
from quorum.evals.running.runner import Evaluation, run_evaluation
from quorum.evals.suites.files import sqlite_url
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.scripted import Prompt
from quorum.tools.sql.linking import Linked, prune
from tests.benchmarks.bench_linking import measured
from tests.evals.running import evaluation as shops_of
from tests.graph.shop import script

NAMES = {"orders": ("id", "city", "total"), "customers": ("id", "name"), "weather": ("day", "degrees")}
CATALOG = Catalog(
    "shop", "sqlite", tuple(Table(name, tuple(Column(c, "TEXT") for c in own)) for name, own in NAMES.items())
)
BY_SQL = "SELECT COUNT(*) FROM orders WHERE total > 3"
MARK = "sold between dawn and dusk"


class Asked:
    """A model that writes ``BY_SQL`` and keeps what it was shown, by question."""

    def __init__(self, **roles: Any) -> None:
        self.prompts: dict[str, str] = {}
        self._said = script(**({"sql_writer": {"reasoning": "", "sql": BY_SQL}} | roles))

    def __call__(self, prompt: Prompt) -> Any:
        if prompt.role == "sql_writer":
            (id,) = re.findall(r"What is (q\d)\?", prompt.text)[:1]
            self.prompts[id] = prompt.text
        said = self._said[prompt.role]
        return said(prompt) if callable(said) else said


@pytest.fixture
def asked(tmp_path: Path) -> Sequence[EvalQuestion]:
    """With gold SQL, with published gold tables, with neither."""
    path = tmp_path / "shop.sqlite"
    with sqlite3.connect(path) as database:
        for name, columns in NAMES.items():
            database.execute(f"CREATE TABLE {name} ({', '.join(f'{c} TEXT' for c in columns)})")
    database.close()

    def question(id: str, **more: Any) -> EvalQuestion:
        return EvalQuestion(id, f"What is {id}?", "shop", sqlite_url(path), "sqlite", **more)

    return question("q1", gold_sql=(BY_SQL,)), question("q2", gold_tables=("CUSTOMERS",)), question("q3")


def evaluation(
    folder: Path, asked: Sequence[EvalQuestion], model: Asked, gold: GoldParts | None = None, **options: Any
) -> Evaluation:
    return replace(shops_of(folder, model, asked, votes=1, **options), gold=gold)


async def run(folder: Path, asked: Sequence[EvalQuestion], model: Asked, **how: Any) -> dict[str, Record]:
    return await run_evaluation(evaluation(folder, asked, model, **how))


def tables(prompt: str) -> set[str]:
    return {name for name in NAMES if f"table {name}" in prompt}


async def test_with_gold_each_question_sees_its_own_part(
    tmp_path: Path, asked: Sequence[EvalQuestion]
) -> None:
    model = Asked()
    records = await run(tmp_path / "tables", asked, model, gold="tables")
    shown = {id: tables(prompt) for id, prompt in model.prompts.items()}
    assert shown == {"q1": {"orders"}, "q2": {"customers"}, "q3": {*NAMES}}
    assert "id, city, total TEXT" in model.prompts["q1"]
    assert [record.restricted for record in records.values()] == [True, True, False]
    assert records["q2"].valid, "the lint keeps to the whole catalog"
    assert records["q1"].schema_linking is None

    records = await run(tmp_path / "columns", asked, model, gold="columns")
    assert tables(model.prompts["q1"]) == {"orders"}
    assert "total TEXT" in model.prompts["q1"]
    assert "city" not in model.prompts["q1"]
    assert [record.restricted for record in records.values()] == [True, False, False]
    head = report(open_evaluations([tmp_path / "columns"])).split("### ")[0]
    assert 'no result of a system: questions saw only the columns that their gold needs ("oracle' in head
    assert "2 questions saw the whole schema: q2, q3." in head
    assert "gold = columns" in head


async def test_an_ordinary_evaluation_shows_everything_and_is_another_one(
    tmp_path: Path, asked: Sequence[EvalQuestion]
) -> None:
    model = Asked()
    records = await run(tmp_path / "usual", asked, model)
    assert all(tables(prompt) == {*NAMES} for prompt in model.prompts.values())
    assert not any(record.restricted for record in records.values())
    assert "gold" not in EvalFolder(tmp_path / "usual").manifest().options
    with pytest.raises(ConfigurationError, match="gold was None and is 'tables'"):
        await run(tmp_path / "usual", asked, model, gold="tables")


async def test_agents_read_and_sample_what_they_are_shown_and_the_lint_the_whole(
    asked: Sequence[EvalQuestion], tmp_path: Path
) -> None:
    databases = DatabasePool.for_evaluation(evaluation(tmp_path / "run", asked, Asked()))
    try:
        opened = await databases.of(asked[0])
        own = opened.resources_for(asked[0], gold_part(asked[0], opened.resources.catalog, "tables"))
        assert "weather" not in own.files.run("ls") + own.schema.text
        assert [table.name for table in own.catalog.tables] == ["orders"]
        assert len(own.linter.catalog.tables) == len(opened.resources.catalog.tables) == 3
    finally:
        await databases.aclose()


def test_what_gold_needs(subtests: pytest.Subtests) -> None:
    for question, parts, expected in (
        ({"gold_sql": (BY_SQL,)}, "tables", {"orders": ["id", "city", "total"]}),
        ({"gold_sql": (BY_SQL,)}, "columns", {"orders": ["total"]}),
        ({"gold_sql": ("SELECT COUNT(*) FROM orders",)}, "columns", {"orders": ["id"]}),
        ({"gold_sql": (BY_SQL,), "gold_tables": ("gone",)}, "tables", {"orders": ["id", "city", "total"]}),
        (
            {"gold_sql": (BY_SQL,), "gold_tables": ("Weather",)},
            "tables",
            {"orders": ["id", "city", "total"], "weather": ["day", "degrees"]},
        ),
        ({"gold_tables": ("Weather",)}, "tables", {"weather": ["day", "degrees"]}),
        ({"gold_tables": ("Weather",)}, "columns", None),
        ({"gold_tables": ("weather", "gone")}, "tables", None),
        ({"gold_sql": ("not ( SQL",)}, "tables", None),
        ({}, "tables", None),
    ):
        with subtests.test(question=question):
            found = gold_part(EvalQuestion("q", "?", "shop", "", "sqlite", **question), CATALOG, parts)
            assert (found and {t.name: [c.name for c in t.columns] for t in found.tables}) == expected


@pytest.mark.parametrize(
    ("linked", "question", "expected"),
    [
        (Linked(("orders",)), {"gold_sql": (BY_SQL,)}, Linking(1.0, 1.0, 1.0, 1 / 3)),
        (Linked(("weather",)), {"gold_sql": (BY_SQL,)}, Linking(0.0, 0.0, 0.0, 0.0)),
        (Linked(("orders", "weather")), {"gold_tables": ("orders",)}, Linking(1.0, 0.5, None, None)),
        (None, {"gold_sql": (BY_SQL,)}, Linking(1.0, None, 1.0, None)),
        (None, {"gold_tables": ("orders",)}, Linking(1.0, None, None, None)),
        (None, {}, None),
    ],
)
def test_what_linking_kept(linked: Linked | None, question: dict[str, Any], expected: Linking | None) -> None:
    part = prune(CATALOG, linked) if linked else None
    columns = tuple((table.full_name, column.name) for table, column in part.columns()) if part else ()
    shown = Linked(linked.tables, columns) if linked else None
    made = EvalQuestion("q", "?", "shop", "", "sqlite", **question)
    assert linking_of_schema(shown, golds_of(made, CATALOG), made, CATALOG) == expected


def judged(prompt: Prompt) -> Any:
    return {"think": "", "answer": "Y" if "table orders" in prompt.text else "N", "columns": []}


async def test_linking_counts_where_the_run_failed_after_it(
    tmp_path: Path, asked: Sequence[EvalQuestion]
) -> None:
    def broken(prompt: Prompt) -> Any:
        raise RuntimeError("a fault of ours")

    model, how = Asked(table_linker=judged, sql_writer=broken), {"switches": {"link_above": 0}}
    (record,) = (await run(tmp_path / "run", asked[:1], model, recipe="reforce", **how)).values()
    assert record.status == "failed"
    assert (record.linked, record.schema_linking) == (True, Linking(1.0, 1.0, 1.0, 1 / 3))


async def test_a_question_s_own_document_is_shown_whole(
    tmp_path: Path, asked: Sequence[EvalQuestion]
) -> None:
    passages = "\n\n".join(f"## Part {n}\n\nTerm {n} is {MARK} number {n}." for n in range(300))
    own = (replace(asked[0], knowledge={"terms.md": passages}),)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "terms.md").write_text(passages)
    shown = []
    for name, questions, options in (
        ("whole", own, {}),
        ("cut", own, {"document_tokens": 2000}),
        ("folder", asked[:1], {"documents": str(tmp_path / "docs")}),
    ):
        model = Asked()
        await run(tmp_path / name, questions, model, **options)
        shown.append(model.prompts["q1"].count(MARK))
    assert shown[0] == 300
    assert max(shown[1:]) < 200, "a folder is searched"


# What the SQL of an answer uses, against the nearest gold

GOLD = "SELECT city, SUM(total) FROM orders GROUP BY city"


def linked(sql: str, *gold: str) -> Linking | None:
    asked = EvalQuestion("q", "?", "shop", "", "sqlite", gold_sql=gold)
    return linking_of(sql, golds_of(asked, CATALOG), CATALOG)


def test_recall_and_precision(subtests: pytest.Subtests) -> None:
    for sql, expected in (
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
        (" \n", None),
    ):
        with subtests.test(sql=sql):
            assert linked(sql, GOLD) == expected


def test_the_nearest_of_several_gold_queries_counts_and_without_any_nothing_is_told() -> None:
    far, near = "SELECT name FROM customers", "SELECT city FROM orders"
    for golds in ([far, near, "not ( SQL"], [near, far]):
        assert linked("SELECT city FROM orders", *golds) == Linking(1.0, 1.0, 1.0, 1.0)
    for unread in ([], ["not ( SQL"], ["SELECT 1"]):
        assert linked(GOLD, *unread) is None


@pytest.mark.heavy
async def test_linking_with_gold_loses_nothing_of_large_schemas(shared: Path) -> None:
    """``python -m tests.benchmarks.bench_linking`` says it of all."""
    found = await measured(shared / "data", databases={"TCGA_MITELMAN", "fhir_synthea"})
    long = {case.id: case for case in found if case.now and case.by_drafts}
    assert long.keys() == {"sf_bq176", "sf_bq166", "bq124"}
    for case in long.values():
        for kept in (case.by_drafts, case.by_verdicts):
            assert (kept.table_recall, kept.column_recall) == (1.0, 1.0)
        assert case.problems == ()
        assert max(case.drafts, case.verdicts) < case.whole / 6
    assert [id for id, case in long.items() if case.before] == ["bq124"], "others were not linked before"
