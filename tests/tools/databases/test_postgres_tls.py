"""PostgreSQL over TLS: whom a connection trusts."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import connect
from quorum.tools.query import Limits
from tests.servers.postgres_server import PostgresServer
from tests.servers.process import ADMIN
from tests.tools.databases.contract import rows
from tests.waiting import wait_until

if shutil.which("openssl") is None:
    pytest.skip("openssl is not installed", allow_module_level=True)

USED = "SELECT ssl FROM pg_stat_ssl WHERE pid = pg_backend_pid()"


def certificate(folder: Path, name: str, host: str) -> tuple[Path, Path]:
    """A certificate that signs itself, and its key."""
    key, found = folder / f"{name}.key", folder / f"{name}.crt"
    asked = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", f"/CN={host}"]
    named = ["-addext", f"subjectAltName=DNS:{host}", "-keyout", str(key), "-out", str(found)]
    subprocess.run(["openssl", *asked, *named], check=True, capture_output=True)
    return found, key


@pytest.fixture
def trusted(postgres: PostgresServer, tmp_path: Path) -> Iterator[Path]:
    """The server's certificate; the server has TLS meanwhile."""
    found, key = certificate(tmp_path, "server", "localhost")
    own = postgres.folder / "data"
    for path in (found, key):
        shutil.copy(path, own / path.name)
        (own / path.name).chmod(0o600)
        os.chown(own / path.name, own.stat().st_uid, own.stat().st_gid)
    names = {"ssl_cert_file": "server.crt", "ssl_key_file": "server.key", "ssl": "on"}
    configure(postgres, *(f"ALTER SYSTEM SET {name} = '{value}'" for name, value in names.items()))
    wait_until(lambda: postgres.execute("SHOW ssl") == [("on",)])
    yield found
    configure(postgres, *(f"ALTER SYSTEM RESET {name}" for name in names))
    wait_until(lambda: postgres.execute("SHOW ssl") == [("off",)])


def configure(postgres: PostgresServer, *settings: str) -> None:
    for setting in settings:
        postgres.execute(setting)
    postgres.execute("SELECT pg_reload_conf()")


def url(postgres: PostgresServer, mode: str, root: Path | None, host: str = "localhost") -> str:
    """A server on 127.0.0.1 that is asked for by a name, which its certificate must bear."""
    trusted = f"&sslrootcert={root}" if root else ""
    return f"postgresql://{ADMIN}@{host}:{postgres.port}/postgres?hostaddr=127.0.0.1&sslmode={mode}{trusted}"


async def test_the_servers_certificate_is_verified(postgres: PostgresServer, trusted: Path) -> None:
    for mode in ("verify-full", "verify-ca", "require"):
        async with connect(url(postgres, mode, trusted)) as connector:
            assert rows(await connector.ask(USED, Limits())) == [(True,)]


async def test_a_certificate_that_is_not_trusted_is_refused(
    postgres: PostgresServer, trusted: Path, tmp_path: Path
) -> None:
    stranger, _ = certificate(tmp_path, "stranger", "localhost")
    for asked, words in (
        (url(postgres, "verify-full", stranger), "certificate verify failed"),
        (url(postgres, "verify-full", trusted, "db.example"), 'does not match host name "db.example"'),
        (url(postgres, "verify-full", tmp_path / "none.crt"), "does not exist"),
    ):
        with pytest.raises(DatabaseUnavailable) as refused:
            await connect(asked).open()
        assert words in str(refused.value)
        assert "sslrootcert" in refused.value.hint


async def test_a_server_without_tls_is_refused_where_it_is_required(postgres: PostgresServer) -> None:
    with pytest.raises(DatabaseUnavailable, match="does not support SSL") as refused:
        await connect(url(postgres, "require", None)).open()
    assert "sslmode" in refused.value.hint
