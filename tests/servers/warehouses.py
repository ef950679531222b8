"""Four warehouses with small data and two questions on each: nested data, shards, quoted names, two schemas.

    python -m tests.servers.warehouses FOLDER

starts PostgreSQL, MariaDB and the tests' own BigQuery and Snowflake, writes ``FOLDER/questions.jsonl`` with
the URLs and a gold query each, and serves until it is interrupted. Then, in another terminal::

    quorum eval run FOLDER/questions.jsonl --model … --concurrency 4
"""

from __future__ import annotations

import json
import signal
import sys
from contextlib import ExitStack
from pathlib import Path

from tests.servers.bigquery_server import running_bigquery
from tests.servers.mariadb_server import running_mariadb
from tests.servers.postgres_server import running_postgres
from tests.servers.snowflake_server import running_snowflake

POSTGRES = """
CREATE SCHEMA crm; CREATE SCHEMA sales;
CREATE TABLE crm.customers (id int PRIMARY KEY, "fullName" text NOT NULL, region text);
CREATE TABLE sales."Orders" (id int PRIMARY KEY, customer_id int REFERENCES crm.customers,
    "totalAmount" numeric(10,2), details jsonb, placed date);
INSERT INTO crm.customers VALUES (1, 'Ada Blom', 'north'), (2, 'Bo Costa', 'south'), (3, 'Cy Dahl', 'south');
INSERT INTO sales."Orders" VALUES
    (1, 1, 20.50, '{"device": "mobile", "payment": {"method": "card"}}', '2024-01-03'),
    (2, 1, 9.50, '{"device": "desktop", "payment": {"method": "card"}}', '2024-02-03'),
    (3, 2, 100, '{"device": "mobile", "payment": {"method": "invoice"}}', '2024-02-11'),
    (4, 2, 7.25, '{"device": "mobile", "payment": {"method": "card"}}', '2024-03-01'),
    (5, 3, 55, '{"device": "tablet", "payment": {"method": "invoice"}}', '2024-03-09');
"""
MARIADB = """
CREATE TABLE teams (id int PRIMARY KEY, name varchar(40) NOT NULL);
CREATE TABLE players (id int PRIMARY KEY, team_id int, name varchar(40), `rank` int, address json,
    FOREIGN KEY (team_id) REFERENCES teams (id));
INSERT INTO teams VALUES (1, 'Reds'), (2, 'Blues');
INSERT INTO players VALUES (1, 1, 'Ann', 1, '{"country": "Norway", "city": "Oslo"}'),
    (2, 1, 'Ben', 4, '{"country": "Spain", "city": "Vigo"}'),
    (3, 2, 'Cat', 2, '{"country": "Norway", "city": "Bergen"}'),
    (4, 2, 'Dan', 3, '{"country": "Italy", "city": "Bari"}');
"""
MARIADB_SCORES = """
CREATE TABLE results (player_id int, played date, points int);
INSERT INTO results VALUES (1, '2024-01-01', 10), (1, '2024-02-01', 20), (2, '2024-01-01', 5),
    (3, '2024-02-01', 30), (4, '2024-02-01', 1);
"""
BIGQUERY = """
CREATE TABLE events_20240101 (user_id BIGINT, kind VARCHAR, items STRUCT(sku VARCHAR, quantity BIGINT)[]);
CREATE TABLE events_20240102 (user_id BIGINT, kind VARCHAR, items STRUCT(sku VARCHAR, quantity BIGINT)[]);
CREATE TABLE events_20240103 (user_id BIGINT, kind VARCHAR, items STRUCT(sku VARCHAR, quantity BIGINT)[]);
INSERT INTO events_20240101 VALUES (1, 'purchase', [{'sku': 'A', 'quantity': 2}]), (2, 'view', []);
INSERT INTO events_20240102 VALUES
    (1, 'purchase', [{'sku': 'A', 'quantity': 1}, {'sku': 'B', 'quantity': 5}]),
    (3, 'view', []);
INSERT INTO events_20240103 VALUES (2, 'purchase', [{'sku': 'B', 'quantity': 4}]),
    (3, 'purchase', [{'sku': 'C', 'quantity': 1}]);
"""
SNOWFLAKE = """
CREATE TABLE baskets (id INT, doc VARIANT);
INSERT INTO baskets SELECT 1,
    PARSE_JSON('{"city": "Oslo", "items": [{"sku": "A", "qty": 2}, {"sku": "B", "qty": 1}]}');
INSERT INTO baskets SELECT 2, PARSE_JSON('{"city": "Vigo", "items": [{"sku": "A", "qty": 3}]}');
INSERT INTO baskets SELECT 3, PARSE_JSON('{"city": "Oslo", "items": [{"sku": "C", "qty": 4}]}');
CREATE TABLE "Order Lines" (id INT, "regionCode" VARCHAR, "amount" NUMBER(10,2));
INSERT INTO "Order Lines" VALUES (1, 'N', 10.50), (2, 'N', 4.50), (3, 'S', 30.00), (4, 'E', 1.00);
"""
SNOWFLAKE_REGIONS = """
CREATE TABLE regions (code VARCHAR, name VARCHAR);
INSERT INTO regions VALUES ('N', 'North'), ('S', 'South'), ('E', 'East');
"""


def questions(stack: ExitStack) -> list[dict[str, str]]:
    """Start the servers, to be stopped with ``stack``; the questions with URL and gold SQL."""
    postgres = stack.enter_context(running_postgres())
    shop = f"{postgres.admin_url}/{postgres.new_database(POSTGRES)}?schema=crm,sales"
    mariadb = stack.enter_context(running_mariadb())
    league, scores = mariadb.new_database(MARIADB), mariadb.new_database(MARIADB_SCORES)
    teams = f"{mariadb.admin_url}/{league}?schema={league},{scores}"
    bigquery = stack.enter_context(running_bigquery())
    dataset = bigquery.new_dataset(BIGQUERY)
    snowflake = stack.enter_context(running_snowflake())
    lines, regions = snowflake.new_schema(SNOWFLAKE), snowflake.new_schema(SNOWFLAKE_REGIONS)
    asked = [
        (
            "postgres-two-schemas",
            shop,
            "What is the total amount ordered by each customer, by full name?",
            'SELECT c."fullName", sum(o."totalAmount") FROM crm.customers c '
            'JOIN sales."Orders" o ON o.customer_id = c.id GROUP BY c.id, c."fullName"',
        ),
        (
            "postgres-json",
            shop,
            "How many orders from a mobile device were paid by card?",
            """SELECT count(*) FROM sales."Orders" WHERE details ->> 'device' = 'mobile' """
            """AND details -> 'payment' ->> 'method' = 'card'""",
        ),
        (
            "mariadb-two-databases",
            teams,
            "How many points did the players of each team score in February 2024? Show the team's name.",
            f"SELECT t.name, sum(r.points) FROM teams t JOIN players p ON p.team_id = t.id "
            f"JOIN {scores}.results r ON r.player_id = p.id "
            "WHERE r.played >= '2024-02-01' AND r.played < '2024-03-01' GROUP BY t.id, t.name",
        ),
        (
            "mariadb-json-reserved",
            teams,
            "Which players from Norway have a rank better than 3? Show name and rank.",
            "SELECT name, `rank` FROM players "
            "WHERE `rank` < 3 AND JSON_VALUE(address, '$.country') = 'Norway'",
        ),
        (
            "bigquery-shards",
            bigquery.url(dataset),
            "How many purchases were there on 2 and 3 January 2024 together?",
            f"SELECT COUNT(*) FROM `{dataset}.events_*` "
            "WHERE _TABLE_SUFFIX BETWEEN '20240102' AND '20240103' AND kind = 'purchase'",
        ),
        (
            "bigquery-nested",
            bigquery.url(dataset),
            "What quantity of each sku was purchased over all days?",
            f"SELECT i.sku, SUM(i.quantity) FROM `{dataset}.events_*`, UNNEST(items) AS i "
            "WHERE kind = 'purchase' GROUP BY i.sku",
        ),
        (
            "snowflake-variant",
            snowflake.url(f"shop/{lines},{regions}"),
            "How many items of each sku were in baskets from Oslo?",
            "SELECT f.value:sku::string, SUM(f.value:qty::int) FROM baskets, "
            "LATERAL FLATTEN(input => doc:items) f WHERE doc:city::string = 'Oslo' GROUP BY 1",
        ),
        (
            "snowflake-two-schemas",
            snowflake.url(f"shop/{lines},{regions}"),
            "What is the total amount of order lines in each region, by the region's name?",
            f'SELECT r.name, SUM(l."amount") FROM "Order Lines" l '
            f'JOIN {regions}.regions r ON r.code = l."regionCode" GROUP BY r.name',
        ),
    ]
    names = ("id", "database", "question", "sql")
    return [dict(zip(names, each, strict=True)) for each in asked]


def main(folder: Path) -> None:
    """Serve until somebody interrupts."""
    with ExitStack() as stack:
        lines = [json.dumps(each) for each in questions(stack)]
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "questions.jsonl").write_text("\n".join([*lines, ""]))
        print(f"{len(lines)} questions in {folder / 'questions.jsonl'}; Ctrl-C ends the servers", flush=True)
        signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT, signal.SIGTERM})
    main(Path(sys.argv[1]))
