"""The recipe with a model whose replies are written here, by role."""

from pathlib import Path
from typing import Any

import pytest

from quorum import Quorum
from quorum.tools.models.scripted import scripted

PRICES: Any = {"column": "revenue", "unit": "euros", "wanted": "dollars"}
ITEMS: Any = {"column": "items", "unit": "pieces"}


@pytest.mark.parametrize(
    ("reply", "all_units", "warnings"),
    [
        ({"units": [PRICES, ITEMS]}, False, ["revenue is in euros, not in dollars."]),
        ({"units": [ITEMS]}, False, []),
        ({"units": [ITEMS]}, True, ["items is in pieces."]),
        ("no JSON", False, []),
    ],
)
def test_a_wrong_unit_is_a_warning(reply: Any, all_units: bool, warnings: list[str], tmp_path: Path) -> None:
    model = scripted({"sql_writer": {"sql": "SELECT 1 AS revenue, 2 AS items"}, "unit_checker": reply})
    options: dict[str, Any] = {"home": tmp_path, "switches": {"all_units": all_units}}
    with Quorum(db="sample", models=[model], recipe="checked_sql:RECIPE", **options) as quorum:
        answer = quorum.ask("What is the revenue in dollars, and how many items are there?")
    assert answer.rows == [[1, 2]]
    assert answer.warnings == warnings
    assert "unit_checker" in answer.usage["by_agent"]
