"""How two answers differ, in words: from their queries and from their results."""

from __future__ import annotations

from typing import Any

import duckdb
import pyarrow as pa
import pytest

from quorum.graph.disagreement import Side, disagreement, disagreements

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
    "a measure": (
        PER_CITY,
        f"SELECT city, SUM(total) {JOINED} GROUP BY city",
        [
            "Answer A and answer B agree in `city`.",
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
            "Answer A and answer B agree in `id`.",
            "Answer A shows `city`; answer B `city || '!'`.",
            "For 1, answer A says Ghent, answer B Ghent!.",
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
}


def side(label: str, sql: str, value: object, **about: Any) -> Side:
    """An answer of one number."""
    return Side(label, sql, pa.table({"n": [value]}), **about)


@pytest.mark.parametrize("case", CASES)
def test_the_difference_of_two_answers(case: str, shop: duckdb.DuckDBPyConnection) -> None:
    first, second, expected = CASES[case]
    a = Side("A", first, shop.sql(first).to_arrow_table())
    b = Side("B", second, shop.sql(second).to_arrow_table())
    assert disagreement(a, b, "duckdb") == expected
    assert disagreement(b, a, "duckdb") == disagreement(a, b, "duckdb")


def test_long_and_odd_values_stay_on_one_line() -> None:
    odd = "x\n\x1b[31m" * 200
    a = Side("A", f"SELECT k FROM t WHERE k = '{odd}'", pa.table({"k": [odd, "b"], "n": [1, 2]}))
    b = Side("B", "SELECT k FROM t", pa.table({"k": ["b"], "n": [2]}))
    for sentence in disagreement(a, b, "duckdb"):
        assert len(sentence) <= 200
        assert "\n" not in sentence
    told = disagreement(side("A", "?", "short"), side("B", "?", "x" * 5000), "duckdb")
    assert told == ["Answer A says short, answer B a text of 5,000 characters."]


def test_several_answers_are_compared_with_the_first_and_what_each_assumes_is_said_before() -> None:
    a = side("A", "???", 1, assumptions=["Every month weighs the same."])
    b = side("B", "SELECT 2 AS n", 2, assumptions=["Later months\nweigh more.", "Zeros are left out."])
    assert disagreements([a, b, side("C", "SELECT 3 AS n", 3)], "duckdb") == [
        "Answer A assumes: Every month weighs the same.",
        "Answer B assumes: Later months weigh more. Zeros are left out.",
        "Answer A says 1, answer B 2.",
        "Answer A says 1, answer C 3.",
    ]
    assert disagreements([a, side("B", "SELECT 1 AS m", 1, assumptions=["Nothing."])], "duckdb") == []
