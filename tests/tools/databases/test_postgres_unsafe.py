"""Ways to a VOLATILE function that a query does not name: each would run it, and none gets to."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from quorum.tools.databases import connect
from quorum.tools.execute import Database, execute
from quorum.tools.query import ErrorKind, Limits, QueryError
from tests.engines import opened
from tests.servers.postgres_server import PostgresServer
from tests.tools.databases.contract import RightsContract, error, rows
from tests.waiting import PATIENCE

LIMITS = Limits(seconds=PATIENCE)
BODY = "LANGUAGE plpgsql AS $$ BEGIN PERFORM evil(); RETURN {}; END $$"
SCRIPT = f"""
CREATE FUNCTION evil() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RETURN true; END $$;
CREATE FUNCTION good(text) RETURNS bool STABLE LANGUAGE sql AS 'SELECT $1 IS NOT NULL';
CREATE TABLE plain (id int, name text, tags text[], at point, doc json);
INSERT INTO plain VALUES (1, 'a', '{{a}}', '(1,1)', '{{}}'), (2, 'b', '{{b}}', '(2,2)', '{{}}');
CREATE TABLE noted (id int, note2 text, note3 text, note4 text, note5 text);

CREATE FUNCTION note2(int) RETURNS text SECURITY DEFINER {BODY.format("'x'")};
CREATE FUNCTION note2(text) RETURNS text {BODY.format("'x'")};
CREATE FUNCTION note3(anyelement) RETURNS text {BODY.format("'x'")};
CREATE FUNCTION note4(plain) RETURNS text {BODY.format("'x'")};
CREATE FUNCTION note5(int, int DEFAULT 1) RETURNS text {BODY.format("'x'")};
CREATE FUNCTION note6(int, bool DEFAULT evil()) RETURNS int STABLE LANGUAGE plpgsql AS
    $$ BEGIN RETURN $1; END $$;

CREATE FUNCTION checks(text) RETURNS bool {BODY.format("true")};
CREATE DOMAIN d AS text CHECK (checks(VALUE));
CREATE DOMAIN d2 AS d;
CREATE DOMAIN d3 AS d[];
CREATE TYPE comp AS (a int, b d);
CREATE TYPE comp2 AS (c comp);
CREATE DOMAIN dcomp AS comp;
CREATE TYPE span AS RANGE (subtype = d);
CREATE TABLE domains (id int, v d, l d[], c comp);
CREATE TABLE kids () INHERITS (domains);
CREATE TYPE mixed AS (t domains);
CREATE FUNCTION takes(d) RETURNS text STABLE LANGUAGE sql AS 'SELECT $1::text';
CREATE FUNCTION lister() RETURNS d[] STABLE LANGUAGE sql AS 'SELECT NULL::d[]';
CREATE VIEW v_takes AS SELECT takes(name) AS t FROM plain;

CREATE TYPE rank AS (n int);
CREATE FUNCTION lt(rank, rank) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT ($1).n < ($2).n';
CREATE FUNCTION le(rank, rank) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT ($1).n <= ($2).n';
CREATE FUNCTION eq(rank, rank) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT ($1).n = ($2).n';
CREATE FUNCTION ge(rank, rank) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT ($1).n >= ($2).n';
CREATE FUNCTION gt(rank, rank) RETURNS bool IMMUTABLE LANGUAGE sql AS 'SELECT ($1).n > ($2).n';
CREATE FUNCTION cmp(rank, rank) RETURNS int {BODY.format("($1).n - ($2).n")};
CREATE OPERATOR <# (LEFTARG = rank, RIGHTARG = rank, FUNCTION = lt);
CREATE OPERATOR <=# (LEFTARG = rank, RIGHTARG = rank, FUNCTION = le);
CREATE OPERATOR =# (LEFTARG = rank, RIGHTARG = rank, FUNCTION = eq);
CREATE OPERATOR >=# (LEFTARG = rank, RIGHTARG = rank, FUNCTION = ge);
CREATE OPERATOR ># (LEFTARG = rank, RIGHTARG = rank, FUNCTION = gt);
CREATE OPERATOR CLASS rank_order DEFAULT FOR TYPE rank USING btree AS
    OPERATOR 1 <#, OPERATOR 2 <=#, OPERATOR 3 =#, OPERATOR 4 >=#, OPERATOR 5 >#, FUNCTION 1 cmp(rank, rank);
CREATE TABLE ranked (id int, r rank);
INSERT INTO ranked VALUES (1, ROW(1)), (2, ROW(2)), (3, ROW(2));
CREATE VIEW v_ranked AS SELECT r FROM ranked;
CREATE MATERIALIZED VIEW m_ranked AS SELECT r FROM ranked;
CREATE TABLE ranks (id int, rs rank[]);
INSERT INTO ranks VALUES (1, ARRAY[ROW(1)::rank]), (2, ARRAY[ROW(2)::rank]);

CREATE FUNCTION neq(int, text) RETURNS bool {BODY.format("true")};
CREATE FUNCTION eq(int, text) RETURNS bool STABLE LANGUAGE plpgsql AS $$ BEGIN RETURN true; END $$;
CREATE OPERATOR !=# (LEFTARG = int, RIGHTARG = text, FUNCTION = neq);
CREATE OPERATOR ==# (LEFTARG = int, RIGHTARG = text, FUNCTION = eq, NEGATOR = !=#);

CREATE FUNCTION step(int, int) RETURNS int {BODY.format("1")};
CREATE AGGREGATE total (int) (SFUNC = step, STYPE = int, INITCOND = '0');
CREATE VIEW v_window AS SELECT total(id) OVER () AS t FROM plain;
CREATE VIEW v_having AS SELECT name FROM plain GROUP BY name HAVING total(id) > 0;
CREATE SCHEMA other;
CREATE FUNCTION other.upper(text) RETURNS text {BODY.format("'x'")};
CREATE TABLE status (id int, id2 int);
INSERT INTO status VALUES (1, 1);
ALTER TABLE status ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON status USING (evil());
GRANT SELECT ON ALL TABLES IN SCHEMA public TO PUBLIC;
CREATE ROLE {{role}};
CREATE VIEW v_policy AS SELECT id FROM status;
ALTER VIEW v_policy OWNER TO {{role}};
GRANT SELECT ON v_policy TO PUBLIC;

CREATE FUNCTION lower(int) RETURNS text {BODY.format("'x'")};
CREATE FUNCTION plus(text, text) RETURNS text {BODY.format("$1")};
CREATE FUNCTION alike(int, int) RETURNS bool {BODY.format("true")};
CREATE OPERATOR + (LEFTARG = text, RIGHTARG = text, FUNCTION = plus);
CREATE OPERATOR ~~ (LEFTARG = int, RIGHTARG = int, FUNCTION = alike);
CREATE FUNCTION total_of(int, text) RETURNS int {BODY.format("1")};
CREATE AGGREGATE sum (text) (SFUNC = total_of, STYPE = int, INITCOND = '0');
CREATE TYPE pair AS (a int, b text);
CREATE FUNCTION paired(pair) RETURNS date {BODY.format("current_date")};
CREATE CAST (pair AS date) WITH FUNCTION paired(pair) AS IMPLICIT;
CREATE TABLE pairs (id int, p pair);
INSERT INTO pairs VALUES (1, ROW(1, 'x'));
CREATE VIEW v_where AS SELECT id FROM plain WHERE checks(name);
CREATE VIEW v_nested AS SELECT id FROM v_where;
CREATE VIEW v_lateral AS SELECT p.id FROM plain p, LATERAL (SELECT checks(p.name) AS c) AS l WHERE l.c;
CREATE VIEW v_field AS SELECT plain.note4 AS n FROM plain;
CREATE VIEW v_operator AS SELECT name + name AS n FROM plain;
CREATE VIEW v_cast AS SELECT p + 1 AS n FROM pairs;

CREATE SEQUENCE calls;
CREATE VIEW s_reads AS SELECT pg_read_file('PG_VERSION') AS f FROM plain;
CREATE VIEW s_sequence AS SELECT nextval('calls') AS n FROM plain;
CREATE VIEW s_large AS SELECT lo_create(0) AS n;
CREATE VIEW s_lock AS SELECT pg_try_advisory_lock(7) AS n;
CREATE VIEW s_setting AS SELECT set_config('transaction_read_only', 'off', false) AS n;
CREATE VIEW s_xml AS SELECT query_to_xml('SELECT 1', true, false, '')::text AS x;
CREATE VIEW s_from AS SELECT * FROM pg_ls_dir('.') AS files(name);

CREATE FUNCTION half(int) RETURNS numeric IMMUTABLE LANGUAGE sql AS 'SELECT $1 / 2.0';
CREATE FUNCTION upper(int) RETURNS text IMMUTABLE LANGUAGE sql AS 'SELECT $1::text';
CREATE VIEW v_good AS
    SELECT id, upper(name) AS name, random() < 2 AS lucky, half(id) AS h, count(*) OVER () FROM plain;
CREATE TABLE made (id int, twice int GENERATED ALWAYS AS (id * 2) STORED, t text);
CREATE INDEX ON made ((lower(t)));
INSERT INTO made (id, t) VALUES (1, 'x');
CREATE FUNCTION told() RETURNS event_trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM evil(); END $$;
CREATE OR REPLACE FUNCTION evil() RETURNS bool LANGUAGE plpgsql AS $$ BEGIN RAISE 'IT RAN'; END $$;
CREATE EVENT TRIGGER telling ON ddl_command_start EXECUTE FUNCTION told();
ALTER EVENT TRIGGER telling ENABLE ALWAYS;
"""
FIELDS = (
    "SELECT (1).note2",
    "SELECT (id).note2 FROM plain",
    "SELECT (p.id).note2 FROM plain p",
    "SELECT ((SELECT 1)).note2",
    "SELECT ('x'::text).note2",
    'SELECT (name)."note2" FROM plain',
    "SELECT tags[1].note2 FROM plain",
    "SELECT (tags)[1].note2 FROM plain",
    "SELECT (1).note3",
    "SELECT p.note3 FROM plain p",
    "SELECT (p).note3 FROM plain p",
    "SELECT p.note4 FROM plain p",
    "SELECT plain.note4 FROM plain",
    "SELECT public.plain.note4 FROM plain",
    "SELECT (1).note5",
    "SELECT (ARRAY[1])[1] . /* a */ note5",
    "SELECT note6(1)",
    "SELECT (1).note6",
)
CHECKED = (
    "SELECT 'x'::d",
    "SELECT 'x'::d2",
    "SELECT CAST('x' AS public.d2)",
    "SELECT d2 'x'",
    "SELECT d2('x'::text)",
    "SELECT '{x}'::d[]",
    "SELECT '{x}'::_d",
    "SELECT ARRAY['x']::d[]",
    "SELECT '{x}'::d3",
    "SELECT ROW(1, 'x')::comp",
    "SELECT '(1,x)'::comp",
    "SELECT ('(\"(1,x)\")'::comp2)::text",
    "SELECT '(1,x)'::dcomp",
    "SELECT '[x,y]'::span",
    "SELECT '{[x,y]}'::span_multirange",
    "SELECT ROW(1, 'x', NULL, NULL)::domains",
    "SELECT '(1,x,,)'::domains",
    "SELECT '(1,x,,)'::public.kids",
    "SELECT ROW(ROW(1, 'x', NULL, NULL))::mixed",
    'SELECT v FROM jsonb_populate_record(NULL::domains, \'{"v": "x"}\')',
    'SELECT v FROM json_to_record(\'{"v": "x"}\') AS t(v d2)',
    "SELECT v FROM XMLTABLE('/a' PASSING '<a>x</a>' COLUMNS v d PATH '.')",
    "SELECT lag(v, 1, 'x') OVER () FROM (SELECT d.* FROM domains d RIGHT JOIN plain ON true) t",
    "SELECT array_append(lister(), 'x')",
    "SELECT lister() || '{x}'",
    "SELECT takes('x')",
    "SELECT t FROM v_takes",
    "SELECT ('x'::text).takes",
)
ORDERED = (
    "SELECT * FROM ranked ORDER BY r",
    "SELECT DISTINCT r FROM ranked",
    "SELECT r, count(*) FROM ranked GROUP BY r",
    "SELECT max(id) OVER (ORDER BY r) FROM ranked",
    "SELECT * FROM ranked WHERE r IN (SELECT r FROM ranked ORDER BY 1)",
    "SELECT r FROM ranked UNION SELECT r FROM ranked",
    "SELECT greatest(r, ROW(1)::rank) FROM ranked",
    "SELECT r FROM v_ranked ORDER BY 1",
    "SELECT r FROM m_ranked ORDER BY 1",
    "SELECT rs FROM ranks ORDER BY 1",
    "SELECT ROW(1)::rank UNION SELECT ROW(2)::rank",
    "SELECT id FROM plain WHERE NOT id ==# name",
)
OVERLOADED = (
    "SELECT lower(id) FROM plain",
    "SELECT lower(5)",
    'SELECT "lower"(id) FROM plain',
    "SELECT sum(name) FROM plain",
    "SELECT name + name FROM plain",
    "SELECT 1 LIKE 2",
    "SELECT id FROM plain WHERE id ~~ 1",
    "SELECT ROW(1, 'x')::pair + 1",
    "SELECT p + 1 FROM pairs",
    *(f"SELECT * FROM v_{name}" for name in ("where", "nested", "lateral", "field", "operator", "cast")),
)
OTHERS = (
    "SELECT total(id) FROM plain",
    "SELECT total(id) OVER () FROM plain",
    "SELECT t FROM v_window",
    "SELECT name FROM v_having",
    "SELECT id FROM v_policy",
    "SELECT other.upper('x')",
    "SELECT id FROM (SELECT id FROM plain) p, v_policy AS q(z)",
    "TABLE v_policy",
    "SELECT evil/* /* */ */()",
    "SELECT 1 /* /* */ ' */, evil() -- '",
    "SELECT -1 +-- '\n(evil()::int) -- '",
    "SELECT €$$, evil() AS z, €$$ FROM (SELECT 1 AS €$$) t",
)
GOOD = (
    ("SELECT n.note2, noted.note5 FROM noted n, noted", []),
    ("SELECT status FROM (SELECT 7 AS status) t", [(7,)]),
    ("SELECT count(*) AS domain FROM plain", [(2,)]),
    ("SELECT E'it\\'s' || $a$'$a$ || 'x''y' AS \"a\"\"b\" -- evil()", [("it's'x'y",)]),
    ("SELECT count(*) FROM plain TABLESAMPLE SYSTEM (100)", [(2,)]),
    ("SELECT random() < 2 AND clock_timestamp() > '2020-01-01'", [(True,)]),
    ("SELECT count(*), max(name), max(h)::text FROM v_good", [(2, "B", "1.00000000000000000000")]),
    ("SELECT upper(id) FROM plain ORDER BY 1", [("1",), ("2",)]),
    ("SELECT 'lower(1) + evil(x) ~~ 1::d' AS s", [("lower(1) + evil(x) ~~ 1::d",)]),
    ("SELECT twice FROM made WHERE id = 1", [(2,)]),
)


@pytest.fixture(scope="module")
def name(postgres: PostgresServer) -> str:
    return postgres.new_database(SCRIPT.replace("{role}", f"viewer{postgres.databases}"))


@pytest.fixture
async def unsafe(postgres: PostgresServer, name: str) -> AsyncIterator[Database]:
    async with connect(f"{postgres.admin_url}/{name}") as connector:
        yield await opened(connector, limits=LIMITS)


@pytest.mark.parametrize("group", [FIELDS, CHECKED, ORDERED, OVERLOADED, OTHERS])
async def test_nothing_unsafe_runs(unsafe: Database, group: tuple[str, ...]) -> None:
    for sql in group:
        armed = error(await unsafe.connector.ask(sql, LIMITS)).message
        below = await unsafe.connector.run(sql, LIMITS)
        whole = await execute(unsafe, sql, agent="attacker")
        assert "IT RAN" in armed, (sql, armed)
        assert isinstance(below, QueryError), sql
        assert below.kind in (ErrorKind.PERMISSION, ErrorKind.SYNTAX), (sql, below)
        assert isinstance(whole, QueryError), sql
        assert "IT RAN" not in below.message + whole.message, sql


async def test_good_queries_run(unsafe: Database) -> None:
    shown = {table.name for table in unsafe.catalog.tables}
    assert shown == {"plain", "noted", "status", "made", "v_good"}
    assert "IT RAN" not in " ".join(unsafe.catalog.left_out)
    for sql, wanted in GOOD:
        assert rows(await unsafe.connector.run(sql, LIMITS)) == wanted, sql


async def test_views_over_the_servers_own_dangerous_functions_are_not_read(unsafe: Database) -> None:
    assert rows(await unsafe.connector.ask("SELECT n FROM s_lock", LIMITS)) == [(True,)], "it is armed"
    for view in ("reads", "sequence", "large", "lock", "setting", "xml", "from"):
        refused = error(await unsafe.connector.run(f"SELECT * FROM s_{view}", LIMITS))
        assert refused.kind is ErrorKind.PERMISSION, view


async def test_whom_a_policy_binds_may_not_call_what_it_calls(postgres: PostgresServer, name: str) -> None:
    role = f"bound{postgres.databases}"
    postgres.execute(f"CREATE ROLE {role} LOGIN PASSWORD 'pw'")
    async with connect(f"postgresql://{role}:pw@127.0.0.1:{postgres.port}/{name}") as connector:
        assert "status" not in {table.name for table in (await connector.catalog()).tables}
        assert error(await connector.run("SELECT id FROM status", LIMITS)).kind is ErrorKind.PERMISSION


async def test_a_cast_that_any_query_may_call_refuses_all(postgres: PostgresServer) -> None:
    name = postgres.new_database(
        "CREATE TABLE t (a int); CREATE FUNCTION f(text) RETURNS point LANGUAGE plpgsql AS "
        "$$ BEGIN RETURN point(1, 1); END $$; CREATE CAST (text AS point) WITH FUNCTION f(text) AS IMPLICIT"
    )
    async with connect(f"{postgres.admin_url}/{name}") as connector:
        refused = error(await connector.run("SELECT a FROM t", LIMITS))
        assert (refused.kind, "calls f" in refused.message) == (ErrorKind.PERMISSION, True)
        postgres.execute("ALTER FUNCTION f(text) IMMUTABLE", name)
        await connector.open()
        assert rows(await connector.run("SELECT a FROM t", LIMITS)) == []


PROGRAM = """
CREATE EXTENSION file_fdw; CREATE SERVER files FOREIGN DATA WRAPPER file_fdw;
CREATE TABLE inherited (id int); CREATE TABLE parted (id int) PARTITION BY LIST (id);
CREATE FOREIGN TABLE child () INHERITS (inherited) SERVER files
    OPTIONS (program 'echo 1; touch {place}/touched');
CREATE FOREIGN TABLE part PARTITION OF parted DEFAULT SERVER files
    OPTIONS (program 'echo 1; touch {place}/touched');
CREATE TABLE deep (id int); CREATE TABLE deeper () INHERITS (deep); ALTER TABLE child INHERIT deeper;
CREATE VIEW above AS SELECT id FROM parted; CREATE TABLE plain (id int);
"""


async def test_a_program_of_a_part_does_not_run(postgres: PostgresServer, tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    name = postgres.new_database(PROGRAM.replace("{place}", str(tmp_path)))
    async with connect(f"{postgres.admin_url}/{name}") as connector:
        catalog = await connector.catalog()
        assert [table.name for table in catalog.tables] == ["plain"]
        assert "parted is left out: reading it calls a program" in " ".join(catalog.left_out)
        for table in ("inherited", "public.parted", "child", "deep", "deeper", '"above"'):
            assert error(await connector.run(f"SELECT * FROM {table}", LIMITS)).kind is ErrorKind.PERMISSION
    assert list(tmp_path.iterdir()) == []


async def test_what_becomes_unsafe_while_it_is_open(postgres: PostgresServer) -> None:
    name = postgres.new_database("CREATE TABLE t (a int, b text); CREATE VIEW v AS SELECT a FROM t")
    async with connect(f"{postgres.admin_url}/{name}") as connector:
        sql = "SELECT lower(a) FROM t"
        assert error(await connector.run(sql, LIMITS)).kind is ErrorKind.FUNCTION
        postgres.execute(f"CREATE FUNCTION lower(int) RETURNS text {BODY.format('1')}", name)
        assert error(await connector.run(sql, LIMITS)).kind is ErrorKind.PERMISSION
        postgres.execute("ALTER FUNCTION lower(int) STABLE", name)
        assert rows(await connector.run(sql, LIMITS)) == []
        assert rows(await connector.run("SELECT a FROM v", LIMITS)) == []
        postgres.execute("CREATE OR REPLACE VIEW v AS SELECT a FROM t WHERE pg_sleep(0) IS NULL", name)
        assert error(await connector.run("SELECT a FROM v", LIMITS)).kind is ErrorKind.PERMISSION


async def test_a_search_path_hides_none_of_the_servers_functions(postgres: PostgresServer) -> None:
    name = postgres.new_database(
        "CREATE TABLE t (a int); CREATE FUNCTION evil() RETURNS bool LANGUAGE sql AS 'SELECT true';"
        f"CREATE FUNCTION format_type(oid, int) RETURNS text {BODY.format('1')};"
        f"CREATE FUNCTION lower(text) RETURNS text {BODY.format('1')};"
    )
    postgres.execute(f"ALTER DATABASE {name} SET search_path = public, pg_catalog", name)
    async with connect(f"{postgres.admin_url}/{name}") as connector:
        assert [table.name for table in (await connector.catalog()).tables] == ["t"]
        assert rows(await connector.ask("SELECT lower('X')", LIMITS)) == [("x",)]
        assert rows(await connector.run("SELECT count(*) FROM t", LIMITS)) == [(0,)]


MEASURED = """
import asyncio, json, resource, sys, time
from quorum.tools.databases import connect
from quorum.tools.query import Limits

async def main():
    longest = 0.0
    async def watch():
        nonlocal longest
        while True:
            before = time.monotonic()
            await asyncio.sleep(0.01)
            longest = max(longest, time.monotonic() - before)
    async with connect(sys.argv[1]) as connector:
        await connector.run("SELECT 'x'", Limits())
        watching = asyncio.create_task(watch())
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        wide, many = [await connector.run(sql, Limits()) for sql in sys.argv[2:]]
        grown = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
        told = wide.message if hasattr(wide, "message") else f"{wide.truncated} {wide.row_count}"
        print(json.dumps([grown // 1024, longest, told, many.row_count, many.truncated]))

asyncio.run(main())
"""
ROWS = {
    "postgres": (
        "SELECT (SELECT string_agg(repeat('x', 9999999), '') FROM generate_series(1, 60))",
        "SELECT repeat('x', 1000000) FROM generate_series(1, 100)",
    ),
    "mariadb": (
        "SELECT " + ", ".join(100 * ["repeat('x', 9999999)"]),
        "SELECT repeat('x', 1000000) FROM seq_1_to_300",
    ),
}
"""A row of 600 MB or more, and many rows that are together more than a result may be."""


@pytest.mark.parametrize("name", ROWS)
def test_a_row_and_a_batch_of_rows_are_bounded_in_memory(request: pytest.FixtureRequest, name: str) -> None:
    url = request.getfixturevalue(name).admin_url + ("/mysql" if name == "mariadb" else "/postgres")
    command = [sys.executable, "-c", MEASURED, url, *ROWS[name]]
    done = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE)
    grown, longest, told, count, truncated = json.loads(done.stdout)
    stopped = "A row is larger than 64 MiB: the query was stopped. Select fewer columns"
    assert told.startswith(stopped if name == "postgres" else "bytes 0")
    assert grown < 256, "MiB, four times the limit of bytes"
    assert longest < 5, "the attack blocked the event loop for 4.5 to 10.6 s"
    assert (count > 50, truncated) == (True, "bytes")


class TestRights(RightsContract):
    server_name = "postgres"
    hides = False

    def urls(self) -> tuple[dict[str, str], dict[str, str]]:
        self.role = f"clerk{self.server.databases}"
        name = self.server.new_database(
            f'CREATE SCHEMA "Finance"; CREATE SCHEMA hr1; CREATE TABLE "Finance".a (x int);'
            f"CREATE TABLE hr1.b (x int); CREATE ROLE {self.role} LOGIN PASSWORD 'pw';"
            f"GRANT USAGE ON SCHEMA hr1 TO {self.role}"
        )
        start = f"postgresql://{self.role}:pw@127.0.0.1:{self.server.port}/{name}?schema="
        names = {"absent": "hr", "closed": "Finance", "unread": "hr1"}
        return {case: start + schema for case, schema in names.items()}, names

    def grants(self, schema: str) -> tuple[str, ...]:
        return (
            f'GRANT USAGE ON SCHEMA "{schema}" TO {self.role};',
            f'GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO {self.role};',
        )
