"""defog's scorer: verdicts on SQL that is executed and on results, and gold that reproduces."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from quorum.evals.scorers.base import GoldCheck, Prediction, Verdict
from quorum.evals.scorers.defog import DefogScorer, accepted_queries
from quorum.evals.tables import UnreadableCsv
from tests.evals.shop import Runner, question, write_shop

SCORER = DefogScorer()


@pytest.fixture
def run(tmp_path: Path) -> Runner:
    return Runner(write_shop(tmp_path / "shop.db"))


def seen(verdict: Verdict) -> tuple[float | None, float | None]:
    return verdict.metrics["ex"], verdict.metrics["exact"]


@pytest.mark.parametrize(
    ("sql", "metrics"),
    [
        ("SELECT name FROM users WHERE age > 20", (1.0, 1.0)),
        ("SELECT id FROM users WHERE age > 20", (1.0, 1.0)),
        ("SELECT id, name, country FROM users WHERE age > 20", (1.0, 0.0)),
        ("SELECT name FROM users WHERE age > 21", (0.0, 0.0)),
        ("SELECT country FROM users WHERE age > 20", (0.0, 0.0)),
        ("SELECT gone FROM users", (0.0, 0.0)),
    ],
)
async def test_the_sql_of_a_prediction_is_executed(
    run: Runner, sql: str, metrics: tuple[float, float]
) -> None:
    asked = question(
        *accepted_queries("SELECT {id,name} FROM users WHERE age > 20"), category="ratio", query="unused"
    )
    assert seen(await SCORER.score(asked, Prediction(sql), run)) == metrics


async def test_reasons_and_rows_of_the_gold(run: Runner) -> None:
    asked = question("SELECT id FROM users", "SELECT id, name FROM users WHERE id < 3")
    assert (await SCORER.score(asked, Prediction("SELECT id FROM users"), run)).gold_rows == 4
    short = await SCORER.score(asked, Prediction("SELECT name FROM users WHERE id = 1"), run)
    assert (short.reason, short.gold_rows) == ("1 row, the gold has 2", 2)
    broken = await SCORER.score(asked, Prediction("SELECT gone FROM users"), run)
    assert "no such column" in broken.reason
    assert (await SCORER.score(asked, Prediction(), run)).reason == "there is neither SQL nor a result"


async def test_a_result_without_sql_counts(run: Runner) -> None:
    asked = question("SELECT id, age FROM users")
    table = pa.table({"age": [20.5, 36.0, None, 20.5], "id": [4, 1, 2, 3]})
    assert seen(await SCORER.score(asked, Prediction("", table), run)) == (1.0, 1.0)
    assert seen(await SCORER.score(asked, Prediction("", table.slice(1)), run)) == (0.0, 0.0)
    cut = await SCORER.score(asked, Prediction("", table, truncated=True), run)
    assert (seen(cut), cut.reason) == ((0.0, 0.0), "the result was cut by limits")


async def test_a_csv_file_is_held_against_the_gold_as_csv(run: Runner, tmp_path: Path) -> None:
    """It does not tell '20' from 20."""
    file = tmp_path / "q.csv"
    asked = question("SELECT name, CAST(id AS TEXT) AS id, country FROM users")
    file.write_text("name,id,country\nDan,4,US\nAda,1,UK\nBob,2,US\nCy,3,\n")
    assert seen(await SCORER.score(asked, Prediction("", file), run)) == (1.0, 1.0)
    file.write_text("name,id,country\nDan,4,US\nAda,1,UK\nBob,2,US\nCy,4,\n")
    assert seen(await SCORER.score(asked, Prediction("", file), run)) == (0.0, 0.0)
    file.write_text("name,id\nDan,4,US\n,,,,\n")
    with pytest.raises(UnreadableCsv):
        await SCORER.score(asked, Prediction("", file), run)


async def test_mixed_storage_classes_keep_their_values(run: Runner) -> None:
    mixed = "SELECT CASE WHEN id = 1 THEN 'x' ELSE id END AS v FROM users"
    texts = "SELECT CASE WHEN id = 1 THEN 'x' ELSE CAST(id AS TEXT) END AS v FROM users"
    assert seen(await SCORER.score(question(mixed), Prediction(mixed), run)) == (1.0, 1.0)
    assert seen(await SCORER.score(question(mixed), Prediction(texts), run)) == (0.0, 0.0)


async def test_order_of_a_question_that_asks_for_one(run: Runner) -> None:
    asked = question("SELECT name FROM users ORDER BY name ASC", text="Users in order?", query="SELECT 1")
    unsorted = await SCORER.score(asked, Prediction("SELECT name FROM users ORDER BY id DESC"), run)
    assert (seen(unsorted), unsorted.reason) == ((0.0, 0.0), "other values, or another order of rows")


async def test_empty_gold_is_met_by_an_empty_result_and_said(run: Runner) -> None:
    asked = question("SELECT id FROM users WHERE id > 9")
    verdict = await SCORER.score(asked, Prediction("SELECT name FROM users WHERE id > 8"), run)
    assert (seen(verdict), verdict.gold) == ((1.0, 1.0), "empty")


async def test_gold_that_cannot_be_had_is_no_answers_fault(run: Runner) -> None:
    none = await SCORER.score(question(), Prediction("SELECT 1"), run)
    offline = await SCORER.score(question("SELECT 1"), Prediction("SELECT 1"), None)
    broken = await SCORER.score(question("SELECT gone FROM users"), Prediction("SELECT 1"), run)
    assert [v.gold for v in (none, offline, broken)] == ["missing", "not_live", "fails"]
    assert {seen(v) for v in (none, offline, broken)} == {(None, None)}
    one_left = question("SELECT gone FROM users", "SELECT 1")
    assert seen(await SCORER.score(one_left, Prediction("SELECT 1"), run)) == (1.0, 1.0)


# Gold that reproduces


async def test_sound_gold_is_ok_and_run_twice(run: Runner) -> None:
    check = await SCORER.verify(question("SELECT id FROM users"), run)
    assert check == GoldCheck("ok", "", 4, 0.25)
    assert run.ran.count("SELECT id FROM users") == 2


@pytest.mark.parametrize(
    ("queries", "state", "reason"),
    [
        (["SELECT gone FROM users"], "fails", "no such column"),
        (["SELECT gone FROM users", "SELECT 1"], "ok", "query 1 of 2 fails: no such column"),
        (["SELECT id FROM users WHERE id > 9"], "empty", ""),
        (["SELECT random()"], "differs", "a second run gives another result"),
        (["SELECT id FROM users WHERE date('now') > '2020'"], "ok", "depends on the current date or time"),
        (["SELECT id FROM users WHERE date('now') < '2020'"], "empty", "date or time, and is empty now"),
        (["SELECT MAX(id) FROM users WHERE date() < '2020'"], "ok", "date or time, and is all NULL now"),
        ([], "missing", ""),
    ],
)
async def test_gold_that_does_not_reproduce(run: Runner, queries: list[str], state: str, reason: str) -> None:
    check = await SCORER.verify(question(*queries), run)
    assert check.state == state
    assert reason in check.reason


async def test_gold_without_its_database_is_not_live() -> None:
    assert (await SCORER.verify(question("SELECT 1"), None)).state == "not_live"
