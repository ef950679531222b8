"""BigQuery: the contract, by Google's client on a server of the tests' own, and what is its own."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from datetime import UTC, date, datetime
from decimal import Decimal
from pathlib import Path
from unittest.mock import Mock

import pyarrow as pa
import pytest

from quorum.knowledge.catalog import Field
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.databases.base import Connector
from quorum.tools.databases.bigquery.url import Target
from quorum.tools.query import ErrorKind, Estimate, Limits
from tests.servers.bigquery_server import VISITS, BigqueryServer
from tests.servers.bigquery_sql import PROJECT, ApiError
from tests.tools.databases.contract import ConnectorContract, RightsContract, error, result, rows, table


class TestBigquery(ConnectorContract):
    """The differences: reading rows is billed, so what is said of a table is what its first rows and its
    metadata tell; views are not read; columns of one name are refused."""

    scheme = "bigquery"
    long_text = "repeat('x', 100000)"
    server_name = "bigquery"
    scans = False

    def said(self, sql: str) -> str:
        return re.sub(r'"((?:[^"]|"")*)"', lambda name: "`" + name[1].replace('""', '"') + "`", sql)

    def build(self, path: Path, script: str) -> None:
        self.names[path] = self.server.new_dataset(script)

    def connect(self, path: Path) -> Connector:
        return connect(self.server.url(self.names[path]))

    def at_work(self, connector: Connector) -> int:
        return len(self.server.running()) if connector._busy else 0  # type: ignore[attr-defined]

    def running(self, connector: Connector, path: Path) -> object:
        return self.server.running()

    def state(self, path: Path) -> object:
        name = self.names[path]
        return self.server.engine.tables(name), self.server.engine.execute("FROM customers", name)

    async def test_column_names_may_repeat(self, shop: Connector) -> None:
        sql = "SELECT a.id, b.id FROM customers a JOIN customers b USING (id)"
        assert "Duplicate column names" in error(await shop.run(sql, Limits())).message

    async def test_million_rows_in_flat_memory(self, shop: Connector) -> None:
        """The server shares this process: what is not asked for is counted instead."""
        sql = """
            WITH n AS (SELECT i FROM UNNEST(GENERATE_ARRAY(1, 1000)) AS i)
            SELECT a.i, b.i AS j FROM n AS a CROSS JOIN n AS b
        """
        before = self.server.pages
        outcome = result(await shop.run(sql, Limits(rows=12_000)))
        assert (outcome.row_count, outcome.truncated) == (12_000, "rows")
        assert self.server.pages - before <= 5
        before = self.server.pages
        outcome = result(await shop.run(sql, Limits(bytes=10_000)))
        assert (outcome.truncated, outcome.table.nbytes <= 10_000) == ("bytes", True)
        assert self.server.pages - before <= 3


class TestRights(RightsContract):
    server_name = "bigquery"

    def urls(self) -> tuple[dict[str, str], dict[str, str]]:
        mine, theirs = (self.server.new_dataset("CREATE TABLE t (x INT)") for _ in range(2))
        self.server.engine.closed.add(theirs)
        self.server.engine.unread.add(mine)
        names = {"absent": f"{mine}x", "closed": theirs, "unread": mine}
        return {case: self.server.url(dataset) for case, dataset in names.items()}, names

    def grants(self, schema: str) -> tuple[str, ...]:
        grant = f"GRANT `roles/bigquery.dataViewer` ON SCHEMA `{PROJECT}.{schema}`"
        return (f'{grant} TO "user:analyst@example.com";',)

    async def test_a_project_may_forbid_queries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        message = "Access Denied: Project p: User does not have bigquery.jobs.create permission in project p."
        refused = ApiError(403, "accessDenied", message)
        monkeypatch.setattr(self.server, "_insert", Mock(side_effect=refused))
        with pytest.raises(DatabaseUnavailable, match=r"bigquery\.jobs\.create") as caught:
            await connect(self.server.url("any")).open()
        assert "roles/bigquery.jobUser" in caught.value.hint


ODD = """
CREATE TABLE events_20240101 (
    id BIGINT, user STRUCT(name VARCHAR, age BIGINT), items STRUCT(key VARCHAR, price DECIMAL(38,9))[]
);
CREATE TABLE events_20240102 AS FROM events_20240101;
INSERT INTO events_20240101 VALUES
    (1, {'name': 'Ann', 'age': 7}, [{'key': 'a', 'price': 1.5}, {'key': 'b', 'price': 2}]);
INSERT INTO events_20240102 VALUES (2, {'name': 'Bob', 'age': NULL}, []), (3, NULL, NULL);
"""


@pytest.fixture(scope="module")
def odd_name(bigquery: BigqueryServer) -> str:
    name = bigquery.new_dataset(ODD + VISITS)
    bigquery.engine.described[name, "visits"] = {
        "description": "Who came.",
        "timePartitioning": {"type": "DAY", "field": "day"},
        "requirePartitionFilter": True,
        "clustering": {"fields": ["page"]},
    }
    return name


@pytest.fixture
async def odd(bigquery: BigqueryServer, odd_name: str) -> AsyncIterator[Connector]:
    async with connect(bigquery.url(odd_name)) as connector:
        yield connector


async def test_nested_fields_shards_and_storage_without_a_query(
    odd: Connector, odd_name: str, bigquery: BigqueryServer
) -> None:
    before = len(bigquery.jobs)
    catalog = await odd.catalog()
    assert len(bigquery.jobs) == before
    assert {t.full_name for t in catalog.tables} == {
        f"proj.{odd_name}.{name}" for name in ("events_20240101", "events_20240102", "visits")
    }
    events = table(catalog, "events_20240102")
    assert events.columns[1].fields == (Field("name", "STRING"), Field("age", "INT64"))
    assert events.columns[2].fields == (Field("[].key", "STRING"), Field("[].price", "NUMERIC"))
    assert events.columns[2].type == "ARRAY<STRUCT<key STRING, price NUMERIC>>"
    assert events.row_count == 2
    assert table(catalog, "events_20240101").columns[0].type == "INT64"
    visits = table(catalog, "visits")
    assert visits.row_count == 100_000
    assert visits.description == (
        "Who came. Partitioned by day of day. Each query must filter by day. Clustered by page."
    )
    assert sorted(visits.columns[1].samples) == ["p0", "p1", "p2"]


@pytest.mark.heavy
async def test_all_datasets_of_a_project(bigquery: BigqueryServer, odd_name: str) -> None:
    async with connect(bigquery.url(odd_name).replace(f"/{odd_name}", "", 1)) as connector:
        assert odd_name in {t.schema for t in (await connector.catalog()).tables}


async def test_nested_data_and_wildcards(odd: Connector, odd_name: str) -> None:
    sql = f"""
        SELECT e._TABLE_SUFFIX AS day, i.key AS key, i.price AS price
        FROM `proj.{odd_name}.events_*` AS e, UNNEST(e.items) AS i
        WHERE e._TABLE_SUFFIX BETWEEN '20240101' AND '20240131' ORDER BY key
    """
    outcome = await odd.run(sql, Limits())
    assert rows(outcome) == [("20240101", "a", Decimal("1.5")), ("20240101", "b", Decimal(2))]
    whole = result(await odd.run("SELECT * FROM events_20240101", Limits()))
    assert whole.table["items"].to_pylist() == [
        [{"key": "a", "price": Decimal("1.5")}, {"key": "b", "price": Decimal(2)}]
    ]
    assert whole.column_types[1] == "STRUCT<name STRING, age INT64>"


async def test_every_type_crosses(odd: Connector) -> None:
    sql = """
        SELECT 1 AS i, 0.5 AS f, true AS yes, DATE '2024-02-29' AS day, b'ab' AS raw, 'ä' AS text,
            DATETIME '2024-01-01 10:00:00' AS moment, TIMESTAMP '2024-01-01 10:00:00+00' AS instant,
            CAST(1.5 AS NUMERIC) AS money, CAST(NULL AS STRING) AS none, [1, 2] AS list,
            JSON '{"a": 1}' AS doc
    """
    outcome = result(await odd.run(sql, Limits()))
    (row,) = outcome.table.to_pylist()
    assert json.loads(row.pop("doc")) == {"a": 1}
    assert row == {
        **{"i": 1, "f": 0.5, "yes": True, "day": date(2024, 2, 29), "raw": b"ab", "text": "ä"},
        **{"moment": datetime(2024, 1, 1, 10), "instant": datetime(2024, 1, 1, 10, tzinfo=UTC)},
        **{"money": Decimal("1.5"), "none": None, "list": [1, 2]},
    }
    assert not any(isinstance(kind, pa.BaseExtensionType) for kind in outcome.table.schema.types)


async def test_only_what_was_named_is_read(odd: Connector, bigquery: BigqueryServer) -> None:
    other = bigquery.new_dataset("CREATE TABLE secrets AS SELECT 1 AS x")
    before = len(bigquery.jobs)
    for sql in (
        f"SELECT * FROM {other}.secrets",
        f"SELECT * FROM `proj`.`{other}`.`secrets`",
        f"SELECT * FROM `proj.{other}.INFORMATION_SCHEMA.TABLES`",
        "SELECT * FROM `region-us`.INFORMATION_SCHEMA.JOBS",
        "SELECT * FROM `elsewhere.d.t`",
    ):
        outcome = error(await odd.run(sql, Limits()))
        assert outcome.kind is ErrorKind.PERMISSION, (sql, outcome)
    assert len(bigquery.jobs) == before, "none was begun"


async def test_a_query_over_the_limit_is_refused_before_it_runs_and_what_is_billed_is_told(
    odd: Connector, bigquery: BigqueryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    sql = "SELECT seconds FROM visits WHERE day = '2024-01-01' LIMIT 1"
    size = 100_000 * 8 * 2
    assert await odd.estimate(sql, Limits()) == Estimate(bytes=size, billed=True)
    before = len(bigquery.jobs)
    outcome = error(await odd.run(sql, Limits(scan=size - 1)))
    assert outcome.kind is ErrorKind.RESOURCES
    assert "1,600,000 bytes; 1,599,999 are allowed" in outcome.message
    assert len(bigquery.jobs) == before
    monkeypatch.setattr(bigquery, "lying", True)
    outcome = error(await odd.run(sql, Limits(scan=2**20)))
    assert outcome.kind is ErrorKind.RESOURCES
    assert "bytes billed" in outcome.message, "the server itself refused it"
    assert len(bigquery.jobs) == before + 1
    monkeypatch.undo()
    paid = result(await odd.run(sql, Limits(scan=10**9)))
    assert paid.bytes_scanned == 2 * 2**20
    job = list(bigquery.jobs.values())[-1]
    assert job.configuration["labels"] == {"application": "quorum"}
    assert job.query["maximumBytesBilled"] == str(10**9)


async def test_a_lost_answer_is_looked_up_not_paid_for_again(
    odd: Connector, bigquery: BigqueryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(bigquery.jobs)
    monkeypatch.setattr(bigquery, "lost", 1)
    assert rows(await odd.run("SELECT count(*) FROM visits", Limits())) == [(100_000,)]
    assert len(bigquery.jobs) == before + 1


async def test_expired_credentials_are_said(
    odd: Connector, bigquery: BigqueryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bigquery, "expired", True)
    outcome = error(await odd.run("SELECT 1", Limits()))
    assert outcome.kind is ErrorKind.UNAVAILABLE
    assert "credentials are not accepted" in outcome.message
    monkeypatch.undo()
    assert rows(await odd.run("SELECT 1", Limits())) == [(1,)]


async def test_what_cannot_be_opened(
    bigquery: BigqueryServer, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with pytest.raises(DatabaseUnavailable, match="holds no schema nowhere"):
        await connect(bigquery.url("nowhere")).open()
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("GOOGLE_APPLICATION_CREDENTIALS", str(tmp_path / "none.json"))
    with pytest.raises(DatabaseUnavailable) as failed:
        await connect("bigquery://proj/d").open()
    assert "gcloud auth application-default login" in failed.value.hint


def test_urls() -> None:
    for url, target in (
        ("bigquery://my-project", Target("my-project")),
        ("bigquery://p1/d?dataset=a,b&location=EU", Target("p1", ("d", "a", "b"), location="EU")),
        ("bigquery://p1?billing_project=z", Target("p1", billing_project="z")),
    ):
        assert Target.of(url) == target


async def test_an_account_that_may_write_is_told(
    odd: Connector, odd_name: str, bigquery: BigqueryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    for rights, powers in ([], ()), (["bigquery.tables.delete"], (f"may write to tables of {odd_name}",)):
        monkeypatch.setattr(bigquery, "rights", rights)
        account = await odd.account()
        assert (account.name, account.powers) == ("analyst@example.com", powers)
