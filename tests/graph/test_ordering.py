"""A question that asks for an order: most writers say so, and what that does to a vote."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pyarrow as pa
import pytest

from quorum.tools.models.scripted import Prompt
from quorum.tools.results.overlap import overlap
from tests.graph.shop import FINE, GOOD, QUESTION, Ran, Run, number, script, written

ORDERED = "How many orders did each city place, most first?"
DESC, ASC = f"{GOOD} ORDER BY orders DESC", f"{GOOD} ORDER BY orders ASC"


def writer(queries: Sequence[str], ordered: Sequence[bool]) -> Any:
    """A writer whose candidates take turns, in the query and in whether an order is asked for."""

    def write(prompt: Prompt) -> Any:
        place = number(prompt) - 1
        return written(queries[place % len(queries)]) | {"ordered": ordered[place % len(ordered)]}

    return write


async def vote_on(run: Run, *queries: str, ordered: Sequence[bool] = (True,), **given: Any) -> Ran:
    said = script(sql_writer=writer(queries, ordered), validator=FINE)
    question = ORDERED if any(ordered) else QUESTION
    return await run(said, question=question, votes=len(queries), recipe="quorum", **given)


@pytest.mark.parametrize("strategy", ["mbr", "wma", "majority"])
@pytest.mark.parametrize("queries", [(ASC, DESC, DESC), (DESC, ASC, ASC)])
async def test_the_order_that_most_have_is_shown_where_one_is_asked_for(
    run: Run, strategy: str, queries: tuple[str, ...]
) -> None:
    ran = await vote_on(run, *queries, strategy=strategy)
    vote = ran.vote
    assert [sorted(cluster.candidates) for cluster in vote.clusters] == [["c2", "c3"], ["c1"]]
    assert vote.clusters[0].weight > vote.clusters[1].weight
    assert ran.answer.sql == queries[1]
    assert ran.answer.rows[0] == (["Lyon", 3] if queries[1] == DESC else ["Ghent", 1])


async def test_what_differs_is_said_to_be_the_order(run: Run) -> None:
    ran = await vote_on(run, ASC, DESC)
    assert ran.answer.disagreement[1:] == [
        "Answer A and answer B have the same rows in another order.",
        "Answer A is sorted by `COUNT(*) DESC`; answer B by `COUNT(*)`.",
    ]


@pytest.mark.parametrize("ordered", [(False,), (True, False, False)])
async def test_unless_most_writers_say_so_the_order_does_not_count(run: Run, ordered: Sequence[bool]) -> None:
    ran = await vote_on(run, ASC, DESC, DESC, ordered=ordered)
    assert [sorted(cluster.candidates) for cluster in ran.vote.clusters] == [["c1", "c2", "c3"]]
    assert ran.answer.disagreement == []


async def test_inside_a_candidate_another_order_does_not_confirm_a_result(run: Run) -> None:
    calls = []
    for ordered in (True, False):
        said = script(sql_writer=writer([ASC], [ordered]), self_checker=written(DESC))
        ran = await run(said, recipe="reforce", switches={"self_consistency": True})
        calls.append(ran.calls()["self_checker"])
    assert calls[0] > calls[1] == 1


def test_another_order_costs_support_and_only_where_it_counts() -> None:
    up = pa.table({"a": [1, 2, 3], "b": ["x", "y", "z"]})
    down = up.take([2, 1, 0])
    assert overlap(up, down).support == 1
    turned = overlap(up, down, ordered=True)
    assert turned.support == pytest.approx((2 / 3) ** 2)
    assert not turned.same
    assert turned.reversed == overlap(down, up, ordered=True)
    wider = down.append_column("c", pa.array([7.0, 8, 9]))
    assert overlap(up, wider, ordered=True).support < overlap(up, wider).support
    assert overlap(up, up, ordered=True).support == 1
