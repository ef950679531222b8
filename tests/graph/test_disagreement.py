"""How two answers differ, in words: from their queries and from their results."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import duckdb
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.graph.disagreement import MAX_PER_KIND, Side, disagreement, disagreements

Query = Callable[[str], Side]
JOINED = "FROM customers c JOIN orders o ON o.customer_id = c.id"
PER_CITY = f"SELECT city, COUNT(*) AS n {JOINED} GROUP BY city"


@pytest.fixture(scope="module")
def shop() -> duckdb.DuckDBPyConnection:
    shop = duckdb.connect()
    shop.execute(
        """
        CREATE TABLE customers (id INT, city TEXT);
        INSERT INTO customers VALUES (1, 'Ghent'), (2, 'Lyon'), (3, 'Lyon'), (4, 'Nice');
        CREATE TABLE orders (id INT, customer_id INT, total DOUBLE, status TEXT, day DATE);
        INSERT INTO orders VALUES (1, 1, 10, 'paid', '2024-01-01'), (2, 2, 20, 'paid', '2024-01-05'),
            (3, 3, 5, 'open', '2024-02-01'), (4, 3, 7, 'paid', '2024-03-01');
        """
    )
    return shop


CASES = {
    "a condition": (
        PER_CITY,
        f"SELECT city, COUNT(*) {JOINED} WHERE 'paid' = o.status GROUP BY 1",
        [
            "They agree in `city`.",
            "Only answer B requires `status = 'paid'`.",
            "For Lyon, answer A says 3, answer B 2.",
        ],
    ),
    "a measure": (
        PER_CITY,
        f"SELECT city, SUM(total) {JOINED} GROUP BY city",
        [
            "They agree in `city`.",
            "Answer A shows `COUNT(*)`; answer B `SUM(total)`.",
            "For Lyon, answer A says 3, answer B 32.",
        ],
    ),
    "rows without a match, which have no other counts": (
        PER_CITY,
        "SELECT city, COUNT(o.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY city",
        [
            "Only answer B keeps rows without a match in `orders`.",
            "Answer A has 2 rows, answer B 3 rows.",
            "Only answer B has `city` Nice.",
        ],
    ),
    "a column more, which the rest of the query has not made": (
        PER_CITY,
        f"SELECT MIN(total) AS least, city, COUNT(*) {JOINED} WHERE total > 0 GROUP BY city, city",
        ["Answer B has 1 column more: `least`."],
    ),
    "the groups": (
        PER_CITY,
        f"SELECT city, status, COUNT(*) {JOINED} GROUP BY city, status",
        [
            "Only answer B shows `status`.",
            "Answer A groups by `city`; answer B `city, status`.",
            "Answer A has 2 rows, answer B 3 rows.",
        ],
    ),
    "groups that are the same": (
        f"SELECT city, SUM(total) {JOINED} GROUP BY city",
        f"SELECT city, AVG(total) {JOINED} GROUP BY city, LOWER(city)",
        [
            "They agree in `city`.",
            "Answer A shows `SUM(total)`; answer B `AVG(total)`.",
            "For Lyon, answer A says 32, answer B 10.666667.",
        ],
    ),
    "duplicates": (
        "SELECT city FROM customers",
        "SELECT DISTINCT city FROM customers",
        [
            "Only answer B removes duplicates by `DISTINCT`.",
            "Answer A has 4 rows, answer B 3 rows.",
            "Only answer A has (Lyon).",
        ],
    ),
    "duplicates that are none": (
        "SELECT id, city FROM customers",
        "SELECT DISTINCT id, city || '!' FROM customers",
        [
            "They agree in `id`.",
            "Answer A shows `city`; answer B `city || '!'`.",
            "For 1, answer A says Ghent, answer B Ghent!.",
        ],
    ),
    "single numbers": (
        "SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) FROM orders WHERE day BETWEEN '2024-01-05' AND '2024-02-28'",
        [
            "Only answer B requires `day <= '2024-02-28'` and `day >= '2024-01-05'`.",
            "Answer A says 4, answer B 2.",
        ],
    ),
    "the first few": (
        f"SELECT city {JOINED} GROUP BY city ORDER BY MIN(total) LIMIT 1",
        f"SELECT city {JOINED} GROUP BY city ORDER BY city LIMIT 2",
        [
            "Answer A keeps `ORDER BY MIN(total) LIMIT 1`; answer B `ORDER BY city LIMIT 2`.",
            "Answer A has 1 row, answer B 2 rows.",
            "Only answer B has `city` Ghent.",
        ],
    ),
    "the first few inside, whatever the order outside": (
        f"WITH best AS ({PER_CITY} ORDER BY 2 DESC LIMIT 1) SELECT city FROM best ORDER BY city",
        f"SELECT city FROM ({PER_CITY} ORDER BY n LIMIT 1) AS t",
        [
            "Answer A keeps `ORDER BY COUNT(*) DESC LIMIT 1`; answer B `ORDER BY COUNT(*) LIMIT 1`.",
            "Answer A says Lyon, answer B Ghent.",
        ],
    ),
    "groups through a common table expression": (
        PER_CITY,
        f"WITH t AS ({PER_CITY}) SELECT * FROM t WHERE n > 1",
        [
            "Only answer B requires `n > 1`.",
            "Answer A has 2 rows, answer B 1 row.",
            "Only answer A has `city` Ghent.",
        ],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_difference_of_two_answers(case: str, shop: duckdb.DuckDBPyConnection) -> None:
    first, second, expected = CASES[case]
    a = Side("A", first, shop.sql(first).to_arrow_table())
    b = Side("B", second, shop.sql(second).to_arrow_table())
    assert disagreement(a, b, "duckdb") == expected
    assert disagreement(b, a, "duckdb") == disagreement(a, b, "duckdb")


def test_equal_results_do_not_disagree_however_their_queries_differ(shop: duckdb.DuckDBPyConnection) -> None:
    first, second = "SELECT city FROM customers WHERE id > 0", "SELECT city AS town FROM customers"
    sides = [Side(x, q, shop.sql(q).to_arrow_table()) for x, q in (("A", first), ("B", second))]
    assert disagreement(sides[0], sides[1], "duckdb") == []


def test_sql_that_cannot_be_read_leaves_the_results_to_compare() -> None:
    a = Side("A", "SELECT FROM FROM", pa.table({"n": [1]}))
    b = Side("B", "???", pa.table({"n": [2]}))
    assert disagreement(a, b, "sqlite") == ["Answer A says 1, answer B 2."]


def test_several_answers_are_compared_with_the_first() -> None:
    sides = [Side(x, f"SELECT {n}", pa.table({"n": [n]})) for n, x in enumerate("ABC")]
    said = disagreements(sides, "sqlite")
    assert "Answer A says 0, answer B 1." in said
    assert "Answer A says 0, answer C 2." in said
    assert not any("answer B" in sentence and "answer C" in sentence for sentence in said)


LONG = "SUM(CASE WHEN status = 'paid' AND total > {} AND day > '2024-01-01' AND city <> 'nowhere' THEN 1 END)"


@pytest.mark.parametrize(
    ("low", "high"), [(5, 6), ("(SELECT MIN(total) FROM orders)", "(SELECT AVG(total) FROM orders)")]
)
def test_a_long_expression_is_cut_around_the_difference_never_in_it(low: object, high: object) -> None:
    sides = [
        Side(label, f"SELECT {LONG.format(bound)} AS paid FROM t", pa.table({"paid": [n]}))
        for n, (label, bound) in enumerate([("A", low), ("B", high)])
    ]
    shown, values = disagreement(*sides, "duckdb")
    assert values == "Answer A says 0, answer B 1."
    a, b = shown.split(";")
    assert a.startswith("Answer A shows `… ")
    assert str(low).rpartition("(")[2] in a or str(low) in a
    assert str(high) in b or "AVG(total)" in b
    assert "nowhere" not in shown


def test_of_an_expression_too_long_to_show_the_column_is_named_and_no_condition_is_told() -> None:
    longest = " + ".join(f"LENGTH(column_{n})" for n in range(50))
    a = Side("A", f"SELECT {longest} AS n FROM t WHERE {longest} > 3", pa.table({"n": [1]}))
    b = Side("B", "SELECT 2 AS m FROM t WHERE k > 5", pa.table({"m": [2]}))
    assert disagreement(a, b, "duckdb") == [
        "Answer A shows `n`; answer B `2`.",
        "Answer A says 1, answer B 2.",
    ]


def test_long_and_odd_values_stay_on_one_line() -> None:
    odd = "x\n\x1b[31m" * 200
    a = Side("A", f"SELECT k FROM t WHERE k = '{odd}'", pa.table({"k": [odd, "b"], "n": [1, 2]}))
    b = Side("B", "SELECT k FROM t", pa.table({"k": ["b"], "n": [2]}))
    for sentence in disagreement(a, b, "duckdb"):
        assert len(sentence) <= 200
        assert "\n" not in sentence


def test_cells_that_differ_late_are_shown_where_they_do() -> None:
    same = "the same words again and again, " * 5
    sides = [Side(label, "?", pa.table({"k": [f"{same}{label}!"]})) for label in "AB"]
    (said,) = disagreement(*sides, "duckdb")
    assert said.startswith("Answer A says … ")
    assert said.endswith(" and again, B!.")
    assert "again, A!, answer B …" in said


CELLS = st.one_of(st.none(), st.integers(-3, 3), st.sampled_from(["Lyon", "Nice", ""]), st.floats(0, 2))
TABLES = st.integers(1, 3).flatmap(
    lambda width: st.lists(st.tuples(*[CELLS] * width), max_size=5).map(
        lambda rows: pa.table(
            {
                f"c{i}": pa.array([None if r[i] is None else str(r[i]) for r in rows], pa.string())
                for i in range(width)
            }
        )
    )
)
QUERIES = st.builds(
    "SELECT {} FROM {} {} {}".format,
    st.sampled_from(["a", "a, COUNT(*)", "DISTINCT b", "SUM(a) AS s", "*"]),
    st.sampled_from(["t", "t LEFT JOIN u ON u.k = t.k", "(SELECT a, b FROM t WHERE a IS NULL) AS t"]),
    st.sampled_from(["", "WHERE a = 1", "WHERE NOT (a > 2 OR b LIKE 'x%')", "WHERE a IN (SELECT b FROM u)"]),
    st.sampled_from(["", "GROUP BY a", "ORDER BY 1 LIMIT 3", "GROUP BY 1 HAVING COUNT(*) > 1"]),
)


@pytest.mark.heavy
@given(TABLES, TABLES, QUERIES, QUERIES)
def test_the_order_of_the_answers_does_not_count_and_no_more_is_said_than_fits(
    first: pa.Table, second: pa.Table, one: str, other: str
) -> None:
    a, b = Side("A", one, first), Side("B", other, second)
    found = disagreement(a, b, "sqlite")
    assert found == disagreement(b, a, "sqlite")
    assert not disagreement(a, Side("B", other, first), "sqlite"), "the same result"
    assert len(found) <= 3 * MAX_PER_KIND
    assert all(re.match(r"[A-Z].*\.\Z", sentence, re.DOTALL) for sentence in found)


@given(TABLES, st.data())
def test_a_row_that_one_answer_lacks_is_named(table: pa.Table, data: Any) -> None:
    if table.num_rows == 0:
        return
    gone = data.draw(st.integers(0, table.num_rows - 1))
    rest = pa.concat_tables([table.slice(0, gone), table.slice(gone + 1)])
    found = disagreement(Side("A", "SELECT 1", table), Side("B", "SELECT 1", rest), "sqlite")
    assert any("row" in sentence for sentence in found)
    if table.num_rows > 1:
        assert any(sentence.startswith("Only answer A has") for sentence in found)
        assert not any(sentence.startswith("Only answer B has") for sentence in found)


def test_what_each_answer_assumes_is_said_first() -> None:
    tables = [pa.table({"n": [n]}) for n in (1, 2)]
    a = Side("A", "SELECT 1 AS n", tables[0], assumptions=["Every month weighs the same."])
    b = Side(
        "B", "SELECT 2 AS n", tables[1], assumptions=["Later months\nweigh more.", "Zeros are left out."]
    )
    lines = disagreements([a, b], "duckdb")
    assert lines[:2] == [
        "Answer A assumes: Every month weighs the same.",
        "Answer B assumes: Later months weigh more. Zeros are left out.",
    ]
    assert lines[2:] == disagreement(a, b, "duckdb")
    assert disagreements([a, Side("B", a.sql, a.table, assumptions=["Nothing."])], "duckdb") == []
