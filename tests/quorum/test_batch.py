"""``quorum batch``: rows in, the same rows with their answers out, whatever ended it before."""

from __future__ import annotations

import csv
import json
import random
import shlex
import signal
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from quorum.commands.batch import ANSWER
from quorum.graph.runs import RunFolder
from quorum.tools.results.files import csv_lines
from tests.evals.simulated import make_suite
from tests.quorum.conftest import quorum
from tests.quorum.forked import OUTPUT, Forked
from tests.servers.chat_server import Answer, ChatServer, Request, closed_port, say, tokens
from tests.servers.clock import skip_waits
from tests.servers.replies import _QUESTION, reply_to

OFFLINE = ("--model", "offline", "--recipe", "single", "--db", "sqlite:///shop.db")
batch = partial(quorum, "batch")
COUNT = "How many customers are there?"
ROWS = [
    {"nr": "007", "question": COUNT, "sql": "old"},
    {"nr": None, "question": " ", "sql": None},
    {"nr": "8,5", "question": "What are the names of\nall customers?", "sql": ""},
]


def write(path: Path, rows: list[dict[str, Any]]) -> Path:
    table = pa.Table.from_pylist(rows)
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    elif path.suffix == ".csv":
        path.write_text("".join(csv_lines(table)), newline="")
    else:
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def read(path: Path) -> list[dict[str, Any]]:
    if path.suffix == ".csv":
        with path.open(newline="") as file:
            return [{n: v or None for n, v in row.items()} for row in csv.DictReader(file)]
    if path.suffix == ".parquet":
        return pq.read_table(path).to_pylist()
    return [json.loads(line) for line in path.read_text().splitlines()]


@pytest.mark.parametrize(("given", "out"), [("csv", "parquet"), ("parquet", "jsonl"), ("jsonl", "csv")])
def test_rows_stay_as_they_are_and_get_their_answers(shop: str, given: str, out: str) -> None:
    file = write(Path(f"q.{given}"), ROWS)
    result = batch(str(file), *OFFLINE, "--out", f"a.{out}")
    assert (result.exit_code, result.stdout) == (0, ""), result.output
    assert f"q.{given} · 2 questions · 8 at a time · recipe single · offline\n" in result.stderr
    assert f"Kept in a.{out}.batch" in result.stderr
    assert "2 of 2 questions · 2 answered · 2 model calls" in result.stderr
    assert f"Written: a.{out} (2 answered, 1 failed; columns answer_status and so on)" in result.stderr
    rows = read(Path(f"a.{out}"))
    assert list(rows[0]) == ["nr", "question", "sql", *(f"answer_{name}" for name in ANSWER)]
    empty = (None, "") if "csv" in (given, out) else ("",)  # CSV knows no empty text
    assert [(row["nr"], row["question"]) for row in rows] == [(row["nr"], row["question"]) for row in ROWS]
    assert rows[2]["sql"] in empty
    first, second, third = rows
    assert json.loads(first["answer_rows"]) == [{"count": 3}]
    assert (str(first["answer_row_count"]), first["answer_run"]) == ("1", f"a.{out}.batch/runs/0001")
    assert (second["answer_status"], second["answer_error"]) == ("failed", "The question is empty.")
    assert third["answer_sql"].startswith("SELECT")
    assert RunFolder.open(Path("nowhere"), first["answer_run"]).meta()["question"] == COUNT


def test_types_of_parquet_are_kept_and_those_of_json_lines_found(shop: str) -> None:
    ones, asked = pa.array([[1]], pa.list_(pa.int8())), pa.array([COUNT], pa.large_string())
    table = pa.table({"n": ones, "question": asked})
    pq.write_table(table, "q.parquet")
    assert batch("q.parquet", *OFFLINE, "--out", "a.parquet").exit_code == 0
    found = pq.read_table("a.parquet")
    assert found.schema.names == ["n", "question", *ANSWER]
    assert found.select([0, 1]).schema.equals(table.schema)
    assert (found["row_count"].to_pylist(), found["usd"].to_pylist()) == ([1], [0.0])
    lines = [{"question": COUNT, "a": 1, "b": {"x": [1]}}, {"c": "text", "a": 2.5, "question": ""}]
    write(Path("q.jsonl"), lines)
    assert batch("q.jsonl", *OFFLINE, "--out", "a.jsonl").exit_code == 0
    kept = [{n: row[n] for n in row if n not in ANSWER} for row in read(Path("a.jsonl"))]
    assert kept == [{"b": None, "c": None} | row for row in lines]


MISTAKES = {
    "nothing.csv": "cannot be read",
    "q.txt": "q.txt ends in .txt, which names no format. Known: .csv, .jsonl, .parquet",
    "q.csv --column text": "has no column 'text'. It has nr, question, sql; name the one with the questions",
    "q.csv --out q.csv": "q.csv is there, and no batch wrote it",
    "blank.csv": "No row of blank.csv has a question",
    "twice.csv": "has two columns 'b'",
    "empty.jsonl --out a.parquet": "a.parquet cannot hold the rows",
    "number.parquet": "Row 2 of number.parquet: the question is no text but 42",
    "q.csv --out a.csv --rows q.txt": "q.txt is a file, not a folder",
    "long.csv": "Row 1 of long.csv: the question has 20,001 characters",
    "far.csv": "Row 2 of far.csv: its database cannot be used",
    "q.csv --workers 9": "9 workers cannot share 8 questions",
}


def test_a_mistake_of_use_is_said_before_anything_is_asked(shop: str, subtests: pytest.Subtests) -> None:
    write(Path("q.csv"), ROWS)
    write(Path("q.parquet"), ROWS)
    for name, text in {
        "q.txt": "question\nHow many?\n",
        "blank.csv": "question,b\n,1\n",
        "long.csv": f"question\n{'?' * 20_001}\n",
        "twice.csv": "question,b,b\n?,1,2\n",
        "empty.jsonl": '{"question": "?", "x": {}}\n',
        "far.csv": f"question,db\n{COUNT},\n{COUNT},cobol://far\n",
    }.items():
        Path(name).write_text(text)
    pq.write_table(pa.table({"question": [None, 42]}), "number.parquet")
    before = sorted(Path().iterdir())
    for arguments, said in MISTAKES.items():
        with subtests.test(arguments):
            file, *more = shlex.split(arguments)
            more = more if "--out" in more else [*more, "--out", "a.csv"]
            result = batch(file, *more, *OFFLINE)
            assert (result.exit_code, said in result.output) == (2, True), result.output
            assert sorted(Path().iterdir()) == before


def test_the_same_command_asks_nothing_again_and_further_rows_only(shop: str) -> None:
    given = ("q.csv", *OFFLINE, "--out", "a.csv", "--rows", "rows")
    write(Path("q.csv"), [{"question": COUNT}])
    assert batch(*given).exit_code == 0
    lines = Path("a.csv.batch/results.jsonl").read_text()
    (row,) = read(Path("a.csv"))
    assert (row["rows"], Path("rows/0001.csv").read_text()) == ("rows/0001.csv", "count\n3\n")
    write(Path("q.csv"), [{"question": COUNT}, {"question": COUNT}])
    for command in (("keep",), ("trace", "show")):
        assert quorum(*command, row["run"]).exit_code == 0
    Path(row["run"], "answer.json").unlink()
    resumed = quorum("ask", "--csv", "--resume", row["run"])
    assert resumed.stdout == "count\n3\n", resumed.output
    result = batch(*given)
    assert "Going on: 1 question finished before." in result.stderr
    assert Path("a.csv.batch/results.jsonl").read_text().startswith(lines)
    assert [row["model_calls"] for row in read(Path("a.csv"))] == ["1", "0"], "what was kept meanwhile counts"
    write(Path("q.csv"), [{"question": "How many orders are there?"}, {"question": COUNT}])
    changed = batch(*given)
    assert (changed.exit_code, "another question 0001: its text changed" in changed.output) == (2, True)
    assert len(read(Path("a.csv"))) == 2, "the answers stay"


def test_without_an_endpoint_rows_stay_open(shop: str, monkeypatch: pytest.MonkeyPatch) -> None:
    skip_waits(monkeypatch)
    monkeypatch.setenv("QUORUM_CLARIFY", "on")  # nobody can be asked
    given = ("--model", "openai:m", "--base-url", f"http://127.0.0.1:{closed_port()}/v1")
    result = batch(str(write(Path("q.csv"), ROWS)), *OFFLINE[2:], *given, "--out", "a.csv")
    assert (result.exit_code, "2 failed for want of an endpoint" in result.stderr) == (1, True), result.output
    rows = read(Path("a.csv"))
    assert [row["answer_status"] for row in rows] == ["open", "failed", "open"]
    assert "No connection to" in rows[0]["answer_error"]


# killed

PRICE = {"input": 2.0, "output": 8.0}
CALL = (1000 * PRICE["input"] + 100 * PRICE["output"]) / 1e6
KILLS, QUESTIONS, TOTAL = 5, 200, 0.4


@pytest.mark.heavy
def test_killed_five_times_each_question_is_asked_once_and_the_total_holds(
    workplace: Path, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    billed: Counter[int] = Counter()

    def reply(request: Request) -> Answer:
        billed[int(_QUESTION.findall(request.text)[-1])] += 1
        return say(reply_to(request.text), usage=tokens(1000, 100))

    suite, chance = make_suite(workplace, QUESTIONS, 1), random.Random(5)
    write(Path("q.csv"), [{"question": each.question} for each in suite.questions])
    given = ["batch", "q.csv", "--db", suite.questions[0].url, "--out", "a.parquet", "--quiet"]
    given += ["--model", "openai:test", "--price", f"test={json.dumps(PRICE)}", "--max-usd-total"]
    results, under_way = workplace / "a.parquet.batch" / "results.jsonl", Counter[int]()
    with ChatServer(reply) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        monkeypatch.setenv("OPENAI_API_KEY", "test-key")
        with Forked(workplace, root) as quorum:
            for kill in range(KILLS):
                limited = [*given, str(TOTAL)] if kill else given[:-1]  # what is spent before counts, too
                quorum.start(*limited, events=chance.randint(20, 200))
                assert quorum.wait() == -signal.SIGKILL, (workplace / OUTPUT).read_text()
                done = {json.loads(line)["id"] for line in results.read_text().splitlines()}
                runs = {run.parent.name for run in results.parent.glob("runs/*/run.json")}
                under_way.update(int(id) - 1 for id in runs - done)
            quorum.start(*given, str(TOTAL), "--workers", "2")
            assert quorum.wait() == 3, (workplace / OUTPUT).read_text()
            assert TOTAL / 2 < billed.total() * CALL <= TOTAL
            statuses = Counter(row["status"] for row in read(Path("a.parquet")))
            assert statuses.keys() == {"answered", "open"}
            quorum.start(*given, "10")
            assert quorum.wait() == 0, (workplace / OUTPUT).read_text()
    lines = Counter(json.loads(line)["id"] for line in results.read_text().splitlines())
    assert lines == {f"{number:04}": 1 for number in range(1, QUESTIONS + 1)}
    rows = read(Path("a.parquet"))
    assert [(row["status"], row["model_calls"]) for row in rows] == [("answered", 1)] * QUESTIONS
    assert under_way, "somebody was under way"
    assert {n: calls for n, calls in billed.items() if calls > 1 + under_way[n]} == {}
