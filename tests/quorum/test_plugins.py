"""Recipes, roles and connectors of other packages: mostly the template of ``examples/recipe``."""

from __future__ import annotations

import configparser
import importlib
import json
import os
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest
from click.testing import CliRunner
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from quorum import Quorum
from quorum.agents import role
from quorum.cli import cli
from quorum.graph import builder
from quorum.graph.builder import build_graph
from quorum.graph.options import RunOptions
from quorum.graph.recipes import find_recipe
from quorum.graph.state import STATE_TYPES
from quorum.knowledge.errors import ConfigurationError
from quorum.tools import plugins
from quorum.tools.databases import connect
from quorum.tools.models.scripted import scripted
from tests.graph.shop import GOOD, make_shop, script
from tests.quorum.conftest import python

QUESTION = "How many orders are there?"
UNIT = {"column": "n", "unit": "pieces", "wanted": "dozens"}
CONNECTOR = """
from quorum.tools.databases.sqlite.connector import SqliteConnector

class ShopConnector(SqliteConnector):
    scheme = "shop"

class OddConnector(SqliteConnector):
    dialect = "cobol"
"""


@pytest.fixture
def site(tmp_path: Path, root: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, with the template in it."""
    folder = tmp_path / "site"
    shutil.copytree(root / "examples" / "recipe" / "checked_sql", folder / "checked_sql")
    declared = tomllib.loads((root / "examples" / "recipe" / "pyproject.toml").read_text())["project"]
    install(folder, declared["name"], declared["entry-points"])
    (folder / "shop_driver.py").write_text(CONNECTOR)
    monkeypatch.syspath_prepend(folder)
    forget()
    yield folder
    forget()


def install(site: Path, name: str, points: dict[str, dict[str, str]]) -> None:
    """Write what an installer writes of a package's entry points."""
    folder = site / f"{name.replace('-', '_')}-0.1.0.dist-info"
    folder.mkdir(parents=True)
    (folder / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 0.1.0\n")
    written = configparser.ConfigParser()
    written.read_dict(points)
    with (folder / "entry_points.txt").open("w") as file:
        written.write(file)


def forget() -> None:
    """Know of no plug-in, as a new process."""
    for cached in (plugins.installed, role.roles, builder._compiled):
        cached.cache_clear()  # type: ignore[attr-defined]
    for name in [name for name in sys.modules if name.partition(".")[0] in ("checked_sql", "shop_driver")]:
        del sys.modules[name]


def quorum(*arguments: str, fails: bool = False) -> str:
    forget()
    result = CliRunner().invoke(cli, arguments)
    assert (result.exit_code != 0) == fails, result.output
    return result.output


def test_quorum_lists_it_asks_it_and_shows_its_role(site: Path) -> None:
    listed = quorum("recipes")
    assert "checked\n  from    checked-sql 0.1.0, checked_sql:RECIPE\n" in listed
    assert "checked_sql" not in sys.modules, "a list imports none"
    assert "all_units=false" in quorum("recipes", "checked")
    for name in ("checked", "checked_sql:RECIPE"):
        given = ["--recipe", name, "--model", "offline", "--model-for", "unit_checker=offline", "--votes=1"]
        assert "UnitChecker" in quorum("ask", QUESTION, "--db", "sample", *given)
        shown = " ".join(quorum("trace", "show", "last", "--full").split())
        for said in (
            "UnitChecker finds the units of 0 columns",
            f"UnitChecker · {name} · checked_sql/nodes.py:",
            "checked_sql/roles.py:",
            "checked_sql/prompts/unit_checker.md",
            "Name the unit of each column of quantities",
        ):
            assert said in shown


async def test_its_own_state_is_kept_and_emptied_for_the_next_question(
    site: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    said = script(
        unit_checker=[{"units": [UNIT]}], sql_writer=[{"sql": GOOD}, {"sql": None, "missing": "Ham."}]
    )
    model = scripted(said)

    class Own(RunOptions):
        handles: ClassVar[Mapping[str, Any]] = {"chat_models": {"m": model}}

    shop = f"sqlite:///{make_shop(tmp_path / 'shop.db')}"
    graph = build_graph(
        checkpointer=InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=STATE_TYPES)),
        options=Own(database=shop, home=tmp_path, models=["m"], recipe="checked_sql:RECIPE"),
    )
    thread: Any = {"configurable": {"thread_id": "t"}}
    found = []
    for question in (QUESTION, "And how many customers?"):
        output = await graph.ainvoke({"question": question}, thread)
        found.append(((await graph.aget_state(thread)).values["units"], output["answer"]["warnings"]))
    kind = importlib.import_module("checked_sql.nodes").Unit
    assert found[0] == ([kind("n", "pieces", "dozens")], ["n is in pieces, not in dozens."])
    assert found[1][0] == [], "nothing was checked, and nothing of the first question is left"
    assert "deserializ" not in caplog.text.lower()


def test_a_run_that_failed_goes_on_with_its_own_state(
    site: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def fails(state: Any, context: Any, **_: Any) -> Any:
        raise OSError("the power is gone")

    model = scripted(script(unit_checker={"units": [UNIT]}))
    given: dict[str, Any] = {"models": [model], "home": tmp_path, "recipe": "checked"}
    with monkeypatch.context() as patched, Quorum(db=str(make_shop(tmp_path / "shop.db")), **given) as asked:
        patched.setattr(importlib.import_module("checked_sql"), "note_units", fails)
        with pytest.raises(OSError, match="power"):
            asked.ask(QUESTION)
    forget()
    with Quorum(models=[model], home=tmp_path) as resumed:
        answer = resumed.ask("", resume="last")
    assert (answer.recipe, answer.warnings) == ("checked", ["n is in pieces, not in dozens."])
    assert answer.usage["by_agent"]["unit_checker"]["model_calls"] == 1
    assert "deserializ" not in caplog.text.lower()


def test_one_that_cannot_be_used_is_named(site: Path) -> None:
    own = {"broken": "gone:RECIPE", "single": "checked_sql:RECIPE", "twice": "checked_sql:RECIPE"}
    install(site, "other-sql", {"quorum.recipes": own})
    install(site, "third-sql", {"quorum.recipes": {"twice": "gone:RECIPE"}})
    assert find_recipe("single").summary == "One call, one execution: the baseline."
    assert "taken   that is Quorum's; choose --recipe checked_sql:RECIPE" in quorum("recipes")
    for name, says in (
        ("chekced", r"no recipe 'chekced'.*Known: quorum, .*broken, checked, twice\. .*package\.module:NAME"),
        ("checked_sql:wire", "of the type function"),
        ("checked_sql:NONE", "checked_sql:NONE.*AttributeError.*'NONE'"),
        ("nowhere.recipe:RECIPE", r"nowhere\.recipe:RECIPE.*No module named 'nowhere'.*PYTHONPATH"),
        ("broken", r"plug-in 'broken' of other-sql 0\.1\.0.*No module named 'gone'.*import gone"),
        ("twice", r"other-sql 0\.1\.0 and third-sql 0\.1\.0 both have 'twice'"),
    ):
        with pytest.raises(ConfigurationError, match=f"(?s){says}") as raised:
            find_recipe(name)
        assert raised.value.hint or "type" in says


def test_a_role_of_its_own_needs_a_name_of_its_own(site: Path) -> None:
    text = (site / "checked_sql" / "roles.py").read_text()
    (site / "checked_sql" / "roles.py").write_text(text.replace('"unit_checker"', '"planner"'))
    with pytest.raises(ConfigurationError, match=r"'planner': agents/planners\.py:.*checked_sql/roles\.py:"):
        find_recipe("checked")


def test_a_connector_is_found_by_its_scheme(site: Path, tmp_path: Path) -> None:
    make_shop(tmp_path / "shop.db")
    own = {
        "shop": "shop_driver:ShopConnector",
        "odd": "shop_driver:OddConnector",
        "none": "shop_driver:__name__",
    }
    install(site, "shop-driver", {"quorum.connectors": own | {"sqlite": "gone:Connector", "lost": "gone:X"}})
    assert connect("sqlite:///shop.db").scheme == "sqlite", "a scheme of ours wins"
    answer = json.loads(quorum("ask", QUESTION, "--db", "shop:///shop.db", "--model", "offline", "--json"))
    assert answer["status"] == "answered"
    for scheme, says in {"odd": "'cobol'", "none": "no Connector", "lost": "shop-driver 0.1.0.*gone"}.items():
        with pytest.raises(ConfigurationError, match=says):
            connect(f"{scheme}:///shop.db")


@pytest.mark.heavy
def test_the_template_s_own_tests_and_assistant(root: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(root / "examples" / "recipe", tmp_path / "own")
    install(folder, "checked-sql", {"quorum.recipes": {"checked": "checked_sql:RECIPE"}})
    shown = "from checked_sql.studio import checked; print(checked.__name__)"
    for command in (["-m", "pytest", "-q", "-p", "no:cacheprovider"], ["-c", shown]):
        done = python(root, *command, cwd=folder, env={"PYTHONPATH": f"{folder}{os.pathsep}{root}"})
        assert done.returncode == 0, done.stdout + done.stderr
