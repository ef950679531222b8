"""``quorum serve``: what it listens at, and how it ends."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from socket import create_server

import httpx
import pytest
from click.testing import CliRunner

from quorum.cli import cli
from quorum.commands.serve import named_databases
from quorum.knowledge.errors import ConfigurationError
from quorum.serve.keys import KeyFile
from tests.graph.shop import written
from tests.quorum.roles import by_role
from tests.quorum.serve.conftest import serving
from tests.servers.chat_server import Answer, ChatServer
from tests.waiting import wait_until


def test_databases_get_names_and_other_hosts_need_keys(workplace: Path) -> None:
    named = named_databases(["shop=sqlite:///a.db,sqlite:///b.db", "postgresql://h/sales?x=1", "my data.csv"])
    assert named == {
        "shop": ["sqlite:///a.db", "sqlite:///b.db"],
        "sales": ["postgresql://h/sales?x=1"],
        "my-data": ["my data.csv"],
    }
    with pytest.raises(ConfigurationError, match="Two databases are called 'a'"):
        named_databases(["a.db", "sqlite:///other/a.db"])
    made = CliRunner().invoke(cli, ["serve", "--keys", "keys.toml", "--new-key", "me"])
    assert made.exit_code == 0
    caller = KeyFile(workplace / "keys.toml").caller(made.stdout.strip())
    assert caller.name == "me"
    busy = create_server(("127.0.0.1", 0))
    taken = str(busy.getsockname()[1])
    for given, said in (
        (["--host", "0.0.0.0"], "everybody could ask"),
        (["--new-key", "me"], "--keys FILE"),
        (["--keys", "none.toml"], "Cannot read the keys"),
        (["--keys", "keys.toml", "--new-key", "me"], "There is a key 'me' already"),
        (["--model", "offline"], "No database is given"),
        (["--model", "offline", "--db", "nope.db"], "There is no file nope.db"),
        (["--model", "offline", "--db", "sample", "--port", taken], f"127.0.0.1, port {taken}: "),
    ):
        got = CliRunner().invoke(cli, ["serve", *given])
        assert (got.exit_code, said in got.output) == (2, True), got.output
    busy.close()


@pytest.mark.heavy
def test_a_server_that_ends_leaves_its_questions_to_the_next(workplace: Path) -> None:
    flags = ("--db", "sample", "--recipe", "single", "--model", "openai:test", "--base-url")
    start = partial(serving, workplace, *flags, OPENAI_API_KEY="sk-1")
    good = by_role(sql_writer=written("SELECT COUNT(*) AS orders FROM orders"))
    with ChatServer([Answer(delay=60.0)]) as silent, ChatServer(good) as model:
        with start(silent.url) as (address, said), httpx.Client(base_url=address, timeout=60) as client:
            assert client.get("/page/").status_code == 200
            at = client.post("/v1/questions", json={"question": "How many orders?"}).json()["links"]["self"]
            wait_until(lambda: silent.requests)
        assert "Questions that can go on: 1" in said[0]
        with start(model.url) as (address, said), httpx.Client(base_url=address, timeout=60) as client:
            assert client.get(at).json()["status"] == "interrupted"
            assert client.post(f"{at}/resume").status_code == 202
            assert client.get(at, params={"wait": 60}).json()["answer"]["rows"] == [[13000]]
        assert "Questions" not in said[0]
