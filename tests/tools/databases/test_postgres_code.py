"""What a plain query calls on PostgreSQL without naming it: nothing of it may take effect."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorum.tools.databases import connect
from quorum.tools.databases.postgres.code import OwnCode
from quorum.tools.execute import Database, execute
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from tests.servers.postgres_server import PostgresServer
from tests.tools.databases.contract import error, rows
from tests.waiting import PATIENCE

pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")

LANGUAGE = "LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(0); PERFORM mischief(); RETURN {}; END $$"
TRAPS = f"""
CREATE TABLE orders (id serial, name text, total int);
INSERT INTO orders (name, total) VALUES ('a', 1), ('b', 2);
CREATE SEQUENCE calls;
CREATE FUNCTION mischief() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION 'mischief';
END $$;
CREATE SCHEMA other;
CREATE FUNCTION evil(orders) RETURNS text {LANGUAGE.format("'x'")};
CREATE FUNCTION evil(text) RETURNS boolean {LANGUAGE.format("true")};
CREATE FUNCTION evil(integer) RETURNS integer {LANGUAGE.format("1")};
CREATE FUNCTION lower(integer) RETURNS text {LANGUAGE.format("'x'")};
CREATE FUNCTION plus(text, text) RETURNS text {LANGUAGE.format("$1")};
CREATE FUNCTION alike(integer, integer) RETURNS boolean {LANGUAGE.format("true")};
CREATE OPERATOR + (LEFTARG = text, RIGHTARG = text, FUNCTION = plus);
CREATE OPERATOR ~~ (LEFTARG = integer, RIGHTARG = integer, FUNCTION = alike);
CREATE DOMAIN picky AS text CHECK (evil(VALUE));
CREATE TYPE pair AS (a int, b text);
CREATE FUNCTION evil(pair) RETURNS text {LANGUAGE.format("'x'")};
CREATE FUNCTION paired(pair) RETURNS integer {LANGUAGE.format("1")};
CREATE CAST (pair AS integer) WITH FUNCTION paired(pair) AS IMPLICIT;
CREATE FUNCTION total_of(state int, text) RETURNS int {LANGUAGE.format("1")};
CREATE AGGREGATE sum (text) (SFUNC = total_of, STYPE = int, INITCOND = '0');
CREATE TABLE pairs (id int, p pair);
INSERT INTO pairs VALUES (1, ROW(1, 'x'));
CREATE TABLE policed (id int, name text);
INSERT INTO policed VALUES (1, 'x');
ALTER TABLE policed ENABLE ROW LEVEL SECURITY;
ALTER TABLE policed FORCE ROW LEVEL SECURITY;
CREATE POLICY theirs ON policed FOR SELECT USING (evil(name));
CREATE VIEW v_reads AS SELECT pg_read_file('PG_VERSION') AS f, id FROM orders;
CREATE VIEW v_sequence AS SELECT nextval('calls') AS n, id FROM orders;
CREATE VIEW v_large AS SELECT lo_create(0) AS n;
CREATE VIEW v_lock AS SELECT pg_try_advisory_lock(7) AS n;
CREATE VIEW v_setting AS SELECT set_config('transaction_read_only', 'off', false) AS n;
CREATE VIEW v_xml AS SELECT query_to_xml('SELECT 1', true, false, '')::text AS x;
CREATE VIEW v_own AS SELECT evil(name) AS n FROM orders;
CREATE VIEW v_where AS SELECT id FROM orders WHERE evil(name);
CREATE VIEW v_operator AS SELECT name + name AS n FROM orders;
CREATE VIEW v_domain AS SELECT name::picky::text AS n FROM orders;
CREATE VIEW v_cast AS SELECT p + 1 AS n FROM pairs;
CREATE VIEW v_field AS SELECT orders.evil AS n FROM orders;
CREATE VIEW v_aggregate AS SELECT sum(name) AS n FROM orders;
CREATE VIEW v_from AS SELECT * FROM pg_ls_dir('.') AS files(name);
CREATE VIEW v_nested AS SELECT n FROM v_own;
CREATE VIEW v_policed AS SELECT id FROM policed;
CREATE VIEW v_lateral AS SELECT o.id FROM orders o, LATERAL (SELECT evil(o.name) AS e) AS l WHERE l.e;
CREATE VIEW v_good AS SELECT id, upper(name) AS name,
    random() < 2 AS lucky, count(*) OVER () AS n FROM orders;
CREATE FUNCTION half(integer) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2.0';
CREATE VIEW v_half AS SELECT half(total) AS h FROM orders;
CREATE FUNCTION upper(integer) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1::text';
CREATE TABLE made (id int, twice int GENERATED ALWAYS AS (id * 2) STORED, t text);
CREATE INDEX ON made ((lower(t)));
INSERT INTO made (id, t) VALUES (1, 'x');
CREATE FUNCTION told() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM nextval('calls'); END $$;
CREATE EVENT TRIGGER telling ON ddl_command_start EXECUTE FUNCTION told();
DROP FUNCTION mischief();
CREATE FUNCTION mischief() RETURNS text LANGUAGE plpgsql AS $$
BEGIN
    PERFORM pg_advisory_lock(99);
    COPY (SELECT 1) TO PROGRAM 'touch {{place}}/touched';
    PERFORM lo_create(0);
    PERFORM nextval('calls');
    RETURN 'x';
END $$;
"""
HIDDEN = (
    *("v_reads", "v_sequence", "v_large", "v_lock", "v_setting", "v_xml", "v_own", "v_where", "v_operator"),
    *(
        "v_domain",
        "v_cast",
        "v_field",
        "v_aggregate",
        "v_from",
        "v_nested",
        "v_policed",
        "v_lateral",
        "pairs",
    ),
)
NAMED = (
    "SELECT evil(name) FROM orders",
    "SELECT public.evil(name) FROM orders",
    "SELECT orders.evil FROM orders",
    "SELECT (orders).evil FROM orders",
    "SELECT (ROW(1, 'x')::pair).evil",
    "SELECT ('x'::text).evil",
    "SELECT lower(total) FROM orders",
    "SELECT lower(5)",
    'SELECT "lower"(total) FROM orders',
    "SELECT sum(name) FROM orders",
    "SELECT name + name FROM orders",
    "SELECT name+-name FROM orders",
    "SELECT 1 LIKE 2",
    "SELECT id FROM orders WHERE total ~~ 1",
    "SELECT CAST('x' AS picky)",
    "SELECT 'x'::picky",
    "SELECT picky 'x'",
    "SELECT ROW(1, 'x')::pair + 1",
    "SELECT p + 1 FROM pairs",
)
EFFECTS = """
    SELECT (SELECT last_value::text || is_called FROM calls), (SELECT count(*) FROM pg_largeobject_metadata),
        (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'), (SELECT count(*) FROM pg_class)
"""
OWNER = "CREATE ROLE {0} LOGIN PASSWORD 'pw'; GRANT ALL ON SCHEMA public TO {0};"
OWNED = "('v', 'r')"


@pytest.fixture(params=["superuser", "owner"])
async def trapped(
    request: pytest.FixtureRequest, postgres: PostgresServer, tmp_path: Path
) -> AsyncIterator[Database]:
    """A database full of traps, opened by a superuser, and by the owner of all that is in it."""
    tmp_path.chmod(0o777)
    name = postgres.new_database(TRAPS.replace("{place}", str(tmp_path)))
    url = f"{postgres.admin_url}/{name}"
    if request.param == "owner":
        role = f"owner_{name}"
        postgres.execute(OWNER.format(role), name)
        own = f"SELECT format('ALTER %s %I OWNER TO {role}',"
        own += " CASE relkind WHEN 'v' THEN 'VIEW' ELSE 'TABLE' END,"
        found = postgres.execute(
            f"{own} relname) FROM pg_class"
            f" WHERE relnamespace = 'public'::regnamespace AND relkind IN {OWNED}",
            name,
        )
        postgres.execute("; ".join(row[0] for row in found), name)
        url = f"postgresql://{role}:pw@127.0.0.1:{postgres.port}/{name}"
    postgres.execute("ALTER EVENT TRIGGER telling ENABLE ALWAYS; SELECT setval('calls', 1, false)", name)
    async with connect(url) as connector:
        catalog = await connector.catalog()
        yield Database(connector, catalog, Linter(catalog), Limits(seconds=PATIENCE), Ledger(Budget()))


def effects(postgres: PostgresServer, database: Database) -> object:
    return postgres.execute(EFFECTS, database.catalog.name)


async def test_what_reading_would_call_is_not_read(
    trapped: Database, postgres: PostgresServer, tmp_path: Path
) -> None:
    shown = {table.name for table in trapped.catalog.tables}
    assert not shown & set(HIDDEN)
    assert {"orders", "v_good", "v_half", "made"} <= shown
    for name in HIDDEN:
        assert any(f".{name} is left out: " in note for note in trapped.catalog.left_out), name
        outcome = await execute(trapped, f"SELECT * FROM {name}", agent="attacker")
        assert isinstance(outcome, QueryError), name
        assert outcome.by in ("guard", "lint"), (name, outcome)
    account = await trapped.connector.account()
    assert account is not None
    superuser = "superuser" in " ".join(account.powers)
    assert ("policed" in shown) == superuser, "whom the policy binds may not call what it calls"
    assert effects(postgres, trapped) == [("1false", 0, 0, effects(postgres, trapped)[0][3])]  # type: ignore[index]
    assert list(tmp_path.iterdir()) == []


async def test_what_a_query_would_call_unnamed_is_refused(
    trapped: Database, postgres: PostgresServer, tmp_path: Path
) -> None:
    before = effects(postgres, trapped)
    for sql in NAMED:
        for outcome in (
            await execute(trapped, sql, agent="attacker"),
            await trapped.connector.run(sql, Limits(seconds=PATIENCE)),
        ):
            assert isinstance(outcome, QueryError), sql
            calls_nothing = outcome.kind in (ErrorKind.PERMISSION, ErrorKind.TYPE_MISMATCH, ErrorKind.SYNTAX)
            assert calls_nothing or outcome.by in ("guard", "lint"), (sql, outcome)
    assert effects(postgres, trapped) == before
    assert list(tmp_path.iterdir()) == []


async def test_the_traps_are_armed(trapped: Database, postgres: PostgresServer) -> None:
    """Without the refusal, a session that cannot write still takes locks for others, and reads files."""
    connector = trapped.connector
    assert rows(await connector.ask("SELECT n FROM v_lock", Limits())) == [(True,)]  # type: ignore[attr-defined]
    called = error(await connector.ask("SELECT * FROM v_own", Limits()))  # type: ignore[attr-defined]
    assert "program" in called.message.casefold() or "read-only" in called.message, called


async def test_what_only_reads_runs(trapped: Database) -> None:
    for sql, wanted in (
        ("SELECT count(*), max(name) FROM v_good", [(2, "B")]),
        ("SELECT max(h)::text FROM v_half", [("1.00000000000000000000",)]),
        ("SELECT upper(total) FROM orders ORDER BY 1", [("1",), ("2",)]),
        ("SELECT 'lower(total) + evil(x) ~~ 1::picky' AS s", [("lower(total) + evil(x) ~~ 1::picky",)]),
        ("SELECT twice FROM made WHERE id = 1", [(2,)]),
    ):
        outcome = await execute(trapped, sql, agent="analyst")
        assert isinstance(outcome, QueryResult), (sql, outcome)
        assert rows(outcome) == wanted


async def test_a_cast_that_any_query_may_call_refuses_all(postgres: PostgresServer) -> None:
    name = postgres.new_database(
        "CREATE TABLE t (a int); CREATE FUNCTION f(text) RETURNS point LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN point(1, 1); END $$; CREATE CAST (text AS point) WITH FUNCTION f(text) AS IMPLICIT"
    )
    async with connect(f"{postgres.admin_url}/{name}") as connector:
        assert [table.name for table in (await connector.catalog()).tables] == ["t"]
        refused = error(await connector.run("SELECT a FROM t", Limits()))
        assert (refused.kind, "calls f" in refused.message) == (ErrorKind.PERMISSION, True)
        postgres.execute("ALTER FUNCTION f(text) IMMUTABLE", name)
        await connector.open()
        assert rows(await connector.run("SELECT a FROM t", Limits())) == []


def test_texts_and_comments_name_nothing() -> None:
    code = OwnCode(
        {
            kind: {name: "f"}
            for kind, name in (("function", "f"), ("row", "f"), ("operator", "+"), ("type", "t"))
        }
    )
    for sql in ("SELECT 'f(1)'", "SELECT $$ f(1) + 'x'::t $$", "SELECT E'\\' f(1)'", 'SELECT "F"(1), a.g, f'):
        assert code.refusal(sql) is None, sql
    for sql in (
        "SELECT f (1)",
        "SELECT f/* */(1)",
        'SELECT "f"(1)',
        "SELECT F(1)",
        "SELECT a . f",
        "SELECT 1+-1",
    ):
        assert code.refusal(sql) is not None, sql
