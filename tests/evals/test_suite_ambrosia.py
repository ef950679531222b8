"""AMBROSIA's questions: Quorum's set, the download as it is published, and samples of groups."""

from __future__ import annotations

import csv
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import Suite
from quorum.evals.running.databases import Databases
from quorum.evals.scoring import verify_gold
from quorum.evals.suites import load_suite, part_of
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import ConfigurationError
from tests.evals.shop import write_shop

PLACE = "data/scope/Banking & Co/scope_all_users/scope_all_users.sqlite"


def line(id: str, /, **changes: Any) -> dict[str, Any]:
    usual = {"id": id, "database": "shop_01", "question": "Which users?", "kind": "scope", "ambiguous": True}
    return usual | {"gold": ["SELECT name FROM users", "SELECT id FROM users"]} | changes


def write_lines(folder: Path, *lines: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    (folder / "questions.jsonl").write_text("".join(json.dumps(each) + "\n" for each in lines))
    write_shop(folder / "databases" / "shop_01.sqlite")
    return folder


def row(**changes: Any) -> dict[str, Any]:
    usual = {"question": "Which users?", "ambig_type": "scope", "is_ambiguous": "True", "split": "test"}
    usual |= {"ambig_question": "Which users?", "db_dump": "CREATE TABLE …;\n\nINSERT …", "db_file": PLACE}
    return usual | {"gold_queries": "SELECT name\r\nFROM users\n\nSELECT id FROM users"} | changes


def write_download(data: Path, *rows: dict[str, Any], name: str = "ambrosia.csv") -> None:
    data.mkdir(parents=True, exist_ok=True)
    with (data / name).open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(row()))
        writer.writeheader()
        writer.writerows(rows)


def test_a_question_with_its_readings_and_groups(tmp_path: Path) -> None:
    plain = line("b", gold=["SELECT 1"], ambiguous=False, kind="vague")
    suite = load_suite("ambrosia", write_lines(tmp_path, line("a"), plain))
    first, second = suite.questions
    assert first.gold_sql == ("SELECT name FROM users", "SELECT id FROM users")
    assert (first.difficulty, first.groups) == (
        "ambiguous scope",
        {"ambiguity": "ambiguous", "kind": "scope"},
    )
    assert second.groups == {"ambiguity": "plain", "kind": "vague"}
    assert (first.database, first.shown_as, suite.missing) == ("shop_01", "", ())


@pytest.mark.parametrize("inner", ["", "data"])
@pytest.mark.parametrize("name", ["ambrosia.csv", "ambrosia_resplit.csv"])
def test_the_download(tmp_path: Path, inner: str, name: str) -> None:
    rows = (
        row(split="few_shot_examples"),
        row(),
        row(question="Show all.", ambig_type="attachment", is_ambiguous="False", gold_queries="WITH t AS …"),
    )
    write_download(tmp_path / inner, *rows, name=name)
    file = write_shop(tmp_path / inner / PLACE.removeprefix("data/"))
    first, second = load_suite("ambrosia", tmp_path).questions
    assert (first.id, second.id) == ("0001", "0002")
    assert first.gold_sql == ("SELECT name\r\nFROM users", "SELECT id FROM users")
    assert second.gold_sql == ("WITH t AS …",)
    assert second.question == "Show all. Show them in one table."
    assert (second.groups["ambiguity"], second.groups["kind"]) == ("plain", "attachment")
    assert first.url.endswith(file.name)
    assert first.shown_as == "banking_co_01"


async def test_agents_do_not_see_a_database_name_that_tells_what_is_ambiguous(tmp_path: Path) -> None:
    write_download(tmp_path, row())
    write_shop(tmp_path / PLACE.removeprefix("data/"))
    question = load_suite("ambrosia", tmp_path).questions[0]
    databases = Databases(RunOptions())
    shown = (await databases.of(question)).resources_for(question)
    await databases.aclose()
    assert shown.catalog.name == "banking_co_01"
    assert "scope" not in shown.schema.text


def test_questions_without_their_database_are_left_out(tmp_path: Path) -> None:
    suite = load_suite("ambrosia", write_lines(tmp_path, line("a"), line("b", database="gone")))
    assert [question.id for question in suite.questions] == ["a"]
    assert suite.missing[0].startswith("Left out for want of gone.sqlite: 1 question.")
    assert part_of(suite, ids=["a"]).missing == suite.missing  # these are all that there are


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        ({"gold": None}, "Entry 2 of .* has no gold"),
        ({"id": "a"}, "two questions a"),
        ({"kind": ""}, "Entry 2 of .* has no kind"),
        ({"question": None}, "has no question"),
    ],
)
def test_damaged_questions_are_named(tmp_path: Path, damage: dict[str, Any], message: str) -> None:
    write_lines(tmp_path, line("a"), line("b", **damage))
    with pytest.raises(ConfigurationError, match=message):
        load_suite("ambrosia", tmp_path)


def test_a_folder_that_holds_something_else(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"neither questions.jsonl nor ambrosia.csv"):
        load_suite("ambrosia", tmp_path)
    write_download(tmp_path, row(split="few_shot_examples"))
    with pytest.raises(ConfigurationError, match="no question in"):
        load_suite("ambrosia", tmp_path)
    write_download(tmp_path, row())
    with pytest.raises(ConfigurationError, match="none of the databases"):
        load_suite("ambrosia", tmp_path)
    (tmp_path / "ambrosia.csv").write_text('question,db_file\n"cut', encoding="utf-8")
    with pytest.raises(ConfigurationError, match="cannot be read"):
        load_suite("ambrosia", tmp_path)


@pytest.fixture
def grouped(tmp_path: Path) -> Suite:
    """Twenty questions, every other one plain."""
    lines = (line(f"q{n:02}", ambiguous=n % 2 == 0, gold=["SELECT 1"]) for n in range(20))
    return load_suite("ambrosia", write_lines(tmp_path, *lines))


def test_a_sample_of_groups_is_the_same_each_time_and_grows(grouped: Suite) -> None:
    small = grouped.chosen(sample={"ambiguous": 3, "plain": 2})
    assert Counter(question.groups["ambiguity"] for question in small) == {"ambiguous": 3, "plain": 2}
    assert small == grouped.chosen(sample={"plain": 2, "ambiguous": 3})
    larger = grouped.chosen(sample={"ambiguous": 6, "plain": 2})
    assert {question.id for question in small} < {question.id for question in larger}
    assert [question.id for question in larger] == sorted(question.id for question in larger)
    assert len(grouped.chosen(sample={"": 7})) == 7
    assert len(grouped.chosen(sample={"plain scope": 99})) == 10
    halves = [grouped.chosen(sample={"ambiguous": 8}, shard=(n, 2)) for n in (1, 2)]
    assert len({question.id for half in halves for question in half}) == 8
    with pytest.raises(ConfigurationError, match=r"no question in a group 'hard'") as error:
        grouped.chosen(sample={"hard": 1})
    assert "ambiguous, ambiguous scope, plain, plain scope, scope" in str(error.value.hint)


def test_the_set_itself(shared: Path) -> None:
    suite = load_suite("ambrosia", shared / "data" / "ambrosia")
    assert len(suite.questions) == 298
    readings = Counter((q.groups["ambiguity"], q.groups["kind"], len(q.gold_sql)) for q in suite.questions)
    assert readings == {
        ("ambiguous", "scope", 2): 43,
        ("ambiguous", "attachment", 2): 26,
        ("ambiguous", "vague", 3): 22,
        ("plain", "scope", 1): 86,
        ("plain", "attachment", 1): 52,
        ("plain", "vague", 1): 69,
    }
    assert suite.missing == ()


async def test_gold_of_the_set_matches_itself(shared: Path) -> None:
    """A question of each difficulty; the whole is a run of ``quorum eval verify-gold``."""
    suite = load_suite("ambrosia", shared / "data" / "ambrosia")
    chosen = list({question.difficulty: question for question in suite.questions}.values())
    found = await verify_gold(suite, chosen)
    assert [(check.state, check.reason) for check in found.values()] == [("ok", "")] * 6
