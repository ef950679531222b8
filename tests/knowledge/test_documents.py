"""Documents: what is read, how it is cut into chunks, and what a question finds."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from quorum.knowledge.documents.files import read_folder
from quorum.knowledge.documents.search import MAX_WORDS, Documents, split
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.search.lexical import stem, terms

TERMS = """# Terms

What our words mean.

## Revenue
**Net GMV** is the sum of `order_items.amount` without returns.

## Customers
A loyal customer has bought in three months.
"""

FISCAL = """# Fiscal calendar
The fiscal year begins on 1 April.
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "docs" / "more").mkdir(parents=True)
    (tmp_path / "docs" / "terms.md").write_text(TERMS, encoding="utf-8")
    (tmp_path / "docs" / "more" / "fiscal.txt").write_text(FISCAL, encoding="utf-8")
    return tmp_path / "docs"


def test_terms_split_identifiers_and_word_forms_meet() -> None:
    wanted = ["many", "ordertotals", "order", "total", "order_items2", "order", "item", "2"]
    assert terms("How many orderTotals in order_items2?") == wanted
    assert terms("HTTPServer GA4") == ["httpserver", "http", "server", "ga4", "ga", "4"]
    assert terms("売上高とは") == ["売上", "上高", "高と", "とは"]
    for family in ("order orders ordered ordering", "define defines defined defining", "category categories"):
        assert len({stem(word) for word in family.split()}) == 1
    for word in ("status", "class", "basis", "gas", "id", "été"):
        assert stem(word) == word


def test_chunks_name_their_headings_and_lines(folder: Path) -> None:
    chunks = Documents.load(folder).chunks
    assert [(chunk.source, chunk.heading) for chunk in chunks] == [
        ("terms.md:3", "Terms"),
        ("terms.md:6", "Terms > Revenue"),
        ("terms.md:9", "Terms > Customers"),
        ("more/fiscal.txt:2", "Fiscal calendar"),
    ]
    assert chunks[1].text.startswith("Terms > Revenue\n**Net GMV**")


def test_headings_inside_fences_are_text() -> None:
    text = "# A\n```\n# not a heading\n\nmore\n```\n## B\ntext\n# C\nend"
    found = [(chunk.heading, chunk.source) for chunk in split("f", text)]
    assert found == [("A", "f:2"), ("A > B", "f:8"), ("C", "f:10")]


@given(
    st.lists(st.tuples(st.integers(0, 400), st.sampled_from(["\n", "\n\n", " "])), max_size=8),
    st.text(st.sampled_from("#`~ \n\tab-=|"), max_size=200),
)
def test_no_word_is_lost_and_no_chunk_too_long(parts: list[tuple[int, str]], odd: str) -> None:
    assert all(chunk.body.strip() for chunk in split("f", odd))
    number = iter(range(10_000))
    text = "".join(" ".join(f"w{next(number)}" for _ in range(size)) + end for size, end in parts)
    chunks = split("f", text)
    assert " ".join(chunk.body for chunk in chunks).split() == text.split()
    assert all(0 < len(chunk.body.split()) <= MAX_WORDS for chunk in chunks)
    lines = text.splitlines()
    for chunk in chunks:
        line = lines[int(chunk.source.split(":")[1]) - 1]
        assert chunk.body.split()[0] in line.split()


def test_a_question_finds_its_chunk(folder: Path) -> None:
    documents = Documents.load(folder)
    both = documents.search("What was the net GMV in fiscal year 2024?")
    assert {chunk.source for chunk in both} == {"terms.md:6", "more/fiscal.txt:2"}
    assert both[0].score >= both[1].score > 0
    assert [p.source for p in documents.search("How many loyal customers are there?")] == ["terms.md:9"]
    assert documents.search("total amount in order_items", 1)[0].source == "terms.md:6"
    (folder / "empty.md").write_text("\n\n")
    for question in ("", "Who won the cup?", "How many are there per year?", "1 April", "???"):
        assert Documents.load(folder).search(question) == []


def test_all_text_is_given_below_the_limit_only_and_any_change_changes_the_hash(folder: Path) -> None:
    documents = Documents.load(folder)
    wanted = f"[terms.md]\n{TERMS.strip()}\n\n[more/fiscal.txt]\n{FISCAL.strip()}"
    assert (documents.all_text(limit=1000), documents.all_text(limit=10)) == (wanted, None)
    assert Documents.load(folder).hash == documents.hash
    (folder / "terms.md").write_text(TERMS + "x", encoding="utf-8")
    assert Documents.load(folder).hash != documents.hash


def test_what_cannot_be_read_is_said(folder: Path, tmp_path: Path) -> None:
    (folder / "latin.txt").write_bytes("Erlös".encode("latin-1"))
    (folder / "wide.txt").write_bytes("Breit".encode("utf-16"))
    (folder / "huge.md").write_bytes(b"x" * (2 * 2**20 + 1))
    (folder / "scan.docx").write_bytes(b"PK")
    (folder / ".hidden.md").write_text("hidden")
    (folder / "gone.md").symlink_to(folder / "nowhere.md")
    (tmp_path / "secret.txt").write_text("secret")
    (folder / "out.txt").symlink_to(tmp_path / "secret.txt")
    (folder / "all").symlink_to(tmp_path, target_is_directory=True)
    (folder / "inside.md").symlink_to(folder / "terms.md")
    texts, notes = read_folder(folder)
    assert sorted(texts) == ["inside.md", "more/fiscal.txt", "terms.md", "wide.txt"]
    assert texts["wide.txt"] == "Breit"
    assert [note.partition(" (")[0] for note in notes] == [
        "all is a link to a folder and was not followed.",
        "gone.md was left out: No such file or directory.",
        "huge.md was left out: over 2 MB. Split it.",
        "latin.txt was left out: not UTF-8 at byte 3. Save it as UTF-8.",
        "out.txt is a link out of the folder and was not followed.",
        "Left out, of kinds that are not read: scan.docx.",
    ]


def pdf(*pages: str) -> bytes:
    """A PDF with a line of text on each page; a reader finds its objects without a table of them."""
    kids = " ".join(f"{4 + 2 * i} 0 R" for i in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} /MediaBox [0 0 612 792] >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for i, line in enumerate(pages):
        text = f"BT /F1 12 Tf 72 700 Td ({line}) Tj ET" if line else ""
        page = f"/Resources << /Font << /F1 3 0 R >> >> /Contents {5 + 2 * i} 0 R"
        objects.append(f"<< /Type /Page /Parent 2 0 R {page} >>")
        objects.append(f"<< /Length {len(text)} >>\nstream\n{text}\nendstream")
    made = "".join(f"{number} 0 obj\n{content}\nendobj\n" for number, content in enumerate(objects, 1))
    return f"%PDF-1.4\n{made}trailer << /Root 1 0 R >>\nstartxref\n0\n%%EOF\n".encode()


def test_the_text_of_a_pdf_is_read_page_by_page(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pypdf", reason="the extra quorum-sql[pdf] is not installed")
    (tmp_path / "terms.pdf").write_bytes(pdf("Net revenue is without returns.", "Loyal means thrice."))
    (tmp_path / "scan.PDF").write_bytes(pdf(""))
    (tmp_path / "broken.pdf").write_bytes(pdf("x")[:90])
    documents = Documents.load(tmp_path)
    pages = ["Page 1\nNet revenue is without returns.", "Page 2\nLoyal means thrice."]
    assert [chunk.text for chunk in documents.chunks] == pages
    broken, scan = documents.notes
    assert broken.startswith("broken.pdf was left out: it cannot be read as a PDF (")
    assert scan == "scan.PDF was left out: it holds no text. Is it a scan?"
    assert capfd.readouterr() == ("", "")
    monkeypatch.setitem(sys.modules, "pypdf", None)
    with pytest.raises(ConfigurationError, match="pip install 'pypdf>="):
        read_folder(tmp_path)


def test_other_kinds_of_text(tmp_path: Path) -> None:
    (tmp_path / "a.rst").write_text(
        "=====\nTerms\n=====\n\nRevenue\n-------\nnet of returns\n\nOther\n-----\nx\n"
    )
    (tmp_path / "b.csv").write_text('term,meaning\nGMV,"gross, all of it"\nAOV,\n')
    (tmp_path / "c.yml").write_text("metrics:\n  - name: churn\n")
    chunks = Documents.load(tmp_path).chunks
    assert [(chunk.source, chunk.heading, chunk.body) for chunk in chunks] == [
        ("a.rst:7", "Terms > Revenue", "net of returns"),
        ("a.rst:11", "Terms > Other", "x"),
        ("b.csv:1", "", "term: GMV; meaning: gross, all of it\n\nterm: AOV"),
        ("c.yml:1", "", "metrics:\n  - name: churn"),
    ]


def test_a_missing_or_empty_folder_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="no documents folder"):
        Documents.load(tmp_path / "none")
    (tmp_path / "bad.txt").write_bytes(b"\xe9")
    with pytest.raises(ConfigurationError, match=r"no document that can be read.*bad\.txt was left out"):
        Documents.load(tmp_path)


def test_real_questions_find_their_documents(shared: Path) -> None:
    """Of 62 questions that name their document, most find it among the best five chunks."""
    data = shared / "data" / "spider2-snow"
    documents = Documents.load(data / "resource" / "documents")
    lines = (data / "spider2-snow.jsonl").read_text(encoding="utf-8").splitlines()
    asked = [question for question in map(json.loads, lines) if question.get("external_knowledge")]
    found = sum(
        question["external_knowledge"]
        in {chunk.source.partition(":")[0] for chunk in documents.search(question["instruction"], 5)}
        for question in asked
    )
    assert len(asked) > 50
    assert found >= 0.8 * len(asked)
