"""Vectors of texts that were embedded before, in one SQLite file for all models."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from quorum.knowledge.errors import ConfigurationError

if TYPE_CHECKING:
    import sqlite3

    from quorum.knowledge.search.index import Embedder, Vectors

T = TypeVar("T")

OnProgress: TypeAlias = Callable[[int, int], None]
"""Told how many texts are done, of how many."""

WAIT_SECONDS = 30.0
"""How long another process may hold the file."""
ASKED = 500
"""Texts looked up by one query."""

_TABLE = """CREATE TABLE IF NOT EXISTS vectors (
    model TEXT NOT NULL, text BLOB NOT NULL, vector BLOB NOT NULL, PRIMARY KEY (model, text)
) WITHOUT ROWID"""


class CachedEmbedder:
    """An embedder that asks another one for texts that it does not know yet, each once.

    A vector is found by the model's name and the SHA-256 of its text; the text itself is not kept. What was
    embedded before an error or a kill is not lost. A file that is damaged is set aside, one that cannot be
    used is done without, and a log line says so.

    Args:
        path: Of the SQLite file, which is made with its folder.
        batch: Texts given to ``inner`` at a time.
        on_progress: Told after each batch; may be set later.
    """

    def __init__(
        self, inner: Embedder, path: Path, batch: int = 256, on_progress: OnProgress | None = None
    ) -> None:
        self.inner, self._path, self._batch, self.on_progress = inner, path, batch, on_progress

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
            if self.on_progress:
                self.on_progress(len(known), len(left))
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
        """What ``work`` makes of the file; ``otherwise`` where it cannot be used."""
        import sqlite3

        try:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            with closing(sqlite3.connect(self._path, timeout=WAIT_SECONDS)) as file:
                file.execute(_TABLE)
                return work(file)
        except (sqlite3.OperationalError, OSError) as error:
            _say(f"The cache of embeddings {self._path} cannot be used: {error}.")
        except sqlite3.DatabaseError as error:
            aside = self._path.with_suffix(".damaged")
            self._path.replace(aside)
            _say(f"The cache of embeddings {self._path} was damaged ({error}); it is {aside.name} now.")
        return otherwise


def _known(file: sqlite3.Connection, model: str, keys: list[bytes]) -> dict[bytes, bytes]:
    """Vectors by key, as far as the file has them; those that somebody cut are as good as none."""
    found: dict[bytes, bytes] = {}
    for start in range(0, len(keys), ASKED):
        part = keys[start : start + ASKED]
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


def unit_vectors(rows: Sequence[Sequence[float]]) -> Vectors:
    """Rows of numbers as vectors of length 1, shape (rows, dimensions).

    Raises:
        ValueError: They differ in length, are empty, or are not finite numbers other than 0.
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
