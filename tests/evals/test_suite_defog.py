"""defog's questions: Quorum's set, and a checkout of sql-eval with defog-data's databases."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.scoring import verify_gold
from quorum.evals.suites import load_suite
from quorum.knowledge.errors import ConfigurationError
from tests.evals.shop import write_shop


def entry(**changes: Any) -> dict[str, Any]:
    return {
        "db_name": "shop",
        "db_type": "sqlite",
        "query_category": "ratio",
        "query": "SELECT {id,name} FROM users WHERE id < 3;",
        "question": "Which users?",
        "instructions": "",
    } | changes


def write_lines(folder: Path, *entries: dict[str, Any]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "questions.jsonl").write_text("".join(json.dumps(e) + "\n" for e in entries))


def write_csv(path: Path, *entries: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, list(entry()))
        writer.writeheader()
        writer.writerows(entries)


def test_a_question_with_all_that_it_has(tmp_path: Path) -> None:
    write_lines(tmp_path, entry(), entry(instructions="Round to 2 digits. ", query_category="order_by"))
    file = write_shop(tmp_path / "databases" / "shop.sqlite")
    first, second = load_suite("defog", tmp_path).questions
    assert (first.id, first.database, first.dialect, first.url) == (
        "0000",
        "shop",
        "sqlite",
        f"sqlite:///{file}",
    )
    assert first.gold_sql[2] == "SELECT id, name FROM users WHERE id < 3"
    assert (first.difficulty, dict(first.knowledge)) == ("ratio", {})
    assert dict(second.knowledge) == {"instructions": "Round to 2 digits."}
    assert second.extra == {"category": "order_by", "query": entry()["query"]}


@pytest.mark.parametrize("database", ["sqlite_dbs/shop.db", "defog-data/sqlite_dbs/shop.db"])
@pytest.mark.parametrize("inner", ["data", "", "sql-eval/data"])
def test_a_checkout_of_sql_eval(tmp_path: Path, database: str, inner: str) -> None:
    data = tmp_path / inner
    write_csv(data / "instruct_basic_sqlite.csv", entry(question="Third,\nin two lines?"))
    write_csv(data / "questions_gen_sqlite.csv", entry(question="First?"), entry(question="Second?"))
    write_csv(data / "questions_gen_postgres.csv", entry(question="Not this one"))
    write_shop(tmp_path / database)
    suite = load_suite("defog", tmp_path)
    assert [(q.id, q.question) for q in suite.questions] == [
        ("0000", "First?"),
        ("0001", "Second?"),
        ("0002", "Third,\nin two lines?"),
    ]
    assert suite.missing == (
        "Without instruct_advanced_sqlite.csv: get it from https://github.com/defog-ai/sql-eval.",
    )


def test_questions_without_their_database_are_left_out_and_keep_their_numbers(tmp_path: Path) -> None:
    write_lines(tmp_path, entry(db_name="gone"), entry())
    write_shop(tmp_path / "databases" / "shop.sqlite")
    suite = load_suite("defog", tmp_path)
    assert [q.id for q in suite.questions] == ["0001"]
    assert suite.missing[0].startswith("Left out for want of gone.sqlite: 1 question.")


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"query": " "}, "Entry 1 of .* has no query"),
        ({"question": None}, "has no question"),
        ({"query_category": ""}, "has no query_category"),
        ({"db_name": None}, "has no db_name"),
    ],
)
def test_damaged_questions_are_named(tmp_path: Path, damage: dict[str, Any], message: str) -> None:
    write_lines(tmp_path, entry(), entry(**damage))
    write_shop(tmp_path / "databases" / "shop.sqlite")
    with pytest.raises(ConfigurationError, match=message):
        load_suite("defog", tmp_path)


def test_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    with pytest.raises(
        ConfigurationError, match=r"has neither questions.jsonl nor data/questions_gen_sqlite"
    ):
        load_suite("defog", tmp_path)
    write_lines(tmp_path, entry())
    with pytest.raises(ConfigurationError, match="has none of the databases"):
        load_suite("defog", tmp_path)
    (tmp_path / "questions.jsonl").write_text("")
    with pytest.raises(ConfigurationError, match="has no question in"):
        load_suite("defog", tmp_path)
    (tmp_path / "questions.jsonl").unlink()
    file = tmp_path / "data" / "questions_gen_sqlite.csv"
    write_csv(file, entry())
    file.write_text(file.read_text() + 'shop,sqlite,ratio,"SELECT')
    with pytest.raises(ConfigurationError, match=r"questions_gen_sqlite\.csv cannot be read"):
        load_suite("defog", tmp_path)


def test_the_benchmark_itself(shared: Path) -> None:
    suite = load_suite("defog", shared / "data" / "defog")
    assert len(suite.questions) == 143
    assert sum(len(question.gold_sql) for question in suite.questions) == 188
    assert Counter(question.database for question in suite.questions)["broker"] == 31
    assert Counter(question.difficulty for question in suite.questions)["date_functions"] == 15
    assert suite.missing == ()
    assert sum(bool(question.knowledge) for question in suite.questions) == 58


async def test_gold_of_the_benchmark_passes_guard_and_lint_and_matches_itself(shared: Path) -> None:
    """One database, a question of each category; the whole is a run of ``quorum eval verify-gold``."""
    suite = load_suite("defog", shared / "data" / "defog")
    chosen = {q.difficulty: q for q in suite.questions if q.database == "geography"}
    chosen |= {"NULL beside text": suite.questions[29]}
    found = await verify_gold(suite, list(chosen.values()))
    assert {check.state for check in found.values()} == {"ok"}
    assert [check.reason for check in found.values() if check.reason] == []
