"""What a newcomer types where no extra is installed: the tour, every ``--help``, what needs extras.

    .venv/lean/bin/python -P tests/smoke.py

``make smoke`` builds the wheel and installs it there first. All commands but one run in this process. The
tour is read from README.md and docs/tour.md; a loopback endpoint stands for its model.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import signal
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from unittest.mock import patch

import click
from click.testing import CliRunner, Result

import quorum
from quorum.checks import EXTRAS
from quorum.cli import cli
from quorum.knowledge.errors import is_installed
from quorum.tools.databases import CONNECTORS
from quorum.tools.offline.model import PromptText, answer

if TYPE_CHECKING:
    from tests.servers.chat_server import Answer, Request

ROOT = Path(__file__).resolve().parent.parent
QUESTION = "How many customers are there?"
NEED_AN_EXTRA = {
    "xlsx": ["ask", QUESTION, "--db", "book.xlsx"],
    "plots": ["ask", QUESTION, "--chart", "chart.svg"],
    "embeddings": ["ask", QUESTION, "-q", "--retrieval", "hybrid", "--embedding-model", "some/model"],
    "cluster": ["eval", "run", "questions.jsonl", "--workers", "2", "--out", "evaluation"],
}
HERE = {"sqlite", "duckdb", "files", "schema"}
"""Schemes of databases that need no driver but those that every installation has."""
OTHERS = {"trino", "sqlalchemy+postgresql+psycopg"}
URLS = {"bigquery": "bigquery://project/dataset", "snowflake": "snowflake://user@account/db/schema"}


def command(*arguments: str, code: int = 0) -> Result:
    """Run ``quorum`` with these arguments; it must end with that code, and with no fault of ours."""
    began = time.monotonic()
    result = CliRunner().invoke(cli, arguments)
    assert result.exception is None or isinstance(result.exception, SystemExit), (arguments, result.exc_info)
    assert result.exit_code == code, (arguments, result.exit_code, result.output)
    assert "Traceback" not in result.output, (arguments, result.output)
    print(f"  {time.monotonic() - began:5.1f} s  quorum {shlex.join(arguments)}", flush=True)
    return result


def by_the_rules(request: Request) -> Answer:
    """What the offline model says."""
    from tests.servers.chat_server import say

    prompt = "\n\n".join(message["content"] for message in request.body["messages"])
    return say(json.dumps(answer(PromptText(prompt))))


def tour(page: str) -> tuple[list[str], str]:
    """The commands of a page, and its Python."""
    text = (ROOT / page).read_text()
    shell = "".join(re.findall(r"```sh\n(.*?)```", text, re.DOTALL))
    return [line for line in shell.splitlines() if line], text.split("```python\n")[1].split("```")[0]


def take_tour() -> str:
    """Do what README and tour say, in the working directory; return what was printed on standard output."""
    from tests.servers.chat_server import ChatServer

    said: list[str] = []
    with patch.dict(os.environ), ChatServer(by_the_rules) as server:
        os.environ |= {"OPENAI_BASE_URL": server.url, "OPENAI_API_KEY": "sk-smoke"}
        for page in ("README.md", "docs/tour.md"):
            lines, script = tour(page)
            for line in lines:
                name, *arguments = shlex.split(line, comments=True)
                if name == "export":
                    variable, _, value = arguments[0].partition("=")
                    os.environ[variable] = value
                elif arguments[:1] == ["serve"]:
                    serve(*arguments)
                elif name == "quorum":
                    expected = re.search(r"# exit (\d)", line)
                    said.append(command(*arguments, code=int(expected[1]) if expected else 0).stdout)
                elif name == "printf":
                    subprocess.run(line, shell=True, check=True)
                else:
                    assert line.startswith((". ", "make ")), f"nobody knows how to run: {line}"
            exec(script, {})
    assert len(said) >= 10
    return "".join(said)


def serve(*arguments: str) -> None:
    """Serve until the page has been read; without the extra what to install is said."""
    if not all(map(is_installed, EXTRAS["serve"][0])):
        check_hint(command(*arguments, code=2))
        return
    given = [sys.executable, "-P", "-m", "quorum", *arguments, "--port", "0"]
    browser = os.environ | {"BROWSER": "true"}
    with subprocess.Popen(given, stderr=subprocess.PIPE, text=True, env=browser) as server:
        place = re.search(r"http://\S+/", server.stderr.readline())
        with urllib.request.urlopen(place[0]) as page:
            assert b"<title>Quorum" in page.read()
        server.send_signal(signal.SIGINT)
        assert server.wait() == 0


def paths(group: click.Command, *path: str) -> Iterator[tuple[str, ...]]:
    """The words of every command."""
    yield path
    if isinstance(group, click.Group):
        for name in group.list_commands(click.Context(group)):
            found = group.get_command(click.Context(group), name)
            yield from paths(found, *path, name)


def check_hint(result: Result) -> None:
    """One line says what to install, in words that this very Python understands."""
    (hint,) = [line for line in result.output.splitlines() if "pip install" in line]
    assert f"{sys.executable} -m pip install " in hint, hint
    assert "quorum-sql" not in hint, "it is on no index"


def main() -> None:
    began = time.monotonic()
    assert Path(quorum.__file__).is_relative_to(sys.prefix), f"{quorum.__file__} is not the wheel's"
    assert not [name for modules, _ in EXTRAS.values() for name in modules[:1] if is_installed(name)]
    for path in paths(cli):
        command(*path, "--help")
    command("demo", "--quiet")
    take_tour()
    os.environ |= {"QUORUM_MODELS": "offline", "QUORUM_DATABASE": "sample"}
    doctor = command("doctor").stdout
    for extra in EXTRAS:
        found = re.search(rf"· extra {extra} +not installed .*\n +Install it with `(.*)`", doctor)
        assert found
        assert found[1].startswith(f"{sys.executable} -m pip install "), found[1]
    for scheme in sorted((CONNECTORS.keys() | OTHERS) - HERE):
        url = URLS.get(scheme, f"{scheme}://user@host/db")
        judged = command("doctor", "--db", "sample", "--db", url, "--json", code=2)
        checks = json.loads(judged.stdout)["checks"]
        assert [check["ok"] for check in checks if check["name"] == "database"] == [True, False], checks
        assert [check["name"] for check in checks if check["ok"] is False] == ["database"], checks
        check_hint(command("ask", QUESTION, "--db", url, code=2))
    Path("questions.jsonl").write_bytes((ROOT / "examples" / "questions.jsonl").read_bytes())
    command("eval", "run", "questions.jsonl", "--out", "evaluation")
    check_hint(command("eval", "report", "evaluation", "--html", "report.html", code=2))
    Path("book.xlsx").write_bytes(b"PK")
    for arguments in NEED_AN_EXTRA.values():
        check_hint(command(*arguments, code=2))
    script = subprocess.run(
        [str(Path(sys.executable).with_name("quorum")), "doctor"], capture_output=True, text=True, check=False
    )
    assert (script.returncode, script.stderr) == (0, ""), script
    print(f"all well, in {time.monotonic() - began:.0f} s")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        sys.path.append(str(ROOT))  # behind the installed wheel: for tests.servers
        os.chdir(folder)
        os.environ |= {"QUORUM_HOME": str(Path(folder) / ".quorum")}
        main()
