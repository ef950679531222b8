"""Messages that name an optional part: what they say to install exists."""

from __future__ import annotations

import ast
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from quorum.checks import EXTRAS
from quorum.knowledge.errors import DISTRIBUTION, install_hint, missing_extra

NAMED = re.compile(rf"{DISTRIBUTION}\[([\w, -]+)\]")
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


def test_every_extra_that_a_message_names_exists(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    called = {extra for path in sources(root) for extra in asked_for(path)}
    pages = [*sources(root), *root.glob("*.md"), *(root / "examples").glob("*")]
    texts = [path.read_text(encoding="utf-8") for path in pages if path.is_file()]
    written = {extra.strip() for text in texts for names in NAMED.findall(text) for extra in names.split(",")}
    assert project["name"] == DISTRIBUTION
    assert called >= {"embeddings", "plots"}, "the search finds the messages"
    assert called | written | {*EXTRAS} <= {*project["optional-dependencies"]}


def test_every_extra_for_users_is_known_to_doctor(root: Path) -> None:
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert {*EXTRAS} == {*project["optional-dependencies"]} - {"dev"}


def test_an_extra_is_named_for_the_wheel_and_for_a_checkout() -> None:
    error = missing_extra("plots", "Drawing curves", needs="matplotlib")
    assert str(error) == (
        "Drawing curves needs the package matplotlib. "
        "pip install 'quorum-sql[plots]' (in a checkout: pip install -e '.[plots]')."
    )
    assert error.hint == install_hint("plots")
