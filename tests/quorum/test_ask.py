"""``quorum ask`` and ``quorum demo`` as a user runs them, with the offline model on real databases."""

from __future__ import annotations

import csv
import json
import os
import signal
import socket
import subprocess
import sys
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

import quorum
from quorum import ask_sync
from quorum.graph.runs import RunFolder, list_runs
from quorum.graph.trace import Trace
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.sample import DEMO_QUESTIONS
from tests.engines import build
from tests.graph.shop import FINE, changed
from tests.quorum.conftest import python
from tests.quorum.conftest import quorum as command

QUESTION = "How many customers are there?"
OFFLINE = ("--model", "offline")
ask = partial(command, "ask")


@pytest.fixture
def shop(workplace: Path) -> str:
    rows = ", ".join(f"({n}, 'name {n}, \"the {n}th\"', 'city {n % 7}')" for n in range(1, 51))
    table = "CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)"
    return changed(workplace / "shop.db", table, f"INSERT INTO customers VALUES {rows}")


def test_a_question_that_is_not_utf_8_exits_with_2(shop: str, root: Path, workplace: Path) -> None:
    words = "Combien de cafés ?".encode("latin-1")
    for question in ("-", os.fsdecode(words)):
        given = ("-m", "quorum", "ask", question, "--db", shop, *OFFLINE, "--json")
        done = python(root, *given, input=words, text=False)
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["kind"] == "ConfigurationError"
    assert not (workplace / ".quorum" / "runs").exists()


def test_a_question_without_end_is_refused_before_anything_is_done(shop: str, workplace: Path) -> None:
    result = ask("Why? " * 200_000, "--db", shop, *OFFLINE)
    assert result.exit_code == 2
    assert "The question has 1,000,000 characters; 20,000 is the most." in result.stderr
    assert not (workplace / ".quorum" / "runs").exists()


def test_a_question_that_the_data_cannot_answer_exits_with_4_after_few_calls(shop: str) -> None:
    result = ask("What is our NPS score?", "--db", shop, *OFFLINE)
    assert result.exit_code == 4
    for said in (
        "The data cannot answer this",
        "Hardly a word of the question resembles anything in the",
    ):
        assert result.stdout.count(said) == 1
    found = ask("-", "--db", shop, *OFFLINE, "--json", given="What is our NPS score?")
    answer = json.loads(found.stdout)
    assert (answer["status"], answer["usage"]["model_calls"], found.stderr) == ("unanswerable", 3, "")


def test_rows_and_chart_go_to_files(shop: str, workplace: Path) -> None:
    question = ("How many customers are there in each city?", "--db", shop, *OFFLINE)
    files = ("--out", "new/rows.csv", "--out", "rows.parquet", "--chart", "chart.json", "--chart", "two.json")
    result = ask(*question, *files, "--quiet")
    assert result.exit_code == 0, result.output
    for name in files[1::2]:
        assert f"Written: {name} (7 rows)\n" in result.stderr
        assert (workplace / name).is_file()
    rows = list(csv.reader((workplace / "new" / "rows.csv").open(encoding="utf-8")))
    assert len(rows) == 8
    (panel,) = json.loads((workplace / "chart.json").read_text(encoding="utf-8"))["vconcat"]
    assert panel["layer"][0]["mark"] == "bar"
    again = ask("--resume", "last", "--out", "rows.json", "--csv")  # an answer that is there is written too
    assert again.stdout == (workplace / "new" / "rows.csv").read_text(encoding="utf-8")
    assert "This run has ended; nothing is asked again." in again.stderr
    assert len(json.loads((workplace / "rows.json").read_text(encoding="utf-8"))["rows"]) == 7


def test_files_that_cannot_be_written_are_refused_before_anything_is_asked(
    shop: str, workplace: Path
) -> None:
    for flags in (
        ("--out", "rows.txt"),
        ("--chart", "chart.csv"),
        ("--out", "a.json", "--chart", "a.json"),
        ("--out", "a.csv") * 2,
        ("--out", "shop.db/rows.csv"),
    ):
        result = ask(QUESTION, "--db", shop, *OFFLINE, *flags)
        assert result.exit_code == 2
        assert not (workplace / ".quorum").exists()


def test_what_has_no_result_or_no_chart_is_said(shop: str, workplace: Path) -> None:
    spent = ask(QUESTION, "--db", shop, *OFFLINE, "--max-calls", "1", "--votes", "3", "--out", "rows.csv")
    assert (spent.exit_code, "max_calls" in spent.stdout) == (3, True)
    late = ask(QUESTION, "--db", shop, *OFFLINE, "--deadline", "1ms", "--out", "late.csv")
    assert late.exit_code == 3
    assert "There is no result: late.csv is not written." in late.stderr
    given = ("--out", "rows.csv", "--chart", "chart.json", "--max-rows", "30")
    result = ask("List all names of customers", "--db", shop, *OFFLINE, *given)
    assert result.exit_code == 0
    assert "Written: rows.csv (30 rows)" in result.stderr
    assert "Warning: The result was cut at 30 rows (limit: rows)." in result.stderr
    assert "These rows have no chart: no column holds numbers to draw. chart.json is not" in result.stderr
    assert not (workplace / "chart.json").exists()


@pytest.mark.heavy
def test_ctrl_c_says_how_to_go_on_with_this_very_run(shop: str, workplace: Path, root: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts and never replies
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/v1"
        arguments = [QUESTION, "--db", shop, "--model", "openai:m", "--base-url", url]
        process = subprocess.Popen(
            [sys.executable, "-m", "quorum", "ask", *arguments],
            cwd=workplace,
            env=os.environ | {"PYTHONPATH": str(root), "OPENAI_API_KEY": "none"},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # background jobs ignore it
        )
        silent.settimeout(60)
        connection, _ = silent.accept()  # the planner is waiting for its reply
        (run,) = (workplace / ".quorum" / "runs").iterdir()
        Trace.create(workplace / ".quorum", meta={"question": "a later run"}).close()
        with connection:
            process.send_signal(signal.SIGINT)
            stdout, stderr = process.communicate(timeout=30)
    assert process.returncode == 130
    assert f"quorum ask --resume {run.name}" in stderr
    assert "Traceback" not in stderr
    assert stdout == ""
    statuses = {found.id: found.status for found in list_runs(workplace / ".quorum")}
    assert statuses[run.name] == "unfinished"
    assert ask("--resume", run.name, "--json").exit_code == 2  # found again; its endpoint is gone now


def interrupted_at(place: str, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> Result:
    """Return what a command says if Ctrl-C comes when ``place`` is called."""

    def interrupt(*_: Any, **__: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(place, interrupt)
        result = ask(*arguments)
    assert result.exit_code == 130, result.output
    return result


BEFORE = ("quorum.settings.Settings.run_options", "quorum.api.ask", "quorum.files.check_file")
AFTER = ("quorum.commands.ask.print_answer", "quorum.files.write_rows")


@pytest.mark.heavy
def test_a_start_that_is_interrupted_can_be_resumed(
    shop: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the database is just being opened; ``last`` is no other question then."""
    assert ask("How many cities are there?", "--db", "sample", "--model", "offline").exit_code == 0
    for place, database in (
        ("quorum.graph.resources.open_resources", "postgresql://me:hush-hush@h/d"),
        ("quorum.graph.resources.connect_all", shop),
        ("quorum.graph.resources.read_catalog", shop),
    ):
        result = interrupted_at(place, monkeypatch, QUESTION, "--db", database, *OFFLINE)
        (latest, *_) = list_runs(workplace / ".quorum")
        assert (latest.question, latest.status) == (QUESTION, "unfinished")
        kept = f"Interrupted. What is finished is kept; go on with: quorum ask --resume {latest.id}"
        assert kept in result.stderr
        assert "hush" not in (workplace / ".quorum" / "runs" / latest.id / "run.json").read_text()
    result = ask("--resume", "last")
    shown = result.stderr.splitlines()
    assert shown[:2] == [f"Run {latest.id}: {QUESTION}", f"Database: sqlite:///{workplace}/shop.db"]
    assert "SELECT" in result.stdout
    assert "nothing is asked again" in ask("--resume", "last", "--csv").stderr


@pytest.mark.parametrize(
    ("place", "said"),
    [
        *((place, "Nothing was begun. `last` still means an earlier run.") for place in BEFORE),
        *((place, "The answer is kept; show it with: quorum ask --resume {}") for place in AFTER),
    ],
)
def test_an_interruption_before_or_after_a_run_says_what_is_kept(
    place: str, said: str, shop: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    result = interrupted_at(place, monkeypatch, QUESTION, "--db", shop, *OFFLINE, "--out", "rows.csv")
    runs = [run.id for run in list_runs(workplace / ".quorum")]
    assert len(runs) == (place in AFTER)
    assert said.format(*runs) in result.stderr


@pytest.mark.heavy
def test_the_demo_answers_all_its_questions(workplace: Path) -> None:
    result = command("demo")
    assert result.exit_code == 0, result.output
    for sample in DEMO_QUESTIONS:
        assert sample.question in result.stdout
    assert result.stdout.count("Demonstration") == len(DEMO_QUESTIONS)
    assert "SelfRefiner" in result.stderr
    recipes = {
        json.loads(path.read_text())["options"]["recipe"]
        for path in workplace.glob(".quorum/runs/*/run.json")
    }
    assert recipes == {quorum.Settings.model_fields["recipe"].default}
    assert (workplace / ".quorum" / "sample").is_dir()


# Several databases in one question.


SQL = (
    "SELECT c.name, sum(o.amount) AS total FROM shop.main.orders AS o "
    "JOIN crm.main.customers AS c ON c.id = o.customer WHERE o.id > 1 GROUP BY c.name"
)
SAID = {"sql_writer": {"reasoning": "Join.", "sql": SQL, "readings": [], "ordered": False}, "validator": FINE}
SPENT = "How much did each customer spend?"


@pytest.fixture
def two(workplace: Path) -> list[str]:
    build(
        "sqlite",
        workplace / "shop.db",
        "CREATE TABLE orders (id INTEGER PRIMARY KEY, customer INTEGER, amount REAL);"
        "INSERT INTO orders VALUES (1, 1, 1), (2, 1, 2), (3, 2, 4)",
    )
    build(
        "duckdb",
        workplace / "crm.duckdb",
        "CREATE TABLE customers (id INTEGER, name VARCHAR);"
        "INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bo')",
    )
    replies = ({"agent": role, "reply": said} for role, said in SAID.items())
    (workplace / "said.jsonl").write_text("\n".join(map(json.dumps, replies)))
    return ["sqlite:///shop.db", "crm.duckdb"]


def test_a_question_on_the_command_line(two: list[str]) -> None:
    flags = ["--db", two[0], "--db", two[1], "--model", "offline", "--votes", "1"]
    flags += ["--model-for", "writing=replay:said.jsonl"]
    answered = command("ask", SPENT, *flags)
    assert answered.exit_code == 0, answered.output
    for said in (
        "Ann",
        "Bo",
        "Read in each database:",
        'shop, 2 rows, 48 B: SELECT "p"."id", "p"."customer"',
        "crm, read in place: main.customers",
    ):
        assert said in answered.stdout
    shown = command("trace", "show", "last").stdout
    assert "2 parts read" in shown
    assert 'FROM "orders" AS "p" WHERE' in shown
    assert command("trace", "show", "last", "--html", "run.html").exit_code == 0
    page = Path("run.html").read_text()
    assert "Read in each database" in page
    for text in (shown, page):
        assert "writing replay:said.jsonl" in text
        costs = text.lower().partition("cost by model")[2]
        assert "offline:demo" in costs
        assert "replay:said.jsonl" in costs
    assert "table crm.main.customers" in command("schema", "show", "shop.db", "crm.duckdb").stdout
    assert "\n  crm, read in place: main.customers" in command("guard", SQL, *flags[:4]).stdout
    meta = RunFolder.open(Path(".quorum"), "last").meta()
    assert [Path(url).name for url in meta["options"]["database"]] == ["shop.db", "crm.duckdb"]
    assert command("keep", "last").exit_code == 0
    again = command("ask", SPENT, "--db", two[0], "--db", two[1], "--model", "offline")
    assert "verified by" in again.stdout


def test_one_that_cannot_be_opened_is_named_and_no_password_is(two: list[str], workplace: Path) -> None:
    with pytest.raises(DatabaseUnavailable, match=r"absent\.db"):
        ask_sync(SPENT, db=[two[0], "sqlite:///absent.db"], models=["offline"])
    pytest.importorskip("psycopg")
    url = "postgresql://me:hush-hush@127.0.0.1:1/db"
    failed = command("ask", SPENT, "--db", two[0], "--db", url, "--model", "offline")
    assert failed.exit_code == 2
    assert "127.0.0.1:1/db cannot be opened" in failed.output
    assert "hush-hush" not in failed.output
    assert not list(Path(".quorum").rglob("events.jsonl"))
