"""What engines say of faulty grouping has one kind, whichever of them says it."""

from __future__ import annotations

import re
from collections import Counter
from types import ModuleType

import pytest

from quorum.tools.databases.base import GROUPING
from quorum.tools.databases.bigquery import errors as bigquery_errors
from quorum.tools.databases.mysql import errors as mysql_errors
from quorum.tools.databases.postgres import errors as postgres_errors
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


@pytest.mark.parametrize("module", [bigquery_errors, mysql_errors, postgres_errors, snowflake_errors])
def test_no_code_of_an_error_has_two_kinds(module: ModuleType) -> None:
    codes = Counter(code for codes in module.KINDS.values() for code in codes.split())
    assert max(codes.values()) == 1, codes.most_common(3)
