"""Shared fixtures and the rules of the suite: deterministic, no network beyond loopback."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import pytest
from hypothesis import HealthCheck, settings

from tests.browser import Browser, find_browser, running_browser
from tests.servers.mariadb_server import MariadbServer, running_mariadb
from tests.servers.postgres_server import PostgresServer, running_postgres
from tests.servers.snowflake_server import SnowflakeServer, running_snowflake

if TYPE_CHECKING:
    from tests.servers.bigquery_server import BigqueryServer

T = TypeVar("T")

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,  # wall-clock deadlines flake on shared machines
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "suite"))

# What a hundred tests start in processes of their own is compiled once, whatever the machine's settings say.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

ROOT = Path(__file__).resolve().parent.parent

SLOW = (ROOT / "tests" / "slow.txt").read_text().split()
"""Modules and folders that ``make check`` leaves to ``make test``: they start processes, run whole
evaluations, read the shared data, or try hundreds of examples."""


SERVERS = {"postgres", "mariadb", "snowflake", "studio"}
"""Fixtures that start a server: ``make test`` leaves their tests to ``make test-all``."""


@cache
def is_slow(path: Path) -> bool:
    """True if a module is one of ``SLOW``."""
    return any(path.is_relative_to(ROOT / "tests" / name) for name in SLOW)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out of the collection what the fast tests leave out: it is not even imported."""
    fast = "not slow" in str(config.getoption("markexpr"))
    return True if fast and is_slow(collection_path) else None


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests, and as heavy those that ask a server of their own."""
    for item in items:
        if is_slow(item.path):
            item.add_marker("slow")
        server = getattr(
            getattr(item, "cls", None), "server_name", ""
        )  # of a contract, which asks for it itself
        if SERVERS & {server, *getattr(item, "fixturenames", ())}:
            item.add_marker("heavy")


@pytest.fixture(scope="session")
def root() -> Path:
    """The checkout."""
    return ROOT


@pytest.fixture(scope="session")
def shared() -> Path:
    """The folder of evaluation data and security lists, which is not part of the project."""
    folder = Path(os.environ.get("QUORUM_SHARED", ROOT.parent / "shared"))
    if not folder.is_dir():
        pytest.skip("the shared evaluation data is not here (set QUORUM_SHARED)")
    return folder


def served(driver: str, extra: str, server: AbstractContextManager[T]) -> Iterator[T]:
    """A server for all tests that need one, where its driver is installed."""
    pytest.importorskip(driver, reason=f"the extra quorum-sql[{extra}] is not installed")
    with server as running:
        yield running


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    yield from served("psycopg", "postgres", running_postgres())


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    yield from served("pymysql", "mysql", running_mariadb())


@pytest.fixture(scope="session")
def snowflake() -> Iterator[SnowflakeServer]:
    yield from served("snowflake.connector", "snowflake", running_snowflake())


@pytest.fixture(scope="session")
def bigquery() -> Iterator[BigqueryServer]:
    from tests.servers.bigquery_server import running_bigquery

    yield from served("google.cloud.bigquery", "bigquery", running_bigquery())


@pytest.fixture(autouse=True)
def _own_settings(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test sees the developer's own keys or settings, and none traces to a service; but for live ones."""
    if request.node.get_closest_marker("live"):
        return
    for name in list(os.environ):
        if (
            name.startswith(("QUORUM_", "OPENAI_", "LANGSMITH_", "LANGCHAIN_", "PG", "SNOWFLAKE_"))
            and name != "QUORUM_SHARED"
        ):
            monkeypatch.delenv(name)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless Chromium for the tests of a module."""
    path = find_browser()
    if not path:
        pytest.skip("no Chromium is on the PATH (Debian: apt-get install chromium)")
    with running_browser(path) as running:
        yield running
