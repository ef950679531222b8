"""Promises of every scorer whose gold is SQL: what is judged, what cannot be, and gold that reproduces."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pyarrow as pa
import pytest

from quorum.evals.scorers.ambrosia import AmbrosiaScorer
from quorum.evals.scorers.base import Prediction, Scorer, Verdict
from quorum.evals.scorers.bird import BirdScorer
from quorum.evals.scorers.defog import DefogScorer
from quorum.evals.scorers.gold_check import CHANCE, NOW, volatile
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.scorers.spider1 import Spider1Scorer
from quorum.evals.tables import UnreadableCsv
from tests.evals.shop import Runner, question

SCORERS = (Spider1Scorer(), BirdScorer(), DefogScorer(), AmbrosiaScorer(), OwnScorer())
EXECUTING = SCORERS[:4]
"""Those that execute the SQL of a prediction, whatever result comes with it."""
IDS, GONE, NONE = "SELECT id FROM users", "SELECT gone FROM users", "SELECT id FROM users WHERE id > 9"
TABLE = pa.table({"id": [1, 2, 3, 4]})

by_scorer = pytest.mark.parametrize("scorer", SCORERS, ids=lambda scorer: type(scorer).__name__)
by_executing = pytest.mark.parametrize("scorer", EXECUTING, ids=lambda scorer: type(scorer).__name__)


async def judged(scorer: Scorer, *gold: str, found: Prediction | None = None, rows: int = 1000) -> Verdict:
    """The verdict on the users' ids, or on ``found``."""
    return await scorer.score(question(*gold), found or Prediction(IDS, TABLE), Runner(rows=rows))


@by_scorer
async def test_metrics_are_those_declared_and_none_is_defined_without_gold(scorer: Scorer) -> None:
    names = [metric.name for metric in scorer.metrics]
    right = await judged(scorer, IDS)
    assert (right.match, right.reason, right.gold, right.gold_rows) == (True, "", "ok", 4)
    assert list(right.metrics) == names
    unusable = {
        "missing": await judged(scorer),
        "not_live": await scorer.score(question(IDS), Prediction(IDS, TABLE), None),
        "fails": await judged(scorer, GONE),
    }
    assert {state: found.gold for state, found in unusable.items()} == {name: name for name in unusable}
    assert all(set(found.metrics.values()) == {None} for found in unusable.values())
    assert "no such column: gone" in unusable["fails"].reason
    cut = await judged(scorer, IDS, rows=3)
    assert (cut.gold, cut.match, "limit of rows" in cut.reason) == ("fails", None, True)
    check = await scorer.verify(question(IDS), Runner(rows=3))
    assert (check.state, "exceeds the limit" in check.reason) == ("fails", True)


@by_scorer
async def test_an_answer_without_a_whole_result_is_wrong(scorer: Scorer) -> None:
    nothing = "there is no result" if isinstance(scorer, OwnScorer) else "there is neither SQL nor a result"
    for found, reason in (
        (Prediction(), nothing),
        (Prediction("", TABLE, truncated=True), "the result was cut by limits"),
        (Prediction(GONE), nothing if isinstance(scorer, OwnScorer) else "no such column: gone"),
    ):
        verdict = await judged(scorer, IDS, found=found)
        assert (verdict.match, verdict.gold) == (False, "ok")
        assert reason in verdict.reason


@by_scorer
async def test_an_empty_gold_is_said(scorer: Scorer) -> None:
    verdict = await judged(scorer, NONE, found=Prediction(NONE, TABLE.slice(4)))
    assert verdict.gold == "empty"
    assert verdict.match is not isinstance(scorer, AmbrosiaScorer)  # whose rule: it meets nothing
    assert (await judged(scorer, NONE)).match is False


@by_scorer
async def test_any_gold_may_be_met_and_one_that_fails_is_passed_over(scorer: Scorer) -> None:
    golds = (GONE, "SELECT name FROM users", IDS)
    verdict = await judged(scorer, *golds)
    if isinstance(scorer, AmbrosiaScorer):  # each is a reading: the official program stops there
        assert (verdict.match, verdict.gold) == (None, "fails")
        verdict = await judged(scorer, *golds[1:])
    assert (verdict.match, verdict.gold, verdict.gold_rows) == (True, "ok", 4)
    other = pa.table({"x": [9, 8]})
    assert not (await judged(scorer, *golds[1:], found=Prediction("SELECT 9", other))).match


@by_executing
async def test_the_sql_of_a_prediction_counts_whatever_result_comes_with_it(scorer: Scorer) -> None:
    wrong = pa.table({"x": [0]})
    assert (await judged(scorer, IDS, found=Prediction(IDS, wrong))).match
    assert not (await judged(scorer, "SELECT 0", found=Prediction(IDS, wrong))).match
    assert (await judged(scorer, IDS, found=Prediction("", TABLE))).match
    assert not (await judged(scorer, IDS, found=Prediction("", TABLE.slice(1)))).match
    limited = await judged(scorer, f"{IDS} LIMIT 3", found=Prediction(IDS), rows=3)
    assert (limited.match, "limit of rows" in limited.reason) == (False, True)


@by_scorer
async def test_a_csv_file_is_compared_by_what_it_can_tell(scorer: Scorer, tmp_path: Path) -> None:
    """It tells neither 20 from '20' nor NULL from the empty text."""
    file = tmp_path / "q.csv"
    gold = "SELECT name, CAST(id AS TEXT) AS id, country FROM users"
    file.write_text("name,id,country\nAda,1,UK\nBob,2.0,US\n\nCy,3,\nDan,4,US\n", encoding="utf-8")
    if not isinstance(scorer, DefogScorer):  # whose frames hold 2.0 and 1 as doubles, '1' as a whole number
        assert (await judged(scorer, gold, found=Prediction("", file))).match
    file.write_text("name,id,country\nAda,1,UK\nBob,2,US\nCy,3,\nDan,4,US\n", encoding="utf-8")
    assert (await judged(scorer, gold, found=Prediction("", file))).match
    file.write_text("name,id,country\nAda,1,UK\nBob,2,US\nCy,4,\nDan,4,US\n", encoding="utf-8")
    assert not (await judged(scorer, gold, found=Prediction("", file))).match
    file.write_text("name,id\nDan,4,US\n,,,,\n", encoding="utf-8")
    with pytest.raises(UnreadableCsv):
        await judged(scorer, gold, found=Prediction("", file))


@by_scorer
async def test_gold_is_run_twice_and_must_match_itself(scorer: Scorer) -> None:
    for queries, state, reason in (
        ([IDS], "ok", ""),
        ([GONE], "fails", "no such column"),
        ([GONE, IDS], "ok", "query 1 of 2 fails: no such column"),
        ([NONE], "empty", ""),
        (["SELECT random()"], "differs", "a second run gives another result"),
        (["SELECT id FROM users WHERE date('now') > '2020'"], "ok", "depends on the current date or time"),
        (["SELECT id FROM users WHERE date('now') < '2020'"], "empty", "date or time, and is empty now"),
        (["SELECT MAX(id) FROM users WHERE date() < '2020'"], "ok", "date or time, and is all NULL now"),
        ([], "missing", "the question has no gold SQL"),
    ):
        run = Runner()
        check = await scorer.verify(question(*queries), run)
        if isinstance(scorer, AmbrosiaScorer) and (len(queries) > 1 or state == "empty"):
            assert check.state != "ok"  # every query is a reading of its own, and an empty one meets nothing
            continue
        assert (check.state, bool(check.reason)) == (state, bool(reason))
        assert reason in check.reason
        assert all(run.ran.count(sql) == 2 for sql in queries if state == "ok" and sql == queries[0] != GONE)
        offline = await scorer.verify(question(*queries), None)
        assert offline.state == ("not_live" if queries else "missing")


def test_every_scorer_is_here() -> None:
    """A scorer with gold SQL that is added joins the matrix."""
    here: Callable[[type], set[type]] = lambda kind: {  # noqa: E731
        each
        for sub in kind.__subclasses__()
        for each in {sub, *here(sub)}
        if each.__module__.startswith("quorum")
    }
    names = {kind.__name__ for kind in here(Scorer)} - {"RowsScorer", "Spider2Scorer", "_ResultScorer"}
    assert names == {type(scorer).__name__ for scorer in SCORERS}


def test_the_functions_in_a_query_say_what_it_depends_on(subtests: pytest.Subtests) -> None:
    for cause, sql in (
        (NOW, "SELECT date('now', '-7 days')"),
        (NOW, "SELECT strftime('%Y', 'now') - 5"),
        (NOW, "SELECT strftime('%Y')"),
        (NOW, "SELECT unixepoch('now')"),
        (NOW, "SELECT date()"),
        (NOW, "SELECT timediff(d, 'now') FROM t"),
        (NOW, "WITH a AS (SELECT CURRENT_TIMESTAMP AS n) SELECT n FROM a"),
        (NOW, "SELECT now() - interval '1 day'"),
        (NOW, "SELECT age(born) FROM t"),
        (NOW, "SELECT 'today'::date"),
        (NOW, "SELECT LOCALTIMESTAMP"),
        (NOW, "SELECT today()"),
        (NOW, "SELECT CURDATE(), UNIX_TIMESTAMP()"),
        (NOW, "SELECT DATEADD(day, -1, CURRENT_DATE)"),
        (NOW, "SELECT SYSDATE()"),
        (NOW, "SELECT CURRENT_DATE('Europe/Berlin')"),
        (CHANCE, "SELECT random()"),
        (CHANCE, "SELECT gen_random_uuid()"),
        (CHANCE, "SELECT RAND()"),
        (CHANCE, "SELECT * FROM t SAMPLE (10)"),
        ("", "SELECT 1"),
        ("", "SELECT date(d, '-7 days'), strftime('%Y', d) FROM t"),
        ("", "SELECT 'now', x FROM t WHERE x = 'now' OR x IN ('today')"),
        ("", "SELECT CASE WHEN x THEN 'now' ELSE 'today' END FROM t"),
        ("", "SELECT date, time FROM t"),
        ("", "SELECT age(a, b), date '2020-01-01', current_user FROM t"),
        ("", "SELECT UNIX_TIMESTAMP(d) FROM t"),
    ):
        with subtests.test(cause=cause):
            assert volatile(sql) == cause
