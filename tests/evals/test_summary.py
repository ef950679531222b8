"""Summaries of small evaluations, against values computed by hand."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.records import Asked, CandidateRow, Record
from quorum.evals.reports.markdown import report
from quorum.evals.reports.scores import Score
from quorum.evals.reports.statistics import Share, mean_of, share_of
from quorum.evals.reports.summary import Summary, summaries
from quorum.evals.scorers.base import GoldState
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import (
    EX,
    F1,
    VES,
    asked,
    cut_short,
    linking,
    manifest,
    record,
    unanswered,
    usage,
    write,
)


def at(time: str, session: str = "one", **values: Any) -> dict[str, Any]:
    return {"session": session, "ended": f"2026-01-01T{time}.000+00:00"} | values


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
        **at("12:00:10", memory=300),
    ),
    record(
        "b",
        match=False,
        metrics={"ex": 0.0, "soft_f1": 0.5, "r_ves": 0.0},
        confidence=0.8,
        gold_rows=3,
        candidates=(CandidateRow("c1", "m", "SELECT 1", False), CandidateRow("c2", "m", "SELECT 2", True)),
        usage=usage(model_calls=4, usd=None, seconds=12.0),
        **at("12:00:12", memory=500),
    ),
    record("d", status="stopped", error="max_calls", usage=usage(model_calls=6, seconds=1), **at("12:00:20")),
    record("e", match=None, gold="fails", usage=usage(seconds=60), resumed=True, **at("12:05:00", "two")),
    record(
        "f",
        gold="differs",
        metrics={"ex": 1.0, "soft_f1": None, "r_ves": 60.0},
        confidence=0.6,
        usage=usage(seconds=5),
        **at("12:05:10", "two", memory=400),
    ),
    unanswered("c", "syntax", **at("12:05:06", "two")),
    unanswered("h", "endpoint", **at("12:05:40", "two")),
]


def summary_of(folder: Path, questions: Sequence[Asked], records: Sequence[Record], **values: Any) -> Summary:
    (found,) = summaries([write(folder / "run", manifest(questions, **values), records)])
    return found


@pytest.fixture
def found(tmp_path: Path) -> Summary:
    """Eight questions: a, f right; b wrong; d a best effort; c, h unanswered; e unscorable; g missing."""
    return summary_of(tmp_path, QUESTIONS, RECORDS, metrics=(EX, F1, VES))


def counts(share: Share | None) -> tuple[int, int]:
    assert share is not None
    return share.count, share.n


def test_execution_accuracy_over_every_denominator(found: Summary) -> None:
    overall = found.overall
    assert (overall.questions, overall.recorded, overall.answered, overall.unscorable) == (8, 7, 4, 1)
    assert counts(overall.ex) == (2, 8)  # a, f of all
    assert counts(overall.ex_answered) == (2, 3)  # of a, b, f
    assert counts(overall.ex_sound) == (1, 5)  # a of a, b, c, d, h
    assert counts(overall.ex_effort) == (3, 8)  # d as well
    assert counts(overall.possible) == (4, 8)  # a candidate of b as well
    assert overall.ex == share_of([True, True, *[False] * 6])


def test_other_metrics_count_what_is_missing_as_0_and_leave_out_what_is_not_defined(found: Summary) -> None:
    f1, ves = found.overall.metrics
    assert (f1.name, f1.unit, ves.unit) == ("soft_f1", "share", "points")
    assert f1.asked == mean_of([1.0, 0.5, 0, 0, 0, 0, 0])  # not f
    assert f1.answered == mean_of([1.0, 0.5])
    assert ves.asked == mean_of([120.0, 0.0, 0, 0, 0, 60.0, 0, 0])
    assert ves.answered == mean_of([120.0, 0.0, 60.0])


def test_slices_tell_questions_apart_in_the_order_of_grades(found: Summary) -> None:
    def group(score: Score) -> tuple[str, int, tuple[int, int]]:
        return score.label, score.questions, counts(score.ex)

    assert list(found.slices) == ["difficulty", "database", "external knowledge"]  # one dialect
    assert [group(each) for each in found.slices["difficulty"]] == [("easy", 3, (1, 3)), ("hard", 5, (1, 5))]
    assert [group(each) for each in found.slices["database"]] == [("bank", 5, (1, 5)), ("shop", 3, (1, 3))]
    assert [group(each) for each in found.slices["external knowledge"]] == [
        ("with", 1, (1, 1)),
        ("without", 7, (1, 7)),
    ]


def test_grades_are_ordered_and_what_is_not_graded_comes_last(tmp_path: Path) -> None:
    grades = ["", "extra", "hard", "odd", "medium", "easy"]
    questions = [asked(f"q{number}", difficulty=grade) for number, grade in enumerate(grades)]
    found = summary_of(tmp_path, questions, [])
    labels = [each.label for each in found.slices["difficulty"]]
    assert labels == ["easy", "medium", "hard", "extra", "odd", "not graded"]


def test_unsound_gold_is_listed_and_not_dropped(found: Summary) -> None:
    groups = [(each.state, each.ids, each.scored, each.right) for each in found.gold]
    assert groups == [("differs", ("f",), 1, 1), ("fails", ("e",), 0, 0)]
    assert any("1 question cannot be scored: no gold SQL runs (1)" in note for note in found.notes)


def test_every_question_that_went_wrong_has_its_category(found: Summary) -> None:
    assert [(each.name, each.ids) for each in found.unanswered] == [
        ("endpoint", ("h",)),
        ("max_calls", ("d",)),
        ("syntax", ("c",)),
    ]
    assert [(each.name, each.ids) for each in found.wrong] == [("values differ", ("b",))]


def test_costs_are_over_the_records_with_a_ledger(found: Summary) -> None:
    calls = found.cost("model_calls")  # 2, 2, 2, 4, 6
    assert (calls.n, calls.mean, calls.p50, calls.high, calls.total) == (5, 3.2, 2.0, 6.0, 16.0)
    assert calls.p95 == pytest.approx(5.6)
    assert found.without_ledger == 2
    assert found.cost("input_tokens").total == 5000


def test_an_unknown_price_makes_the_total_unknown(found: Summary) -> None:
    price = found.cost("usd")
    assert (price.n, price.unknown, price.total) == (4, 1, None)
    assert any("price of 1 question is not known" in note for note in found.notes)


def test_what_agents_and_models_used(tmp_path: Path) -> None:
    models = {"small": usage(input_tokens=500, output_tokens=40), "strong": usage(model_calls=1)}
    writer = usage(by_agent={"writer": usage(), "judge": usage(model_calls=1)}, by_model=models)
    unpriced = usage(by_agent={"writer": usage(usd=None)})
    found = summary_of(
        tmp_path, [asked("a"), asked("b")], [record("a", usage=writer), record("b", usage=unpriced)]
    )
    used = [(each.name, each.model_calls, each.input_tokens, each.usd) for each in found.by_agent]
    assert used == [("writer", 4, 2000, None), ("judge", 1, 1000, 0.01)]
    calls = [(each.name, each.model_calls, each.tokens_per_call) for each in found.by_model]
    assert calls == [("small", 2, 270.0), ("strong", 1, 1000 + usage()["output_tokens"])]


def test_bytes_read_are_told_by_whose_word_and_only_where_anybody_tells(tmp_path: Path) -> None:
    questions = [asked("a"), asked("b")]
    silent = summary_of(tmp_path / "s", questions, [record("a", usage=usage()), record("b", usage=usage())])
    assert "read, as" not in report([silent])
    billed = usage(read_bytes=2 * 10**9, estimated_bytes=0, by_agent={"writer": usage(read_bytes=2 * 10**9)})
    guessed = usage(read_bytes=0, estimated_bytes=10**9, by_agent={"writer": usage(estimated_bytes=10**9)})
    found = summary_of(tmp_path / "t", questions, [record("a", usage=billed), record("b", usage=guessed)])
    assert (found.cost("read_bytes").total, found.cost("estimated_bytes").total) == (2e9, 1e9)
    text = report([found])
    assert "| read, as the engine says |" in text
    assert "| read, as estimated |" in text
    assert "| 2.00 GB | 1.00 GB |" in text, "by agent, too"


def test_confidence_is_held_against_answers_known_to_be_right_or_wrong(found: Summary) -> None:
    assert found.calibration is not None
    assert found.calibration.n == 3
    assert found.calibration.brier == pytest.approx((0.1**2 + 0.8**2 + 0.4**2) / 3)


def test_sql_that_executes_and_is_valid(tmp_path: Path) -> None:
    records = [
        record("a"),
        record("b", match=False, executes=False, valid=False),
        unanswered("c", "no_sql", valid=None, executes=False),
    ]
    found = summary_of(tmp_path, [asked(id) for id in "abc"], records).execution
    assert [counts(each) for each in (found.with_sql, found.executes, found.valid)] == [
        (2, 3),
        (1, 2),
        (1, 2),
    ]


def test_sessions_last_from_the_start_of_their_first_question_to_their_last_record(found: Summary) -> None:
    one, two = found.throughput.sessions
    assert (one.session, one.questions, one.seconds, one.per_minute) == (
        "one",
        3,
        20.0,
        9.0,
    )  # b began at :00
    assert (two.session, two.questions, two.seconds, two.per_minute) == ("two", 4, 40.0, 6.0)
    assert (
        two.first == "2026-01-01T12:05:00.000+00:00"
    )  # e was resumed: its minute was not all of this session
    assert (found.throughput.seconds, found.throughput.per_minute) == (60.0, 7.0)
    assert (one.memory, two.memory, found.throughput.memory, found.throughput.resumed) == (500, 400, 500, 1)


def test_sessions_at_the_same_time_are_counted_once(tmp_path: Path) -> None:
    records = [
        record("a", usage=usage(seconds=10), **at("12:00:10", "one")),
        record("b", usage=usage(seconds=10), **at("12:00:15", "two")),
        record("c", usage=usage(seconds=1), **at("12:00:12", "three")),
        record("d", ended="", session="four"),
    ]
    found = summary_of(tmp_path, [asked(id) for id in "abcd"], records).throughput
    assert (len(found.sessions), found.questions, found.seconds, found.per_minute) == (3, 3, 15.0, 12.0)


def test_linking_is_averaged_over_the_records_that_have_it(tmp_path: Path) -> None:
    records = [
        record("a", linking=linking(1.0, 0.5)),
        record("b", linking=linking(0.5, None)),
        record("c"),
        record("d", sql="", status="no_answer"),
    ]
    found = summary_of(tmp_path, [asked(id) for id in "abcd"], records).linking
    assert found is not None
    assert (found.questions, found.without_sql) == (2, 1)
    assert (found.table_recall, found.column_recall) == (mean_of([1.0, 0.5]), mean_of([0.5]))
    assert (counts(found.table_strict), counts(found.column_strict)) == ((1, 2), (0, 1))


def test_votes(tmp_path: Path) -> None:
    rows = tuple(CandidateRow(f"c{number}", "m", "SELECT 1") for number in range(4))
    clusters = [{"candidates": ["c3"]}, {"candidates": ["c0", "c1"]}]
    settled = {"winner": "c0", "tie": True, "settled": "judge", "saved": 2, "clusters": clusters}
    none = {"winner": None, "tie": False, "settled": "", "saved": 0, "clusters": []}
    records = [
        record("a", candidates=rows, vote=settled),
        record("b", candidates=rows[:2], vote=none),
        record("c"),
    ]
    found = summary_of(tmp_path, [asked(id) for id in "abc"], records).votes
    assert found is not None
    assert found.questions == 2
    assert found.candidates.mean == 3.0
    assert found.agreeing == mean_of([0.5])
    assert counts(found.ties) == (1, 2)
    assert (found.saved.total, found.saved.mean) == (2, 1.0)
    assert found.settled == {"judge": 1}


def test_lines_tell_every_question_in_order(found: Summary) -> None:
    told = {line.id: (line.status, line.right, line.category, line.folder) for line in found.lines}
    assert list(told) == list("abcdefgh")
    assert told["a"] == ("answered", True, "", 0)
    assert told["b"] == ("answered", False, "values differ", 0)
    assert told["d"] == ("stopped", False, "max_calls", 0)
    assert told["e"] == ("answered", None, "", 0)
    assert told["g"] == ("not asked yet", False, "", None)


def test_notes_say_what_the_figures_leave_out(found: Summary) -> None:
    said = " ".join(found.notes)
    assert "1 question of 8 without a record yet" in said
    assert "1 question failed for want of the model's endpoint or the database" in said
    assert "1 question without an answer had a best effort that is right" in said
    assert "What 2 questions cost is not known" in said
    assert "Linking cannot be measured" in said


@pytest.mark.parametrize("state", ["not_live", "missing"])
def test_nothing_can_be_scored(tmp_path: Path, state: GoldState) -> None:
    records = [record(id, match=None, gold=state, executes=None, rows=None) for id in "ab"]
    found = summary_of(tmp_path, [asked(id) for id in "abc"], [*records, unanswered("c", "endpoint")])
    assert (found.overall.ex, found.overall.possible, found.calibration) == (None, None, None)
    assert found.overall.ex_answered.share is None
    why = {"not_live": "no live database (2)", "missing": "the suite has no gold (2)"}[state]
    assert found.notes[0] == f"0 of 3 questions can be scored: {why}."
    assert "Whether SQL executes cannot be measured: no live database." in found.notes


def test_no_records_yet(tmp_path: Path) -> None:
    found = summary_of(tmp_path, [asked("a")], [])
    assert (found.overall.ex, found.calibration, found.votes, found.linking) == (None, None, None, None)
    assert found.throughput.sessions == ()
    assert found.cost("model_calls").mean is None
    assert found.notes[0].startswith("No question has ended yet")


def test_a_single_record(tmp_path: Path) -> None:
    found = summary_of(tmp_path, [asked("a")], [record("a")])
    assert found.overall.ex == share_of([True])
    assert found.overall.ex.se is None
    assert found.calibration is not None
    assert found.slices == {}


def test_a_line_that_was_cut_short_is_left_out(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", manifest([asked("a"), asked("b")]), [record("a")])
    cut_short(folder)
    (found,) = summaries([folder])
    assert (found.overall.recorded, counts(found.overall.ex)) == (1, (1, 2))


def test_the_last_record_of_a_question_counts_and_strangers_do_not(tmp_path: Path) -> None:
    records = [unanswered("a", "endpoint"), record("z"), record("a")]
    found = summary_of(tmp_path, [asked("a")], records)
    assert (found.overall.recorded, found.failed_endpoint, counts(found.overall.ex)) == (1, 0, (1, 1))


def test_json_holds_neither_nan_nor_a_path_of_the_machine(tmp_path: Path) -> None:
    records = [record("a", confidence=math.nan, metrics={"ex": 1.0, "soft_f1": math.inf})]
    found = summary_of(tmp_path, [asked("a")], records, metrics=(EX, F1))
    text = json.dumps(found.as_dict(), allow_nan=False)
    assert str(tmp_path) not in text
    assert found.as_dict()["folders"] == ["run"]
    assert found.overall.metrics[0].asked.n == 0


def shard(folder: Path, number: int, ids: str, of: int = 2, **values: Any) -> Path:
    made = manifest([asked(id) for id in ids], shard=f"{number}/{of}", **values)
    return write(folder, made, [record(id) for id in ids])


def test_shards_are_put_together_in_the_suites_order(tmp_path: Path) -> None:
    second, first = shard(tmp_path / "y", 2, "bd"), shard(tmp_path / "x", 1, "ace")
    (found,) = summaries([second, first])
    assert [line.id for line in found.lines] == list("abcde")
    assert (found.shards, found.shard_count, counts(found.overall.ex)) == ((1, 2), 2, (5, 5))
    assert [found.folders[line.folder or 0] for line in found.lines[:2]] == [first, second]
    assert found.name == tmp_path.name
    shard(tmp_path / "z", 1, "f")
    assert summaries([second, first])[0].name == "x and 1 more"


def test_missing_shards_are_said(tmp_path: Path) -> None:
    (found,) = summaries([shard(tmp_path / "x", 1, "a", 8), shard(tmp_path / "y", 3, "c", 8)])
    assert found.notes[0].startswith("2 of 8 shards: ")
    assert "shards 2, 4, 5, 6, 7, 8" in found.notes[0]


@pytest.mark.parametrize(
    "other",
    [{"options": {"models": ["openai:n"]}}, {"rules": "others"}, {"version": "2.0"}, {"metrics": (EX, F1)}],
)
def test_shards_that_were_not_run_alike_stay_apart(tmp_path: Path, other: dict[str, Any]) -> None:
    found = summaries([shard(tmp_path / "x", 1, "a"), shard(tmp_path / "y", 2, "b", **other)])
    assert [each.shards for each in found] == [(1,), (2,)]
    assert all("1 of 2 shards: " in each.notes[0] for each in found)


def test_shards_of_other_questions_are_refused(tmp_path: Path) -> None:
    folders = [shard(tmp_path / "x", 1, "abcd"), shard(tmp_path / "y", 2, "ef")]
    with pytest.raises(ConfigurationError, match=r"not cut from the same questions: 1/2 asks 4, 2/2 asks 2"):
        summaries(folders)


def test_a_shard_given_twice_is_refused_and_a_folder_named_twice_is_not(tmp_path: Path) -> None:
    folder = shard(tmp_path / "x", 1, "ac")
    (tmp_path / "z").mkdir()
    assert len(summaries([folder, tmp_path / "z" / ".." / "x"])) == 1
    with pytest.raises(ConfigurationError, match="Shard 1/2 was given more than once"):
        summaries([folder, shard(tmp_path / "y", 1, "ac")])


def test_evaluations_in_subfolders_are_found_and_told_apart_by_name(tmp_path: Path) -> None:
    for parent in ("one", "two"):
        write(tmp_path / parent / "spider", manifest([asked("a")]), [record("a")])
    write(tmp_path / "one" / "bird", manifest([asked("a")]), [])
    found = summaries([tmp_path / "one", tmp_path / "two"])
    assert [each.name for each in found] == ["bird", "one/spider", "two/spider"]


def test_a_folder_without_an_evaluation_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="holds no evaluation"):
        summaries([tmp_path])


def test_options_that_are_not_the_default_are_named(tmp_path: Path) -> None:
    options = {"recipe": "recap", "models": ["openai:m"], "votes": 5, "temperature": None}
    found = summary_of(tmp_path, [asked("a")], [], options=options)
    assert (found.recipe, found.models, found.changed_options) == ("recap", ("openai:m",), {"votes": 5})
