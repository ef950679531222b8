"""``quorum eval run``: what it says, how it ends, and that the same command goes on whatever ended it."""

from __future__ import annotations

import io
import json
import random
import re
import signal
import sqlite3
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from quorum.cli import cli
from quorum.commands.eval_run import _name
from quorum.eval_progress import LINE_SECONDS, Board, Tally
from quorum.evals.folder import EvalFolder
from quorum.evals.questions import Suite
from quorum.evals.records import CandidateRow, Linking
from tests.evals.evaluations import differing, record, usage
from tests.evals.running import questions, shops
from tests.evals.small_suite import SumScorer, write_database
from tests.quorum.forked import OUTPUT, Forked
from tests.servers.chat_server import closed_port
from tests.servers.clock import skip_waits

__all__ = ["shops"]

WAIT = 60.0


def run(*arguments: str) -> Result:
    result = CliRunner().invoke(cli, ["eval", "run", *arguments])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def suite(shops: object, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """What ``shops`` as a suite's name stands for: nine questions on two databases."""
    made = Suite("shops", workplace, questions(9, shops=2), SumScorer(), ("Nothing but shops.",))
    monkeypatch.setattr("quorum.suites.open_suite", lambda *_: made)
    return made


OFFLINE = ("--model", "offline", "--recipe", "single")


def test_it_says_how_it_went_and_how_to_report(suite: Suite, workplace: Path) -> None:
    result = run("shops", *OFFLINE, "--limit", "3", "--out", "kept")
    assert result.exit_code == 0, result.output
    assert "Missing: Nothing but shops." in result.stderr
    assert "shops · 3 questions · 8 at a time · recipe single · offline" in result.stderr
    assert "Kept in kept" in result.stderr
    said = result.stdout.splitlines()
    assert said[0].startswith("Demonstration: ")
    parts = said[1].split(" · ")
    assert parts[0] == "3 of 3 questions"
    assert re.fullmatch(r"EX \d+\.\d % ± \d+\.\d", parts[1])
    assert re.fullmatch(r"executes \d+\.\d %", parts[2])
    assert parts[3] == "3 model calls"
    assert parts[5] == "$0.00"
    assert said[-1] == "Kept in kept; report: quorum eval report kept"
    assert len(EvalFolder(workplace / "kept").records()) == 3


def test_the_same_command_goes_on_in_the_same_folder(suite: Suite, workplace: Path) -> None:
    assert run("shops", *OFFLINE, "--limit", "2").exit_code == 0
    folder = workplace / ".quorum" / "evals" / "shops-single-offline"
    before = (folder / "results.jsonl").read_text()
    again = run("shops", *OFFLINE, "--limit", "3")
    assert again.exit_code == 0
    assert "Going on: 2 questions finished before." in again.stderr
    assert "3 of 3 questions" in again.stdout
    assert (folder / "results.jsonl").read_text().startswith(before)
    other = run("shops", *OFFLINE, "--limit", "3", "--votes", "2")
    assert other.exit_code == 2
    assert "votes was None and is 2" in other.stderr


def test_own_questions_are_named_by_their_file_and_long_names_are_cut() -> None:
    assert _name("my questions.CSV", "single", ["openai:a/b", "offline"], (2, 8)) == (
        "my-questions-single-openai-a-b+offline-2of8"
    )
    names = {_name("spider1", "quorum", [f"openai:{'m' * 200}{end}"], (1, 1)) for end in "ab"}
    assert len(names) == 2
    assert max(map(len, names)) < 140


def test_json_is_one_object(suite: Suite) -> None:
    result = run("shops", *OFFLINE, "--shard", "2/4", "--json", "--quiet")
    assert result.exit_code == 0
    found = json.loads(result.stdout)
    assert found["status"] == "finished"
    assert (found["asked"], found["ended"], found["finished"]) == (2, 2, 2)
    assert found["shard"] == "2/4"
    assert found["folder"].endswith("shops-single-offline-2of4")
    assert found["missing"] == ["Nothing but shops."]
    assert 0 <= found["ex"] <= 1
    assert result.stderr == ""


@pytest.mark.heavy
def test_several_processes_share_the_questions(workplace: Path, tmp_path: Path) -> None:
    """In a process of its own, as people call it: the workers are asked to load no test's module."""
    database = tmp_path / "shop.sqlite"
    with sqlite3.connect(database) as shop:
        shop.executescript("CREATE TABLE orders (id INTEGER, total REAL); INSERT INTO orders VALUES (1, 9.5)")
    gold = "SELECT COUNT(*) FROM orders"
    asked = (json.dumps({"question": f"How many orders are there, {n}?", "sql": gold}) for n in range(6))
    (tmp_path / "own.jsonl").write_text("\n".join(asked))
    command = [sys.executable, "-m", "quorum", "eval", "run", str(tmp_path / "own.jsonl"), *OFFLINE]
    command += ["--db", f"sqlite:///{database}", "--out", str(tmp_path / "out"), "--workers", "2"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=WAIT, check=False)
    assert ended.returncode == 0, ended.stderr
    assert "in 2 processes" in ended.stderr
    assert all(record.match for record in EvalFolder(tmp_path / "out").records().values())
    refused = run(*command[5:-1], "9")
    assert refused.exit_code == 2
    assert "9 workers cannot share 8 questions at a time" in refused.stderr


def test_ids_choose_questions(suite: Suite, workplace: Path) -> None:
    (workplace / "ids.txt").write_text("q07\nq01\n")
    result = run("shops", *OFFLINE, "--ids", "ids.txt", "--json")
    assert result.exit_code == 0
    assert EvalFolder(Path(json.loads(result.stdout)["folder"])).records().keys() == {"q01", "q07"}


@pytest.mark.parametrize(("limit", "said"), [("2", "2 failed for want of an endpoint"), ("9", "Given up.")])
def test_without_an_endpoint_it_ends_with_1_and_says_how_to_go_on(
    suite: Suite, limit: str, said: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    skip_waits(monkeypatch)
    model = ("--model", "openai:m", "--base-url", f"http://127.0.0.1:{closed_port()}/v1")
    result = run("shops", *model, "--recipe", "single", "--limit", limit, "--json")
    assert result.exit_code == 1, result.output
    found = json.loads(result.stdout)
    assert found["status"] == "unfinished"
    assert said in found["message"]
    assert "the same command" in found["message"]
    assert found["errors"]["endpoint"] >= 2
    assert found["finished"] == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("shops",), "No model is configured"),
        (("shops", *OFFLINE, "--clarify", "me"), "'gold', 'off'"),
        (("shops", *OFFLINE, "--sample", "easy:0"), "no sample"),
        (("shops", *OFFLINE, "--sample", "easy:1", "--sample", "easy:2"), "each group once"),
        (("shops", *OFFLINE, "--sample", "easy:1"), "no question in a group 'easy'"),
        (("shops", *OFFLINE, "--shard", "9/8"), "no shard"),
        (("shops", *OFFLINE, "--shard", "half"), "no shard"),
        (("shops", *OFFLINE, "--switch", "nope=1"), "no switch"),
        (("shops", *OFFLINE, "--ids", "nowhere.txt"), "nowhere.txt"),
        (("shops", *OFFLINE, "--recipe", "nope"), "no recipe"),
        (("shops", "--model", "openai:gpt-4.1"), "API key"),
    ],
)
def test_a_mistake_of_use_exits_with_2_and_leaves_nothing(
    suite: Suite, workplace: Path, arguments: tuple[str, ...], said: str
) -> None:
    result = run(*arguments)
    assert result.exit_code == 2
    assert said in result.stderr
    assert not (workplace / ".quorum" / "evals").exists()


def test_clarify_in_the_settings_is_refused_and_can_be_taken_back(
    suite: Suite, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUORUM_CLARIFY", "true")
    refused = run("shops", *OFFLINE, "--limit", "1")
    assert refused.exit_code == 2
    assert "--clarify off" in refused.stderr
    assert run("shops", *OFFLINE, "--limit", "1", "--clarify", "off").exit_code == 0


def test_a_simulated_user_has_an_evaluation_of_its_own(suite: Suite, workplace: Path) -> None:
    result = run("shops", *OFFLINE, "--limit", "1", "--clarify", "gold")
    assert result.exit_code == 0
    assert "a simulated user may be asked" in result.stderr
    (folder,) = (workplace / ".quorum" / "evals").iterdir()
    assert "clarified" in folder.name
    (record,) = EvalFolder(folder).records().values()
    assert record.asking is not None


def test_a_sample_is_asked(suite: Suite, workplace: Path) -> None:
    result = run("shops", *OFFLINE, "--sample", "2", "--json")
    assert json.loads(result.stdout)["asked"] == 2


# the tally


def _tally(*records: Any, asked: int = 10) -> Tally:
    tally = Tally(asked)
    for each in records:
        tally.add(each)
    return tally


def test_the_tally_counts_what_the_records_say() -> None:
    lost = (CandidateRow("c1", "m", "", None, "model_unavailable"),)
    tally = _tally(
        record("a", usage=usage(usd=0.25), candidates=lost),
        record("b", match=False, usage=usage(usd=0.25)),
        record("c", status="no_answer", error="syntax", executes=False, match=False, usage=usage(usd=0.5)),
        record("d", status="failed", error="endpoint", sql="", executes=None, match=None, usage={}),
    )
    found = tally.summary()
    assert (found["ended"], found["finished"], found["answered"]) == (4, 3, 2)
    assert found["ex"] == 0.25
    assert found["executes"] == 2 / 3
    assert found["usd"] == 1.0
    assert found["errors"] == {"syntax": 1, "endpoint": 1}
    assert found["with_fewer_candidates"] == 1
    said = "\n".join(tally.closing())
    assert "4 of 10 questions · EX 25.0 % ± 25.0" in said
    assert "Errors: syntax 1, endpoint 1." in said
    assert "1 answer with fewer candidates" in said


def test_an_unknown_price_is_said_to_be_unknown() -> None:
    assert (
        "price unknown" in _tally(record("a", usage=usage(usd=None)), record("b", usage=usage(usd=1))).line()
    )


def test_a_fault_is_shown_with_its_last_line() -> None:
    message = "Traceback (most recent call last):\n  File x\nKeyError: 'y'\n"
    said = _tally(record("a", status="failed", error="fault", message=message)).closing()
    assert "Fault in a: KeyError: 'y'" in said


def test_where_nothing_is_live_linking_and_validity_are_told() -> None:
    values: dict[str, Any] = {"match": None, "gold": "not_live", "executes": None, "rows": None}
    linking = Linking(1.0, 1.0, 0.5, 1.0)
    said = "\n".join(_tally(record("a", status="no_answer", linking=linking, **values)).closing())
    assert "EX not known · executes –" in said
    assert "Valid SQL 100.0 % · linking recall: tables 100.0 %, columns 50.0 %" in said
    assert "Not scored, by the state of the gold: not_live 1." in said


def test_the_eta_is_that_of_this_process() -> None:
    now = [0.0]
    tally = Tally(10, clock=lambda: now[0])
    now[0] = 100.0
    tally.begin([record(id) for id in "abcd"])
    assert tally.left_seconds is None
    assert tally.line().startswith("ETA –")
    now[0] = 104.0
    tally.add(record("e"))
    tally.add(record("f"))
    assert tally.left_seconds == 8.0
    assert tally.line().startswith("ETA 8.00 s · EX 100.0 %")


def _board(*, terminal: bool, quiet: bool = False) -> tuple[Board, io.StringIO, list[float]]:
    now, out = [0.0], io.StringIO()
    console = Console(file=out, force_terminal=terminal, width=120, highlight=False)
    return Board(Tally(5, clock=lambda: now[0]), console, quiet=quiet), out, now


def test_on_a_terminal_there_is_a_bar() -> None:
    board, out, _ = _board(terminal=True)
    with board:
        board.begin([])
        board.record(record("a"))
        board.record(record("b", match=False))
    shown = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", out.getvalue())
    assert "2/5" in shown
    assert "EX 50.0 %" in shown
    assert "price unknown" in shown or "$" in shown
    assert out.getvalue().rstrip().endswith("\x1b[?25h"), "the cursor is back"


def test_without_a_terminal_there_is_a_line_now_and_then() -> None:
    board, out, now = _board(terminal=False)
    board.begin([])
    for id, moment in (("a", 1.0), ("b", LINE_SECONDS), ("c", LINE_SECONDS + 1), ("d", 2 * LINE_SECONDS)):
        now[0] = moment
        board.record(record(id))
    assert [line.split(" · ")[0] for line in out.getvalue().splitlines()] == ["2/5", "4/5"]


def test_quiet_says_nothing() -> None:
    board, out, now = _board(terminal=True, quiet=True)
    board.begin([record("a")])
    now[0] = 100.0
    board.record(record("b"))
    board.stop()
    assert out.getvalue() == ""


# interrupted


INTERRUPTED = f"""
import asyncio, signal, sys
if sys.argv[2:]:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
else:
    signal.signal(signal.SIGINT, signal.default_int_handler)
sys.path.insert(0, {str(Path(__file__).parents[2])!r})
from quorum.shell import Interrupted, interruptible

async def work():
    try:
        print("working", flush=True)
        await asyncio.sleep(60)
    finally:
        print("closing", flush=True)
        await asyncio.sleep(float(sys.argv[1]))
        print("closed", flush=True)

try:
    asyncio.run(interruptible(work(), lambda: print("told", flush=True)))
except Interrupted as ended:
    raise SystemExit(ended.status)
"""


@pytest.mark.parametrize(
    ("number", "again", "status", "said"),
    [
        (signal.SIGINT, False, 130, ["working", "told", "closing", "closed"]),
        (signal.SIGTERM, False, 143, ["working", "told", "closing", "closed"]),
        (signal.SIGINT, True, 130, ["working", "told", "closing"]),
    ],
)
def test_the_first_ctrl_c_ends_in_order_and_the_second_at_once(
    number: int, again: bool, status: int, said: list[str]
) -> None:
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "60" if again else "0.01"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    lines = [process.stdout.readline()]
    process.send_signal(number)
    if again:
        lines += [process.stdout.readline(), process.stdout.readline()]
        process.send_signal(number)
    rest, _ = process.communicate(timeout=WAIT)
    assert process.returncode == status
    assert [line.strip() for line in lines] + rest.split() == said


def test_a_signal_that_is_ignored_stays_ignored() -> None:
    """So that Ctrl-C does not end what a shell put in the background."""
    process = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED, "0.01", "ignore"], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "working\n"
    process.send_signal(signal.SIGINT)
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=WAIT)
    assert process.returncode == 143


# killed


VOTES = 2
ASKED = (
    "How many customers are there?",
    "How many orders are there?",
    "What are the names of all customers?",
    "What is the average total of orders?",
    "How many customers live in each city?",
    "What is the highest total of an order?",
)


def write_spider(folder: Path) -> Path:
    """Twelve questions on two SQLite files, in Spider 1.0's layout."""
    for name in ("north", "south"):
        (folder / "database" / name).mkdir(parents=True)
        with sqlite3.connect(folder / "database" / name / f"{name}.sqlite") as database:
            database.executescript(
                """
                CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT);
                CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
                                     total REAL);
                INSERT INTO customers VALUES (1, 'Ada', 'Ghent'), (2, 'Bo', 'Lyon'), (3, 'Cy', 'Lyon');
                INSERT INTO orders VALUES (1, 1, 10), (2, 2, 20), (3, 3, 5), (4, 3, 7);
                """
            )
        database.close()
    gold = "SELECT COUNT(*) FROM customers"
    entries = [
        {"db_id": name, "question": text, "query": gold} for name in ("north", "south") for text in ASKED
    ]
    (folder / "dev.json").write_text(json.dumps(entries))
    return folder


def _whole_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.heavy
def test_killed_twice_and_interrupted_once_it_ends_with_the_results_of_an_unbroken_run(
    workplace: Path, root: Path
) -> None:
    folder, chance = write_spider(workplace / "spider"), random.Random(4)
    given = ["spider1", "--data", str(folder), "--model", "offline", "--concurrency", "2", "--quiet"]
    given += ["--votes", str(VOTES)]
    results, runs = workplace / "broken" / "results.jsonl", workplace / "broken" / "runs"
    begun: Counter[str] = Counter()
    finishing = 1  # processes that finished a question: the last one, and those that came so far before
    ends = ((signal.SIGKILL, -9), (signal.SIGKILL, -9), (signal.SIGINT, 130))
    with Forked(workplace, root) as quorum:
        for number, status in ends:
            before = _whole_lines(results) if results.exists() else []
            quorum.start("eval", "run", *given, "--out", "broken", events=chance.randint(30, 60), end=number)
            assert quorum.wait() == status, (workplace / OUTPUT).read_text()
            lines = _whole_lines(results) if results.exists() else []
            assert lines[: len(before)] == before, "what was finished stays as it is"
            finishing += len(lines) > len(before)
            done = {json.loads(line)["id"] for line in lines}
            begun.update(run.parent.name for run in runs.glob("*/run.json") if run.parent.name not in done)
    assert "Interrupted. The same command goes on." in (workplace / OUTPUT).read_text()
    before = _whole_lines(results)
    assert run(*given, "--out", "broken").exit_code == 0
    assert run(*given, "--out", "whole").exit_code == 0
    lines = _whole_lines(results)
    assert lines[: len(before)] == before
    assert Counter(json.loads(line)["id"] for line in lines) == {f"{n:04}": 1 for n in range(12)}
    broken, whole = (EvalFolder(workplace / name).records() for name in ("broken", "whole"))
    assert differing(broken, whole) == {}
    assert begun, "somebody was under way"
    assert {id: broken[id].discarded for id in begun if not broken[id].resumed} == {}
    assert not any(each.resumed or each.discarded for each in whole.values())
    for id, each in broken.items():
        calls, unbroken = each.usage["model_calls"], whole[id].usage["model_calls"]
        # what was under way when the process was killed is called again, by each candidate at most
        assert unbroken <= calls <= unbroken + VOTES * begun[id]


@pytest.fixture
def bird(workplace: Path) -> Path:
    """A question that the offline model can answer."""
    data = workplace / "bird"
    write_database(data / "dev_databases" / "pets" / "pets.sqlite")
    entry = {"db_id": "pets", "question": "How many pet are there?", "SQL": "SELECT COUNT(*) FROM pet"}
    (data / "dev.json").write_text(json.dumps([entry, entry | {"db_id": "moon"}]))
    return data
