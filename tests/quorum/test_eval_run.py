"""``quorum eval run``: what it says, how it ends, and that the same command goes on whatever ended it."""

from __future__ import annotations

import json
import random
import re
import signal
import subprocess
import sys
from collections import Counter
from functools import partial
from pathlib import Path

import pytest

from quorum.eval_progress import Tally
from quorum.evals.folder import EvalFolder
from quorum.evals.questions import Suite
from quorum.evals.records import CandidateRow
from quorum.evals.scorers.own import OwnScorer
from tests.evals.evaluations import differing, record, usage
from tests.evals.running import questions, shops
from tests.quorum.conftest import quorum
from tests.quorum.forked import OUTPUT, Forked
from tests.servers.chat_server import closed_port
from tests.servers.clock import skip_waits

__all__ = ["shops"]

run = partial(quorum, "eval", "run")


@pytest.fixture
def suite(shops: object, workplace: Path, monkeypatch: pytest.MonkeyPatch) -> Suite:
    """What ``shops`` as a suite's name stands for: nine questions on two databases."""
    made = Suite("shops", workplace, questions(9, shops=2), OwnScorer(), ("Nothing but shops.",))
    monkeypatch.setattr("quorum.commands.eval_run.open_suite", lambda *_: made)
    return made


OFFLINE = ("--model", "offline", "--recipe", "single")


def test_it_says_how_it_went_and_how_to_report(suite: Suite, workplace: Path) -> None:
    (workplace / "ids.txt").write_text("q07\nq01\nq03\n")
    result = run("shops", *OFFLINE, "--ids", "ids.txt", "--out", "kept")
    assert result.exit_code == 0, result.output
    for said in (
        "Missing: Nothing but shops.\n",
        "shops · 3 questions · 8 at a time · recipe single · offline\n",
        "Kept in kept\n",
    ):
        assert said in result.stderr
    first, figures, *_, last = result.stdout.splitlines()
    assert first.startswith("Demonstration: ")
    figure = r"\d+\.\d %"
    assert re.match(
        rf"3 of 3 questions · EX {figure} ± \S+ · executes {figure} · 3 model calls · .* · \$0.00", figures
    )
    assert last == "Kept in kept; report: quorum eval report kept"
    assert EvalFolder(workplace / "kept").records().keys() == {"q01", "q03", "q07"}


def test_json_is_one_object(suite: Suite) -> None:
    result = run("shops", *OFFLINE, "--shard", "2/4", "--json", "--quiet")
    found = json.loads(result.stdout)
    about = {"status": "finished", "asked": 2, "ended": 2, "finished": 2, "shard": "2/4"}
    assert found.items() >= (about | {"missing": ["Nothing but shops."]}).items()
    assert found["folder"].endswith("shops-single-offline-2of4")
    assert 0 <= found["ex"] <= 1
    assert result.stderr == ""
    sampled = run("shops", *OFFLINE, "--sample", "2", "--json", "--out", "sampled")
    assert json.loads(sampled.stdout)["asked"] == 2


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


def test_a_mistake_of_use_exits_with_2_and_leaves_nothing(suite: Suite, workplace: Path) -> None:
    for arguments, said in (
        ((), "No model is configured"),
        (("--model", "openai:gpt-4.1"), "API key"),
        ((*OFFLINE, "--clarify", "me"), "'gold', 'off'"),
        ((*OFFLINE, "--sample", "easy:0"), "no sample"),
        ((*OFFLINE, "--sample", "easy:1", "--sample", "easy:2"), "each group once"),
        ((*OFFLINE, "--shard", "9/8"), "no shard"),
        ((*OFFLINE, "--ids", "nowhere.txt"), "nowhere.txt"),
    ):
        result = run("shops", *arguments)
        assert (result.exit_code, said in result.stderr) == (2, True), result.output
        assert not (workplace / ".quorum" / "evals").exists()


def test_a_simulated_user_has_an_evaluation_of_its_own(
    suite: Suite, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("QUORUM_CLARIFY", "true")
    refused = run("shops", *OFFLINE, "--limit", "1")
    assert (refused.exit_code, "--clarify off" in refused.stderr) == (2, True)
    assert run("shops", *OFFLINE, "--limit", "1", "--clarify", "off", "--out", "off").exit_code == 0
    result = run("shops", *OFFLINE, "--limit", "1", "--clarify", "gold")
    assert result.exit_code == 0
    assert "a simulated user may be asked" in result.stderr
    (folder,) = (workplace / ".quorum" / "evals").iterdir()
    assert "clarified" in folder.name
    (record,) = EvalFolder(folder).records().values()
    assert record.asking is not None


# the tally


def test_the_tally_counts_what_the_records_say() -> None:
    tally = Tally(10)
    lost = (CandidateRow("c1", "m", "", None, "model_unavailable"),)
    fault = {"status": "failed", "sql": "", "executes": None, "match": None, "usage": {}}
    for each in (
        record("a", usage=usage(usd=0.25), candidates=lost),
        record("b", match=False, usage=usage(usd=0.25)),
        record("c", status="no_answer", error="syntax", executes=False, match=False, usage=usage(usd=0.5)),
        record("d", error="endpoint", **fault),
        record("e", error="fault", message="Traceback\n  File x\nKeyError: 'y'\n", **fault),
    ):
        tally.add(each)
    found = tally.summary()
    assert (found["ended"], found["answered"], found["executes"]) == (5, 2, 2 / 3)
    assert (found["ex"], found["usd"], found["with_fewer_candidates"]) == (0.2, 1.0, 1)
    assert found["errors"] == {"syntax": 1, "endpoint": 1, "fault": 1}
    said = "\n".join(tally.closing())
    assert "5 of 10 questions · EX 20.0 % ± 20.0" in said
    assert "Errors: syntax 1, endpoint 1, fault 1." in said
    assert "1 answer with fewer candidates" in said
    assert "Fault in e: KeyError: 'y'" in said
    tally.add(record("f", usage=usage(usd=None)))
    assert "price unknown" in tally.line()


# interrupted


INTERRUPTED = f"""
import asyncio, signal, sys
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


def test_the_first_ctrl_c_ends_in_order_and_the_second_at_once() -> None:
    for number, again, status, said in (
        (signal.SIGINT, False, 130, ["working", "told", "closing", "closed"]),
        (signal.SIGTERM, False, 143, ["working", "told", "closing", "closed"]),
        (signal.SIGINT, True, 130, ["working", "told", "closing"]),
    ):
        process = subprocess.Popen(
            [sys.executable, "-c", INTERRUPTED, "60" if again else "0.01"], stdout=subprocess.PIPE, text=True
        )
        lines = [process.stdout.readline()]
        process.send_signal(number)
        if again:
            lines += [process.stdout.readline(), process.stdout.readline()]
            process.send_signal(number)
        rest, _ = process.communicate(timeout=60)
        assert process.returncode == status
        assert [line.strip() for line in lines] + rest.split() == said


# killed


VOTES = 2
ASKED = """How many customers are there?
How many orders are there?
What are the names of all customers?
What is the average total of orders?
How many customers live in each city?
What is the highest total of an order?
"""


def _whole_lines(path: Path) -> list[str]:
    return [line for line in path.read_text().splitlines(keepends=True) if line.endswith("\n")]


@pytest.mark.heavy
def test_killed_twice_and_interrupted_once_it_ends_with_the_results_of_an_unbroken_run(
    shop: str, workplace: Path, root: Path
) -> None:
    asked = [{"question": text, "sql": "SELECT COUNT(*) FROM customers"} for text in ASKED.splitlines() * 2]
    (workplace / "own.jsonl").write_text("".join(json.dumps(each) + "\n" for each in asked))
    chance = random.Random(4)
    given = ["own.jsonl", "--db", shop, "--model", "offline", "--concurrency", "2", "--quiet"]
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
