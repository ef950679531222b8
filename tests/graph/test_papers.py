"""``graph/recipes/README.md``: what each paper's mechanism became; every name in it resolves."""

from __future__ import annotations

import importlib
import re
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

from quorum.graph.builder import build_graph
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


PICTURES: dict[str, dict[tuple[str, str], str]] = {
    "reforce": {  # 000, Figure 1 and 3.2
        ("TableLinker", "candidate:SqlWriter"): "(a) compression, then (b) candidates",
        ("candidate:SqlWriter", "candidate:SelfRefiner"): "an error or an empty result is refined",
        ("candidate:SelfRefiner", "candidate:SelfRefiner"): "up to five iterations",
        ("candidate:SqlWriter", "Consensus"): "(c) majority voting",
        ("candidate:SelfRefiner", "Consensus"): "(c) majority voting",
        ("Consensus", "exploring_candidate:ColumnExplorer"): "(d) what ties is explored",
        ("exploring_candidate:ColumnExplorer", "exploring_candidate:ExplorationCorrector"): "Algorithm 1",
        ("exploring_candidate:ExplorationCorrector", "exploring_candidate:ExplorationCorrector"): "max_try",
        (
            "exploring_candidate:ColumnExplorer",
            "exploring_candidate:SqlWriter",
        ): "its results make a new prompt",
        ("exploring_candidate:ExplorationCorrector", "exploring_candidate:SqlWriter"): "the same",
        ("exploring_candidate:SqlWriter", "exploring_candidate:SelfRefiner"): "as in the first round",
        ("exploring_candidate:SelfRefiner", "exploring_candidate:SelfRefiner"): "as in the first round",
        ("exploring_candidate:SqlWriter", "Consensus"): "the second vote",
        ("exploring_candidate:SelfRefiner", "Consensus"): "the second vote",
    },
    "ssev": {  # 004, Figure 5 and 3.2
        ("presql:SqlWriter", "presql:SelfRefiner"): "PreSQL that fails is refined",
        ("presql:SelfRefiner", "presql:SelfRefiner"): "up to N iterations",
        ("presql:SqlWriter", "PreSQLConsensus"): "the vote of stages 5 and 6",
        ("presql:SelfRefiner", "PreSQLConsensus"): "the vote of stages 5 and 6",
        ("PreSQLConsensus", "candidate:SqlWriter"): "its winner links the schema for PostSQL",
        ("candidate:SqlWriter", "candidate:SelfRefiner"): "PostSQL that fails is refined",
        ("candidate:SelfRefiner", "candidate:SelfRefiner"): "up to N iterations",
        ("candidate:SqlWriter", "Consensus"): "the last vote",
        ("candidate:SelfRefiner", "Consensus"): "the last vote",
    },
}
"""From agent to agent, as the papers' pictures and their text have it."""

OURS: dict[str, dict[tuple[str, str], str]] = {
    "reforce": {
        ("KnowledgeRetriever", "TableLinker"): "documents are found before anything else",
        ("Consensus", "candidate:SqlWriter"): "a stopping rule asks for another batch; the user asks again",
        ("exploring_candidate:ColumnExplorer", "Consensus"): "a limit ends the candidate",
        ("exploring_candidate:ExplorationCorrector", "Consensus"): "a limit ends the candidate",
    },
    "ssev": {
        ("KnowledgeRetriever", "presql:SqlWriter"): "documents are found before anything else",
        ("Consensus", "candidate:SqlWriter"): "a stopping rule asks for another batch; the user asks again",
        ("PreSQLConsensus", "Consensus"): "a limit was reached, or the data cannot answer",
        ("PreSQLConsensus", "presql:SqlWriter"): "a resumed run in which no model had answered",
    },
}
"""Arrows that the papers do not draw, each with its reason."""


@pytest.mark.parametrize("recipe", list(PICTURES))
def test_the_drawn_graph_is_the_papers_picture(recipe: str) -> None:
    """``recap``'s picture is held in ``tests/graph/test_recap_paper.py``."""
    paper, drawn = PICTURES[recipe].keys(), _arrows(recipe)
    assert paper - drawn == set()
    assert drawn - paper == OURS[recipe].keys()


def _arrows(recipe: str) -> set[tuple[str, str]]:
    """The drawn arrows from agent to agent, through steps that ask nobody."""
    following: dict[str, set[str]] = {}
    for edge in build_graph(recipe).get_graph(xray=1).edges:
        following.setdefault(edge.source, set()).add(edge.target)
    found = set()
    for agent in filter(_asks, following):
        seen, waiting = set[str](), list(following[agent])
        while waiting:
            node = waiting.pop()
            if _asks(node):
                found.add((agent, node))
            elif node not in seen:
                seen.add(node)
                waiting += following.get(node, ())
    return found


def _asks(node: str) -> bool:
    return node.rpartition(":")[2][0].isupper()
