"""A small shop with a trap of each kind, in SQL that all engines take, and what is said of queries on it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from quorum.tools.execute import Database, QueryCache, execute
from quorum.tools.query import QueryResult
from quorum.tools.results.values import plain_rows
from quorum.tools.silent_errors import Kind, Suspicion, suspicions
from tests.tools.case_files import cases
from tests.tools.databases.contract import result

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


def _inserted(table: str, rows: Iterable[tuple[object, ...]]) -> str:
    values = (", ".join("NULL" if each is None else repr(each) for each in row) for row in rows)
    return f"INSERT INTO {table} VALUES {', '.join(f'({each})' for each in values)};\n"


_SALES = [
    (
        nth,
        ("North", "South", "north", "South ", "North", "West")[nth % 6],
        (f"2024-{nth % 12 + 1:02}-15", f"{nth % 28 + 1:02}.03.2024", f"04/{nth % 15 + 13}/2024")[nth % 3],
        (f"${nth},200.50", f"USD {nth * 10 + 800}", f"{nth}50.25")[nth % 3],
        ("Y", "N", "yes", "no", "Y")[nth % 5],
        -999 if nth % 8 == 0 else 50 + nth,
        (f"C000{nth % 6 + 10}", f"c000{nth % 6 + 10}", f" C000{nth % 6 + 10}")[nth % 3],
        f"{nth}%" if nth % 4 else f"0.{nth:02}",
        ("web", "shop", "web", "n/a", None)[nth % 5],
    )
    for nth in range(1, 25)
]
MESSY = (
    """
CREATE TABLE sales (sale_id INTEGER PRIMARY KEY, region VARCHAR(40), sold VARCHAR(40), price VARCHAR(40),
    paid VARCHAR(40), score INTEGER, client VARCHAR(40), share VARCHAR(40), channel VARCHAR(40));
CREATE TABLE clients (client VARCHAR(40) PRIMARY KEY, country VARCHAR(40));
CREATE TABLE weights (weight_id INTEGER PRIMARY KEY, weight INTEGER, unit VARCHAR(40));
CREATE TABLE budget (region VARCHAR(40), amount INTEGER);
CREATE TABLE calls (call_id INTEGER, minutes INTEGER);
"""
    + _inserted("sales", _SALES)
    + _inserted("clients", ((f"C000{nth}", "IT") for nth in range(10, 16)))
    + _inserted("weights", ((nth, nth * 7, "lb" if nth % 3 else "kg") for nth in range(1, 13)))
    + _inserted("budget", [*((f"R{nth} East", nth) for nth in range(1, 10)), ("TOTAL", 45)])
    + _inserted("calls", ((max(nth, 3), 5 + max(nth, 3)) for nth in range(1, 15)))
)
"""Columns whose values are not all written alike, repeated rows, a row that adds up others."""
SCRIPT += MESSY


@dataclass(frozen=True)
class Case:
    """A query, the kind that is suspected, and a part of what is said."""

    kind: Kind
    sql: str
    says: str
    question: str = ""


def _case(kind: str, sql: str, says: str, question: str = "") -> Case:
    return Case(Kind(kind), sql, says, question)


CASES = [_case(*fields) for fields in cases("sql_cases/silent_errors", kind="case")]
"""Of all engines."""
OTHER_CASES = [_case(*fields) for fields in cases("sql_cases/silent_errors", kind="other case")]
"""Where the case of letters counts."""
QUIET = [sql for (sql,) in cases("sql_cases/silent_errors", kind="quiet")]
"""Right queries of which nothing is to be said."""
CASES_OF = {
    engine: [_case(*fields) for fields in cases("sql_cases/silent_errors", kind=f"{engine} case")]
    for engine in ("sqlite", "duckdb")
}
QUIET_OF = {
    engine: [sql for (sql,) in cases("sql_cases/silent_errors", kind=f"{engine} quiet")]
    for engine in ("sqlite", "duckdb")
}


async def said(database: Database, sql: str, question: str = "") -> list[Suspicion]:
    """Return the suspicions about a query."""
    found = result(await execute(database, sql, agent="test"))
    return await suspicions(database, sql, lambda: found.table, agent="test", question=question, seconds=30)


async def check(database: Database, case: Case) -> None:
    """The case's kind is suspected, all that is said is shown by the evidence, and what is mended runs."""
    every = await said(database, case.sql, case.question)
    for each in every:
        await check_shown(database, case, each)
    found = [each for each in every if each.kind is case.kind]
    assert len(found) == 1, (case, every)
    assert case.says in found[0].says, found[0].says
    assert bool(found[0].matters) is bool(found[0].mended)
    if found[0].mended:
        assert isinstance(await execute(database, found[0].mended, agent="test"), QueryResult)


async def check_shown(database: Database, case: Case, found: Suspicion) -> None:
    """Each value that is said stands in what the evidence returns when it is asked again, or in the query.

    So does each figure, or it is a sum over some of the rows.
    """
    shown = result(await execute(replace(database, cache=QueryCache()), found.sql, agent="test"))
    plain = [cell for row in plain_rows(shown.table) for cell in row]
    cells = {str(cell) for cell in plain} | {str(cell)[:10] for cell in plain}
    written = re.sub(r"[\s()]", "", f"{case.sql} {found.sql}")
    for text in re.findall(r"`([^`]*)`", found.says):
        assert text in cells or re.sub(r"[\s()]", "", text) in written, (found.says, cells)
    figures = re.findall(r"(?<![\w.`-])\d[\d,]*(?:\.\d+)?(?![\w`-])", re.sub(r"`[^`]*`", "", found.says))
    numbers = {float(cell) for cell in cells if re.fullmatch(r"-?\d+(\.\d+)?", cell)}
    numbers |= {float(text) for text in re.findall(r"\d+", case.sql)}
    for column in zip(*plain_rows(shown.table), strict=True):
        if all(isinstance(cell, int) for cell in column):
            sums = {0.0}
            for cell in column:
                sums |= {each + cell for each in sums}
            numbers |= sums
    assert {float(text.replace(",", "")) for text in figures} <= numbers, (found.says, cells)
