"""What ``quorum doctor`` looks at; every check is a value, none raises."""

from __future__ import annotations

import asyncio
import platform
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from quorum.knowledge.errors import ConfigurationError, QuorumError, install_hint
from quorum.settings import Settings, unknown_variables
from quorum.text import count
from quorum.tools.urls import SAMPLE, mask_url

if TYPE_CHECKING:
    from quorum.knowledge.documents import Documents
    from quorum.tools.databases.base import Account

EXTRAS = {
    "bigquery": (("google.cloud.bigquery",), "BigQuery datasets"),
    "cluster": (("distributed", "cryptography"), "quorum eval run --workers and --cluster"),
    "embeddings": (("sentence_transformers", "faiss"), "--retrieval hybrid"),
    "evals": (("pandas",), "results in CSV files: benchmarks, quorum eval and votes; Answer.to_pandas"),
    "mysql": (("pymysql",), "MySQL and MariaDB databases"),
    "pdf": (("pypdf",), "documents in PDF"),
    "plots": (("matplotlib",), "quorum eval report --html, votes replay and --chart"),
    "postgres": (("psycopg",), "PostgreSQL databases"),
    "snowflake": (("snowflake.connector",), "Snowflake databases"),
    "sqlalchemy": (("sqlalchemy",), "databases without a connector of their own"),
    "studio": (("langgraph_cli", "langgraph_api"), "langgraph dev, and so make dev"),
    "xlsx": (("xlsxwriter",), "quorum ask --out FILE.xlsx"),
}
"""The modules of each extra, and what needs them."""
ENDPOINT_SECONDS = 3.0
OPENAI = "https://api.openai.com/v1"


@dataclass(frozen=True)
class Check:
    """A finding.

    Attributes:
        ok: False for what keeps a question from being asked; None for what is merely worth knowing.
        hint: What to do; may be empty.
    """

    name: str
    ok: bool | None
    text: str
    hint: str = ""


def all_checks(settings: Settings, *, online: bool = False) -> Iterator[Check]:
    """Every check in turn.

    Args:
        online: Ask the models' endpoints even where that goes out to the internet.
    """
    yield Check("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from _extras()
    yield from _strangers()
    yield _home(settings)
    yield _recipe(settings)
    yield from _models(settings, online=online)
    documents, found = _documents(settings.documents)
    yield from _database(settings, documents)
    yield from found


def _extras() -> Iterator[Check]:
    for extra, (modules, purpose) in EXTRAS.items():
        missing = [name for name in modules if find_spec(name) is None]
        text = f"not installed ({', '.join(missing)} missing); for {purpose}" if missing else "installed"
        hint = install_hint(extra) if missing else ""
        yield Check(f"extra {extra}", None if missing else True, text, hint)


def _strangers() -> Iterator[Check]:
    for name, near in unknown_variables().items():
        hint = f"Did you mean {near}?" if near else ""
        yield Check("environment", None, f"{name} is set, but is no setting and is ignored.", hint)


def _home(settings: Settings) -> Check:
    """Whether a file can be made in the folder of traces, or where that would be made."""
    place = settings.home.absolute()
    try:
        nearest = next(folder for folder in (place, *place.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        text = f"cannot be written to {settings.home}: {error.strerror}"
        return Check("traces", False, text, "Set QUORUM_HOME to another folder.")
    return Check("traces", True, f"go to {settings.home}")


def _recipe(settings: Settings) -> Check:
    """Whether recipe, preset, switches, votes and the models of roles fit together."""
    from quorum.graph.recipes import recipe_of

    missing = {"models": settings.models or ["offline"], "database": settings.database or [SAMPLE]}
    try:
        recipe = recipe_of(settings.changed(**missing).run_options())
    except ConfigurationError as error:
        return Check("recipe", False, str(error))
    return Check("recipe", True, f"{recipe.name}: {recipe.summary}")


def _models(settings: Settings, *, online: bool) -> Iterator[Check]:
    from quorum.tools.models import ModelSettings, make_model

    if not settings.models:
        hint = "Set QUORUM_MODELS=openai:gpt-4.1, or models in quorum.toml, or pass --model."
        yield Check("model", False, "none is configured", hint)
        return
    known = ModelSettings(base_url=settings.base_url, api_key=settings.api_key, prices=settings.prices)
    for spec in settings.specs:
        try:
            model = make_model(spec, settings=known)
        except QuorumError as error:
            yield Check(f"model {spec}", False, str(error))
            continue
        priced = (
            "price known" if model.backend.price else "price unknown (give it in prices to use --max-usd)"
        )
        offline = " a rule-based demonstration, no language model;" if spec.startswith("offline") else ""
        yield Check(f"model {spec}", True, f"can be asked;{offline} {priced}")
    if any(spec.startswith("openai:") for spec in settings.specs) and (online or settings.base_url):
        yield _endpoint(settings)


def _endpoint(settings: Settings) -> Check:
    """Whether the endpoint answers and accepts the key; no model is asked, nothing is billed."""
    import httpx

    parts = urlsplit(settings.base_url or OPENAI)
    shown = mask_url(settings.base_url or OPENAI)
    try:
        reply = httpx.get(
            parts._replace(path=f"{parts.path.rstrip('/')}/models").geturl(),
            headers={"Authorization": f"Bearer {settings.key}"} if settings.key else {},
            timeout=ENDPOINT_SECONDS,
        )
    except UnicodeEncodeError:
        hint = "Set OPENAI_API_KEY to the key as the provider gave it."
        return Check("endpoint", False, "the key has characters that no key has", hint)
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        hint = "Is it running, and is base_url right (it usually ends in /v1)?"
        return Check("endpoint", False, f"{shown} cannot be reached: {error}", hint)
    if reply.status_code in (401, 403):
        return Check(
            "endpoint", False, f"{shown} refuses the key ({reply.status_code})", "Set OPENAI_API_KEY."
        )
    if reply.status_code >= 500:
        return Check("endpoint", False, f"{shown} is failing ({reply.status_code})", "Try again later.")
    note = "" if reply.is_success else f", though it lists no models ({reply.status_code})"
    return Check("endpoint", True, f"{shown} answers{note}")


def _database(settings: Settings, documents: Documents | None) -> Iterator[Check]:
    if not settings.database:
        hint = "Set QUORUM_DATABASE=sqlite:///shop.db, or database in quorum.toml, or pass --db."
        yield Check("database", False, "none is configured", hint)
        return
    opened = True
    for url in settings.database:
        checks = list(_one_database(url, settings, documents))
        opened = opened and checks[0].ok is True
        yield from checks
    if opened and len(settings.database) > 1:
        yield _together(settings)


def _together(settings: Settings) -> Check:
    """How queries read several databases that can each be opened."""
    from quorum.commands.schema import live_catalog

    try:
        catalog = asyncio.run(live_catalog(settings.database, settings.home, samples=0))
    except QuorumError as error:
        return Check("databases", False, f"cannot be read in one question: {error}")
    databases = {table.database for table in catalog.tables}
    how = f"each table's part is fetched, and joined by DuckDB as {', '.join(sorted(databases))}"
    if catalog.dialect != "duckdb" or len(databases) < 2:
        how = f"{catalog.dialect} joins them itself"
    return Check("databases", True, f"{len(settings.database)} in one question: {how}")


def _one_database(url: str, settings: Settings, documents: Documents | None) -> Iterator[Check]:
    from quorum.commands.schema import live_account, live_catalog

    shown = mask_url(url)
    try:
        catalog = asyncio.run(live_catalog([url], settings.home, documents=documents, samples=0))
        account = asyncio.run(live_account(url, settings.home))
    except QuorumError as error:
        yield Check("database", False, f"{shown} does not open read-only: {error}")
        return
    tables, columns = count(len(catalog.tables), "table"), sum(len(t.columns) for t in catalog.tables)
    sealed = account is None or account.sealed
    how = (
        "opens read-only: yes" if sealed else "opens; it has no read-only sessions, so only queries are sent"
    )
    text = f"{how}; {catalog.dialect}, {tables}, {count(columns, 'column')}"
    yield Check("database", True, f"{shown} {text}")
    yield from (Check("database", None, sentence) for sentence in catalog.left_out)
    if account:
        yield from _account(account)
    yield from _costs(settings)


def _costs(settings: Settings) -> Iterator[Check]:
    """Whether the database tells what queries would read, and which options that bears on mean nothing."""
    from quorum.graph.context import unkept
    from quorum.graph.resources import database_urls
    from quorum.tools.admission import tells
    from quorum.tools.databases import connect_all

    connector = connect_all(database_urls(settings.database, settings.home))
    if not connector.live:
        return
    if tells(connector):
        paid = ", which is paid for," if connector.bills else ""
        text = f"what queries would read{paid} is told before they run: max_bytes, max_run_bytes, approve"
        yield Check("costs", True, text)
        return
    yield Check("costs", None, "what queries would read is not told before they run")
    hint = "max_rows, query_timeout and deadline hold; approve=always asks before every query."
    yield from (Check("costs", None, sentence, hint) for sentence in unkept(connector, settings))


def _account(account: Account) -> Iterator[Check]:
    """Whom the database takes us for, and what a role made for questions would not be allowed."""
    held = "" if account.powers or account.gaps else " and may do nothing but read"
    yield Check("account", True, f"asks as {account.name}{held}")
    yield from (Check("account", None, gap) for gap in account.gaps)
    hint = (
        "Sessions are read-only whatever it may do, and functions that do more (files, locks, replication, "
        "other sessions) are not sent; a role that may only SELECT is a lock of its own."
    )
    if not account.sealed:
        hint = "No session forbids it: give Quorum a role that may only read."
    for power in account.powers:
        yield Check("account", None, f"{account.name} {power}", hint)


def _documents(folder: Path | None) -> tuple[Documents | None, list[Check]]:
    """The documents as a question would find them, and what is left out of them."""
    from quorum.knowledge.documents import Documents

    if folder is None:
        return None, []
    try:
        documents = Documents.load(folder)
    except ConfigurationError as error:
        return None, [Check("documents", False, str(error))]
    words = sum(len(chunk.body.split()) for chunk in documents.chunks)
    text = f"{folder}: {len(documents.texts):,} read, {words:,} words"
    defined = documents.definitions
    text += f"; definitions in {', '.join(each.file for each in defined)}" if defined else ""
    return documents, [
        Check("documents", True, text),
        *(Check("documents", None, note) for note in documents.notes),
    ]
