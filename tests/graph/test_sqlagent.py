"""The recipe ``sqlagent``: grounding and writing in rounds, with what an exploration found."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quorum.graph.nodes.synthesis import round_outcome, unused
from quorum.graph.state import CandidateState, Failure, Grounding, Result
from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.search.columns import ColumnIndex
from quorum.knowledge.triplets import Expansion, Triplet, explored_folder
from quorum.tools.sql.linking import marks_of, used
from quorum.tools.triplet_store import TripletStore
from quorum.tools.urls import location
from tests.graph.shop import FINE, GOOD, QUESTION, Run, changed, of_recipe, run_graph, script, written
from tests.knowledge.letters import Letters

BROKEN = "SELECT town FROM customers"
EMPTY = "SELECT city FROM customers WHERE city = 'Nowhere'"
REJECTED = FINE | {"valid_result": False, "suggest_fix": "Count orders, not customers."}
TRIPLETS = (
    ("SELECT city, COUNT(*) FROM customers GROUP BY city", "How many customers live in each city?"),
    ("SELECT total FROM orders ORDER BY total DESC LIMIT 1", "What was the largest order?"),
)


Explored = Callable[..., Path]


@pytest.fixture
def ask(run: Run) -> Run:
    """Run the recipe; switches are given by name beside the options."""
    return of_recipe(run, "sqlagent")


def folder_of(root: Path, shop: Path, *, static: bool = False) -> Path:
    return explored_folder(root, CATALOG, location(f"sqlite:///{shop}"), static=static)


def keep(store: TripletStore, id: int, sql: str, description: str, *, parent: int = 0) -> None:
    """Store a triplet, as an exploration does."""
    marks = marks_of(used(sql, CATALOG).tables, CATALOG)
    step = Expansion(id, parent, "select_column", (), "", sql, "worked")
    store.add(step, Triplet(id, sql, sql, description, marks))


@pytest.fixture
def explored(shop: Path, tmp_path: Path) -> Explored:
    """Write triplets of the shop; returns the folder to give as ``explored``."""

    def write(*triplets: tuple[str, str], static: bool = False) -> Path:
        store = TripletStore.open(folder_of(tmp_path / "explored", shop, static=static), CATALOG)
        for id, triplet in enumerate(triplets, 1):
            keep(store, id, *triplet)
        store.add(Expansion(90, 0, "join", (), "", "SELECT x FROM orders", "failed", "There is no column x."))
        store.close()
        return tmp_path / "explored"

    return write


def table(name: str, columns: str) -> Table:
    return Table(name, tuple(Column(*each.split()) for each in columns.split(", ")))


CATALOG = Catalog(
    "shop",
    "sqlite",
    (
        table("customers", "id INTEGER, name TEXT, city TEXT"),
        table("orders", "id INTEGER, customer_id INTEGER, total REAL, note TEXT"),
    ),
)


async def test_the_gen_agent_sees_the_triplets_nearest_to_the_question(ask: Run, explored: Explored) -> None:
    ran = await ask(script(), explored=explored(*TRIPLETS), max_triplets=1)
    prompt = ran.prompt("gen_agent")
    assert [text in prompt for text in (*TRIPLETS[0], TRIPLETS[1][0])] == [True, True, False]
    (event,) = ran.of("examples")
    assert (event["triplets"], event["embedder"]) == ([1], "lexical")
    without = await ask(script())
    assert "<example_sql>" not in without.prompt("gen_agent")
    assert without.of("examples")[0]["triplets"] == []


async def test_triplets_of_a_changed_table_or_in_a_damaged_file_are_not_shown_and_that_is_said(
    shop: Path, tmp_path: Path, explored: Explored
) -> None:
    folder = explored(*TRIPLETS)
    url = changed(shop, "ALTER TABLE customers ADD COLUMN street TEXT")
    given = {"recipe": "sqlagent", "explored": folder}
    ran = await run_graph(tmp_path / "home", url, script(), **given)
    assert ran.of("examples")[0]["triplets"] == [2]
    assert any("1 of 2 explored triplets are of tables that changed" in text for text in ran.answer.warnings)
    (folder_of(folder, shop) / "triplets.sqlite").write_bytes(b"SQLite format 3\0" + b"\1" * 4000)
    ran = await run_graph(tmp_path / "home", url, script(), **given)
    assert ran.answer.status == "answered"
    assert any("cannot be read" in text for text in ran.answer.warnings)


EIGHT = {
    **{"customers": "id, name, city", "invoices": "id, customer_id, amount"},
    **{"shipments": "id, customer_id, sent", "returns": "id, customer_id, reason"},
    **{"suppliers": "id, company, phone", "warehouses": "id, place, size"},
    **{"products": "id, title, price", "employees": "id, surname, salary"},
}
TOWNS = {"keywords": ["customers", "town"]}
NEXT = [TOWNS, *({"keywords": [word]} for word in ("place", "city", "invoice", "address"))]
FIRST = ["customers", "invoices", "shipments"]
MENDED = [FIRST, ["customers", "warehouses"], ["customers"], ["customers", "invoices"], ["customers"]]


async def test_what_each_round_grounds(tmp_path: Path, subtests: pytest.Subtests) -> None:
    """Search, expand, prune: what the failed query named stays, and nothing comes that no keyword means."""
    given: dict[str, Any] = {"question": "In which town do the customers live?", "recipe": "sqlagent"}
    for names in (list(EIGHT), list(EIGHT)[:2]):
        tables = (f"CREATE TABLE {name} ({EIGHT[name]})" for name in names)
        url = changed(tmp_path / f"{len(names)}.db", *tables)
        for keywords, pruning, grounded in (
            (TOWNS, True, [FIRST, *[["customers"]] * 4]),
            (TOWNS, False, [FIRST] * 5),
            (NEXT, True, MENDED),
            (NEXT, False, [FIRST, *[[*FIRST, "warehouses"]] * 4]),
        ):
            with subtests.test(names=names, keywords=keywords, pruning=pruning):
                said = script(info_agent=keywords, gen_agent=written(BROKEN))
                ran = await run_graph(tmp_path / "home", url, said, **given, switches={"pruning": pruning})
                expected = [[name for name in each if name in names] for each in grounded]
                assert [event["tables"] for event in ran.of("grounding")] == expected
                last = ran.prompt("gen_agent", -1)
                assert [name for name in EIGHT if f"table {name} (" in last] == expected[-1]


async def test_secondary_keywords_are_found_and_what_the_expander_adds_is_pruned_too(ask: Run) -> None:
    first = "SELECT COUNT(*), town FROM customers WHERE id > 0"
    adds = {"reasoning": "So.", "add": ["orders.note"]}
    said = script(
        info_agent=[{"keywords": ["city"]}, {"keywords": ["customer"]}],
        gen_agent=[written(first), written(GOOD)],
        context_expander=adds,
    )
    ran = await ask(said)
    assert first in ran.prompt("info_agent", 1)
    assert "Looked for already: city" in ran.prompt("info_agent", 1)
    assert "table orders" in ran.prompt("context_expander", 1), "it is pruned after the expansion"
    assert first in ran.prompt("gen_agent", 1)
    assert [event["tables"] for event in ran.of("grounding")] == [["customers", "orders"], ["customers"]]
    assert ran.of("pruning")[0]["tables"] == ["orders"]
    assert ran.answer.sql == GOOD
    assert ran.answer.candidates[0].repairs == 1


async def test_what_the_context_lacks_is_searched_for_until_every_table_was_seen(tmp_path: Path) -> None:
    """``missing`` of a part of the schema is a failed round; of the whole schema it is the answer."""
    tables = (f"CREATE TABLE {name} ({columns})" for name, columns in EIGHT.items())
    url = changed(tmp_path / "eight.db", *tables, "INSERT INTO warehouses VALUES (1, 'Ghent', 10)")
    lacks = {"reasoning": "None.", "missing": "Where goods are kept is not there.", "sql": None}
    given = {"recipe": "sqlagent", "question": "Where are the goods kept?"}
    said = script(
        info_agent=[{"keywords": ["goods"]}, {"keywords": ["warehouses place"]}],
        gen_agent=[lacks, written("SELECT place FROM warehouses")],
    )
    ran = await run_graph(tmp_path / "home", url, said, **given)
    assert "<missing>\nWhere goods are kept is not there." in ran.prompt("info_agent", 1)
    assert "<earlier_sql>" not in ran.prompt("info_agent", 1) + ran.prompt("gen_agent", 1)
    assert ran.calls()["gen_agent"] == 2
    words: list[list[str]] = [
        ["customers city"],
        ["customers customer city, invoices"],
        ["product", "id title"],
    ]
    said = script(
        info_agent=[{"keywords": each} for each in words],
        gen_agent=[lacks, lacks, written("SELECT COUNT(amount) FROM invoices")],
    )
    ran = await run_graph(tmp_path / "home", url, said, switches={"max_tables": 1}, **given)
    grounded = [set(event["tables"]) for event in ran.of("grounding")]
    assert grounded == [{"customers"}, {"customers", "invoices"}, {"customers", "invoices", "products"}]
    said = script(info_agent={"keywords": ["goods"]}, gen_agent=lacks)
    ran = await run_graph(tmp_path / "home", url, said, switches={"max_rounds": 3}, **given)
    assert (ran.calls()["gen_agent"], ran.answer.status) == (3, "unanswerable")
    said = script(info_agent={"keywords": list(EIGHT)}, gen_agent=lacks)
    ran = await run_graph(tmp_path / "home", url, said, switches={"max_tables": 8}, **given)
    assert (ran.calls()["gen_agent"], ran.answer.status) == (1, "unanswerable")


WIDE = Table("wide", tuple(Column(f"c{n}", "TEXT") for n in range(30)))
SHARDS = tuple(Table(f"day_{n}", tuple(Column(f"c{m}", "TEXT") for m in range(30, 60))) for n in range(1, 4))
BROAD = Catalog("shop", "sqlite", (WIDE, *SHARDS, *CATALOG.tables))


@pytest.mark.parametrize(
    ("sql", "kept"),
    [
        ("SELECT c1 FROM wide", {"wide.c1"}),
        ("SELECT COUNT(*) FROM wide", {"wide.c1", "wide.c2"}),
        ("SELECT c1, nonsense FROM wide", {"wide.c1", "wide.c2"}),
        ("SELECT c30 FROM day_3", {"day_1.c30"}),
        ("SELECT total FROM orders", {"orders.id", "orders.total"}),
        ("SELECT town FROM orders JOIN wide ON 1", {"wide.c1", "wide.c2", "orders.id", "orders.total"}),
        ("SELECT town FROM towns", None),
        ("SELECT FROM WHERE", None),
    ],
)
def test_what_a_failed_query_named_is_not_pruned(sql: str, kept: set[str] | None) -> None:
    context = ["wide.c1", "wide.c2", "day_1.c30", "day_1.c31", "orders.id", "orders.total", "customers.city"]
    places = [(table, column) for table, _, column in (each.partition(".") for each in context)]
    lost = unused(places, sql, BROAD, ColumnIndex(BROAD).first)
    assert {".".join(place) for place in places if place not in lost} == (kept or {*context})


async def test_switch_max_columns(tmp_path: Path) -> None:
    url = changed(tmp_path / "wide.db", f"CREATE TABLE wide ({', '.join(f'size_{n}' for n in range(30))})")
    given = {"recipe": "sqlagent", "question": "Which size?", "switches": {"max_columns": 4}}
    said = script(info_agent={"keywords": ["size"]}, gen_agent=written("SELECT size_1 FROM wide"))
    ran = await run_graph(tmp_path / "home", url, said, **given)
    assert ran.of("grounding")[0]["columns"] == 4


@pytest.mark.parametrize("named", [False, True])
async def test_switch_table_names(
    named: bool, shop: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Unless it is on, an embedder sees a column's text as the paper has it."""
    pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")
    seen: list[str] = []

    class Seen(Letters):
        def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
            seen.extend(texts)
            return super().encode(texts)

    monkeypatch.setattr("quorum.graph.resources.open_embedder", lambda *_, **__: Seen())
    given = {"recipe": "sqlagent", "switches": {"table_names": named}}
    await run_graph(tmp_path / "home", f"sqlite:///{shop}", script(), **given)
    text = "[Name]: city; [Type]: TEXT; [Desc]: "
    assert (text in seen) is not named
    assert (f"[Table]: customers; {text}" in seen) is named


async def test_all_tables_of_a_shared_field_group_are_shown(tmp_path: Path) -> None:
    sales = (f"CREATE TABLE sales_{year} (day, amount)" for year in range(2019, 2024))
    url = changed(tmp_path / "shards.db", *sales)
    said = script(info_agent={"keywords": ["amount"]}, gen_agent=written("SELECT amont FROM sales_2021"))
    given = {"recipe": "sqlagent", "question": "What was sold in 2021?", "switches": {"max_rounds": 2}}
    ran = await run_graph(tmp_path / "home", url, said, **given)
    for round in range(2):
        assert "sales_{2019..2023}" in ran.prompt("gen_agent", round)


async def test_after_the_last_round_the_best_effort_is_not_approved(ask: Run) -> None:
    ran = await ask(script(validator=REJECTED), max_rounds=2)
    assert ran.calls()["gen_agent"] == 2
    assert ran.answer.candidates[0].approved is False
    assert ran.answer.confidence <= 0.4


async def test_the_info_agent_knows_the_tables_names(ask: Run) -> None:
    prompt = (await ask(script())).prompt("info_agent")
    assert "<tables>\ncustomers, orders\n</tables>" in prompt
    assert "customer_id" not in prompt


async def test_examples_are_of_several_branches(ask: Run, explored: Explored, shop: Path) -> None:
    others = ((f"SELECT note FROM orders LIMIT {n}", f"Which remarks are there, {n}?") for n in range(9))
    folder = explored(*TRIPLETS, *others)
    store = TripletStore.open(folder_of(folder, shop), CATALOG)
    for id in (91, 92):  # grown from the nearest one
        sql, description = (f"{TRIPLETS[0][0]} HAVING COUNT(*) > {id}", f"{TRIPLETS[0][1]} More than {id}")
        keep(store, id, sql, description, parent=1)
    store.close()
    question = "How many customers live in each city, in order?"
    ran = await ask(script(), explored=folder, max_triplets=3, question=question, retrieval="keywords")
    found = ran.of("examples")[0]["triplets"]
    assert (len(found), found[1]) == (3, 2), "of another branch, and farther"


async def test_a_switch_leaves_an_agent_out(ask: Run) -> None:
    for switches, gone in (
        ({"info": "search"}, "info_agent"),
        ({"expansion": False}, "context_expander"),
        ({"fidelity": False}, "validator"),
    ):
        ran = await ask(script(validator=[REJECTED, FINE]), **switches)
        assert gone not in ran.calls()
        assert ran.calls()["gen_agent"] == (1 if gone == "validator" else 2)
        assert ran.of("grounding")[0]["tables"]


async def test_switch_knowledge(ask: Run, explored: Explored) -> None:
    explored(*TRIPLETS)
    folder = explored(("SELECT name FROM customers", "Which customers are there, by city?"), static=True)
    prompts = {
        knowledge: (await ask(script(), explored=folder, knowledge=knowledge)).prompt("gen_agent")
        for knowledge in ("triplets", "static", "trajectories", "none")
    }
    assert TRIPLETS[0][1] in prompts["triplets"]
    assert "Which customers are there, by city?" in prompts["static"]
    assert TRIPLETS[0][1] not in prompts["static"]
    assert "There is no column x." in prompts["trajectories"]
    assert "<example_sql>" not in prompts["none"]


async def test_switch_retrieval(ask: Run, explored: Explored) -> None:
    """The schema in question brings in a triplet that shares no word with the question."""
    folder = explored(("SELECT note FROM orders", "What remarks are there?"))
    question = "Were there complaints?"
    said = script(info_agent={"keywords": ["note"]})
    joint = await ask(said, explored=folder, question=question)
    words = await ask(said, explored=folder, question=question, retrieval="keywords")
    assert joint.of("examples")[0]["triplets"] == [1]
    assert words.of("examples")[0]["triplets"] == []


async def test_what_the_expander_names_is_shown_and_what_it_invents_is_not(ask: Run) -> None:
    adds = {"reasoning": "So.", "add": ['"orders"."note"', "orders.nonsense", "x.y"]}
    ran = await ask(script(info_agent={"keywords": ["city"]}, context_expander=adds), max_tables=1)
    seen = ran.prompt("context_expander").split("<schema>\n")[1]
    assert "table customers" in seen
    assert "table orders" not in seen, "the search brings in one table"
    prompt = ran.prompt("gen_agent")
    assert "note TEXT" in prompt
    assert "nonsense" not in prompt


async def test_own_recipes_show_what_bears_on_the_question(run: Run, explored: Explored) -> None:
    folder = explored(*TRIPLETS)
    for recipe, writer in (("quorum", "sql_writer"), ("team", "action"), ("single", "sql_writer")):
        near = "How many customers are there in each city?"
        ran = await run(script(), recipe=recipe, explored=folder, question=near)
        shown = [text in ran.prompt(writer) for text in ("[explored queries]", TRIPLETS[0][0])]
        assert shown == [recipe != "single"] * 2
        far = await run(script(), recipe=recipe, explored=folder)
        assert TRIPLETS[0][1] not in far.prompt(writer), "it shares one word with the question"


RESULT = Result("f", "a", "a", False, False, ["n"], 0, 1, "", [[1]], [0], [1], ["int"])


_state = partial(CandidateState, question=QUESTION)
FAILED, NO_ROW = Failure("syntax", "No."), Failure("empty_result", "No row.")


def test_outcomes_of_a_round(subtests: pytest.Subtests) -> None:
    for state, outcome in (
        (_state(result=RESULT), "success"),
        (_state(result=RESULT, approved=True), "success"),
        (_state(error=FAILED), "error"),
        (_state(error=NO_ROW), "empty"),
        (_state(result=RESULT, approved=False), "mismatch"),
        (_state(result=RESULT, approved=False, error=FAILED), "error"),
        (_state(error=FAILED, grounding=Grounding(2)), "end"),
        (_state(error=NO_ROW, grounding=Grounding(2)), "end"),
        (_state(result=RESULT, approved=False, grounding=Grounding(2)), "end"),
        (_state(result=RESULT, approved=True, grounding=Grounding(2)), "success"),
        (_state(error=Failure("unavailable", "Gone.")), "end"),
        (_state(stopped_by="max_calls"), "end"),
    ):
        with subtests.test(state=state):
            assert round_outcome(state, most=2) == outcome


async def test_after_every_run_the_router_is_asked(ask: Run) -> None:
    """An error, an empty result, a mismatch and a success lead where Algorithm 3 leads, for five rounds."""
    queries = [written(query) for query in (BROKEN, EMPTY, TRIPLETS[0][0], GOOD)]
    ran = await ask(script(gen_agent=queries, validator=[REJECTED, FINE]))
    nodes = [event["node"] for event in ran.events if event["kind"] in ("grounding", "query", "validation")]
    assert nodes == ["GenAgent", "run_sql"] * 2 + ["GenAgent", "run_sql", "Validator"] * 2
    assert ran.calls() == {"info_agent": 4, "context_expander": 4, "gen_agent": 4, "validator": 2}
    assert "Count orders, not customers." in ran.prompt("gen_agent", 3), "the mismatch is told"
    assert ran.answer.sql == GOOD
    empty = [written(EMPTY.replace("'Nowhere'", f"'Nowhere {n}'")) for n in range(5)]
    ran = await ask(script(gen_agent=empty))
    assert ran.calls() == {"info_agent": 5, "context_expander": 5, "gen_agent": 5}
    assert ran.answer.row_count == 0
