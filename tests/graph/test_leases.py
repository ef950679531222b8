"""Leases in PostgreSQL: a run has one writer, and one that lost it writes nothing more."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from quorum import Quorum
from quorum.graph import leases
from quorum.graph.leases import Lease, Leases, leases_at, run_id_of
from quorum.graph.runs import RunFolder
from quorum.graph.trace import Trace
from quorum.knowledge.errors import ConfigurationError, DatabaseUnavailable, LeaseLost, QuorumError
from quorum.tools.models.scripted import ScriptedChatModel
from tests.graph.shop import GOOD, QUESTION, make_shop, script
from tests.quorum.serve.conftest import held
from tests.servers.postgres_server import PostgresServer
from tests.waiting import until, wait_until

pytest.importorskip("langgraph.checkpoint.postgres", reason="the extra quorum-sql[serve] is not installed")

REPLIES = script(sql_writer={"reasoning": "So.", "sql": GOOD})
EXPIRE = "UPDATE quorum_leases SET expires = clock_timestamp()"


@pytest.fixture(scope="module")
def database(postgres: PostgresServer) -> str:
    return postgres.new_database()


@pytest.fixture
def url(postgres: PostgresServer, database: str) -> str:
    """Of the checkpoints, with a password that nothing may show."""
    return f"{postgres.admin_url.replace('@', ':n0tsh0wn@')}/{database}"


@pytest.fixture
async def quorum(url: str, tmp_path: Path) -> AsyncIterator[Quorum]:
    model = ScriptedChatModel(script=REPLIES, source="test")
    shop = f"sqlite:///{make_shop(tmp_path / 'shop.db')}"
    async with Quorum(db=shop, models=model, home=tmp_path / "q", checkpoints=url, votes=1) as session:
        yield session


async def test_a_run_keeps_its_checkpoints_there_until_it_is_answered(
    quorum: Quorum, postgres: PostgresServer, database: str, tmp_path: Path
) -> None:
    during = list[Any]()

    def count(_: Any) -> None:
        during.append(postgres.execute("SELECT count(*) FROM checkpoints", database)[0][0])

    answer = await quorum.ask(QUESTION, on_event=count)
    assert sorted(answer.rows) == [["Ghent", 1], ["Lyon", 3]]
    assert max(during) > 2
    for table in ("quorum_leases", "checkpoints", "checkpoint_writes", "checkpoint_blobs"):
        assert postgres.execute(f"SELECT count(*) FROM {table}", database) == [(0,)], table
    run = RunFolder.open(tmp_path / "q", "last")
    assert not run.checkpoint.exists()
    texts = [path.read_bytes() for path in run.folder.rglob("*") if path.is_file()]
    assert not any(b"n0tsh0wn" in text for text in texts)
    assert (await quorum.ask(resume=run.run_id)).rows == answer.rows


async def test_a_run_that_is_cut_short_goes_on_in_another_session(
    quorum: Quorum, url: str, tmp_path: Path
) -> None:
    """A cancelled run is handed over at once; its replies and results are not asked for again."""
    asking = asyncio.ensure_future(quorum.ask(QUESTION, run_id="one", on_event=lambda event: heard(event)))

    def heard(event: dict[str, Any]) -> None:
        if event["kind"] == "query":
            asking.cancel()

    with pytest.raises(asyncio.CancelledError):
        await asking
    assert [run_id_of(each.run) for each in leases_at(url).expired()] == ["one"]
    answer = await quorum.ask(resume="one")
    assert sorted(answer.rows) == [["Ghent", 1], ["Lyon", 3]]
    assert _done(tmp_path, "one") == (2, answer.usage["model_calls"], 1, 0)
    assert answer.usage["model_calls"] == (await quorum.ask(QUESTION)).usage["model_calls"]
    assert leases_at(url).expired() == []


async def test_one_that_lost_its_lease_writes_nothing_more(
    quorum: Quorum, url: str, tmp_path: Path, postgres: PostgresServer, database: str
) -> None:
    """While its model thinks another process takes the run over, as if this one had hung for long."""
    slow = held()
    async with Quorum(settings=quorum.settings.changed(models=None), models=slow) as session:
        asking = asyncio.ensure_future(session.ask(QUESTION, run_id="two"))
        await until(lambda: slow.asked)
        with pytest.raises(LeaseLost, match="being written by another process"):
            await quorum.ask(resume="two")
        postgres.execute(EXPIRE, database)
        answer = await quorum.ask(resume="two")
        folder = tmp_path / "q" / "runs" / "two"
        left = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
        slow.may.set()
        with pytest.raises(LeaseLost, match="has lost the run two"):
            await asking
    assert answer.status == "answered"
    assert {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()} == left
    assert postgres.execute("SELECT count(*) FROM checkpoints", database) == [(0,)]


async def test_a_run_that_others_know_of_has_failed_where_it_cannot_open(
    quorum: Quorum, tmp_path: Path, url: str
) -> None:
    """What a process left that was killed before its run was there is no run."""
    (folder := tmp_path / "q" / "runs" / "four").mkdir(parents=True)
    (folder / "results").mkdir()
    settings = quorum.settings.changed(models=None, database=[f"sqlite:///{tmp_path}/none.db"])
    async with Quorum(settings=settings, models=ScriptedChatModel(script=REPLIES, source="test")) as session:
        with pytest.raises(DatabaseUnavailable):
            await session.ask(QUESTION, run_id="four")
    assert "none.db" in RunFolder(folder).error()
    assert leases_at(url).expired() == leases_at(url).ask("SELECT run FROM quorum_leases") == []
    with pytest.raises(ConfigurationError, match="exists already"):
        await quorum.ask(QUESTION, run_id="four")


def _done(folder: Path, run: str) -> tuple[int, ...]:
    """How often the run began, asked a model, ran a query, and failed."""
    kinds = [event["kind"] for event in RunFolder.open(folder / "q", run).events()]
    return tuple(map(kinds.count, ("begun", "model_call", "query", "failed")))


def taken(url: str) -> tuple[Lease, Lease, Leases]:
    """A lease that another process took over meanwhile, and the other's."""
    early, late = leases_at(url), Leases(url)
    first = early.take("run:0001")
    del early.held[first.token]  # it renews nothing while it hangs
    early.ask(f"{EXPIRE} WHERE run = %s", "run:0001")
    return first, late.take("run:0001"), late


async def test_a_checkpoint_needs_the_leases_token(url: str) -> None:
    """Also where the earlier process's clock says nothing, or it stopped between the look and the write."""
    first, second, _ = taken(url)
    first.until += 100.0
    config: Any = {"configurable": {"thread_id": first.run, "checkpoint_ns": "", "checkpoint_id": "1"}}
    writes = [("question", "?")]
    await second.saver().aput_writes(config, writes, "task")
    with pytest.raises(LeaseLost):
        await first.saver().aput_writes(config, [("question", "!")], "other")
    assert first.lost
    written = first.leases.ask("SELECT task_id FROM checkpoint_writes WHERE thread_id = %s", first.run)
    assert [row["task_id"] for row in written] == ["task"]
    second.release(ended=True, answered=True)
    assert not first.leases.ask("SELECT FROM checkpoint_writes WHERE thread_id = %s", first.run)


async def test_what_was_on_its_way_to_the_folder_goes_nowhere(url: str, tmp_path: Path) -> None:
    """An event, and an answer, of a process that stopped between the look at its lease and the write."""
    first, second, _ = taken(url)
    early = Trace.create(tmp_path, "run", {"thread": first.run}, lease=first)
    first.until += 100.0
    early.record("begun")
    late = Trace.resume(tmp_path, "run", lease=second)
    late.record("begun")
    late.finish({"status": "theirs"})
    late.close()
    early.record("late")
    early.finish({"status": "mine"})
    early.close()
    run = RunFolder(tmp_path / "runs" / "run")
    assert [event["kind"] for event in run.events()] == ["begun", "begun"]
    assert b"theirs" in (run.folder / "answer.json").read_bytes()


def test_a_lease_is_renewed_until_it_is_lost(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leases, "RENEWED", 0.02)
    own = Leases(url)
    mine, other = own.take("mine:1"), own.take("other:1")
    own.cancel("mine:1")
    before = mine.until
    wait_until(lambda: mine.until > before and mine.cancel)
    own.ask("UPDATE quorum_leases SET token = nextval('quorum_tokens') WHERE run = 'other:1'")
    wait_until(lambda: other.gone)
    with pytest.raises(LeaseLost):
        other.check()
    assert not mine.gone
    mine.release(ended=False, answered=False)
    (left,) = own.expired()
    assert (left.run, left.taken, left.cancel) == ("mine:1", 0, True)
    mine = own.take("mine:1")
    mine.until = time.monotonic()
    with pytest.raises(LeaseLost):
        mine.check()
    mine.release(ended=True, answered=False)
    own.ask("DELETE FROM quorum_leases")


async def test_connections_that_break_cost_no_run(
    quorum: Quorum, tmp_path: Path, postgres: PostgresServer, database: str
) -> None:

    def away(event: dict[str, Any]) -> None:
        if event["kind"] == "query":
            postgres.disconnect(database)

    answer = await quorum.ask(QUESTION, run_id="three", on_event=away)
    assert answer.status == "answered"
    assert _done(tmp_path, "three") == (1, answer.usage["model_calls"], 1, 0)


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ("sqlite:///x.db", "names no PostgreSQL database"),
        ("postgresql://user:n0tsh0wn@127.0.0.1:1/none", "The checkpoints at postgresql://127.0.0.1:1/none"),
    ],
)
async def test_a_wrong_database_is_said_before_anything_is_asked(
    quorum: Quorum, tmp_path: Path, given: str, says: str
) -> None:
    model = ScriptedChatModel(script=REPLIES, source="test")
    settings = quorum.settings.changed(models=None, checkpoints=given)
    async with Quorum(settings=settings, models=model) as session:
        with pytest.raises(QuorumError, match=says) as raised:
            await session.ask(QUESTION, run_id="none")
        folder = tmp_path / "q" / "runs" / "none"
        assert not folder.exists()
        folder.mkdir(parents=True)
        (folder / "run.json").write_text('{"thread": "none:1"}')
        with pytest.raises(ConfigurationError, match="are in PostgreSQL"):
            leases.lease_of("", RunFolder(folder))
    assert "n0tsh0wn" not in str(raised.value)
