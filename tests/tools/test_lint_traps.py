"""Traps of each dialect: names that look wrong and are right, and names that look right and are not there."""

from __future__ import annotations

import pytest

from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.sql import DIALECTS
from tests.tools.lint_tables import TABLES, cases, catalog

EVERY = [pytest.param(d, *case, id=f"{d}-{n}") for d in TABLES for n, case in enumerate(cases(d), 1)]


def test_every_dialect_has_traps_of_both_kinds() -> None:
    assert set(TABLES) == set(DIALECTS)
    for dialect in TABLES:
        assert {"right", "wrong"} == {kind for kind, _, _ in cases(dialect)}


@pytest.mark.parametrize(("dialect", "kind", "says", "sql"), EVERY)
def test_a_wrong_name_is_found_and_a_right_one_left_alone(
    dialect: str, kind: str, says: str, sql: str
) -> None:
    verdict = verdict_on(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    found = [error.describe() for error in Linter(catalog(dialect)).problems(verdict.tree)]
    assert bool(found) is (kind == "wrong"), found
    assert says in "".join(found[:1])
