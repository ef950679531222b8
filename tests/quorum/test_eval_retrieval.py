"""``quorum eval retrieval``: its tables, its JSON, what it says where nothing can be measured."""

from __future__ import annotations

import io
import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from rich.console import Console

from quorum.cli import cli
from quorum.eval_progress import indexing
from tests.evals.small_suite import write_spider1
from tests.servers.chat_server import Answer, ChatServer, Request, status


def quorum(*arguments: str | Path) -> Result:
    result = CliRunner().invoke(cli, ["eval", "retrieval", *map(str, arguments)])
    assert result.exception is None or isinstance(result.exception, SystemExit), result.exception
    return result


@pytest.fixture
def data(workplace: Path) -> Path:
    return write_spider1(workplace / "spider1")


def vectors(request: Request) -> Answer:
    texts = request.body["input"]
    data = [{"index": i, "embedding": [text.count(c) + 1 for c in "abn"]} for i, text in enumerate(texts)]
    return Answer({"data": data})


def test_the_figures_of_a_suite(data: Path) -> None:
    result = quorum("spider1", "--data", data)
    assert result.exit_code == 0, result.output
    said = result.stdout.splitlines()
    assert said[0] == "spider1: 2 questions with gold SQL, 1 database, 2 column texts"
    (tables, columns) = [
        line.split("  ") for line in said if line.strip().startswith("lexical ") and "/" in line
    ]
    assert tables[1].strip() == "100.0 / 100.0"
    assert "@100" in result.stdout
    assert "all gold tables within 8,000 tokens" in result.stdout
    assert "whole schema of 0 questions exceeds 8,000 tokens" in said[-1]
    assert said[-1].endswith("the gold tables alone of 0 do.")
    assert "dense" not in result.stdout
    assert columns


def test_json_is_the_figures_and_nothing_else(data: Path) -> None:
    result = quorum("spider1", "--data", data, "--limit", "1", "--budget", "5", "--no-groups", "--json")
    found = json.loads(result.stdout)
    assert (found["questions"], found["budget"], found["large"]) == (1, 5, 1)
    assert list(found["ways"]) == ["lexical"]
    assert found["ways"]["lexical"]["missed"] == ["0000"]


def test_an_embedding_model_behind_an_endpoint(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    with ChatServer(vectors) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        result = quorum("spider1", "--data", data, "--embedding-model", "openai:small", "--all-databases")
        assert result.exit_code == 0, result.output
        assert [line.split()[0] for line in result.stdout.splitlines() if "hybrid" in line] == ["hybrid"] * 3
        sent = len(server.requests)
        again = quorum("spider1", "--data", data, "--embedding-model", "openai:small", "--json")
        assert set(json.loads(again.stdout)["ways"]) == {"lexical", "dense", "hybrid"}
        assert len(server.requests) == 2 * sent - 1, "the columns are known; questions are asked anew"
    with ChatServer([status(401)]) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        denied = quorum("spider1", "--data", data, "--embedding-model", "openai:other")
        assert denied.exit_code != 0
        assert "Is the API key right" in denied.stderr


def test_what_cannot_be_measured_is_said(data: Path, workplace: Path) -> None:
    entries = [{"db_id": "pets", "question": "?", "query": "SELECT 1"}]
    (data / "dev.json").write_text(json.dumps(entries))
    result = quorum("spider1", "--data", data)
    assert result.exit_code == 1
    assert "No question has gold SQL that names a table of its database." in result.stderr
    (workplace / "mine.jsonl").write_text(json.dumps({"question": "?", "sql": "SELECT 1"}) + "\n")
    gone = quorum("mine.jsonl", "--db", "sqlite:///none.db")
    assert gone.exit_code == 1
    assert "Not opened: " in gone.stderr
    assert quorum("spider1").exit_code == 2


def test_a_terminal_sees_how_far_the_index_is() -> None:
    console = Console(force_terminal=True, width=100, record=True, file=io.StringIO())
    with indexing(console) as told:
        told("shop [bold]", 3, 7)
    assert "3/7" in console.export_text()
    with indexing(Console(force_terminal=False)) as told:
        told("shop", 3, 7)
