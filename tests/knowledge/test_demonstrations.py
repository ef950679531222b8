"""Demonstrations: reading the file, what is near a question, and what is never shown."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorum.knowledge.demonstrations import Demonstration, Demonstrations
from quorum.knowledge.errors import ConfigurationError
from tests.knowledge.letters import Letters

QUESTIONS = [
    "How many orders are there?",
    "List the names of all customers.",
    "What is the average price of products?",
    "Which customer placed the most orders?",
    "Show the cheapest product.",
]
SHOP = Demonstrations(tuple(Demonstration(each, f"SELECT {n}") for n, each in enumerate(QUESTIONS)))


def test_a_file_is_read_in_order_without_repetitions(tmp_path: Path) -> None:
    first = {"question": " How many? ", "sql": "SELECT 1\n", "database": "shop", "hardness": "easy"}
    other = {"question": "Größe?", "sql": "SELECT 2", "database": None}
    path = tmp_path / "shots.jsonl"
    path.write_text("\n".join(json.dumps(each) if each else "" for each in (first, None, other, first)))
    assert Demonstrations.load(path).items == (
        Demonstration("How many?", "SELECT 1", "shop"),
        Demonstration("Größe?", "SELECT 2"),
    )
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
    (tmp_path / "train.json").write_text(json.dumps(items, indent=4))
    pool = Demonstrations.load(tmp_path / "train.json")
    assert pool.items == (
        Demonstration("How many pets?", "SELECT count(*) FROM pet", "zoo"),
        Demonstration("How many orders?", "SELECT count(*) FROM orders", "shop"),
    )
    assert [shot.database for shot in pool.nearest("how many PETS")] == ["shop"], "never the question itself"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "There is no demonstration in"),
        ('[{"question": "How many?"}]', "entry 1: there is no sql"),
        ('[{"question": "How many?", "query": "SELECT 1"}, 2]', "entry 2, is no JSON object"),
        ("\n{question: 1}", "line 2, cannot be read"),
        ('{"question": "  ", "sql": "SELECT 1"}', "line 1: question is '  '"),
        ('{"question": "How many?", "sql": "SELECT 1", "database": 5}', "line 1: database is 5"),
        ("[" * 100_000, "cannot be read"),
        ('{"question": "\udce9"}', "no UTF-8 text"),
    ],
)
def test_what_is_malformed_is_named_with_its_number(tmp_path: Path, text: str, said: str) -> None:
    path = tmp_path / "shots.jsonl"
    path.write_text(text, encoding="utf-8", errors="surrogateescape")
    with pytest.raises(ConfigurationError, match=said) as caught:
        Demonstrations.load(path)
    assert "shots.jsonl" in str(caught.value)


@pytest.mark.parametrize(
    ("question", "best"),
    [
        ("How many orders did each customer place?", [3, 0]),
        ("Show the names of customers in Ghent.", [1]),
        (" how  MANY orders\nare there", [3, 1, 2, 4]),  # the question itself is never shown
        ("zzz", [0, 1, 2, 3, 4]),
        ("", [0, 1, 2]),
        ("orders", []),
    ],
)
def test_the_most_similar_come_first_then_the_others_in_the_order_of_the_file(
    question: str, best: list[int]
) -> None:
    assert SHOP.nearest(question, k=len(best)) == [SHOP.items[n] for n in best]
    many = Demonstrations(tuple(Demonstration(f"Question about {n}?", "SELECT 1") for n in range(20)))
    assert len({*many.nearest(question)}) == 9, "unless told otherwise"


def test_embeddings_rank_where_no_word_is_shared() -> None:
    pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")
    items = [Demonstration(word, f"SELECT {n}") for n, word in enumerate(("zzzz", "listen", "x"))]
    shots = Demonstrations(tuple(items))
    assert shots.nearest("silent", k=1) == items[:1]  # by words, all are alike
    assert shots.nearest("silent", k=1, embedder=Letters()) == items[1:2]
    assert items[1] not in shots.nearest("LISTEN", embedder=Letters())
