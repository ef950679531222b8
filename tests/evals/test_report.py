"""Reports of small evaluations: figures against values by hand, and nothing of the data taken for markup."""

from __future__ import annotations

import dataclasses
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.evals.records import Asking, CandidateRow, ChoiceRow, Course, Effort, Linking, Record
from quorum.evals.reports.evaluations import Opened, open_evaluations
from quorum.evals.reports.format import clock, interval, plus_minus, price, size
from quorum.evals.reports.report import as_dict, notes, questions, report
from quorum.evals.reports.statistics import mean_of, share_of, spread_of
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import (
    EX,
    F1,
    VES,
    asked,
    linking,
    manifest,
    opened,
    record,
    usage,
    write,
)
from tests.evals.evaluations import (
    unanswered as without_answer,
)

HOSTILE = "a|b\n<script>alert(1)</script> `x` [l](u) *b* \x1b[31m \u202e # @me"


QUESTIONS = [
    asked("a", difficulty="easy", external_knowledge=True),
    asked("b", difficulty="easy"),
    asked("c", difficulty="easy"),
    *(asked(id, difficulty="hard", database="bank") for id in "defgh"),
]
RECORDS = [
    record(
        "a",
        metrics={"ex": 1.0, "soft_f1": 1.0, "r_ves": 120.0},
        confidence=0.9,
    ),
    record(
        "b",
        match=False,
        metrics={"ex": 0.0, "soft_f1": 0.5, "r_ves": 0.0},
        confidence=0.8,
        gold_rows=3,
        candidates=(CandidateRow("c1", "m", "SELECT 1", False), CandidateRow("c2", "m", "SELECT 2", True)),
        usage=usage(model_calls=4, usd=None, seconds=12.0),
    ),
    record("d", status="stopped", error="max_calls", usage=usage(model_calls=6, seconds=1)),
    record("e", match=None, gold="fails", usage=usage(seconds=60), resumed=True),
    record(
        "f",
        gold="differs",
        metrics={"ex": 1.0, "soft_f1": None, "r_ves": 60.0},
        confidence=0.6,
        usage=usage(seconds=5),
    ),
    without_answer("c", "syntax"),
    without_answer("h", "endpoint"),
]


@pytest.fixture
def found(tmp_path: Path) -> Opened:
    """Eight questions: a, f right; b wrong; d a best effort; c, h unanswered; e unscorable; g missing."""
    return opened(tmp_path / "run", RECORDS, QUESTIONS, metrics=(EX, F1, VES))


def one(folder: Path, records: Sequence[Record], **values: Any) -> str:
    return report([opened(folder / "run", records, **values)])


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the tables under a heading, without lines of dashes."""
    part = text.split(f"### {heading}\n", 1)[1].split("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def counts(found: Opened, *names: str) -> list[tuple[int, int]]:
    shares = [found.frame.share(name) for name in names]
    return [(share.count, share.n) for share in shares if share]


def test_execution_accuracy_over_every_denominator(found: Opened) -> None:
    figures = found.frame.figures()
    assert [figures[name] for name in ("questions", "recorded", "answered", "unscorable")] == [8, 7, 4, 1]
    by_hand = {
        "ex": (2, 8),  # a, f of all
        "ex_answered": (2, 3),  # of a, b, f
        "ex_sound": (1, 5),  # a of a, b, c, d, h
        "ex_effort": (3, 8),  # d as well
        "possible": (4, 8),  # a candidate of b as well
    }
    assert dict(zip(by_hand, counts(found, *by_hand), strict=True)) == by_hand
    assert found.frame.share("ex") == share_of([True, True, *[False] * 6])
    shown = rows(report([found]), "Execution accuracy")
    assert shown[:2] == [
        ["over", "right", "of", "EX, %", "s.e.", "95 % interval, %"],
        ["all questions asked for", "2", "8", "25.0", "16.4", "7.1 – 59.1"],
    ]
    assert shown[4][:4] == ["all questions, best efforts counted as answers", "3", "8", "37.5"]


def test_other_metrics_count_what_is_missing_as_0_and_leave_out_what_is_not_defined(found: Opened) -> None:
    (f1, f1_asked, f1_answered), (ves, ves_asked, ves_answered) = found.frame.declared().values()
    assert (f1["name"], f1["unit"], ves["unit"]) == ("soft_f1", "share", "points")
    assert f1_asked == mean_of([1.0, 0.5, 0, 0, 0, 0, 0])  # not f
    assert f1_answered == mean_of([1.0, 0.5])
    assert ves_asked == mean_of([120.0, 0.0, 0, 0, 0, 60.0, 0, 0])
    assert ves_answered == mean_of([120.0, 0.0, 60.0])
    text = report([found])
    assert [row[:2] + row[7:] for row in rows(text, "Other metrics")[1:]] == [
        ["Soft F1", "21.4", "%", "Cells in common."],
        ["R-VES", "22.50", "points", "Rewards fast SQL."],
    ]
    assert rows(text, "By difficulty")[0][-2:] == ["Soft F1, %", "R-VES"]


def test_groups_tell_questions_apart_in_the_order_of_grades(found: Opened, tmp_path: Path) -> None:
    def ex(parts: Mapping[str, Any]) -> dict[str, tuple[int, int]]:
        return {label: (part.share("ex").count, part.share("ex").n) for label, part in parts.items()}

    assert {name: ex(parts) for name, parts in found.frame.groups()} == {
        "difficulty": {"easy": (1, 3), "hard": (1, 5)},
        "database": {"bank": (1, 5), "shop": (1, 3)},
        "external knowledge": {"with": (1, 1), "without": (1, 7)},
    }, "there is one dialect"
    grades = ["", "extra", "hard", "odd", "medium", "easy"]
    graded = [asked(f"q{number}", difficulty=grade) for number, grade in enumerate(grades)]
    labels = list(opened(tmp_path / "graded", [], graded).frame.by("difficulty"))
    assert labels == ["easy", "medium", "hard", "extra", "odd", "not graded"]
    many = [asked(f"q{number}", database=f"db{number:02}") for number in range(13)]
    text = report([opened(tmp_path / "many", [record("q0")], many)])
    assert "<details><summary>13 databases</summary>\n\n| database |" in text


def test_unsound_gold_is_listed_and_not_dropped(found: Opened) -> None:
    assert rows(report([found]), "Gold that could not be used")[1:] == [
        ["differs", "the gold SQL no longer gives the published result", "1", "1", "1", "f"],
        ["fails", "no gold SQL runs", "1", "0", "0", "e"],
    ]


def test_every_question_that_went_wrong_has_its_category(found: Opened, tmp_path: Path) -> None:
    lacking = [("endpoint", "h"), ("max_calls", "d"), ("syntax", "c")]
    shown = rows(report([found]), "Questions without an answer: 3")[1:]
    assert [(row[0].replace("\\", ""), row[4]) for row in shown] == lacking
    assert rows(report([found]), "Wrong answers: 1")[1][::4] == ["values differ", "b"]
    wrongs = [record(f"w{n}", match=False, rows=0) for n in range(7)]
    text = one(tmp_path / "more", [*wrongs, record("x", match=False), without_answer("u", "fault")])
    assert rows(text, "Questions without an answer: 1")[1][:3] == ["fault", "1", "100.0"]
    first = rows(text, "Wrong answers: 8")[1]
    assert first[:3] + first[4:] == ["no rows", "7", "87.5", "w0, w1, w2, w3, w4 and 2 more"]


def test_costs_are_over_the_records_with_a_ledger_and_an_unknown_price_is_none(found: Opened) -> None:
    calls, dollars = found.frame.cost("model_calls"), found.frame.cost("usd")  # 2, 2, 2, 4, 6
    assert (calls.n, calls.mean, calls.p50, calls.high, calls.total) == (5, 3.2, 2.0, 6.0, 16.0)
    assert calls.p95 == pytest.approx(5.6)
    assert (dollars.n, dollars.unknown, dollars.total) == (4, 1, None)
    cells = {row[0]: row[1:] for row in rows(report([found]), "Cost per question")}
    assert cells["over 5 questions"] == ["mean", "p50", "p95", "highest", "total"]
    assert cells["model calls"] == ["3.20", "2.00", "5.60", "6", "16"]
    assert cells["tokens a model call, in and out"] == ["402", "525", "525", "525", "–"]
    assert cells["price"] == ["unknown"] * 5
    assert cells["wall clock, s"][0] == "16.4"


def test_what_agents_and_models_used(tmp_path: Path) -> None:
    models = {"small": usage(input_tokens=500, output_tokens=40), "strong": usage(model_calls=1)}
    first = usage(by_agent={"writer": usage(), "judge": usage(model_calls=1)}, by_model=models)
    second = usage(by_agent={"writer": usage(usd=None)})
    found = opened(tmp_path / "run", [record("a", usage=first), record("b", usage=second)])
    cells = {row[0]: row[1:] for row in rows(report([found]), "Cost per question")}
    assert list(cells)[-6:] == ["agent", "writer", "judge", "model", "small", "strong"]
    assert cells["agent"] == ["model calls", "tokens in", "tokens out", "database calls", "price"]
    assert cells["writer"] == ["4", "2,000", "100", "2", "unknown"]
    assert cells["judge"] == ["1", "1,000", "50", "1", "$0.0100"]
    assert cells["small"] == ["2", "500", "40", "1", "$0.0100"]
    assert cells["price"] == ["$0.0100", "$0.0100", "$0.0100", "$0.0100", "$0.0200"]


def test_bytes_read_are_shown_by_their_source_and_only_if_an_engine_reports_them(tmp_path: Path) -> None:
    assert "read, as" not in one(tmp_path / "s", [record("a"), record("b")])
    billed = usage(read_bytes=2 * 10**9, estimated_bytes=0)
    guessed = usage(read_bytes=0, estimated_bytes=10**9)
    text = one(tmp_path / "t", [record("a", usage=billed), record("b", usage=guessed)])
    cells = {row[0]: row[1:] for row in rows(text, "Cost per question")}
    assert (cells["read, as the engine says"][-1], cells["read, as estimated"][-1]) == ("2.00 GB", "1.00 GB")


def test_confidence_is_held_against_answers_known_to_be_right_or_wrong(found: Opened, tmp_path: Path) -> None:
    fit = found.calibration
    assert fit is not None
    assert (fit.n, fit.brier) == (3, pytest.approx((0.1**2 + 0.8**2 + 0.4**2) / 3))
    answers = [(0.9, True), (0.8, True), (0.7, False), (0.6, False), (0.5, True)]
    text = one(
        tmp_path / "more",
        [record(f"q{n}", confidence=p, match=right) for n, (p, right) in enumerate(answers)],
    )
    shown = rows(text, "Confidence")
    assert "Brier score 0.230 (0 is perfect; 0.240 if always 0.600), AUROC 0.667" in text
    assert shown[-4:] == [
        ["0.800", "40.0", "0.0"],
        ["0.700", "60.0", "33.3"],
        ["0.600", "80.0", "50.0"],
        ["0.500", "100.0", "40.0"],
    ]


def test_sql_that_executes_and_is_valid(tmp_path: Path) -> None:
    records = [
        record("a"),
        record("b", match=False, executes=False, valid=False),
        without_answer("c", "no_sql", valid=None, executes=False),
    ]
    found = opened(tmp_path / "run", records)
    assert counts(found, "with_sql", "executes", "valid") == [(2, 3), (1, 2), (1, 2)]


def test_linking_is_averaged_over_the_records_that_have_it(tmp_path: Path) -> None:
    records = [
        record("a", linking=linking(1.0, 0.5)),
        record("b", linking=linking(0.5, None)),
        record("c"),
        record("d", sql="", status="no_answer"),
    ]
    text = one(tmp_path, records)
    assert rows(text, "Linking")[1:] == [
        ["tables of the answers' SQL", "75.0", "25.0", "2", "100.0", "0.0", "2", "50.0", "2"],
        ["columns of the answers' SQL", "50.0", "–", "1", "100.0", "0.0", "2", "0.0", "1"],
    ]
    assert "Without SQL, and so in no mean of answers: 1 question." in text


def test_what_linked_schemas_keep_is_apart_from_the_answers_linking(tmp_path: Path) -> None:
    text = one(
        tmp_path,
        [
            record("a", linking=linking(0.5, 0.5), linked=True, schema_linking=Linking(1.0, 0.5, 0.75, 0.1)),
            record("b", linked=True, schema_linking=Linking(0.5, 1.0, None, None)),
            record("c", linked=True),
            record("d", schema_linking=Linking(1.0, None, 1.0, None)),
            record("e"),
        ],
    )
    assert rows(text, "Linking")[3:] == [
        ["tables of linked schemas", "75.0", "25.0", "2", "75.0", "25.0", "2", "50.0", "2"],
        ["columns of linked schemas", "75.0", "–", "1", "10.0", "–", "1", "0.0", "1"],
        ["tables of all schemas", "83.3", "16.7", "3", "75.0", "25.0", "2", "66.7", "3"],
        ["columns of all schemas", "87.5", "12.5", "2", "10.0", "–", "1", "50.0", "2"],
    ]
    assert "Schemas linked: 3 questions. 1 of them in no figure" in text
    assert "schemas" not in one(tmp_path / "other", [record("a", linking=linking(1.0, 1.0))])
    assert "Schemas linked: 1 question. 1 of them" in one(tmp_path / "unknown", [record("a", linked=True)])


def test_votes(tmp_path: Path) -> None:
    candidates = tuple(CandidateRow(f"c{number}", "m", "SELECT 1") for number in range(4))
    clusters = [{"candidates": ["c3"]}, {"candidates": ["c0", "c1"]}]
    settled = {"winner": "c0", "tie": True, "settled": "judge", "saved": 2, "clusters": clusters}
    none = {"winner": None, "tie": False, "settled": "", "saved": 0, "clusters": []}
    verified = none | {"settled": "verified"}
    records = [
        record("a", candidates=candidates, vote=settled),
        record("b", candidates=candidates[:2], vote=none),
        record("c"),
        record("d", vote=verified),
    ]
    assert rows(one(tmp_path, records), "Votes") == [
        ["over 2 questions with a vote", ""],
        ["candidates per question, mean", "3.00"],
        ["candidates that agree with the answer, mean share, %", "50.0"],
        ["votes that were a tie", "1"],
        ["settled by judge", "1"],
        ["candidates that the stopping rule spared, per question", "1.00"],
        ["candidates that the stopping rule spared, in all", "2"],
    ]


def test_rounds_and_repairs(tmp_path: Path) -> None:
    def effort(repairs: int, *, explored: bool = False, calls: int = 1) -> Effort:
        return Effort(repairs, explored, calls=calls, tokens=100 * calls, queries=2)

    def row(name: str, match: bool, *, superseded: bool = False) -> CandidateRow:
        return CandidateRow(name, "m", "SELECT 1", match, superseded=superseded)

    better = (row("c1", match=False, superseded=True), row("c2", match=True))
    worse = (row("c1", match=True, superseded=True), row("c2", match=False))
    explored = Course(True, first_tie=True, efforts=(effort(0, explored=True, calls=4),))
    plain = Course(False, first_tie=False, efforts=(effort(0), effort(2, calls=3), effort(4, calls=5)))
    records = [
        record("a", course=explored, candidates=better),
        record("b", course=explored, candidates=worse),
        record("c", course=plain),
        record("d"),
    ]
    assert [each.possible for each in records[:2]] == [True, False], "pass@k is of the last round"
    text = one(tmp_path, records)
    assert [row[:3] for row in rows(text, "Exploration and repairs")[1:5]] == [
        ["questions that were explored", "2", "3"],
        ["first votes that were a tie", "2", "3"],
        ["of two rounds: some candidate of the first is right", "1", "2"],
        ["of two rounds: some candidate of the last is right (pass@k)", "1", "2"],
    ]
    assert rows(text, "Exploration and repairs")[6:] == [
        ["no repair", "1", "1.00", "2.00", "100"],
        ["one or two repairs", "1", "3.00", "2.00", "100"],
        ["three repairs or more", "1", "5.00", "2.00", "100"],
        ["with an exploration", "2", "4.00", "2.00", "100"],
    ]
    untouched = [record("a", course=Course(efforts=(effort(0),))), record("b")]
    assert "### Exploration" not in one(tmp_path / "no", untouched)


def choices(*met: tuple[int, ...]) -> tuple[ChoiceRow, ...]:
    rows = zip("ABC", met, strict=False)
    return tuple(ChoiceRow(label, "", "", match=bool(own), met=own) for label, own in rows)


SIMULATED = [
    record("right, not asked", asking=Asking()),
    record("right, asked", asking=Asking(choices=choices((0,), ()))),
    record("helped", match=False, asking=Asking(choices=choices((), (0,)))),
    record("in vain", match=False, asking=Asking(choices=choices((), ()))),
    record("wrong, not asked", match=False, asking=Asking()),
    without_answer("no answer", "no_sql", match=False),
]


def test_one_question_to_the_user_is_shown_next_to_ex_and_not_as_ex(tmp_path: Path) -> None:
    sure = dataclasses.replace(SIMULATED[1], confidence=0.65)
    text = one(tmp_path, [SIMULATED[0], sure, *SIMULATED[2:]])
    assert [row[1:4] for row in rows(text, "With one question to the user")[1:]] == [
        ["2", "6", "33.3"],  # without a question
        ["3", "6", "50.0"],  # with it
        ["3", "6", "50.0"],  # asked
        ["1", "3", "33.3"],  # helped
        ["1", "3", "33.3"],  # needless
        ["1", "3", "33.3"],  # unhelpful
        ["3", "6", "50.0"],  # with a question only in doubt
        ["2", "6", "33.3"],  # asked in doubt
    ]
    assert rows(text, "Execution accuracy")[1][:3] == ["all questions asked for", "2", "6"]
    plain = [dataclasses.replace(record, asking=None) for record in SIMULATED]
    assert "one question" not in one(tmp_path / "plain", plain)


def test_over_all_readings_each_counts_as_much(tmp_path: Path) -> None:
    """An answer that has reading 0 of 2; asked, reading 1 was among the choices, then not."""
    text = one(
        tmp_path,
        [
            record("a", met=(0,), asking=Asking(2, 1, choices((0,), (1,)), "B")),
            record("b", met=(0,), asking=Asking(2, 1, choices((0,), ()))),
            record("c", met=(0,), asking=Asking(1, 0)),
        ],
    )
    shown = rows(text, "With one question to the user")
    assert [row[1] for row in shown[1:9]] == ["1", "2", "2", "1", "0", "1", "2", "2"]
    assert [row[:2] for row in shown[10:]] == [["without a question", "66.7"], ["with one question", "83.3"]]


def test_questions_are_listed_in_order(found: Opened) -> None:
    listed = {row["id"]: (row["status"], row["right"], row["category"]) for row in questions(found)}
    assert list(listed) == list("abcdefgh")
    assert listed["a"] == ("answered", True, "")
    assert listed["b"] == ("answered", False, "values differ")
    assert listed["d"] == ("stopped", False, "max_calls")
    assert listed["e"] == ("answered", None, "")
    assert listed["g"] == ("not asked yet", False, "")


def test_notes_say_what_the_figures_leave_out(found: Opened) -> None:
    said = " ".join(notes(found))
    for part in (
        "1 question cannot be scored: no gold SQL runs (1)",
        "1 question of 8 without a record yet",
        "1 question failed for want of the model's endpoint or the database",
        "1 question without an answer had a best effort that is right",
        "What 2 questions cost is not known",
        "price of 1 question is not known",
        "Linking cannot be measured",
    ):
        assert part in said


@pytest.mark.parametrize(
    ("state", "why"),
    [("not_live", "no live database (2)"), ("missing", "the suite has no gold (2)")],
)
def test_nothing_can_be_scored(tmp_path: Path, state: str, why: str) -> None:
    records = [
        record(id, match=None, gold=state, executes=None, rows=None, difficulty=id) for id in ("easy", "hard")
    ]
    found = opened(tmp_path / "run", [*records, without_answer("c", "endpoint")])
    assert (found.frame.share("ex"), found.frame.share("possible"), found.calibration) == (None, None, None)
    assert next(notes(found)) == f"0 of 3 questions can be scored: {why}."
    text = report([found])
    assert "Whether SQL executes cannot be measured: no live database." in text
    assert "By difficulty" not in text
    unknown = ["not measurable", "–", "–"]
    assert rows(text, "Execution accuracy")[1] == ["all questions asked for", "–", "3", *unknown]
    assert rows(text, "SQL")[2] == ["executes, of SQL on live databases", "0", "0", *unknown]
    assert "Not measurable: no answer is known to be right or wrong." in text


def test_no_record_yet_and_a_single_one(tmp_path: Path) -> None:
    empty = opened(tmp_path / "empty", [], [asked("a")])
    assert (empty.frame.share("ex"), empty.calibration, empty.frame.cost("usd").mean) == (None, None, None)
    text = report([empty])
    assert "No question has ended yet" in text
    assert "###" not in text
    single = opened(tmp_path / "single", [record("a")])
    assert single.frame.share("ex") == share_of([True])
    assert list(single.frame.groups()) == []
    assert "### Execution accuracy" in report([single])


def test_json_holds_neither_nan_nor_a_path_of_the_machine(tmp_path: Path) -> None:
    records = [record("a", confidence=math.nan, metrics={"ex": 1.0, "soft_f1": math.inf})]
    values = as_dict(opened(tmp_path / "run", records, metrics=(EX, F1)))
    assert str(tmp_path) not in json.dumps(values, allow_nan=False)
    assert (values["folders"], values["overall"]["ex"]["share"]) == (["run"], 1.0)
    assert values["overall"]["metrics"]["soft_f1"]["asked"]["n"] == 0


def test_the_demonstration_is_said_first(tmp_path: Path) -> None:
    text = one(tmp_path, [record("a", demonstration=True), record("b")])
    said = "> **Demonstration:** the rule-based offline model took part in run."
    assert text.splitlines()[2].startswith(said)
    assert "took part in 1 of 2 records. It is no language model" in text
    assert "Demonstration" not in one(tmp_path / "other", [record("a")])


def test_several_evaluations_are_compared_first(tmp_path: Path) -> None:
    old = [dataclasses.replace(it, asking=None, match=False, metrics={"ex": 0.0}) for it in SIMULATED]
    new = [
        dataclasses.replace(it, usage=usage(model_calls=calls))
        for it, calls in zip(SIMULATED, (1, 1, 1, 1, 1, 7), strict=True)
    ]
    text = report([opened(tmp_path / "old", old), opened(tmp_path / "new", new)])
    assert text.startswith("# 2 evaluations\n")
    assert rows(text, "Side by side")[:11] == [
        ["", "old", "new"],
        ["suite", "shops", "shops"],
        ["recipe", "quorum", "quorum"],
        ["models", "openai:m", "openai:m"],
        ["questions", "6", "6"],
        ["answered", "5", "5"],
        ["EX, %", "0.0 ± 0.0", "33.3 ± 21.1"],
        ["EX with one question, %", "–", "50.0 ± 22.4"],
        ["user asked, %", "–", "50.0 ± 22.4"],
        ["some candidate right (pass@k), %", "0.0 ± 0.0", "33.3 ± 21.1"],
        ["answer or a reading shown right, %", "0.0 ± 0.0", "33.3 ± 21.1"],
    ]
    assert "| model calls | 2.00 / 2.00 | 2.00 / 1.00 |" in text
    assert "| Brier score of confidence | 0.250 | 0.250 |" in text
    assert "differ" not in text.split("## old")[0]
    fewer = opened(tmp_path / "three", [], [asked("b")])
    assert "Not all ask the same questions" in report([opened(tmp_path / "one", [record("a")]), fewer])
    other = opened(tmp_path / "four", [record("a")], suite="others")
    assert "The suites or their rules differ" in report([fewer, other])


def test_options_rules_and_what_the_suite_lacks_are_named(tmp_path: Path) -> None:
    options = {"recipe": "recap", "models": ["openai:m", "openai:n"], "votes": 4, "temperature": None}
    text = one(tmp_path, [record("a")], options=options, missing=("3 questions are left out.",))
    models = "1 question of shops, recipe recap, models openai:m, openai:n, Quorum 1.0, begun 2026-01-01"
    assert models in text
    assert "- options: votes = 4\n- judged by: the rules of shops\n" in text
    assert "- **note**: 3 questions are left out." in text
    assert str(tmp_path) not in text


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


def test_figures_as_text() -> None:
    sizes = {None: "–", 0: "0 B", 812: "812 B", 1187.4: "1.19 kB", 409e6: "409 MB", 2.5e12: "2,500 GB"}
    assert {value: size(value) for value in sizes} == sizes
    assert plus_minus(share_of([True, False])) == "50.0 ± 50.0"
    assert plus_minus(share_of([True])) == "100.0"
    assert plus_minus(share_of([])) == "not measurable"
    assert interval(share_of([])) == "–"
    assert price(spread_of([]), "mean") == "–"
    assert clock("2026-01-01T12:00:00.123+02:00") == "2026-01-01 10:00:00"
    assert clock("noon") == "noon"


# Shards and folders


def shard(folder: Path, number: int, ids: str, of: int = 2, **values: Any) -> Path:
    made = manifest([asked(id) for id in ids], shard=f"{number}/{of}", **values)
    return write(folder, made, [record(id) for id in ids])


def test_shards_are_put_together_in_the_suites_order(tmp_path: Path) -> None:
    second, first = shard(tmp_path / "y", 2, "bd"), shard(tmp_path / "x", 1, "ace")
    (found,) = open_evaluations([second, first])
    assert list(found.asked) == list("abcde")
    assert (found.shards, counts(found, "ex")) == (((1, 2), 2), [(5, 5)])
    assert [found.run_of(id) for id in "ab"] == [first / "runs" / "a", second / "runs" / "b"]
    assert found.name == tmp_path.name
    assert "2 of 2 shards, put together" in report([found])
    shard(tmp_path / "z", 1, "f")
    assert open_evaluations([second, first])[0].name == "x and 1 more"


@pytest.mark.parametrize(
    "other",
    [{"options": {"models": ["openai:n"]}}, {"rules": "others"}, {"version": "2.0"}, {"metrics": (EX, F1)}],
)
def test_shards_that_were_not_run_alike_stay_apart(tmp_path: Path, other: dict[str, Any]) -> None:
    found = open_evaluations([shard(tmp_path / "x", 1, "a"), shard(tmp_path / "y", 2, "b", **other)])
    assert [each.shards for each in found] == [((1,), 2), ((2,), 2)]


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
    assert [each.name for each in found] == ["bird", "one/spider", "two/spider"]
