"""The generated parts of ``docs/recipes.md``; ``python -m tests.graph.recipes_page`` writes them anew.

The tables of mechanisms are written by hand. Between a recipe's heading and its table stand its picture, the
numbered equations and algorithms of its paper with the functions that hold them, and its switches.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from quorum.graph.recipes import RECIPES
from quorum.graph.recipes.recipe import Recipe
from tests.graph.pictures import mermaid

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "recipes.md"

BEGIN = "<!-- python -m tests.graph.recipes_page writes from here to the end -->\n"
STOP = "<!-- end -->\n"

PAPERS = {
    "reforce": ("ReFoRCE", "ReFoRCE first version"),
    "recap": ("ReCAPAgent-SQL",),
    "ssev": ("SSEV",),
    "react": ("Spider-Agent",),
    "sqlagent": ("SQLAgent",),
}
"""The papers of each recipe, as docstrings name them."""

KINDS = ("equation", "Algorithm")

_MENTION = re.compile(
    r"\((ReFoRCE first version|ReFoRCE|ReCAPAgent-SQL|SSEV|Spider-Agent|SQLAgent),\s([^()]+)\)"
)
_PART = re.compile(
    r"(equation|Algorithm)s? (\d+)(?: (to|and) (\d+))?(?:, ((?:step|line)s? [\d toand]*\d))?"
    r"|(\d+\.[\d.]*\d|(?:Table|Figure) \d+|Appendix \w)"
)


class Row(NamedTuple):
    """A mechanism: what the paper says, where it is, whether it is the paper's or ours, and its test."""

    recipe: str
    mechanism: str
    paper: str
    here: str
    kept: str
    test: str


class Held(NamedTuple):
    """A part of a paper and the function whose docstring names it.

    ``part`` is such as "equation 5", "Algorithm 3" or "3.2.4"; ``within`` such as "lines 7 to 9".
    """

    paper: str
    part: str
    within: str
    file: str
    name: str


@cache
def rows() -> list[Row]:
    """Return the rows of the tables of mechanisms."""
    found, recipe = [], ""
    for line in PAGE.read_text("utf-8").splitlines():
        if heading := re.match(r"## .*`(\w+)`", line):
            recipe = heading[1]
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("|") and len(cells) == 5 and not {"mechanism", "---"} & set(cells):
            found.append(Row(recipe, *cells))
    return found


@cache
def held() -> list[Held]:
    """Return all parts of papers that docstrings of functions and classes name in the fixed form."""
    found = list[Held]()
    for folder in ("agents", "evals", "graph", "knowledge", "tools"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            file = str(path.relative_to(ROOT))
            for name, text in docstrings(ast.parse(path.read_text("utf-8"))):
                found += [Held(*part, file, name) for part in mentions(text)]
    return found


def docstrings(tree: ast.AST, within: str = "") -> Iterator[tuple[str, str]]:
    """Yield the functions and classes of a module, and of its classes, with their docstrings."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield within + node.name, ast.get_docstring(node) or ""
            yield from docstrings(node, f"{within}{node.name}.")


def mentions(text: str) -> Iterator[tuple[str, str, str]]:
    """Yield paper, part and the place within it of all mentions in a docstring.

    ``(SQLAgent, Algorithm 3, lines 7 to 9)`` has one, ``(ReFoRCE, equations 4 to 6)`` three.
    """
    for paper, said in _MENTION.findall(" ".join(text.split())):
        for kind, first, joint, last, within, other in _PART.findall(said):
            numbers = range(int(first), int(last) + 1) if joint == "to" else filter(None, (first, last))
            yield from ((paper, f"{kind} {number}", within) for number in numbers)
            if other:
                yield paper, other, ""


def numbers(recipe: str) -> str:
    """Return the table of a paper's equations and algorithms; of its sections where it numbers none."""
    named = [each for each in held() if each.paper in PAPERS[recipe]]
    numbered = [each for each in named if each.part.startswith(KINDS)]
    lines = ["| numbered in the paper | here |\n|---|---|\n"]
    for each in sorted(numbered or named, key=_order):
        paper = "first version, " if each.paper.endswith("first version") else ""
        place = ", ".join(filter(None, (each.part, each.within)))
        lines.append(f"| {paper}{place} | [`{each.file}: {each.name}`](../{each.file}) |\n")
    return "".join(lines) if len(lines) > 1 else ""


def _order(each: Held) -> tuple[Any, ...]:
    kind = not each.part.startswith(KINDS), each.part.startswith(KINDS[1])
    return (each.paper, kind, _digits(each.part), _digits(each.within), each)


def _digits(text: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", text)]


def switches(recipe: Recipe) -> str:
    """Return the table of a recipe's switches with the paper's values, and its presets."""
    lines = ["| switch | the paper | meaning |\n|---|---|---|\n"]
    for item in fields(recipe):
        if item.name in recipe.switches():
            paper = {"": "the same", "open": "not said"}.get(said := item.metadata["paper"], said)
            value = _value(getattr(recipe, item.name))
            lines.append(f"| `{item.name}={value}` | {paper} | {item.metadata['meaning']} |\n")
    for name, values in recipe.presets.items():
        shown = ", ".join(f"`{key}={_value(value)}`" for key, value in values.items())
        lines.append(f"\nThe preset `{name}` sets {shown}.\n")
    return "".join(lines)


def _value(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def written(text: str) -> str:
    """Return the page with its generated parts as they should be."""
    parts = rf"^(## [^\n]*`(\w+)`\n(?:(?!^## ).)*?{BEGIN}).*?(?={STOP})"
    return re.sub(parts, lambda found: found[1] + _generated(RECIPES[found[2]]), text, flags=re.M | re.S)


def _generated(recipe: Recipe) -> str:
    sampled = "of every role" if recipe.one_temperature else "of a model's candidates after its first"
    usual = f"votes {recipe.votes}, strategy `{recipe.strategy}`, temperature {recipe.temperature} {sampled}"
    picture = mermaid(recipe.name) + (mermaid("explore") if recipe.name == "sqlagent" else "")
    parts = picture, numbers(recipe.name), f"By default: {usual}.\n", switches(recipe)
    return "\n".join(filter(None, parts))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text("utf-8")), "utf-8")
