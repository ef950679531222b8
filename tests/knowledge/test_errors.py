"""Messages that name an optional part: what they say to install exists, and pip finds it."""

from __future__ import annotations

import ast
import sys
import tomllib
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest

from quorum.checks import EXTRAS
from quorum.knowledge.errors import DISTRIBUTION, install_hint, is_installed, missing_extra

FLOORS = ("agents", "evals", "graph", "knowledge", "quorum", "tools")


def sources(root: Path) -> Iterator[Path]:
    for floor in FLOORS:
        yield from (root / floor).rglob("*.py")


def asked_for(path: Path) -> Iterator[str]:
    """The first arguments of calls of ``missing_extra`` and ``install_hint`` that are written out."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and node.args and isinstance(node.args[0], ast.Constant):
            name = getattr(node.func, "id", getattr(node.func, "attr", ""))
            if name in ("missing_extra", "install_hint"):
                yield str(node.args[0].value)


@pytest.mark.heavy
def test_every_extra_that_a_message_names_exists_and_doctor_knows_it(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    called = {extra for path in sources(root) for extra in asked_for(path)}
    assert project["name"] == DISTRIBUTION
    assert called >= {"embeddings", "plots"}, "the search finds the messages"
    assert called <= {*EXTRAS} == {*project["optional-dependencies"]} - {"dev"}


def test_one_function_makes_all_hints(root: Path) -> None:
    """No index has the distribution, and only the parts of the one function know how to call pip."""
    written = {path.name for path in sources(root) if "pip install " in path.read_text(encoding="utf-8")}
    assert written <= {"errors.py", "providers.py"}, "the second reads what LangChain writes"
    pages = [*sources(root), *root.glob("*.md"), *root.glob("docs/*.md")]
    assert not [path for path in pages if f"{DISTRIBUTION}[" in path.read_text(encoding="utf-8")]


def test_a_hint_names_this_python_and_packages_that_are_on_the_index(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listed = [
        "click>=8",
        "matplotlib>=3.10; extra == 'plots'",
        'b[x]>=1; extra == "plots"',
        "c; extra == 'p'",
    ]
    monkeypatch.setattr(metadata, "requires", lambda name: listed if name == DISTRIBUTION else None)
    error = missing_extra("plots", "Drawing curves", needs="matplotlib")
    assert str(error) == (
        "Drawing curves needs the package matplotlib. "
        f"Install it with `{sys.executable} -m pip install 'matplotlib>=3.10' 'b[x]>=1'`."
    )
    assert error.hint == install_hint("plots")
    assert not is_installed("quorum.knowledge.nothing")
    assert not is_installed("no_such_parent.of.a_module")
