"""Verified answers as files: what is written is read again, and what cannot be read is left out and said."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.verified import LONGEST_FILE, KnowledgeBase, VerifiedPair

PAIR = VerifiedPair(
    question="How many orders are there?",
    sql="SELECT COUNT(*) FROM orders",
    database="shop",
    dialect="sqlite",
    tables=("orders",),
    by="jane",
    date="2026-11-22",
    note="Cancelled ones count too.",
    instead_of="SELECT COUNT(id)\nFROM order_items",
    run="20261122-1",
)
TEXT = st.text(
    st.characters(blacklist_categories=("Cs", "Cc"), blacklist_characters="\u2028\u2029\x85"), max_size=60
)
LINE = TEXT.map(str.strip).filter(bool)


@given(LINE, st.lists(LINE, min_size=1, max_size=3).map("\n".join), LINE, st.lists(LINE, max_size=3), LINE)
def test_what_is_written_is_read_again(
    question: str, sql: str, by: str, tables: list[str], wrong: str
) -> None:
    pair = VerifiedPair(question, sql, tables=tuple(tables), by=by, date="2026-11-22", instead_of=wrong)
    assert VerifiedPair.of_text(pair.as_text()) == pair


@pytest.mark.parametrize(
    "sql", ["SELECT 1 -- ```sql", "SELECT '````'", "SELECT 1\n## Instead of\n\n```sql\nSELECT 2\n```"]
)
def test_fences_within_a_query_do_not_end_it(sql: str) -> None:
    pair = replace(PAIR, sql=sql)
    assert VerifiedPair.of_text(pair.as_text()) == pair


def test_a_file_is_found_by_question_and_database(tmp_path: Path) -> None:
    KnowledgeBase(tmp_path).keep(PAIR)
    path = KnowledgeBase(tmp_path).keep(replace(PAIR, question="how many ORDERS  are there", sql="SELECT 4"))
    elsewhere = KnowledgeBase(tmp_path).keep(replace(PAIR, database="archive"))
    assert sorted((tmp_path / "questions").iterdir()) == sorted([path, elsewhere])
    known = KnowledgeBase.load(tmp_path)
    found = known.of("SHOP", "sqlite").exact("How many orders are there")
    assert found is not None
    assert found.sql == "SELECT 4"
    assert known.of("shop", "duckdb").exact(PAIR.question) is None
    assert known.of("shop", "sqlite").exact("How many orders?") is None


def test_similar_questions_are_found_and_notes_shown_under_their_tables(tmp_path: Path) -> None:
    known = KnowledgeBase(tmp_path)
    known.keep(PAIR)
    revenue = replace(PAIR, question="What is the revenue of each region?", sql="SELECT 1", note="")
    known.keep(revenue)
    (tmp_path / "notes").mkdir()
    (tmp_path / "notes" / "calendar.md").write_text("The fiscal year begins in April.\n", "utf-8")
    known = KnowledgeBase.load(tmp_path)
    assert known.similar("Revenue per region in 2024", 3) == [revenue]
    assert known.similar("Who is the tallest player?", 3) == []
    text = known.notes.all_text(1000)
    assert text is not None
    assert "The fiscal year begins in April." in text
    assert "# orders\nCancelled ones count too. (verified by jane on 2026-11-22" in text


def test_damaged_files_are_left_out_and_said(tmp_path: Path) -> None:
    KnowledgeBase(tmp_path).keep(PAIR)
    questions = tmp_path / "questions"
    (questions / "plain.md").write_text("SELECT 1", "utf-8")
    (questions / "head.md").write_text("---\nquestion: [\n---\n\n```sql\nSELECT 1\n```\n", "utf-8")
    (questions / "list.md").write_text("---\n- a\n---\n\n```sql\nSELECT 1\n```\n", "utf-8")
    (questions / "empty.md").write_text("---\nby: jane\n---\n\n```sql\nSELECT 1\n```\n", "utf-8")
    (questions / "latin.md").write_bytes("---\nquestion: Größe\n".encode("latin-1"))
    (questions / "long.md").write_bytes(b" " * (LONGEST_FILE + 1))
    outside = tmp_path / "secret.txt"
    outside.write_text(PAIR.as_text(), "utf-8")
    (questions / "link.md").symlink_to(outside)
    known = KnowledgeBase.load(tmp_path)
    assert known.pairs == (PAIR,)
    told = " ".join(known.problems)
    assert all(f"{name}.md" in told for name in ("plain", "head", "list", "empty", "latin", "long", "link"))


def test_a_file_is_no_knowledge_base_and_ids_are_unambiguous(tmp_path: Path) -> None:
    (tmp_path / "kb").write_text("")
    with pytest.raises(ConfigurationError, match="is a file"):
        KnowledgeBase.load(tmp_path / "kb")
    known = KnowledgeBase(tmp_path / "other")
    path = known.keep(PAIR)
    known = KnowledgeBase.load(tmp_path / "other")
    assert known.find(PAIR.id[:3]) == PAIR
    for name in ("", "zz"):
        with pytest.raises(ConfigurationError, match="kb show"):
            known.find(name)
    assert known.forget(PAIR) == [path]
    assert KnowledgeBase.load(tmp_path / "other").empty
