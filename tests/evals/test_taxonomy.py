"""Each question that went wrong stands in one category."""

from __future__ import annotations

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.records import ENDPOINTS, Record
from quorum.evals.reports.taxonomy import UNANSWERED, WRONG, category
from quorum.graph.answer import Status
from quorum.tools.query import ErrorKind
from tests.evals.evaluations import linking, record
from tests.evals.evaluations import unanswered as without_answer


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("no rows", {"rows": 0, "gold_rows": 2, "linking": linking(0.5, 0.5)}),
        ("tables missed", {"linking": linking(0.5, 0.5)}),
        ("columns missed", {"linking": linking(1.0, 0.5), "gold_rows": 5}),
        ("row count differs", {"linking": linking(1.0, 1.0), "gold_rows": 5}),
        ("row count differs", {"linking": linking(1.0, None), "gold_rows": 0}),
        ("values differ", {"linking": linking(1.0, 1.0), "gold_rows": 3}),
        ("values differ", {"gold_rows": 3}),  # no gold SQL to tell tables by
        ("result differs", {"linking": linking(1.0, 1.0)}),
        ("result differs", {"rows": None, "gold_rows": 3}),
    ],
)
def test_the_first_that_holds_is_the_category_of_a_wrong_answer(name: str, values: dict[str, object]) -> None:
    assert category(record("q", match=False, **values)) == name


def test_right_answers_and_those_nobody_can_judge_have_none() -> None:
    assert category(record("q", rows=0)) == ""
    assert category(record("q", match=None, gold="fails", rows=0)) == ""


def test_a_question_without_an_answer_goes_by_its_error() -> None:
    assert category(without_answer("q", "fault")) == "fault"
    assert category(record("q", status="stopped", error="max_calls", match=True)) == "max_calls"
    assert category(without_answer("q", "")) == "unknown"


def test_every_known_kind_of_error_is_explained() -> None:
    limits = ("max_calls", "max_usd", "deadline")
    judged = ("no_answer", "no_sql", "abstained", "malformed_reply", "model_unavailable", "request", "fault")
    known = {*ENDPOINTS, *limits, *judged, *(kind.value for kind in ErrorKind)}
    assert known - set(UNANSWERED) == set()


RECORDS = st.builds(
    lambda status, match, rows, gold_rows, tables, columns, error: record(
        "q",
        status=status,
        match=match,
        rows=rows,
        gold_rows=gold_rows,
        linking=None if tables is None else linking(tables, columns),
        error=error,
    ),
    st.sampled_from([*get_args(Status), "failed"]),
    st.sampled_from([True, False, None]),
    st.none() | st.integers(0, 3),
    st.none() | st.integers(0, 3),
    st.none() | st.sampled_from([0.5, 1.0]),
    st.none() | st.sampled_from([0.5, 1.0]),
    st.sampled_from(["", "fault", "syntax"]),
)


@given(RECORDS)
def test_every_question_that_is_not_right_has_a_category_of_its_kind(one: Record) -> None:
    if one.status != "answered":
        assert category(one) in UNANSWERED
    else:
        assert category(one) in (WRONG if one.match is False else {""})
