"""The README tells the truth: its table names every setting, its picture every node, its tour works."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorum.cli import cli
from quorum.graph.builder import build_graph
from quorum.graph.exploring import RECIPE
from quorum.tools.offline.roles import Prompt as OfflinePrompt
from quorum.tools.offline.roles import answer
from tests.graph.test_team import SENTENCE
from tests.quorum.options_table import README, table, with_table
from tests.quorum.roles import by_role
from tests.servers.chat_server import Answer, ChatServer, Request, say


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


def _tour(root: Path) -> tuple[list[str], str]:
    """The lines of the five-minute tour, and its Python."""
    tour = (root / "README.md").read_text().split("## Five minutes")[1].split("\n## ")[0]
    shell = tour.split("```sh\n")[1].split("```")[0]
    return [line for line in shell.splitlines() if line], tour.split("```python\n")[1].split("```")[0]


def _by_the_rules(role: str, request: Request) -> Answer | None:
    """What the offline model says to the roles of an exploration."""
    if role not in RECIPE.agents:
        return None
    prompt = "\n\n".join(message["content"] for message in request.body["messages"])
    return say(json.dumps(answer(OfflinePrompt(prompt))))


def test_every_command_of_the_tour_works_as_printed(
    root: Path, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lines, script = _tour(root)
    said, commands = "", 0
    written = {"reasoning": "Count them.", "sql": "SELECT COUNT(*) AS customers FROM customers"}
    with ChatServer(by_role(_by_the_rules, sql_writer=written)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        for line in lines:
            name, *arguments = shlex.split(line, comments=True)
            if name == "export":
                monkeypatch.setenv(*arguments[0].split("="))
            elif name == "quorum":
                result = CliRunner().invoke(cli, arguments)
                expected = re.search(r"# exit (\d)", line)
                assert result.exit_code == (int(expected[1]) if expected else 0), (line, result.output)
                said, commands = said + result.stdout, commands + 1
            else:
                assert line.startswith((". ", "make ")), f"the test does not know how to run: {line}"
        exec(script, {})
    assert commands >= 10
    for part in (
        "refused: ",
        '"status": "answered"',
        "opens read-only: yes",
        "customers\n",
        "Vote and answer",
    ):
        assert part in said
    assert (workplace / "run.html").is_file()
