"""Spider 1.0's rules: execution match with and without DISTINCT."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.evals.running.databases import GoldRun
from quorum.evals.scorers.base import EX, Prediction, Verdict
from quorum.evals.scorers.spider1 import KEEP_DISTINCT, Spider1Scorer, difference, executed_text, order_counts
from quorum.evals.scoring import open_database
from quorum.evals.suites import load_suite
from tests.evals.shop import Runner, question

PETS = """
CREATE TABLE pet (id INTEGER PRIMARY KEY, name TEXT, kind TEXT, age INTEGER, weight NUMERIC, tag);
INSERT INTO pet VALUES
    (1, 'Rex', 'dog', 3, 10, 5), (2, 'Tom', 'cat', 3, 4.5, '5'), (3, 'Ada', 'dog', 7, 12.5, 'a'),
    (4, 'Kit', 'cat', NULL, 0, NULL), (5, 'Rex', 'cat', 7, 2, 1.0);
"""


TAGS, FRACTIONS = "SELECT tag FROM pet", "SELECT weight, weight + 0.5 FROM pet WHERE id IN (1, 3)"


async def judged(gold: str, prediction: str | Prediction) -> Verdict:
    given = Prediction(prediction) if isinstance(prediction, str) else prediction
    return await Spider1Scorer().score(question(gold), given, Runner(PETS))


def both(verdict: Verdict) -> tuple[float | None, float | None]:
    assert list(verdict.metrics) == [metric.name for metric in Spider1Scorer.metrics]
    return verdict.metrics[EX], verdict.metrics[KEEP_DISTINCT]


async def test_official_verdicts(subtests: pytest.Subtests) -> None:
    for gold, predicted, ex, kept in (
        ("SELECT name FROM pet", "SELECT name FROM pet", 1, 1),
        ("SELECT name FROM pet", "SELECT name FROM pet ORDER BY age", 1, 1),
        ("SELECT name FROM pet ORDER BY id", "SELECT name FROM pet ORDER BY id DESC", 0, 0),
        ("SELECT name, age FROM pet", "SELECT age, name FROM pet", 1, 1),
        ("SELECT name, age FROM pet ORDER BY id", "SELECT age AS x, name AS y FROM pet ORDER BY id", 1, 1),
        ("SELECT name, age FROM pet", "SELECT name FROM pet", 0, 0),
        ("SELECT name FROM pet", "SELECT name, age FROM pet", 0, 0),
        ("SELECT name FROM pet WHERE age = 3", "SELECT name FROM pet WHERE age = 7", 0, 0),
        ("SELECT name FROM pet", "SELECT name FROM pet LIMIT 4", 0, 0),
        ("SELECT age FROM pet", "SELECT coalesce(age, 0) FROM pet", 0, 0),  # NULL is not 0
        ("SELECT age FROM pet", "SELECT age * 1.0 FROM pet", 1, 1),  # 3 is 3.0
        ("SELECT age FROM pet", "SELECT CAST(age AS TEXT) FROM pet", 0, 0),  # 3 is not '3'
        ("SELECT kind FROM pet", "SELECT DISTINCT kind FROM pet", 1, 0),
        ("SELECT DISTINCT kind FROM pet", "SELECT kind FROM pet", 1, 0),
        ("SELECT DISTINCT kind FROM pet", "SELECT kind FROM pet GROUP BY kind", 0, 1),
        ("SELECT count(DISTINCT kind) FROM pet", "SELECT count(kind) FROM pet", 1, 0),
        ("SELECT name FROM pet WHERE 0", "SELECT name, age FROM pet WHERE 0", 1, 1),
        ("SELECT name FROM pet WHERE 0", "SELECT name FROM pet", 0, 0),
        ("SELECT name FROM pet WHERE age >= 7", "SELECT name FROM pet WHERE age > = 7", 1, 1),
        ("SELECT name FROM pet", "SELECT nickname FROM pet", 0, 0),
        ("SELECT 2020 - age FROM pet", "SELECT YEAR(CURDATE()) - age FROM pet", 1, 1),
        ("SELECT name FROM pet", "SELECT name FROM pet; SELECT 1", 1, 0),
        # the official quick rejection sorts each row by text: 10.5 < 10, yet 10.0 < 10.5
        ("SELECT 10, 10.5", "SELECT 10.0, 10.5", 0, 0),
        ("SELECT 10, 11.5", "SELECT 10.0, 11.5", 1, 1),
        # so NUMERIC, which stores 10.0 as 10, decides beside 10.5 by its text
        (FRACTIONS, FRACTIONS, 1, 1),
        (FRACTIONS, FRACTIONS.replace("weight,", "weight * 1.0,"), 0, 0),
        # a column of several types keeps each value as it was stored
        (TAGS, TAGS, 1, 1),
        (TAGS, "SELECT CASE WHEN typeof(tag) = 'real' THEN 1 ELSE tag END FROM pet", 1, 1),  # 1 is 1.0
        (TAGS, "SELECT CASE id WHEN 1 THEN '5' WHEN 2 THEN 5 ELSE tag END FROM pet", 1, 1),  # the same values
        (TAGS, "SELECT CASE id WHEN 1 THEN '5' ELSE tag END FROM pet", 0, 0),  # '5' twice
        (TAGS, "SELECT CAST(tag AS TEXT) FROM pet", 0, 0),
        (TAGS, "SELECT CASE id WHEN 2 THEN X'35' ELSE tag END FROM pet", 0, 0),
    ):
        with subtests.test(gold=gold):
            verdict = await judged(gold, predicted)
            assert both(verdict) == (ex, kept)
            if ex == kept:
                assert bool(verdict.reason) == (not ex)


async def test_a_result_without_sql_is_judged_as_it_is() -> None:
    kinds = Prediction("", pa.table({"x": ["cat", "dog"]}))
    verdict = await judged("SELECT DISTINCT kind FROM pet", kinds)
    assert both(verdict) == (1, 1)
    assert verdict.reason == "a match, judged with DISTINCT kept, because taking it out needs the SQL"
    verdict = await judged("SELECT kind FROM pet GROUP BY kind; ", kinds)
    assert (both(verdict), verdict.reason) == ((1, 1), "")
    assert both(await judged("SELECT kind FROM pet", kinds)) == (0, 0)
    for gold in ("SELECT kind FROM pet", "SELECT DISTINCT kind FROM pet"):
        nothing = await judged(gold, Prediction())
        assert (both(nothing), nothing.reason) == ((0, 0), "there is neither SQL nor a result")


def test_the_text_that_is_executed_and_whether_it_says_that_order_counts() -> None:
    for sql, text in (
        ("SELECT DISTINCT a FROM t", "SELECT  a FROM t"),
        ("select count(distinct a), 'distinct' FROM t", "select count( a), 'distinct' FROM t"),
        (
            'SELECT "distinct", [distinct] FROM t -- distinct',
            'SELECT "distinct", [distinct] FROM t -- distinct',
        ),
        ("SELECT a FROM t WHERE 'é' ! = a; SELECT DISTINCT 1", "SELECT a FROM t WHERE 'é' != a;"),
        ("SELECT DISTINCT 'it", "SELECT DISTINCT 'it"),  # no SQL: left as it is, and refused when it is run
    ):
        assert executed_text(sql, keep_distinct=False) == text
        assert executed_text(sql, keep_distinct=True) == sql.replace("! =", "!=")
    assert order_counts("SELECT a FROM t Order By a")
    assert order_counts("SELECT a FROM (SELECT a FROM t ORDER BY a LIMIT 3)")
    assert not order_counts("SELECT a FROM t ORDER  BY a")  # two spaces, as in the official program


@given(st.integers(1, 4), st.integers(1, 3), st.booleans(), st.data())
def test_same_results_are_those_that_some_permutation_of_columns_makes(
    width: int, height: int, ordered: bool, data: st.DataObject
) -> None:
    """Against the definition, tried out; whole numbers only, where the quick rejection decides nothing."""
    row = st.tuples(*[st.integers(0, 1)] * width)
    rows, others = (data.draw(st.lists(row, min_size=height, max_size=height)) for _ in range(2))
    kind: type = list if ordered else Counter
    same = any(
        kind(rows) == kind([tuple(row[place] for place in places) for row in others])
        for places in itertools.permutations(range(width))
    )
    assert (difference(rows, others, ordered=ordered) == "") == same


def test_many_like_columns_are_paired_without_trying_all_permutations() -> None:
    size = 12
    rows = [tuple(int(row == column) for column in range(size)) for row in range(size)]
    assert difference(rows, rows[::-1], ordered=False) == ""
    assert math.factorial(size) > 10**8
    wide = [tuple(range(1500)), tuple(range(1, 1501))]
    assert difference(wide, [row[::-1] for row in wide], ordered=False) == ""
    crossed = [tuple(row) for row in rows]
    crossed[0], crossed[1] = (1, 1, *[0] * (size - 2)), tuple([0] * size)
    assert difference(rows, crossed, ordered=False)


async def test_gold_of_spider_matches_itself(shared: Path) -> None:
    """Through guard, lint and the connector, on data of mixed types; with a row too many it does not."""
    scorer = Spider1Scorer()
    suite = load_suite("spider1", shared / "data" / "spider1")
    members = [asked for asked in suite.questions if asked.database == "car_1"][::3]
    async with open_database(members[0].url) as database:
        for asked in members:
            run, gold = GoldRun(database), asked.gold_sql[0].rstrip("; ")
            assert (await scorer.verify(asked, run)).state == "ok", asked.id
            longer = f"SELECT * FROM ({gold}) UNION ALL SELECT * FROM (SELECT * FROM ({gold}) LIMIT 1)"
            assert both(await scorer.score(asked, Prediction(longer), run)) == (0, 0), asked.id
