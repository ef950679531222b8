"""The recipe ``reforce``: eight candidates, a vote, exploration of what ties, and every switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.agents.explorers import hints
from quorum.evals.records import Course
from quorum.evals.running.run_events import RunEvents
from quorum.graph.ballots import Cluster
from quorum.graph.confidence import BLANK
from quorum.graph.nodes import prepare
from quorum.graph.nodes.tie_breaking import drawn
from quorum.graph.recipes import find_recipe
from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.knowledge.schema.render import render
from quorum.knowledge.syntax import NEEDS, card
from quorum.tools.models.scripted import Prompt
from tests.graph.shop import (
    BROKEN,
    CITIES,
    GOOD,
    LACKING,
    NAMES,
    NOTHING,
    OTHER,
    THIRD,
    TOWNS,
    Run,
    changed,
    corrected,
    explored,
    number,
    of_recipe,
    repaired,
    script,
    taking_turns,
    unknown,
    written,
)

NAMED = {"purpose": "Who is there?", "sql": "SELECT DISTINCT name FROM customers LIMIT 20"}
NOWHERE = {"purpose": "Is there a Nowhere?", "sql": NOTHING}


@pytest.fixture
def run(run: Run) -> Run:
    """``await run(script(…), votes=…, switch=…)`` over the shop with the recipe ``reforce``."""
    return of_recipe(run, "reforce")


def in_vain(prompt: Prompt) -> Any:
    """A SelfRefiner whose every query is new and returns no row."""
    return repaired(f"{NOTHING} OR id = -{prompt.turn + 1}")


TIE = script(sql_writer=taking_turns(GOOD, OTHER))
"""Candidates that tie, before exploration and after it."""

RESOLVED = script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD))
"""Candidates that tie until exploration has found something."""


# Candidates.


async def test_a_blank_answer_of_one_mind_is_resolved(run: Run) -> None:
    """One answer has the most votes, and the paper makes nothing of its values (000, equation 5)."""
    for blank in ("SELECT COUNT(*) AS n FROM orders WHERE total > 1000", "SELECT '' AS city"):
        ran = await run(script(sql_writer=written(blank)), votes=None)
        assert (ran.calls(), ran.answer.sql) == ({"sql_writer": 8}, blank)


@pytest.mark.parametrize("blank", [BROKEN, NOTHING, "SELECT NULL AS city"])
async def test_no_answer_at_all_is_explored_too(run: Run, blank: str) -> None:
    """An error or a result without values is repaired to the limit, and then explored (000, Listing 2)."""
    said = script(sql_writer=taking_turns(blank, found=GOOD), self_refiner=repaired(blank))
    ran = await run(said, votes=2)
    assert (ran.calls()["column_explorer"], ran.answer.sql) == (2, GOOD)


@pytest.mark.parametrize("again", [BROKEN, NOTHING])
async def test_a_repair_that_repeats_itself_does_not_end_a_candidate(run: Run, again: str) -> None:
    """Five iterations whatever they bring (000, Table 6); an empty result cannot be confirmed."""
    ran = await run(script(sql_writer=written(again), self_refiner=repaired(again)), exploration="never")
    assert ran.calls() == {"sql_writer": 1, "self_refiner": 4}
    assert ran.answer.usage["queries"] <= 1, "the same SQL runs once"
    prompt = ran.prompt("self_refiner").rpartition("<task>")[2]
    assert not {text for text in ("is the answer", "give null") if text in prompt}

    def late(prompt: Prompt) -> Any:
        return repaired(GOOD if prompt.turn == 3 else again)

    assert (await run(script(sql_writer=written(again), self_refiner=late), votes=1)).answer.sql == GOOD


# Dialects and prompts.

MATCHING = {"snowflake": "ILIKE '%meat%lovers%'", "bigquery": "LIKE '%meat%lovers%'", "sqlite": "LIKE '%meat"}
NESTED = {
    "snowflake": ("LATERAL FLATTEN(input =>", "::STRING"),
    "bigquery": ("UNNEST(JSON_QUERY_ARRAY(", "JSON_VALUE("),
    "sqlite": ("json_each(", "->>"),
}


@pytest.mark.parametrize("dialect", list(MATCHING))
def test_what_listing_1_says_of_a_dialect_is_said(dialect: str) -> None:
    """Quoting in the card, which every prompt has; matching and nested columns beside it."""
    beside = hints(dialect, nested=True, plain=prepare.MATCHING)
    assert {"bigquery": "Backticks quote names"}.get(dialect, "double quotes") in card(dialect)
    assert MATCHING[dialect] in beside
    plain = hints(dialect, nested=False, plain=prepare.MATCHING)
    assert all(text in beside and text not in plain for text in NESTED[dialect])


def test_a_column_is_nested_by_its_type_or_by_its_rows(subtests: pytest.Subtests) -> None:
    """Also where no path inside it is known."""
    for column, nested in (
        (Column("doc", "VARIANT"), True),
        (Column("doc", "jsonb"), True),
        (Column("tags", "text[]"), True),
        (Column("parts", "ARRAY<STRUCT<sku STRING>>"), True),
        (Column("doc", "TEXT", samples=('{"tags": ["cut …',)), True),
        (Column("doc", "TEXT", fields=(Field("a", "string"),)), True),
        (Column("note", "TEXT", samples=("see [1]", "")), False),
        (Column("bitmap", "VARCHAR(9)"), False),
    ):
        with subtests.test(column=column):
            text = render(Catalog("c", "sqlite", (Table("t", (column,)),))).text
            assert bool(NEEDS["nested"].search(text)) is nested


async def test_who_writes_is_told_how_values_are_matched_and_nested_columns_read(
    run: Run, shop: Path
) -> None:
    """Paper 000, Listing 1; nobody is told the same twice."""
    changed(shop, "CREATE TABLE events (id INTEGER, doc JSON)")
    said = script(sql_writer=taking_turns(BROKEN, OTHER, found=GOOD))
    ran, papers = await run(said, votes=2), await run(said, votes=2, prompts="paper")
    for role in ("sql_writer", "self_refiner", "column_explorer"):
        for text in (MATCHING["sqlite"], "substr(s, start, length)", "## JSON"):
            assert ran.prompt(role).count(text) == 1, role
        assert "## Identifiers and quoting" in papers.prompt(role), "no card says how names are quoted"


FIGURE_4 = (
    *("at most 10 small queries", "Begin with single columns", "finds out something else"),
    *("`SELECT DISTINCT`", "`LIMIT 20`", "What it is to find out, in one sentence"),
    *("Do not query system tables or types", "Do not answer the question yet"),
    "take nothing about the data for known that the schema or a query has not",
    *("begin with its whole values", "Look for text by a part of it, in any case", MATCHING["sqlite"]),
    "do not convert dates whose format you have not seen",
    "Use only tables and columns that this schema shows",
)
"""What the paper's prompt asks for (000, Figure 4 and Listing 1), in our words."""


async def test_the_explorer_is_asked_for_all_that_figure_4_asks(run: Run) -> None:
    """And it starts from question and schema alone."""
    ran = await run(RESOLVED, votes=2)
    prompt = ran.prompt("column_explorer")
    assert not [text for text in FIGURE_4 if text not in prompt]
    assert not [text for text in (GOOD, OTHER, "<differences>", "`WITH`") if text in prompt]
    assert "<differences>" not in ran.prompt("sql_writer", -1)
    assert "`LIMIT 7`" in (await run(RESOLVED, votes=2, row_limit=7)).prompt("column_explorer")


# Exploration and the second round.


async def test_switch_exploration(run: Run) -> None:
    never = await run(RESOLVED, votes=2, exploration="never")
    assert (never.calls(), never.vote.tie) == ({"sql_writer": 2}, True)
    assert (await run(RESOLVED, votes=2, max_queries=0)).calls() == {"sql_writer": 2}
    always = await run(RESOLVED, votes=2, exploration="always")
    assert always.calls() == {"column_explorer": 2, "sql_writer": 2}, "each candidate explores first"
    assert (always.of("model_call")[0]["agent"], always.answer.sql) == ("column_explorer", GOOD)
    tied = await run(TIE, votes=2, exploration="always")
    assert tied.calls() == {"column_explorer": 2, "sql_writer": 2}, "what still ties is drawn"
    assert len(tied.of("draw")) == 1


@pytest.mark.parametrize(
    "again", [NOTHING, "SELECT city FROM customers WHERE city LIKE '%nowhere%'", None], ids=str
)
async def test_an_empty_exploration_is_corrected_to_the_limit_and_never_kept(
    run: Run, again: str | None
) -> None:
    """The same for corrections that repeat themselves and for others (000, Algorithm 1)."""
    said = RESOLVED | {
        "column_explorer": explored(NOWHERE, CITIES),
        "exploration_corrector": lambda prompt: corrected(again or f"{NOTHING} OR id = -{prompt.turn + 1}"),
    }
    ran = await run(said, votes=2)
    assert ran.calls()["exploration_corrector"] == 6, "three times by each candidate"
    assert len(ran.of("exploration_given_up")) == 2
    assert {event["sql"] for event in ran.of("finding")} == {CITIES["sql"]}
    assert "(0 rows)" not in ran.prompt("sql_writer", 2)
    prompt = ran.prompt("exploration_corrector", 2)
    assert "returned no row" in prompt
    assert "null" not in prompt.rpartition("<task>")[2], "the lack of rows is no finding"
    said["exploration_corrector"] = lambda prompt: corrected(CITIES["sql"] if prompt.turn == 2 else NOTHING)
    found = (await run(said | {"column_explorer": explored(NOWHERE)}, votes=2)).of("finding")
    assert [(event["sql"], event["corrected"]) for event in found] == [(CITIES["sql"], True)] * 2


async def test_each_candidate_explores_for_itself(run: Run) -> None:
    """With its own sampling, and its own findings before it."""
    ran = await run(
        RESOLVED | {"column_explorer": lambda prompt: explored(CITIES if number(prompt) == 3 else NAMED)},
        votes=2,
    )
    assert ran.calls() == {"sql_writer": 4, "column_explorer": 2}
    asked = [event for event in ran.of("model_call") if event["agent"] == "column_explorer"]
    assert {event["candidate"] for event in asked} == {"c3", "c4"}
    assert len({event["seed"] for event in asked}) == 2
    assert {event["temperature"] for event in asked} == {1.0}
    for candidate, own, others in (("c3", CITIES, NAMED), ("c4", NAMED, CITIES)):
        prompt = ran.prompt("sql_writer", candidate=candidate)
        assert (own["sql"] in prompt, others["sql"] in prompt) == (True, False)
    assert ran.answer.usage["by_agent"]["column_explorer"]["queries"] == 2
    alike = await run(RESOLVED, votes=2)
    assert sorted(event["candidate"] for event in alike.of("finding")) == ["c3", "c4"]
    assert alike.answer.usage["by_agent"]["column_explorer"]["queries"] == 1, "the same query runs once"


async def test_an_evaluation_knows_who_explored_and_whether_the_first_vote_was_a_tie(run: Run) -> None:
    """Paper 000, Table 6."""
    for said, happened in ((RESOLVED, True), (script(sql_writer=taking_turns(GOOD, BROKEN)), False)):
        heard = RunEvents()
        for event in (await run(said, votes=2)).events:
            heard.learn(event)
        assert heard.course == Course(explored=happened, first_tie=happened)


@pytest.mark.parametrize("role", ["self_refiner", "self_checker"])
async def test_who_writes_after_the_first_query_sees_the_findings_too(run: Run, role: str) -> None:
    """The findings are in the model's session while it refines (003, 3.2.4)."""
    wrong = {"self_refiner": BROKEN, "self_checker": OTHER}[role]
    said = script(sql_writer=written(wrong), self_checker={"reasoning": "", "sql": OTHER})
    ran = await run(said, votes=1, exploration="always", self_consistency=role == "self_checker")
    assert CITIES["sql"] in ran.prompt(role)
    assert "<exploration_result>" in ran.prompt(role)


async def test_the_second_round_votes_alone(run: Run) -> None:
    """A, A, B, B; then C, C, A, D: with both rounds A would win."""
    fourth = "SELECT COUNT(*) AS customers FROM customers"
    said = script(sql_writer=taking_turns(GOOD, GOOD, OTHER, OTHER, THIRD, THIRD, GOOD, fourth))
    ran = await run(said, votes=4)
    assert ran.answer.sql == THIRD
    assert [cluster.weight for cluster in ran.vote.clusters] == [2, 1, 1]
    superseded = {each.id: each.superseded for each in ran.answer.candidates}
    assert superseded == {f"c{n}": n < 5 for n in range(1, 9)}
    voters = {name for cluster in ran.of("vote")[1]["clusters"] for name in cluster["candidates"]}
    assert voters == {"c5", "c6", "c7", "c8"}


@pytest.mark.parametrize("second", [BROKEN, NOTHING, "SELECT NULL AS city"])
async def test_a_second_round_without_results_leaves_the_first_to_a_draw(run: Run, second: str) -> None:
    said = script(sql_writer=taking_turns(GOOD, OTHER, second, second), self_refiner=repaired(BROKEN))
    ran = await run(said, votes=2)
    assert len(ran.of("draw")) == 1
    assert ran.answer.sql in (GOOD, OTHER)
    assert any("the first round voted again." in warning for warning in ran.answer.warnings)
    blank = set() if second == BROKEN else {"c3", "c4"}
    assert {each.id for each in ran.answer.candidates if each.superseded} == blank


async def test_that_the_data_has_no_answer_is_a_result_of_the_second_round(run: Run) -> None:
    said = TIE | {f"sql_writer/c{n}": LACKING for n in (3, 4)}
    assert (await run(said, votes=2)).answer.status == "unanswerable"


# How a vote that stays open ends.


async def test_switch_random_selection(run: Run) -> None:
    drawn, again, other = [await run(TIE, votes=2, seed=seed) for seed in (7, 7, 8)]
    assert (drawn.vote.seed, drawn.vote.winner) == (again.vote.seed, again.vote.winner)
    assert None is not other.vote.seed != drawn.vote.seed
    assert (drawn.answer.status, drawn.vote.tie) == ("answered", True)
    assert drawn.answer.confidence <= 0.4
    left = await run(TIE, votes=2, random_selection=False)
    assert (left.answer.status, left.answer.rows) == ("no_answer", [])
    assert any("no answer was chosen" in said for said in left.answer.warnings)


async def test_switch_majority_vote(run: Run) -> None:
    """Without it every candidate has the same chance, so the minority wins with some seed."""
    for said, found in (
        (script(sql_writer=taking_turns(GOOD, GOOD, OTHER)), {GOOD, OTHER}),
        (script(sql_writer=LACKING) | {"sql_writer/c1": written(GOOD)}, {GOOD, ""}),
    ):
        assert not (await run(said, votes=3)).of("draw")
        drawn = set[str]()
        for seed in range(12):
            ran = await run(said, votes=3, seed=seed, majority_vote=False)
            assert [event["among"] for event in ran.of("draw")] == ["all"]
            drawn.add(ran.answer.sql)
        assert drawn == found


async def test_switch_model_vote(run: Run) -> None:
    ran = await run(TIE, votes=2, model_vote=True, exploration="never")
    assert ran.calls() == {"sql_writer": 2, "judge": 1}
    assert (ran.of("draw"), ran.vote.tie) == ([], False)
    assert ran.vote.winner in ran.of("judgement")[0]["answers"]["A"]
    unsure = TIE | {"judge": {"reason": "", "choice": "cannot tell"}}
    assert len((await run(unsure, votes=2, model_vote=True, exploration="never")).of("draw")) == 1
    five = [f"SELECT {n} AS n" for n in range(1, 6)]
    said = script(sql_writer=taking_turns(*five), judge={"reason": "", "choice": "E"})
    ran = await run(said, votes=5, model_vote=True, exploration="never")
    answers = ran.of("judgement")[0]["answers"]
    assert len({name for names in answers.values() for name in names}) == 5
    assert ran.vote.winner in answers["E"]
    assert all(sql in ran.prompt("judge") for sql in five)


# The schema.


@pytest.fixture
def shards(shop: Path) -> Path:
    """The shop with a family of like tables and one that has nothing to do with orders."""
    visits = (f"CREATE TABLE visits_{year} (id INTEGER, page TEXT)" for year in range(2015, 2027))
    changed(shop, *visits, "CREATE TABLE weather (day TEXT, degrees REAL)")
    return shop


def judged(prompt: Prompt) -> Any:
    """Only what has to do with orders is needed."""
    needed = any(f"table {name}" in prompt.text for name in ("orders", "customers"))
    columns = ["id", "customer_id", "city"] if needed else []
    return {"think": "", "answer": "Y" if needed else "N", "columns": columns}


async def test_a_group_of_like_tables_is_written_once_with_its_members_names_and_row_counts(
    run: Run, shop: Path
) -> None:
    for rows in (1, 2, 4):
        values = ", ".join(f"({row}, '/{row}')" for row in range(rows))
        create = f"CREATE TABLE visits_{rows} (id INTEGER, page TEXT)"
        changed(shop, create, f"INSERT INTO visits_{rows} VALUES {values}")
    prompt = (await run(script())).prompt("sql_writer")
    assert "tables visits_{1, 2, 4} (3 tables; rows 1, 2, 4)\n  id INTEGER\n  page TEXT\n" in prompt
    assert prompt.count("page TEXT") == 1


async def test_switch_compression(run: Run, shards: Path) -> None:
    compressed, plain = await run(script()), await run(script(), compression=False, link_above=0)
    assert compressed.prompt("sql_writer").count("page TEXT") == 1
    assert plain.prompt("sql_writer").count("page TEXT") == 12
    assert not plain.calls()["table_linker"]


async def test_switch_link_above(run: Run, shards: Path) -> None:
    assert (await run(script(table_linker=judged))).calls() == {"sql_writer": 1}
    tight = await run(script(table_linker=judged), link_above=1)
    assert tight.calls() == {"table_linker": 4, "sql_writer": 1}, "one call a layout, shards together"
    assert "customer_id" in tight.prompt("sql_writer")
    assert "note TEXT" not in tight.prompt("sql_writer"), "still too long: only the columns named stay"
    tokens = int(tight.of("schema_shown")[0]["tokens"])
    some = await run(script(table_linker=judged), link_above=tokens + 80)
    assert "note TEXT" in some.prompt("sql_writer"), "whole tables where they fit"
    for linked in (tight, some):
        assert not [name for name in ("weather", "visits") if name in linked.prompt("sql_writer")]
        assert linked.answer.sql == GOOD


# The first version.


async def test_the_preset_of_the_first_version(run: Run) -> None:
    """Three threads, each with its own exploration; a form of the answer; a result counts that came twice."""
    ran = await run(script(), votes=None, preset="v1")
    assert ran.calls() == {"format_writer": 1, "column_explorer": 3, "sql_writer": 3, "self_checker": 3}
    assert all(each.confirmed for each in ran.answer.candidates)
    assert ran.answer.sql == GOOD
    prompt = ran.prompt("column_explorer")
    assert "`LIMIT 100`" in prompt
    assert "Write each query without `WITH`." in prompt
    tied = await run(
        script(sql_writer=taking_turns(GOOD, OTHER, THIRD), self_checker=same), votes=None, preset="v1"
    )
    assert (tied.calls()["judge"], tied.of("draw")) == (1, [])
    fewer = await run(script(), votes=1, preset="v1", exploration="never")
    assert fewer.calls() == {"format_writer": 1, "sql_writer": 1, "self_checker": 1}, "switches go before it"
    with pytest.raises(ConfigurationError, match=r"'v9'.*v1"):
        find_recipe("reforce", {}, "v9")


def same(prompt: Prompt) -> Any:
    """A SelfChecker that stands by every query."""
    return {"reasoning": "", "sql": prompt.text.rpartition("<sql>")[2].partition("</sql>")[0].strip()}


async def test_the_preset_links_what_is_long_and_shows_a_hundred_rows_of_a_query(run: Run) -> None:
    """Linking stands in the note (002), 100 rows or 5 KB in the paper (003, 3.2.3)."""
    series = "WITH RECURSIVE s(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM s WHERE n < 150) SELECT {} FROM s"
    many = {"purpose": "Which numbers?", "sql": series.format("n")}
    wide = {"purpose": "Which texts?", "sql": series.format("printf('%0100d', n) AS text")}
    said = script(table_linker=judged, column_explorer=explored(many, wide))
    ran = await run(said, votes=1, preset="v1", link_above=0)
    assert ran.calls()["table_linker"] == 2
    rows, texts = (event["text"] for event in ran.of("finding"))
    assert len(rows.splitlines()) == 1 + 100 + 1
    assert 4_800 < len(texts) < 5_200


async def test_switch_expected_format(run: Run) -> None:
    ran = await run(script(sql_writer=written(BROKEN)), expected_format=True)
    assert ran.calls() == {"format_writer": 1, "sql_writer": 1, "self_refiner": 1}
    for role in ("sql_writer", "self_refiner"):
        assert "<expected_format>city:text, orders:integer; one row per city<" in ran.prompt(role)


async def test_switch_self_consistency(run: Run) -> None:
    sure = await run(script(), self_consistency=True)
    assert sure.calls() == {"sql_writer": 1, "self_checker": 1}
    (candidate,) = sure.answer.candidates
    assert (candidate.confirmed, candidate.approved, candidate.repairs) == (True, None, 0)
    assert sure.answer.usage["queries"] == 1
    changed = await run(script(sql_writer=written(OTHER)), self_consistency=True)
    assert changed.calls() == {"sql_writer": 1, "self_checker": 2}
    assert (changed.answer.sql, changed.answer.candidates[0].repairs) == (GOOD, 1)


async def test_a_result_that_never_comes_twice_is_treated_as_an_empty_one(run: Run) -> None:
    def restless(prompt: Prompt) -> Any:
        return {"reasoning": "", "sql": f"SELECT {prompt.turn + 2} AS n"}

    said = script(sql_writer=taking_turns("SELECT 1 AS n", GOOD), self_checker=restless)
    alone = await run(said, votes=1, self_consistency=True, exploration="never")
    assert alone.calls() == {"sql_writer": 1, "self_checker": 4}
    assert alone.answer.candidates[0].confirmed is False
    assert alone.answer.confidence <= BLANK
    both = await run(said | {"self_checker/c2": same}, votes=2, self_consistency=True)
    assert (both.answer.sql, both.vote.winner) == (GOOD, "c2")


@pytest.mark.parametrize("shown", ["0", "NULL", "''", "7 AS m, ''", "7 AS m, 0"])
async def test_blank_results_confirm_nothing(run: Run, shown: str) -> None:
    blank = f"SELECT {shown} AS n"
    said = script(
        sql_writer=written(blank),
        self_checker={"reasoning": "", "sql": blank},
        self_refiner=lambda prompt: repaired(f"{blank}, {prompt.turn} * 0"),
    )
    ran = await run(said, self_consistency=True, exploration="never", max_refinements=3)
    assert not ran.answer.candidates[0].confirmed
    assert ran.answer.confidence <= BLANK


async def test_results_confirm_each_other_as_they_vote_for_each_other(run: Run) -> None:
    """To two decimals (paper 003, Appendix B)."""
    again = {"reasoning": "", "sql": "SELECT 10.334 AS mean"}
    ran = await run(
        script(sql_writer=written("SELECT 10.331 AS mean"), self_checker=again), self_consistency=True
    )
    assert (ran.calls()["self_checker"], ran.answer.candidates[0].confirmed) == (1, True)
    said = script(self_checker={"reasoning": "Hm.", "sql": BROKEN}, self_refiner=repaired(GOOD))
    back = await run(said, self_consistency=True, exploration="never")
    assert (back.calls()["self_refiner"], back.answer.candidates[0].confirmed) == (1, True)


async def test_three_errors_in_a_row_end_a_candidate(run: Run) -> None:
    ran = await run(FAULTY, self_consistency=True, exploration="never")
    assert (ran.calls(), ran.answer.status) == ({"sql_writer": 1, "self_refiner": 2}, "no_answer")


STAGED = (
    "WITH placed AS (SELECT customer_id FROM orders WHERE total > 1000), "
    "per_city AS (SELECT c.city, COUNT(*) AS orders FROM placed p JOIN customers c "
    "ON c.id = p.customer_id GROUP BY c.city) SELECT * FROM per_city"
)


def stage_judge(prompt: Prompt) -> Any:
    """The first stage has lost its rows, or names a column ``whole``; the rest is right."""
    _, stage = prompt.text.split("<stage")
    wrong = 'name="placed"' in stage and ("(0 rows)" in stage or "whole" in stage)
    sql = "SELECT customer_id FROM orders" if wrong else None
    return {"reasoning": "", "accept": not wrong, "sql": sql}


def staged(first: str = NOTHING, whole: str = STAGED, **roles: Any) -> dict[str, Any]:
    """A writer whose first query brings nothing, whatever its repairs, and then writes in stages."""

    def write(prompt: Prompt) -> Any:
        return written(whole if "write it in steps" in prompt.text else first)

    usual = {"self_refiner": in_vain, "cte_refiner": stage_judge}
    return script(sql_writer=write, **(usual | roles))


CITY_ORDERS = [["Ghent", 1], ["Lyon", 3]]


async def test_switch_cte_refinement(run: Run) -> None:
    ran = await run(staged(), cte_refinement=True, exploration="never")
    assert ran.calls() == {"sql_writer": 2, "self_refiner": 4, "cte_refiner": 4}
    assert sorted(ran.answer.rows) == CITY_ORDERS
    assert "total > 1000" not in ran.answer.sql
    assert [event["name"] for event in ran.of("stage")] == ["placed", "placed", "per_city", "result"]
    without = await run(staged(), exploration="never")
    assert (without.calls(), without.answer.rows) == ({"sql_writer": 1, "self_refiner": 4}, [])
    fine = await run(script(), cte_refinement=True)
    assert fine.calls() == {"sql_writer": 1}, "a candidate with an answer is left alone"
    both = await run(staged(), cte_refinement=True, self_consistency=True, exploration="never")
    assert sorted(both.answer.rows) == CITY_ORDERS
    preset = await run(staged(), votes=1, preset="v1")
    assert (preset.calls()["self_refiner"], preset.answer.row_count) == (1, 2), "one empty repair"
    broken = staged(BROKEN, STAGED.replace("total > 1000", "whole > 1"), self_refiner=repaired(BROKEN))
    mended = await run(broken, cte_refinement=True, exploration="never")
    assert (mended.calls()["cte_refiner"], sorted(mended.answer.rows)) == (4, CITY_ORDERS)


# Limits.

MANY = explored(*({"purpose": str(n), "sql": f"SELECT {n} AS n, city FROM customers"} for n in range(30)))
FAILING = {
    "column_explorer": explored(TOWNS, CITIES),
    "exploration_corrector": lambda prompt: corrected(f"SELECT town_{prompt.turn} FROM customers"),
}
REWRITE = {"reasoning": "", "accept": False}
DISCONTENT = staged(
    cte_refiner=lambda prompt: REWRITE | {"sql": f"SELECT customer_id, {prompt.turn} FROM orders"}
)
FAULTY = script(sql_writer=written(BROKEN), self_refiner=unknown)
EMPTY = script(sql_writer=written(NOTHING), self_refiner=in_vain)
STAGES: dict[str, Any] = {"cte_refinement": True, "exploration": "never"}


async def test_limits_of_two_candidates(run: Run, subtests: pytest.Subtests) -> None:
    """Of five iterations in all (Appendix B), ten queries, three corrections, five rewrites."""
    for said, how, what, times in (
        (FAULTY, {}, "self_refiner", 2 * 4),
        (FAULTY, {"max_refinements": 2}, "self_refiner", 4),
        (FAULTY, {"max_refinements": 0}, "self_refiner", 0),
        (EMPTY, {}, "self_refiner", 2 * 4),
        (EMPTY, {"max_empty": 1}, "self_refiner", 2),
        (EMPTY, {"max_empty": 0}, "self_refiner", 0),
        (TIE | {"column_explorer": MANY}, {"exploration": "ties"}, "finding", 2 * 10),
        (TIE | {"column_explorer": MANY}, {"exploration": "ties", "max_queries": 3}, "finding", 2 * 3),
        (TIE | FAILING, {"exploration": "ties"}, "exploration_corrector", 2 * 3),
        (TIE | FAILING, {"exploration": "ties", "max_corrections": 1}, "exploration_corrector", 2),
        (TIE | FAILING, {"exploration": "ties", "max_corrections": 0}, "finding", 2),
        (DISCONTENT, STAGES, "cte_refiner", 2 * 5),
        (DISCONTENT, STAGES | {"max_rewrites": 2}, "cte_refiner", 2 * 2),
    ):
        with subtests.test(said=said):
            ran = await run(said, votes=2, **{"exploration": "never", **how})
            assert (len(ran.of(what)) if what == "finding" else ran.calls()[what]) == times


async def test_a_second_round_of_one_mind_is_trusted_less_than_a_first(run: Run) -> None:
    agreed = await run(script(sql_writer=taking_turns(GOOD, GOOD)), votes=2)
    second = await run(script(sql_writer=taking_turns(OTHER, THIRD, GOOD, GOOD)), votes=2)
    assert second.answer.sql == agreed.answer.sql
    assert second.answer.confidence < agreed.answer.confidence


# What the paper's published code does wrong, and this one does not.


DOWN = ModelUnavailable("The endpoint is unreachable.")
MENDED = {
    "column_explorer": explored(TOWNS, NAMES, CITIES),
    "exploration_corrector": corrected(
        "SELECT DISTINCT city FROM customers", q1="SELECT city, name FROM customers LIMIT 20"
    ),
}
"""Three exploration queries, two with the same fault; one correction mends both."""


async def test_one_correction_is_one_call_and_mends_the_similar_queries(run: Run) -> None:
    ran = await run(RESOLVED | MENDED, votes=2)
    assert ran.calls() == {"sql_writer": 4, "column_explorer": 2, "exploration_corrector": 2}
    shown = ran.prompt("exploration_corrector")
    assert NAMES["sql"] in shown, "the queries that wait are shown with the one that failed"
    asked = [event["sql"] for event in ran.of("query") if event["agent"] == "column_explorer"]
    assert NAMES["sql"] not in asked, "the similar query never runs with the fault"
    assert len(asked) == 2 * 4
    prompt = ran.prompt("sql_writer", 2)
    for sql in ("SELECT DISTINCT city FROM customers\n", "SELECT city, name FROM customers LIMIT 20\n"):
        assert sql in prompt, "what was corrected is kept"
    assert sorted(event["corrected"] for event in ran.of("finding")) == [False] * 4 + [True] * 2
    fails = {"exploration_corrector": corrected("SELECT village FROM customers", q1="SELECT 1 AS x")}
    ran = await run(RESOLVED | MENDED | fails, votes=2, max_corrections=1)
    asked = [event["sql"] for event in ran.of("query") if event["agent"] == "column_explorer"]
    assert NAMES["sql"] in asked, "only a correction that worked rewrites the queries that follow"
    alike = {"column_explorer": explored(CITIES, TOWNS), "exploration_corrector": corrected(CITIES["sql"])}
    assert (await run(RESOLVED | alike, votes=2)).prompt("sql_writer", 2).count(CITIES["sql"]) == 1


@pytest.mark.parametrize("role", ["column_explorer", "exploration_corrector"])
async def test_exploration_ends_when_no_model_answers(run: Run, role: str) -> None:
    ran = await run(RESOLVED | MENDED | {role: DOWN}, votes=2)
    assert ran.calls()[role] <= 1
    assert ran.answer.status == "answered"
    assert "Column exploration ended early: The endpoint is unreachable. (c3, c4)" in ran.answer.warnings


async def test_one_malformed_reply_loses_one_table_only(run: Run, shop: Path) -> None:
    changed(shop, "CREATE TABLE weather (day TEXT, degrees REAL)")

    def link(prompt: Prompt) -> Any:
        if "table orders" in prompt.text:
            return '{"think": "cut off'
        return {"think": "", "answer": "Y" if "table customers" in prompt.text else "N", "columns": []}

    ran = await run(script(table_linker=link), votes=2, link_above=0)
    prompt = ran.prompt("sql_writer")
    assert "table orders" in prompt, "the table whose judgement was lost stays"
    assert "table customers" in prompt
    assert "weather" not in prompt
    assert any("reply on orders could not be used" in said for said in ran.answer.warnings)
    assert ran.answer.sql == GOOD


@given(st.permutations(["a", "b", "c", "light"]), st.integers(0, 2**32), st.sampled_from(["tied", "all"]))
def test_a_draw_knows_no_order(order: list[str], seed: int, among: Any) -> None:
    made = {name: Cluster(name, name, (f"{name}1", f"{name}2"), ("m",), 2) for name in "abc"}
    made["light"] = Cluster("light", "light", ("light1",), ("m",), 1)
    winner, chosen = drawn([made[name] for name in order], seed, among)
    again, _ = drawn([made[name] for name in sorted(order)], seed, among)
    assert (winner, chosen.key) == (again, winner[:-1])
    assert among == "all" or chosen.key != "light"
