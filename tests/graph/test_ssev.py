"""The recipe ``ssev`` end to end over a real database: its six stages, its switches, and its failures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.graph.shop import GOOD, Run, repaired, written

BAD = "SELECT town FROM customers"
NAMES = "SELECT name FROM customers"
TOTAL = "SELECT SUM(total) FROM orders"


def script(first: str, then: str = "", mended: str = GOOD) -> dict[str, Any]:
    """A model that writes ``first`` as PreSQL and ``then`` as PostSQL, and repairs both alike."""
    return {
        "sql_writer": written(first),
        **{f"sql_writer/c{n}": written(then or first) for n in range(1, 6)},
        "self_refiner": repaired(mended),
    }


def schema_in(prompt: str) -> str:
    return prompt.split("<schema ")[1].split("</schema>")[0]


def rows_in(prompt: str) -> str:
    return prompt.partition("<sample_rows>")[2].partition("</sample_rows>")[0].strip()


def shown(prompt: str) -> set[str]:
    """The shop's columns that a prompt's schema shows."""
    words = schema_in(prompt).replace("(", " ").replace(",", " ").split()
    return {"customer_id", "total", "note", "city", "name"} & set(words)


async def test_each_stage_runs_its_parts_and_no_others(run: Run, subtests: pytest.Subtests) -> None:
    for stage, writes, repairs, links, votes, winner in (
        ("base", ["c1"], 0, 0, 1, None),
        ("sl", ["p1", "c1"], 0, 1, 1, None),
        ("sr", ["c1"], 1, 0, 1, "c1"),
        ("sr_sl", ["p1", "c1"], 1, 1, 1, "p1"),
        ("sr_vote", ["c1"], 1, 1, 1, "c1"),
        ("full", ["p1", "c1"], 2, 1, 2, "c1"),
    ):
        with subtests.test(stage=stage):
            ran = await run(script(BAD), recipe="ssev", switches={"stage": stage})
            assert [event["candidate"] for event in ran.of("writing")] == writes
            assert ran.calls()["self_refiner"] == repairs
            assert len(ran.of("linking")) == links
            assert len(ran.of("vote")) == votes
            assert ran.of("vote")[-1]["winner"] == winner
            assert (ran.answer.status == "answered") is bool(winner)
            assert ran.calls().total() == len(writes) + repairs


async def test_presql_sees_the_whole_schema_and_postsql_what_presql_used(run: Run) -> None:
    ran = await run(script(NAMES, GOOD), recipe="ssev")
    first, second = ran.prompt("sql_writer", 0), ran.prompt("sql_writer", 1)
    assert shown(first) == {"customer_id", "total", "note", "city", "name"}
    assert shown(second) == {"name"}
    assert "orders" not in schema_in(second)
    assert rows_in(first).splitlines() == [
        "customers(id [1, 2, 3], name [Ada, Bo, Cy], city [Ghent, Lyon, Lyon]);",
        "orders(id [1, 2, 3], customer_id [1, 2, 3], total [10.0, 20.0, 5.0], note [NULL, NULL, NULL]);",
    ]
    assert rows_in(second) == "customers(id [1, 2, 3], name [Ada, Bo, Cy]);"
    assert ran.of("linking")[0]["columns"] == [["customers", "name"]]
    assert ran.answer.sql == GOOD, "what the schema no longer shows may still be used"
    fails = await run(script(NAMES, "SELECT nam FROM customers", NAMES), recipe="ssev")
    assert shown(fails.prompt("self_refiner")) == {"name"}


async def test_the_schema_is_linked_by_all_experts_or_by_the_votes_winner(run: Run) -> None:
    models, both = {"a": script(NAMES), "b": script(NAMES), "c": script(TOTAL)}, {"name", "total"}
    for stage, linked in {"sl": both, "sr_sl": both, "full": {"name"}, "sr_vote": None}.items():
        ran = await run(models, recipe="ssev", models=list(models), votes=3, switches={"stage": stage})
        columns = {column for _, column in ran.of("linking")[0]["columns"]}
        assert columns == (linked or {"name"})
        if linked is None:
            assert not [event for event in ran.of("writing") if event["candidate"].startswith("p")]
        else:
            shows = shown(ran.prompt("sql_writer", 3))
            assert shows - {"customer_id"} == linked, "the key that joins them stays"


async def test_sql_that_failed_links_too_and_what_cannot_be_read_is_said(run: Run) -> None:
    models = {"a": script("SELECT city, town FROM customers"), "b": script("SELECT FROM ((")}
    ran = await run(models, recipe="ssev", models=list(models), votes=2, switches={"stage": "sl"})
    linking = ran.of("linking")[0]
    assert (linking["columns"], linking["unknown"]) == ([["customers", "city"]], ["town"])
    assert len(linking["unread"]) == 1
    none = await run(script("SELECT 1", GOOD), recipe="ssev", switches={"stage": "sl"})
    assert shown(none.prompt("sql_writer", 1)) == {"customer_id", "total", "note", "city", "name"}
    assert any("whole schema" in warning for warning in none.answer.warnings)
    assert none.answer.status == "answered"


async def test_a_repair_that_repeats_itself_does_not_end_a_candidate(run: Run) -> None:
    """Refined until it succeeds or the limit is reached (3.1.3)."""

    def repair(prompt: Any) -> Any:
        return repaired(GOOD if prompt.turn == 2 else BAD)

    said = script(BAD) | {"self_refiner": repair}
    ran = await run(said, recipe="ssev", switches={"stage": "sr", "max_refinements": 3})
    assert (ran.calls()["self_refiner"], ran.answer.sql) == (3, GOOD)


async def test_max_rows_and_max_tables_limit_what_is_sampled(run: Run) -> None:
    none = await run(script(GOOD), recipe="ssev", switches={"max_rows": 0})
    assert rows_in(none.prompt("sql_writer")) == ""
    assert none.answer.usage["queries"] == 1
    fewer = await run(script(GOOD), recipe="ssev", switches={"max_rows": 1, "max_tables": 1})
    assert rows_in(fewer.prompt("sql_writer")) == "customers(id [1], name [Ada], city [Ghent]);"
    assert any("1 tables" in warning for warning in fewer.answer.warnings)


@pytest.fixture
def shots(tmp_path: Path) -> str:
    """Twelve answered questions; the last two are like the one that is asked."""
    asked = [f"What is fact {n}?" for n in range(10)]
    asked += ["How many orders are there?", "How many orders did each shop place?"]
    lines = [json.dumps({"question": q, "sql": f"SELECT {n}"}) for n, q in enumerate(asked)]
    (tmp_path / "shots.jsonl").write_text("\n".join(lines), encoding="utf-8")
    return str(tmp_path / "shots.jsonl")


@pytest.mark.heavy
async def test_max_shots_demonstrations_are_shown_the_nearest_last(run: Run, shots: str) -> None:
    for switches, expected in (({}, 9), ({"max_shots": 2}, 2), ({"max_shots": 0}, 0)):
        ran = await run(script(GOOD), recipe="ssev", demonstrations=shots, switches=switches)
        for turn in (0, 1):
            said = ran.prompt("sql_writer", turn).split("<example_sql>\n")[1:]
            assert len(said) == expected
            assert [part.split("\n")[0] for part in said[-2:]] == ["SELECT 10", "SELECT 11"][: expected and 2]


@pytest.mark.parametrize("votes_too", [False, True])
async def test_presql_votes_only_if_told_to(run: Run, votes_too: bool) -> None:
    other = written(TOTAL + " WHERE id > 1")
    pre = script(NAMES) | {"sql_writer/c1": written(TOTAL), "sql_writer/c2": other}
    ran = await run(pre, recipe="ssev", votes=2, switches={"presql_votes": votes_too, "stage": "sl"})
    voting = {c.id for c in ran.answer.candidates if not c.superseded}
    assert voting == {"c1", "c2"} | ({"p1", "p2"} if votes_too else set())
    assert ran.vote.tie is not votes_too
    assert not votes_too or ran.vote.winner in ("p1", "p2")


@pytest.mark.parametrize("strategy", ["sql_majority", "wma", "rwma"])
async def test_both_votes_are_held_by_the_runs_strategy(run: Run, strategy: str) -> None:
    models = {"a": script(NAMES), "b": script(NAMES), "c": script(TOTAL)}
    ran = await run(models, recipe="ssev", models=list(models), votes=None, strategy=strategy)
    assert [event["strategy"] for event in ran.of("vote")] == [strategy, strategy]
    assert sum(not each.superseded for each in ran.answer.candidates) == 3, "each model votes once"


async def test_presql_answers_where_no_postsql_has_a_result(run: Run) -> None:
    ran = await run(script(GOOD, BAD), recipe="ssev", votes=2, switches={"stage": "sl"})
    assert ran.answer.sql == GOOD
    assert {c.id for c in ran.answer.candidates} == {"p1", "p2", "c1", "c2"}
    assert any("vote was on PreSQL" in warning for warning in ran.answer.warnings)
    for stage in ("sl", "sr_sl", "full"):
        ran = await run(script(GOOD), recipe="ssev", max_calls=1, switches={"stage": stage})
        assert (ran.answer.stopped_by, ran.answer.sql, ran.answer.row_count) == ("max_calls", GOOD, 2), stage


async def test_an_early_end_is_for_the_last_vote_only(run: Run) -> None:
    ran = await run(script(GOOD), recipe="ssev", votes=5, stopping="decided")
    written = [event["candidate"] for event in ran.of("writing")]
    assert sorted(written) == ["c1", "c2", "c3", "p1", "p2", "p3", "p4", "p5"]
    assert ran.vote.saved == 2
