"""The documents tell the truth: links, paths and commands exist, pictures have every node, examples run."""

from __future__ import annotations

import ast
import inspect
import json
import re
import shlex
from pathlib import Path
from typing import Any

import click
import pytest

from quorum.cli import cli
from quorum.graph.builder import build_graph
from tests.graph.test_recap import SENTENCE
from tests.quorum.conftest import python
from tests.quorum.options_table import SETTINGS, table, with_table


def test_the_table_of_options_is_as_declared() -> None:
    text = SETTINGS.read_text()
    assert table() in text, "python -m tests.quorum.options_table writes it"
    assert with_table(text) == text


UNSEEN = {
    *("open_run", "KnowledgeRetriever", "SyntaxRetriever", "send_candidates", "send_more", "clarify"),
    *("explore", "ExplorationCorrector", "keep_findings"),
}
"""What the picture of ``team`` leaves out: preparation, the loop of exploration, the end."""


def test_the_pictures_show_the_nodes_of_their_graphs(root: Path) -> None:
    for recipe, page, unseen in (("team", "docs/recipes.md", UNSEEN), ("quorum", "ARCHITECTURE.md", set())):
        picture = (root / page).read_text().split("```mermaid")[1].split("```")[0]
        drawn = build_graph(recipe).get_graph(xray=1)
        nodes = {name.rpartition(":")[2] for name in drawn.nodes} - {"__start__", "__end__"}
        missing = {node for node in nodes if not re.search(rf"\b{node}\b", picture)}
        assert missing == unseen
        assert missing.isdisjoint(SENTENCE)
        assert set(re.findall(r"\b[A-Z]\w+[A-Z]\w+\b", picture)) <= nodes


def pages(root: Path) -> list[Path]:
    """All documents for people, at the root and in ``docs``."""
    return [*root.glob("*.md"), *root.glob("docs/*.md")]


def test_the_documents_keep_to_their_sizes(root: Path) -> None:
    assert (root / "README.md").stat().st_size <= 8_000
    assert (root / "ARCHITECTURE.md").stat().st_size <= 14_000


def test_every_link_and_path_of_a_document_leads_somewhere(root: Path, subtests: pytest.Subtests) -> None:
    for page in pages(root):
        named = re.findall(
            r"`((?:quorum|evals|graph|agents|tools|knowledge|tests|docs)/[\w/.]*)(?:: \w+)?`",
            page.read_text(),
        )
        with subtests.test(page.name):
            assert page.name == "CHANGELOG.md" or [path for path in named if not (root / path).exists()] == []
            links = re.findall(r"\]\(([^)#\s]+)(?:#[^)]*)?\)", page.read_text())
            assert [link for link in links if "://" not in link and not (page.parent / link).exists()] == []


def test_every_command_that_a_document_shows_can_be_read(root: Path, subtests: pytest.Subtests) -> None:
    """Each ``quorum ...`` line of a shell block names a command, and options that it has."""
    seen = 0
    for page in pages(root):
        blocks = re.findall(r"```sh\n(.*?)```", page.read_text(), re.DOTALL)
        lines = "\n".join(blocks).replace("\\\n", " ").splitlines()
        for line in (each.strip() for each in lines):
            if not line.startswith("quorum "):
                continue
            seen += 1
            with subtests.test(line):
                _read_command(shlex.split(line, comments=True)[1:])
    assert seen > 40


def _read_command(arguments: list[str]) -> None:
    command: click.Command = cli
    while isinstance(command, click.Group):
        name, *arguments = arguments
        found = command.get_command(click.Context(command), name)
        assert found is not None, f"there is no command {name}"
        command = found
    known = {name for option in command.params for name in (*option.opts, *option.secondary_opts)}
    used = {each.split("=")[0] for each in arguments if each.startswith("--")}
    assert used <= known | {"--help"}


# The examples run as they stand, and a type checker tells a user of the package the types.


SAYS = {
    "agent.py": ["Its tables: categories", "| 3,000 |", "SQL: SELECT", "ai: See the table above."],
    "ask.py": ["SELECT", "3,000", "answered [[13000]]", "failed [] The question is empty."],
    "subgraph.py": ["quorum / candidate", "quorum\n", "Ada: customers [[3000]]", "Ada: orders [[13000]]"],
    "guard_only.py": ["pass    SELECT name", "refused WITH gone", "refused SELECT pg_read_file"],
}


def test_every_example_is_tested(root: Path) -> None:
    assert {path.name for path in (root / "examples").glob("*.py")} == set(SAYS)


@pytest.mark.heavy
@pytest.mark.parametrize("name", sorted(SAYS))
def test_an_example(name: str, root: Path, tmp_path: Path) -> None:
    result = python(root, str(root / "examples" / name), cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    assert "Deserializing unregistered type" not in result.stderr
    for words in SAYS[name]:
        assert words in result.stdout


@pytest.mark.heavy
async def test_the_notebook(root: Path) -> None:
    cells = json.loads((root / "examples" / "notebook.ipynb").read_text())["cells"]
    shown, names = list[Any](), dict[str, Any]()
    for cell in cells:
        if cell["cell_type"] == "code":
            shown.append(await run_cell("".join(cell["source"]), names))
    _, answer, table, several, _ = shown
    assert "3,000" in answer._repr_html_()
    assert table.to_pylist() == [{"count": 3000}]
    assert sorted(several) == [
        ("How many orders are there?", [[13000]]),
        ("How many products are there?", [[600]]),
    ]


async def run_cell(source: str, names: dict[str, Any]) -> Any:
    """Run a cell as a notebook does, with ``await`` where it likes; return its last expression's value."""
    parsed = ast.parse(source)
    last = parsed.body.pop() if isinstance(parsed.body[-1], ast.Expr) else None
    flags, found = ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, None
    for tree in (parsed, ast.Expression(last.value) if isinstance(last, ast.Expr) else None):
        if tree is not None:
            mode = "eval" if isinstance(tree, ast.Expression) else "exec"
            found = eval(compile(tree, "notebook", mode, flags=flags), names)
            found = await found if inspect.isawaitable(found) else found
    return found if last else None


SCRIPT = """
from quorum import ask_sync
answer = ask_sync("How many customers are there?", db="sample")
reveal_type(answer.confidence)
"""


@pytest.mark.heavy
@pytest.mark.timeout(240)  # the first run reads every dependency
def test_a_users_three_lines_have_real_types(root: Path, workplace: Path) -> None:
    (workplace / "script.py").write_text(SCRIPT)
    cache = root / ".mypy_cache" / "user"
    checked = ("-m", "mypy", "--strict", "--cache-dir", str(cache), "script.py")
    result = python(root, *checked, timeout=240)
    assert 'Revealed type is "float"' in result.stdout, result.stdout + result.stderr
    assert result.returncode == 0, result.stdout
