"""MySQL: the contract, on a MariaDB server of the tests' own, and what is its own."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import closing
from datetime import date, datetime
from decimal import Decimal
from pathlib import Path
from urllib.parse import quote

import pyarrow as pa
import pytest

from quorum.knowledge.catalog import ForeignKey
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.mysql.url import Target
from quorum.tools.query import ErrorKind, Limits
from tests.servers.mariadb_server import MariadbServer
from tests.servers.process import PASSWORD
from tests.tools.databases.contract import SOON, RightsContract, check_errors, error, result, rows, table
from tests.tools.databases.served import MariadbContract


class TestMysql(MariadbContract):
    scheme = "mysql"
    whole_double = "{}"


class TestRights(RightsContract):
    server_name = "mariadb"

    def urls(self) -> tuple[dict[str, str], dict[str, str]]:
        mine, theirs = (self.server.new_database(f"CREATE TABLE {x} (x int)") for x in "ab")
        who = "visitor@'127.0.0.1'"
        self.server.execute(f"CREATE USER {who} IDENTIFIED BY 'pw'; GRANT INSERT ON {mine}.* TO {who}")
        start = f"mysql://visitor:pw@127.0.0.1:{self.server.port}/{mine}?schema="
        names = {"absent": mine[:-1], "closed": theirs, "unread": mine}
        return {case: start + schema for case, schema in names.items()}, names

    def grants(self, schema: str) -> tuple[str, ...]:
        return (f"GRANT SELECT ON `{schema}`.* TO 'visitor'@'127.0.0.1';",)


ODD = """
DROP DATABASE IF EXISTS hidden; DROP DATABASE IF EXISTS sales; CREATE DATABASE sales; CREATE DATABASE hidden;
CREATE TABLE sales.orders (
    id INT PRIMARY KEY COMMENT 'its number', item VARCHAR(20) NOT NULL, price DECIMAL(10,2),
    status ENUM('new', 'done')
) COMMENT 'what was bought';
INSERT INTO sales.orders SELECT seq, concat('item ', seq % 2), seq / 100, 'new' FROM seq_1_to_20000;
CREATE TABLE sales.lines (id INT, order_id INT, day DATE, PRIMARY KEY (id, day),
    FOREIGN KEY (order_id) REFERENCES sales.orders(id));
INSERT INTO sales.lines VALUES (1, 1, '2024-05-01'), (2, 1, '2025-05-01');
CREATE TABLE sales.words (word VARCHAR(10));
INSERT INTO sales.words VALUES ('a'), ('A'), ('a '),
    ('b'), ('b'), ('b'), ('b'), ('b'), ('b');
CREATE TABLE hidden.salaries (name VARCHAR(10), salary INT, order_id INT);
INSERT INTO hidden.salaries VALUES ('Ann', 5, 7);
CREATE TABLE sales.people (id INT, name VARCHAR(10), salary INT);
INSERT INTO sales.people VALUES (1, 'Ann', 5);
CREATE TABLE sales.counter (n INT) ENGINE=MyISAM;
CREATE FUNCTION sales.bump() RETURNS INT MODIFIES SQL DATA BEGIN
    INSERT INTO sales.counter VALUES (1); RETURN 1; END;
CREATE VIEW sales.trap AS SELECT sales.bump() AS x;
CREATE USER IF NOT EXISTS reader@'127.0.0.1' IDENTIFIED BY '{password}';
GRANT SELECT ON sales.orders TO reader@'127.0.0.1'; GRANT SELECT ON sales.lines TO reader@'127.0.0.1';
GRANT SELECT (id, name) ON sales.people TO reader@'127.0.0.1';
""".replace("{password}", PASSWORD)


@pytest.fixture(scope="module")
def sales(mariadb: MariadbServer) -> str:
    mariadb.execute(ODD)
    return f"{mariadb.admin_url}/sales"


@pytest.fixture
async def odd(sales: str) -> AsyncIterator[Connector]:
    async with connect(sales) as connector:
        yield connector


def reader_url(mariadb: MariadbServer) -> str:
    return f"mysql://reader:{quote(PASSWORD, safe='')}@127.0.0.1:{mariadb.port}/sales"


async def test_catalog_and_powers_are_those_of_the_account(odd: Connector, mariadb: MariadbServer) -> None:
    async with connect(reader_url(mariadb)) as connector:
        catalog = await connector.catalog()
        account = await connector.account()
    assert {t.full_name for t in catalog.tables} == {"sales.orders", "sales.lines", "sales.people"}
    assert [column.name for column in table(catalog, "people").columns] == ["id", "name"]
    assert (account.name, account.powers) == ("reader@127.0.0.1", ())
    account = await odd.account()
    assert account.powers == ("has ALL PRIVILEGES on *.*", "has GRANT OPTION on *.*")


async def test_rights_on_routines_and_quoted_names_and_roles_are_powers(
    odd: Connector, mariadb: MariadbServer
) -> None:
    who = "clerk@'127.0.0.1'"
    mariadb.execute(f"""CREATE DATABASE IF NOT EXISTS `two words`; CREATE ROLE IF NOT EXISTS scribe;
        CREATE USER IF NOT EXISTS {who} IDENTIFIED BY '{PASSWORD}'; GRANT scribe TO {who};
        GRANT EXECUTE ON FUNCTION sales.bump TO {who}; GRANT SELECT ON sales.* TO {who};
        GRANT UPDATE ON `two words`.* TO {who}""")
    async with connect(reader_url(mariadb).replace("reader", "clerk")) as connector:
        account = await connector.account()
    assert set(account.powers) == {
        "has EXECUTE on FUNCTION sales.bump",
        "has UPDATE on two words.*",
        "may take the role scribe, whose rights are told only while it has it",
    }


async def test_types_comments_keys_and_counts(odd: Connector) -> None:
    catalog = await odd.catalog()
    orders, lines = table(catalog, "orders"), table(catalog, "lines")
    kinds = [c.type for c in orders.columns]
    assert kinds == ["int(11)", "varchar(20)", "decimal(10,2)", "enum('new','done')"]
    assert [c.nullable for c in orders.columns] == [False, False, True, True]
    assert (orders.description, orders.columns[0].description) == ("what was bought", "its number")
    assert (orders.row_count, lines.row_count) == (20_000, 2)
    assert sorted(orders.columns[1].samples) == ["item 0", "item 1"]
    assert lines.primary_key == ("id", "day")
    assert lines.foreign_keys == (ForeignKey(("order_id",), "sales.orders", ("id",)),)
    words = table(catalog, "words")
    assert words.columns[0].cells == ("a", "A", "a ", *"bbbbbb"), "a collation takes the first three for one"
    assert words.distinct_rows == 4


async def test_two_databases_are_joined(sales: str) -> None:
    async with connect(f"{sales}?schema=hidden") as connector:
        names = {t.full_name for t in (await connector.catalog()).tables}
        assert {"sales.orders", "hidden.salaries"} <= names
        sql = "SELECT o.item FROM sales.orders o JOIN hidden.salaries s ON s.order_id = o.id"
        assert rows(await connector.run(sql, Limits())) == [("item 1",)]


async def test_every_type_crosses(odd: Connector) -> None:
    sql = """
        SELECT 1 AS i, CAST(18446744073709551615 AS UNSIGNED) AS big, CAST(1.50 AS DECIMAL(10,2)) AS money,
            CAST(0.1 AS DOUBLE) AS f, DATE '2024-02-29' AS day, TIMESTAMP '2024-01-01 10:00:00.5' AS moment,
            CAST('-27:00:01' AS TIME) AS span, b'101' AS bits, x'ff00' AS raw, 'ä' AS text, NULL AS none,
            JSON_OBJECT('a', 1) AS doc, CAST('0000-00-00' AS DATE) AS zero, 7 % 4 AS percent
    """
    outcome = result(await odd.run(sql, Limits()))
    (row,) = outcome.table.to_pylist()
    assert row == {
        **{"i": 1, "big": 2**64 - 1, "money": Decimal("1.50"), "f": 0.1, "day": date(2024, 2, 29)},
        **{"moment": datetime(2024, 1, 1, 10, 0, 0, 500_000), "span": "-27:00:01", "bits": b"\x05"},
        **{"raw": b"\xff\0", "text": "ä", "none": None, "doc": '{"a": 1}', "zero": "0000-00-00"},
        "percent": 3,
    }
    assert outcome.table.schema.field("money").type == pa.decimal128(10, 2)
    assert outcome.column_types[2] == "decimal(10,2)"


async def test_errors(odd: Connector) -> None:
    lines = (
        ("column_not_found", "-", "SELECT iid FROM sales.orders"),
        ("table_not_found", "-", "SELECT * FROM kind"),
        ("table_not_found", "-", "SELECT * FROM nowhere.orders"),
        ("ambiguous_column", "-", "SELECT id FROM orders a, orders b"),
        ("function", "-", "SELECT any_value(id) FROM orders"),
        ("syntax", "2", "SELECT id\nFROM orders WHERE ORDER"),
        ("grouping", "-", "SELECT id FROM orders WHERE sum(id) > 1"),
        ("grouping", "-", "SELECT id, item, count(*) FROM orders GROUP BY item"),
        ("syntax", "-", "SELECT 1; SELECT 2"),
        ("permission", "-", "SELECT 1 /*! , 2 */"),
        ("permission", "-", "SELECT 1 INTO OUTFILE 'x'"),
        ("syntax", "-", ""),
    )
    await check_errors(odd, lines)


def test_urls() -> None:
    target = Target.of("mariadb:///shop")
    assert (target.parameters, target.schemas) == ({"database": "shop"}, ("shop",))
    target = Target.of("mysql://h?schema=a,b")
    assert (target.parameters, target.schemas) == ({"host": "h", "database": "a"}, ("a", "b"))
    target = Target.of("mysql://a%40b:c%2F@[::1]:3307/my%20shop?ssl_ca=ca.pem&ssl_verify=identity")
    assert target.parameters == {
        **{"user": "a@b", "password": "c/", "host": "::1", "port": 3307, "database": "my shop"},
        **{"ssl_ca": "ca.pem", "ssl_verify_cert": True, "ssl_verify_identity": True},
    }
    assert target.schemas == ("my shop",)


@pytest.mark.usefixtures("sales")
async def test_credentials_from_an_option_file(
    mariadb: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secrets = tmp_path / ".my.cnf"
    secrets.write_text(f'[client]\nuser=reader\npassword="{PASSWORD}"\nhost=127.0.0.1\nport={mariadb.port}\n')
    async with connect(f"mysql:///sales?option_file={secrets}") as connector:
        assert rows(await connector.run("SELECT CURRENT_USER()", Limits())) == [("reader@127.0.0.1",)]
    monkeypatch.setenv("HOME", str(tmp_path))
    async with connect("mysql:///sales") as connector:
        assert rows(await connector.run("SELECT count(*) FROM orders", Limits())) == [(20_000,)]


TRAPS = """
CREATE TABLE t (a int, b text); INSERT INTO t VALUES (1, 'x'), (2, 'y');
CREATE FUNCTION uuid_to_bin(a text) RETURNS text READS SQL DATA RETURN load_file(a);
CREATE FUNCTION split_part(a text) RETURNS int READS SQL DATA BEGIN
    DECLARE x int; SELECT 1 INTO OUTFILE '{made}'; RETURN 1; END;
CREATE FUNCTION initcap(a text) RETURNS int BEGIN SET GLOBAL max_connections = 61; RETURN 1; END;
CREATE FUNCTION `any`(a text) RETURNS text READS SQL DATA RETURN load_file(a);
CREATE VIEW v_split AS SELECT split_part('a') AS x;
CREATE VIEW v_global AS SELECT initcap('a') AS x;
CREATE VIEW v_load AS SELECT load_file('/etc/hostname') AS x;
CREATE VIEW v_lock AS SELECT get_lock('held', 1) AS x;
CREATE VIEW v_sleep AS SELECT sleep(9) AS x;
CREATE VIEW v_user AS SELECT user FROM mysql.user;
CREATE VIEW v_over AS SELECT * FROM v_load;
CREATE VIEW v_deep AS SELECT count(*) AS n FROM v_over;
CREATE VIEW v_fine AS
    SELECT a, concat(b, 'z') AS c, rank() OVER (ORDER BY a) AS r FROM t WHERE b IN ('x', "'");
SET sql_mode = 'ANSI_QUOTES'; CREATE VIEW v_quotes AS SELECT "user" AS x FROM "mysql"."user";
SET sql_mode = 'NO_BACKSLASH_ESCAPES';
CREATE VIEW v_slash AS SELECT 'a\\' AS x, load_file('/etc/hostname') AS y, '\\' AS z;
"""
VIEWS = ("global", "user", "sleep", "quotes", "slash", "deep")
TRAPPED = (
    *("SELECT uuid_to_bin('/etc/hostname')", "SELECT `split_part`('a')", "SELECT initcap ('a')"),
    *("SELECT any('/etc/hostname')", "TABLE v_load", "SELECT x.x FROM `v_LOCK` AS x"),
    *("EXPLAIN SELECT * FROM v_split", "SELECT * FROM (SELECT * FROM v_over) AS y"),
    *(f"SELECT * FROM v_{name}" for name in VIEWS),
)


async def test_functions_and_views_of_the_databases_own_do_not_run(mariadb: MariadbServer) -> None:
    made = mariadb.folder / "made"
    name = mariadb.new_database(TRAPS.replace("{made}", str(made)))
    state = "SELECT @@global.max_connections, IS_FREE_LOCK('held')"
    before = mariadb.execute(state)
    async with connect(f"{mariadb.admin_url}/{name}") as connector:
        catalog = await connector.catalog()
        assert {each.name for each in catalog.tables} == {"t", "v_fine"}
        assert len(catalog.left_out) == 10
        assert "of the database's own" in " ".join(catalog.left_out)
        for sql in TRAPPED:
            assert error(await connector.run(sql, Limits(seconds=2))).kind is ErrorKind.PERMISSION, sql
        assert rows(await connector.run("SELECT c, r FROM v_fine", Limits())) == [("xz", 1)]
    assert not made.exists()
    assert mariadb.execute(state) == before


async def test_a_view_whose_definition_is_hidden_is_kept_out(mariadb: MariadbServer) -> None:
    name = mariadb.new_database(
        "CREATE TABLE t (a int); INSERT INTO t VALUES (1); CREATE VIEW v AS SELECT a FROM t"
    )
    mariadb.execute(f"""
        DROP USER IF EXISTS onlooker@'127.0.0.1'; CREATE USER onlooker@'127.0.0.1';
        GRANT SELECT ON {name}.* TO onlooker@'127.0.0.1'""")
    url = f"mysql://onlooker@127.0.0.1:{mariadb.port}/{name}"
    async with connect(url) as connector:
        (left_out,) = (await connector.catalog()).left_out
        assert "GRANT SHOW VIEW" in left_out
        assert "GRANT SHOW VIEW" in error(await connector.run("SELECT a FROM v", Limits())).message
    mariadb.execute(f"GRANT SHOW VIEW ON {name}.* TO onlooker@'127.0.0.1'")
    async with connect(url) as connector:
        assert rows(await connector.run("SELECT a FROM v", Limits())) == [(1,)]


async def test_a_query_that_the_server_goes_on_with_is_told_and_counted(
    mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.tools.databases.mysql.connector.MysqlConnector.links", 1)
    deaf = "SELECT locate(concat(repeat('a', 1000000), 'b'), repeat('a', 4000000))"
    async with connect(f"{mariadb.admin_url}/mysql") as connector:
        outcome = error(await connector.run(deaf, SOON))
        assert (outcome.kind, "may go on" in outcome.message) == (ErrorKind.TIMEOUT, True)
        refused = error(await connector.run("SELECT 1", Limits()))
        assert (refused.kind, "could not be stopped" in refused.message) == (ErrorKind.RESOURCES, True)
    mariadb.kill()
    mariadb.start()


async def test_a_list_of_a_group_is_not_cut(mariadb: MariadbServer) -> None:
    many = ", ".join(f"('{number:040}')" for number in range(50))
    name = mariadb.new_database(f"CREATE TABLE words (w varchar(40)); INSERT INTO words VALUES {many}")
    try:
        mariadb.execute("SET GLOBAL group_concat_max_len = 1024")  # as MySQL has it
        async with connect(f"{mariadb.admin_url}/{name}") as connector:
            found = await connector.run("SELECT LENGTH(GROUP_CONCAT(w)) FROM words", Limits())
    finally:
        mariadb.execute("SET GLOBAL group_concat_max_len = DEFAULT")
    assert rows(found) == [(2049,)]


async def test_a_lock_is_not_waited_for_endlessly(
    odd: Connector, mariadb: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("quorum.tools.databases.mysql.session.LOCK_SECONDS", 1)
    with closing(mariadb.connect("sales")) as other:
        other.cursor().execute("LOCK TABLES people WRITE")
        assert error(await odd.run("SELECT * FROM people", Limits())).kind is ErrorKind.UNAVAILABLE
