"""``docs/recipes.md``: what each paper's mechanism became; every name in it resolves."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from quorum.graph.nodes.tree_search import Search
from quorum.graph.recipes import RECIPES
from tests.graph.pictures import PICTURES, between_agents
from tests.graph.recipes_page import KINDS, PAGE, Row, held, rows, written

NUMBERED = {
    "ReFoRCE": {*(f"equation {number}" for number in range(1, 8)), "Algorithm 1"},
    "ReFoRCE first version": {
        *(f"equation {number}" for number in range(1, 8)),
        *("Algorithm 1", "Algorithm 2"),
    },
    "SSEV": {"equation 1", "equation 2", "Algorithm 1", "Algorithm 2"},
    "ReCAPAgent-SQL": set[str](),
    "Spider-Agent": set[str](),
    "SQLAgent": {"Algorithm 1", "Algorithm 2", "Algorithm 3"},
}
"""The numbered equations and algorithms of each paper."""


def test_the_page_is_written_anew() -> None:
    text = PAGE.read_text("utf-8")
    assert written(text) == text, "python -m tests.graph.recipes_page writes it"


def test_every_recipe_of_a_paper_has_its_table() -> None:
    assert {row.recipe for row in rows()} == {
        name for name, recipe in RECIPES.items() if not recipe.paper.startswith("none")
    }


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.recipe}: {row.mechanism}")
def test_a_row_names_what_is_there(row: Row, root: Path) -> None:
    assert all(row), "nothing is left open"
    assert row.kept == "yes" or re.fullmatch(r"ours: .+\. Why: .+", row.kept), "with the reason"
    places = re.findall(r"`((?:agents|graph|tools|knowledge|evals)/[\w/.]+)(?:: ([\w., ]+))?`", row.here)
    assert places, "no place in the code"
    for path, names in places:
        assert (root / path).exists(), path
        module = (
            importlib.import_module("quorum." + path.removesuffix(".py").replace("/", ".")) if names else None
        )
        for name in filter(None, re.split(r",\s*", names)):
            owner: object = module
            for part in name.split("."):
                assert hasattr(owner, part), f"{path}: {name}"
                owner = getattr(owner, part)
    tests = re.findall(r"`(tests/[\w/]+\.py)::(\w+)`", row.test)
    assert tests, "no test"
    for path, name in tests:
        assert re.search(rf"^(?:async )?def {name}\(", (root / path).read_text(), re.MULTILINE), (
            f"{path}::{name}"
        )


VALUES: dict[str, dict[str, object]] = {
    "reforce": {
        **{"votes": 8, "temperature": 1.0, "link_above": 50_000, "max_refinements": 5 - 1, "max_queries": 10},
        **{"row_limit": 20, "exploration": "ties", "blanks_give_way": False},
    },
    "recap": {"max_plans": 1 + 3, "max_link_steps": 30, "blanks_give_way": False, "count_heads": False},
    "ssev": {"max_rows": 3, "max_shots": 9, "blanks_give_way": False, "count_heads": False},
    "sqlagent": {"max_rounds": 5, "max_tables": 3, "table_names": False},
    "explore": {"coverage": 0.9, "attempts": 300},
}
"""Numbers and ways of the papers that are the recipes' defaults: 000, 3.2, Appendix B and Figure 4; 004,
Table 1 and 3.3.4; 004, 3.1.1 and 4.1; 001, appendices A and J.1."""


@pytest.mark.parametrize("name", VALUES)
def test_the_papers_values_are_the_defaults(name: str) -> None:
    holder: object = Search if name == "explore" else RECIPES[name]
    assert {value: getattr(holder, value) for value in VALUES[name]} == VALUES[name]


def test_the_first_version_s_values_are_its_preset() -> None:
    """000's number of exploration queries is kept: the first version says no number."""
    v1 = RECIPES["reforce"].set_to("v1")
    assert (v1.votes, v1.exploration, v1.row_limit, v1.ctes) == (3, "always", 100, False)
    assert all((v1.expected_format, v1.self_consistency, v1.cte_refinement, v1.model_vote))


@pytest.mark.parametrize("paper", NUMBERED)
def test_each_numbered_equation_and_algorithm_is_held_by_one_function(paper: str) -> None:
    """Steps and lines of an algorithm may have functions of their own."""
    whole = [each for each in held() if each.paper == paper and not each.within]
    found = sorted(each.part for each in whole if each.part.startswith(KINDS))
    assert found == sorted(NUMBERED[paper]), "in the form (ReFoRCE, equation 5), by one docstring each"
    within = {each.part for each in held() if each.paper == paper and each.within}
    assert within <= NUMBERED[paper]


@pytest.mark.parametrize("recipe", list(PICTURES))
def test_the_drawn_graph_has_the_papers_arrows(recipe: str) -> None:
    """What it has beside them is dotted on the page."""
    assert PICTURES[recipe] - between_agents(recipe) == set()
