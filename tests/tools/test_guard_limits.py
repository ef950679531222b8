"""The guard cannot be stalled: what it counts, the limits of its process, and who waits meanwhile."""

from __future__ import annotations

import asyncio
import os
import random
import signal
import sys
from collections.abc import Iterator
from string import ascii_lowercase

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.tools.guard import Passed, Rejected, allowed, check
from quorum.tools.guard import process as guard_process
from quorum.tools.guard.process import CATALOGS, MEMORY, TOO_MUCH, GuardFailed, Process
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.lint.resolver import Resolver
from quorum.tools.query import QueryError
from quorum.tools.sql import DIALECTS, SyntaxProblem, parse_statements, sqlglot_dialect
from tests.tools.test_guard import passed

DEEP = [(f"{word}(", ")") for word in ["DECIMAL", "TIMESTAMP", "JSON", "ENUM", "VECTOR", "STRUCT", "OBJECT"]]
DEEP += [("ARRAY[", "]"), ("STRUCT(DECIMAL(ARRAY[", "]))")]
LONG = "SELECT " + ", ".join(f"a + {n}" for n in range(6000)) + " FROM t"


def catalog(table: str) -> Catalog:
    return Catalog("test", "sqlite", (Table(table, (Column("a", "INTEGER"),)),))


@pytest.fixture
def judge() -> Iterator[Process]:
    """A process of the test's own."""
    own = Process()
    yield own
    own.close()


def nested(pair: tuple[str, str], depth: int) -> str:
    return "SELECT " + pair[0] * depth + "1" + pair[1] * depth


@pytest.mark.heavy
@pytest.mark.parametrize("pair", DEEP)
@pytest.mark.parametrize("dialect", ["bigquery", "duckdb", "snowflake"])
def test_what_the_parser_reads_in_many_ways_is_refused_by_counts(dialect: str, pair: tuple[str, str]) -> None:
    depth = 30 if len(pair[0]) < 20 else 15
    verdict = verdict_on(nested(pair, depth), dialect)  # 2**30 readings: it would not come back
    assert isinstance(verdict, Rejected)
    assert verdict.rule == "too_complex"
    with pytest.raises(SyntaxProblem, match="nests"):  # for all who parse, not for the guard alone
        parse_statements(nested(pair, depth), dialect)
    few = verdict_on(nested(pair, 3), dialect)
    assert isinstance(few, Passed) or few.rule in ("function", "syntax")


@pytest.mark.parametrize("body", ["{" + "1" * 60_000, "%" + "0" * 60_000, "{:" * 40_000, "{}" * 40_000])
def test_patterns_of_format_take_linear_time(body: str) -> None:
    verdict = check(f"SELECT format('{body}', 1)", "duckdb")  # quadratic, it met the limit of the process
    assert isinstance(verdict, Passed) or verdict.rule == "resources", verdict


@pytest.mark.heavy
@pytest.mark.parametrize(
    ("limit", "little", "much"), [("SECONDS", 0.05, 30.0), ("MEMORY", 4 * 2**20, MEMORY)]
)
def test_the_process_ends_at_its_limits_and_the_next_one_judges(
    judge: Process, monkeypatch: pytest.MonkeyPatch, limit: str, little: float, much: float
) -> None:
    monkeypatch.setattr(guard_process, "WAIT_SECONDS", 60.0)
    monkeypatch.setattr(guard_process, "SECONDS", 30.0)
    monkeypatch.setattr(guard_process, limit, little)
    assert judge.ask(LONG, "sqlite") is TOO_MUCH
    monkeypatch.setattr(guard_process, limit, much)
    assert isinstance(judge.ask(LONG, "sqlite"), Passed)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_a_process_that_somebody_ended_is_started_again(judge: Process, how: signal.Signals) -> None:
    judge.ask("SELECT 1", "sqlite")
    judge._child.send_signal(how)
    judge._child.wait()
    assert judge.ask("SELECT 2", "sqlite") == Passed("SELECT 2", "sqlite")


def test_a_process_that_is_ended_over_every_text_ends_with_a_refusal(
    judge: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    exchange, asked = judge._exchange, 0

    def ended(request: object, seconds: float) -> object:
        nonlocal asked
        if isinstance(request, tuple):
            asked += 1
            judge._child.kill()
            judge._child.wait()
        return exchange(request, seconds)

    monkeypatch.setattr(judge, "_exchange", ended)
    assert judge.ask("SELECT 1", "sqlite") is TOO_MUCH
    assert asked == 2


def test_a_process_that_hangs_is_ended(judge: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(guard_process, "WAIT_SECONDS", 0.1)
    judge.ask("SELECT 1", "sqlite")
    assert judge._child is not None
    stopped = judge._child
    stopped.send_signal(signal.SIGSTOP)
    assert judge.ask("SELECT 2", "sqlite") is TOO_MUCH
    assert stopped.poll() == -signal.SIGKILL


async def test_the_event_loop_goes_on_while_the_guard_judges() -> None:
    linter, turns = Linter(catalog("t")), 0
    await allowed("SELECT 1", linter)
    judged = asyncio.ensure_future(allowed(LONG, linter))
    while not judged.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > 100  # judged in the loop, it is done at the first or second
    await judged


async def test_many_at_once_get_their_own_verdicts() -> None:
    names = [f"t_{letter}" for letter in ascii_lowercase[: CATALOGS + 4]]  # some catalogs are sent again
    linters = [Linter(catalog(name)) for name in names]

    async def one(number: int) -> bool:
        mine, asked = number % len(names), (number * 7) % len(names)
        found = await allowed(f"SELECT {number} FROM {names[asked]}", linters[mine])
        return (
            found == f"SELECT {number} FROM {names[mine]}" if mine == asked else isinstance(found, QueryError)
        )

    assert all(await asyncio.gather(*(one(number) for number in range(120))))


async def test_who_gives_up_waiting_leaves_the_guard_in_order() -> None:
    linter = Linter(catalog("t"))
    waiting = [asyncio.ensure_future(allowed(f"{LONG} LIMIT {n}", linter)) for n in range(3)]
    await asyncio.sleep(0)
    for task in waiting:
        task.cancel()
    await asyncio.gather(*waiting, return_exceptions=True)
    assert await allowed("SELECT a FROM t", linter) == "SELECT a FROM t"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_fork_has_a_process_of_its_own() -> None:
    check("SELECT 1", "sqlite")
    child = os.fork()
    if child == 0:
        verdicts = [check(f"SELECT {number}", "sqlite") for number in range(20)]
        right = [v == Passed(f"SELECT {n}", "sqlite") for n, v in enumerate(verdicts)]
        os._exit(0 if all(right) else 1)
    for number in range(20):
        assert check(f"SELECT 1{number}", "sqlite") == Passed(f"SELECT 1{number}", "sqlite")
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


def test_a_process_that_does_not_start_is_an_error(judge: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "executable", "/bin/false")
    with pytest.raises(GuardFailed, match="does not start"):
        judge.ask("SELECT 1", "sqlite")


def test_nested_recursion_is_resolved_once_for_its_columns(monkeypatch: pytest.MonkeyPatch) -> None:
    calls, query = 0, Resolver.query

    def counted(self: Resolver, *args: object) -> object:
        nonlocal calls
        calls += 1
        assert calls < 20_000, "the work doubles with each level"
        return query(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(Resolver, "query", counted)
    sql = "SELECT a FROM t"
    for _ in range(30):
        sql = f"WITH c AS ({sql} UNION ALL SELECT a FROM t) SELECT a FROM c"
    assert Linter(Catalog("test", "duckdb", catalog("t").tables)).lint(passed(sql, "duckdb").tree) is None


LONGEST = 99_000
NESTS = """
    (…) ¦ ARRAY[…] ¦ STRUCT(…) ¦ {'a': …} ¦ CASE WHEN a THEN … END ¦ CAST(… AS INT) ¦ f(…) ¦ - … ¦ NOT …
    (SELECT …) ¦ EXISTS (SELECT …) ¦ a IN (SELECT …) ¦ DECIMAL(…) ¦ TIMESTAMP(…) ¦ OBJECT(…) ¦ JSON(…)
    STRUCT<a INT64>(…) ¦ TRY_CAST(… AS ARRAY<INT>) ¦ IF(a, …, b) ¦ (x) -> (…) ¦ a[…] ¦ INTERVAL (…)
    TRIM(BOTH 'x' FROM …) ¦ sum(…) OVER (ORDER BY a) ¦ a BETWEEN 1 AND … ¦ repeat('x', …) ¦ format('{}', …)
    (VALUES (…)) ¦ VECTOR(…) ¦ CAST(a AS STRUCT<a …>) ¦ (SELECT * FROM …) ¦ (t JOIN … ON 1)
    (WITH c AS (SELECT 1 UNION ALL SELECT …) SELECT * FROM c)
"""
LITERALS = (
    r"'{}' ¦ '%{}d' ¦ '{{{}' ¦ $${}$$ ¦ E'{}' ¦ x'{}' ¦ `{}` ¦ r'{}' ¦ /* {} */ 1 ¦ N'{}' ¦ 0x{} ¦ @{} ¦ ${}"
)
PIECES = [*"1a{}%'\\é日\U0001f600 0\n;", "''", "/*", "--", "$$"]
JOINS = """
    + ¦ || ¦ AND ¦ OR ¦ = ¦ . ¦ ::INT ¦ , ¦ ->> ¦ LIKE ¦ IN (1) AND ¦ COLLATE x + ¦ AT TIME ZONE ¦ [1] ¦ :
    FROM t UNION ALL SELECT ¦ FROM t EXCEPT SELECT ¦ , 'x', ¦ , (1, 2), ¦ , CASE WHEN a THEN 1 END,
"""


def split(text: str) -> list[str]:
    """The items of a list, which stand between ``¦`` and on lines of their own."""
    return [item.strip() for item in text.replace("\n", "¦").split("¦") if item.strip()]


class Fuzz:
    """Queries of one dialect; the same for the same seed."""

    def __init__(self, dialect: str, seed: int) -> None:
        self.dice = random.Random(f"{dialect} {seed}")
        functions = sorted(sqlglot_dialect(dialect).parser_class.FUNCTIONS)  # some copy their arguments
        self.nests = [*split(NESTS), *(f"{name}(a, …)" for name in functions)]

    def query(self) -> str:
        """One query, at most ``LONGEST`` characters long; a third of them broken."""
        core = self.dice.choice([self.nested, self.nested, self.chain, self.literal])()
        sql = f"SELECT {core} FROM t"[:LONGEST]
        for _ in range(self.size(5) if self.dice.random() < 1 / 3 else 0):
            place = self.dice.randrange(len(sql))
            sql = sql[:place] + self.dice.choice(["", *PIECES, "(", ")", "[", ">"]) + sql[place + 1 :]
        return sql

    def size(self, most: int) -> int:
        """Small mostly, at times up to ``most``."""
        return max(1, int(most ** (self.dice.random() ** 4)))

    def nested(self) -> str:
        kinds = [form.partition("…") for form in self.dice.sample(self.nests, self.size(4))]
        chosen = [self.dice.choice(kinds) for _ in range(self.size(110))]
        item = "".join(form[0] for form in chosen) + "1" + "".join(form[2] for form in reversed(chosen))
        return ", ".join([item] * self.size(60))

    def chain(self) -> str:
        return "a " + f"{self.dice.choice(split(JOINS))} a " * self.size(30_000)

    def literal(self) -> str:
        body = "".join(self.dice.choices(PIECES, k=self.size(6))) * self.size(20_000)
        return self.dice.choice(["", "format(", "f("]) + self.dice.choice(split(LITERALS)).replace("{}", body)


@pytest.mark.heavy
@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_short_fuzz_is_judged_within_the_limits_of_the_process(dialect: str) -> None:
    fuzz = Fuzz(dialect, 2)
    for _ in range(150):
        verdict = check(fuzz.query(), dialect)
        assert verdict.sql if isinstance(verdict, Passed) else verdict.rule
    assert isinstance(check("SELECT 1", dialect), Passed)
