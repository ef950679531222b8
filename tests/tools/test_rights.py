"""Rights: what rules hide is named nowhere and read by no query; what they mask leaves as pseudonyms only."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

import duckdb
import pyarrow as pa
import pytest

from quorum.graph.options import RunOptions
from quorum.graph.resources import Resources, open_resources
from quorum.knowledge.catalog import Catalog, Column, Table, Withheld
from quorum.knowledge.errors import ConfigurationError
from quorum.tools.execute import Database, execute
from quorum.tools.guard.text import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.masking import MASK
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from quorum.tools.rights import withhold
from tests.engines import build
from tests.servers.postgres_server import PostgresServer
from tests.tools.databases.contract import result
from tests.tools.test_guard import passed

SHOP = """
CREATE TABLE c (id INTEGER PRIMARY KEY, email VARCHAR(80), country VARCHAR(20), salary INTEGER);
CREATE TABLE o (oid INTEGER, cid INTEGER, amount REAL, mail VARCHAR(80));
CREATE TABLE secret (v VARCHAR(20));
CREATE VIEW contacts AS SELECT id, lower(email) AS contact, country FROM c;
CREATE VIEW again AS SELECT contact || '' AS reached FROM contacts;
CREATE VIEW peek AS SELECT v FROM secret;
CREATE VIEW sizes AS SELECT country, count(*) AS n FROM c GROUP BY country;
INSERT INTO c VALUES (1, 'zqxanna@zqxmail.example', 'DE', 770001),
    (2, 'zqxbob@zqxmail.example', 'DE', 770002), (3, 'zqxeve@zqxpost.example', 'FR', 770003);
INSERT INTO o VALUES (1, 1, 5.0, 'zqxanna@zqxmail.example'), (2, 1, 7.0, 'x');
INSERT INTO secret VALUES ('zqxsecret');
"""
LEAK = re.compile(r"(?i)zqx|77000\d|7a7178")
PSEUDONYM = re.compile(rf"{MASK}[0-9a-f]{{6}}")
RULES: dict[str, Any] = {"hide": ["secret"], "mask": ["c.email", "*.salary", "mail"]}


def made(engine: str, folder: Path, script: str = SHOP) -> str:
    """The URL of a new database file."""
    return build(engine, folder / f"shop.{engine}", script)


@asynccontextmanager
async def opened(url: str, home: Path, **rules: Any) -> AsyncIterator[tuple[Resources, Database]]:
    options = RunOptions(database=[url], models=["offline"], home=home, **(rules or RULES))
    found = await open_resources(options)
    try:
        yield found, Database(found.connector, found.catalog, found.linter, Limits(seconds=30), Ledger())
    finally:
        await found.aclose()


def lines(name: str) -> list[str]:
    path = Path(__file__).with_name("rights_cases") / f"{name}.sql"
    return [line for line in path.read_text("utf-8").splitlines() if line and not line.startswith("--")]


def said_by(found: QueryResult | QueryError, rows: int = 50) -> str:
    return found.describe() if isinstance(found, QueryError) else f"{found.columns} {found.preview(rows)}"


POSTGRES = pytest.param("postgres", marks=pytest.mark.heavy)


@pytest.mark.parametrize("engine", ["sqlite", "duckdb", POSTGRES])
async def test_no_query_gets_a_masked_value_out(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    """None shows a value, in a result or an error, and what rules hide is not read."""
    if engine == "postgres":
        server: PostgresServer = request.getfixturevalue("postgres")
        url = f"{server.admin_url}/{server.new_database(SHOP)}"
    else:
        url = made(engine, tmp_path)
    async with opened(url, tmp_path / "home") as (found, database):
        assert not LEAK.search(repr(found.catalog) + found.schema.text)
        ran = {
            sql: said_by(await execute(database, sql, agent="test"))
            for sql in lines("attacks") + lines(engine)
        }
        assert {sql: said for sql, said in ran.items() if LEAK.search(said.replace(sql, ""))} == {}


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
@pytest.mark.parametrize("joined", ["JOIN b USING (k)", "NATURAL JOIN b", "JOIN b ON a.k = b.k"])
async def test_what_a_join_compares_with_a_masked_column_is_masked(
    engine: str, joined: str, tmp_path: Path
) -> None:
    script = "CREATE TABLE a (k TEXT); CREATE TABLE b (k TEXT);"
    script += "INSERT INTO a VALUES ('zqx1'); INSERT INTO b VALUES ('zqx1'), ('zqx2');"
    async with opened(made(engine, tmp_path, script), tmp_path / "home", mask=["a.k"]) as (_, database):
        said = said_by(await execute(database, f"SELECT b.k FROM a {joined}", agent="test"))
        assert PSEUDONYM.search(said)
        assert not LEAK.search(said)


HIDDEN = [
    "SELECT * FROM secret",
    'SELECT * FROM main."SECRET"',
    "SELECT 1 FROM c WHERE EXISTS (SELECT 1 FROM secret)",
    "WITH secret AS (SELECT * FROM secret UNION ALL SELECT 'x') SELECT * FROM secret",
    "SELECT * FROM peek",
    'WITH "ſecret" AS (SELECT 1) SELECT * FROM secret',
]
SQLITE = [
    'SELECT 1 IN "secret"',
    "SELECT name FROM sqlite_master",
    "SELECT * FROM pragma_table_info('secret')",
    "PRAGMA table_info(secret)",
    "EXPLAIN SELECT 1",
]
DUCKDB = [
    "FROM secret",
    "SELECT * FROM shop.main.secret",
    "PIVOT secret ON v USING count(*)",
    "WITH RECURSIVE secret AS (FROM secret UNION SELECT 'x' FROM secret WHERE 1 = 0 LIMIT 5) FROM secret",
    "SUMMARIZE secret",
    "SELECT table_name FROM information_schema.tables",
    "SELECT * FROM pragma_storage_info('c')",
    "SHOW TABLES",
]


@pytest.mark.parametrize(("engine", "own"), [("sqlite", SQLITE), ("duckdb", DUCKDB)])
async def test_what_is_hidden_is_refused_as_what_is_not_there(
    engine: str, own: list[str], tmp_path: Path
) -> None:
    async with opened(made(engine, tmp_path), tmp_path / "home") as (found, database):
        assert {table.name for table in found.catalog.tables} == {"c", "o", "contacts", "again", "sizes"}
        assert not re.search("secret|peek", repr(found.catalog.tables) + found.schema.text)
        for sql in HIDDEN + own:
            refused = await execute(database, sql, agent="test")
            assert isinstance(refused, QueryError), sql
            assert refused.by in ("guard", "lint"), sql
            absent = await execute(database, sql.replace("secret", "nowhere"), agent="test")
            if isinstance(absent, QueryError) and "nowhere" in sql.replace("secret", "nowhere"):
                assert absent.message.replace("nowhere", "secret") == refused.message, sql
            assert not refused.suggestions, sql
        fine = "WITH secret AS (SELECT 1 AS v) SELECT * FROM secret"
        result(await execute(database, fine, agent="test"))


async def test_questions_over_masked_columns_are_answered(tmp_path: Path) -> None:
    async with opened(made("sqlite", tmp_path), tmp_path / "home") as (_, database):

        async def rows(sql: str) -> list[list[Any]]:
            return result(await execute(database, sql, agent="test")).preview(50)

        counted = await rows("SELECT country, COUNT(*) FROM c WHERE email LIKE '%zqxmail%' GROUP BY country")
        assert counted == [["DE", 2]]
        assert await rows("SELECT COUNT(DISTINCT email), COUNT(salary) FROM c WHERE salary > 770001") == [
            [2, 2]
        ]
        grouped = await rows(
            "SELECT email, COUNT(*), SUM(amount) FROM c JOIN o ON c.id = o.cid GROUP BY email"
        )
        assert [row[1:] for row in grouped] == [[2, 12.0]]
        assert PSEUDONYM.fullmatch(grouped[0][0])
        assert await rows("SELECT email FROM c WHERE id = 1") == [grouped[0][:1]], "equal stays equal"
        assert await rows("SELECT contact FROM contacts WHERE id = 1") == [grouped[0][:1]], "in views as well"
        assert await rows("SELECT country FROM c ORDER BY salary DESC LIMIT 1") == [["FR"]]
        assert await rows("SELECT o.oid, c.country FROM c JOIN o ON o.mail = c.email") == [[1, "DE"]]
        assert await rows("SELECT NULLIF(email, email) FROM c LIMIT 1") == [[None]]
    key = tmp_path / "home" / "mask.key"
    assert key.stat().st_mode & 0o777 == 0o600
    async with opened(made("duckdb", tmp_path), tmp_path / "home") as (_, database):
        again = result(await execute(database, "SELECT email FROM c WHERE id = 1", agent="test"))
        assert again.preview() == [grouped[0][:1]], "the key is kept"


async def test_a_view_that_cannot_be_traced_is_masked_whole(tmp_path: Path) -> None:
    script = "CREATE TABLE c (id INT, email TEXT); CREATE VIEW v AS SELECT * FROM c a JOIN c b USING (id);"
    async with opened(made("sqlite", tmp_path, script), tmp_path / "home", mask=["c.email"]) as (found, _):
        assert {("v", "id"), ("v", "email")} < found.catalog.withheld.columns


SEEN = "c o contacts again sizes"


@pytest.mark.parametrize(
    ("rules", "tables", "masked"),
    [
        ({"show": ["c", "main.si*"]}, "c sizes", ""),
        ({"show": ["shop.main.C"]}, "c", ""),
        ({"show": ["tag:open"], "mask": ["tag:pii"]}, "c", "email"),
        ({"hide": ["tag:open"]}, "o secret peek", ""),
        (
            {"hide": ["s*"], "mask": ["email", "o.*"]},
            "c o contacts again",
            "email oid cid amount mail contact reached",
        ),
        ({"hide": ["secret"], "show": ["*", "peek"]}, f"{SEEN} peek", ""),
        (
            {"mask": ["shop:c.email", "other:x", "*:*.ssn"], "hide": ["SHOP:secret"]},
            SEEN,
            "email contact reached",
        ),
        ({"mask": ["o*:*"], "hide": ["secret", "peek"]}, SEEN, ""),
    ],
)
async def test_rules(rules: Any, tables: str, masked: str, tmp_path: Path) -> None:
    url, folder = made("sqlite", tmp_path), tmp_path / "docs"
    folder.mkdir()
    model = {"name": "c", "description": "People. #open", "columns": [{"name": "email", "tags": ["PII"]}]}
    (folder / "schema.yml").write_text(json.dumps({"version": 2, "models": [model]}), "utf-8")
    async with opened(url, tmp_path / "home", documents=folder, **rules) as (found, _):
        assert {table.name for table in found.catalog.tables} == {*tables.split()}
        assert {column for _, column in found.catalog.withheld.columns} == {*masked.split()}
        assert ("A rule masks the values of " in found.schema.text) == bool(masked)


@pytest.mark.parametrize(
    ("rules", "said"),
    [
        ({"show": ["hr.*"]}, "leave no table"),
        ({"mask": ["c.emial"]}, "1 of the rules"),
        ({"mask": ["c.email"], "hide": ["secrets", "shop:tag:pii"]}, "2 of the rules"),
    ],
)
async def test_a_rule_that_leaves_nothing_or_fits_nothing_is_an_error(
    rules: Any, said: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """The log alone names it."""
    with pytest.raises(ConfigurationError, match=said) as raised:
        async with opened(made("sqlite", tmp_path), tmp_path / "home", **rules):
            pass
    names = re.findall(r"c\.emial|secrets|tag:pii", str(rules))
    assert all(name in caplog.text and name not in str(raised.value) for name in names)


async def test_a_rule_may_fit_one_of_several_databases(tmp_path: Path) -> None:
    made("duckdb", tmp_path, "CREATE TABLE people (email TEXT)")
    staff = (tmp_path / "shop.duckdb").rename(tmp_path / "staff.duckdb")
    both = [made("sqlite", tmp_path), f"duckdb:///{staff}"]
    rules: Any = {"database": both, "mask": ["staff:email", "c.salary"]}
    found = await open_resources(RunOptions(models=["offline"], home=tmp_path / "home", **rules))
    await found.aclose()
    ends = {f"{table.rpartition('.')[2]}.{column}" for table, column in found.catalog.withheld.columns}
    assert ends == {"people.email", "c.salary"}


async def test_documents_and_verified_answers_name_nothing_hidden(tmp_path: Path) -> None:
    docs, kb = tmp_path / "docs", tmp_path / "kb" / "notes"
    docs.mkdir()
    kb.mkdir(parents=True)
    (docs / "terms.md").write_text(
        "# Terms\n\nThe table secret holds codes.\n\nA country is a code.\n", "utf-8"
    )
    (docs / "secret.md").write_text("Codes.\n", "utf-8")
    (kb / "rule.md").write_text("Join SECRET on v.\n", "utf-8")
    more: dict[str, Any] = {"documents": docs, "kb": tmp_path / "kb"}
    async with opened(made("sqlite", tmp_path), tmp_path / "home", **RULES, **more) as (found, _):
        assert found.documents.texts == {"terms.md": "# Terms\n\nA country is a code.\n"}
        assert found.knowledge.empty


LINEAGE = [
    ("SELECT * FROM c", (0, 1, 0)),
    (
        "SELECT country, email e, upper(email), COUNT(email), email IS NULL FROM c GROUP BY 1, 2",
        (0, 1, 1, 0, 0),
    ),
    ("SELECT id FROM c UNION ALL SELECT email FROM c", (1,)),
    ("SELECT (SELECT email FROM c LIMIT 1), 1", (1, 0)),
    ("WITH a(x, y, z) AS (SELECT * FROM c) SELECT x, y FROM a", (0, 1)),
    ("SELECT o.mail, o.cid FROM c JOIN o ON o.mail = c.email", (1, 0)),
    ("SELECT c.id, v.ch FROM c JOIN v ON substr(c.email, 1, 1) = v.ch", (0, 1)),
    ("SELECT d.b FROM (SELECT ch, ch AS b FROM v) d, c WHERE c.email LIKE d.ch || '%'", (1,)),
    ("SELECT v.ch, (SELECT COUNT(*) FROM c WHERE email LIKE v.ch || '%') FROM v", (1, 0)),
    (
        "SELECT id, row_number() OVER (PARTITION BY email ORDER BY id), lag(email) OVER (ORDER BY id) FROM c",
        (0, 0, 1),
    ),
    ("SELECT id, country FROM c WHERE email LIKE 'a%' ORDER BY email LIMIT 3", (0, 0)),
    ("WITH a AS (SELECT * FROM o), o AS (SELECT email FROM c) SELECT * FROM a", True),
    ("SELECT * FROM c a JOIN c b USING (id)", True),
    ("SELECT COUNT(*) FROM c LIMIT (SELECT length(email) FROM c)", True),
    ("SELECT rowid, x.email FROM c x", (1, 1)),
    ("SELECT mail FROM o, c", (0,)),
    ("SELECT mail FROM o", False),
]


def outline(dialect: str, masked: set[tuple[str, str]]) -> Linter:
    text = [Column(name, "TEXT") for name in ("id", "email", "country", "cid", "mail", "ch")]
    tables = (Table("c", tuple(text[:3])), Table("o", tuple(text[3:5])), Table("v", tuple(text[5:])))
    return Linter(Catalog("shop", dialect, tables, withheld=Withheld(columns=frozenset(masked), key=b"k")))


@pytest.mark.parametrize(("sql", "masks"), LINEAGE)
def test_lineage(sql: str, masks: Any) -> None:
    judged = outline("sqlite", {("c", "email")}).judge(passed(sql))
    assert isinstance(judged, Passed), judged
    assert judged.masks == (tuple(map(bool, masks)) if isinstance(masks, tuple) else masks)


def test_an_engines_error_holds_no_value() -> None:
    catalog = outline("duckdb", {("c", "email")}).catalog
    error = QueryError(
        ErrorKind.OTHER, "Could not parse string \"O'Neil\" to INT32\nO'Neil 770001\n^ expected c.id"
    )
    told = withhold(error, "SELECT CAST(email AS INT) FROM c", True, catalog)
    assert isinstance(told, QueryError)
    assert told.message == f"Could not parse string {MASK} to INT32 {MASK} expected {MASK}"
    assert withhold(error, "SELECT 1", False, catalog) == error


MARKERS = ["qzwxkva", "jvkqzpx", "wqjzkxv"]
GRAMMAR = {
    "query": """
        {select} {end} | SELECT * FROM ({select} {end}) AS t | WITH t AS ({select} {end}) SELECT * FROM t, u
        | WITH u AS ({select} {end}) SELECT u.* FROM u | SELECT x FROM ({select} {end}) AS u
        | SELECT max(x), count(*) FROM ({select} {end}) AS t | SELECT p FROM u WHERE p IN ({select} {end})
        | {select} UNION {select} {end} | WITH u AS ({select}), t AS ({select} {end}) SELECT * FROM t
        | SELECT * FROM ({select}) a, ({select} {end}) b | {select} EXCEPT {select} {end}""",
    "select": "SELECT {items} FROM {source} WHERE {value} IS NOT NULL OR 1 = 1",
    "items": "{item} | {item}, {item} | {item}, {item}, {item} | * | t.* | *, 1",
    "item": "{value} | {value} AS x | {value} AS m",
    "source": """t | u | t, u | t, u | t, u | t, u | t JOIN u ON t.id = u.k | t JOIN u ON t.m = u.p
        | u AS t, t AS u | t LEFT JOIN u USING (p)""",
    "name": """t.id | t.m | m | id | u.k | k | u.p | t.id | t.m | m | id | u.k | k | u.p | p | x | y | t.x
        | 1 | 'a' | NULL | 2""",
    "value": """{name} | {name} | {name} | {name} | {name} | {name} | {name} | upper({value})
        | lower({value}) | max({value}) | count({value})
        | min({value}) OVER (ORDER BY 1) | ({value} || 'z') | hex({value}) | CAST({value} AS TEXT)
        | substr({value}, 1, 6) | (SELECT max({value}) FROM t) | (SELECT {value} FROM u LIMIT 1)
        | ({value} IS NULL) | group_concat({value}) | (SELECT x FROM (SELECT {value} AS x FROM t) LIMIT 1)
        | coalesce({value}, {value}) | CASE WHEN {value} = 'a' THEN {value} END | ({value} || {value})
        | nullif({value}, {value}) | ({value} = {value})""",
    "end": " | GROUP BY 1 | ORDER BY 1 | LIMIT 2",
}
FORMS = {name: re.split(r"(?<!\|)\s*\|\s+(?!\|)", text.strip("\n")) for name, text in GRAMMAR.items()}
ROWS = f"""CREATE TABLE t (id INTEGER, m TEXT, p TEXT); CREATE TABLE u (k INTEGER, p TEXT);
INSERT INTO t VALUES (1, '{MARKERS[0]}', 'a'), (2, '{MARKERS[1]}', 'b'), (3, '{MARKERS[2]}', 'c');
INSERT INTO u VALUES (1, 'a'), (2, 'zz');"""
SPELT = {marker[i : i + 6] for marker in MARKERS for i in range(2)}
SPELT |= {each.encode().hex() for each in SPELT} | {each.upper().encode().hex() for each in SPELT}


def sentence(random: Random, kind: str = "query", deep: int = 5) -> str:
    """A random query of the grammar."""
    forms = FORMS[kind] if deep > 0 or kind != "value" else ["{name}"]
    return re.sub(r"\{(\w+)\}", lambda part: sentence(random, part[1], deep - 1), random.choice(forms))


@pytest.mark.parametrize("engine", ["sqlite", "duckdb"])
def test_no_random_query_shows_a_marker(engine: str) -> None:
    database: Any = sqlite3.connect(":memory:") if engine == "sqlite" else duckdb.connect()
    (database.executescript if engine == "sqlite" else database.execute)(ROWS)
    columns, random, ran = {"t": ("id", "m", "p"), "u": ("k", "p")}, Random(1), 0
    tables = tuple(Table(name, tuple(Column(c, "TEXT") for c in own)) for name, own in columns.items())
    withheld = Withheld(columns=frozenset({("t", "m")}), key=b"k")
    linter = Linter(Catalog("x", engine, tables, withheld=withheld))

    def run(sql: str) -> QueryResult | QueryError:
        try:
            cursor = database.execute(sql)
            rows = cursor.fetchmany(200)
        except (sqlite3.Error, duckdb.Error) as error:
            return QueryError(ErrorKind.OTHER, str(error))
        heads = [head[0] for head in cursor.description]
        texts = [pa.array([v if v is None else str(v) for v in column]) for column in zip(*rows, strict=True)]
        return QueryResult(pa.Table.from_arrays(texts or [pa.array([])] * len(heads), names=heads), 0.0)

    for _ in range(600):
        sql = sentence(random)
        verdict = verdict_on(sql, engine)
        judged = linter.judge(verdict) if isinstance(verdict, Passed) else None
        if isinstance(judged, Passed):
            found = withhold(run(judged.sql), judged.sql, judged.masks, linter.catalog)
            ran += isinstance(found, QueryResult)
            said = said_by(found, 200)
            assert not [part for part in SPELT if part in said.replace(sql, "").lower()], sql
    database.close()
    assert ran > 40
