"""Demonstrations: reading the file, what is near a question, and what is never shown."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.demonstrations import Demonstration, Demonstrations
from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    from quorum.knowledge.search.index import Vectors

SHOP = Demonstrations(
    tuple(
        Demonstration(question, f"SELECT {n}")
        for n, question in enumerate(
            [
                "How many orders are there?",
                "List the names of all customers.",
                "What is the average price of products?",
                "Which customer placed the most orders?",
                "Show the cheapest product.",
            ]
        )
    )
)


def write(folder: Path, *lines: object) -> Path:
    path = folder / "shots.jsonl"
    texts = [line if isinstance(line, str) else json.dumps(line) for line in lines]
    path.write_text("\n".join(texts), encoding="utf-8")
    return path


def test_a_file_is_read_in_order_without_repetitions(tmp_path: Path) -> None:
    first = {"question": " How many? ", "sql": "SELECT 1\n", "database": "shop", "hardness": "easy"}
    path = write(tmp_path, first, "", {"question": "Größe?", "sql": "SELECT 2", "database": None}, first)
    assert Demonstrations.load(path).items == (
        Demonstration("How many?", "SELECT 1", "shop"),
        Demonstration("Größe?", "SELECT 2"),
    )


def test_lines_end_at_newlines_only_and_a_byte_order_mark_is_no_part(tmp_path: Path) -> None:
    path = tmp_path / "shots.jsonl"
    line = json.dumps({"question": "One\u2028two?", "sql": "SELECT 1"}, ensure_ascii=False)
    path.write_bytes(f"\ufeff{line}\r\n".encode())
    assert Demonstrations.load(path).items == (Demonstration("One\u2028two?", "SELECT 1"),)


@pytest.mark.parametrize("key", ["query", "SQL"])
def test_training_questions_are_read_as_they_are_published(tmp_path: Path, key: str) -> None:
    parsed = {"from": {"table_units": []}}  # Spider's, beside the text
    items = [
        {"db_id": "zoo", "question": "How many pets?", key: "SELECT count(*) FROM pet", "sql": parsed},
        {"db_id": "shop", "question": "How many orders?", key: "SELECT count(*) FROM orders", "sql": parsed},
    ]
    path = tmp_path / "train_spider.json"
    path.write_text(json.dumps(items, indent=4), encoding="utf-8")
    pool = Demonstrations.load(path)
    assert pool.items == (
        Demonstration("How many pets?", "SELECT count(*) FROM pet", "zoo"),
        Demonstration("How many orders?", "SELECT count(*) FROM orders", "shop"),
    )
    assert [shot.database for shot in pool.nearest("how many PETS")] == ["shop"], "never the question itself"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[{"question": "How many?"}]', "entry 1: there is no sql"),
        ('[{"question": "How many?", "query": "SELECT 1"}, 2]', "entry 2, is no JSON object"),
        ("[]", "There is no demonstration in"),
    ],
)
def test_a_malformed_entry_is_named_with_its_number(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "train.json"
    path.write_text(text)
    with pytest.raises(ConfigurationError, match=said):
        Demonstrations.load(path)


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("{question: 1}", "line 2, is not JSON"),
        ('["a", "b"]', "line 2, is no JSON object"),
        ('{"question": "How many?"}', "line 2: there is no sql"),
        ('{"question": "  ", "sql": "SELECT 1"}', "line 2: question is '  '"),
        ('{"question": "How many?", "sql": ["SELECT 1"]}', "line 2: sql is"),
        ('{"question": "How many?", "sql": "SELECT 1", "database": 5}', "line 2: database is 5"),
        ("[" * 100_000, "line 2, is not JSON"),
    ],
)
def test_a_malformed_line_is_named_with_its_number(tmp_path: Path, line: str, said: str) -> None:
    path = write(tmp_path, {"question": "Fine?", "sql": "SELECT 1"}, line)
    with pytest.raises(ConfigurationError) as caught:
        Demonstrations.load(path)
    assert said in str(caught.value)
    assert "shots.jsonl" in str(caught.value)
    assert caught.value.hint.startswith("A line is {")


def test_a_file_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"nothing\.jsonl cannot be read: No such file"):
        Demonstrations.load(tmp_path / "nothing.jsonl")
    with pytest.raises(ConfigurationError, match="There is no demonstration"):
        Demonstrations.load(write(tmp_path, "", " "))
    (tmp_path / "latin.jsonl").write_bytes(b'{"question": "\xe9"}')
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        Demonstrations.load(tmp_path / "latin.jsonl")


def test_the_most_similar_come_first() -> None:
    near = SHOP.nearest("How many orders did each customer place?", k=2)
    assert [item.sql for item in near] == ["SELECT 3", "SELECT 0"]
    assert SHOP.nearest("Show the names of customers in Ghent.", k=1)[0].sql == "SELECT 1"


@pytest.mark.parametrize(
    "asked", ["How many orders are there?", " how  MANY orders\nare there", "HOW MANY ORDERS ARE THERE ?"]
)
def test_the_question_itself_is_never_shown(asked: str) -> None:
    assert "SELECT 0" not in [item.sql for item in SHOP.nearest(asked)]
    assert len(SHOP.nearest(asked)) == 4


def test_a_question_like_none_still_gets_its_shots_in_the_order_of_the_file() -> None:
    assert SHOP.nearest("zzz", k=3) == list(SHOP.items[:3])
    assert SHOP.nearest("", k=3) == list(SHOP.items[:3])
    assert SHOP.nearest("orders", k=0) == []


def test_nine_are_shown_unless_told_otherwise() -> None:
    many = Demonstrations(tuple(Demonstration(f"Question about {n}?", "SELECT 1") for n in range(20)))
    assert len(many.nearest("Question?")) == 9


@given(st.text(max_size=40), st.integers(0, 7))
def test_any_question_gets_distinct_others(question: str, k: int) -> None:
    near = SHOP.nearest(question, k)
    assert near == SHOP.nearest(question, k)
    assert len(set(near)) == len(near)
    assert min(k, 4) <= len(near) <= k


class Letters:
    """An embedder that counts letters."""

    name = "letters"

    def encode(self, texts: Sequence[str]) -> Vectors:
        counts = np.array([[t.casefold().count(c) for c in "abcdefghijklmnopqrstuvwxyz"] for t in texts])
        found = counts.astype(np.float32) + 1e-3
        return np.ascontiguousarray(found / np.linalg.norm(found, axis=1, keepdims=True))


def test_embeddings_rank_where_no_word_is_shared() -> None:
    shots = Demonstrations(
        (
            Demonstration("zzzz", "SELECT 0"),
            Demonstration("listen", "SELECT 1"),
            Demonstration("x", "SELECT 2"),
        ),
    )
    assert shots.nearest("silent", k=1)[0].sql == "SELECT 0"  # by words, all are alike
    assert shots.nearest("silent", k=1, embedder=Letters())[0].sql == "SELECT 1"
    assert [item.sql for item in shots.nearest("LISTEN", embedder=Letters())] != ["SELECT 1"]
