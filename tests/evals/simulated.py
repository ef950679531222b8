"""A suite made up on the spot, and a model that answers it: after a while, always the same way.

The question says all that its reply hangs on, so that a model in this process and one behind HTTP reply
the same, in whatever order they are asked.
"""

from __future__ import annotations

import asyncio
import sqlite3
from pathlib import Path
from typing import Any

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.scorers.own import OwnScorer
from quorum.evals.suites.files import sqlite_url
from quorum.tools.models.scripted import Prompt, ScriptedChatModel
from tests.servers.replies import GOLD, reply_to

CITIES = ("Ghent", "Lyon", "Porto", "Turin", "Graz", "Bern", "Cork", "Vaasa")
ORDERS = 2000
"""Orders of each shop; their totals run from 1 to ``ORDERS``, so that every question has an answer."""


def make_suite(folder: Path, questions: int, databases: int) -> Suite:
    """Questions that differ by a number, asked of the databases in turn, with gold SQL."""
    files = [_make_database(folder / f"shop{number}.sqlite", number) for number in range(databases)]
    asked = [
        EvalQuestion(
            id=f"{number:04}",
            question=f"How many orders over {number} euros did each city place?",
            database=files[number % databases].stem,
            url=sqlite_url(files[number % databases]),
            dialect="sqlite",
            gold_sql=(GOLD.format(least=number),),
        )
        for number in range(questions)
    ]
    return Suite("simulated", folder, tuple(asked), OwnScorer())


def _make_database(path: Path, seed: int) -> Path:
    with sqlite3.connect(path) as database:
        database.executescript(
            """
            CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT NOT NULL, city TEXT, since DATE);
            CREATE TABLE products (id INTEGER PRIMARY KEY, name TEXT NOT NULL, price REAL, weight REAL);
            CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
                                 total REAL, placed DATE, note TEXT);
            CREATE TABLE order_lines (order_id INTEGER REFERENCES orders(id), line INTEGER,
                                      product_id INTEGER REFERENCES products(id), pieces INTEGER,
                                      PRIMARY KEY (order_id, line));
            """
        )
        customers = [
            (i, f"Customer {i}", CITIES[(i + seed) % 8], f"2020-01-{i % 28 + 1:02}") for i in range(99)
        ]
        products = [(i, f"Product {i}", i * 1.5, i / 7) for i in range(50)]
        orders = [(i, i * 7 % 99, float(i), f"2024-{i % 12 + 1:02}-01", None) for i in range(1, ORDERS + 1)]
        lines = [(i, 1, i % 50, i % 5 + 1) for i in range(1, ORDERS + 1)]
        database.executemany("INSERT INTO customers VALUES (?, ?, ?, ?)", customers)
        database.executemany("INSERT INTO products VALUES (?, ?, ?, ?)", products)
        database.executemany("INSERT INTO orders VALUES (?, ?, ?, ?, ?)", orders)
        database.executemany("INSERT INTO order_lines VALUES (?, ?, ?, ?)", lines)
    database.close()
    return path


class SlowModel(ScriptedChatModel):
    """Replies as ``reply_to`` says, after ``latency`` seconds. Make one with ``slow_model``."""

    latency: float

    async def _agenerate(self, messages: Any, stop: Any = None, run_manager: Any = None, **more: Any) -> Any:
        await asyncio.sleep(self.latency)
        return await super()._agenerate(messages, stop, run_manager, **more)


def _reply(prompt: Prompt) -> str:
    return reply_to(prompt.text)


def slow_model(latency: float) -> SlowModel:
    """The model in this process; it needs no event loop but the caller's."""
    return SlowModel(script=_reply, latency=latency, source="simulated")
