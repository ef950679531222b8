"""MySQL and MariaDB: what a query would read, by plans of a real MariaDB and by MySQL's form of them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest

from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.mysql.costs import Facts, Named, Size, estimate_of, few_rows, sizes_of
from quorum.tools.databases.scans import Hidden
from quorum.tools.execute import Database, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import ErrorKind, Estimate, Limits, QueryError, QueryResult
from tests.servers.mariadb_server import MariadbServer
from tests.tools.databases.contract import ENDLESS

SCRIPT = """
CREATE TABLE big (id INT PRIMARY KEY, k INT, pad VARCHAR(300), KEY (k));
INSERT INTO big SELECT seq, seq % 100, repeat('x', 200) FROM seq_1_to_50000;
CREATE TABLE small (id INT PRIMARY KEY, name TEXT);
INSERT INTO small SELECT seq, concat('n', seq) FROM seq_1_to_100;
CREATE TABLE `od``d` (`a b` INT);
CREATE TABLE days (day DATE, v INT) PARTITION BY RANGE (to_days(day)) (
    PARTITION p1 VALUES LESS THAN (to_days('2024-02-01')), PARTITION p2 VALUES LESS THAN MAXVALUE);
INSERT INTO days SELECT date '2024-01-01' + INTERVAL (seq % 60) DAY, seq FROM seq_1_to_50000;
CREATE TABLE counter (n INT) ENGINE=MyISAM;
CREATE FUNCTION bump() RETURNS INT MODIFIES SQL DATA BEGIN INSERT INTO counter VALUES (1); RETURN 1; END;
CREATE FUNCTION counted() RETURNS BIGINT READS SQL DATA RETURN (SELECT count(*) FROM big);
CREATE VIEW joined AS SELECT b.id, s.name FROM big b JOIN small s ON s.id = b.k;
CREATE ALGORITHM=TEMPTABLE VIEW made AS SELECT pad, count(*) AS n FROM big o GROUP BY pad;
CREATE ALGORITHM=TEMPTABLE VIEW upon AS SELECT pad AS p FROM made;
CREATE VIEW apart AS SELECT DISTINCT pad FROM big;
CREATE VIEW hidden AS SELECT name, counted() AS n FROM small;
CREATE ALGORITHM=TEMPTABLE VIEW deep AS SELECT name, counted() AS n FROM small;
CREATE VIEW trap AS SELECT bump() AS x;
CREATE USER IF NOT EXISTS asker@'127.0.0.1';
ANALYZE TABLE big, small, days;
"""
SIZES = """
    SELECT table_name, coalesce(partition_name, ''), data_length, index_length
    FROM information_schema.partitions WHERE table_schema = '{}'
"""


@pytest.fixture(scope="module")
def name(mariadb: MariadbServer) -> str:
    return mariadb.new_database(SCRIPT)


@pytest.fixture(scope="module")
def sizes(mariadb: MariadbServer, name: str) -> dict[str, int]:
    """Bytes of tables, of partitions (``days.p1``) and of indexes (``big:``)."""
    found: dict[str, int] = {}
    for table, part, data, indexes in mariadb.execute(SIZES.format(name)):
        found[f"{table}.{part}".rstrip(".")] = data
        found[f"{table}:"] = indexes
    return found


@pytest.fixture
async def shop(mariadb: MariadbServer, name: str) -> AsyncIterator[Connector]:
    async with connect(f"{mariadb.admin_url}/{name}") as connector:
        yield connector


async def told(shop: Connector, sql: str) -> Estimate:
    found = await shop.estimate(sql, Limits())
    assert isinstance(found, Estimate), found
    return found


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("sql", "parts"),
    [
        ("SELECT sum(length(pad)) FROM big", ["big"]),
        ("SELECT count(*) FROM big", ["big:"]),
        ("SELECT count(*) FROM big LIMIT 3", ["big:"]),
        ("SELECT * FROM big WHERE pad = '100%s' LIMIT 3", ["big"]),
        ("SELECT k, rank() OVER (ORDER BY pad) FROM big", ["big"]),
        ("SELECT x.pad FROM (SELECT pad FROM big b GROUP BY pad) x LIMIT 1", ["big"]),
        ("SELECT * FROM made", ["big"]),
        ("SELECT * FROM upon LIMIT 1", ["big"]),
        ("SELECT * FROM apart LIMIT 1", ["big"]),
        ("SELECT sum(v) FROM days WHERE day < '2024-01-15'", ["days.p1"]),
        ("SELECT sum(v) FROM days", ["days.p1", "days.p2"]),
        ("SELECT a.pad FROM big a JOIN big b ON a.pad = b.pad ORDER BY a.k", ["big", "big", "big:"]),
        ("SELECT name FROM small s WHERE 5 < (SELECT count(*) FROM big b)", ["small", "big:"]),
        ("SELECT pad FROM big UNION ALL SELECT name FROM small", ["big", "small"]),
        ("SELECT * FROM `od``d`", ["od`d"]),
        ("SELECT 1", []),
        ("VALUES (1), (2)", []),
        ("SHOW TABLES", []),
        ("EXPLAIN SELECT * FROM big", []),
    ],
)
async def test_whole_tables_count_with_all_their_bytes(
    sql: str, parts: list[str], shop: Connector, sizes: dict[str, int]
) -> None:
    assert (await told(shop, sql)).bytes == sum(sizes[part] for part in parts)


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM big WHERE id = 7",
        "SELECT * FROM big ORDER BY id LIMIT 5",
        "SELECT * FROM big LIMIT 10",
        "SELECT pad FROM big LIMIT 10 OFFSET 20",
        "SELECT max(id) FROM big",
    ],
)
async def test_what_needs_few_rows_counts_with_few(sql: str, shop: Connector, sizes: dict[str, int]) -> None:
    size = (await told(shop, sql)).bytes
    assert size is not None
    assert 0 < size <= 2**20 < sizes["big"] / 5


async def test_rows_that_lie_apart_count_with_a_page_each(shop: Connector, sizes: dict[str, int]) -> None:
    size = (await told(shop, "SELECT pad FROM big WHERE k = 5")).bytes
    assert size is not None
    assert 400 * 16384 < size <= sizes["big"] + sizes["big:"]


async def test_what_hides_its_reading_is_not_told(shop: Connector) -> None:
    found = await told(shop, "SELECT * FROM seq_1_to_1000000")
    assert found.bytes is None
    assert found.unknown.startswith("seq_1_to_1000000 is a table of the engine sequence")


@pytest.mark.parametrize("sql", ["SELECT * FROM hidden", "SELECT * FROM deep", "SELECT counted()"])
async def test_code_of_the_databases_own_is_not_estimated(sql: str, shop: Connector) -> None:
    found = await shop.estimate(sql, Limits())
    assert isinstance(found, QueryError)
    assert (found.kind, "counted" in found.message) == (ErrorKind.PERMISSION, True)


@pytest.mark.parametrize("sql", ["SELECT * FROM trap", "ANALYZE FORMAT=JSON SELECT 1"])
async def test_what_would_write_or_run_is_an_error(sql: str, shop: Connector) -> None:
    found = await shop.estimate(sql, Limits())
    assert isinstance(found, QueryError)
    assert found.kind is ErrorKind.PERMISSION


async def test_nothing_has_run(mariadb: MariadbServer, name: str, shop: Connector) -> None:
    assert isinstance(await shop.estimate(ENDLESS, Limits(seconds=2)), Estimate)
    await shop.estimate("SELECT * FROM trap", Limits())
    await shop.estimate("SELECT * FROM big WHERE k = bump()", Limits())
    assert mariadb.execute("SELECT count(*) FROM counter", name) == ((0,),)


async def test_what_the_account_may_not_look_into_is_not_told(mariadb: MariadbServer, name: str) -> None:
    mariadb.execute(f"GRANT SELECT ON {name}.joined TO asker@'127.0.0.1'")
    async with connect(f"mysql://asker@127.0.0.1:{mariadb.port}/{name}") as connector:
        found = await connector.estimate("SELECT * FROM joined", Limits())
        assert isinstance(found, QueryError)
        assert "GRANT SHOW VIEW" in found.message


async def test_a_limit_is_kept_and_estimates_are_counted_as_such(
    shop: Connector, sizes: dict[str, int]
) -> None:
    catalog = await shop.catalog(samples=0)
    limited = Database(shop, catalog, Linter(catalog), Limits(scan=sizes["small"]), Ledger())
    refused = await execute(limited, "SELECT count(*) AS n FROM big", agent="action")
    assert isinstance(refused, QueryError)
    assert refused.kind is ErrorKind.RESOURCES
    assert isinstance(await execute(limited, "SELECT * FROM small", agent="action"), QueryResult)
    used = limited.ledger.total
    assert (used.read_bytes, used.estimated_bytes) == (0, sizes["small"])


# MySQL's form of plans


def mysql(name: str, access: str, rows: int, **more: Any) -> dict[str, Any]:
    usual = {"rows_examined_per_scan": rows, "rows_produced_per_join": rows, "filtered": "100.00"}
    return {"table": {"table_name": name, "access_type": access, **usual, **more}}


NAMED = Named.of(["select `s`.`t`.`a` AS `a` from `s`.`t` join `s`.`u` `x` where `s`.`t`.`b` = '`no`.`u`'"])
FACTS = Facts(
    NAMED,
    {
        ("s", "t"): {"": Size(10**6, 10**5, 1000)},
        ("s", "u"): {"p": Size(10**9, 0, 10**6), "q": Size(1, 0, 1)},
    },
    cache=10**8,
)
T, X = mysql("t", "ALL", 1000), mysql("x", "ALL", 10**6)


@pytest.mark.parametrize(
    ("block", "size"),
    [
        (T, 10**6),
        ({"ordering_operation": {"using_filesort": True, "grouping_operation": {"nested_loop": [T]}}}, 10**6),
        ({"nested_loop": [T, mysql("x", "ALL", 10**6, partitions=["p"])]}, 10**6 + 1000 * 10**9),
        ({"nested_loop": [T, mysql("x", "ALL", 10**6, using_join_buffer="hash join")]},
         10**6 + 2 * (10**9 + 1)),
        ({"nested_loop": [T, mysql("x", "eq_ref", 1, key="PRIMARY")]}, 10**6 + 1000 * (16384 + 1000)),
        ({"select_list_subqueries": [{"dependent": True, "query_block": X}], **T},
         10**6 + 1000 * (10**9 + 1)),
        ({"select_list_subqueries": [{"dependent": False, "query_block": X}], **T}, 10**6 + 10**9 + 1),
        (mysql("dt", "ALL", 9, materialized_from_subquery={"dependent": False, "query_block": T}), 10**6),
        (mysql("dt", "ALL", 9, materialized_from_subquery={"sharing_temporary_table_with": {}}), 0),
        ({"union_result": {"table_name": "<union1,2>", "access_type": "ALL", "query_specifications": [
            {"dependent": False, "query_block": {"select_id": 1, **T}},
            {"dependent": False, "query_block": {"select_id": 2, **X}}]}}, 10**6 + 10**9 + 1),
        (mysql("t", "ALL", 1000, attached_subqueries=[{"dependent": True, "query_block": X}]),
         10**6 + 1000 * (10**9 + 1)),
        ({"message": "Impossible WHERE"}, 0),
    ],
)  # fmt: skip
def test_plans_of_mysql_are_read_alike(block: dict[str, Any], size: int) -> None:
    found = estimate_of({"query_block": {"select_id": 1, **block}}, FACTS)
    assert found.bytes is not None
    assert found.bytes == pytest.approx(size, rel=1e-3)


def test_what_is_not_known_is_not_told() -> None:
    assert "what y is" in estimate_of({"query_block": mysql("y", "ALL", 1)}, FACTS).unknown
    assert "form" in estimate_of({"query_plan": {"operation": "Table scan on t"}}, FACTS).unknown
    row = {"home": "s", "name": "far", "engine": "federated", "part": None, "data": 0, "indexes": 0, "n": 0}
    with pytest.raises(Hidden, match="engine federated"):
        sizes_of([row])


def test_names_are_read_off_the_servers_own_text() -> None:
    found = Named.of(["select `f`(1) AS `a(b)`,`s`.`x`.`c` AS `c` from `s`.`o``d` `x` join `s`.`t`"])
    assert found.calls == ("f",)
    assert found.tables == {"x": {("s", "o`d")}, "t": {("s", "t")}}


@pytest.mark.parametrize(
    ("sql", "rows"),
    [
        ("SELECT a FROM t LIMIT 10", 10),
        ("SELECT a FROM t LIMIT 5, 10", 15),
        ("SELECT a FROM t", None),
        ("SELECT count(*) FROM t LIMIT 10", None),
        ("SELECT DISTINCT a FROM t LIMIT 10", None),
        ("SELECT a FROM t ORDER BY b LIMIT 10", None),
        ("SELECT a FROM t, u LIMIT 10", None),
        ("SELECT (SELECT max(b) FROM u) FROM t LIMIT 10", None),
        ("SELECT a FROM t UNION SELECT 1 LIMIT 10", None),
    ],
)
def test_a_plain_look_at_a_table_is_known_as_such(sql: str, rows: int | None) -> None:
    assert few_rows(sql) == rows
