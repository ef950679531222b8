"""A small shop with a trap of each kind, in SQL that all engines take, and what is said of queries on it."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from quorum.tools.databases.base import Connector
from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.ledger import Ledger
from quorum.tools.lint import Linter
from quorum.tools.query import Limits, QueryResult
from quorum.tools.results.values import plain_rows
from quorum.tools.silent_errors import Kind, Suspicion, suspicions
from tests.tools.case_files import cases

SCRIPT = """
CREATE TABLE customers (id INTEGER PRIMARY KEY, name VARCHAR(40), city VARCHAR(40), credit INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER, total INTEGER, status VARCHAR(20),
    rating INTEGER, placed TIMESTAMP NULL);
CREATE TABLE items (id INTEGER PRIMARY KEY, order_id INTEGER NOT NULL, qty INTEGER NOT NULL);
INSERT INTO customers VALUES (1, 'Ann Lee', 'Rome', 10), (2, 'Ann Lee', 'Oslo', 20), (3, 'Bo Ek', 'Rome', 20),
    (4, 'Cy Ot', 'Bern', 5);
INSERT INTO orders VALUES (1, 1, 10, 'open', 5, '2023-03-30 10:00:00'),
    (2, 1, 7, 'open', NULL, '2023-03-30 12:00:00'),
    (3, 2, 7, 'shut', 4, '2023-03-31 18:30:00'), (4, 3, 3, 'Open', 1, '2023-04-02 09:00:00'),
    (5, NULL, 8, 'shut', 2, '2023-04-03 09:00:00'), (6, 3, 1, NULL, 3, '2023-04-04 09:00:00');
INSERT INTO items VALUES (1, 1, 2), (2, 1, 3), (3, 2, 1), (4, 3, 4), (5, 4, 1), (6, 5, 2), (7, 6, 1);
"""


@dataclass(frozen=True)
class Case:
    """A query, the kind that is suspected, and a part of what is said."""

    kind: Kind
    sql: str
    says: str
    question: str = ""


def _case(kind: str, sql: str, says: str, question: str = "") -> Case:
    return Case(Kind(kind), sql, says, question)


CASES = [_case(*fields) for fields in cases("silent_errors", "case")]
"""Of all engines."""
OTHER_CASE = _case(*cases("silent_errors", "other case")[0])
"""Where the case of letters counts."""
QUIET = [sql for (sql,) in cases("silent_errors", "quiet")]
"""Right queries of which nothing is to be said."""


async def opened(connector: Connector) -> Database:
    """The database for queries."""
    catalog = await connector.catalog()
    return Database(connector, catalog, Linter(catalog), Limits(), Ledger())


async def said(database: Database, sql: str, question: str = "") -> list[Suspicion]:
    """What is suspected of a query."""
    result = await execute(database, sql, agent="test")
    assert isinstance(result, QueryResult), result
    return await suspicions(database, sql, result, agent="test", question=question, seconds=30)


async def check(database: Database, case: Case) -> None:
    """The case's kind is suspected, all that is said is shown by the evidence, and what is mended runs."""
    every = await said(database, case.sql, case.question)
    for each in every:
        await check_shown(database, case, each)
    found = [each for each in every if each.kind is case.kind]
    assert len(found) == 1, (case, every)
    assert case.says in found[0].says, found[0].says
    assert found[0].matters
    assert isinstance(await execute(database, found[0].mended, agent="test"), QueryResult)


async def check_shown(database: Database, case: Case, found: Suspicion) -> None:
    """Each figure and value that is said stands in what the evidence returns when it is asked again."""
    shown = await execute(replace(database, cache=QueryCache()), found.sql, agent="test")
    assert isinstance(shown, QueryResult)
    plain = [cell for row in plain_rows(shown.table) for cell in row]
    cells = {str(cell) for cell in plain} | {str(cell)[:10] for cell in plain}
    written = re.sub(r"[\s()]", "", f"{case.sql} {found.sql}")
    for text in re.findall(r"`([^`]*)`", found.says):
        assert text in cells or re.sub(r"[\s()]", "", text) in written, (found.says, cells)
    figures = re.findall(r"(?<![\w.`-])\d[\d,]*(?:\.\d+)?(?![\w`-])", re.sub(r"`[^`]*`", "", found.says))
    numbers = {float(cell) for cell in cells if re.fullmatch(r"-?\d+(\.\d+)?", cell)}
    numbers |= {float(text) for text in re.findall(r"\d+", case.sql)}
    assert {float(text.replace(",", "")) for text in figures} <= numbers, (found.says, cells)
