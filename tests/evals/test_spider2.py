"""Spider 2.0's official comparison, rule by rule, and over real recorded results."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from quorum.evals.recorded.candidates import load_candidates
from quorum.evals.scorers.spider2 import Score, Spider2Gold, load_gold, required
from quorum.evals.tables import read_frame
from quorum.knowledge.errors import ConfigurationError

Judge = Callable[..., bool]


def make_gold(
    folder: Path,
    golds: dict[str, str],
    *,
    columns: Any = (),
    ignore_order: bool = True,
    edition: str = "lite",
) -> Spider2Gold:
    """A gold folder with the question ``q``; ``golds`` by file name."""
    (folder / "exec_result").mkdir(parents=True)
    for name, text in golds.items():
        (folder / "exec_result" / name).write_text(text, encoding="utf-8", newline="")
    cols = list(columns) if isinstance(columns, tuple) else columns
    line = {"instance_id": "q", "condition_cols": cols, "ignore_order": ignore_order}
    (folder / f"spider2{edition}_eval.jsonl").write_text(json.dumps(line) + "\n", encoding="utf-8")
    return load_gold(folder)


@pytest.fixture
def score(tmp_path: Path) -> Callable[..., Score]:
    """Score a prediction's CSV text against gold text, or against several files by name."""

    def run(gold: str | dict[str, str], prediction: str, **options: Any) -> Score:
        folder = tmp_path / f"gold{len(list(tmp_path.iterdir()))}"
        golds = {"q.csv": gold} if isinstance(gold, str) else gold
        file = tmp_path / f"{folder.name}.csv"
        file.write_text(prediction, encoding="utf-8", newline="")
        return make_gold(folder, golds, **options).score("q", file)

    return run


@pytest.fixture
def judge(score: Callable[..., Score]) -> Judge:
    return lambda gold, prediction, **options: score(gold, prediction, **options).match


def test_names_order_and_extra_columns_do_not_count(judge: Judge) -> None:
    gold = "city,people\nRome,3\nOslo,1\n"
    assert judge(gold, "n,extra,c\n3,x,Rome\n1,y,Oslo\n")
    assert not judge(gold, "city,extra\nRome,x\nOslo,y\n")


def test_one_predicted_column_may_serve_two_gold_columns(judge: Judge) -> None:
    assert judge("a,b\n1,1\n2,2\n", "x\n1\n2\n")


@pytest.mark.parametrize(
    ("gold", "prediction", "same"),
    [
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
    ],
)
def test_cells(judge: Judge, gold: str, prediction: str, same: bool) -> None:
    assert judge(f"a\n{gold}\n", f"a\n{prediction}\n") is same


@pytest.mark.parametrize("null", ["", "NA", "None", "null", "NaN", "<NA>"])
def test_null_is_zero(judge: Judge, null: str) -> None:
    assert judge("k,a\nx,0\ny,2\n", f"k,a\nx,{null}\ny,2\n")
    assert judge("k,a\nx,\ny,2\n", f"k,a\nx,{null}\ny,2\n")
    assert not judge("k,a\nx,1\ny,2\n", f"k,a\nx,{null}\ny,2\n")
    assert not judge('k,a\nx," "\ny,b\n', f"k,a\nx,{null}\ny,b\n")


def test_duplicate_rows_count(judge: Judge) -> None:
    assert not judge("a\n1\n1\n2\n", "a\n1\n2\n")
    assert not judge("a\n1\n1\n2\n", "a\n1\n2\n2\n")
    assert judge("a\n1\n1\n2\n", "a\n2\n1\n1\n")


def test_order_counts_only_if_asked_for(judge: Judge) -> None:
    assert judge("a\n1\n2\n", "a\n2\n1\n", ignore_order=True)
    assert not judge("a\n1\n2\n", "a\n2\n1\n", ignore_order=False)
    assert judge("a\nx\n\n", "a\nx\n", ignore_order=False)  # an empty line is no row


def test_without_order_columns_are_sorted_by_themselves(judge: Judge) -> None:
    assert judge("a,b\n1,x\n2,y\n", "a,b\n1,y\n2,x\n")


def test_sorting_is_by_text(judge: Judge) -> None:
    """Within the tolerance and yet no match: as texts, 10.001 and 9.999 sort apart from 10 and 10."""
    assert not judge("a\n10.001\n2\n", "a\n9.999\n2\n")
    assert judge("a\n10.001\n2\n", "a\n9.999\n2\n", ignore_order=False)


@pytest.mark.parametrize(
    ("gold", "prediction", "same"),
    [
        ("a\n", "a\n1\n", False),
        ("a\n1\n", "a\n", False),
        ("a\n", "other\n", False),  # an empty result scores 0, whatever is wanted
        ("a\n1\n", "", False),
        ("", "a\n1\n", False),
        ("a,b\n1,2\n", "a,b\n1,2\n3,4,5\n", False),  # the official program cannot read it
        ("a\n1\n", 'a\n"1\n', False),
        ("a,b\n1,2\n", "a,b\nindex,1,2\n", True),  # surplus first columns are an index
    ],
)
def test_empty_and_ragged_files(judge: Judge, gold: str, prediction: str, same: bool) -> None:
    assert judge(gold, prediction) is same


def test_any_variant_may_be_met(judge: Judge) -> None:
    golds = {"q_a.csv": "a\n1\n", "q_b.csv": "a\n2\n"}
    assert judge(golds, "x\n1\n")
    assert judge(golds, "x\n2\n")
    assert not judge(golds, "x\n3\n")


def test_the_plain_file_alone_counts_where_it_exists(judge: Judge) -> None:
    golds = {"q.csv": "a\n1\n", "q_a.csv": "a\n2\n"}
    assert judge(golds, "x\n1\n")
    assert not judge(golds, "x\n2\n")


def test_files_of_other_questions_do_not_count(judge: Judge) -> None:
    golds = {"q_ab.csv": "a\n1\n", "q_A.csv": "a\n1\n", "q_a_b.csv": "a\n1\n", "qq_a.csv": "a\n1\n"}
    assert not judge(golds, "x\n1\n")


@pytest.mark.parametrize("edition", ["lite", "snow"])
def test_condition_columns(judge: Judge, edition: str) -> None:
    gold = {"q_a.csv": "a,b,c\n1,2,3\n", "q_b.csv": "a,b,c\n4,5,6\n"}
    assert judge(gold, "x,y\n1,3\n", columns=(0, 2), edition=edition)
    assert not judge(gold, "x\n1\n", columns=(0, 2), edition=edition)
    each = [[0], [1, 2]]
    assert judge(gold, "x\n1\n", columns=each, edition=edition)
    assert judge(gold, "x,y\n6,5\n", columns=each, edition=edition)
    assert not judge(gold, "x\n4\n", columns=each, edition=edition)


@pytest.mark.parametrize("edition", ["lite", "snow"])
def test_too_few_lists_fail_only_when_they_are_needed(judge: Judge, edition: str) -> None:
    gold = {"q_a.csv": "a\n1\n", "q_b.csv": "a\n2\n"}
    assert judge(gold, "x\n1\n", columns=[[0]], edition=edition)
    assert not judge(gold, "x\n2\n", columns=[[0]], edition=edition)
    assert not judge(gold, "x\n2\n", columns=[[5], [0]], edition=edition)  # the first file breaks it off


def test_of_a_single_variant_only_the_first_number_counts() -> None:
    assert list(required([1, 2], 0, 1, 3, "snow")) == [1]
    assert list(required([0, 2], 0, 1, 3, "snow")) == [0]
    assert list(required([1, 2], 0, 1, 3, "lite")) == [1]
    assert list(required([0, 2], 0, 1, 3, "lite")) == [0, 1, 2]
    assert list(required([0, 2], 0, None, 3, "lite")) == [0, 2]


def test_the_reason_tells_what_is_missing(score: Callable[..., Score]) -> None:
    assert score({"q_b.csv": "a\n1\n"}, "x\n1\n").reason == "q_b.csv"
    assert "column 1 (people)" in score("city,people\nRome,3\n", "c,n\nRome,4\n").reason
    assert "1 row wanted, 2 came" in score("a\n1\n", "a\n1\n1\n").reason
    assert "quotation mark" in score("a\n1\n", 'a\n"1\n').reason
    assert "condition_cols" in score("a\n1\n", "a\n1\n", columns=(3,)).reason


def test_a_table_is_compared_as_its_csv(tmp_path: Path) -> None:
    gold = make_gold(tmp_path / "gold", {"q.csv": "a,b\n1,\n2.5,NA\n"})
    table = pa.table({"x": pa.array([1, 2.5]), "y": pa.array([None, None], pa.string())})
    assert gold.score("q", table).match
    assert not gold.score("q", table.slice(1)).match
    assert gold.score("q", None) == Score(False, "there is no result")
    assert gold.score("q", tmp_path / "nowhere.csv").reason == "there is no result"


@pytest.mark.heavy
def test_types_are_inferred_piece_by_piece(judge: Judge) -> None:
    """Of 8 columns 65,536 rows are a piece: a text beyond makes texts of the numbers in its own only."""
    numbers = [f"{i}{',' * 7}" for i in range(65_536)]
    gold = "\n".join(["a,b,c,d,e,f,g,h", *numbers, "x,,,,,,,"])
    assert judge(gold, "\n".join(["a,b,c,d,e,f,g,h", "0.004,,,,,,,", *numbers[1:], "x,,,,,,,"]))
    assert not judge(gold, "\n".join(["a,b,c,d,e,f,g,h", "x,,,,,,,", *numbers]))
    assert not judge(gold, "\n".join(["a,b,c,d,e,f,g,h", *numbers, "y,,,,,,,"]))


@pytest.mark.heavy
def test_a_huge_file(score: Callable[..., Score]) -> None:
    rows = [f"{i},{i / 8},name {i % 999}" for i in range(100_000)]
    gold = "\n".join(["a,b,c", *rows])
    assert score(gold, "\n".join(["a,b,c", *rows[::-1]])).match
    assert not score(gold, "\n".join(["a,b,c", *rows[1:], "0,0.02,name 0"])).match


def test_unknown_questions_and_folders(tmp_path: Path) -> None:
    gold = make_gold(tmp_path / "gold", {"q.csv": "a\n1\n"})
    with pytest.raises(ConfigurationError, match="no question 'other'"):
        gold.score("other", None)
    with pytest.raises(ConfigurationError, match="exec_result"):
        load_gold(tmp_path)
    with pytest.raises(ConfigurationError, match="gold folder"):
        load_gold(tmp_path / "nowhere")
    (tmp_path / "gold" / "spider2lite_eval.jsonl").write_text('{"id": "q"}\n')
    with pytest.raises(ConfigurationError, match="Line 1"):
        load_gold(tmp_path / "gold")


@pytest.mark.heavy
def test_every_lite_gold_meets_itself(shared: Path) -> None:
    for suite in ("spider2-lite", "spider2-local"):
        gold = load_gold(shared / "data" / suite / "evaluation_suite" / "gold")
        failed = {
            path.name for q, files in gold.files.items() for path in files if not gold.score(q, path).match
        }
        assert gold.edition == "lite"
        assert sum(len(files) for files in gold.files.values()) == {"spider2-lite": 177}.get(suite, 37)
        empty = {path.name for files in gold.files.values() for path in files if read_frame(path).rows == 0}
        assert failed == empty
        assert len(empty) == (suite == "spider2-local")


@pytest.mark.heavy
def test_recorded_candidates_score_as_in_the_official_program(shared: Path) -> None:
    """Counts that the official program gives for the recorded results (68 questions each)."""
    gold = load_gold(shared / "data" / "spider2-snow" / "evaluation_suite" / "gold")
    recorded = load_candidates(shared / "data" / "candidates")
    counts = {}
    for model, questions in recorded.models.items():
        final = best = right = 0
        for name, question in questions.items():
            matches = [gold.score(name, candidate.path).match for candidate in question.candidates]
            right, best = right + sum(matches), best + any(matches)
            final += question.final is not None and gold.score(name, question.final.path).match
        counts[model] = (final, best, right)
    assert counts == {"gpt-4o": (20, 34, 138), "o3": (42, 49, 304)}
