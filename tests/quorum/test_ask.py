"""``quorum ask`` and ``quorum demo`` as a user runs them, with the offline model on real databases."""

from __future__ import annotations

import csv
import io
import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

import quorum
from quorum.cli import cli
from quorum.graph.runs import list_runs
from quorum.graph.trace import Trace
from quorum.tools.sample import DEMO_QUESTIONS
from tests.quorum.terminal import hear_ctrl_c
from tests.servers.chat_server import ChatServer, status

QUESTION = "How many customers are there?"
OFFLINE = ("--model", "offline")


def ask(*arguments: str, given: str | None = None) -> Result:
    result = CliRunner().invoke(cli, ["ask", *arguments], input=given)
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def shop(workplace: Path) -> str:
    import sqlite3

    connection = sqlite3.connect(workplace / "shop.db")
    connection.execute("CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, city TEXT)")
    rows = [(n, f'name {n}, "the {n}th"', f"city {n % 7}") for n in range(1, 51)]
    connection.executemany("INSERT INTO customers VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    return "sqlite:///shop.db"


def test_a_trace_says_what_each_model_cost(shop: str, workplace: Path) -> None:
    (workplace / "said.json").write_text('{"sql_writer": {"reasoning": "So.", "sql": "SELECT town"}}')
    ask(QUESTION, "--db", shop, *OFFLINE, "--model-for", "writing=scripted:said.json", "--votes", "1")
    shown = CliRunner().invoke(cli, ["trace", "show", "last", "--html", "page.html"])
    terminal = CliRunner().invoke(cli, ["trace", "show", "last"]).stdout
    assert shown.exit_code == 0
    for text in (terminal, (workplace / "page.html").read_text()):
        assert "writing scripted:said.json" in text
        after = text.lower().partition("cost by model")[2]
        assert "offline:demo" in after
        assert "scripted:said.json" in after


def test_quiet_says_nothing_on_standard_error(shop: str) -> None:
    assert ask(QUESTION, "--db", shop, *OFFLINE, "--quiet").stderr == ""


def test_json_is_one_object_and_nothing_else(shop: str) -> None:
    result = ask("-", "--db", shop, *OFFLINE, "--json", "--votes", "2", given=QUESTION)
    answer = json.loads(result.stdout)
    assert result.stderr == ""
    assert answer["status"] == "answered"
    assert answer["rows"] == [[50]]
    assert (answer["demonstration"], answer["confidence"]) == (True, 0), "it is not rated"
    assert len(answer["candidates"]) == 2
    assert answer["usage"]["model_calls"] > 0


@pytest.mark.parametrize("piped", [False, True])
def test_a_question_that_is_not_utf_8_exits_with_2(
    shop: str, root: Path, workplace: Path, piped: bool
) -> None:
    words = "Combien de cafés ?".encode("latin-1")
    question = "-" if piped else os.fsdecode(words)
    command = [sys.executable, "-m", "quorum", "ask", question, "--db", shop, *OFFLINE, "--json"]
    env = os.environ | {"PYTHONPATH": str(root)}
    done = subprocess.run(command, input=words, env=env, capture_output=True, timeout=60, check=False)
    assert done.returncode == 2
    assert json.loads(done.stdout)["error"]["kind"] == "ConfigurationError"
    assert not (workplace / ".quorum" / "runs").exists()


def test_a_question_without_end_is_refused_before_anything_is_done(shop: str, workplace: Path) -> None:
    result = ask("Why? " * 200_000, "--db", shop, *OFFLINE)
    assert result.exit_code == 2
    assert "The question has 1,000,000 characters; 20,000 is the most." in result.stderr
    assert not (workplace / ".quorum" / "runs").exists()


def test_a_preset_is_asked_for_by_name_and_an_unknown_one_is_named(shop: str) -> None:
    first = ("--recipe", "reforce", "--preset", "v1")
    answer = json.loads(ask(QUESTION, "--db", shop, *OFFLINE, *first, "--json").stdout)
    assert answer["rows"] == [[50]]
    assert [each["confirmed"] for each in answer["candidates"]] == [True] * 3
    assert {"column_explorer", "format_writer", "self_checker"} <= answer["usage"]["by_agent"].keys()
    unknown = ask(QUESTION, "--db", shop, *OFFLINE, "--recipe", "reforce", "--preset", "v9")
    assert unknown.exit_code == 2
    assert "'v9'" in unknown.stderr
    assert "v1" in unknown.stderr


def test_csv_holds_every_row_not_only_the_preview(shop: str) -> None:
    result = ask("List all names of customers", "--db", shop, *OFFLINE, "--csv")
    assert result.exit_code == 0
    rows = list(csv.reader(io.StringIO(result.stdout)))
    assert len(rows) == 51
    assert rows[1] == ['name 1, "the 1th"']


def test_a_question_that_the_data_cannot_answer_exits_with_4_after_few_calls(shop: str) -> None:
    result = ask("What is our NPS score?", "--db", shop, *OFFLINE)
    assert result.exit_code == 4
    assert result.stdout.count("The data cannot answer this") == 1
    assert result.stdout.count("Hardly a word of the question resembles anything in the schema.") == 1
    assert "Try another model" not in result.stdout
    found = json.loads(ask("What is our NPS score?", "--db", shop, *OFFLINE, "--json").stdout)
    assert (found["status"], found["usage"]["model_calls"]) == ("unanswerable", 3)


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


def test_a_cut_result_says_so_beside_its_file(shop: str) -> None:
    question = ("List all names of customers", "--db", shop, *OFFLINE, "--max-rows", "30")
    result = ask(*question, "--out", "rows.csv", "--quiet")
    assert "Written: rows.csv (30 rows)" in result.stderr
    assert "Warning: The result was cut at 30 rows (limit: rows)." in result.stderr


def test_files_that_cannot_be_written_are_refused_before_anything_is_asked(
    shop: str, workplace: Path
) -> None:
    for flags in (
        ("--out", "rows.txt"),
        ("--chart", "chart.csv"),
        ("--out", "a.json", "--chart", "a.json"),
        ("--out", "a.csv") * 2,
    ):
        result = ask(QUESTION, "--db", shop, *OFFLINE, *flags)
        assert result.exit_code == 2
        assert not (workplace / ".quorum").exists()


def test_what_has_no_result_or_no_chart_is_said(shop: str, workplace: Path) -> None:
    result = ask(QUESTION, "--db", shop, *OFFLINE, "--deadline", "1ms", "--out", "rows.csv")
    assert result.exit_code == 3
    assert "There is no result: rows.csv is not written." in result.stderr
    result = ask(QUESTION, "--db", shop, *OFFLINE, "--out", "rows.csv", "--chart", "chart.json")
    assert result.exit_code == 0
    assert "These rows have no chart: a chart needs two rows. chart.json is not written." in result.stderr
    assert not (workplace / "chart.json").exists()
    assert (workplace / "rows.csv").read_text(encoding="utf-8").endswith("\n50\n")


def test_a_spent_budget_exits_with_3_and_says_so(shop: str) -> None:
    result = ask(QUESTION, "--db", shop, *OFFLINE, "--votes", "3", "--max-calls", "1")
    assert result.exit_code == 3
    assert "max_calls" in result.stdout


@pytest.mark.parametrize("url", ["sqlite:///missing.db", "sqlite:///empty.db", "cobol://h/db"])
def test_a_database_that_cannot_be_used_exits_with_2(workplace: Path, url: str) -> None:
    (workplace / "empty.db").write_bytes(b"")
    result = ask(QUESTION, "--db", url, *OFFLINE)
    assert result.exit_code == 2
    assert "Error: " in result.stderr
    assert "Traceback" not in result.stderr


def test_an_error_gives_its_hint_once(workplace: Path) -> None:
    result = ask(QUESTION, "--db", "nope.db", *OFFLINE)
    assert result.exit_code == 2
    assert result.stderr.count("Name a database file") == 1


@pytest.mark.heavy
def test_rows_that_nobody_reads_to_the_end_are_no_failure(shop: str, root: Path) -> None:
    command = [sys.executable, "-m", "quorum", "ask", "List all names of customers", "--db", shop, *OFFLINE]
    process = subprocess.Popen(
        [*command, "--csv"],
        env=os.environ | {"PYTHONPATH": str(root)},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None
    process.stdout.close()  # as `| true` does
    _, said = process.communicate(timeout=60)
    assert process.returncode == 0
    assert b"Broken pipe" not in said
    assert b"Exception ignored" not in said


def test_an_unreachable_model_exits_with_2(shop: str) -> None:
    result = ask(QUESTION, "--db", shop, "--model", "openai:m", "--base-url", "http://127.0.0.1:9/v1")
    assert result.exit_code == 2
    assert "127.0.0.1:9" in result.stderr
    assert "quorum ask --resume 2" in result.stderr


def test_what_an_endpoint_says_moves_no_cursor(shop: str) -> None:
    with ChatServer([status(400, "no \x1b[2J\x1b]0;pwned\x07 \u202e such model")]) as server:
        result = ask(QUESTION, "--db", shop, "--model", "openai:m", "--base-url", server.url)
    assert result.exit_code == 2
    assert "such model" in result.stderr
    assert not set(result.output) & set("\x1b\x07\u202e")


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
            preexec_fn=hear_ctrl_c,
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
        result = CliRunner().invoke(cli, ["ask", *arguments])
    assert result.exit_code == 130, result.output
    return result


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
    "place",
    ["quorum.settings.Settings.run_options", "quorum.api.ask", "quorum.files.check_file"],
)
def test_an_interruption_before_a_run_is_begun_says_so(
    place: str, shop: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    given = (QUESTION, "--db", shop, "--model", "offline", "--out", "rows.csv")
    result = interrupted_at(place, monkeypatch, *given)
    assert "Interrupted. Nothing was begun. `last` still means an earlier run." in result.stderr
    assert not (workplace / ".quorum").exists()


def test_an_interruption_after_the_answer_says_where_that_is(
    shop: str, workplace: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for place in ("quorum.commands.ask.print_answer", "quorum.files.write_file"):
        given = (QUESTION, "--db", shop, "--model", "offline", "--out", "rows.csv")
        result = interrupted_at(place, monkeypatch, *given)
        (latest, *_) = list_runs(workplace / ".quorum")
        assert f"The answer is kept; show it with: quorum ask --resume {latest.id}" in result.stderr


@pytest.mark.heavy
def test_the_demo_answers_all_its_questions(workplace: Path) -> None:
    result = CliRunner().invoke(cli, ["demo"])
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


def test_the_names_of_the_package_are_loaded_when_used() -> None:
    assert quorum.Settings.__module__ == "quorum.settings"
    assert quorum.Answer.__module__ == "quorum.answer"
    assert callable(quorum.ask)
    assert callable(quorum.ask_sync)
    with pytest.raises(AttributeError, match="has no attribute 'aks'"):
        _ = quorum.aks
    assert {"ask", "ask_sync", "Settings", "Answer"} <= set(dir(quorum))
