"""Gold SQL of the shared data passes guard and lint, and is sent and written with the tree that is judged."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from quorum.tools.guard import Passed
from quorum.tools.guard.verdict import verdict_on
from quorum.tools.lint import Linter
from quorum.tools.sql import parse_statements, without_hints
from quorum.tools.sql.writing import same, write
from tests.tools.gold import SETS, Gold, catalog_of

EXCEPTIONS: dict[str, str] = {}
"""Gold that falls short of something, by id, with the reason: there is none."""


@cache
def linter(schema: Path) -> Linter:
    return Linter(catalog_of(schema))


def faults(gold: Gold) -> Iterator[str]:
    """What is wrong with a gold query, or with how it would be sent and shown."""
    verdict = verdict_on(gold.sql, gold.dialect)
    if not isinstance(verdict, Passed):
        yield f"refused: {verdict.reason}"
        return
    yield from (error.describe() for error in linter(gold.schema).problems(verdict.tree))
    judged = [without_hints(tree) for tree in parse_statements(gold.sql, gold.dialect)]
    texts = {
        "sent": verdict.sql,
        "written": ";\n".join(write(tree, gold.dialect) for tree in judged),
        "with capitals": ";\n".join(write(tree, gold.dialect, upper=True) for tree in judged),
        "shown": ";\n".join(write(tree, gold.dialect, pretty=True, comments=True) for tree in judged),
    }
    for what, text in texts.items():
        again = parse_statements(text, gold.dialect)
        exact = len(again) == len(judged) and (what == "with capitals" or all(map(same, judged, again)))
        if again != judged or not exact:
            yield f"means another thing as it is {what}: {text}"


@pytest.mark.heavy
@pytest.mark.parametrize("name", SETS)
def test_gold_is_read_judged_and_written_as_it_is(shared: Path, name: str) -> None:
    read, count = SETS[name]
    every = list(read(shared / "data"))
    assert len(every) >= count
    found = {f"{gold.id}: {gold.sql}": wrong for gold in every if (wrong := list(faults(gold)))}
    assert {what: wrong for what, wrong in found.items() if what.split(":")[0] not in EXCEPTIONS} == {}
