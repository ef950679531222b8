"""The recipe ``sqlagent``: grounding and writing in rounds, with what an exploration found."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from quorum.graph.nodes.synthesis import Rounds, _kept, round_outcome
from quorum.graph.recipes import find_recipe
from quorum.graph.state import Attempt, CandidateState, Failure, Grounding, Result
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.triplets import Expansion, Triplet, explored_folder
from quorum.tools.sql.linking import marks_of, used
from quorum.tools.triplet_store import TripletStore
from quorum.tools.urls import location
from tests.graph.shop import FINE, GOOD, QUESTION, Ran, Run, run_graph, script

BROKEN = "SELECT town FROM customers"
EMPTY = "SELECT city FROM customers WHERE city = 'Nowhere'"
REJECTED = FINE | {"valid_result": False, "suggest_fix": "Count orders, not customers."}
FOUND = {"keywords": ["city", "order"]}
NOTHING = {"reasoning": "All is there.", "add": []}
TRIPLETS = (
    ("SELECT city, COUNT(*) FROM customers GROUP BY city", "How many customers live in each city?"),
    ("SELECT total FROM orders ORDER BY total DESC LIMIT 1", "What was the largest order?"),
)


def written(sql: str, **more: Any) -> dict[str, Any]:
    return {"reasoning": "So.", "sql": sql, **more}


def agents(**roles: Any) -> dict[str, Any]:
    """Agents who do everything right, but for the roles given."""
    usual = {"info_agent": FOUND, "context_expander": NOTHING, "gen_agent": written(GOOD), "validator": FINE}
    return usual | roles


@pytest.fixture
def ask(run: Run) -> Callable[..., Any]:
    """Run the recipe; switches are given by name beside the options."""

    async def asked(said: Any, **given: Any) -> Ran:
        names = find_recipe("sqlagent").switches()
        switches = {name: given.pop(name) for name in names if name in given}
        return await run(said, recipe="sqlagent", switches=switches, **given)

    return asked


def folder_of(root: Path, shop: Path, *, static: bool = False) -> Path:
    return explored_folder(root, CATALOG, location(f"sqlite:///{shop}"), static=static)


@pytest.fixture
def explored(shop: Path, tmp_path: Path) -> Callable[..., Path]:
    """Write triplets of the shop, as an exploration does; returns the folder to give as ``explored``."""

    def write(*triplets: tuple[str, str], static: bool = False) -> Path:
        root, catalog = tmp_path / "explored", CATALOG
        store = TripletStore.open(folder_of(root, shop, static=static), catalog)
        for id, (sql, description) in enumerate(triplets, 1):
            marks = marks_of(used(sql, catalog).tables, catalog)
            store.add(
                Expansion(id, 0, "select_column", (), "", sql, "worked"),
                Triplet(id, sql, sql, description, marks),
            )
        failed = Expansion(90, 0, "join", (), "", "SELECT x FROM orders", "failed", "There is no column x.")
        store.add(failed)
        store.close()
        return root

    return write


CATALOG = Catalog(
    "shop",
    "sqlite",
    (
        Table(
            "customers",
            (Column("id", "INTEGER"), Column("name", "TEXT"), Column("city", "TEXT")),
        ),
        Table(
            "orders",
            (
                Column("id", "INTEGER"),
                Column("customer_id", "INTEGER"),
                Column("total", "REAL"),
                Column("note", "TEXT"),
            ),
        ),
    ),
)


async def test_one_round_takes_four_calls_and_one_query(ask: Callable[..., Any]) -> None:
    ran = await ask(agents())
    assert ran.calls() == {"info_agent": 1, "context_expander": 1, "gen_agent": 1, "validator": 1}
    assert ran.answer.usage["queries"] == 1
    assert ran.answer.sql == GOOD
    assert ran.answer.candidates[0].approved is True


async def test_the_gen_agent_sees_the_triplets_nearest_to_the_question(
    ask: Callable[..., Any], explored: Callable[..., Path]
) -> None:
    ran = await ask(agents(), explored=explored(*TRIPLETS), max_triplets=1)
    prompt = ran.prompt("gen_agent")
    assert TRIPLETS[0][0] in prompt
    assert TRIPLETS[0][1] in prompt
    assert TRIPLETS[1][0] not in prompt
    (event,) = ran.of("examples")
    assert event["triplets"] == [1]
    assert event["embedder"] == "lexical"


async def test_without_an_exploration_it_works_and_shows_no_example(ask: Callable[..., Any]) -> None:
    ran = await ask(agents())
    assert "<example_sql>" not in ran.prompt("gen_agent")
    assert ran.of("examples")[0]["triplets"] == []


async def test_triplets_of_a_table_that_changed_are_not_shown_and_that_is_said(
    shop: Path, tmp_path: Path, explored: Callable[..., Path]
) -> None:
    folder = explored(*TRIPLETS)
    with sqlite3.connect(shop) as database:
        database.execute("ALTER TABLE customers ADD COLUMN street TEXT")
    database.close()
    given = {"recipe": "sqlagent", "explored": folder}
    ran = await run_graph(tmp_path / "home", f"sqlite:///{shop}", agents(), **given)
    assert ran.of("examples")[0]["triplets"] == [2]
    assert any("1 of 2 explored triplets are of tables that changed" in text for text in ran.answer.warnings)


async def test_a_damaged_file_of_triplets_is_said_and_ends_nothing(
    ask: Callable[..., Any], explored: Callable[..., Path], shop: Path
) -> None:
    folder = explored(*TRIPLETS)
    (folder_of(folder, shop) / "triplets.sqlite").write_bytes(b"SQLite format 3\0" + b"\1" * 4000)
    ran = await ask(agents(), explored=folder)
    assert ran.answer.status == "answered"
    assert any("cannot be read" in text for text in ran.answer.warnings)


async def test_a_failed_round_prunes_what_its_query_did_not_use_and_looks_for_more(
    ask: Callable[..., Any],
) -> None:
    first = "SELECT COUNT(*), town FROM customers WHERE id > 0"
    said = agents(
        gen_agent=[written(first), written(GOOD)],
        context_expander=[
            {"reasoning": "So.", "add": ["customers.id", "orders.note"]},
            {"reasoning": "So.", "add": ["orders.customer_id"]},
        ],
    )
    ran = await ask(said)
    assert ran.calls()["info_agent"] == 2
    assert first in ran.prompt("info_agent", 1)
    assert "Looked for already: city, order" in ran.prompt("info_agent", 1)
    assert first in ran.prompt("gen_agent", 1)
    assert ran.answer.sql == GOOD
    assert ran.answer.candidates[0].repairs == 1


WIDE = Table("orders", tuple(Column(f"column_{n}", "TEXT") for n in range(30)))


@pytest.mark.parametrize(("pruning", "left"), [(True, ["column_1"]), (False, ["column_1", "column_2"])])
def test_switch_pruning(pruning: bool, left: list[str]) -> None:
    catalog = Catalog("shop", "sqlite", (WIDE,))
    before = Grounding(1, [], ["orders"], [("orders", "column_1"), ("orders", "column_2")])
    failed = [Attempt("SELECT column_1 FROM orders", "It failed.")]
    assert [column for _, column in _kept(before, failed, catalog, pruning)] == left
    unreadable = [Attempt("SELECT FROM WHERE", "It failed.")]
    assert len(_kept(before, unreadable, catalog, pruning)) == 2


async def test_a_mismatch_begins_another_round(ask: Callable[..., Any]) -> None:
    other = "SELECT city, COUNT(*) FROM customers GROUP BY city"
    said = agents(gen_agent=[written(other), written(GOOD)], validator=[REJECTED, FINE])
    ran = await ask(said)
    assert ran.calls() == {"info_agent": 2, "context_expander": 2, "gen_agent": 2, "validator": 2}
    assert "Count orders, not customers." in ran.prompt("gen_agent", 1)
    assert ran.answer.sql == GOOD


async def test_after_the_last_round_the_best_effort_is_not_approved(ask: Callable[..., Any]) -> None:
    ran = await ask(agents(validator=REJECTED), max_rounds=2)
    assert ran.calls()["gen_agent"] == 2
    assert ran.answer.candidates[0].approved is False
    assert ran.answer.confidence < 0.4


async def test_a_second_empty_result_is_believed(ask: Callable[..., Any]) -> None:
    ran = await ask(agents(gen_agent=[written(EMPTY), written(EMPTY.replace("city FROM", "name FROM"))]))
    assert ran.calls()["gen_agent"] == 2
    assert ran.answer.row_count == 0


async def test_the_info_agent_knows_the_tables_names(ask: Callable[..., Any]) -> None:
    prompt = (await ask(agents())).prompt("info_agent")
    assert "<tables>\ncustomers, orders\n</tables>" in prompt
    assert "customer_id" not in prompt


async def test_examples_are_of_several_branches(
    ask: Callable[..., Any], explored: Callable[..., Path], shop: Path
) -> None:
    folder = explored(*TRIPLETS)
    store = TripletStore.open(folder_of(folder, shop), CATALOG)
    for id in (91, 92):  # grown from the nearest one
        sql = f"{TRIPLETS[0][0]} HAVING COUNT(*) > {id}"
        triplet = Triplet(id, sql, sql, f"{TRIPLETS[0][1]} More than {id}", marks_of(["customers"], CATALOG))
        store.add(Expansion(id, 1, "having", (), "", sql, "worked"), triplet)
    store.close()
    ran = await ask(agents(), explored=folder, max_triplets=3)
    found = ran.of("examples")[0]["triplets"]
    assert set(found[:2]) == {1, 2}
    assert len(found) == 3


async def test_switch_info(ask: Callable[..., Any]) -> None:
    ran = await ask(agents(), info="search")
    assert "info_agent" not in ran.calls()
    assert ran.of("grounding")[0]["tables"]


async def test_switch_expansion(ask: Callable[..., Any]) -> None:
    assert "context_expander" not in (await ask(agents(), expansion=False)).calls()


async def test_switch_fidelity(ask: Callable[..., Any]) -> None:
    ran = await ask(agents(validator=REJECTED), fidelity=False)
    assert "validator" not in ran.calls()
    assert ran.calls()["gen_agent"] == 1


async def test_switch_knowledge(ask: Callable[..., Any], explored: Callable[..., Path]) -> None:
    explored(*TRIPLETS)
    folder = explored(("SELECT name FROM customers", "Which customers are there, by city?"), static=True)
    prompts = {
        knowledge: (await ask(agents(), explored=folder, knowledge=knowledge)).prompt("gen_agent")
        for knowledge in ("triplets", "static", "trajectories", "none")
    }
    assert TRIPLETS[0][1] in prompts["triplets"]
    assert "Which customers are there, by city?" in prompts["static"]
    assert TRIPLETS[0][1] not in prompts["static"]
    assert "There is no column x." in prompts["trajectories"]
    assert "<example_sql>" not in prompts["none"]


async def test_switch_retrieval(ask: Callable[..., Any], explored: Callable[..., Path]) -> None:
    """The schema in question brings in a triplet that shares no word with the question."""
    folder = explored(("SELECT note FROM orders", "What remarks are there?"))
    question = "Were there complaints?"
    joint = await ask(agents(), explored=folder, question=question, info="search")
    words = await ask(agents(), explored=folder, question=question, info="search", retrieval="keywords")
    assert joint.of("examples")[0]["triplets"] == [1]
    assert words.of("examples")[0]["triplets"] == []


async def test_switch_max_tables(ask: Callable[..., Any]) -> None:
    ran = await ask(agents(), max_tables=1)
    assert len(ran.of("grounding")[0]["tables"]) == 1


async def test_what_the_expander_names_is_shown_and_what_it_invents_is_not(ask: Callable[..., Any]) -> None:
    said = agents(context_expander={"reasoning": "So.", "add": ['"orders"."note"', "orders.nonsense", "x.y"]})
    ran = await ask(said, max_tables=1)
    prompt = ran.prompt("gen_agent")
    assert "note TEXT" in prompt
    assert "nonsense" not in prompt


@pytest.mark.parametrize(("recipe", "writer"), [("quorum", "sql_writer"), ("team", "action")])
async def test_own_recipes_show_what_bears_on_the_question(
    recipe: str, writer: str, run: Run, explored: Callable[..., Path]
) -> None:
    folder = explored(*TRIPLETS)
    near = "How many customers are there in each city?"
    ran = await run(script(), recipe=recipe, explored=folder, question=near)
    assert "[explored queries]" in ran.prompt(writer)
    assert TRIPLETS[0][0] in ran.prompt(writer)
    far = await run(script(), recipe=recipe, explored=folder)
    assert TRIPLETS[0][1] not in far.prompt(writer), "it shares one word with the question"


async def test_papers_recipes_show_none_unasked(run: Run, explored: Callable[..., Path]) -> None:
    asked = "How many customers are there in each city?"
    ran = await run(
        {"sql_writer": written(GOOD)}, recipe="single", explored=explored(*TRIPLETS), question=asked
    )
    assert "[explored queries]" not in ran.prompt("sql_writer")


def _state(**given: Any) -> CandidateState:
    return CandidateState(question=QUESTION, **given)


RESULT = Result("f", "a", "a", False, False, ["n"], 0, 1, "", [[1]], [0], [1], ["int"])


@pytest.mark.parametrize(
    ("state", "outcome"),
    [
        (_state(error=Failure("syntax", "No.")), "execution_failed"),
        (_state(result=RESULT, approved=False), "semantic_mismatch"),
        (_state(result=RESULT, approved=True), "success"),
        (_state(result=RESULT), "success"),
    ],
)
def test_a_round_has_three_outcomes(state: CandidateState, outcome: str) -> None:
    assert round_outcome(state) == outcome


def test_rounds_end_in_time() -> None:
    rounds = Rounds(2, max_empty=1)
    failed = partial(_state, error=Failure("syntax", "No."), sql="SELECT")
    assert rounds.after_run(failed(grounding=Grounding(1))) == "ground"
    assert rounds.after_run(failed(grounding=Grounding(2))) == "finish"
    assert rounds.after_run(_state(error=Failure("unavailable", "Gone."))) == "finish"
    mismatch = partial(_state, result=RESULT, approved=False)
    assert rounds.after_check(mismatch(grounding=Grounding(1))) == "ground"
    assert rounds.after_check(mismatch(grounding=Grounding(2))) == "finish"
