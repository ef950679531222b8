"""Files with own questions: what they may hold, and what is said of lines that are wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from quorum.evals.questions import is_id, read_ids
from quorum.evals.running.databases import DatabasePool
from quorum.evals.scoring import verify_gold
from quorum.evals.suites.own import load_own
from quorum.graph.options import RunOptions
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError
from tests.evals.shop import write_shop
from tests.schema_folders import write_schema

ASK = "Which users?"


@pytest.fixture
def db(tmp_path: Path) -> str:
    return str(write_shop(tmp_path / "shop.db"))


def lines(folder: Path, *items: Any) -> Path:
    """A file of JSON Lines; texts are written as they are."""
    file = folder / "own.jsonl"
    file.write_text("\n".join(item if isinstance(item, str) else json.dumps(item) for item in items) + "\n")
    return file


def table(folder: Path, text: str, *, encoding: str = "utf-8") -> Path:
    file = folder / "own.csv"
    file.write_bytes(text.encode(encoding))
    return file


def test_json_lines_with_all_fields(tmp_path: Path, db: str) -> None:
    (tmp_path / "gold.csv").write_text("n\n4\n")
    full = {
        "id": "users-1",
        "question": " How many users are there? ",
        "sql": ["SELECT COUNT(*) FROM users", "SELECT 4"],
        "result": "gold.csv",
        "database": "shop.db",
        "difficulty": "easy",
        "evidence": "A user is a row.",
        "documents": "# Users",
    }
    suite = load_own(
        lines(tmp_path, full, {"question": ASK, "sql": "SELECT 1", "difficulty": 3, "id": 7}), db
    )
    first, second = suite.questions
    assert (suite.name, suite.folder, suite.missing) == ("own.jsonl", tmp_path, ())
    assert (first.id, first.question, first.difficulty) == ("users-1", "How many users are there?", "easy")
    assert first.gold_sql == ("SELECT COUNT(*) FROM users", "SELECT 4")
    assert (first.url, first.database, first.dialect) == (db, "shop", "sqlite")
    assert first.knowledge == {"evidence": "A user is a row.", "documents": "# Users"}
    assert first.extra == {"result": str(tmp_path / "gold.csv")}
    assert (second.id, second.difficulty, second.gold_sql, second.extra) == ("7", "3", ("SELECT 1",), {})


def test_csv_and_json_lines_with_windows_line_ends_marks_and_odd_white_space(tmp_path: Path, db: str) -> None:
    text = (
        'question,sql,Difficulty \r\n"Which, and\r\nhow many ""users""?","SELECT *\r\nFROM users",hard\r\n'
        "\r\n,,\r\nWho?,,\r\n"
    )
    suite = load_own(table(tmp_path, text, encoding="utf-8-sig"), db)
    first, second = suite.questions
    assert first.question == 'Which, and\r\nhow many "users"?'
    assert (first.gold_sql, first.difficulty) == (("SELECT *\r\nFROM users",), "hard")
    assert (second.id, second.question, second.gold_sql) == ("0001", "Who?", ())
    assert suite.missing == ("Without sql and result, so asked and not scored: 1 (0001).",)
    file, odd = tmp_path / "own.jsonl", json.dumps({"question": "a\u2028b\u0085c"}, ensure_ascii=False)
    file.write_bytes(("\ufeff" + odd + "\r\n\r\n   \r\n" + json.dumps({"question": ASK}) + "\r\n").encode())
    assert [q.question for q in load_own(file, db).questions] == ["a\u2028b\u0085c", ASK]


def test_ids_are_places_unless_given_empty_fields_are_none_and_others_are_told(
    tmp_path: Path, db: str
) -> None:
    empty = {"question": "c", "sql": "SELECT 1", "id": "", "result": None, "db": " ", "knowledge": ""}
    other = {"question": "b", "id": "x.y_z-1", "SQLs": "x", "author": "me"}
    suite = load_own(lines(tmp_path, {"question": "a"}, other, empty), db)
    assert [q.id for q in suite.questions] == ["0000", "x.y_z-1", "0002"]
    found = suite.questions[2]
    assert (found.url, found.knowledge, found.extra) == (db, {}, {})
    assert suite.missing[0].startswith("Fields left out: sqls, author. Known are question, id, sql, result,")


def test_databases(tmp_path: Path, db: str, subtests: pytest.Subtests) -> None:
    for given, url, name, dialect in (
        ("{folder}/shop.db", "{folder}/shop.db", "shop", "sqlite"),
        ("shop.db", "{folder}/shop.db", "shop", "sqlite"),
        ("sqlite:///shop.db", "sqlite:///{folder}/shop.db", "shop", "sqlite"),
        ("sqlite:////data/other.sqlite", "sqlite:////data/other.sqlite", "other", "sqlite"),
        ("duckdb:///sales.duckdb", "duckdb:///{folder}/sales.duckdb", "sales", "duckdb"),
        ("sample", "sample", "sample", "sqlite"),
    ):
        for field in ("database", "db"):
            with subtests.test(given=given):
                file = lines(tmp_path, {"question": ASK, field: given.format(folder=tmp_path)})
                found = load_own(file, "sample" if given != "sample" else db).questions[0]
                told = (found.url, found.database, found.dialect)
                assert told == (url.format(folder=tmp_path), name, dialect)
    write_schema(tmp_path / "CITY" / "PUBLIC")
    found = load_own(lines(tmp_path, {"question": ASK, "db": f"schema://{tmp_path}/CITY"}), None).questions[0]
    assert (found.dialect, found.live, found.database) == ("snowflake", False, "CITY")


def test_a_database_is_needed_and_secrets_of_its_url_are_not_shown(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"Line 1 of .*: it names no database.*--db"):
        load_own(lines(tmp_path, {"question": ASK}), None)
    file = lines(tmp_path, {"question": ASK, "db": "sqlite://me:hidden@host"})
    with pytest.raises(ConfigurationError) as raised:
        load_own(file, None)
    assert "sqlite://me:[redacted]@host" in str(raised.value)
    assert "hidden" not in str(raised.value)


def test_wrong_lines_are_named(tmp_path: Path, db: str, subtests: pytest.Subtests) -> None:
    for line, message in (
        ({"sql": "SELECT 1"}, "question: "),
        ({"question": ["a"]}, "question: "),
        ({"question": ASK, "id": "a/b"}, "the id 'a/b' cannot be used. It names files"),
        ({"question": ASK, "id": "x" * 82}, "cannot be used. It names files: use at most 81 letters"),
        ({"question": ASK, "id": "FIRST"}, "there is a question FIRST before it"),
        ({"question": ASK, "sql": ["SELECT 1", " "]}, "sql: it is neither a query nor a list"),
        ({"question": ASK, "result": "gone.csv"}, "there is no file "),
        ({"question": ASK, "result": "shop.db"}, "is neither .csv nor .parquet"),
        ({"question": ASK, "db": "a.db", "database": "b.db"}, "it names its database twice"),
        ({"question": ASK, "db": "gone.db"}, "its database cannot be used. There is no file"),
        ({"question": ASK, "db": "cobol://x"}, "There is no connector for cobol://"),
        ({"question": ASK, "Question": ASK}, "there are two fields question"),
        ("{'question': 1}", "this is no JSON"),
        ('["a"]', "this is no JSON object"),
        ('{"question": "\\ud800"}', "half a character"),
    ):
        with subtests.test(line=line):
            file = lines(tmp_path, {"question": ASK, "id": "first"}, "", line)
            with pytest.raises(ConfigurationError) as raised:
                load_own(file, db)
            assert str(raised.value).startswith(f"Line 3 of {file}: ")
            assert message in str(raised.value)


def test_wrong_csv_is_named(tmp_path: Path, db: str, subtests: pytest.Subtests) -> None:
    for text, start, message in (
        ("question,sql\na,SELECT 1,x\n", "Line 2 of ", "there are 3 fields, the header names 2"),
        ('question,sql\n"a\nb",SELECT 1\nc,"SELECT 1\n\n', "Line 4 of ", "this is no CSV"),
        ('question,sql\n"a\n\nb",SELECT 1\n,SELECT 1\n', "Line 5 of ", "question: "),
        ("text,sql\na,b\n", "Line 1 of ", "the header has no field question"),
        ("question;sql\na;b\n", "Line 1 of ", "separated by commas"),
        ("", "", "holds no question"),
    ):
        with subtests.test(text=text):
            with pytest.raises(ConfigurationError) as raised:
                load_own(table(tmp_path, text), db)
            assert str(raised.value).startswith(start)
            assert message in str(raised.value)


def test_files_that_cannot_be_read(tmp_path: Path, db: str) -> None:
    with pytest.raises(ConfigurationError, match="cannot be read: No such file"):
        load_own(tmp_path / "gone.csv", db)
    with pytest.raises(ConfigurationError, match=r"Line 2 of .* no UTF-8 text"):
        load_own(table(tmp_path, "question\nf\u00fcr\n", encoding="latin-1"), db)
    (tmp_path / "own.txt").write_text("question\n")
    with pytest.raises(ConfigurationError, match=r"neither \.jsonl nor \.csv"):
        load_own(tmp_path / "own.txt", db)


async def test_own_questions_on_their_database(tmp_path: Path, db: str) -> None:
    """As they run: opened by their URL, with the knowledge that belongs to each, and their gold checked."""
    file = lines(
        tmp_path,
        {"question": ASK, "sql": "SELECT id FROM users", "knowledge": "A user is a row."},
        {"question": ASK, "sql": "SELECT gone FROM users", "db": "sqlite:///shop.db"},
        {"question": ASK},
    )
    suite = load_own(file, db)
    found = await verify_gold(suite, suite.questions)
    assert [check.state for check in found.values()] == ["ok", "fails", "missing"]
    databases = DatabasePool(RunOptions.from_dict({"models": ["offline"]}))
    try:
        opened = await databases.of(suite.questions[0])
        documents = opened.resources_for(suite.questions[0]).documents
        assert documents.texts == {"knowledge": "A user is a row."}
    finally:
        await databases.aclose()


# Ids, and files of them


def test_an_id_is_what_may_name_a_run(tmp_path: Path) -> None:
    for text in ("q.1_a-B", "x" * 81):
        assert is_id(text)
        Trace.create(tmp_path, text).close()
    for text in ("x" * 82, "_a", ".a", "a/b", "a\n"):
        assert not is_id(text)
        with pytest.raises(ConfigurationError, match="cannot name a run"):
            Trace.create(tmp_path, text)
    assert not is_id("")


def test_one_id_a_line_each_once_without_blanks_and_comments(tmp_path: Path) -> None:
    file = tmp_path / "ids.txt"
    with pytest.raises(ConfigurationError, match=r"ids\.txt"):
        read_ids(file)
    file.write_bytes("\ufeffq2\r\n\n# not these\n  q1 \n#q9\nq2\n".encode())
    assert read_ids(file) == ("q2", "q1")
    for content in (b"# none\n\n", b"\xff\xfe"):
        file.write_bytes(content)
        with pytest.raises(ConfigurationError, match=r"ids\.txt"):
            read_ids(file)
