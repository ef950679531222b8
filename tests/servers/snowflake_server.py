"""The tests' own Snowflake (``snowflake_app``) as a process: started, told what to do, killed."""

from __future__ import annotations

import json
import subprocess
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import quote

from tests.servers.chat_server import closed_port
from tests.servers.process import missing
from tests.waiting import wait_until

ROOT = Path(__file__).resolve().parent.parent.parent
PYTHON = ROOT / ".venv" / "servers" / "bin" / "python"
USER, PASSWORD = "analyst", "s3cret@/:#?%"
"""Who asks in ``url``; the password has every character that a URL has a use for."""


class SnowflakeServer:
    """A running server with the databases SHOP and OTHER."""

    def __init__(self) -> None:
        self.port = closed_port()
        self.schemas = 0
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        app = Path(__file__).with_name("snowflake_app.py")
        command = [PYTHON, app, str(self.port)]
        self._process = subprocess.Popen(command, cwd=app.parent, start_new_session=True)
        wait_until(self._answers)
        self.control("secrets", {USER.upper(): PASSWORD})

    def kill(self) -> None:
        """End it at once, and wait until it is gone."""
        if self._process is not None:
            self._process.kill()
            self._process.wait(timeout=30)

    def url(self, path: str, options: str = "", port: int = 0, who: str | None = None) -> str:
        """The URL of ``DATABASE/SCHEMA`` here, or behind a proxy."""
        who = f"{USER}:{quote(PASSWORD, safe='')}@" if who is None else who
        endpoint = quote(f"http://127.0.0.1:{port or self.port}", safe="")
        return f"snowflake://{who}testing/{path}?endpoint={endpoint}{options}"

    def control(self, what: str = "look", body: dict[str, Any] | None = None) -> Any:
        """Tell the server something; what it knows."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}/control/{what}", json.dumps(body or {}).encode(), method="POST"
        )
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)

    def execute(self, sql: str, schema: str = "PUBLIC", database: str = "SHOP") -> list[list[str]]:
        """Run statements as the administrator; the rows of the last one, as texts."""
        return self.control("administer", {"sql": sql, "database": database, "schema": schema})

    def new_schema(self, script: str = "") -> str:
        """The name of a new schema of SHOP that a script has filled."""
        self.schemas += 1
        name = f"TEST{self.schemas}"
        self.execute(f"CREATE SCHEMA SHOP.{name}")
        if script:
            self.execute(script, name)
        return name

    def running(self) -> list[str]:
        """Texts that are being run."""
        return self.control()["running"]

    def asked(self) -> list[str]:
        """Texts of all queries so far."""
        return [query["sql"] for query in self.control()["asked"]]

    def _answers(self) -> bool:
        assert self._process.poll() is None, "the server has ended"
        with suppress(OSError):
            self.control()
            return True
        return False


@contextmanager
def running_snowflake() -> Iterator[SnowflakeServer]:
    """A new server; skips, or fails where servers are required, if its environment is missing."""
    if not PYTHON.exists():
        missing("the tests' Snowflake is not installed (make .venv/.servers)")
    server = SnowflakeServer()
    try:
        server.start()
        yield server
    finally:
        server.kill()
