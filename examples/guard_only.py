"""Use the guard alone: is this SQL a pure read?

python examples/guard_only.py
"""

from quorum.tools.guard import Passed, check

for sql in (
    "SELECT name FROM customers WHERE city = 'Bern'",
    "WITH gone AS (DELETE FROM customers RETURNING *) SELECT * FROM gone",
    "SELECT pg_read_file('secrets.txt')",
    "SELECT 1; DROP TABLE customers",
):
    verdict = check(sql, "postgres")
    print("pass   " if isinstance(verdict, Passed) else "refused", sql)
    if not isinstance(verdict, Passed):
        print("       ", verdict.reason)
