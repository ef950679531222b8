"""Triplets on disk: all or nothing, one writer, damage said; and how they are found."""

from __future__ import annotations

import re
import sqlite3
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from quorum.knowledge.catalog import Catalog, Column, Table
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.schema.render import render
from quorum.knowledge.triplets import Expansion, Explored, Triplet
from quorum.tools.masking import MASK, looks_personal, masked, masked_rows, without_personal
from quorum.tools.triplet_store import FILE, TripletStore, load_explored

CATALOG = Catalog("shop", "sqlite", ())
ONE = Expansion(1, 0, "select_column", (("orders", "total"),), "", "SELECT total FROM orders", "worked")
TWO = Expansion(2, 1, "order_by", (("orders", "total"),), "descending", "SELECT 1", "failed", "No.")
FOUND = Triplet(1, ONE.sql, "shape", "What was each order worth?", {"orders": "ab12"}, (("orders", "total"),))


def written(folder: Path) -> Path:
    store = TripletStore.open(folder, CATALOG)
    store.add(ONE, FOUND)
    store.add(TWO)
    store.close()
    return folder


def test_an_expansion_and_its_triplet_are_kept_together_or_not_at_all(tmp_path: Path) -> None:
    store = TripletStore.open(written(tmp_path), CATALOG)
    with pytest.raises(ConfigurationError, match="cannot be kept"):
        store.add(replace(TWO, id=1), replace(FOUND, id=3, shape="another"))  # of a taken id
    assert (store.expansions, store.triplets) == ([ONE, TWO], [FOUND])
    newer = replace(FOUND, id=3, tables={"orders": "cd34"})
    store.add(replace(ONE, id=3), newer)
    assert store.triplets == [newer], "it takes the place of the one of its shape"
    store.close()
    found = load_explored(tmp_path)
    assert ([each.id for each in found.expansions], found.triplets) == ([1, 2, 3], (newer,))


def test_one_writer_at_a_time(tmp_path: Path) -> None:
    store = TripletStore.open(tmp_path, CATALOG)
    with pytest.raises(ConfigurationError, match="by another process"):
        TripletStore.open(tmp_path, CATALOG)
    store.close()
    store.close()
    TripletStore.open(tmp_path, CATALOG).close()


@pytest.mark.parametrize(
    "how",
    [
        "torn",
        "UPDATE manifest SET value = '99' WHERE name = 'format'",
        "UPDATE expansions SET outcome = 'splendid'",
        "UPDATE triplets SET tables = '7'",
    ],
)
def test_a_damaged_or_foreign_file_is_a_problem_and_no_traceback(tmp_path: Path, how: str) -> None:
    path = written(tmp_path) / FILE
    if how == "torn":
        path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    else:
        with closing(sqlite3.connect(path)) as database, database:
            database.execute(how)
    found = load_explored(tmp_path)
    assert found.triplets == ()
    assert "cannot be read" in found.problems[0]
    with pytest.raises(ConfigurationError) as raised:
        TripletStore.open(tmp_path, CATALOG)
    assert "exploring begins again" in raised.value.hint
    with pytest.raises(ConfigurationError, match="cannot be used"):
        TripletStore.open(tmp_path, CATALOG)  # the lock is free again


def test_the_nearest_come_first_by_words_and_similar_ones_share_more_than_one() -> None:
    asked = {
        "How many customers a city?": "SELECT city, COUNT(*) FROM customers GROUP BY city",
        "What was the largest order?": "SELECT MAX(total) FROM orders",
        "What remarks are there?": "SELECT note FROM orders",
    }
    explored = Explored(tuple(Triplet(n, sql, str(n), q, {}) for n, (q, sql) in enumerate(asked.items(), 1)))
    assert [t.id for t in explored.similar("How many customers are there in each city?", 3)] == [1]
    assert explored.similar("How many orders did each shop get?", 3) == []
    assert [t.id for t in explored.nearest("customers of each city", (), 2)] == [1]
    assert [t.id for t in explored.nearest("complaints", ("orders.note",), 2)] == [3, 2]
    assert explored.nearest("zzz", (), 2) == []


PERSONAL = """
    ada@example.org | 4111 1111 1111 1111 | DE89 3704 0044 0532 0130 00 | +32 9 123 45 67 | 078-05-1120
    sk-abcdefghijklmnop1234 | AKIAIOSFODNN7EXAMPLE | eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIx.abc
    9e107d9d372bb6826bd81d3542a419d6
"""
PLAIN = "2026-01-01 12:30:00 | 1,234,567.89 | Ghent | 0.3333333333333333 | A-1234 | 12345678 | 10.0.0.1"


def test_what_looks_personal_is_masked_and_what_is_plain_stays() -> None:
    for text in re.split(r" \| |\n +", PERSONAL.strip()):
        assert looks_personal(f"before {text} after"), text
        assert masked(f"before {text} after") == f"before {MASK} after"
    assert [text for text in PLAIN.split(" | ") if looks_personal(text)] == []
    names = ["Phone", "note", "total", "email", "password"]
    rows = masked_rows(names, [["123", "ask ada@x.org", 1 / 3, None, "hunter2"]])
    assert rows == [[MASK, f"ask {MASK}", 1 / 3, None, MASK]]


def test_a_catalog_without_personal_values_keeps_all_names() -> None:
    samples = {"name": "Ada", "Fax": "4172 5555", "note": "ada@x.org"}
    columns = tuple(Column(name, "TEXT", samples=(each,), cells=(each,)) for name, each in samples.items())
    people = Table("people", columns)
    text = render(without_personal(Catalog("shop", "sqlite", (people,)))).text
    assert "Ada" in text
    assert "Fax" in text
    assert not re.search(r"4172|ada@x\.org", text)
