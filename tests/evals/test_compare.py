"""Two evaluations held against each other: which questions count, how sure it is, what is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.records import Asked, Linking, Record
from quorum.evals.reports.compare import Comparison, compare
from quorum.evals.reports.compare_report import markdown_of, notes, reading, result
from quorum.evals.reports.evaluations import open_evaluation
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import EX, F1, asked, linking, manifest, opened, record, unanswered, usage, write

IDS = "abcdefgh"


def right(ids: str) -> list[Record]:
    """Answers to all questions, those to ``ids`` right."""
    return [record(id, match=id in ids) for id in IDS]


def compared(folder: Path, a: Sequence[Record], b: Sequence[Record], **values: Any) -> Comparison:
    """Both ask for all of ``IDS``; ``values`` are of B's manifest."""
    questions = [asked(id) for id in IDS]
    left = write(folder / "left", manifest(questions), a)
    right = write(folder / "right", manifest(questions, **values), b)
    return compare(open_evaluation(left), open_evaluation(right))


def test_gained_and_lost_are_counted_and_shown(tmp_path: Path) -> None:
    found = compared(tmp_path, right("abc"), right("bcdef"))
    assert list(found.counts.values()) == [2, 3, 1, 2]
    assert [(flip.a.id, flip.change) for flip in found.flips] == [
        ("a", "lost"),
        ("d", "gained"),
        ("e", "gained"),
        ("f", "gained"),
    ]
    assert (found.ex.a, found.ex.b) == (3 / 8, 5 / 8)
    assert found.difference == pytest.approx(2 / 8)
    assert found.ex.low is not None
    assert found.ex.high is not None
    assert found.ex.low < 2 / 8 < found.ex.high
    assert found.p_value == 0.625
    assert "+25.0 percentage points" in result(found)
    assert (
        reading(found)
        == "The difference may be chance: of 4 questions that only one has right, B has 3 and A 1."
    )
    assert reading(compared(tmp_path / "1", right(""), right(IDS))).startswith("B is better")
    assert reading(compared(tmp_path / "2", right(IDS), right(""))).startswith("A is better")
    assert "No question" in reading(compared(tmp_path / "3", right("ab"), right("ab")))
    terminal = markdown_of(found)
    assert "## Gained: B is right, A is not (3 questions)" in terminal
    assert "| `d` | shop | What is d? |" in terminal
    assert "SELECT" not in terminal, "flips are listed without their SQL"


def test_without_an_answer_is_wrong_and_not_asked_is_left_out(tmp_path: Path) -> None:
    withheld = record("c", status="no_answer", error="abstained")  # its best effort is right
    b = [record("a"), unanswered("b", "endpoint"), withheld]  # and nothing of d to h
    found = compared(tmp_path, right(IDS), b)
    assert found.counts == {"both_right": 1, "gained": 0, "lost": 1, "both_wrong": 0}
    assert found.waiting(found.b) == 6
    assert any("B has not asked 6 questions" in note for note in notes(found))
    ex = found.metrics[0]
    assert (ex.a, ex.b) == (1.0, 1 / 2)
    assert [flip.a.id for flip in found.flips] == ["c"]


def test_questions_whose_gold_cannot_be_had_are_left_out_and_listed(tmp_path: Path) -> None:
    lacking = [record("a", match=None, gold="fails"), *right("bcd")[1:]]
    found = compared(tmp_path, lacking, right(IDS))
    assert found.unscorable == ("a",)
    assert (len(found.split), found.counts["gained"]) == (7, 4)
    assert any("whose gold cannot be had" in note and note.endswith(": a.") for note in notes(found))


def test_questions_that_only_one_asks_are_counted(tmp_path: Path) -> None:
    left, right = (opened(tmp_path / ids, [record(id) for id in ids]) for ids in ("abc", "bcdef"))
    found = compare(left, right)
    assert (len(found.shared), found.only(found.a), found.only(found.b)) == (2, 1, 3)
    assert found.difference == 0
    assert (found.ex.low, found.ex.high, found.p_value) == (0, 0, 1)


def test_nothing_to_compare_is_said_and_not_divided_by(tmp_path: Path) -> None:
    found = compared(tmp_path, right(IDS)[:4], right(IDS)[4:])
    assert (found.split, found.difference, found.ex.low, found.ex.a) == ({}, None, None, None)
    assert found.measures == ()
    assert result(found) == "No question can be compared."
    assert "No question can be compared." in markdown_of(found)


def over_schemas(id: str, *, valid: bool, links: Linking | None, sql: str = "SELECT 1") -> Record:
    """A question whose SQL nothing could execute."""
    values: dict[str, Any] = {"match": None, "gold": "not_live", "executes": None, "linking": links}
    return record(id, status="no_answer", valid=valid if sql else None, sql=sql, **values)


def test_where_ex_is_known_in_neither_validity_and_linking_are_compared(tmp_path: Path) -> None:
    half, whole = linking(0.5, 0.5), linking(1.0, None)
    a = [over_schemas(id, valid=id in "ab", links=half) for id in "abcd"]
    a += [over_schemas("e", valid=False, links=None, sql=""), over_schemas("f", valid=True, links=None)]
    b = [over_schemas(id, valid=id in "bcd", links=whole) for id in "abcde"]
    b += [over_schemas("f", valid=True, links=None), record("g")]
    found = compared(tmp_path, [*a, record("g")], b)
    assert (len(found.split), found.unscored) == (1, 6)
    by_name = {each.name: each for each in found.measures}
    valid = by_name["valid"]
    assert (valid.n, valid.a, valid.b) == (6, 0.5, pytest.approx(4 / 6))
    assert (valid.gained, valid.lost, valid.p_value) == (2, 1, 1.0)
    tables = by_name["table_recall"]  # of e, A wrote no SQL and found nothing
    assert (tables.n, tables.a, tables.b, tables.gained) == (5, 0.4, 1.0, None)
    assert tables.low is not None
    assert 0.5 <= tables.low < 0.6
    strict = by_name["table_recall_strict"]
    assert (strict.n, strict.gained, strict.lost, strict.p_value) == (5, 5, 0, 0.0625)
    assert by_name["table_precision"].n == 4
    assert "column_recall" not in by_name  # B's is not defined
    text = markdown_of(found)
    assert "## Without EX: 6 questions" in text
    assert "| valid SQL | 6 | 50.0 | 66.7 | +16.7 |" in text
    assert "| table recall | 5 | 40.0 | 100.0 | +60.0 |" in text


def test_schemas_only_are_said_to_be_compared_without_ex(tmp_path: Path) -> None:
    half = [over_schemas(id, valid=True, links=None) for id in IDS]
    found = compared(tmp_path, half, half)
    assert result(found) == "EX cannot be compared: it is known in neither."
    assert "is compared below" in reading(found)
    assert "## Without EX: 8 questions" in markdown_of(found)


def test_costs_are_means_over_what_both_answered(tmp_path: Path) -> None:
    a = [record(id, usage=usage(model_calls=2, usd=0.01)) for id in "abcd"]
    b = [record(id, usage=usage(model_calls=6, usd=None if id == "a" else 0.01)) for id in "abc"]
    b.append(unanswered("d", "endpoint"))
    found = compared(tmp_path, a, b)
    costs = {pair.name: pair for pair in found.costs}
    assert found.priced == 3
    assert (costs["model_calls"].a, costs["model_calls"].b) == (2, 6)
    assert costs["usd"].a == pytest.approx(0.01)
    assert costs["usd"].b is None
    assert (costs["tokens_per_call"].a, costs["tokens_per_call"].b) == (525, 175)
    assert "| of them cached | 0 | 0 | – |" in markdown_of(found), "no ratio to nothing"
    assert "| wall clock, s | 4.00 | 4.00 | ×1.00 |" in markdown_of(found)
    assert "| result size | 64 B | 64 B | ×1.00 |" in markdown_of(found)
    assert "| price | $0.0100 | price unknown | – |" in markdown_of(found)


def test_other_metrics_are_held_side_by_side(tmp_path: Path) -> None:
    def scored(values: Sequence[float | None]) -> list[Record]:
        pairs = zip("ab", values, strict=True)
        return [record(id, match=False, metrics={"ex": 0.0, "soft_f1": value}) for id, value in pairs]

    left = opened(tmp_path / "l", scored([0.5, 0.7]), metrics=(EX, F1))
    f1 = compare(left, opened(tmp_path / "r", scored([0.75, None]), metrics=(EX, F1))).metrics[1]
    assert (f1.title, f1.a, f1.b) == ("Soft F1", 0.5, 0.75)  # b's is not defined on one side


def test_options_that_differ_are_named(tmp_path: Path) -> None:
    options = RunOptions(models=["openai:n"], votes=5, recipe="single").as_dict()
    found = compared(tmp_path, right("a"), right("a"), options=options, version="2.0")
    assert {each["option"] for each in found.differing} == {"version", "models", "votes", "recipe"}
    text = markdown_of(found)
    assert '| `models` | ["openai:m"] | ["openai:n"] |'.replace("[", r"\[").replace("]", r"\]") in text
    assert "| `votes` | – | 5 |" in text


@pytest.mark.parametrize(
    ("questions", "values", "message"),
    [
        ([asked("a")], {"suite": "other"}, "different suites: 'shops' and 'other'"),
        ([asked("a")], {"rules": "mine"}, "different rules: 'the rules of shops' and 'mine'"),
        ([asked("a", database="bank")], {}, "Question a is not the same"),
        ([asked("a", parts=("text 1",))], {}, "Question a is not the same"),
        ([asked("b")], {}, "no question in common"),
    ],
)
def test_what_cannot_be_compared_is_refused(
    tmp_path: Path, questions: list[Asked], values: dict[str, Any], message: str
) -> None:
    one = opened(tmp_path / "one", [record("a")])
    with pytest.raises(ConfigurationError, match=message):
        compare(one, opened(tmp_path / "other", [record("a")], questions, **values))


def test_missing_shards_and_demonstrations_are_said(tmp_path: Path) -> None:
    shard = opened(tmp_path / "shard", [record("a")], shard="1/3")
    assert "A is not whole: shard 2, 3 of 3 is missing." in list(notes(compare(shard, shard)))
    shown = [record("a", demonstration=True)]
    assert next(notes(compared(tmp_path / "1", shown, right("a")))).startswith("A holds answers of the rule")
    assert next(notes(compared(tmp_path / "2", shown, shown))).startswith("A and B hold answers")


def test_a_folder_of_several_evaluations_is_refused(tmp_path: Path) -> None:
    for name in ("one", "two"):
        write(tmp_path / "many" / name, manifest([asked("a")]), [record("a")])
    with pytest.raises(ConfigurationError, match="holds 2 evaluations"):
        open_evaluation(tmp_path / "many")


def test_markdown_links_and_shows_both_queries_and_nothing_in_them_is_markup(tmp_path: Path) -> None:
    hostile = "<img src=x> | [a](b) `c` *d*\n# e"
    b = [record("a", match=False, sql="SELECT '```'", reason=hostile, question=hostile, database="s|h")]
    found = compared(tmp_path, [record("a", question=hostile)], b)
    text = markdown_of(found, lambda run: "/".join(["..", *run.parts[-3:], "trace.html"]))
    assert "**A, right** ([trace](../left/runs/a/trace.html))" in text
    assert r"\<img src=x\> \| \[a\](b) \`c\` \*d\* \# e" in text
    assert "````sql\nSELECT '```'\n````" in text
    assert "```sql\nSELECT 1\n```" in text
    assert str(tmp_path) not in text


@pytest.mark.parametrize("run", ["/etc", "../../elsewhere", ""])
def test_a_run_outside_the_evaluation_is_none(tmp_path: Path, run: str) -> None:
    found = compared(tmp_path, [record("a", run=run)], right(""))
    (flip,) = found.as_dict()["flips"]
    assert (flip["a"]["run"], flip["b"]["run"]) == ("", "runs/a")


def test_names_are_as_short_as_tells_them_apart(tmp_path: Path) -> None:
    found = compare(*(opened(tmp_path / part / "run", [record("a")]) for part in ("monday", "friday")))
    assert (found.a.name, found.b.name) == ("monday/run", "friday/run")
