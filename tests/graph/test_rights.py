"""What rules withhold leaves in no prompt, trace, page, answer or file of home, whichever agent looks."""

from __future__ import annotations

import gzip
import itertools
import sqlite3
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from quorum import Quorum
from quorum.api import explore
from quorum.graph.runs import RunFolder
from quorum.page import page_of
from quorum.report import report_of
from quorum.tools.masking import MASK
from quorum.tools.models.scripted import Prompt, scripted
from quorum.tools.sample import sample_database
from tests.graph.shop import CITIES, GOOD, SHOP, Opened, known_roles, run_graph, script, usual
from tests.servers.postgres_server import PostgresServer

COLUMNS = {
    "customers": ("email", "full_name", "phone"),
    "suppliers": ("contact_email",),
    "addresses": ("street",),
    "employees": ("full_name", "salary"),
    "reviews": ("comment",),
}
NAMED = ["customers.email", "full_name", "phone", "contact_email", "addresses.street", "*.salary", "comment"]
RULES: dict[str, Any] = {"hide": ["payments", "support_*"], "mask": NAMED}
QUERIES = (
    "SELECT * FROM customers WHERE country = 'Germany'",
    "SELECT email, COUNT(*) AS n FROM customers GROUP BY email ORDER BY email LIMIT 20",
    "SELECT full_name FROM employees UNION SELECT full_name FROM customers",
    "SELECT CAST(salary AS TEXT) || full_name AS who FROM employees ORDER BY salary DESC",
    "SELECT department, MAX(salary) AS top, COUNT(*) AS n FROM employees GROUP BY department",
    "SELECT full_name, SUM(total_amount) AS n FROM customers JOIN orders USING (customer_id) GROUP BY 1",
    "SELECT substr(email, 1, 12) AS part, upper(phone) FROM customers WHERE phone IS NOT NULL LIMIT 9",
    "SELECT json_extract(email, '$') FROM customers",
    "SELECT street FROM addresses WHERE city = 'Nowhere' AND street LIKE 'a%'",
    "SELECT rating, comment FROM reviews ORDER BY created_on LIMIT 5",
    "SELECT COUNT(*) FROM customers WHERE email LIKE '%@mail%' HAVING MIN(email) > 'zz'",
    "SELECT * FROM payments",
)
QUESTIONS = (
    "What is the email of each customer in Germany?",
    "How many employees earn more than the others, and who earns most?",
)


def readable(path: Path) -> str:
    """A file's content as text, compressed ones unpacked."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        return repr(table.column_names) + repr([column.to_pylist() for column in table.columns])
    content = path.read_bytes()
    return (gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content).decode("utf-8", "replace")


class Curious:
    """A model whose every role writes queries over what is masked or hidden, each time another one."""

    def __init__(self) -> None:
        self.prompts: list[str] = []
        self.queries: Iterator[str] = itertools.cycle(QUERIES)

    def __call__(self, prompt: Prompt) -> Any:
        self.prompts.append(prompt.text)
        said = usual(known_roles()[prompt.role])
        return self._asking(said(prompt) if callable(said) else said)

    def _asking(self, said: Any) -> Any:
        if isinstance(said, dict):
            return {name: self._asking(each) for name, each in said.items()}
        if isinstance(said, list):
            return [self._asking(each) for each in said]
        return next(self.queries) if said in (GOOD, CITIES["sql"]) else said


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The sample with salaries that are no other number, and an answer that was verified before."""
    path = sample_database(tmp_path_factory.mktemp("sample"))
    with closing(sqlite3.connect(path)) as database:
        database.execute("UPDATE employees SET salary = 77000000 + employee_id * 1009")
        database.commit()
    return path


def values_of(shop: Path) -> set[str]:
    with closing(sqlite3.connect(shop)) as database:
        rows = [
            row
            for name in COLUMNS
            for row in database.execute(f"SELECT {', '.join(COLUMNS[name])} FROM {name}")
        ]
    return {text for row in rows for value in row if len(text := str(value)) > 6}


def named(texts: dict[str, str]) -> str:
    """All texts but the runs' options, which hold the rules."""
    return "".join(text for name, text in texts.items() if not name.endswith("run.json"))


def leaks(texts: dict[str, str], secrets: set[str]) -> list[tuple[str, str]]:
    return [(name, secret) for name, text in texts.items() for secret in secrets if secret in text]


OTHERS = ("sqlagent", "team", "react", "ssev", "recap")
HEAVY = [pytest.param(name, marks=pytest.mark.heavy) for name in OTHERS]


@pytest.mark.parametrize("recipe", ["quorum", "reforce", *HEAVY])
async def test_no_masked_value_leaves(recipe: str, shop: Path, tmp_path: Path) -> None:
    model, home, pages = Curious(), tmp_path / "home", {}
    options: dict[str, Any] = {"home": home, "recipe": recipe, "votes": 2, **RULES}
    async with Quorum(db=f"sqlite:///{shop}", chat_models={"m": scripted(model)}, **options) as quorum:
        for question in QUESTIONS:
            answer = await quorum.ask(question)
            pages[f"answer {question}"] = repr(answer) + str(answer)
    for run in (home / "runs").iterdir():
        pages[f"page {run.name}"] = page_of(report_of(RunFolder(run)))
    texts = pages | {str(path): readable(path) for path in home.rglob("*") if path.is_file()}
    texts["prompts"] = "\n".join(model.prompts)
    assert leaks(texts, values_of(shop)) == []
    assert MASK in texts["prompts"] + "".join(pages.values())
    assert "customers" in texts["prompts"]
    assert "support_tickets" not in named(texts)
    assert "payments" not in texts["prompts"].replace(QUERIES[-1], "").replace("no table payments", "")


async def test_no_masked_value_is_learned(shop: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    found = await explore(
        db=f"sqlite:///{shop}", models=["offline"], home=home, attempts=16, personal=True, **RULES
    )
    assert found.triplets
    texts = {str(path): readable(path) for path in home.rglob("*") if path.is_file()}
    assert leaks(texts, values_of(shop)) == []
    assert "support_tickets" not in named(texts)
    assert "payments" not in named(texts)


POLICY = """
ALTER TABLE orders ENABLE ROW LEVEL SECURITY;
CREATE POLICY large ON orders FOR SELECT USING (total > 15);
CREATE VIEW paid AS SELECT id, total FROM orders;
GRANT SELECT ON customers, orders, paid TO tenant;
"""
TENANT = """
DO $$ BEGIN CREATE ROLE tenant LOGIN PASSWORD 'pw'; EXCEPTION WHEN duplicate_object THEN END $$
"""


async def test_a_blank_answer_under_a_row_policy_says_so(postgres: PostgresServer, tmp_path: Path) -> None:
    pytest.importorskip("psycopg", reason="the extra quorum-sql[postgres] is not installed")
    postgres.execute(TENANT)
    name = postgres.new_database(SHOP + POLICY)
    url = f"postgresql://tenant:pw@127.0.0.1:{postgres.port}/{name}"
    async with AsyncExitStack() as closing:
        opened = Opened(closing)
        for query, hidden in (
            ("SELECT id FROM orders WHERE total < 15", ["public.orders"]),
            ("SELECT count(*) AS n FROM orders AS o WHERE o.total < 15", ["public.orders"]),
            ("SELECT id FROM customers WHERE id > 5", []),
            ("SELECT id FROM orders WHERE total > 15", []),
        ):
            said = script(sql_writer={"reasoning": "So.", "sql": query})
            ran = await run_graph(tmp_path, url, said, opened=opened, recipe="single")
            assert ran.answer.sql.startswith("SELECT"), ran.answer
            told = [text for text in ran.answer.warnings if text.startswith("Row policies")]
            assert [table in text for table, text in zip(hidden, told, strict=True)] == [True] * len(hidden)
        (resources,) = opened._resources.values()
    assert set(resources.catalog.filtered) == {"public.orders"}, "the view's owner is a superuser"
    assert any("Row policies may hide rows of: public.orders." in note for note in resources.catalog.notes)
