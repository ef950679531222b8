"""Lists of attacks and of honest queries: ours, and the shared ones where they are present."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorum.tools.guard import Passed, Refused, check, judge_list

CASES = Path(__file__).parent / "guard_cases"
GOLD = {"spider2-snow": "snowflake", "spider2-lite": "bigquery", "spider2-local": "sqlite"}


def cases(name: str, fields: int) -> list[list[str]]:
    """Lines of a case file, split at `` | `` into ``fields`` parts; the last is SQL."""
    lines = (CASES / name).read_text(encoding="utf-8").splitlines()
    rows = [line.split(" | ", fields - 1) for line in lines if line and not line.startswith("#")]
    return [[*row[:-1], row[-1].replace("⏎", "\n").replace("␀", "\0")] for row in rows]


@pytest.mark.parametrize(("dialect", "rule", "sql"), cases("refused.txt", 3))
def test_an_attack_is_refused_by_its_rule(dialect: str, rule: str, sql: str) -> None:
    verdict = check(sql, dialect)
    assert isinstance(verdict, Refused)
    assert verdict.rule == rule
    assert verdict.reason.endswith((".", ")"))


@pytest.mark.parametrize(("dialect", "sql"), cases("passed.txt", 2))
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


def gold(shared: Path) -> Iterator[tuple[str, str, str]]:
    """Every gold query: where it is from, its dialect, its SQL."""
    data = shared / "data"
    for name, dialect in GOLD.items():
        for path in sorted((data / name / "evaluation_suite" / "gold" / "sql").glob("*.sql")):
            yield f"{name}/{path.stem}", dialect, path.read_text(encoding="utf-8")
    for number, item in enumerate(json.loads((data / "spider1" / "dev.json").read_text())):
        yield f"spider1/{number}", "sqlite", item["query"]
    for number, line in enumerate((data / "defog" / "questions.jsonl").read_text().splitlines()):
        for sql in json.loads(line)["query"].split(";"):
            if sql.strip():
                yield f"defog/{number}", "sqlite", sql


@pytest.mark.heavy
def test_every_gold_query_passes(shared: Path) -> None:
    verdicts = [(name, check(sql, dialect)) for name, dialect, sql in gold(shared)]
    assert len(verdicts) > 900
    assert [item for item in verdicts if isinstance(item[1], Refused)] == []


@pytest.mark.heavy
def test_what_real_models_wrote_passes(shared: Path) -> None:
    paths = sorted((shared / "data" / "candidates").glob("*/*/*.sql"))
    ran = [path for path in paths if path.with_suffix(".csv").exists()]
    assert len(ran) > 1000
    refused = [path for path in ran if isinstance(check(path.read_text(), "snowflake"), Refused)]
    assert refused == []
