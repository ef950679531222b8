"""``graph/recipes/README.md``: what each paper's mechanism became; every name in it resolves."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from quorum.graph.recipes import RECIPES

PAPERS = Path(__file__).parents[2] / "graph" / "recipes" / "README.md"


class Row(NamedTuple):
    """A mechanism: what the paper says, where it is, whether it is the paper's or ours, and its test."""

    recipe: str
    mechanism: str
    paper: str
    here: str
    kept: str
    test: str


@cache
def rows() -> list[Row]:
    found, recipe = [], ""
    for line in PAPERS.read_text("utf-8").splitlines():
        if heading := re.match(r"## .*`(\w+)`", line):
            recipe = heading[1]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5 and not {"mechanism", "---"} & set(cells):
            found.append(Row(recipe, *cells))
    return found


def test_every_recipe_of_a_paper_has_its_table() -> None:
    assert {row.recipe for row in rows()} == {
        name for name, recipe in RECIPES.items() if not recipe.paper.startswith("none")
    }


@pytest.mark.parametrize("row", rows(), ids=lambda row: f"{row.recipe}: {row.mechanism}")
def test_a_row_names_what_is_there(row: Row, root: Path) -> None:
    assert all(row), "nothing is left open"
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


@pytest.mark.parametrize("name", [name for name, recipe in RECIPES.items() if recipe.deviations])
def test_deviations_in_the_table_are_those_that_the_recipe_declares(name: str) -> None:
    """What is ours in the table is a deviation that ``quorum recipes NAME`` prints, and the reverse."""
    told = [row.kept.removeprefix("ours: ") for row in rows() if row.recipe == name and row.kept != "yes"]
    assert sorted(told) == sorted(deviation.ours for deviation in RECIPES[name].deviations)
    assert all(each.paper and each.why for each in RECIPES[name].deviations)
