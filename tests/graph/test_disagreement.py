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

from quorum.graph.disagreement import MAX_PER_KIND, MAX_SENTENCE, Side, disagreement, disagreements

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
            "Only answer B asks that `status` is 'paid'.",
            "For Lyon, answer A says 3, answer B 2.",
        ],
    ),
    "a measure": (
        PER_CITY,
        f"SELECT city, SUM(total) {JOINED} GROUP BY city",
        [
            "They agree in `city`.",
            "Answer A shows the number of rows; answer B the sum of `total`.",
            "For Lyon, answer A says 3, answer B 32.",
        ],
    ),
    "rows without a match": (
        PER_CITY,
        "SELECT city, COUNT(o.id) FROM customers c LEFT JOIN orders o ON o.customer_id = c.id GROUP BY city",
        [
            "Answer A shows the number of rows; answer B the number of rows with a value in `id`.",
            "Answer B keeps rows that have no match in `orders`; answer A leaves them out.",
            "Answer A has 2 rows, answer B 3 rows.",
            "Only answer B has `city` Nice.",
        ],
    ),
    "a column more": (
        PER_CITY,
        f"SELECT MIN(total) AS least, city, COUNT(*) {JOINED} GROUP BY city",
        ["Answer B has 1 column more: `least`."],
    ),
    "the grain": (
        PER_CITY,
        f"SELECT city, status, COUNT(*) {JOINED} GROUP BY city, status",
        [
            "Only answer B shows `status`.",
            "Answer A has one row per `city`; answer B one row per `city` and `status`.",
            "Answer A has 2 rows, answer B 3 rows.",
        ],
    ),
    "duplicates": (
        "SELECT city FROM customers",
        "SELECT DISTINCT city FROM customers",
        [
            "Answer B leaves out duplicate rows; answer A keeps them.",
            "Answer A has 4 rows, answer B 3 rows.",
            "Only answer A has (Lyon).",
        ],
    ),
    "single numbers": (
        "SELECT COUNT(*) FROM orders",
        "SELECT COUNT(*) FROM orders WHERE day BETWEEN '2024-01-05' AND '2024-02-28'",
        [
            "Only answer B asks that `day` is 2024-01-05 or later and `day` is 2024-02-28 or earlier.",
            "Answer A says 4, answer B 2.",
        ],
    ),
    "the first few": (
        f"SELECT city {JOINED} GROUP BY city ORDER BY MIN(total) LIMIT 1",
        f"SELECT city {JOINED} GROUP BY city ORDER BY city LIMIT 2",
        [
            "Answer A stops after 1 row; answer B stops after 2 rows.",
            "Answer A is sorted by the least `total`, least first; answer B by `city`, least first.",
            "Answer A has 1 row, answer B 2 rows.",
            "Only answer B has `city` Ghent.",
        ],
    ),
    "groups": (
        PER_CITY,
        f"WITH t AS ({PER_CITY}) SELECT * FROM t WHERE n > 1",
        [
            "Answer A shows `city` and the number of rows; answer B all columns.",
            "Only answer B asks that the number of rows is more than 1.",
            "Answer A has 2 rows, answer B 1 row.",
            "Only answer A has `city` Ghent.",
        ],
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", CASES)
def test_differences_are_told_in_plain_words(case: str, shop: duckdb.DuckDBPyConnection) -> None:
    first, second, expected = CASES[case]
    a = Side("A", first, shop.sql(first).to_arrow_table())
    b = Side("B", second, shop.sql(second).to_arrow_table())
    assert list(disagreement(a, b, "duckdb").sentences) == expected
    assert disagreement(b, a, "duckdb") == disagreement(a, b, "duckdb")


def test_equal_results_do_not_disagree_however_their_queries_differ(shop: duckdb.DuckDBPyConnection) -> None:
    first, second = "SELECT city FROM customers WHERE id > 0", "SELECT city AS town FROM customers"
    sides = [Side(x, q, shop.sql(q).to_arrow_table()) for x, q in (("A", first), ("B", second))]
    found = disagreement(sides[0], sides[1], "duckdb")
    assert not found
    assert found.sentences == ()


def test_sql_that_cannot_be_read_leaves_the_results_to_compare() -> None:
    a = Side("A", "SELECT FROM FROM", pa.table({"n": [1]}))
    b = Side("B", "???", pa.table({"n": [2]}))
    assert disagreement(a, b, "sqlite").sentences == ("Answer A says 1, answer B 2.",)


def test_several_answers_are_compared_with_the_first() -> None:
    sides = [Side(x, f"SELECT {n}", pa.table({"n": [n]})) for n, x in enumerate("ABC")]
    said = disagreements(sides, "sqlite")
    assert "Answer A says 0, answer B 1." in said
    assert "Answer A says 0, answer C 2." in said
    assert not any("answer B" in sentence and "answer C" in sentence for sentence in said)


def test_long_and_odd_values_stay_short_and_on_one_line() -> None:
    odd = "x\n\x1b[31m" * 200
    a = Side("A", f"SELECT k FROM t WHERE k = '{odd}'", pa.table({"k": [odd, "b"], "n": [1, 2]}))
    b = Side("B", "SELECT k FROM t", pa.table({"k": ["b"], "n": [2]}))
    for sentence in disagreement(a, b, "duckdb").sentences:
        assert len(sentence) <= MAX_SENTENCE
        assert "\n" not in sentence


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


@given(TABLES, TABLES, QUERIES, QUERIES)
def test_the_order_of_the_answers_does_not_count_and_no_more_is_said_than_fits(
    first: pa.Table, second: pa.Table, one: str, other: str
) -> None:
    a, b = Side("A", one, first), Side("B", other, second)
    found = disagreement(a, b, "sqlite")
    assert found == disagreement(b, a, "sqlite")
    assert not disagreement(a, Side("B", other, first), "sqlite"), "the same result"
    for sentences in (found.columns, found.filters, found.rows):
        assert len(sentences) <= MAX_PER_KIND
        assert all(len(s) <= MAX_SENTENCE and re.match(r"[A-Z].*\.\Z", s, re.DOTALL) for s in sentences)


@given(TABLES, st.data())
def test_a_row_that_one_answer_lacks_is_named(table: pa.Table, data: Any) -> None:
    if table.num_rows == 0:
        return
    gone = data.draw(st.integers(0, table.num_rows - 1))
    rest = pa.concat_tables([table.slice(0, gone), table.slice(gone + 1)])
    found = disagreement(Side("A", "SELECT 1", table), Side("B", "SELECT 1", rest), "sqlite")
    assert any("row" in sentence for sentence in found.rows)
    if table.num_rows > 1:
        assert any(sentence.startswith("Only answer A has") for sentence in found.rows)
        assert not any(sentence.startswith("Only answer B has") for sentence in found.rows)
