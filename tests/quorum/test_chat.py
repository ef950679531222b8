"""Conversations: what each turn becomes, what it costs, and what needs no query."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from quorum import Quorum, Settings
from quorum.chat import settings_of
from quorum.graph.answer import Answer
from quorum.graph.conversation import conversation, stands_alone, supported
from quorum.graph.leases import leases_at, run_id_of
from quorum.graph.runs import Event, RunFolder, list_runs
from quorum.knowledge.errors import ConfigurationError, LeaseLost, MalformedReply
from quorum.progress import Progress
from quorum.tools.ledger import Budget, Ledger
from quorum.tools.models.scripted import Prompt, scripted
from tests.graph.shop import GOOD, QUESTION, THIRD, make_shop, script, written
from tests.quorum.conftest import made
from tests.quorum.conftest import quorum as command
from tests.servers.postgres_server import PostgresServer
from tests.waiting import wait_until

IN_ALL = "How many orders did all customers place altogether?"
TABLES = ["customers", "order_items", "orders"]


class Talker:
    """A model whose QuestionRewriter says these things one after the other."""

    def __init__(self, *turns: dict[str, Any]) -> None:
        self.turns, self.rewritings, self.writings = iter(turns), list[str](), list[str]()

    def __call__(self, prompt: Prompt) -> Any:
        if prompt.role == "question_rewriter":
            self.rewritings.append(prompt.text)
            return {"view": {}, "words": "", "question": IN_ALL, **next(self.turns)}
        if prompt.role != "sql_writer":
            return script()[prompt.role]
        self.writings.append(prompt.text.rpartition("<question>")[2])
        return written(GOOD if "city" in self.writings[-1] else THIRD)


def session(folder: Path, model: Talker, **given: Any) -> Quorum:
    shop = folder / "shop.db"
    return Quorum(
        db=str(shop if shop.exists() else make_shop(shop)),
        models=["scripted:test"],
        chat_models={"scripted:test": scripted(model)},
        home=folder / "q",
        **given,
    )


async def test_a_turn_becomes_a_question_a_view_or_words(tmp_path: Path) -> None:
    words = "It counts 4 orders. That is 99 more than in May."
    model = Talker(
        {"ask": "view", "view": {"first": 1}},
        {"ask": "question"},
        {"ask": "words", "words": words},
        {"ask": "view", "view": {"sort_by": "orders", "columns": ["orders"], "chart": "bar"}},
        {"ask": "view", "view": {"sort_by": "price"}},
        {"ask": "words", "words": "There are 98 of them."},
    )
    async with session(tmp_path, model) as quorum:
        chat = quorum.chat()
        first = await chat.ask(QUESTION)
        assert (first.turn, first.became, model.rewritings) == (QUESTION, "", [])
        few = await chat.ask("Only the first one!")
        shown = ([["Ghent", 1]], "the result before: its first 1 rows", GOOD)
        assert (few.rows, few.became, few.sql) == shown
        assert (few.usage["model_calls"], few.usage["queries"], few.of_run) == (1, 0, first.run_id)
        assert few.to_arrow().num_rows == 1
        in_all = await chat.ask("and in all?")
        assert (in_all.became, in_all.rows) == (IN_ALL, [[4]])
        assert "Turn 2: Only the first one!" in model.rewritings[1]
        assert '["Lyon", 3]' in model.rewritings[0], "the rows of the turn before"
        assert "customer_id INTEGER" not in model.rewritings[0], "it sees the conversation only"
        assert in_all.usage["model_calls"] == first.usage["model_calls"] + 1
        assert in_all.usage["by_agent"]["question_rewriter"]["model_calls"] == 1
        said = await chat.ask("which orders does it count?")
        assert said.words.startswith("It counts 4 orders. (Sentences with numbers")
        assert (said.usage["queries"], said.of_run) == (0, in_all.run_id)
        assert str(said).endswith(said.words)
        drawn = await chat.ask("sort them and draw it")
        assert "█ 4" in str(drawn)
        assert "█ 4" in drawn.to_markdown()
        for turn in ("by price", "how many was that?"):  # no such column; a number that nobody looked up
            asked = await chat.ask(turn)
            assert (asked.became, asked.of_run, asked.usage["queries"]) == (IN_ALL, "", 1)
        kept = await quorum.keep(drawn.run_id)
        assert (kept.pair.question, kept.pair.sql) == (IN_ALL, THIRD), "the query behind what was shown"


def test_rows_that_a_view_leaves_out_can_still_be_meant() -> None:
    all_rows, about = [["app"], ["phone"], ["web"], ["fax"]], {"recipe": "quorum", "columns": ["channel"]}
    asked = made(about | {"rows": all_rows, "row_count": 4, "run_id": "r1"}).model_dump()
    view = made(about | {"rows": all_rows[:1], "row_count": 1, "run_id": "r2", "of_run": "r1"}).model_dump()
    later = made(about | {"rows": [["no"]], "row_count": 1, "run_id": "r3"}).model_dump()
    seen = conversation([asked, view])
    assert "fax" in seen
    assert seen.endswith('["app"]\n(1 of 1 rows)')
    assert "fax" not in conversation([asked, view, later])


async def test_a_turn_that_cannot_be_paid_is_stopped_and_one_that_is_not_rewritten_failed(
    tmp_path: Path,
) -> None:
    async with session(tmp_path, Talker(*[{"ask": "nothing"}] * 3)) as quorum:
        chat = quorum.chat()
        await chat.ask(QUESTION)
        stopped = await chat.ask("and in all?", shared=Ledger(Budget(max_calls=0)))
        with pytest.raises(MalformedReply):
            await chat.ask("and in all?")
    latest = next(iter(list_runs(tmp_path / "q")))
    assert (latest.question, latest.status) == ("and in all?", "failed")
    assert (stopped.question, stopped.status, stopped.stopped_by) == ("and in all?", "stopped", "max_calls")
    assert (stopped.usage["model_calls"], stopped.sql, stopped.became, stopped.of_run) == (0, "", "", "")
    assert RunFolder(Path(stopped.trace)).answer() is not None


async def test_a_conversation_goes_on_in_another_process_and_from_any_run(tmp_path: Path) -> None:
    async with session(tmp_path, Talker()) as quorum:
        chat = quorum.chat()
        await chat.ask(QUESTION)
        alone = await quorum.ask(IN_ALL)
    model = Talker({"ask": "question"}, {"ask": "question"})
    with session(tmp_path, model) as blocking:
        assert blocking.chat(chat.thread).ask("and in all?").became == IN_ALL
        other = blocking.chat(run=alone.run_id)
        assert other.chat.last == alone
        assert other.ask("really?").became == IN_ALL
    assert f"Turn 1: {QUESTION}" in model.rewritings[0]
    assert f"Turn 1: {IN_ALL}" in model.rewritings[1]
    settings = settings_of(alone.run_id, Settings(home=tmp_path / "q"))
    assert settings.database == [str(tmp_path / "shop.db")]
    with pytest.raises(ConfigurationError, match="cannot name a conversation"):
        session(tmp_path, model).chat("../x")


async def test_what_was_settled_holds_for_later_questions(tmp_path: Path) -> None:
    note = "An order counts for the city of its customer."
    model = Talker({"ask": "question", "settled": [note]})
    async with session(tmp_path, model) as quorum:
        chat = quorum.chat()
        for turn in (QUESTION, "I mean the customer's city", QUESTION):
            await chat.ask(turn)
    assert [note in writing for writing in model.writings] == [False, True, True]
    assert len(model.rewritings) == 1


async def test_a_reading_that_was_chosen_holds_for_later_questions(tmp_path: Path) -> None:
    meaning = "How many orders are there, whatever the city?"
    noted = {"reasoning": "So.", "readings": [{"meaning": meaning, "sql": THIRD}]}

    class Doubting(Talker):
        def __call__(self, prompt: Prompt) -> Any:
            reply = noted if prompt.role == "reading_writer" else super().__call__(prompt)
            return reply | {"readings": ["All orders?"]} if prompt.role == "sql_writer" else reply

    model = Doubting()
    async with session(tmp_path, model) as quorum:
        chat = quorum.chat()
        assert (await chat.ask(QUESTION, on_clarify=lambda _: "B", clarify="always")).meant == meaning
        await chat.ask(IN_ALL)
    assert f"this is meant: {meaning}" in model.writings[-1]


async def test_a_turn_cut_short_behind_its_rewriting_is_not_rewritten_again(tmp_path: Path) -> None:
    model = Talker({"ask": "question"})

    def heard(event: Event) -> None:
        if event["kind"] == "model_call":
            asking.cancel()

    async with session(tmp_path, model) as quorum:
        chat = quorum.chat()
        await chat.ask(QUESTION)
        asking = asyncio.create_task(chat.ask("and in all?", run_id="cut", on_event=heard))
        with pytest.raises(asyncio.CancelledError):
            await asking
        answer = await quorum.chat(chat.thread).resume("cut")
    assert (answer.turn, answer.became, answer.rows) == ("and in all?", IN_ALL, [[4]])
    assert answer.usage["by_agent"]["question_rewriter"]["model_calls"] == len(model.rewritings) == 1


async def test_an_answer_whose_process_died_before_it_was_noted_is_still_known(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(_: Answer) -> str:
        raise RuntimeError

    model = Talker({"ask": "question"}, {"ask": "question"})
    async with session(tmp_path, model) as quorum:
        chat = quorum.chat()
        monkeypatch.setattr("quorum.chat.message_of", killed)
        with pytest.raises(RuntimeError):
            await chat.ask(QUESTION, run_id="noted")
        monkeypatch.undo()
        assert RunFolder.open(tmp_path / "q", "noted").answer() is not None
        assert (await quorum.chat(chat.thread).ask("and in all?")).became == IN_ALL
        assert (await chat.ask("really?")).became == IN_ALL
    assert f"Turn 1: {QUESTION}" in model.rewritings[0]
    assert "Turn 2: and in all?" in model.rewritings[1]


async def test_a_turn_is_known_whose_last_step_has_its_writes_stored_and_not_its_state(
    tmp_path: Path, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    package = pytest.importorskip("langgraph.checkpoint.postgres", reason="needs quorum-sql[serve]")
    database, put = postgres.new_database(), package.PostgresSaver.put
    stored = "SELECT 1 FROM checkpoint_writes WHERE channel = 'turns'"

    def killed(self: Any, config: Any, checkpoint: Any, *given: Any) -> Any:
        if checkpoint["channel_values"].get("turns"):
            wait_until(lambda: postgres.execute(stored, database))
            raise RuntimeError
        return put(self, config, checkpoint, *given)

    model = Talker({"ask": "question"})
    async with session(tmp_path, model, checkpoints=f"{postgres.admin_url}/{database}") as quorum:
        chat = quorum.chat()
        monkeypatch.setattr(package.PostgresSaver, "put", killed)
        with pytest.raises(RuntimeError):
            await chat.ask(QUESTION)
        monkeypatch.undo()
        await quorum.chat(chat.thread).ask("and in all?")
    (seen,) = model.rewritings
    assert seen.count(f": {QUESTION}\n") == 1


async def test_a_turn_whose_process_loses_the_conversation_alone_is_handed_over(
    tmp_path: Path, postgres: PostgresServer
) -> None:
    """As one that hung may: of its leases some are renewed in time."""
    pytest.importorskip("langgraph.checkpoint.postgres", reason="needs quorum-sql[serve]")
    url = f"{postgres.admin_url}/{postgres.new_database()}"

    def heard(event: Event) -> None:
        if event["kind"] == "rewriting":
            for lease in leases_at(url).held.values():
                lease.lost = lease.run.endswith(":talk")

    async with session(tmp_path, Talker({"ask": "question"}), checkpoints=url) as quorum:
        chat = quorum.chat()
        await chat.ask(QUESTION)
        with pytest.raises(LeaseLost):
            await chat.ask("and in all?", run_id="lost", on_event=heard)
        assert RunFolder.open(tmp_path / "q", "lost").ended() is None
        assert "lost" in [run_id_of(each.run) for each in leases_at(url).expired()]
        postgres.execute("UPDATE quorum_leases SET expires = clock_timestamp()", url.rpartition("/")[2])
        assert (await quorum.chat(chat.thread).resume("lost")).rows == [[4]]


async def test_a_question_that_is_stopped_does_not_end_the_conversation(tmp_path: Path) -> None:
    model = Talker({"ask": "question"})
    async with session(tmp_path, model) as quorum:
        chat = quorum.chat()
        await chat.ask(QUESTION)
        begun = asyncio.Event()
        asking = asyncio.create_task(chat.ask(IN_ALL, on_event=lambda _: begun.set()))
        await begun.wait()
        with pytest.raises(ConfigurationError, match="Another turn of the conversation"):
            await quorum.chat(chat.thread).ask(IN_ALL)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (await chat.ask("and in all?")).rows == [[4]]
    assert IN_ALL not in model.rewritings[0].partition("<conversation>")[2].partition("</conversation>")[0]


ALONE = """How many orders were returned in May 2024?
Which three customers placed the most orders in 2024?
In which month of 2024 were there fewest orders?"""
LEANING = """How many were returned in May 2024 in Germany?
Which of the customers ordered in May 2024?
Which country's customers have ordered the most?
and how many orders were there by month in 2024?
Wie viele Bestellungen (orders) gab es im Mai 2024?
only the first three"""


def test_a_question_stands_alone() -> None:
    turns = [*ALONE.splitlines(), *LEANING.splitlines()]
    assert [turn for turn in turns if stands_alone(turn, TABLES)] == ALONE.splitlines()


def test_words_keep_only_numbers_that_were_shown() -> None:
    shown = 'Turn 1: 2024?\n["May", 1205669.890, 7]'
    assert supported("May 2024 had 1,205,669.89. That is 12 % of it. All 7.0 count.", shown) == (
        "May 2024 had 1,205,669.89. All 7.0 count."
    )


def test_the_terminal_takes_turns_and_commands(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("QUORUM_MODELS", "offline")
    shop, home = str(make_shop(tmp_path / "shop.db")), str(tmp_path / "q")
    lines = "/sql /nonsense How~many~orders\\ are~there? /sql /rows /why /cost /keep~so /correct~DROP~x"
    given = f"{lines} /new /rows".replace(" ", "\n").replace("~", " ")
    talked = command("chat", "--db", shop, "--home", home, given=f"{given}\n/quit\nnever read")
    assert talked.exit_code == 0, talked.output
    for part in ("FROM orders\ncount\n4\n", "1 turn: 1 model call", "Kept, verified by"):
        assert part in talked.stdout
    assert "There is no /nonsense; /help" in talked.stderr
    assert talked.stderr.count("Ask something first.") == 2
    assert "This query cannot be kept" in talked.stderr
    asked = ["ask", "--continue", "and how many customers are there?", "--home", home, "--csv"]
    again = command(*asked)
    assert (again.exit_code, again.stdout) == (0, "count\n3\n"), again.output


def test_a_turn_that_is_stopped_has_its_cost(
    shop: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard = Progress.__call__

    def stopped(self: Progress, event: Event) -> None:
        heard(self, event)
        if event["kind"] == "query" and "customers" in event["sql"]:
            raise KeyboardInterrupt

    monkeypatch.setattr(Progress, "__call__", stopped)
    turns = "How many orders are there?\nHow many customers are there?\n/cost\n"
    talked = command("chat", "--db", shop, "--model", "offline", given=turns)
    assert "Stopped." in talked.stderr
    assert "2 turns: 3 model calls" in talked.stdout  # the rewriting, too
