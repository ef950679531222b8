"""The README tells the truth: its table names every setting, its picture every node."""

from __future__ import annotations

import re
from pathlib import Path

from graph.builder import build_graph
from quorum.settings import Settings


def test_the_configuration_table_has_every_setting_once(root: Path) -> None:
    rows = re.findall(r"^\| `([a-z_]+)` \|", (root / "README.md").read_text(), re.MULTILINE)
    assert sorted(rows) == sorted(Settings.model_fields)


def test_the_picture_shows_every_node_of_the_graph(root: Path) -> None:
    picture = (root / "README.md").read_text().split("```mermaid")[1].split("```")[0]
    drawn = build_graph("recap").get_graph(xray=1)
    nodes = {name.rpartition(":")[2] for name in drawn.nodes} - {"__start__", "__end__"}
    assert nodes == {node for node in nodes if re.search(rf"\b{node}\b", picture)}


def test_every_path_that_the_architecture_names_is_there(root: Path) -> None:
    text = (root / "ARCHITECTURE.md").read_text()
    named = re.findall(r"`((?:quorum|evals|graph|agents|tools|knowledge|tests)/[\w/.]*)(?:: \w+)?`", text)
    assert len(named) > 30
    assert [path for path in named if not (root / path).exists()] == []
