"""Lists of attacks and of honest queries: ours, and the shared ones where they are present."""

from __future__ import annotations

import sqlite3
from contextlib import closing, suppress
from pathlib import Path

import pytest

from quorum.tools.guard import Passed, Refused, check, judge_list
from quorum.tools.guard.output import render
from quorum.tools.guard.text import NotPure
from quorum.tools.sql import parse_statements
from tests.tools.case_files import cases


@pytest.mark.parametrize(("dialect", "rule", "sql"), cases("guard_cases/refused", 3))
def test_an_attack_is_refused_by_its_rule(dialect: str, rule: str, sql: str) -> None:
    verdict = check(sql, dialect)
    assert isinstance(verdict, Refused)
    assert verdict.rule == rule
    assert verdict.reason.endswith((".", ")"))


@pytest.mark.parametrize(("dialect", "sql"), cases("guard_cases/passed", 2))
def test_an_honest_query_passes_twice(dialect: str, sql: str) -> None:
    verdict = check(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    again = check(verdict.sql, dialect)
    assert isinstance(again, Passed), again
    assert again.sql == verdict.sql


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        *[("refuse.jsonl", "refused"), ("refuse2.jsonl", "refused")],
        *[("pass.jsonl", "pass"), ("pass2.jsonl", "pass")],
    ],
)
def test_shared_security_list(shared: Path, name: str, expected: str) -> None:
    path = shared / "security" / name
    verdicts = list(judge_list(path))
    wrong = [
        (line, verdict)
        for line, verdict in zip(path.read_text().splitlines(), verdicts, strict=True)
        if verdict["verdict"] != expected
    ]
    assert wrong == []


def test_awkward_forms_mean_the_same_however_their_text_is_made() -> None:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.execute('CREATE TABLE t(a, "a b")')
        connection.execute("INSERT INTO t VALUES ('{\"x\": {\"y\": 1}}', 'v')")
        for (sql,) in cases("guard_cases/awkward"):
            verdict = check(sql, "sqlite")
            assert isinstance(verdict, Passed), verdict
            expected = connection.execute(sql).fetchall()
            assert connection.execute(verdict.sql).fetchall() == expected, sql
            with suppress(NotPure):
                rendered = render(parse_statements(sql, "sqlite"), "sqlite")
                assert connection.execute(rendered).fetchall() == expected, sql


@pytest.mark.heavy
def test_what_real_models_wrote_passes(shared: Path) -> None:
    paths = sorted((shared / "data" / "candidates").glob("*/*/*.sql"))
    ran = [path for path in paths if path.with_suffix(".csv").exists()]
    assert len(ran) > 1000
    refused = [path for path in ran if isinstance(check(path.read_text(), "snowflake"), Refused)]
    assert refused == []
