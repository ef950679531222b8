"""The checks of ``quorum doctor``; every finding is a value, and no check ends the others."""

from __future__ import annotations

import asyncio
import platform
import tempfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import urlsplit

import httpx

from quorum.graph.context import unkept
from quorum.graph.recipes import recipe_of
from quorum.graph.resources import catalog_cache, database_urls, read_catalog
from quorum.knowledge.catalog import Catalog
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.errors import QuorumError, install_hint, is_installed
from quorum.settings import Settings, unknown_variables
from quorum.text import count
from quorum.tools.admission import estimates_bytes
from quorum.tools.databases import connect_all
from quorum.tools.databases.base import Account, Connector
from quorum.tools.databases.introspection import listed
from quorum.tools.models import ModelSettings, make_model
from quorum.tools.urls import SAMPLE, mask_url

EXTRAS = {
    "bigquery": (("google.cloud.bigquery",), "BigQuery datasets"),
    "cluster": (("distributed", "cryptography"), "quorum eval run --workers and --cluster"),
    "embeddings": (("sentence_transformers", "faiss"), "--retrieval hybrid"),
    "evals": (("pandas",), "results in CSV files: benchmarks, quorum eval and votes; Answer.to_pandas"),
    "mysql": (("pymysql",), "MySQL and MariaDB databases"),
    "pdf": (("pypdf",), "documents in PDF"),
    "plots": (("vl_convert",), "quorum eval report --html, votes replay and --chart"),
    "postgres": (("psycopg",), "PostgreSQL databases"),
    "serve": (("mcp", "starlette", "uvicorn"), "quorum serve and quorum mcp"),
    "snowflake": (("snowflake.connector",), "Snowflake databases"),
    "sqlalchemy": (("sqlalchemy",), "databases without a connector of their own"),
    "studio": (("langgraph_cli", "langgraph_api"), "langgraph dev, and so make dev"),
    "xlsx": (("python_calamine",), "databases in .xlsx"),
}
"""The modules of each extra, and what needs them."""
ENDPOINT_SECONDS = 3.0


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


def all_checks(settings: Settings) -> Iterator[Check]:
    """Every check in turn; what is worth knowing of extras comes last.

    A check that breaks is a finding itself, and the others are still made.
    """
    yield Check("python", True, f"{platform.python_version()} on {platform.system()} {platform.machine()}")
    yield from _each("environment", _strangers())
    yield from _each("traces", _home(settings))
    yield from _each("recipe", _recipe(settings))
    yield from _each("model", _models(settings))
    if not settings.database:
        hint = "Set QUORUM_DATABASE=sqlite:///shop.db, or database in quorum.toml, or pass --db."
        yield Check("database", False, "none is configured", hint)
    documents: list[Documents] = []
    found = list(_each("documents", _documents(settings.documents, documents)))
    known, every_opens = documents[0] if documents else None, bool(settings.database)
    for url in settings.database:
        judged = list(_each("database", _database(url, settings, known)))
        every_opens &= all(check.ok is not False for check in judged)
        yield from judged
    if every_opens:
        yield from _each("rights", _rights(settings, known))
    yield from found
    for extra, (modules, purpose) in EXTRAS.items():
        yield from _each(f"extra {extra}", _extra(extra, modules, purpose, settings))


def _each(name: str, checks: Iterator[Check]) -> Iterator[Check]:
    """The checks, and a failed one in place of those that an error keeps from being made."""
    try:
        yield from checks
    except QuorumError as error:
        yield Check(name, False, str(error))
    except Exception as error:  # noqa: BLE001 - a fault of ours in one check must not hide the others
        yield Check(name, False, f"cannot be checked, by a fault of Quorum: {type(error).__name__}: {error}")


def _extra(extra: str, modules: Iterable[str], purpose: str, settings: Settings) -> Iterator[Check]:
    """Look for an extra; one that is missing is a failure only where each question needs it.

    The driver of a database is that database's check.
    """
    if missing := [name for name in modules if not is_installed(name)]:
        needed = extra == "embeddings" and settings.retrieval == "hybrid" and "faiss" in missing
        text = f"not installed ({', '.join(missing)} missing); for {purpose}"
        yield Check(f"extra {extra}", False if needed else None, text, install_hint(extra))
    else:
        yield Check(f"extra {extra}", True, "installed")


def _strangers() -> Iterator[Check]:
    for name, near in unknown_variables().items():
        hint = f"Did you mean {near}?" if near else ""
        yield Check("environment", None, f"{name} is set, but is no setting and is ignored.", hint)


def _home(settings: Settings) -> Iterator[Check]:
    """Try to make a file in the folder of traces, or where that folder would be made."""
    place = settings.home.absolute()
    try:
        nearest = next(folder for folder in (place, *place.parents) if folder.exists())
        with tempfile.TemporaryFile(dir=nearest):
            pass
    except OSError as error:
        text = f"cannot be written to {settings.home}: {error.strerror}"
        yield Check("traces", False, text, "Set QUORUM_HOME to another folder.")
    else:
        yield Check("traces", True, f"go to {settings.home}")


def _recipe(settings: Settings) -> Iterator[Check]:
    """Check that recipe, preset, switches, votes and the models of roles fit together."""
    missing = {"models": settings.models or ["offline"], "database": settings.database or [SAMPLE]}
    recipe = recipe_of(settings.changed(**missing).run_options())
    yield Check("recipe", True, f"{recipe.name}: {recipe.summary}")


def _models(settings: Settings) -> Iterator[Check]:
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
    if any(spec.startswith("openai:") for spec in settings.specs) and settings.base_url:
        yield _endpoint(settings, settings.base_url)


def _endpoint(settings: Settings, url: str) -> Check:
    """Check that the endpoint answers and accepts the key; no model is asked, nothing is billed."""
    parts, shown = urlsplit(url), mask_url(url)
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


def _database(url: str, settings: Settings, documents: Documents | None) -> Iterator[Check]:
    """Open one database, once, and describe it."""
    shown = mask_url(url)
    try:
        connector, catalog, account = asyncio.run(_opened(url, settings, documents))
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
    yield from _costs(connector, catalog.name, settings)


async def _opened(
    url: str, settings: Settings, documents: Documents | None
) -> tuple[Connector, Catalog, Account | None]:
    async with connect_all(database_urls([url], settings.home)) as connector:
        catalog = await read_catalog(connector, documents, samples=0)
        return connector, catalog, await connector.account()


def _rights(settings: Settings, documents: Documents | None) -> Iterator[Check]:
    """Say what the rules withhold of all databases together, as a question would find it."""
    if (rights := catalog_cache(settings).rights) is None:
        return

    async def seen() -> tuple[Catalog, Catalog]:
        async with connect_all(database_urls(settings.database, settings.home)) as connector:
            whole = await read_catalog(connector, documents, samples=0)
            return whole, await rights.seen(whole, connector)

    whole, left = asyncio.run(seen())
    shown, withheld = {table.full_name for table in left.tables}, left.withheld
    hidden = [table.full_name for table in whole.tables if table.full_name not in shown]
    masked = sorted(".".join(each) for each in (withheld.columns if withheld else ()) if each[0] in shown)
    yield Check(
        "rights", True, f"hidden: {listed(hidden) or 'nothing'}; masked: {listed(masked) or 'nothing'}"
    )


def _costs(connector: Connector, name: str, settings: Settings) -> Iterator[Check]:
    """Say if a database can estimate what queries read, and which options have no effect without that."""
    if not connector.live:
        return
    if estimates_bytes(connector):
        paid = ", which is paid for," if connector.bills else ""
        kept = f"{paid} is told before they run: max_bytes, max_run_bytes, approve"
        yield Check("costs", True, f"what queries of {name} would read{kept}")
        return
    yield Check("costs", None, f"what queries of {name} would read is not told before they run")
    hint = "max_rows, query_timeout and deadline hold; approve=always asks before every query."
    yield from (Check("costs", None, sentence, hint) for sentence in unkept(connector, settings))


def _account(account: Account) -> Iterator[Check]:
    """Name the account, and what it may do that a role made for questions would not."""
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


def _documents(folder: Path | None, read: list[Documents]) -> Iterator[Check]:
    """The documents as a question would find them, which are added to ``read``, and what is left out."""
    if folder is None:
        return
    documents = Documents.load(folder)
    read.append(documents)
    words = sum(len(chunk.body.split()) for chunk in documents.chunks)
    yield Check("documents", True, f"{folder}: {len(documents.texts):,} read, {words:,} words")
    yield from (Check("documents", None, note) for note in documents.notes)
