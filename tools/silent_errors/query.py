"""One query under suspicion: its tree, its SELECTs, and the same tree with a part replaced."""

from __future__ import annotations

from functools import cached_property

from sqlglot import exp

from quorum.knowledge.catalog import Catalog
from quorum.tools.silent_errors.cores import Core
from quorum.tools.sql import parse_one_statement

_MARK = "suspected"


class Query:
    """A query that ran, read for its checks.

    Attributes:
        question: What it answers, in words; empty where nobody says. It tells what a convention settles.

    Raises:
        SyntaxProblem: It cannot be read.
    """

    def __init__(self, sql: str, catalog: Catalog, question: str = "") -> None:
        self.tree = parse_one_statement(sql, catalog.dialect)
        if catalog.dialect == "sqlite":
            _spell_texts(self.tree, catalog)
        self.catalog = catalog
        self.dialect = catalog.dialect
        self.question = question

    @cached_property
    def cores(self) -> list[Core]:
        """Its SELECTs that can be asked by themselves."""
        found = (Core(select, self.catalog) for select in self.tree.find_all(exp.Select))
        return [core for core in found if core.known]

    def copy(self, *nodes: exp.Expr) -> tuple[exp.Expr, list[exp.Expr]]:
        """A copy of the tree to be changed, and where these of its nodes stand in it, in the same order."""
        for place, node in enumerate(nodes):
            node.meta[_MARK] = place
        tree = self.tree.copy()
        for node in nodes:
            del node.meta[_MARK]
        found = sorted(
            (node for node in tree.walk() if _MARK in node.meta), key=lambda node: node.meta[_MARK]
        )
        for node in found:
            del node.meta[_MARK]
        return tree, found


def _spell_texts(tree: exp.Expr, catalog: Catalog) -> None:
    """Write in single quotes what SQLite takes for a text: a name in double quotes that nothing has."""
    quoted = [each for each in tree.find_all(exp.Column) if not each.table and each.this.args.get("quoted")]
    if quoted:
        known = {column.name.casefold() for _, column in catalog.columns()}
        known |= {each.alias.casefold() for each in tree.find_all(exp.Alias)}
        for column in quoted:
            if column.name.casefold() not in known:
                column.replace(exp.Literal.string(column.name))
