"""A service over the small shop, with scripted models."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import pytest

from quorum import Settings
from quorum.serve.service import Service
from quorum.tools.models.scripted import scripted
from tests.graph.shop import GOOD, make_shop, script, sql, written

ABOVE_SIX = GOOD.replace(" GROUP BY", " WHERE o.total > 6 GROUP BY")
DIFFER = {
    "m:a": scripted(script(action=sql(GOOD), sql_writer=written(GOOD))),
    "m:b": scripted(script(action=sql(ABOVE_SIX), sql_writer=written(ABOVE_SIX))),
}
"""Models whose answers differ."""
ONE = {"m:a": DIFFER["m:a"]}

Make = Callable[..., Service]


@pytest.fixture
async def make(workplace: Path) -> AsyncIterator[Make]:
    """Makes services over the same home, as processes one after the other would."""
    made, shop = list[Service](), make_shop(workplace / "shop.db")

    def service(chat_models: Any = ONE, **given: Any) -> Service:
        about = {"recipe": "single", "models": [*(chat_models or ())], "home": workplace / "q"}
        made.append(Service(Settings(**about | given), {"shop": f"sqlite:///{shop}"}, chat_models))
        return made[-1]

    yield service
    for each in made:
        await each.aclose()
