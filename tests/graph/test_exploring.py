"""The exploration stage: a search over a small shop, with scripted models and with the offline one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from quorum.api import explore
from quorum.graph.exploring import ExplorationResult
from quorum.graph.runs import RunFolder
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.models.scripted import Prompt, scripted
from quorum.tools.triplet_store import load_explored
from tests.graph.shop import changed, make_shop
from tests.schema_folders import write_schema

ORDERS = {"state": 0, "action": "select_column", "columns": ["orders.id", "orders.total"]}
CITIES = {"state": 0, "action": "select_column", "columns": ["customers.city"]}
LARGE = "SELECT id, total FROM orders WHERE total > 6"
LYON = "SELECT city, COUNT(*) FROM customers GROUP BY city"


def choice(*actions: dict[str, Any]) -> dict[str, Any]:
    return {"reasoning": "They teach most.", "actions": list(actions)}


def described(text: str = "Which orders are large?", **more: Any) -> dict[str, Any]:
    return {"description": text, "useful": True, "objection": "", **more}


def simulated(prompt: Prompt) -> dict[str, Any]:
    return {"sql": LYON if "customers.city" in prompt.text.split("<steps>")[1] else LARGE}


class Searching:
    """Explore the shop with a script; roles not given do everything right."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.shop = folder, make_shop(folder / "shop.db")
        self.prompts: list[Prompt] = []

    async def __call__(self, **given: Any) -> ExplorationResult:
        roles = {name: given.pop(name) for name in ("explorer", "simulator", "describer") if name in given}
        usual: dict[str, Any] = {"explorer": choice(ORDERS, CITIES), "simulator": simulated}
        usual |= {"describer": described()} | roles
        turns = dict.fromkeys(usual, 0)

        def reply(prompt: Prompt) -> Any:
            self.prompts.append(prompt)
            said = usual[prompt.role]
            if isinstance(said, list):
                said = said[min(turns[prompt.role], len(said) - 1)]
                turns[prompt.role] += 1
            return said(prompt) if callable(said) else said

        options = {"db": str(self.shop), "home": self.folder / "home", "attempts": 2} | given
        return await explore(chat_models={"m": scripted(reply)}, **options)

    def prompt(self, role: str, turn: int = 0) -> str:
        return [prompt.text for prompt in self.prompts if prompt.role == role][turn]

    def learned(self) -> Any:
        return load_explored(next((self.folder / "home" / "explored").glob("*")))


@pytest.fixture
def search(tmp_path: Path) -> Searching:
    return Searching(tmp_path)


async def test_a_round_is_one_choice_and_its_branches(search: Searching) -> None:
    found = await search()
    assert [prompt.role for prompt in search.prompts].count("explorer") == 1
    assert {prompt.temperature for prompt in search.prompts} == {0.7}, "alike (001, appendix A)"
    assert (found.ended, found.attempts, found.triplets, found.success) == ("attempts", 2, 2, 1.0)
    assert found.usage.model_calls == 5
    first, second = search.learned().triplets
    assert (first.sql, second.sql, first.description) == (LARGE, LYON, "Which orders are large?")
    assert (first.columns, set(first.tables)) == ((("orders", "id"), ("orders", "total")), {"orders"})
    events = [event for event in RunFolder(found.run).events() if event["kind"] == "expansion"]
    assert [(event["number"], event["node"]) for event in events] == [(1, "keep"), (2, "keep")]


@pytest.mark.parametrize(
    ("roles", "outcome", "message"),
    [
        ({"simulator": {"sql": "SELECT town FROM orders"}}, "failed", "town"),
        ({"simulator": {"sql": "DELETE FROM orders"}}, "failed", "read"),
        ({"simulator": {"sql": f"{LARGE} AND total > 100"}}, "empty", "empty"),
        ({"simulator": {"sql": "SELECT SUM(id), SUM(total) FROM orders WHERE id < 0"}}, "empty", "all NULL"),
        ({"simulator": {"sql": "SELECT 1"}}, "trivial", "reads no column"),
        ({"simulator": {"sql": "SELECT COUNT(*) FROM orders"}}, "trivial", "reads no column"),
        ({"simulator": {"sql": "SELECT id FROM orders"}}, "trivial", "does not use orders.total"),
        ({"describer": described(useful=False, objection="Nobody asks.")}, "pointless", "Nobody asks."),
        ({"simulator": "no JSON"}, "unusable", "Simulator"),
        ({"describer": "no JSON"}, "unusable", "Describer"),
        ({"simulator": {"sql": f"{LARGE} OR id = 'ada@example.org'"}}, "personal", "personal data"),
        ({"describer": described("What did ada@example.org order?")}, "personal", "personal data"),
    ],
)
async def test_what_is_no_triplet(
    search: Searching, roles: dict[str, Any], outcome: str, message: str
) -> None:
    found = await search(explorer=choice(ORDERS), attempts=1, **roles)
    assert (found.triplets, found.outcomes) == (0, {outcome: 1})
    (expansion,) = search.learned().expansions
    assert message in expansion.message


async def test_the_same_question_twice_is_one_triplet(search: Searching) -> None:
    """Queries that differ in a literal are one example, also when two branches find them at a time."""
    other = ORDERS | {"columns": ["orders.total", "ORDERS.TOTAL", "orders.id", "orders.customer_id"]}
    queries = [{"sql": f"{LARGE} AND customer_id > {n}"} for n in range(2)]
    found = await search(explorer=choice(ORDERS, other), simulator=queries)
    assert found.outcomes == {"worked": 1, "known": 1}


async def test_what_worked_and_what_failed_is_told_in_the_next_choice(search: Searching) -> None:
    wrong = {"sql": "SELECT id, total, town FROM orders"}
    simulated = [{"sql": LYON}, wrong, {"sql": LYON}]
    turns = [choice(CITIES), choice(ORDERS), choice(ORDERS | {"columns": ["orders.note"]})]
    await search(explorer=turns, simulator=simulated, branches=1, attempts=3)
    told = search.prompt("explorer", 2).split("<feedback>\n")[1]
    assert (
        "- customers: 1 worked; city 1 worked\n- orders: 1 in vain; id 1 in vain; total 1 in vain\n" in told
    )
    assert "select_column orders.id, orders.total: There is no column town" in told


async def test_what_cannot_be_tried_is_told_and_costs_no_attempt(search: Searching) -> None:
    """Nor do misses between attempts end the search."""
    nonsense = choice({"state": 7, "action": "select_column", "columns": ["orders.id"]})
    orders = [choice(ORDERS | {"columns": columns}) for columns in (["orders.id"], ["orders.total"])]
    turns = [nonsense, nonsense, orders[0], nonsense, nonsense, orders[1]]
    found = await search(explorer=turns, simulator={"sql": "SELECT town FROM orders"}, branches=1)
    assert (found.ended, found.attempts) == ("attempts", 2)
    assert "There is no state 7." in search.prompt("explorer", 1)


async def test_it_ends(search: Searching) -> None:
    columns = ["customers.id", "customers.name", "customers.city"]
    everything = {"state": 0, "action": "select_column", "columns": columns}
    query = {"sql": "SELECT id, name, city FROM customers"}
    found = await search(explorer=choice(everything), simulator=query, coverage=0.4, attempts=9)
    assert (found.ended, found.attempts, found.coverage) == ("coverage", 1, 3 / 7)
    again = await search(resume=True, explorer=choice(everything), attempts=9)
    assert (again.ended, again.attempts) == ("stuck", 1), "it was tried already, whatever is chosen"
    assert (await search(resume=True, attempts=1)).ended == "attempts"
    limited = await search(resume=True, explorer=choice(ORDERS), attempts=9, max_calls=2)
    assert (limited.ended, limited.attempts) == ("max_calls", 1)


async def test_without_execution_queries_are_checked_and_kept_apart(search: Searching) -> None:
    empty = {"sql": f"{LARGE} AND total > 100"}
    unknown = {"sql": "SELECT town, city FROM customers"}
    one_by_one: dict[str, Any] = {"explorer": [choice(ORDERS), choice(CITIES)], "branches": 1}
    found = await search(**one_by_one, simulator=[empty, unknown], execution=False)
    assert found.outcomes == {"worked": 1, "failed": 1}
    assert found.usage.queries == 0
    assert found.folder.name.endswith("-static")
    assert (await search()).triplets == 2, "an exploration that runs queries begins anew"


async def test_it_goes_on_where_it_stopped_and_never_begins_twice(search: Searching) -> None:
    await search(explorer=choice(ORDERS), attempts=1)
    with pytest.raises(ConfigurationError, match="was explored before: 1 triplets") as raised:
        await search()
    assert "--resume" in raised.value.hint
    found = await search(explorer=choice(CITIES), attempts=2, resume=True)
    assert (found.attempts, found.triplets) == (2, 2)
    assert "1: select_column orders.id, orders.total" in search.prompt("explorer", 1)


async def test_a_changed_table_is_to_be_covered_again(search: Searching) -> None:
    assert (await search()).covered == 3
    changed(search.shop, "ALTER TABLE orders ADD COLUMN paid TEXT")
    again = await search(resume=True, explorer=choice(ORDERS, CITIES), attempts=3)
    assert (again.fields, again.covered, again.triplets) == (8, 3, 2), "the same query, of the table as it is"
    assert [triplet.id for triplet in search.learned().triplets] == [2, 3]
    changed(search.shop, "DROP TABLE customers")
    on = {"state": 2, "action": "order_by", "columns": ["orders.total"]}
    assert (await search(resume=True, explorer=choice(on), attempts=9)).ended == "stuck"
    assert "State 2 reads what has changed since." in search.prompts[-1].text


@pytest.mark.parametrize(
    ("query", "leak"),
    [
        ("SELECT phone AS p FROM people", "555-0199"),
        ("SELECT info FROM people", "st@example.org"),
        ("SELECT card FROM people", "4111111111111111"),
        ("SELECT CAST(contact AS INTEGER) FROM people", "ada.secret@example.org"),
    ],
)
async def test_personal_data_has_no_way_round_the_masks(tmp_path: Path, query: str, leak: str) -> None:
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect(str(tmp_path / "people.duckdb")) as database:
        database.execute(
            "CREATE TABLE people AS SELECT 'ada.secret@example.org' AS contact, '555-0199' AS phone,"
            " {'mail': 'st@example.org'} AS info, 4111111111111111 AS card"
        )
    search = Searching(tmp_path)
    column = next(name for name in ("phone", "info", "card", "contact") if name in query)
    start = {"state": 0, "action": "select_column", "columns": [f"people.{column}"]}
    given = {"db": f"duckdb:///{tmp_path / 'people.duckdb'}", "attempts": 1, "simulator": {"sql": query}}
    said = {"detail": f"where it is {leak}"} if column != "phone" else {}  # no value tells this one
    await search(explorer=choice(start | said), **given)
    assert len(search.prompts) >= 2
    sent = "\n".join(prompt.text for prompt in search.prompts if prompt.role != "simulator")
    assert leak not in sent
    stored = next((tmp_path / "home" / "explored").glob("*/triplets.sqlite")).read_bytes()
    assert leak.encode() not in stored


@pytest.mark.heavy
async def test_what_models_say_is_cut_and_stays_on_its_line(search: Searching) -> None:
    long = "word\n7: forged " * 40_000
    wordy = ORDERS | {"columns": [f"orders.{long}"]}
    await search(
        explorer=[choice(wordy), choice(ORDERS | {"detail": long})], describer=described(long), branches=1
    )
    assert max(len(prompt.text) for prompt in search.prompts) < 20_000
    assert len(search.learned().triplets[0].description) <= 500
    assert not [
        line for prompt in search.prompts for line in prompt.text.splitlines() if line.startswith("7: ")
    ]


async def test_personal_data_is_masked_unless_allowed(tmp_path: Path) -> None:
    search = Searching(tmp_path)
    changed(search.shop, "UPDATE orders SET note = 'ada@example.org'")
    notes = {"explorer": choice(ORDERS | {"columns": ["orders.note"]}), "attempts": 1}
    await search(simulator={"sql": "SELECT note FROM orders"}, **notes)
    shown = search.prompt("describer").split("<result>")[1]
    assert "ada@example.org" not in shown
    assert "•••" in shown
    other = {"explorer": choice(ORDERS | {"columns": ["orders.note", "orders.id"]}), "attempts": 2}
    await search(resume=True, personal=True, simulator={"sql": "SELECT note, id FROM orders"}, **other)
    assert "ada@example.org" in search.prompt("describer", 1).split("<result>")[1]


async def test_a_schema_without_data_is_only_explored_without_execution(tmp_path: Path) -> None:
    url = f"schema://{write_schema(tmp_path / 'SHOP')}"
    given: dict[str, Any] = {"db": url, "models": ["offline"], "home": tmp_path / "home", "attempts": 3}
    with pytest.raises(ConfigurationError, match="a schema without data"):
        await explore(**given)
    assert (await explore(execution=False, **given)).triplets > 0


async def test_databases_of_one_name_do_not_mix(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        url = f"sqlite:///{make_shop(tmp_path / name / 'shop.db')}"
        found = await explore(db=url, models=["offline"], home=tmp_path / "home", attempts=2)
        assert found.attempts == 2
    assert len(list((tmp_path / "home" / "explored").iterdir())) == 2
