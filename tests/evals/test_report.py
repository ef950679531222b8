"""Reports of small evaluations: figures against values by hand, and nothing of the data taken for markup."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.evals.records import CandidateRow, ChoiceRow, Course, Linking, SimulatedUser
from quorum.evals.reports.evaluations import Opened, open_evaluations
from quorum.evals.reports.frame import category
from quorum.evals.reports.report import as_dict, notes, report
from quorum.evals.reports.statistics import mean_of
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import EX, F1, asked, linking, manifest, opened, record, usage, write
from tests.evals.evaluations import unanswered as without_answer

HOSTILE = "a|b\n<script>alert(1)</script> `x` [l](u) *b* \x1b[31m \u202e # @me"

QUESTIONS = [
    asked("a", difficulty="easy", external_knowledge=True),
    asked("b", difficulty="easy"),
    asked("c", difficulty="easy"),
    *(asked(id, difficulty="hard", database="bank") for id in "defgh"),
]
RECORDS = [
    record("a", metrics={"ex": 1.0, "soft_f1": 1.0}, confidence=0.9),
    record(
        "b",
        match=False,
        metrics={"ex": 0.0, "soft_f1": 0.5},
        confidence=0.8,
        gold_rows=3,
        candidates=(CandidateRow("c1", "m", "SELECT 1", False), CandidateRow("c2", "m", "SELECT 2", True)),
        usage=usage(model_calls=4, usd=None, seconds=12.0),
    ),
    record("d", status="stopped", error="max_calls", usage=usage(model_calls=6, seconds=1)),
    record("e", match=None, gold="fails", usage=usage(seconds=60), resumed=True),
    record("f", gold="differs", metrics={"ex": 1.0, "soft_f1": None}, confidence=0.6, usage=usage(seconds=5)),
    without_answer("c", "syntax", valid=None, executes=False),
    without_answer("h", "endpoint"),
]


@pytest.fixture
def found(tmp_path: Path) -> Opened:
    """Eight questions: a, f right; b wrong; d a best effort; c, h unanswered; e unscorable; g missing."""
    return opened(tmp_path / "run", RECORDS, QUESTIONS, metrics=(EX, F1))


def rows(text: str, heading: str = "Figures") -> dict[str, list[str]]:
    """The cells of the table under a heading, by the first cell."""
    part = text.split(f"### {heading}\n", 1)[1].split("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|") and "---" not in line]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return {head: rest for head, *rest in cells}


def means(found: Opened, *names: str) -> dict[str, tuple[float | None, int]]:
    figures = {name: found.frame.mean(name) for name in names}
    return {name: (each.mean and round(each.mean, 4), each.n) for name, each in figures.items()}


def test_every_figure_has_its_own_denominator(found: Opened) -> None:
    assert found.calibration.n == 3
    assert rows(report([found])) == {
        "": ["run"],
        "recipe": ["quorum"],
        "models": ["openai:m"],
        "questions": ["8"],
        "answered, %": ["50.0 ± 18.9 of 8"],
        "EX, %": ["25.0 ± 16.4 of 8"],  # a, f of all
        "95 % interval (Wilson), %": ["7.1 – 59.1"],
        "EX where the gold is usable, %": ["20.0 ± 20.0 of 5"],  # a of a, b, c, d, h
        "EX, best efforts counted as answers, %": ["37.5 ± 18.3 of 8"],  # d as well
        "some candidate right (pass@k), %": ["50.0 ± 18.9 of 8"],  # a candidate of b as well
        "SQL that executes, %": ["100.0 ± 0.0 of 5"],  # not c and h, which have no SQL
        "SQL that passes guard and lint, %": ["100.0 ± 0.0 of 5"],
        "model calls": ["3.20 / 2.00"],  # not c and h, which have no ledger; nor is b's price known
        "database calls": ["1.00 / 1.00"],
        "input tokens": ["1,000 / 1,000"],
        "output tokens": ["50.0 / 50.0"],
        "seconds": ["16.4 / 5.00"],
        "Soft F1, %": ["21.4 ± 14.9 of 7"],  # not f, where it is not defined
        "AUROC of confidence": ["0.500"],
        "Brier score": ["0.270"],
    }


def test_several_evaluations_stand_side_by_side(found: Opened, tmp_path: Path) -> None:
    priced = opened(tmp_path / "other", [record("a", usage=usage(read_bytes=2 * 10**9))], suite="other")
    text = report([found, priced])
    assert "only figures of the same suite can be compared" in text
    shown = rows(text)
    assert (shown["EX, %"], shown["price"]) == (
        ["25.0 ± 16.4 of 8", "100.0 of 1"],
        ["–", "$0.0100 / $0.0100"],
    )
    assert shown["bytes read, where an engine says"] == ["–", "2.00 GB / 2.00 GB"]


def test_groups_tell_questions_apart_in_the_order_of_grades(found: Opened, tmp_path: Path) -> None:
    groups = {
        name: {label: part.mean("ex") for label, part in parts.items()}
        for name, parts in found.frame.groups()
    }
    assert groups == {
        "difficulty": {"easy": mean_of([1, 0, 0]), "hard": mean_of([0, 0, 1, 0, 0])},
        "database": {"bank": mean_of([0, 0, 1, 0, 0]), "shop": mean_of([1, 0, 0])},
        "external knowledge": {"with": mean_of([1]), "without": mean_of([1, 0, 0, 0, 0, 0, 0])},
    }, "there is one dialect"
    shown = rows(report([found]), "By difficulty")
    assert shown["difficulty"] == [
        "questions", "95 %", "EX, %", "some candidate right (pass@k), %", "Soft F1, %",
    ]  # fmt: skip
    assert shown["easy"] == ["3", "6.1 – 79.2", "33.3 ± 33.3", "66.7 ± 33.3", "50.0 ± 28.9"]
    grades = ["", "extra", "hard", "odd", "medium", "easy"]
    graded = [asked(f"q{number}", difficulty=grade) for number, grade in enumerate(grades)]
    labels = list(opened(tmp_path / "graded", [], graded).frame.by("difficulty"))
    assert labels == ["easy", "medium", "hard", "extra", "odd", "not graded"]


def test_what_went_wrong_and_gold_that_could_not_be_used_are_listed(found: Opened, tmp_path: Path) -> None:
    text = report([found])
    assert "- shops, Quorum 1.0, begun 2026-01-01 12:00:00 UTC\n- options: all as by default\n" in text
    assert "- judged by: the rules of shops\n" in text
    gold = rows(text, "Gold that could not be used")
    assert list(gold) == ["state", "differs", "fails"]
    assert gold["differs"] == ["the gold SQL no longer gives the published result", "1", "1", "f"]
    assert gold["fails"] == ["no gold SQL runs", "1", "0", "e"]
    wrong = rows(text, "Not right: 4 questions")
    assert {why.replace("\\", ""): cells[2] for why, cells in wrong.items()} == {
        "why": "ids", "endpoint": "h", "max_calls": "d", "syntax": "c", "values differ": "b",
    }  # fmt: skip
    wrongs = [record(f"w{n}", match=False, rows=0) for n in range(7)]
    text = report([opened(tmp_path / "more", [*wrongs, record("x", match=False)])])
    assert rows(text, "Not right: 8 questions")["no rows"] == ["7", "87.5", "w0, w1, w2, w3, w4 and 2 more"]


def test_the_first_that_holds_is_the_kind_of_mistake(subtests: pytest.Subtests) -> None:
    for kind, values in (
        ("", {"match": True, "rows": 0}),
        ("", {"match": None, "gold": "fails", "rows": 0}),
        ("fault", {"status": "failed", "error": "fault"}),
        ("max_calls", {"status": "stopped", "error": "max_calls", "match": True}),
        ("unknown", {"status": "failed"}),
        ("no rows", {"rows": 0, "gold_rows": 2, "linking": linking(0.5, 0.5)}),
        ("tables missed", {"linking": linking(0.5, 0.5)}),
        ("columns missed", {"linking": linking(1.0, 0.5), "gold_rows": 5}),
        ("row count differs", {"linking": linking(1.0, None), "gold_rows": 0}),
        ("values differ", {"linking": linking(1.0, 1.0), "gold_rows": 3}),
        ("values differ", {"gold_rows": 3}),  # no gold SQL to tell tables by
        ("result differs", {"rows": None, "gold_rows": 3}),
    ):
        with subtests.test(kind=kind):
            assert category(record("q", **({"match": False} | values))) == kind


def test_linking_of_answers_and_of_linked_schemas(tmp_path: Path) -> None:
    one, other = Linking(1.0, 0.5, 0.75, 0.1), Linking(0.5, 1.0, None, None)
    records = [
        record("a", linking=linking(1.0, 0.5), linked=True, schema_linking=one),
        record("b", linking=linking(0.5, None), linked=True, schema_linking=other),
        record("c", linked=True),
        record("d", sql="", status="no_answer", schema_linking=Linking(1.0, None, 1.0, None)),
    ]
    found = opened(tmp_path / "run", records)
    by_hand = {
        "table_recall": (0.75, 2),
        "table_precision": (1.0, 2),
        "column_recall": (0.5, 1),
        "linked_table_recall": (0.75, 2),
        "linked_table_precision": (0.75, 2),
        "linked_column_recall": (0.75, 1),
    }
    assert means(found, *by_hand) == by_hand
    assert rows(report([found]))["table recall of linked schemas, %"] == ["75.0 ± 25.0 of 2"]


def test_rounds_of_explored_questions(tmp_path: Path) -> None:
    def row(name: str, match: bool, *, superseded: bool = False) -> CandidateRow:
        return CandidateRow(name, "m", "SELECT 1", match, superseded=superseded)

    better = (row("c1", match=False, superseded=True), row("c2", match=True))
    worse = (row("c1", match=True, superseded=True), row("c2", match=False))
    records = [
        record("a", course=Course(True, first_tie=True), candidates=better),
        record("b", course=Course(True, first_tie=True), candidates=worse),
        record("c", course=Course(False, first_tie=False)),
        record("d"),
    ]
    assert [each.possible for each in records[:2]] == [True, False], "pass@k is of the last round"
    found = opened(tmp_path / "run", records)
    by_hand = {"explored": (0.6667, 3), "first_tie": (0.6667, 3), "first_round": (0.5, 2)}
    assert means(found, *by_hand) == by_hand


def choices(*met: tuple[int, ...]) -> tuple[ChoiceRow, ...]:
    pairs = zip("ABC", met, strict=False)
    return tuple(ChoiceRow(label, "", "", match=bool(own), met=own) for label, own in pairs)


def test_one_question_to_the_user_is_shown_next_to_ex_and_not_as_ex(tmp_path: Path) -> None:
    simulated = [
        record("right, not asked", asking=SimulatedUser()),
        record("right, asked", asking=SimulatedUser(choices=choices((0,), ())), confidence=0.65),
        record("helped", match=False, asking=SimulatedUser(choices=choices((), (0,)))),
        record("in vain", match=False, asking=SimulatedUser(choices=choices((), ()))),
        record("wrong, not asked", match=False, asking=SimulatedUser()),
        without_answer("no answer", "no_sql", match=False),
    ]
    found = opened(tmp_path / "run", simulated)
    by_hand = {
        "ex": (0.3333, 6),
        "with_question": (0.5, 6),
        "user_asked": (0.5, 6),
        "in_vain": (0.6667, 3),
        "with_doubtful": (0.5, 6),
        "doubtful_asked": (0.3333, 6),
    }
    assert means(found, *by_hand) == by_hand
    assert rows(report([found]))["EX with one question, %"] == ["50.0 ± 22.4 of 6"]
    assert "EX with one question, %" not in report([opened(tmp_path / "plain", simulated[5:])])
    over_readings = [  # an answer that has reading 0 of 2; asked, reading 1 was among the choices, then not
        record("a", met=(0,), asking=SimulatedUser(2, 1, choices((0,), (1,)), "B")),
        record("b", met=(0,), asking=SimulatedUser(2, 1, choices((0,), ()))),
        record("c", met=(0,), asking=SimulatedUser(1, 0)),
    ]
    by_hand = {"with_question": (0.6667, 3), "with_question_all": (0.8333, 3), "in_vain": (0.5, 2)}
    assert means(opened(tmp_path / "readings", over_readings), *by_hand) == by_hand


def test_notes_say_what_the_figures_leave_out(tmp_path: Path) -> None:
    strange = record("z", demonstration=True, usage=usage(estimated_calls=3), restricted=True)
    lacking = {"shard": "2/3", "missing": ("3 questions are left out.",), "options": {"gold": "tables"}}
    found = opened(tmp_path / "run", [*RECORDS, strange], [*QUESTIONS, asked("z")], **lacking)
    assert list(notes(found)) == [
        "Demonstration: the rule-based offline model took part in 1 of 8 records. It is no language model.",
        "An ablation, no result of a system: questions saw only the tables that their gold needs "
        '("oracle tables"). 7 questions saw the whole schema: a, b, c, d, e and 2 more.',
        "1 question of 9 cannot be scored: no gold SQL runs (1).",
        "It is not whole: shard 1, 3 of 3 is missing.",
        "1 question of 9 without a record yet. Counted as wrong.",
        "1 question failed for want of the model's endpoint or the database. Counted as wrong; the same "
        "`quorum eval run` asks again.",
        "What 2 questions cost is not known. Costs are those of the others.",
        "The price of 1 question is not known (set `prices`).",
        "The tokens of 3 model calls are estimated: the provider did not state them.",
        "3 questions are left out.",
    ]


def test_nothing_can_be_measured_without_gold(tmp_path: Path) -> None:
    records = [record(id, match=None, gold="not_live", executes=None) for id in "ab"]
    found = opened(tmp_path / "run", records, [asked(id) for id in "abc"])
    assert any("cannot be scored: no live database (2)" in note for note in notes(found))
    shown = rows(report([found]))
    assert shown["EX, %"] == ["not measurable"]
    assert "SQL that executes, %" not in shown
    assert shown["answered, %"] == ["66.7 ± 33.3 of 3"]


def test_json_has_the_figures_and_no_place_of_the_machine(found: Opened, tmp_path: Path) -> None:
    text = json.dumps(as_dict(found), allow_nan=False)
    assert str(tmp_path) not in text
    values = json.loads(text)
    assert (values["figures"]["ex"]["mean"], values["groups"]["difficulty"]["easy"]["ex"]["n"]) == (0.25, 3)
    listed = {row["id"]: (row["status"], row["right"], row["category"]) for row in values["questions"]}
    assert list(listed) == list("abcdefgh")
    assert listed["b"] == ("answered", False, "values differ")
    assert (listed["e"], listed["g"]) == (("answered", None, ""), ("not asked yet", False, ""))


@settings(max_examples=25)
@given(st.text(max_size=30), st.sampled_from(["", HOSTILE]))
def test_nothing_in_the_data_is_taken_for_markup(text: str, more: str) -> None:
    strange = text + more
    records = {
        "a": record("a", match=False, database=strange, run=strange, message=strange),
        "b": without_answer("b", strange, gold=strange),
    }
    asks = [asked(id, database=id + strange, difficulty=id + strange, dialect=id + strange) for id in "ab"]
    metric = EX | {"name": "m", "title": strange, "meaning": strange}
    made = manifest(
        asks, suite=strange, rules=strange, missing=(strange,), version=strange, metrics=(EX, metric),
        options={"recipe": strange, "models": [strange]},
    )  # fmt: skip
    folder = Path("/somewhere/run")
    said = report([Opened(strange, folder, (folder,), made, records, dict.fromkeys("ab", folder))])
    assert "<script>" not in said
    assert not re.search(r"(?<!\\)\[l|\x1b|\u202e|/somewhere", said)
    for block in said.split("\n\n"):
        if block.startswith("|"):
            widths = {len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) for line in block.splitlines()}
            assert len(widths) == 1, block


# Shards and folders


def shard(folder: Path, number: int, ids: str, of: int = 2, **values: Any) -> Path:
    made = manifest([asked(id) for id in ids], shard=f"{number}/{of}", **values)
    return write(folder, made, [record(id) for id in ids])


def test_shards_are_put_together_in_the_suites_order(tmp_path: Path) -> None:
    second, first = shard(tmp_path / "y", 2, "bd"), shard(tmp_path / "x", 1, "ace")
    (found,) = open_evaluations([second, first])
    assert list(found.asked) == list("abcde")
    assert (found.lacks, found.frame.mean("ex").n) == ("", 5)
    assert [found.run_of(id) for id in "ab"] == [first / "runs" / "a", second / "runs" / "b"]
    assert found.name == tmp_path.name
    shard(tmp_path / "z", 1, "f")
    assert open_evaluations([second, first])[0].name == "x"


def test_shards_that_were_not_run_alike_stay_apart(tmp_path: Path) -> None:
    others = {"options": {"models": ["openai:n"]}, "rules": "others", "version": "2.0", "metrics": (EX, F1)}
    first = shard(tmp_path / "x", 1, "a")
    for name, other in others.items():
        found = open_evaluations([first, shard(tmp_path / name, 2, "b", **{name: other})])
        assert [each.lacks for each in found] == [f"shard {number} of 2 is missing" for number in (2, 1)]


def test_what_does_not_fit_together_is_refused_and_a_folder_named_twice_counts_once(tmp_path: Path) -> None:
    one = shard(tmp_path / "x", 1, "abcd")
    with pytest.raises(ConfigurationError, match=r"not cut from the same questions: 1/2 asks 4, 2/2 asks 2"):
        open_evaluations([one, shard(tmp_path / "y", 2, "ef")])
    with pytest.raises(ConfigurationError, match="Shard 1/2 was given more than once"):
        open_evaluations([one, shard(tmp_path / "again", 1, "abcd")])
    (tmp_path / "z").mkdir()
    with pytest.raises(ConfigurationError, match="holds no evaluation"):
        open_evaluations([tmp_path / "z"])
    assert len(open_evaluations([one, tmp_path / "z" / ".." / "x"])) == 1


def test_evaluations_in_subfolders_are_found_and_told_apart_by_name(tmp_path: Path) -> None:
    for parent in ("one", "two"):
        write(tmp_path / parent / "spider", manifest([asked("a")]), [record("a")])
    write(tmp_path / "one" / "bird", manifest([asked("a")]), [])
    found = open_evaluations([tmp_path / "one", tmp_path / "two"])
    assert [each.name for each in found] == ["one/bird", "one/spider", "two/spider"]
