"""Spider 2.0's official comparison, rule by rule and over real recorded results, and what is said of gold."""

from __future__ import annotations

import json
import sys
from collections import Counter
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.evals.questions import EvalQuestion
from quorum.evals.recorded.candidates import load_candidates
from quorum.evals.scorers.base import GoldCheck, Prediction, Verdict
from quorum.evals.scorers.spider2 import NOT_LIVE, Spider2Gold, Spider2Scorer, load_gold, required
from quorum.evals.scoring import sweep
from quorum.evals.suites import load_suite
from quorum.evals.tables import cells, frame_of, pandas_csv, read_frame
from quorum.knowledge.errors import ConfigurationError
from tests.evals.shop import Runner

TWO = {"q_a.csv": "a,b,c\n1,2,3\n", "q_b.csv": "a,b,c\n4,5,6\n"}
EACH = [[0], [1, 2]]
Score = Callable[..., Verdict]


def make_gold(
    folder: Path,
    golds: str | dict[str, str],
    *,
    columns: Any = (),
    ignore_order: bool = True,
    edition: str = "lite",
) -> Spider2Gold:
    """A gold folder with the question ``q``; ``golds`` by file name."""
    (folder / "exec_result").mkdir(parents=True)
    for name, text in ({"q.csv": golds} if isinstance(golds, str) else golds).items():
        (folder / "exec_result" / name).write_text(text, encoding="utf-8", newline="")
    line = {"instance_id": "q", "condition_cols": columns, "ignore_order": ignore_order}
    (folder / f"spider2{edition}_eval.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    return load_gold(folder)


@pytest.fixture
def score(tmp_path: Path) -> Score:
    """Score a prediction's CSV text against gold text, or against several files by name."""

    def run(gold: str | dict[str, str], prediction: str, **options: Any) -> Verdict:
        folder = Path(mkdtemp(dir=tmp_path))
        (folder / "found.csv").write_text(prediction, encoding="utf-8", newline="")
        return make_gold(folder, gold, **options).score("q", folder / "found.csv")

    return run


def test_cells(score: Score, subtests: pytest.Subtests) -> None:
    for gold, prediction, same in (
        ("1.00", "1.009", True),
        ("1.00", "1.011", False),
        ("5", "5.0", True),
        ("10000000000000", "10000000001000", True),  # 1e-9 of the number
        ("1000000", "1000000.02", False),
        ("inf", "1e308", False),
        ("inf", "Infinity", True),
        ("true", "1", True),
        ("TRUE", "True", True),
        ("007", "7", True),
        ('"1,000"', "1000", False),
        ("2020-01-01", "2020-01-01 00:00:00", False),
        ("2020-01-01", "2020-01-01", True),
        ("x", "x ", False),
        ("x", "X", False),
        ("12", "x12", False),
        *(
            (null, other, same)
            for null in ("NA", "None", "<NA>")
            for other, same in (("0", True), ("1", False))
        ),
    ):
        with subtests.test(gold=gold):
            assert score(f"k,a\nkey,{gold}\n", f"k,a\nkey,{prediction}\n").match is same
            assert score(f"a,k\n{prediction},key\n", f"k,a\nkey,{gold}\n").match is same


def test_results(score: Score, subtests: pytest.Subtests) -> None:
    for gold, prediction, options, same in (
        # names, order of columns and what else there is do not count
        ("city,people\nRome,3\nOslo,1\n", "n,extra,c\n3,x,Rome\n1,y,Oslo\n", {}, True),
        ("city,people\nRome,3\nOslo,1\n", "city,extra\nRome,x\nOslo,y\n", {}, False),
        ("a,b\n1,1\n2,2\n", "x\n1\n2\n", {}, True),  # one column may serve two
        # rows are counted; their order counts only if asked for
        ("a\n1\n1\n2\n", "a\n1\n2\n", {}, False),
        ("a\n1\n1\n2\n", "a\n1\n2\n2\n", {}, False),
        ("a\n1\n1\n2\n", "a\n2\n1\n1\n", {}, True),
        ("a\n1\n2\n", "a\n2\n1\n", {"ignore_order": False}, False),
        ("a\nx\n\n", "a\nx\n", {"ignore_order": False}, True),  # an empty line is no row
        ("a,b\n1,x\n2,y\n", "a,b\n1,y\n2,x\n", {}, True),  # columns are sorted by themselves
        # as texts, 10.001 and 9.999 sort apart from 10 and 10
        ("a\n10.001\n2\n", "a\n9.999\n2\n", {}, False),
        ("a\n10.001\n2\n", "a\n9.999\n2\n", {"ignore_order": False}, True),
        # whole numbers sort as fractions beside such: 1e+16 after 11.0
        ("a,b\n10000000000000000,0.5\n11,0.5\n", "a,b\n1e16,0.5\n11.0,0.5\n", {}, True),
        ("a,b\nx,1\n,2\n", 'a,b\nx,1\n" ",2\n', {}, False),
        # empty and ragged files
        ("a\n", "a\n1\n", {}, False),
        ("a\n1\n", "a\n", {}, False),
        ("a\n", "other\n", {}, False),  # an empty result scores 0, whatever is wanted
        ("a\n1\n", "", {}, False),
        ("", "a\n1\n", {}, False),
        ("a,b\n1,2\n", "a,b\n1,2\n3,4,5\n", {}, False),  # the official program cannot read it
        ("a\n1\n", 'a\n"1\n', {}, False),
        ("a,b\n1,2\n", "a,b\nindex,1,2\n", {}, True),  # surplus first columns are an index
        # several files: any may be met, but the plain one alone counts, and none of another question
        (TWO, "x,y,z\n1,2,3\n", {}, True),
        (TWO, "x,y,z\n4,5,6\n", {}, True),
        (TWO, "x,y,z\n1,5,3\n", {}, False),
        ({"q.csv": "a\n1\n", "q_a.csv": "a\n2\n"}, "x\n1\n", {}, True),
        ({"q.csv": "a\n1\n", "q_a.csv": "a\n2\n"}, "x\n2\n", {}, False),
        ({f"{name}.csv": "a\n1\n" for name in ("q_ab", "q_A", "q_a_b", "qq_a")}, "x\n1\n", {}, False),
        # columns that are required
        ("a,b,c\n1,2,3\n", "x\n1\n", {"columns": [0, 2]}, False),
        (TWO, "x,y\n1,3\n", {"columns": [0, 2]}, True),
        (TWO, "x\n1\n", {"columns": [0, 2]}, False),
        (TWO, "x\n1\n", {"columns": EACH}, True),
        (TWO, "x,y\n6,5\n", {"columns": EACH}, True),
        (TWO, "x\n4\n", {"columns": EACH}, False),
        (TWO, "x\n1\n", {"columns": [[0]]}, True),  # too few lists fail only when they are needed
        (TWO, "x\n4\n", {"columns": [[0]]}, False),
        (TWO, "x\n4\n", {"columns": [[5], [0]]}, False),  # the first file breaks it off
    ):
        for edition in ("lite", "snow"):
            with subtests.test(gold=gold, edition=edition):
                assert score(gold, prediction, edition=edition, **options).match is same


def test_columns_that_are_required() -> None:
    for columns, variants, edition, wanted in (
        ([1, 2], 1, "snow", [1]),  # of a single variant only the first number counts
        ([0, 2], 1, "snow", [0]),
        ([1, 2], 1, "lite", [1]),
        ([0, 2], 1, "lite", [0, 1, 2]),
        ([0, 2], None, "lite", [0, 2]),
    ):
        assert list(required(columns, 0, variants, 3, edition)) == wanted


def test_the_reason_says_what_is_missing(score: Score) -> None:
    assert score({"q_b.csv": "a\n1\n"}, "x\n1\n").reason == "q_b.csv"
    assert "column 1 (people)" in score("city,people\nRome,3\n", "c,n\nRome,4\n").reason
    assert "1 row wanted, 2 came" in score("a\n1\n", "a\n1\n1\n").reason
    assert "quotation mark" in score("a\n1\n", 'a\n"1\n').reason
    assert "condition_cols" in score("a\n1\n", "a\n1\n", columns=[3]).reason


def test_unknown_questions_and_folders(tmp_path: Path) -> None:
    gold = make_gold(tmp_path / "gold", "a\n1\n")
    with pytest.raises(ConfigurationError, match="no question 'other'"):
        gold.score("other", None)
    for folder in (tmp_path, tmp_path / "nowhere"):
        with pytest.raises(ConfigurationError, match="gold folder: it needs exec_result"):
            load_gold(folder)
    (tmp_path / "gold" / "spider2lite_eval.jsonl").write_text('{"id": "q"}\n')
    with pytest.raises(ConfigurationError, match="Line 1"):
        load_gold(tmp_path / "gold")


@pytest.mark.heavy
def test_every_lite_gold_meets_itself(shared: Path) -> None:
    for suite in ("spider2-lite", "spider2-local"):
        gold = load_gold(shared / "data" / suite / "evaluation_suite" / "gold")
        files = [(question, path) for question, own in gold.files.items() for path in own]
        failed = {path.name for question, path in files if not gold.score(question, path).match}
        assert gold.edition == "lite"
        assert len(files) == {"spider2-lite": 177}.get(suite, 37)
        assert failed == {path.name for _, path in files if read_frame(path).rows == 0}
        assert len(failed) == (suite == "spider2-local")


@pytest.mark.heavy
def test_recorded_candidates_score_as_in_the_official_program(shared: Path) -> None:
    """Counts that the official program gives for the recorded results (68 questions each)."""
    gold = load_gold(shared / "data" / "spider2-snow" / "evaluation_suite" / "gold")
    recorded = load_candidates(shared / "data" / "candidates")
    counts = {}
    for model, questions in recorded.items():
        final = best = right = 0
        for name, own in questions.items():
            matches = [(one.final, gold.score(name, one.path).match) for one in own]
            right, best = right + matches.count((False, True)), best + ((False, True) in matches)
            final += (True, True) in matches
        counts[model] = (final, best, right)
    assert counts == {"gpt-4o": (20, 34, 138), "o3": (42, 49, 304)}


def question(*gold_sql: str, live: bool = True) -> EvalQuestion:
    return EvalQuestion("q", "?", "shop", "sqlite:///x" if live else "schema:///x", "sqlite", gold_sql)


GOLD, CUT = "a\n2\n1\n", "the result was cut, so it is not the whole one"
TWICE = pa.table({"n": [1, 2], "more": ["x", "y"]})


async def test_verdicts_of_the_scorer(tmp_path: Path, subtests: pytest.Subtests) -> None:
    for gold, result, how, expected in (
        (GOLD, TWICE, {}, (True, "q.csv", "ok", 2)),
        (GOLD, "q.csv", {"live": False}, (True, "q.csv", "ok", 2)),
        (GOLD, "none.csv", {"live": False}, (False, "there is no result", "ok", 2)),
        (GOLD, None, {}, (False, "there is no result", "ok", None)),
        (GOLD, None, {"live": False}, (None, NOT_LIVE, "not_live", None)),
        (GOLD, TWICE, {"cut": True}, (False, CUT, "ok", 2)),
        ({"other.csv": "a\n1\n"}, TWICE, {}, (None, "no gold result is published", "missing", None)),
        (TWO, pa.table({"a": [9]}), {}, (False, "", "ok", 1)),  # the rows of the nearest gold
    ):
        with subtests.test(gold=gold):
            (tmp_path / "q.csv").write_text("a\n1\n2\n", encoding="utf-8")
            scorer, live = Spider2Scorer(make_gold(Path(mkdtemp(dir=tmp_path)), gold)), how.get("live", True)
            given = tmp_path / result if isinstance(result, str) else result
            prediction = Prediction("x", given, how.get("cut", False))
            found = await scorer.score(question(live=live), prediction, Runner() if live else None)
            reason = found.reason if expected[1] else ""
            assert (found.match, reason, found.gold, found.gold_rows) == expected


@settings(max_examples=30)
@given(st.lists(st.one_of(st.none(), st.text(max_size=3)), min_size=1, max_size=8), st.booleans())
async def test_a_saved_table_meets_itself_and_loses_with_a_row(
    tmp_path_factory: pytest.TempPathFactory, texts: list[str | None], moments: bool
) -> None:
    column = pa.array([datetime(2020, 1, 1 + n) for n in range(len(texts))] if moments else texts)
    table = pa.table({"id": range(len(texts)), "x": column})
    gold = make_gold(tmp_path_factory.mktemp("gold") / "gold", pandas_csv(table))
    assert gold.score("q", table).match
    assert not gold.score("q", table.slice(1)).match
    assert not gold.score("q", pa.concat_tables([table, table.slice(0, 1)])).match


RIGHT, WRONG, EMPTY, FAILS = "SELECT 1 AS a", "SELECT 2 UNION ALL SELECT 2", "SELECT 1 WHERE 0", "SELECT gone"
NO_SQL = "no gold SQL is published; its gold results match themselves"


async def test_gold_must_match_itself_and_its_sql_must_reproduce_it(
    tmp_path: Path, subtests: pytest.Subtests
) -> None:
    for gold, queries, live, state, rows, reason in (
        ("a\n1\n", [RIGHT], True, "ok", 1, ""),
        ("a\n1\n", [FAILS, WRONG, RIGHT], True, "ok", 1, ""),
        ("a\n1\n", [FAILS], True, "fails", None, "no such column: gone"),
        ("a\n1\n", [WRONG, FAILS], True, "differs", 2, "1 row wanted, 2 came; no such column"),
        ("a\n1\n", [EMPTY], True, "empty", 0, "the result is empty"),
        ("a\n1\n", [], True, "missing", 1, NO_SQL),
        ("a\n1\n", [RIGHT], False, "not_live", 1, "match themselves"),
        ("a\n", [RIGHT], False, "empty", 0, "q.csv does not match itself: the result is empty"),
        ({"q_a.csv": "a\n1\n", "q_b.csv": "a\n"}, [], False, "differs", 1, "q_b.csv does not match itself"),
        ('a\n"1\n', [], False, "differs", None, "quotation mark"),
        ({"other.csv": "a\n1\n"}, [], False, "missing", None, "no gold result"),
    ):
        with subtests.test(gold=gold):
            scorer = Spider2Scorer(make_gold(Path(mkdtemp(dir=tmp_path)), gold))
            check = await scorer.verify(question(*queries, live=live), Runner() if live else None)
            assert (check.state, check.rows, bool(check.reason)) == (state, rows, bool(reason))
            assert reason in check.reason


@pytest.mark.heavy
async def test_the_gold_of_the_local_questions(shared: Path) -> None:
    """Of three questions with gold SQL two reproduce; the third's SQL leaves out styles that its gold has."""
    suite = load_suite("spider2-local", shared / "data" / "spider2-local")
    checks = await sweep(suite.questions, suite.scorer.verify, lambda _, reason: GoldCheck("fails", reason))
    states = Counter(check.state for check in checks.values())
    assert states == {"ok": 2, "differs": 1, "empty": 1, "missing": 19}
    assert {id for id, check in checks.items() if check.state == "ok"} == {"local197", "local199"}
    assert "25 rows wanted, 20 came" in checks["local131"].reason


# CSV as pandas reads and writes it: what the official comparison sees


def test_a_result_is_written_as_the_gold_results_were(subtests: pytest.Subtests) -> None:
    for values, texts in (
        ([1, None, 3], ["1.0", '""', "3.0"]),
        ([True, None], ["True", '""']),
        ([datetime(2020, 1, 1), datetime(2020, 1, 2)], ["2020-01-01", "2020-01-02"]),
        ([datetime(2020, 1, 1), datetime(2020, 1, 2, 3)], ["2020-01-01 00:00:00", "2020-01-02 03:00:00"]),
        ([[1, 2], None], ["[1 2]", '""']),
        ([b"x", b"\xff"], ["b'x'", "b'\\xff'"]),
    ):
        with subtests.test(values=values):
            assert pandas_csv(pa.table({"a": pa.array(values)})).split("\n")[1:-1] == texts


def test_a_text_with_a_carriage_return_can_be_read_back() -> None:
    """pandas leaves the quotation marks out with Python 3.11, and cannot read what it wrote."""
    table = pa.table({"a": ["a\rb", "c\r\nd", "e"], "b": [1, 2, 3]})
    text = pandas_csv(table)
    assert text == 'a,b\r\n"a\rb",1\r\n"c\r\nd",2\r\ne,3\r\n'
    assert [column.tolist() for column in frame_of(text).columns] == [["a\rb", "c\r\nd", "e"], [1, 2, 3]]


def test_columns_of_one_name_results_without_rows_and_texts_that_stand_for_null() -> None:
    assert pandas_csv(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"])) == "a,a\n1,2\n"
    assert pandas_csv(pa.table({"a": pa.array([], pa.int64()), "b": []})) == "a,b\n"
    assert frame_of("a,a,,a.1\n1,2,3,4\n").names == ("a", "a", "", "a.1")
    assert frame_of("a,a\nindex,1,2\n").names == ("a", "a")
    text = "a,b\nNA,1\nx,\n"
    assert [cells(column) for column in frame_of(text).columns] == [[None, "x"], [1.0, None]]
    assert [cells(column) for column in frame_of(text, nulls=[""]).columns] == [["NA", "x"], [1.0, None]]


def test_without_pandas_the_message_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    for use in (lambda: frame_of("a\n1\n"), lambda: pandas_csv(pa.table({"a": [1]}))):
        with pytest.raises(ConfigurationError, match=r"pip install 'pandas"):
            use()
