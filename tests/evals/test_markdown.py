"""The report as a stranger reads it: every figure in its place, nothing of the data taken for markup."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from quorum.evals.records import CandidateRow, Course, Effort, Linking, Record
from quorum.evals.reports.calibration import calibrate
from quorum.evals.reports.format import clock, interval, plus_minus, price, size
from quorum.evals.reports.markdown import report
from quorum.evals.reports.statistics import share_of, spread_of
from quorum.evals.reports.summary import summaries, summarise
from tests.evals.evaluations import EX, F1, VES, asked, linking, manifest, record, unanswered, usage, write

HOSTILE = "a|b\n<script>alert(1)</script> `x` [l](u) *b* \x1b[31m \u202e # @me"


def rows(text: str, heading: str) -> list[list[str]]:
    """The cells of the tables under a heading, without lines of dashes."""
    part = text.split(f"### {heading}\n", 1)[1].split("\n### ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|") and "---" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def one(folder: Path, records: list[Record], **values: object) -> str:
    questions = [asked(each.id, difficulty=each.difficulty) for each in records]
    return report(summaries([write(folder / "run", manifest(questions, **values), records)]))


def test_execution_accuracy_has_its_denominators(tmp_path: Path) -> None:
    text = one(
        tmp_path,
        [record("a"), record("b", match=False), unanswered("c", "syntax"), record("d", gold="differs")],
    )
    assert rows(text, "Execution accuracy") == [
        ["over", "right", "of", "EX, %", "s.e.", "95 % interval, %"],
        ["all questions asked for", "2", "4", "50.0", "28.9", "15.0 – 85.0"],
        ["questions answered that can be scored", "2", "3", "66.7", "33.3", "20.8 – 93.9"],
        ["questions with usable gold, of those recorded", "1", "3", "33.3", "33.3", "6.1 – 79.2"],
        ["all questions: some candidate is right (pass@k)", "2", "4", "50.0", "28.9", "15.0 – 85.0"],
    ]
    assert rows(text, "Gold that could not be used")[1] == [
        "differs", "the gold SQL no longer gives the published result", "1", "1", "1", "d",
    ]  # fmt: skip


def test_best_efforts_have_a_row_where_they_make_a_difference(tmp_path: Path) -> None:
    effort = record("b", status="stopped", error="deadline")
    cells = rows(one(tmp_path, [record("a"), effort]), "Execution accuracy")
    assert cells[4][:4] == ["all questions, best efforts counted as answers", "2", "2", "100.0"]


def test_other_metrics_are_in_their_units(tmp_path: Path) -> None:
    metrics = {"ex": 1.0, "soft_f1": 0.25, "r_ves": 110.0}
    text = one(
        tmp_path, [record("a", metrics=metrics, difficulty="easy"), record("b")], metrics=(EX, F1, VES)
    )
    f1, ves = rows(text, "Other metrics")[1:]
    assert f1[:4] + f1[7:] == ["Soft F1", "25.0", "–", "1", "%", "Cells in common."]
    assert ves[:4] + ves[7:] == ["R-VES", "110.00", "–", "1", "points", "Rewards fast SQL."]
    assert rows(text, "By difficulty")[0][-2:] == ["Soft F1, %", "R-VES"]
    assert rows(text, "By difficulty")[1][-2:] == ["25.0", "110.00"]


def test_costs_and_an_unknown_price(tmp_path: Path) -> None:
    text = one(tmp_path, [record("a"), record("b", usage=usage(usd=None, model_calls=4))])
    cells = {row[0]: row[1:] for row in rows(text, "Cost per question")}
    assert cells["over 2 questions"] == ["mean", "p50", "p95", "highest", "total"]
    assert cells["model calls"] == ["3.00", "3.00", "3.90", "4", "6"]
    assert cells["tokens a model call, in and out"] == ["394", "394", "512", "525", "–"], "525 and 262.5"
    assert cells["price"] == ["unknown"] * 5
    assert cells["wall clock, s"][0] == "4.00"
    assert "| unknown |" in text.split("EX: execution accuracy")[0]


def test_agents_and_models_have_their_calls_and_tokens_a_call(tmp_path: Path) -> None:
    models = {"openai:small": usage(model_calls=3, input_tokens=300, output_tokens=30)}
    ledger = usage(by_agent={"sql_writer": usage()}, by_model=models)
    text = one(tmp_path, [record("a", usage=ledger), record("b", usage=ledger)])
    cells = {row[0]: row[1:] for row in rows(text, "Cost per question")}
    assert cells["agent"][:5] == ["model calls", "tokens in", "of them cached", "tokens out", "tokens a call"]
    assert cells["sql_writer"] == ["4", "2,000", "0", "100", "525", "2", "$0.0200"]
    assert cells["openai:small"] == ["6", "600", "0", "60", "110", "2", "$0.0200"]


def test_a_known_price_is_in_dollars(tmp_path: Path) -> None:
    cells = rows(one(tmp_path, [record("a"), record("b")]), "Cost per question")
    assert cells[-1] == ["price", "$0.0100", "$0.0100", "$0.0100", "$0.0100", "$0.0200"]


def test_wrong_and_missing_answers_are_told_apart(tmp_path: Path) -> None:
    records = [record(f"w{n}", match=False, rows=0) for n in range(7)]
    text = one(tmp_path, [*records, record("x", match=False), unanswered("u", "fault")])
    assert rows(text, "Questions without an answer: 1")[1][:3] == ["fault", "1", "100.0"]
    first = rows(text, "Wrong answers: 8")[1]
    assert (first[0], first[1], first[2]) == ("no rows", "7", "87.5")
    assert first[4] == "w0, w1, w2, w3, w4 and 2 more"


def test_confidence_linking_votes_and_throughput_have_their_sections(tmp_path: Path) -> None:
    vote = {
        "winner": "c1",
        "tie": False,
        "saved": 3,
        "settled": "judge",
        "clusters": [{"candidates": ["c1"]}],
    }
    candidates = (CandidateRow("c1", "m", "SELECT 1"), CandidateRow("c2", "m", "SELECT 2"))
    text = one(
        tmp_path,
        [
            record("a", confidence=0.9, linking=linking(1.0, 0.5), vote=vote, candidates=candidates),
            record("b", confidence=0.4, match=False, session="two", memory=210_000_000, resumed=True),
            unanswered("c", "no_sql", session="two", ended=""),
        ],
    )
    assert rows(text, "Confidence")[1] == ["Brier score", "0.085", "0.250 if always 0.500"]
    assert rows(text, "Confidence")[2][:2] == ["AUROC (higher is better)", "1.000"]
    assert "in the best order" in text
    assert rows(text, "Linking of the answers' SQL")[2][:2] == ["columns", "50.0"]
    assert "in 1 question with both. 1 question without SQL is in no mean." in text
    assert ["candidates that agree with the answer, mean share, %", "50.0"] in rows(text, "Votes")
    sessions = rows(text, "Throughput")
    assert [row[0] for row in sessions[1:]] == ["one", "two", "all"]
    assert sessions[1][2:] == ["2026-01-01 12:00:06", "2026-01-01 12:00:10", "4.00", "15.0", "0 B"]
    assert sessions[2][-1] == "210 MB"
    assert "went on: 1." in text


def test_what_linked_schemas_keep_stands_apart_from_the_answers_linking(tmp_path: Path) -> None:
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
    assert rows(text, "Schema linking")[1:] == [
        ["linked: tables", "75.0", "25.0", "2", "75.0", "25.0", "2", "50.0", "2"],
        ["linked: columns", "75.0", "–", "1", "10.0", "–", "1", "0.0", "1"],
        ["all: tables", "83.3", "16.7", "3", "–", "–", "0", "66.7", "3"],
        ["all: columns", "87.5", "12.5", "2", "–", "–", "0", "50.0", "2"],
    ]
    assert "3 questions linked. 1 of them in no figure" in text
    assert rows(text, "Linking of the answers' SQL")[1][:2] == ["tables", "50.0"]
    assert "### Schema linking" not in one(tmp_path / "other", [record("a", linking=linking(1.0, 1.0))])


def test_exploration_and_repairs_have_their_section_where_there_were_any(tmp_path: Path) -> None:
    took = Effort(repairs=2, explored=False, calls=3, tokens=4500, queries=2)
    course = Course(explored=True, first_tie=True, efforts=(took,))
    text = one(tmp_path, [record("a", course=course), record("b")])
    assert rows(text, "Exploration and repairs")[1][:4] == ["questions that were explored", "1", "1", "100.0"]
    assert "| one or two repairs | 1 | 3.00 | 2.00 | 1,500 |" in text
    assert "some candidate of the first is right" not in text, "there was one round"
    assert "Exploration and repairs" not in one(tmp_path / "other", [record("a")])


def test_the_demonstration_is_said_first(tmp_path: Path) -> None:
    text = one(tmp_path, [record("a", demonstration=True), record("b")])
    assert text.splitlines()[2].startswith(
        "> **Demonstration:** the rule-based offline model took part in run."
    )
    assert "took part in 1 of 2 records (50.0 %)" in text
    assert "Demonstration" not in one(tmp_path / "other", [record("a")])


def test_nothing_that_can_be_scored(tmp_path: Path) -> None:
    easy = record("a", match=None, gold="not_live", executes=None, difficulty="easy")
    text = one(tmp_path, [easy, dataclasses.replace(easy, id="b", difficulty="hard")])
    assert "By difficulty" not in text
    assert "0 of 2 questions can be scored: no live database (2)." in text
    assert rows(text, "Execution accuracy")[1] == [
        "all questions asked for",
        "–",
        "2",
        "not measurable",
        "–",
        "–",
    ]
    assert rows(text, "SQL")[2] == [
        "executes, of SQL on live databases",
        "0",
        "0",
        "not measurable",
        "–",
        "–",
    ]
    assert "Not measurable: no answer is known to be right or wrong." in text


def test_no_record_yet(tmp_path: Path) -> None:
    text = report(summaries([write(tmp_path / "run", manifest([asked("a")]), [])]))
    assert "No question has ended yet" in text
    assert "not measurable" in text
    assert "###" not in text


def test_several_evaluations_are_compared_first(tmp_path: Path) -> None:
    alike = [write(tmp_path / name, manifest([asked("a")]), [record("a")]) for name in ("one", "two")]
    text = report(summaries(alike))
    assert text.startswith("# 2 evaluations\n")
    assert [line.split("|")[1].strip() for line in text.splitlines()[4:6]] == ["one", "two"]
    assert "differ" not in text.split("## one")[0]
    fewer = write(tmp_path / "three", manifest([asked("b")]), [])
    assert "Not all ask the same questions" in report(summaries([*alike, fewer]))
    other = write(tmp_path / "four", manifest([asked("a")], suite="others"), [])
    assert "The suites or their rules differ" in report(summaries([*alike, other]))


def test_a_long_slice_is_folded(tmp_path: Path) -> None:
    questions = [asked(f"q{number}", database=f"db{number:02}") for number in range(13)]
    text = report(summaries([write(tmp_path / "run", manifest(questions), [record("q0")])]))
    assert "<details><summary>13 databases</summary>\n\n| database |" in text


def test_options_rules_and_what_the_suite_lacks_are_named(tmp_path: Path) -> None:
    options = {"recipe": "recap", "models": ["openai:m", "openai:n"], "votes": 4}
    text = one(tmp_path, [record("a")], options=options, missing=("3 questions are left out.",))
    assert (
        "1 question of shops, recipe recap, models openai:m, openai:n, Quorum 1.0, begun 2026-01-01" in text
    )
    assert "- options: votes = 4\n- judged by: the rules of shops\n" in text
    assert "- **note**: 3 questions are left out." in text


@settings(max_examples=25)
@given(st.text(max_size=30), st.sampled_from(["", HOSTILE]))
def test_nothing_in_the_data_is_taken_for_markup(text: str, more: str) -> None:
    strange = text + more
    records = {
        "a": record("a", match=False, database=strange, run=strange, session=strange, message=strange),
        "b": unanswered("b", strange, gold=strange),
    }
    questions = [
        asked(id, database=id + strange, difficulty=id + strange, dialect=id + strange) for id in "ab"
    ]
    made = manifest(questions, suite=strange, rules=strange, missing=(strange,), version=strange)
    metric = EX | {"name": "m", "title": strange, "meaning": strange}
    made = dataclasses.replace(made, metrics=(EX, metric), options={"recipe": strange, "models": [strange]})
    said = report([summarise(made, records, [Path("/somewhere/run")], name=strange)])
    assert "<script>" not in said
    assert not re.search(r"(?<!\\)\[l", said)
    assert "\x1b" not in said
    assert "\u202e" not in said
    assert "/somewhere" not in said
    for block in said.split("\n\n"):
        if block.startswith("|"):
            widths = {len(re.findall(r"(?<!\\)\|", line.replace("\\\\", ""))) for line in block.splitlines()}
            assert len(widths) == 1, block


def test_the_same_evaluation_gives_the_same_text_without_paths(tmp_path: Path) -> None:
    folder = write(tmp_path / "run", manifest([asked("a")]), [record("a")])
    first = report(summaries([folder]))
    assert first == report(summaries([folder]))
    assert str(tmp_path) not in first


@pytest.mark.parametrize(
    ("value", "shown"),
    [(None, "–"), (0, "0 B"), (812, "812 B"), (1187.4, "1.19 kB"), (409e6, "409 MB"), (2.5e12, "2,500 GB")],
)
def test_sizes(value: float | None, shown: str) -> None:
    assert size(value) == shown


def test_figures() -> None:
    assert plus_minus(share_of([True, False])) == "50.0 ± 50.0"
    assert plus_minus(share_of([True])) == "100.0"
    assert plus_minus(share_of([])) == "not measurable"
    assert interval(share_of([])) == "–"
    assert price(spread_of([]), "mean") == "–"
    assert clock("2026-01-01T12:00:00.123+02:00") == "2026-01-01 10:00:00"
    assert clock("noon") == "noon"


def test_the_curve_is_read_off_where_that_much_is_covered(tmp_path: Path) -> None:
    answers = [(0.9, True), (0.8, True), (0.7, False), (0.6, False), (0.5, True)]
    records = [record(f"q{n}", confidence=sure, match=right) for n, (sure, right) in enumerate(answers)]
    assert calibrate(answers) is not None
    text = one(tmp_path, records)
    table = text.split("given only if the confidence is at least")[1].split("\n\n")[0].splitlines()[2:]
    assert [[cell.strip() for cell in line.strip("|").split("|")] for line in table] == [
        ["0.800", "40.0", "0.0"],
        ["0.700", "60.0", "33.3"],
        ["0.600", "80.0", "50.0"],
        ["0.500", "100.0", "40.0"],
    ]
