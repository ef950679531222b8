"""The recipe ``reforce``: eight candidates, a vote, exploration of what ties, and every switch."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.agents.explorers import hints
from quorum.graph.confidence import BLANK
from quorum.graph.nodes import prepare
from quorum.graph.recipes import find_recipe
from quorum.graph.recipes.recipe import PaperRecipe
from quorum.graph.recipes.reforce import Reforce
from quorum.knowledge.catalog import Catalog, Column, Field, Table
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.schema.render import render
from quorum.knowledge.syntax import NEEDS, card
from quorum.tools.models.scripted import Prompt
from tests.graph import test_reforce_rounds
from tests.graph.shop import (
    BROKEN,
    CITIES,
    GOOD,
    NOTHING,
    OTHER,
    THIRD,
    TOWNS,
    Ran,
    Run,
    changed,
    corrected,
    explored,
    in_turn,
    number,
    of_recipe,
    repaired,
    script,
    taking_turns,
    written,
)


@pytest.fixture
def run(run: Run) -> Run:
    """``await run(script(…), votes=…, switch=…)`` over the shop with the recipe ``reforce``."""
    return of_recipe(run, "reforce")


def same_again(prompt: Prompt) -> Any:
    """A SelfChecker that stands by every query."""
    return {"reasoning": "", "sql": prompt.text.rpartition("<sql>")[2].partition("</sql>")[0].strip()}


TIE = script(sql_writer=taking_turns(GOOD, OTHER))
"""Candidates that tie, before exploration and after it."""

RESOLVED = script(sql_writer=taking_turns(GOOD, OTHER, found=GOOD))
"""Candidates that tie until exploration has found something."""


def winner(ran: Ran) -> str:
    return ran.vote.winner or ""


async def test_a_failed_candidate_is_refined_and_so_is_an_empty_one(run: Run) -> None:
    said = script(
        sql_writer=taking_turns(BROKEN, NOTHING),
        self_refiner=lambda prompt: {
            "explanation": "",
            "sql": GOOD if 'kind="column_not_found"' in prompt.text else f"{NOTHING} OR id = -{prompt.turn}",
        },
    )
    ran = await run(said, votes=2, blanks_give_way=True)
    assert ran.calls() == {"sql_writer": 2, "self_refiner": 1 + 4}, "five tries in all"
    assert ran.answer.sql == GOOD
    assert ran.answer.confidence <= 0.4


ZERO = "SELECT COUNT(*) AS orders FROM orders WHERE total > 1000"


@pytest.mark.parametrize("blank", [ZERO, "SELECT '' AS city"])
async def test_a_blank_answer_of_one_mind_is_resolved(run: Run, blank: str) -> None:
    """One answer has the most votes, and the paper makes nothing of its values (000, equation 5)."""
    ran = await run(script(sql_writer=written(blank)), votes=None)
    assert ran.calls() == {"sql_writer": 8}
    assert ran.answer.sql == blank


@pytest.mark.parametrize("blank", [BROKEN, NOTHING, "SELECT NULL AS city"])
async def test_no_answer_at_all_is_explored_too(run: Run, blank: str) -> None:
    """An error or a result without values is repaired to the limit, and then explored (000, Listing 2)."""
    said = script(sql_writer=taking_turns(blank, found=GOOD), self_refiner=repaired(blank))
    ran = await run(said, votes=2)
    assert ran.calls()["column_explorer"] == 2
    assert ran.answer.sql == GOOD


async def test_switch_confirm_empty(run: Run) -> None:
    """The paper repairs an empty result to the limit (000, Table 6)."""
    none = script(sql_writer=written(NOTHING), self_refiner=repaired(None))
    ran = await run(none, votes=2, confirm_empty=True)
    assert ran.calls() == {"sql_writer": 2, "self_refiner": 2}, "what is confirmed is an answer"
    assert "give null" in ran.prompt("self_refiner")
    again = script(sql_writer=written(NOTHING), self_refiner=repaired(NOTHING))
    ran = await run(again, votes=2, exploration="never")
    assert ran.calls() == {"sql_writer": 2, "self_refiner": 2 * 4}
    prompt = ran.prompt("self_refiner").rpartition("<task>")[2]
    assert "returned nothing" in prompt
    assert not {text for text in ("is the answer", "give null") if text in prompt}


@pytest.mark.parametrize("again", [BROKEN, NOTHING])
async def test_a_repair_that_repeats_itself_does_not_end_a_candidate(run: Run, again: str) -> None:
    """Five iterations whatever they bring (000, Table 6)."""
    said = script(sql_writer=written(again), self_refiner=repaired(again))
    ran = await run(said, exploration="never")
    assert ran.calls() == {"sql_writer": 1, "self_refiner": 4}
    assert ran.answer.usage["queries"] <= 1, "the same SQL runs once"

    def late(prompt: Prompt) -> Any:
        return repaired(GOOD if prompt.turn == 3 else again)

    assert (await run(script(sql_writer=written(again), self_refiner=late), votes=1)).answer.sql == GOOD


@pytest.mark.parametrize(
    "again", [NOTHING, "SELECT city FROM customers WHERE city LIKE '%nowhere%'", None], ids=str
)
async def test_an_empty_exploration_is_corrected_to_the_limit_and_never_kept(
    run: Run, again: str | None
) -> None:
    """The same for corrections that repeat themselves and for others (000, Algorithm 1)."""
    nowhere = {"purpose": "Is there a Nowhere?", "sql": NOTHING}
    said = script(
        sql_writer=taking_turns(GOOD, OTHER, found=GOOD),
        column_explorer=explored(nowhere, CITIES),
        exploration_corrector=lambda prompt: corrected(again or f"{NOTHING} OR id = -{prompt.turn + 1}"),
    )
    ran = await run(said, votes=2)
    assert ran.calls()["exploration_corrector"] == 6, "three times by each candidate"
    assert len(ran.of("exploration_given_up")) == 2
    assert {event["sql"] for event in ran.of("finding")} == {CITIES["sql"]}
    assert "(0 rows)" not in ran.prompt("sql_writer", 2)
    prompt = ran.prompt("exploration_corrector", 2)
    assert "returned no row" in prompt
    assert "null" not in prompt.rpartition("<task>")[2], "the lack of rows is no finding"


async def test_what_a_correction_at_last_finds_is_kept(run: Run) -> None:
    nowhere = {"purpose": "Is there a Nowhere?", "sql": NOTHING}
    said = script(
        sql_writer=taking_turns(GOOD, OTHER, found=GOOD),
        column_explorer=explored(nowhere),
        exploration_corrector=lambda prompt: corrected(CITIES["sql"] if prompt.turn == 2 else NOTHING),
    )
    ran = await run(said, votes=2)
    assert [(event["sql"], event["corrected"]) for event in ran.of("finding")] == [(CITIES["sql"], True)] * 2


MATCHING = {"snowflake": "ILIKE '%meat%lovers%'", "bigquery": "LIKE '%meat%lovers%'", "sqlite": "LIKE '%meat"}
NESTED = {
    "snowflake": ("LATERAL FLATTEN(input =>", "::STRING"),
    "bigquery": ("UNNEST(JSON_QUERY_ARRAY(", "JSON_VALUE("),
    "sqlite": ("json_each(", "->>"),
}


async def test_writer_and_refiner_are_told_how_values_are_matched(run: Run) -> None:
    """Paper 000, Listing 1; the exploration is told more, and nobody the same twice."""
    said = script(sql_writer=taking_turns(BROKEN, OTHER, found=GOOD))
    ran = await run(said, votes=2)
    for role in ("sql_writer", "self_refiner", "column_explorer"):
        assert ran.prompt(role).count(MATCHING["sqlite"]) == 1, role
        assert ran.prompt(role).count("substr(s, start, length)") == 1, role
    papers = await run(said, votes=2, prompts="paper")
    for role in ("sql_writer", "self_refiner", "column_explorer"):
        assert "## Identifiers and quoting" in papers.prompt(role), "no card says how names are quoted"


@pytest.mark.parametrize("dialect", list(MATCHING))
def test_what_listing_1_says_of_a_dialect_is_said(dialect: str) -> None:
    """Quoting in the card, which every prompt has; matching and nested columns beside it."""
    beside = hints(dialect, nested=True, plain=prepare.MATCHING)
    assert {"bigquery": "Backticks quote names"}.get(dialect, "double quotes") in card(dialect)
    assert MATCHING[dialect] in beside
    plain = hints(dialect, nested=False, plain=prepare.MATCHING)
    assert all(text in beside and text not in plain for text in NESTED[dialect])


@pytest.mark.parametrize(
    ("column", "nested"),
    [
        (Column("doc", "VARIANT"), True),
        (Column("doc", "jsonb"), True),
        (Column("tags", "text[]"), True),
        (Column("parts", "ARRAY<STRUCT<sku STRING>>"), True),
        (Column("doc", "TEXT", samples=('{"tags": ["cut …',)), True),
        (Column("doc", "TEXT", fields=(Field("a", "string"),)), True),
        (Column("note", "TEXT", samples=("see [1]", "")), False),
        (Column("bitmap", "VARCHAR(9)"), False),
    ],
    ids=str,
)
def test_a_column_is_nested_by_its_type_or_by_its_rows(column: Column, nested: bool) -> None:
    """Also where no path inside it is known."""
    text = render(Catalog("c", "sqlite", (Table("t", (column,)),))).text
    assert bool(NEEDS["nested"].search(text)) is nested


async def test_who_writes_is_told_how_a_nested_column_is_read_whose_paths_nobody_knows(
    run: Run, shop: Path
) -> None:
    changed(shop, "CREATE TABLE events (id INTEGER, doc JSON)")
    ran = await run(script(sql_writer=taking_turns(BROKEN, OTHER, found=GOOD)), votes=2)
    for role in ("sql_writer", "self_refiner", "column_explorer"):
        assert "## JSON" in ran.prompt(role), role


FIGURE_4 = {
    "queries from simple to complex, ten at most": ("at most 10 small queries", "Begin with single columns"),
    "each query different, DISTINCT": ("finds out something else", "`SELECT DISTINCT`"),
    "20 rows": ("`LIMIT 20`",),
    "a description of each": ("What it is to find out, in one sentence",),
    "no schema and no data types": ("Do not query system tables or types",),
    "no direct answer": ("Do not answer the question yet",),
    "no knowledge of its own": ("take nothing about the data for known that the schema or a query has not",),
    "a nested column of unknown structure: first the whole column": ("begin with its whole values",),
    "fuzzy matching": ("Look for text by a part of it, in any case", MATCHING["sqlite"]),
    "no conversion of dates of unknown format": ("do not convert dates whose format you have not seen",),
    "only the tables shown": ("Use only tables and columns that this schema shows",),
}
"""What the paper's prompt asks for (000, Figure 4 and Listing 1), and where ours does."""


async def test_the_explorer_is_asked_for_all_that_figure_4_asks(run: Run) -> None:
    prompt = (await run(RESOLVED, votes=2)).prompt("column_explorer")
    assert not {what: said for what, said in FIGURE_4.items() if not all(text in prompt for text in said)}


# Presets.


async def test_the_preset_of_the_first_version(run: Run) -> None:
    """Three threads, each with its own exploration; a form of the answer; a result counts that came twice."""
    ran = await run(script(), votes=None, preset="v1")
    assert ran.calls() == {"format_writer": 1, "column_explorer": 3, "sql_writer": 3, "self_checker": 3}
    assert all(each.confirmed for each in ran.answer.candidates)
    assert ran.answer.sql == GOOD
    said = script(sql_writer=in_turn(GOOD, OTHER, THIRD), self_checker=same_again)
    tied = await run(said, votes=None, preset="v1")
    assert tied.calls()["judge"] == 1
    assert not tied.of("draw")
    prompt = ran.prompt("column_explorer")
    assert "`LIMIT 100`" in prompt
    assert "Write each query without `WITH`." in prompt
    fewer = await run(script(), votes=1, preset="v1", exploration="never")
    assert fewer.calls() == {"format_writer": 1, "sql_writer": 1, "self_checker": 1}, "switches go before it"


async def test_the_preset_links_what_is_long_and_shows_a_hundred_rows_of_a_query(run: Run) -> None:
    """Linking stands in the note (002), 100 rows or 5 KB in the paper (003, 3.2.3)."""
    many = {"purpose": "Which numbers?", "sql": series(150, "n")}
    wide = {"purpose": "Which texts?", "sql": series(150, "printf('%0100d', n) AS text")}
    ran = await run(
        script(table_linker=judged, column_explorer=explored(many, wide)),
        votes=1,
        preset="v1",
        link_above=0,
    )
    assert ran.calls()["table_linker"] == 2
    rows, texts = (event["text"] for event in ran.of("finding"))
    assert len(rows.splitlines()) == 1 + 100 + 1
    assert 4_800 < len(texts) < 5_200


def series(count: int, shown: str) -> str:
    return (
        "WITH RECURSIVE numbers(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM numbers WHERE n < "
        f"{count}) SELECT {shown} FROM numbers"
    )


async def test_the_preset_refines_an_empty_result_once_and_then_stage_by_stage(run: Run) -> None:
    said = script(
        sql_writer=staged_writer,
        self_refiner=lambda prompt: {"explanation": "", "sql": f"{NOTHING} OR id = -{prompt.turn + 1}"},
        cte_refiner=stage_judge,
    )
    ran = await run(said, votes=1, preset="v1")
    assert ran.calls()["self_refiner"] == 1
    assert len(ran.answer.rows) == 2


def test_a_preset_that_is_not_there_is_named() -> None:
    with pytest.raises(ConfigurationError, match=r"'v9'.*v1"):
        find_recipe("reforce", {}, "v9")


# Every switch has a test that shows that it changes what it names.


def test_every_switch_has_a_test() -> None:
    known = globals() | vars(test_reforce_rounds)
    for name in set(Reforce.switches()) - set(PaperRecipe.switches()):
        assert f"test_switch_{name}" in known, name


async def test_switch_exploration(run: Run) -> None:
    never = await run(RESOLVED, votes=2, exploration="never")
    assert never.calls() == {"sql_writer": 2}
    assert never.vote.tie
    always = await run(RESOLVED, votes=2, exploration="always")
    assert always.calls() == {"column_explorer": 2, "sql_writer": 2}, "each candidate explores first"
    assert next(event["agent"] for event in always.of("model_call")) == "column_explorer"
    assert "rival_sql" not in always.prompt("column_explorer")
    assert always.answer.sql == GOOD
    shared = await run(RESOLVED, votes=2, exploration="always", explorations="shared")
    assert shared.calls() == {"column_explorer": 1, "sql_writer": 2}
    tied = await run(TIE, votes=2, exploration="always")
    assert tied.calls() == {"column_explorer": 2, "sql_writer": 2}, "what still ties is drawn"
    assert len(tied.of("draw")) == 1


async def test_switch_random_selection(run: Run) -> None:
    drawn = await run(TIE, votes=2, seed=7)
    assert drawn.vote.tie
    again = await run(TIE, votes=2, seed=7)
    assert drawn.vote.seed == again.vote.seed is not None
    assert winner(drawn) == winner(again)
    other = await run(TIE, votes=2, seed=8)
    assert other.vote.seed != drawn.vote.seed
    assert drawn.answer.status == "answered"
    assert drawn.answer.confidence <= 0.4
    left = await run(TIE, votes=2, random_selection=False)
    assert left.answer.status == "no_answer"
    assert left.answer.rows == []
    assert any("no answer was chosen" in said for said in left.answer.warnings)


async def test_switch_majority_vote(run: Run) -> None:
    """Without it every candidate has the same chance, so the minority wins with some seed."""
    said = script(sql_writer=taking_turns(GOOD, GOOD, OTHER))
    assert not (await run(said, votes=3)).of("draw")
    drawn = set[str]()
    for seed in range(12):
        ran = await run(said, votes=3, seed=seed, majority_vote=False)
        assert [event["among"] for event in ran.of("draw")] == ["all"]
        drawn.add(ran.answer.sql)
        if drawn == {GOOD, OTHER}:
            return
    pytest.fail(f"Only one answer was ever drawn: {drawn}")


async def test_without_a_majority_vote_most_cannot_say_that_the_data_lacks_it(run: Run) -> None:
    lacking = {"reasoning": "", "sql": None, "missing": "There is no profit."}
    said = script(sql_writer=lacking) | {"sql_writer/c1": written(GOOD)}
    statuses = set[str]()
    for seed in range(12):
        ran = await run(said, votes=3, seed=seed, majority_vote=False)
        assert [event["among"] for event in ran.of("draw")] == ["all"]
        statuses.add(ran.answer.status)
    assert len(statuses) == 2, statuses


@pytest.fixture
def shards(shop: Path) -> Path:
    """The shop with a family of like tables and one that has nothing to do with orders."""
    visits = (f"CREATE TABLE visits_{year} (id INTEGER, page TEXT)" for year in range(2015, 2027))
    changed(shop, *visits, "CREATE TABLE weather (day TEXT, degrees REAL)")
    return shop


async def test_switch_compression(run: Run, shards: Path) -> None:
    compressed, plain = await run(script()), await run(script(), compression=False)
    assert compressed.prompt("sql_writer").count("page TEXT") == 1
    assert plain.prompt("sql_writer").count("page TEXT") == 12
    assert not plain.calls()["table_linker"]


def judged(prompt: Prompt) -> Any:
    """Only what has to do with orders is needed."""
    needed = any(f"table {name}" in prompt.text for name in ("orders", "customers"))
    columns = ["id", "customer_id", "city"] if needed else []
    return {"think": "", "answer": "Y" if needed else "N", "columns": columns}


async def test_switch_linking(run: Run, shards: Path) -> None:
    by_tables = await run(script(table_linker=judged), link_above=0)
    assert by_tables.calls() == {"table_linker": 4, "sql_writer": 1}, "one call a layout, shards together"
    by_drafts = await run(script(), linking="drafts", link_above=0)
    assert by_drafts.calls() == {"draft_linker": 1, "sql_writer": 1}
    for linked in (by_tables, by_drafts):
        assert "weather" not in linked.prompt("sql_writer")
        assert "visits" not in linked.prompt("sql_writer")
        assert linked.answer.sql == GOOD
    whole = await run(script(), linking="none", link_above=0)
    assert "weather" in whole.prompt("sql_writer")
    assert whole.calls() == {"sql_writer": 1}


async def test_switch_link_above(run: Run, shards: Path) -> None:
    below = await run(script(table_linker=judged))
    assert below.calls() == {"sql_writer": 1}
    tight = await run(script(table_linker=judged), link_above=1)
    assert "customer_id" in tight.prompt("sql_writer")
    assert "note TEXT" not in tight.prompt("sql_writer"), "still too long: only the columns named stay"
    some = await run(script(table_linker=judged), link_above=tokens(tight) + 80)
    assert "note TEXT" in some.prompt("sql_writer"), "whole tables where they fit"
    assert "weather" not in some.prompt("sql_writer")


def tokens(ran: Ran) -> int:
    return int(ran.of("schema_shown")[0]["tokens"])


async def test_switch_expected_format(run: Run) -> None:
    said = script(sql_writer=written(BROKEN))
    ran = await run(said, expected_format=True)
    assert ran.calls() == {"format_writer": 1, "sql_writer": 1, "self_refiner": 1}
    for role in ("sql_writer", "self_refiner"):
        assert "<expected_format>city:text, orders:integer; one row per city<" in ran.prompt(role)
    without = await run(said)
    assert "format_writer" not in without.calls()
    assert "expected_format" not in without.prompt("sql_writer")


async def test_switch_self_consistency(run: Run) -> None:
    sure = await run(script(), self_consistency=True)
    assert sure.calls() == {"sql_writer": 1, "self_checker": 1}
    assert sure.answer.candidates[0].confirmed is True
    assert sure.answer.candidates[0].approved is None, "the Validator's word"
    assert sure.answer.candidates[0].repairs == 0
    assert sure.answer.usage["queries"] == 1
    changed = await run(script(sql_writer=written(OTHER)), self_consistency=True)
    assert changed.calls() == {"sql_writer": 1, "self_checker": 2}
    assert changed.answer.sql == GOOD
    assert changed.answer.candidates[0].repairs == 1
    without = await run(script())
    assert without.calls() == {"sql_writer": 1}


async def test_a_result_that_never_comes_twice_is_treated_as_an_empty_one(run: Run) -> None:
    def restless(prompt: Prompt) -> Any:
        return {"reasoning": "", "sql": f"SELECT {prompt.turn + 2} AS n"}

    said = script(sql_writer=taking_turns("SELECT 1 AS n", GOOD), self_checker=restless)
    alone = await run(said, votes=1, self_consistency=True, exploration="never")
    assert alone.calls() == {"sql_writer": 1, "self_checker": 4}
    assert alone.answer.candidates[0].confirmed is False
    assert alone.answer.confidence <= BLANK

    def one_sure(prompt: Prompt) -> Any:
        return restless(prompt) if number(prompt) == 1 else {"reasoning": "", "sql": GOOD}

    said = script(sql_writer=taking_turns("SELECT 1 AS n", GOOD), self_checker=one_sure)
    both = await run(said, votes=2, self_consistency=True)
    assert both.answer.sql == GOOD
    assert winner(both) == "c2"


@pytest.mark.parametrize(
    "blank",
    [
        "SELECT 0 AS n",
        "SELECT NULL AS n",
        "SELECT '' AS n",
        "SELECT 7 AS m, '' AS n",
        "SELECT 7 AS m, 0 AS n",
    ],
)
async def test_blank_results_confirm_nothing(run: Run, blank: str) -> None:
    again = {"reasoning": "", "sql": blank}
    said = script(
        sql_writer=written(blank),
        self_checker=again,
        self_refiner=lambda prompt: {"explanation": "", "sql": f"{blank}, {prompt.turn} * 0"},
    )
    ran = await run(said, self_consistency=True, exploration="never", max_refinements=3)
    assert not ran.answer.candidates[0].confirmed
    assert ran.answer.confidence <= BLANK


async def test_results_confirm_each_other_as_they_vote_for_each_other(run: Run) -> None:
    """To two decimals (paper 003, Appendix B)."""
    again = {"reasoning": "", "sql": "SELECT 10.334 AS mean"}
    said = script(sql_writer=written("SELECT 10.331 AS mean"), self_checker=again)
    ran = await run(said, self_consistency=True)
    assert ran.calls() == {"sql_writer": 1, "self_checker": 1}
    assert ran.answer.candidates[0].confirmed


async def test_three_errors_in_a_row_end_a_candidate(run: Run) -> None:
    broken = iter(f"SELECT nowhere_{n} FROM orders" for n in range(9))
    said = script(sql_writer=written(BROKEN), self_refiner=lambda _: repaired(next(broken)))
    ran = await run(said, self_consistency=True, exploration="never")
    assert ran.calls() == {"sql_writer": 1, "self_refiner": 2}
    assert ran.answer.status == "no_answer"


STAGED = (
    "WITH placed AS (SELECT customer_id FROM orders WHERE total > 1000), "
    "per_city AS (SELECT c.city, COUNT(*) AS orders FROM placed p JOIN customers c "
    "ON c.id = p.customer_id GROUP BY c.city) SELECT * FROM per_city"
)


def staged_writer(prompt: Prompt) -> Any:
    return written(STAGED if "Write it in steps" in prompt.text else NOTHING)


def stage_judge(prompt: Prompt) -> Any:
    """The first stage has lost its rows; the rest is right."""
    wrong = '<stage name="placed">' in prompt.text and "(0 rows)" in prompt.text
    sql = "SELECT customer_id FROM orders" if wrong else None
    return {"reasoning": "", "accept": not wrong, "sql": sql}


async def test_switch_cte_refinement(run: Run) -> None:
    said = script(
        sql_writer=staged_writer,
        self_refiner={"explanation": "", "sql": f"{NOTHING} OR city = 'x'"},
        cte_refiner=stage_judge,
    )
    ran = await run(said, cte_refinement=True, exploration="never")
    assert ran.calls() == {"sql_writer": 2, "self_refiner": 4, "cte_refiner": 4}
    assert sorted(map(list, ran.answer.rows)) == [["Ghent", 1], ["Lyon", 3]]
    assert "total > 1000" not in ran.answer.sql
    assert [event["name"] for event in ran.of("stage")] == ["placed", "placed", "per_city", "result"]
    without = await run(said, exploration="never")
    assert without.calls() == {"sql_writer": 1, "self_refiner": 4}
    assert without.answer.rows == []
    fine = await run(script(), cte_refinement=True)
    assert fine.calls() == {"sql_writer": 1}, "a candidate with an answer is left alone"


async def test_a_repair_that_returns_to_a_plausible_query_confirms_it(run: Run) -> None:
    """The same reasonable answer is obtained twice (003, 3.2.4)."""
    said = script(self_checker={"reasoning": "Hm.", "sql": BROKEN}, self_refiner=repaired(GOOD))
    ran = await run(said, self_consistency=True, exploration="never")
    assert ran.calls() == {"sql_writer": 1, "self_checker": 1, "self_refiner": 1}
    assert [candidate.confirmed for candidate in ran.answer.candidates] == [True]


async def test_a_stage_that_candidates_share_runs_once(run: Run) -> None:
    said = script(sql_writer=staged_writer, self_refiner=repaired(None), cte_refiner=stage_judge)
    ran = await run(said, votes=2, cte_refinement=True, confirm_empty=True, exploration="never")
    stages = [event["name"] for event in ran.of("stage")]
    assert sorted(stages) == sorted(["placed", "placed", "per_city", "result"] * 2)
    charged = [event["executed"] for event in ran.of("query") if "usage" in event]
    assert len(charged) == len(set(charged))


async def test_both_options_of_the_first_version_go_together(run: Run) -> None:
    said = script(
        sql_writer=staged_writer,
        self_refiner={"explanation": "", "sql": f"{NOTHING} OR city = 'x'"},
        cte_refiner=stage_judge,
    )
    ran = await run(said, cte_refinement=True, self_consistency=True, exploration="never")
    assert sorted(map(list, ran.answer.rows)) == [["Ghent", 1], ["Lyon", 3]]


async def test_a_stage_whose_sql_is_broken_is_mended_where_it_stands(run: Run) -> None:
    broken = STAGED.replace("WHERE total > 1000", "WHERE whole > 1")

    def judge(prompt: Prompt) -> Any:
        failed = "whole" in prompt.text.split("<stage")[1] and "<error>" in prompt.text
        return {
            "reasoning": "",
            "accept": not failed,
            "sql": "SELECT customer_id FROM orders" * failed or None,
        }

    said = script(
        sql_writer=lambda prompt: written(broken if "Write it in steps" in prompt.text else BROKEN),
        self_refiner=repaired(BROKEN),
        cte_refiner=judge,
    )
    ran = await run(said, cte_refinement=True, exploration="never")
    assert ran.calls()["cte_refiner"] == 4
    assert len(ran.answer.rows) == 2


async def test_switch_model_vote(run: Run) -> None:
    ran = await run(TIE, votes=2, model_vote=True, exploration="never")
    assert ran.calls() == {"sql_writer": 2, "judge": 1}
    assert not ran.of("draw")
    assert not ran.vote.tie
    labels = ran.of("judgement")[0]["answers"]
    assert winner(ran) in labels["A"]
    said = script(sql_writer=taking_turns(GOOD, OTHER), judge={"reason": "", "choice": "cannot tell"})
    open_still = await run(said, votes=2, model_vote=True, exploration="never")
    assert len(open_still.of("draw")) == 1
    assert not (await run(TIE, votes=2, exploration="never")).calls()["judge"]


async def test_the_model_compares_all_answers_that_tie(run: Run) -> None:
    five = [f"SELECT {n} AS n" for n in range(1, 6)]
    said = script(sql_writer=taking_turns(*five), judge={"reason": "", "choice": "E"})
    ran = await run(said, votes=5, model_vote=True, exploration="never")
    answers = ran.of("judgement")[0]["answers"]
    assert len({name for names in answers.values() for name in names}) == 5
    assert winner(ran) in answers["E"]
    assert all(sql in ran.prompt("judge") for sql in five)


async def test_switch_max_refinements(run: Run) -> None:
    broken = [f"SELECT nowhere_{n} FROM orders" for n in range(20)]
    said = script(
        sql_writer=written(BROKEN),
        self_refiner=lambda prompt: repaired(broken[prompt.turn]),
    )
    for given, rounds in (({}, 4), ({"max_refinements": 2}, 2), ({"max_refinements": 0}, 0)):
        ran = await run(said, exploration="never", **given)
        assert ran.calls()["self_refiner"] == rounds, "five iterations in all (Appendix B)"


async def test_switch_max_empty(run: Run) -> None:
    still = script(
        sql_writer=written(NOTHING),
        self_refiner=lambda prompt: {"explanation": "", "sql": f"{NOTHING} OR id = -{prompt.turn + 1}"},
    )
    for given, rounds in (({}, 4), ({"max_empty": 1}, 1), ({"max_empty": 0}, 0)):
        ran = await run(still, exploration="never", **given)
        assert ran.calls()["self_refiner"] == rounds


async def test_switch_max_queries(run: Run) -> None:
    many = [{"purpose": str(n), "sql": f"SELECT {n} AS n, city FROM customers LIMIT 20"} for n in range(30)]
    said = script(sql_writer=taking_turns(GOOD, OTHER), column_explorer=explored(*many))
    for given, queries in (({}, 10), ({"max_queries": 3}, 3)):
        ran = await run(said, votes=2, **given)
        assert len(ran.of("finding")) == 2 * queries, "of each candidate of the second round"
    assert (await run(said, votes=2, max_queries=0)).calls() == {"sql_writer": 2}


async def test_switch_row_limit(run: Run) -> None:
    assert "`LIMIT 20`" in (await run(RESOLVED, votes=2)).prompt("column_explorer")
    assert "`LIMIT 7`" in (await run(RESOLVED, votes=2, row_limit=7)).prompt("column_explorer")


async def test_switch_ctes(run: Run) -> None:
    assert "`WITH`" not in (await run(RESOLVED, votes=2)).prompt("column_explorer")
    assert "`WITH`" in (await run(RESOLVED, votes=2, ctes=False)).prompt("column_explorer")


async def test_switch_max_corrections(run: Run) -> None:
    said = script(
        sql_writer=taking_turns(GOOD, OTHER),
        column_explorer=explored(TOWNS, CITIES),
        exploration_corrector=lambda prompt: corrected(f"SELECT town_{prompt.turn} FROM customers"),
    )
    for given, tries in (({}, 3), ({"max_corrections": 1}, 1), ({"max_corrections": 0}, 0)):
        ran = await run(said, votes=2, **given)
        assert ran.calls()["exploration_corrector"] == 2 * tries
        assert len(ran.of("finding")) == 2, "the next query is run all the same"


async def test_switch_max_rewrites(run: Run) -> None:
    def never_content(prompt: Prompt) -> Any:
        return {"reasoning": "", "accept": False, "sql": f"SELECT customer_id, {prompt.turn} FROM orders"}

    said = script(
        sql_writer=staged_writer,
        self_refiner={"explanation": "", "sql": f"{NOTHING} OR city = 'x'"},
        cte_refiner=never_content,
    )
    for given, calls in (({}, 5), ({"max_rewrites": 2}, 2)):
        ran = await run(said, cte_refinement=True, exploration="never", **given)
        assert ran.calls()["cte_refiner"] == calls
        assert len(ran.answer.rows) == 2, "the query runs as it was left"


# Limits, and real questions.
