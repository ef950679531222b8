"""What the guard lets pass: lists of attacks and of honest queries, and properties that hold for any."""

from __future__ import annotations

import hashlib
import sqlite3
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from quorum.tools.guard import Passed, Rejected, check, judge_list
from quorum.tools.guard.output import render
from quorum.tools.guard.text import NotPure
from quorum.tools.sql import parse_statements
from tests.tools.case_files import cases


@pytest.mark.parametrize(("dialect", "rule", "sql"), cases("guard_cases/refused", 3))
def test_an_attack_is_refused_by_its_rule(dialect: str, rule: str, sql: str) -> None:
    verdict = check(sql, dialect)
    assert isinstance(verdict, Rejected)
    assert verdict.rule == rule
    assert verdict.reason.endswith((".", ")"))


@pytest.mark.parametrize(("dialect", "sql"), cases("guard_cases/passed", 2))
def test_an_honest_query_passes_twice(dialect: str, sql: str) -> None:
    verdict = check(sql, dialect)
    assert isinstance(verdict, Passed), verdict
    again = check(verdict.sql, dialect)
    assert isinstance(again, Passed), again
    assert again.sql == verdict.sql


@pytest.mark.parametrize("name", ["refuse", "refuse2", "pass", "pass2"])
def test_shared_security_list(shared: Path, name: str) -> None:
    path = shared / "security" / f"{name}.jsonl"
    verdicts = zip(path.read_text().splitlines(), judge_list(path), strict=True)
    expected = "pass" if name.startswith("pass") else "refused"
    assert [each for each in verdicts if each[1]["verdict"] != expected] == []


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
    refused = [path for path in ran if isinstance(check(path.read_text(), "snowflake"), Rejected)]
    assert refused == []


COLUMNS = ["id", "status", "o.id", "o.total", "1", "'a; DROP TABLE x'", "NULL"]
PURE_CALLS = {
    "sqlite": "upper({0}) | coalesce({0}, {1}) | round({0}, 2) | strftime('%Y', {0}) | substr({0}, 1, 2)",
    "duckdb": "list_value({0}, {1}) | date_trunc('month', {0}) | regexp_replace({0}, 'a', 'b') | len({0})",
    "postgres": "to_char({0}, 'YYYY') | greatest({0}, {1}) | jsonb_build_object('k', {0}) | left({0}, 2)",
    "mysql": "concat_ws('-', {0}, {1}) | ifnull({0}, {1}) | date_format({0}, '%Y') | instr({0}, 'a')",
    "snowflake": "iff({0} > 1, {0}, {1}) | try_to_number({0}) | dateadd(day, 1, {0})"
    " | object_construct('k', {0})",
    "bigquery": "safe_divide({0}, {1}) | format_date('%Y', {0}) | struct({0} AS a) | safe.substr({0}, 1)",
}
EVIL_CALLS = {
    "sqlite": "load_extension({0}) | writefile('x', {0}) | fts3_tokenizer({0}) | edit({0})",
    "duckdb": "getenv({0}) | {0}.getenv() | nextval('s') | sleep_ms({0})"
    " | list_transform([1], x -> getenv({0}))",
    "postgres": "pg_sleep({0}) | pg_catalog.pg_read_file({0}) | nextval('s')"
    " | query_to_xml({0}, true, true, '')",
    "mysql": "sleep({0}) | load_file({0}) | benchmark(9, {0}) | get_lock({0}, 1) | (@x := {0})",
    "snowflake": "system$wait({0}) | snowflake.cortex.complete('m', {0}) | s.nextval | my_udf({0})",
    "bigquery": "ai.generate({0}) | d.remote({0}) | keys.new_keyset({0}) | `p.d.f`({0})",
}
EVIL_STATEMENTS = """
    INSERT INTO orders VALUES (1)
    INSERT INTO orders ({read})
    UPDATE orders SET total = 1
    DELETE FROM orders
    DROP TABLE orders
    CREATE TABLE loot AS {read}
    ALTER TABLE orders ADD COLUMN x INT
    TRUNCATE TABLE orders
    MERGE INTO orders USING ({read}) s ON 1 = 1 WHEN MATCHED THEN DELETE
    GRANT SELECT ON orders TO x
    BEGIN
    COMMIT
    CALL p()
    SET x = 1
    ATTACH 'x.db' AS y
    VACUUM
    COPY orders TO 'x.csv'
    EXPLAIN DELETE FROM orders
    {read}; DELETE FROM orders
    DELETE FROM orders; {read}
    SELECT 1; {read}
    WITH w AS (DELETE FROM orders RETURNING *) SELECT * FROM w
    SELECT * FROM (DELETE FROM orders RETURNING *) s
    SELECT * INTO loot FROM ({read}) s
    SELECT * FROM orders FOR UPDATE
""".strip().splitlines()
dialects = st.sampled_from(sorted(PURE_CALLS))


def disguised(sql: str) -> st.SearchStrategy[str]:
    """The same SQL in other letter case, with other white space and comments between its words."""
    gaps = [" ", "\n", "\t ", "  ", " /* x; y */ ", " -- z\n"]

    def dress(seed: list[tuple[bool, str]]) -> str:
        words = sql.split(" ")
        dressed = [
            word.upper() if upper and not set("'\"`") & set(word) else word
            for word, (upper, _) in zip(words, seed, strict=True)
        ]
        return "".join(word + gap for word, (_, gap) in zip(dressed, seed, strict=True)).strip()

    count = len(sql.split(" "))
    return st.lists(st.tuples(st.booleans(), st.sampled_from(gaps)), min_size=count, max_size=count).map(
        dress
    )


@st.composite
def reads(draw: Callable[..., str], dialect: str, evil: bool = False) -> str:
    """A random query of the dialect; with ``evil``, one call in it has a side effect."""

    def call(of: dict[str, str]) -> str:
        items = [draw(st.sampled_from(COLUMNS)) for _ in range(2)]
        return draw(st.sampled_from(of[dialect].split(" | "))).format(*items)

    slots = [call(PURE_CALLS) for _ in range(6)]
    if evil:
        slots[int(draw(st.integers(0, 5)))] = call(EVIL_CALLS)
    query = (
        f"SELECT {slots[0]} AS a, count(DISTINCT CASE WHEN {slots[1]} IS NULL THEN 1 ELSE 2 END) AS n "
        f"FROM orders AS o JOIN customers AS c ON o.customer_id = (SELECT max({slots[2]}) FROM orders AS o) "
        f"WHERE {slots[3]} = 1 GROUP BY 1 HAVING count({slots[4]}) > 0 ORDER BY {slots[5]} LIMIT 5"
    )
    wraps = ["{}", "SELECT * FROM ({}) AS s", "WITH w AS ({}) SELECT * FROM w", "({}) UNION ALL ({})"]
    wrap = draw(st.sampled_from(wraps))
    return wrap.format(*[query] * wrap.count("{}"))


@pytest.mark.heavy
@settings(max_examples=60)
@given(st.data(), dialects)
def test_honest_reads_pass(data: st.DataObject, dialect: str) -> None:
    read = data.draw(reads(dialect))
    dressed = data.draw(disguised(read))
    for sql in (read, dressed):
        verdict = check(sql, dialect)
        assert isinstance(verdict, Passed), (sql, verdict)


@settings(max_examples=120)
@given(st.data(), dialects, st.sampled_from(["", *EVIL_STATEMENTS]))
def test_neither_a_write_nor_a_call_with_side_effects_passes(
    data: st.DataObject, dialect: str, statement: str
) -> None:
    read = data.draw(reads(dialect, evil=not statement))
    sql = statement.strip().replace("{read}", read) or read
    assert isinstance(check(data.draw(disguised(sql)), dialect), Rejected)


WORDS = """
    SELECT FROM WHERE orders customers id total * ( ) , ; = 1 'a' WITH AS w UNION ALL VALUES INSERT
    INTO REPLACE UPDATE SET DELETE DROP TABLE CREATE TEMP VIEW ATTACH DETACH VACUUM PRAGMA
    user_version journal_mode table_info EXPLAIN QUERY PLAN BEGIN COMMIT RETURNING ORDER BY LIMIT
    REINDEX ANALYZE -- /* */ " ` [ ] IN EXISTS NOT JOIN ON USING GROUP
"""


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("guard") / "shop.db"
    with sqlite3.connect(path) as connection:
        connection.executescript(
            'CREATE TABLE orders(id, customer_id, total, status, "drop");'
            "CREATE TABLE customers(id, name);"
            "INSERT INTO orders VALUES (1, 1, 2.5, 'open', 0), (2, 1, 4.5, 'closed', 1);"
            "INSERT INTO customers VALUES (1, 'Ada');"
        )
    connection.close()
    return path


def run_writable(path: Path, sql: str) -> None:
    """Run on a connection that may write; what SQLite says about the query does not matter here."""
    connection = sqlite3.connect(path, isolation_level=None)
    steps = iter(range(200))
    connection.set_progress_handler(lambda: next(steps, None) is None, 1000)
    try:
        connection.execute(sql).fetchmany(100)
    except sqlite3.Error:
        return
    finally:
        connection.close()


soup = st.lists(st.sampled_from(WORDS.split()), min_size=1, max_size=14).map(" ".join)
prefixed = st.tuples(st.sampled_from(["SELECT * FROM orders ", "SELECT 1 ", "WITH w AS (SELECT 1) "]), soup)


@pytest.mark.heavy
@settings(
    max_examples=250, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.filter_too_much]
)
@given(st.one_of(soup, prefixed.map("".join), reads("sqlite"), st.sampled_from(EVIL_STATEMENTS)))
def test_what_passes_leaves_a_writable_database_as_it_was(shop: Path, sql: str) -> None:
    verdict = check(sql, "sqlite")
    assume(isinstance(verdict, Passed))
    assert isinstance(verdict, Passed)
    before = hashlib.sha256(shop.read_bytes()).digest()
    run_writable(shop, verdict.sql)
    assert hashlib.sha256(shop.read_bytes()).digest() == before
    assert sorted(path.name for path in shop.parent.iterdir()) == ["shop.db"]
