"""Two evaluations held against each other: which questions count, how sure it is, what is said."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.records import Linking, Record
from quorum.evals.reports.compare import Comparison, compare, markdown_of, notes, result
from quorum.evals.reports.evaluations import open_evaluation
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError
from tests.evals.evaluations import asked, linking, opened, record, unanswered, usage

IDS = "abcdefgh"


def right(ids: str) -> list[Record]:
    """Answers to all questions, those to ``ids`` right."""
    return [record(id, match=id in ids) for id in IDS]


def compared(folder: Path, a: Sequence[Record], b: Sequence[Record], **values: Any) -> Comparison:
    """Both ask for all of ``IDS``; ``values`` are of B's manifest."""
    questions = [asked(id) for id in IDS]
    return compare(opened(folder / "a", a, questions), opened(folder / "b", b, questions, **values))


def test_gained_and_lost_are_counted_and_shown(tmp_path: Path) -> None:
    found = compared(tmp_path, right("abc"), right("bcdef"))
    assert found.changes == {"a": "lost"} | dict.fromkeys("def", "gained")
    ex = found.figures["ex"]
    assert (ex.n, ex.a, ex.b, ex.gained, ex.lost, ex.p_value) == (8, 3 / 8, 5 / 8, 3, 1, 0.625)
    assert (ex.low, ex.high) == (-0.25, 0.625)
    assert result(found) == (
        "EX of B minus A: +25.0 percentage points (95 % interval -25.0 to +62.5, over 8 questions; "
        "McNemar's p 0.62). The difference may be chance: of 4 questions that only one has right, B has 3 "
        "and A 1."
    )
    for said, a, b in (("B is better", "", IDS), ("A is better", IDS, ""), ("No question", "ab", "ab")):
        assert said in result(compared(tmp_path / said, right(a), right(b)))
    terminal = markdown_of(found)
    assert "| EX | 8 | 37.5 % | 62.5 % | +25.0 | -25.0 to +62.5 | 1 | 3 | 0.62 |" in terminal
    assert "## Gained: B is right, A is not (3 questions)" in terminal
    assert "| `d` | shop | What is d? |" in terminal
    assert [flip["a"]["sql"] for flip in found.as_dict()["flips"]] == ["SELECT 1"] * 4


def test_which_questions_count(tmp_path: Path) -> None:
    """No answer is wrong, not asked is left out, and so is who has no gold; each with a note."""
    withheld = record("c", status="no_answer", error="abstained")  # its best effort is right
    lacking = record("d", match=None, gold="fails")
    b = [record("a"), unanswered("b", "endpoint"), withheld, lacking]  # and nothing of e to h
    found = compared(tmp_path, right(IDS), b)
    assert (found.compared, found.unscorable, found.waiting(found.b)) == (2, ("d",), 5)
    assert found.changes == {"c": "lost"}
    assert list(notes(found)) == [
        "B has not asked 5 questions that both ask for yet (not reached, or no endpoint): they are not "
        "compared.",
        "Left out of EX for want of gold: 1 question: d.",
    ]
    left, other = (opened(tmp_path / ids, [record(id) for id in ids]) for ids in ("abc", "bcdef"))
    found = compare(left, other)
    assert (len(found.shared), found.only(found.a), found.only(found.b)) == (2, 1, 3)
    ex = found.figures["ex"]
    assert (ex.low, ex.high, ex.p_value) == (0, 0, 1)
    nothing = compared(tmp_path / "apart", right(IDS)[:4], right(IDS)[4:])
    assert (nothing.compared, nothing.figures) == (0, {})


def over_schemas(id: str, *, valid: bool, links: Linking | None, sql: str = "SELECT 1") -> Record:
    """A question whose SQL nothing could execute."""
    values: dict[str, Any] = {"match": None, "gold": "not_live", "executes": None, "linking": links}
    return record(id, status="no_answer", valid=valid if sql else None, sql=sql, **values)


def test_over_schemas_validity_and_linking_are_compared(tmp_path: Path) -> None:
    half, whole = linking(0.5, 0.5), linking(1.0, None)
    a = [over_schemas(id, valid=id in "ab", links=half) for id in "abcd"]
    a += [over_schemas("e", valid=False, links=None, sql=""), over_schemas("f", valid=True, links=None)]
    b = [over_schemas(id, valid=id in "bcd", links=whole) for id in "abcde"]
    b += [over_schemas("f", valid=True, links=None)]
    found = compared(tmp_path, a, b)
    assert result(found) == "EX cannot be compared: no question has it in both."
    valid, tables = found.figures["valid"], found.figures["table_recall"]
    assert (valid.n, valid.a, valid.b) == (6, 0.5, pytest.approx(4 / 6))
    assert (valid.gained, valid.lost, valid.p_value) == (2, 1, 1.0)
    assert (tables.n, tables.a, tables.b, tables.gained) == (5, 0.4, 1.0, None), "of e, A found nothing"
    assert 0.5 <= tables.low < 0.6
    assert found.figures["table_precision"].n == 4
    assert "column_recall" not in found.figures, "B's is not defined"


def test_costs_are_means_over_what_both_answered(tmp_path: Path) -> None:
    a = [record(id, usage=usage(model_calls=2, usd=0.01, queries=0)) for id in "abcd"]
    b = [record(id, usage=usage(model_calls=6, usd=0.03)) for id in "abc"]
    b.append(unanswered("d", "endpoint"))
    found = compared(tmp_path, a, b)
    calls = found.figures["model_calls"]
    assert (calls.n, calls.a, calls.b, calls.low) == (3, 2, 6, None)
    text = markdown_of(found)
    assert "| model calls | 3 | 2.00 | 6.00 | ×3.00 | – | – | – | – |" in text
    assert "| database calls | 3 | 0 | 1.00 | – |" in text, "no ratio to nothing"
    assert "| price | 3 | $0.0100 | $0.0300 | ×3.00 |" in text


def test_options_that_differ_are_named(tmp_path: Path) -> None:
    options = RunOptions(models=["openai:n"], votes=5, recipe="single").as_dict()
    found = compared(tmp_path, right("a"), right("a"), options=options, version="2.0")
    assert {each["option"] for each in found.differing} == {"version", "models", "votes", "recipe"}
    text = markdown_of(found)
    assert '| `models` | ["openai:m"] | ["openai:n"] |'.replace("[", r"\[").replace("]", r"\]") in text
    assert "| `votes` | – | 5 |" in text


def test_what_cannot_be_compared_is_refused(tmp_path: Path) -> None:
    one = opened(tmp_path / "one", [record("a")])
    for message, question, values in (
        ("different suites: 'shops' and 'other'", asked("a"), {"suite": "other"}),
        ("different rules: 'the rules of shops' and 'mine'", asked("a"), {"rules": "mine"}),
        ("Question a is not the same", asked("a", database="bank"), {}),
        ("Question a is not the same.?", asked("a", parts=("text 1",)), {}),
        ("no question in common", asked("b"), {}),
    ):
        other = opened(tmp_path / message, [record("a")], [question], **values)
        with pytest.raises(ConfigurationError, match=message):
            compare(one, other)
    with pytest.raises(ConfigurationError, match="holds 6 evaluations"):
        open_evaluation(tmp_path)


@pytest.mark.parametrize("run", ["/etc", "../../elsewhere", ""])
def test_a_run_outside_the_evaluation_is_none(tmp_path: Path, run: str) -> None:
    found = compared(tmp_path, [record("a", run=run)], right(""))
    (flip,) = found.as_dict()["flips"]
    assert (flip["a"]["run"], flip["b"]["run"]) == ("", "runs/a")
