"""What engines say has its kind, and its place; faulty grouping whichever of them says it."""

from __future__ import annotations

import re

import pytest

from quorum.tools.databases.base import GROUPING
from quorum.tools.databases.bigquery import errors as bigquery_errors
from quorum.tools.databases.server import Refusal
from quorum.tools.databases.snowflake import errors as snowflake_errors

GROUPED = (
    'column "orders.town" must appear in the GROUP BY clause or be used in an aggregate function',
    "aggregate functions are not allowed in WHERE",
    "aggregate function calls cannot be nested",
    "GROUP BY position 5 is not in select list",
    "SELECT list expression references column town which is neither grouped nor aggregated at [1:8]",
    "Aggregate function SUM not allowed in WHERE clause at [1:30]",
    "Aggregations of aggregations are not allowed at [1:12]",
    "SQL compilation error: [ORDERS.TOWN] is not a valid group by expression",
    "'ORDERS.TOWN' in select clause is neither an aggregate nor in the group by clause.",
    "Invalid aggregate function in where clause [SUM(ORDERS.TOTAL)]",
    "Aggregate functions cannot be nested: [COUNT(*)] nested in [SUM(COUNT(*))]",
    "'shop.orders.town' isn't in GROUP BY",
    "In aggregated query without GROUP BY, expression #1 contains nonaggregated column 'town'",
    "Invalid use of group function",
    "Expression #2 of SELECT list is not in GROUP BY clause and contains nonaggregated column 'o.town' "
    "which is not functionally dependent on columns in GROUP BY clause",
    "Can't group on 'sum(total)'",
    "Unknown column '5' in 'group statement'",
    'subquery uses ungrouped column "o.town" from outer query',
    "arguments to GROUPING must be grouping expressions of the associated query level",
    'GROUPING child ""town"" must be a grouping column',
    "Aggregate functions are not supported here",
)


def test_faults_of_grouping_are_told_apart() -> None:
    windows = ("misuse of window function row_number()", "WHERE clause cannot contain window functions!")
    assert [said for said in (*GROUPED, *windows) if re.search(GROUPING, said)] == list(GROUPED)


COMPILATION = "SQL compilation error:\n"
SAID = [
    ("000904", f"{COMPILATION}error line 2 at position 2\ninvalid identifier 'OOPS'", "column_not_found 2:3"),
    ("002003", f"{COMPILATION}Object 'NOWHERE' does not exist or not authorized.", "table_not_found"),
    ("002028", f"{COMPILATION}ambiguous column name 'ID'", "ambiguous_column"),
    ("000979", f"{COMPILATION}[ORDERS.TOWN] is not a valid group by expression", "grouping"),
    ("100038", "Numeric value 'x' is not recognized", "type_mismatch"),
    ("001003", f"{COMPILATION}syntax error line 1 at position 16 unexpected 'WHERE'.", "syntax 1:17"),
    ("invalidQuery", "Unrecognized name: pagee; Did you mean page? at [1:8]", "column_not_found 1:8 page"),
    ("notFound", "Not found: Table p:d.nowhere was not found in location US", "table_not_found"),
    ("invalidQuery", "Function not found: nofunction at [1:8]", "function 1:8"),
    ("invalidQuery", "Column name id is ambiguous at [1:8]", "ambiguous_column 1:8"),
    ("invalidQuery", "Column day which is neither grouped nor aggregated at [1:8]", "grouping 1:8"),
    ("invalidQuery", "Bad int64 value: x", "type_mismatch"),
    ("invalidQuery", 'Syntax error: Unexpected keyword "FROM" at [1:8]', "syntax 1:8"),
]
"""By Snowflake's codes, and BigQuery's reasons: messages of theirs with kind, place and suggestion."""


@pytest.mark.parametrize(("state", "message", "expected"), SAID)
def test_what_a_warehouse_says_has_its_kind_and_place(state: str, message: str, expected: str) -> None:
    module = snowflake_errors if state.isdigit() else bigquery_errors
    found = module.query_error(Refusal(state, message))
    place = f"{found.line}:{found.column}" if found.line else ""
    assert " ".join(filter(None, (found.kind.value, place, *found.suggestions))) == expected
    assert "\n" not in found.message
