"""Verified answers as files: what is written is read again, and what cannot be read is left out and said."""

from __future__ import annotations

import os
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


@pytest.fixture
def kb(tmp_path: Path) -> KnowledgeBase:
    """A knowledge base with one pair."""
    KnowledgeBase(tmp_path / "kb").keep(PAIR)
    return KnowledgeBase.load(tmp_path / "kb")


QUERIES = st.lists(LINE, min_size=1, max_size=3).map("\n".join) | st.sampled_from(
    ["SELECT 1 -- ```sql", "SELECT '````'", "SELECT 1\n## Instead of\n\n```sql\nSELECT 2\n```"]
)


@given(LINE, QUERIES, LINE, st.lists(LINE, max_size=3, unique=True).map(tuple), LINE, st.booleans())
def test_what_is_written_is_read_again(
    question: str, sql: str, by: str, names: tuple[str, ...], wrong: str, marked: bool
) -> None:
    marks = ("1a", "2b", "3c")[: len(names) * marked]
    pair = VerifiedPair(question, sql, tables=names, by=by, marks=marks, instead_of=wrong)
    assert VerifiedPair.of_text(pair.as_text()) == pair


def test_a_file_is_found_by_question_and_database(kb: KnowledgeBase) -> None:
    path = kb.keep(replace(PAIR, question="how many ORDERS  are there", sql="SELECT 4"))
    elsewhere = kb.keep(replace(PAIR, database="archive"))
    assert {*(kb.folder / "questions").iterdir()} == {path, elsewhere}
    known = KnowledgeBase.load(kb.folder)
    assert known.of("SHOP", "sqlite").exact("How many orders are there").sql == "SELECT 4"
    assert known.of("shop", "duckdb").exact(PAIR.question) is None
    assert known.of("shop", "sqlite").exact("How many orders?") is None


def test_similar_questions_are_found_and_notes_shown_under_their_tables(kb: KnowledgeBase) -> None:
    revenue = replace(PAIR, question="What is the revenue of each region?", sql="SELECT 1", note="")
    kb.keep(revenue)
    kb.keep_note("calendar", "The fiscal year begins in April.\n")
    assert kb.changed()
    known = KnowledgeBase.load(kb.folder)
    assert known.similar("Revenue per region in 2024", 3) == [revenue]
    assert known.similar("Who is the tallest player?", 3) == []
    text = str(known.notes.all_text(1000))
    assert "The fiscal year begins in April." in text
    assert "# orders\nCancelled ones count too. (verified by jane on 2026-11-22" in text


HEAD = "---\n{}\n---\n\n```sql\nSELECT 1\n```\n"
BOMB = "\n".join(
    ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]" for n in range(1, 30)), "question: *a29"]
)
DAMAGED = {
    "plain": b"SELECT 1",
    "head": HEAD.format("question: [").encode(),
    "list": HEAD.format("- a").encode(),
    "nested": HEAD.format("question: {a: b}").encode(),
    "lacking": HEAD.format("by: jane").encode(),
    "anchor": HEAD.format(BOMB).encode(),
    "surrogate": HEAD.format('question: "\\ud800"').encode(),
    "deep": HEAD.format("question: " + "[" * 5000).encode(),
    "huge-head": HEAD.format(f"question: {'x' * 20_000}").encode(),
    "latin": "---\nquestion: Größe\n".encode("latin-1"),
    "long": b" " * (LONGEST_FILE + 1),
    "open": b"---\nquestion: x\n---\n\n```sql\nSELECT 1\n",
    "conflict": b"<<<<<<< HEAD\n" + HEAD.format("question: x").encode(),
}


def test_damaged_files_are_left_out_and_said(kb: KnowledgeBase) -> None:
    for name, content in DAMAGED.items():
        (kb.folder / "questions" / f"{name}.md").write_bytes(content)
    known = KnowledgeBase.load(kb.folder)
    assert known.pairs == (PAIR,)
    said = sorted(problem.partition(" was left out: ")[0] for problem in known.problems)
    assert said == sorted(f"questions/{name}.md" for name in DAMAGED)


def test_odd_tags_are_texts_and_many_headings_cost_nothing() -> None:
    text = HEAD.format("question: !!timestamp x\nby: !!bool x\ndate: 12:30\nrun: yes")
    pair = VerifiedPair.of_text(text.replace("\n", "\r\n"))
    assert (pair.question, pair.by, pair.date, pair.run) == ("x", "x", "12:30", "yes")
    many = HEAD.format("question: x") + "## Instead of\n```sql\nx\n" * 2000
    assert VerifiedPair.of_text(many).sql == "SELECT 1"
    credit = replace(PAIR, by="jane\nconfidence 1.00" + "x" * 900, date="2026\n").credit
    assert "\n" not in credit
    assert len(credit) < 200


def test_links_and_odd_entries_are_not_read(kb: KnowledgeBase, tmp_path: Path) -> None:
    questions, outside = kb.folder / "questions", tmp_path / "outside"
    outside.mkdir()
    (outside / "secret.md").write_text(replace(PAIR, question="Who is it?").as_text(), "utf-8")
    (kb.folder / "notes").symlink_to(outside)
    (questions / "link.md").symlink_to(outside / "secret.md")
    (questions / "loop.md").symlink_to(questions / "loop.md")
    (questions / "folder.md").mkdir()
    os.mkfifo(questions / "pipe.md")
    Path(os.fsdecode(os.fsencode(questions) + b"/\xff.md")).write_text("x")
    known = KnowledgeBase.load(kb.folder)
    assert (known.pairs, known.texts) == ((PAIR,), {})
    assert len(known.problems) == 6
    "".join(known.problems).encode()


def test_files_may_be_renamed_edited_and_doubled(kb: KnowledgeBase) -> None:
    first = kb.folder / kb.pairs[0].file
    moved = first.rename(first.with_name("a-orders.md"))
    assert kb.keep(replace(PAIR, sql="SELECT 4")) == moved
    known = KnowledgeBase.load(kb.folder)
    assert [(pair.sql, pair.file) for pair in known.pairs] == [("SELECT 4", "questions/a-orders.md")]

    later = replace(PAIR, sql="SELECT 5", date="2026-12-01")
    doubled = moved.with_name("z.md")
    doubled.write_text(later.as_text(), "utf-8")
    known = KnowledgeBase.load(kb.folder)
    assert known.pairs == (later,)
    assert known.problems == ["questions/a-orders.md was left out: questions/z.md asks the same."]

    edited = replace(PAIR, question="How many orders were there?")
    moved.rename(first).write_text(edited.as_text(), "utf-8")
    doubled.unlink()
    assert kb.keep(PAIR) != first, "a colleague's question has its name"
    assert set(KnowledgeBase.load(kb.folder).pairs) == {PAIR, edited}


@pytest.mark.parametrize(
    ("kept", "asked", "same"),
    [
        ("How many are 'Open'?", "how many  are 'Open'", True),
        ("How many are 'Open'?", "How many are 'open'?", False),
        ('Who said "No"?', 'Who said "no"?', False),
        ("What is jane's order and bob's total?", "what is Jane's order and Bob's total?", True),
        ("What is the Maße?", "What is the Masse?", False),
        ("What is 5!?", "What is 5?", False),
        ("Café", "Cafe\u0301", True),
    ],
)
def test_the_same_words_are_the_same_question(kept: str, asked: str, same: bool) -> None:
    known = KnowledgeBase(Path(), (replace(PAIR, question=kept),))
    assert (known.exact(asked) is not None) == same
    assert (replace(PAIR, question=kept).id == replace(PAIR, question=asked).id) == same


@pytest.mark.parametrize("more", [{"sql": "SELECT '\r\n'"}, {"note": "x" * LONGEST_FILE}, {"by": "\ud800"}])
def test_what_a_file_cannot_hold_is_refused(kb: KnowledgeBase, more: dict[str, str]) -> None:
    with pytest.raises(ConfigurationError, match="cannot be kept"):
        kb.keep(replace(PAIR, **more))  # type: ignore[arg-type]
    assert not kb.changed()


def test_a_file_is_no_knowledge_base_and_ids_are_unambiguous(kb: KnowledgeBase) -> None:
    assert kb.find(PAIR.id[:3]) == PAIR
    for name in ("", "zz"):
        with pytest.raises(ConfigurationError, match="kb show"):
            kb.find(name)
    file = kb.forget(kb.find(PAIR.id))
    assert KnowledgeBase.load(kb.folder).empty
    file.write_text("")
    with pytest.raises(ConfigurationError, match="is a file"):
        KnowledgeBase.load(file)
