"""Embedding models by name: ``openai:NAME`` at an OpenAI-compatible endpoint, else sentence-transformers.

Vectors are kept in one SQLite file for all models, so that no text is embedded twice.
"""

from __future__ import annotations

import hashlib
import json
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from quorum.knowledge.errors import ConfigurationError, ModelUnavailable
from quorum.knowledge.search.index import Embedder, SentenceTransformerEmbedder
from quorum.tools.models.backend import ModelSettings

if TYPE_CHECKING:
    import sqlite3

    from quorum.knowledge.search.index import Vectors

T = TypeVar("T")

OPENAI = "openai:"
BATCH = 256
"""Texts in one request, and between two times that the cache is written."""
REPLY_BYTES = 64 * 2**20  # 256 vectors of 3,072 numbers take 17 MB of JSON at most
WAIT_SECONDS = 30.0
"""How long another process may lock the file of vectors."""
LOOKUPS = 500
"""Texts looked up by one query."""

_TABLE = """CREATE TABLE IF NOT EXISTS vectors (
    model TEXT NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, text)
) WITHOUT ROWID"""


def make_embedder(name: str, settings: ModelSettings, home: Path) -> CachedEmbedder:
    """Make the embedding model of that name, which embeds no text twice.

    Args:
        name: ``openai:NAME``, or a sentence-transformers model by hub name or folder.
        home: Vectors are kept in ``index/embeddings.sqlite`` below it.

    Raises:
        ConfigurationError: The model has no name, the endpoint no address, or OpenAI no key.
    """
    inner: Embedder
    if name.startswith(OPENAI):
        inner = OpenAIEmbedder(name.removeprefix(OPENAI), settings)
    else:
        inner = SentenceTransformerEmbedder(name)
    return CachedEmbedder(inner, home / "index" / "embeddings.sqlite")


class OpenAIEmbedder:
    """A model behind ``POST /embeddings`` of an OpenAI-compatible endpoint; one request an ``encode``.

    Args:
        settings: The address, the key, ``timeout`` and ``max_retries`` count.

    Raises:
        ConfigurationError: The model has no name, the endpoint no address, or OpenAI no key.
    """

    def __init__(self, model: str, settings: ModelSettings) -> None:
        import openai

        from quorum.tools.models.endpoint import OPENAI_URL, Endpoint

        if not model:
            hint = "Write openai:NAME, e.g. openai:text-embedding-3-small."
            raise ConfigurationError("The embedding model has no name.", hint=hint)
        self._model = model
        self._endpoint = Endpoint.of(model, settings, reply="list of embeddings", reply_bytes=REPLY_BYTES)
        options = dict(self._endpoint.options)
        options["api_key"] = options["api_key"].get_secret_value()
        retries = settings.max_retries
        self._client = openai.OpenAI(**options, max_retries=retries, http_client=self._endpoint.client())
        self._errors = (openai.OpenAIError, ValueError, KeyError, TypeError, RecursionError)
        address = self._endpoint.endpoint
        self.name = f"{OPENAI}{model}" + ("" if address == OPENAI_URL else f"@{address}")

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See ``Embedder.encode``.

        Raises:
            ModelUnavailable: The endpoint cannot be reached, refuses, keeps failing, or sends no vectors.
        """
        body = {"model": self._model, "input": [text or " " for text in texts]}  # an empty text is refused
        try:
            reply = self._client.post("/embeddings", cast_to=str, body=body)
            data = sorted(json.loads(reply)["data"], key=lambda each: int(each["index"]))
            if [int(each["index"]) for each in data] != list(range(len(texts))):
                raise ValueError(f"{len(data)} vectors for {len(texts)} texts")
            return _unit_vectors([each["embedding"] for each in data])
        except self._errors as error:
            failure = self._endpoint.failure(error)
            text = f"The embedding model {OPENAI}{self._model} gave no vectors: {failure.message}"
            raise ModelUnavailable(text, hint=failure.hint) from None


class CachedEmbedder:
    """An embedder that keeps vectors in a SQLite file and asks another embedder for missing ones, each once.

    A vector is found by the model's name and the SHA-256 of its text; the text itself is not kept. Vectors
    that were made before an error or a kill are not lost. A damaged file is renamed; a file that cannot be
    used is ignored. A log line says so.

    Args:
        path: The SQLite file, which is made with its folder.
        batch: Texts given to ``inner`` at a time.
    """

    def __init__(self, inner: Embedder, path: Path, batch: int = BATCH) -> None:
        self.inner, self._path, self._batch = inner, path, batch

    @property
    def name(self) -> str:
        return self.inner.name

    def encode(self, texts: Sequence[str]) -> Vectors:
        """See ``Embedder.encode``.

        Raises:
            ConfigurationError: As the inner embedder; or vectors of one model differ in their dimensions.
            ModelUnavailable: As the inner embedder.
        """
        import numpy as np

        if not texts:
            return np.empty((0, 0), np.float32)
        keys = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        left = dict(zip(keys, texts, strict=True))
        known: dict[bytes, bytes] = {}
        known |= self._using(partial(_known, model=self.name, keys=list(left)), known)
        missing = [(key, text) for key, text in left.items() if key not in known]
        for start in range(0, len(missing), self._batch):
            part = missing[start : start + self._batch]
            made = self.inner.encode([text for _, text in part])
            new = {key: vector.tobytes() for (key, _), vector in zip(part, made, strict=True)}
            self._check((*new.values(), *islice(known.values(), 1)))
            self._using(partial(_keep, model=self.name, vectors=new), None)
            known |= new
        self._check(known.values())
        return np.frombuffer(b"".join(known[key] for key in keys), np.float32).reshape(len(keys), -1)

    def _check(self, vectors: Iterable[bytes]) -> None:
        sizes = {len(vector) for vector in vectors}
        if len(sizes) > 1:
            several = " and ".join(f"{size // 4:,}" for size in sorted(sizes))
            raise ConfigurationError(
                f"The embedding model {self.name} gives vectors of {several} dimensions.",
                hint=f"If it is another model than before, delete {self._path}.",
            )

    def _using(self, work: Callable[[sqlite3.Connection], T], otherwise: T) -> T:
        """Return the result of ``work`` on the file; ``otherwise`` if the file cannot be used."""
        import sqlite3

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=WAIT_SECONDS)) as file:
                file.execute(_TABLE)
                return work(file)
        except (sqlite3.OperationalError, OSError) as error:
            _say(f"The cache of embeddings {self._path} cannot be used: {error}.")
        except sqlite3.DatabaseError as error:
            renamed = self._path.with_suffix(".damaged")
            self._path.replace(renamed)
            _say(f"The cache of embeddings {self._path} was damaged ({error}); it is {renamed.name} now.")
        return otherwise


def _known(file: sqlite3.Connection, model: str, keys: list[bytes]) -> dict[bytes, bytes]:
    """Return the vectors that the file has, by key; truncated ones are left out."""
    found: dict[bytes, bytes] = {}
    for start in range(0, len(keys), LOOKUPS):
        part = keys[start : start + LOOKUPS]
        marks = ", ".join("?" * len(part))
        sql = f"SELECT text, vector FROM vectors WHERE model = ? AND text IN ({marks})"
        rows = file.execute(sql, (model, *part))
        found |= {key: vector for key, vector in rows if vector and len(vector) % 4 == 0}
    return found


def _keep(file: sqlite3.Connection, model: str, vectors: dict[bytes, bytes]) -> None:
    rows = [(model, key, vector) for key, vector in vectors.items()]
    file.executemany("INSERT OR REPLACE INTO vectors VALUES (?, ?, ?)", rows)
    file.commit()


def _say(text: str) -> None:
    logging.getLogger(__name__).warning(text)


def _unit_vectors(rows: Sequence[Sequence[float]]) -> Vectors:
    """Return rows of numbers as vectors of length 1, shape (rows, dimensions).

    Raises:
        ValueError: They differ in length, are empty, or have no finite length above 0.
        TypeError: They are no numbers.
    """
    import numpy as np

    if len({len(row) for row in rows}) > 1:
        raise ValueError("its vectors differ in their dimensions")
    vectors: Any = np.asarray(rows, dtype=np.float32)
    if vectors.ndim != 2 or not vectors.shape[1]:
        raise ValueError("its vectors are empty")
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not lengths.all():
        raise ValueError("its vectors have no length")
    return np.ascontiguousarray(vectors / lengths, dtype=np.float32)
