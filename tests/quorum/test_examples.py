"""The examples run as they stand, and a type checker tells a user of the package the types."""

from __future__ import annotations

import ast
import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from tests.quorum.conftest import python

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
