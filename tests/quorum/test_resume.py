"""A run that is killed goes on where it was and repeats no finished step."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path

import pytest
from click.testing import CliRunner

from quorum.cli import cli
from tests.graph.shop import QUESTION, make_shop
from tests.quorum.roles import by_role, role_of
from tests.servers.chat_server import Answer, ChatServer, Request, say

WAIT = 60.0


def _command(*arguments: str) -> list[str]:
    return [sys.executable, "-m", "quorum", "ask", "--json", *arguments]


def _environment(url: str) -> dict[str, str]:
    return os.environ | {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "test-key", "LANGSMITH_TRACING": "false"}


@pytest.mark.heavy
def test_a_killed_run_resumes_without_repeating_a_finished_node(tmp_path: Path, root: Path) -> None:
    reached, let_pass = threading.Event(), threading.Event()

    def hold(role: str, request: Request) -> Answer | None:
        """The Validator's first call never gets its answer: the run is killed while it waits."""
        if role == "validator" and not let_pass.is_set():
            reached.set()
            let_pass.wait(WAIT)
            return say("too late")
        return None

    shop = make_shop(tmp_path / "shop.db")
    with ChatServer(by_role(hold)) as server:
        environment = _environment(server.url) | {"PYTHONPATH": str(root)}
        given = ["--model", "openai:test", "--recipe", "recap", "--votes", "1"]
        asked = _command(QUESTION, "--db", f"sqlite:///{shop}", *given)
        process = subprocess.Popen(
            asked, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        try:
            assert reached.wait(WAIT), process.communicate(timeout=5)
            process.send_signal(signal.SIGKILL)
            process.wait(WAIT)
        finally:
            process.kill()
            process.communicate()
        let_pass.set()
        before = Counter(map(role_of, server.requests))
        resumed = subprocess.run(
            _command("--resume", "last"),
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=WAIT,
        )
        assert resumed.returncode == 0, resumed.stderr
        after = Counter(map(role_of, server.requests)) - before

    answer = json.loads(resumed.stdout)
    assert answer["question"] == QUESTION
    assert sorted(answer["rows"]) == [["Ghent", 1], ["Lyon", 3]]
    assert after == {"validator": 1}, "only the call that was under way is made again"
    assert answer["usage"]["model_calls"] == 6, "the ledger goes on"
    assert answer["usage"]["queries"] == 1
    assert answer["usage"]["input_tokens"] == 6 * 1200

    again = CliRunner().invoke(cli, ["ask", "--json", "--resume", answer["run_id"]])
    assert json.loads(again.stdout) == answer, "a finished run answers from its folder"
