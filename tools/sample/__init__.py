"""The sample database: an online shop to try Quorum on, with documents that define its terms.

It is deterministic, has about 100,000 rows, and is built in two or three seconds. A finished database carries
two marks in its header: ``application_id`` says that Quorum built it (nothing else is ever overwritten), and
``user_version`` is a hash of the builder's own source, so that any change to the shop rebuilds it.
"""

from __future__ import annotations

import hashlib
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from quorum.knowledge.errors import ConfigurationError
from quorum.tools.sample import rows

if TYPE_CHECKING:
    import sqlite3

SEED = 20240701
APPLICATION_ID = 0x51554F52  # "QUOR"
HERE = Path(__file__).parent
OTHER_HOME = "Set another folder with QUORUM_HOME or `home` in quorum.toml."

EVENTS_TABLE = """CREATE TABLE {name} (
    event_id INTEGER PRIMARY KEY,
    customer_id INTEGER REFERENCES customers (customer_id),
    session_id TEXT NOT NULL,
    event_type TEXT NOT NULL,
    occurred_at TEXT NOT NULL,
    payload JSON NOT NULL
)"""


@dataclass(frozen=True)
class SampleQuestion:
    """A question that shows what Quorum does; ``shows`` is its purpose, for people."""

    question: str
    shows: str


DEMO_QUESTIONS = (
    SampleQuestion(
        question="What is the average rating of reviews for each category name?",
        shows="a join and an aggregate",
    ),
    SampleQuestion(
        question="How many events of type 'purchase' happened from February to May 2024?",
        shows="sharded tables",
    ),
    SampleQuestion(
        question="What is the average total_amt of completed orders per channel?",
        shows="a query that fails first and is repaired: no column is called total_amt",
    ),
)


def sample_documents() -> Path:
    """Return the folder of Markdown documents that define the shop's business terms."""
    return HERE / "documents"


def sample_database(folder: Path) -> Path:
    """Return the sample database inside ``folder``, built first where it is missing or out of date.

    Raises:
        ConfigurationError: ``folder/shop.db`` exists and was not built by Quorum, or cannot be written.
    """
    path = folder / "shop.db"
    build_sample(path)
    return path


def build_sample(path: Path) -> None:
    """Build the sample database at ``path``; an up-to-date one is left as it is.

    The file appears complete or not at all: it is built in a temporary folder beside ``path``.

    Raises:
        ConfigurationError: ``path`` exists and was not built by Quorum, or cannot be written.
    """
    try:
        if path.exists() and _is_current(path):
            return
        path.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}.") as folder:
            draft = Path(folder) / path.name
            _write(draft)
            draft.replace(path)
    except OSError as error:
        raise ConfigurationError(
            f"Cannot write the sample database to {path}: {error.strerror or error}.", hint=OTHER_HOME
        ) from error


def _version() -> int:
    """Return a positive 31-bit hash of everything that decides the content."""
    sources = [*sorted(HERE.glob("*.py")), HERE / "schema.sql"]
    digest = hashlib.sha256(b"".join(source.read_bytes() for source in sources)).digest()
    return int.from_bytes(digest[:4], "big") >> 1


def _is_current(path: Path) -> bool:
    header = path.read_bytes()[:100] if path.is_file() else b""
    # SQLite's file format: user_version at byte 60, application_id at byte 68, both big-endian
    if not header.startswith(b"SQLite format 3\0") or int.from_bytes(header[68:72], "big") != APPLICATION_ID:
        raise ConfigurationError(
            f"{path} exists and is not Quorum's sample database.",
            hint="Choose another folder, or move that file away.",
        )
    return int.from_bytes(header[60:64], "big") == _version()


def _write(path: Path) -> None:
    import sqlite3

    connection = sqlite3.connect(path)
    try:
        connection.execute("PRAGMA journal_mode = OFF")  # a draft that fails is thrown away
        connection.execute("PRAGMA synchronous = OFF")
        connection.executescript((HERE / "schema.sql").read_text(encoding="utf-8"))
        _fill(connection)
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute(f"PRAGMA user_version = {_version()}")
        connection.commit()
    except sqlite3.OperationalError as error:  # as SQLite calls a full disk
        raise OSError(str(error)) from error
    finally:
        connection.close()


def _fill(connection: sqlite3.Connection) -> None:
    dice = rows.Dice(SEED)
    categories, suppliers = rows.categories(), rows.suppliers(dice)
    products = rows.products(dice, categories, suppliers)
    customers, employees = rows.customers(dice), rows.employees(dice)
    orders, items = rows.orders(dice, customers, products)
    tables = {
        "categories": categories,
        "suppliers": suppliers,
        "products": products,
        "customers": customers,
        "addresses": rows.addresses(dice, customers),
        "employees": employees,
        "orders": orders,
        "order_items": items,
        "payments": rows.payments(dice, orders),
        "returns": rows.returns(dice, orders, items),
        "reviews": rows.reviews(dice, orders, items),
        "support_tickets": rows.support_tickets(dice, orders, employees),
    }
    for year, month in rows.SHARDS:
        name = f"events_{year}_{month:02d}"
        connection.execute(EVENTS_TABLE.format(name=name))
        tables[name] = rows.events(dice, customers, products, year, month)
    for name, content in tables.items():
        marks = ", ".join("?" * len(content[0]))
        connection.executemany(f"INSERT INTO {name} VALUES ({marks})", content)
