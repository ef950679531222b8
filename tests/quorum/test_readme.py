"""The README tells the truth: its table names every setting, its picture every node, its tour works."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from quorum.graph.builder import build_graph
from tests.graph.test_team import SENTENCE
from tests.quorum.options_table import README, table, with_table
from tests.smoke import take_tour


def test_the_table_of_options_is_as_declared() -> None:
    text = README.read_text()
    assert table() in text, "python -m tests.quorum.options_table writes it"
    assert with_table(text) == text


UNSEEN = {
    *(
        "open_run",
        "recall",
        "KnowledgeRetriever",
        "SyntaxRetriever",
        "send_candidates",
        "send_more",
        "finish",
        "clarify",
    ),
    *("explore", "ExplorationCorrector", "give_up_query", "keep_findings"),
}
"""What the picture at the top leaves out: preparation, the loop of exploration, the end."""


@pytest.mark.parametrize(("recipe", "number", "unseen"), [("team", 1, UNSEEN), ("quorum", 2, set())])
def test_the_pictures_show_the_nodes_of_their_graphs(
    recipe: str, number: int, unseen: set[str], root: Path
) -> None:
    picture = (root / "README.md").read_text().split("```mermaid")[number].split("```")[0]
    drawn = build_graph(recipe).get_graph(xray=1)
    nodes = {name.rpartition(":")[2] for name in drawn.nodes} - {"__start__", "__end__"}
    missing = {node for node in nodes if not re.search(rf"\b{node}\b", picture)}
    assert missing == unseen
    assert missing.isdisjoint(SENTENCE)
    assert set(re.findall(r"\b[A-Z]\w+[A-Z]\w+\b", picture)) <= nodes


def test_every_path_that_the_architecture_names_is_there(root: Path) -> None:
    text = (root / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`((?:quorum|evals|graph|agents|tools|knowledge|tests)/[\w/.]*)(?:: \w+)?`", text)
    assert len(named) > 30
    assert [path for path in named if not (root / path).exists()] == []


def test_every_command_of_the_tour_works_as_printed(workplace: Path) -> None:
    """With every extra; ``make smoke`` does the same without any."""
    said = take_tour()
    for part in ("refused: ", '"status": "answered"', "opens read-only: yes", "count\n", "Consensus"):
        assert part in said
    assert (workplace / "run.html").is_file()
