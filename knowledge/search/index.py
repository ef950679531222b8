"""Search over texts: by words, and by vectors in a flat FAISS index, with the embedders that fill it.

FAISS, torch and sentence-transformers are imported when first needed, never before.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Protocol

from quorum.knowledge.atomic import replace_file
from quorum.knowledge.errors import ConfigurationError, QuorumError, is_installed, missing_extra
from quorum.knowledge.search.lexical import Bm25, terms

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    Vectors = npt.NDArray[np.float32]

FORMAT = 1


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


@dataclass(frozen=True)
class Manifest:
    """The source and the format of an index on disk.

    Attributes:
        content: SHA-256 over the indexed texts, in order.
        checksum: SHA-256 of the index file.
    """

    model: str
    dimensions: int
    count: int
    content: str
    checksum: str
    format: int = FORMAT


class IndexMismatch(QuorumError):
    """An index on disk was made from something else, or is damaged."""


class VectorIndex:
    """Flat inner-product FAISS index (half precision: exact ranking in practice, 2 bytes a dimension).

    A text's number is its place in the list that was indexed.
    """

    def __init__(self, index: Any, model: str, content: str) -> None:
        self._index, self.model, self.content = index, model, content

    @classmethod
    def open(cls, texts: Sequence[str], embedder: Embedder, folder: Path | None = None) -> VectorIndex:
        """The index over ``texts``: from ``folder`` if what lies there fits, else built (and kept).

        Raises:
            ConfigurationError: FAISS or the embedder's package is missing.
        """
        if folder is None:
            return cls.build(texts, embedder)
        try:
            return cls.load(folder, texts, embedder)
        except IndexMismatch:
            index = cls.build(texts, embedder)
            index.save(folder)
            return index

    @classmethod
    def build(cls, texts: Sequence[str], embedder: Embedder) -> VectorIndex:
        """Embed and index ``texts``; raises as ``open``."""
        faiss = _faiss()
        vectors = embedder.encode(texts)
        kind, metric = faiss.ScalarQuantizer.QT_fp16, faiss.METRIC_INNER_PRODUCT
        index = faiss.IndexScalarQuantizer(vectors.shape[1], kind, metric)
        index.add(vectors)
        return cls(index, embedder.name, _digest_of(texts))

    @classmethod
    def load(cls, folder: Path, texts: Sequence[str], embedder: Embedder) -> VectorIndex:
        """Read an index that was made from these texts by this embedder.

        Raises:
            IndexMismatch: There is none, or it was made from other texts, by another model or
                another version, or is damaged; the message says which.
            ConfigurationError: FAISS is missing.
        """
        try:
            manifest = Manifest(**json.loads((folder / "manifest.json").read_text(encoding="utf-8")))
            content = (folder / "index.faiss").read_bytes()
        except FileNotFoundError as error:
            raise IndexMismatch(f"There is no index in {folder}.") from error
        except (OSError, ValueError, TypeError) as error:
            raise IndexMismatch(f"The index in {folder} is damaged: {error}") from error
        wanted = {"format": FORMAT, "model": embedder.name, "content": _digest_of(texts)}
        for what, value in wanted.items():
            if getattr(manifest, what) != value:
                raise IndexMismatch(f"The index in {folder} has another {what}.")
        if hashlib.sha256(content).hexdigest() != manifest.checksum:
            raise IndexMismatch(f"The index in {folder} is damaged.")
        import numpy as np

        index = _faiss().deserialize_index(np.frombuffer(content, dtype=np.uint8))
        if (index.d, index.ntotal) != (manifest.dimensions, manifest.count):
            raise IndexMismatch(f"The index in {folder} does not fit its manifest.")
        return cls(index, manifest.model, manifest.content)

    def save(self, folder: Path) -> None:
        """Write index and manifest, the manifest last: one without the other never fits."""
        content = _faiss().serialize_index(self._index).tobytes()
        checksum = hashlib.sha256(content).hexdigest()
        manifest = Manifest(self.model, self._index.d, self._index.ntotal, self.content, checksum)
        folder.mkdir(parents=True, exist_ok=True)
        replace_file(folder / "index.faiss", content)
        replace_file(folder / "manifest.json", json.dumps(asdict(manifest), indent=1).encode())

    def search(self, query: str, k: int, embedder: Embedder) -> list[tuple[int, float]]:
        """The ``k`` nearest texts as (number, cosine), best first.

        Raises:
            IndexMismatch: The embedder is not the one that built the index.
        """
        if embedder.name != self.model:
            raise IndexMismatch(f"The index was built by {self.model}, not by {embedder.name}.")
        scores, numbers = self._index.search(embedder.encode([query]), min(k, self._index.ntotal))
        return [(int(n), float(s)) for n, s in zip(numbers[0], scores[0], strict=True) if n >= 0]


class TextIndex:
    """Texts that are searched by words (BM25), or with an embedder by meaning; built when first needed.

    Args:
        texts: A text's number is its place here.
        cache: Folder in which the vectors are kept; None keeps them in memory only.
    """

    def __init__(self, texts: Sequence[str], cache: Path | None) -> None:
        self._texts, self._cache = texts, cache
        self._vectors: dict[str, VectorIndex] = {}

    @cached_property
    def bm25(self) -> Bm25:
        """The texts by their terms."""
        return Bm25([terms(text) for text in self._texts])

    def vectors(self, embedder: Embedder) -> VectorIndex:
        """The texts by their meaning; raises as ``VectorIndex.open``."""
        if embedder.name not in self._vectors:
            self._vectors[embedder.name] = VectorIndex.open(self._texts, embedder, self._cache)
        return self._vectors[embedder.name]

    def nearest(self, query: str, k: int, embedder: Embedder) -> list[tuple[int, float]]:
        """Search as ``VectorIndex.search``; raise as ``VectorIndex.open``."""
        return self.vectors(embedder).search(query, k, embedder)


def _faiss() -> Any:
    if not is_installed("faiss"):
        raise missing_extra("embeddings", "Dense retrieval", needs="faiss-cpu")
    import faiss

    return faiss


def _digest_of(texts: Sequence[str]) -> str:
    return hashlib.sha256(json.dumps(list(texts)).encode()).hexdigest()
