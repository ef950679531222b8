"""Evaluations that run fast: questions on shops in this process, and a model that knows the answers.

A shop's database can be made to fail (``ShopConnector``). Tests that ask shops take the fixture ``shops``.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest

from quorum.evals.questions import EvalQuestion, Suite
from quorum.evals.running.runner import Evaluation
from quorum.evals.scorers.base import Scorer
from quorum.evals.scorers.own import OwnScorer
from quorum.graph.options import RunOptions
from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases import CONNECTORS
from quorum.tools.databases.sqlite.connector import SqliteConnector
from quorum.tools.models.scripted import Prompt, scripted
from quorum.tools.query import ErrorKind, Limits, QueryError, QueryResult
from tests.graph.shop import changed, script, sql

MODEL = "test"
GOLD = "SELECT COUNT(*) AS orders FROM orders WHERE total > {number}"
ORDERS = 40

_NUMBER = re.compile(r"How many orders exceed (\d+)\?")


class ShopConnector(SqliteConnector):
    """One table of orders, whose totals are 1 to ``ORDERS``.

    Attributes:
        folder: Where the shops' files are.
        opened: Names of the shops that were opened, each time.
        broken: Names of shops that cannot be opened.
        lost: Names of shops whose connection is lost.
    """

    scheme = "shop"
    folder: ClassVar[Path]
    opened: ClassVar[list[str]] = []
    broken: ClassVar[set[str]] = set()
    lost: ClassVar[set[str]] = set()

    @classmethod
    def from_url(cls, url: str) -> Self:
        file = cls.folder / url.removeprefix("shop://")
        if not file.exists():
            changed(
                file,
                "PRAGMA synchronous = OFF",
                "CREATE TABLE orders (id INTEGER PRIMARY KEY, total REAL)",
                *(f"INSERT INTO orders VALUES ({number}, {number})" for number in range(1, ORDERS + 1)),
            )
        return cls(str(file))

    async def open(self) -> None:
        self.opened.append(self.name)
        if self.name in self.broken:
            raise DatabaseUnavailable(f"{self.name} is closed today.")
        await super().open()

    async def run(self, sql: str, limits: Limits, *loads: Any) -> QueryResult | QueryError:
        if self.name in self.lost:
            return QueryError(ErrorKind.UNAVAILABLE, f"{self.name} has closed.")
        return await super().run(sql, limits, *loads)


@pytest.fixture
def shops(monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory) -> type[ShopConnector]:
    """Shops can be opened; all of them are well."""
    monkeypatch.setitem(CONNECTORS, "shop", f"{__name__}:ShopConnector")
    monkeypatch.setattr(ShopConnector, "folder", tmp_path_factory.mktemp("shops"), raising=False)
    for name, value in (("opened", []), ("broken", set()), ("lost", set())):
        monkeypatch.setattr(ShopConnector, name, value)
    return ShopConnector


def questions(count: int, *, shops: int = 1) -> tuple[EvalQuestion, ...]:
    """Question ``n`` asks how many orders exceed ``n``, of the shops in turn."""
    return tuple(
        EvalQuestion(
            id=f"q{n:02}",
            question=f"How many orders exceed {n}?",
            database=f"shop{n % shops}",
            url=f"shop://shop{n % shops}",
            dialect="sqlite",
            gold_sql=(GOLD.format(number=n),),
        )
        for n in range(count)
    )


class Knowing:
    """A model that knows the answers.

    Args:
        special: May answer in its place: is told the role and the question's number.

    Attributes:
        asked: (role, number) to how often.
    """

    def __init__(self, special: Callable[[str, int], Any] = lambda role, number: None) -> None:
        self.special = special
        self.asked: Counter[tuple[str, int]] = Counter()

    @property
    def numbers(self) -> set[int]:
        """Numbers of the questions that it was asked."""
        return {number for _, number in self.asked}

    def __call__(self, prompt: Prompt) -> Any:
        number = int(_NUMBER.findall(prompt.text)[-1])
        self.asked[prompt.role, number] += 1
        gold = GOLD.format(number=number)
        replies = script(sql_writer={"reasoning": "Count.", "sql": gold}, action=sql(gold))
        return self.special(prompt.role, number) or replies[prompt.role]


def evaluation(
    folder: Path,
    model: Knowing | Mapping[str, Any],
    asked: Sequence[EvalQuestion],
    *,
    scorer: Scorer | None = None,
    concurrency: int = 4,
    shard: tuple[int, int] = (1, 1),
    **options: Any,
) -> Evaluation:
    """An evaluation in ``folder`` of a suite that is ``asked``, of the recipe ``single`` if none is given."""
    models = model if isinstance(model, Mapping) else {MODEL: model}
    return Evaluation(
        suite=Suite("shops", folder, tuple(asked), scorer or OwnScorer()),
        options=RunOptions(models=[*models], **({"recipe": "single"} | options)),
        questions=asked,
        folder=folder,
        concurrency=concurrency,
        shard=shard,
        chat_models={name: scripted(each) for name, each in models.items()},
    )
