"""Own questions: Quorum's equality against SQL or a result file, and gold that reproduces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorum.evals.questions import EvalQuestion
from quorum.evals.scorers.base import Prediction, Verdict
from quorum.evals.scorers.own import OwnScorer
from tests.evals.shop import Runner, question

SCORER = OwnScorer()
NAMES = {"id": [1, 2, 3, 4], "name": ["Ada", "Bob", "Cy", "Dan"]}


def seen(verdict: Verdict) -> tuple[float | None, float | None]:
    return verdict.metrics["ex"], verdict.metrics["contains"]


def with_result(folder: Path, *gold: str, **columns: list[Any]) -> EvalQuestion:
    """A question whose gold is a Parquet file."""
    file = folder / "gold.parquet"
    pq.write_table(pa.table(columns), file)
    return question(*gold, result=str(file))


RIGHT, MORE, WRONG = (1.0, 1.0), (0.0, 1.0), (0.0, 0.0)


async def test_what_equals_the_gold(run: Runner, tmp_path: Path, subtests: pytest.Subtests) -> None:
    for table, metrics, reason in (
        (NAMES, RIGHT, ""),
        ({"x": NAMES["name"], "y": NAMES["id"]}, RIGHT, ""),
        ({"id": [4, 3, 2, 1], "name": ["Dan", "Cy", "Bob", "Ada"]}, RIGHT, ""),
        ({**NAMES, "age": [1, 2, 3, 4]}, MORE, "has the gold's columns, and more"),
        ({"id": NAMES["id"]}, WRONG, "1 column, the gold has 2"),
        ({"id": [1, 2, 3], "name": ["Ada", "Bob", "Cy"]}, WRONG, "3 rows, the gold has 4"),
        ({"id": [1, 2, 3, 4, 4], "name": [*NAMES["name"], "Dan"]}, WRONG, "5 rows, the gold has 4"),
        ({"id": [2, 1, 3, 4], "name": NAMES["name"]}, WRONG, "other values"),
        ({"id": [1, 2, 3, 5], "name": NAMES["name"]}, WRONG, "other values"),
        ({"id": ["1", "2", "3", "4"], "name": NAMES["name"]}, RIGHT, ""),
        ({"id": [1, 2, 3, None], "name": NAMES["name"]}, WRONG, "other values"),
        ({"id": [], "name": []}, WRONG, "0 rows, the gold has 4"),
    ):
        for asked in (question("SELECT id, name FROM users"), with_result(tmp_path, **NAMES)):
            with subtests.test(table=table):
                found = await SCORER.score(asked, Prediction("", pa.table(table)), run)
                assert (seen(found), found.reason, found.gold, found.gold_rows) == (metrics, reason, "ok", 4)


async def test_numbers_agree_within_the_tolerance(run: Runner) -> None:
    asked = question("SELECT AVG(age) FROM users")  # 25.666…
    for value, right in ((25.67, 1.0), (25.6, 0.0), (26, 0.0)):
        verdict = await SCORER.score(asked, Prediction("", pa.table({"x": [value]})), run)
        assert verdict.metrics["ex"] == right


async def test_order_counts_where_the_gold_sorts(run: Runner, subtests: pytest.Subtests) -> None:
    """The gold gives 1 to 4; the prediction turns them round."""
    for sql, right in (
        ("SELECT id FROM users", True),
        ("SELECT id FROM users ORDER BY id", False),
        ("SELECT id FROM (SELECT id FROM users ORDER BY id)", True),
        ("SELECT id FROM users UNION SELECT id FROM users ORDER BY 1", False),
        ("WITH u AS (SELECT id FROM users ORDER BY id) SELECT id FROM u", True),
        ("SELECT id FROM (SELECT id, RANK() OVER (ORDER BY id) AS place FROM users)", True),
        ("SELECT id FROM users GROUP BY id HAVING MAX(id) > 0 ORDER BY MAX(id) -- asc", False),
    ):
        with subtests.test(sql=sql):
            turned = Prediction("", pa.table({"id": [4, 3, 2, 1]}))
            verdict = await SCORER.score(question(sql), turned, run)
            assert verdict.match is right
            if not right:
                assert (seen(verdict), verdict.reason) == (WRONG, "another order of rows")


async def test_a_file_counts_and_its_sql_says_whether_order_does(run: Runner, tmp_path: Path) -> None:
    turned = Prediction("", pa.table({"id": [4, 3, 2, 1]}))
    ids = [1, 2, 3, 4]
    unsorted = with_result(tmp_path, "SELECT 7", id=ids)
    assert (await SCORER.score(unsorted, turned, run)).match
    assert (await SCORER.score(unsorted, Prediction("", pa.table({"x": [7]})), run)).match is False
    by_id = with_result(tmp_path, "SELECT id FROM users ORDER BY id", id=ids)
    assert (await SCORER.score(by_id, turned, None)).match is False
    assert run.ran == []


async def test_gold_from_csv_and_a_prediction_in_csv(run: Runner, tmp_path: Path) -> None:
    gold, found = tmp_path / "gold.csv", tmp_path / "found.csv"
    gold.write_text("name,age\nAda,36.0\nBob,\nCy,20.5\nDan,20.5\n")
    found.write_text("a,n\n20.5,Cy\n20.5,Dan\n36,Ada\n,Bob\n")
    asked = question(result=str(gold))
    assert seen(await SCORER.score(asked, Prediction("", found), None)) == RIGHT
    table = (await run("SELECT name, age FROM users")).table  # type: ignore[union-attr]
    assert seen(await SCORER.score(asked, Prediction("", table), run)) == RIGHT
    found.write_text("a,n\n20.5,Cy\n20.5,Dan\n36,Ada\n0,Bob\n")
    assert seen(await SCORER.score(asked, Prediction("", found), None)) == WRONG


async def test_a_result_that_was_cut_is_got_again(run: Runner) -> None:
    asked, part = question("SELECT id FROM users"), pa.table({"id": [1, 2]})
    again = Prediction("SELECT id AS number FROM users", part, truncated=True)
    assert seen(await SCORER.score(asked, again, run)) == RIGHT


async def test_an_empty_gold_wants_as_many_columns(run: Runner) -> None:
    asked = question("SELECT id, name FROM users WHERE id > 9")
    for columns, metrics in (({"a": [], "b": []}, RIGHT), ({"a": []}, WRONG)):
        assert seen(await SCORER.score(asked, Prediction("", pa.table(columns)), run)) == metrics


async def test_a_gold_file_that_cannot_be_read_judges_nothing(run: Runner, tmp_path: Path) -> None:
    broken = tmp_path / "gold.parquet"
    broken.write_bytes(b"PAR1 not really")
    for file in (broken, tmp_path / "gone.csv"):
        verdict = await SCORER.score(question(result=str(file)), Prediction(), run)
        assert (seen(verdict), verdict.gold, str(file) in verdict.reason) == ((None, None), "fails", True)
        assert (await SCORER.verify(question("SELECT 1", result=str(file)), run)).state == "fails"


async def test_the_sql_must_give_what_is_in_the_file(run: Runner, tmp_path: Path) -> None:
    ids = "SELECT id FROM users"
    for gold, kept, state, reason in (
        ([ids], [4, 2, 3, 1], "ok", ""),
        ([ids], [4, 2, 3, 9], "differs", "its result is no match: other values"),
        ([], [1], "missing", "there is a result file, but no SQL that could give it"),
    ):
        check = await SCORER.verify(with_result(tmp_path, *gold, id=kept), run)
        assert (check.state, check.reason) == (state, reason)
