"""Search over texts: by words, and by vectors in a flat FAISS index, with the embedders that fill it.

FAISS, torch and sentence-transformers are imported when first needed, never before.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from quorum.knowledge.errors import ConfigurationError, is_installed, missing_extra
from quorum.knowledge.search.lexical import Bm25, terms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]


RANK_CONSTANT = 60  # reciprocal rank fusion (Cormack et al., 2009)

Ranking: TypeAlias = list[tuple[int, float]]
"""Numbers with their scores, best first."""


def ranked(scores: npt.NDArray[np.floating[Any]]) -> Ranking:
    """Return the places whose score is not 0, best first."""
    return sorted(((i, float(scores[i])) for i in scores.nonzero()[0].tolist()), key=_best_first)


def fused(rankings: Iterable[Ranking]) -> Ranking:
    """Merge rankings by reciprocal rank."""
    total: dict[int, float] = {}
    for ranking in rankings:
        for place, (number, _) in enumerate(ranking, start=1):
            total[number] = total.get(number, 0.0) + 1 / (RANK_CONSTANT + place)
    return sorted(total.items(), key=_best_first)


def _best_first(hit: tuple[int, float]) -> tuple[float, int]:
    return -hit[1], hit[0]


class Embedder(Protocol):
    """Turns texts into unit vectors."""

    @property
    def name(self) -> str:
        """Names the model so well that equal names mean equal vectors."""

    def encode(self, texts: Sequence[str]) -> Vectors:
        """Vectors of length 1, float32, shape (len(texts), dimensions).

        Raises:
            ConfigurationError: The package or the model is missing.
        """


class SentenceTransformerEmbedder:
    """A sentence-transformers model by hub name or folder; loaded on first use, on the CPU's threads.

    A folder is named by its path and the size and time of its weights, so that a model that was
    exchanged does not pass for the old one.
    """

    def __init__(self, model: str | Path) -> None:
        self._model_name = str(model)
        self._model: Any = None
        self._lock = Lock()

    @property
    def name(self) -> str:
        weights = Path(self._model_name) / "model.safetensors"
        if not weights.is_file():
            return self._model_name
        seen = weights.stat()
        return f"{self._model_name}@{seen.st_size}.{int(seen.st_mtime)}"

    def encode(self, texts: Sequence[str]) -> Vectors:
        import numpy as np

        vectors = self._load().encode(list(texts), normalize_embeddings=True, show_progress_bar=False)
        return np.ascontiguousarray(vectors, dtype=np.float32)

    def _load(self) -> Any:
        with self._lock:
            if self._model is None:
                self._model = _sentence_transformer(self._model_name)
            return self._model


def _sentence_transformer(name: str) -> Any:
    if not is_installed("sentence_transformers"):
        raise missing_extra("embeddings", "Embedding texts", needs="sentence-transformers")
    from sentence_transformers import SentenceTransformer
    from transformers.utils import logging

    quiet: Any = logging.disable_progress_bar
    quiet()  # a bar would run through our own output
    try:
        return SentenceTransformer(name, device="cpu")
    except (OSError, ValueError) as error:  # no such folder or hub model, or the hub is unreachable
        raise ConfigurationError(
            f"The embedding model {name!r} cannot be loaded: {str(error).splitlines()[0]}",
            hint="Name a folder with a sentence-transformers model, or a hub model while online.",
        ) from error


class TextIndex:
    """Texts that are searched by words (BM25), or with an embedder by meaning; built when first needed.

    By meaning it is a flat inner-product FAISS index (half precision: exact ranking in practice, 2 bytes a
    dimension). A text's number is its place in the list.
    """

    def __init__(self, texts: Sequence[str]) -> None:
        self._texts = texts
        self._by_meaning: dict[str, Any] = {}

    @cached_property
    def bm25(self) -> Bm25:
        """The texts by their terms."""
        return Bm25([terms(text) for text in self._texts])

    def build(self, embedder: Embedder) -> Any:
        """Embed and index the texts, once for each model.

        Raises:
            ConfigurationError: FAISS or the embedder's package is missing.
        """
        if embedder.name not in self._by_meaning:
            faiss, vectors = _faiss(), embedder.encode(self._texts)
            kind, metric = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
            index = faiss.IndexScalarQuantizer(vectors.shape[1], kind, metric)
            index.add(vectors)
            self._by_meaning[embedder.name] = index
        return self._by_meaning[embedder.name]

    def search(self, query: str, k: int, embedder: Embedder | None) -> Ranking:
        """The ``k`` best texts: by words, of those that share any, or the nearest; raises as ``build``."""
        if embedder is not None:
            return self.nearest(query, k, embedder)
        return ranked(self.bm25.scores(terms(query)))[:k]

    def nearest(self, query: str, k: int, embedder: Embedder) -> Ranking:
        """The ``k`` nearest texts as (number, cosine), best first; raises as ``build``."""
        scores, numbers = self.build(embedder).search(embedder.encode([query]), min(k, len(self._texts)))
        return [(int(n), float(s)) for n, s in zip(numbers[0], scores[0], strict=True) if n >= 0]


def _faiss() -> Any:
    if not is_installed("faiss"):
        raise missing_extra("embeddings", "Dense retrieval", needs="faiss-cpu")
    import faiss

    return faiss
