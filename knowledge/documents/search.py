"""The user's documents: what they say about a question (External Knowledge Retriever's corpus)."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from quorum.knowledge.documents.chunks import Chunk, split
from quorum.knowledge.documents.files import read_folder
from quorum.knowledge.search.index import Embedder, Ranking, TextIndex, fused, ranked
from quorum.knowledge.search.lexical import distinctive, terms

BYTES_PER_TOKEN = 4  # of English in common tokenisers; others are estimated too high
LEAST_SHARED = 2  # evidence that a chunk needs, see Documents.search
LEAST_COVERAGE = 0.15  # of a question's distinctive terms; long questions share two with anything
LEAST_OF_BEST = 0.25  # lexical hits below this part of the best one's score are noise
LEAST_COSINE = 0.3  # unrelated texts stay below under the MiniLM family of models


@dataclass(eq=False)
class Documents:
    """Documents of a folder, cut into chunks.

    Attributes:
        texts: By file name relative to the folder.
        chunks: In the order of files and lines.
        notes: What was left out when the folder was read, for people.
        own: They belong to the question itself, and are no collection in which its answer is looked for.
    """

    texts: dict[str, str]
    chunks: list[Chunk]
    notes: list[str]
    own: bool = False

    @classmethod
    def load(cls, folder: Path) -> Documents:
        """Read a folder (see ``quorum.knowledge.documents.files.read_folder``).

        Raises:
            ConfigurationError: The folder does not exist, or has no file that can be read.
        """
        texts, notes = read_folder(folder)
        return cls.of(texts, notes=notes)

    @classmethod
    def of(
        cls,
        texts: dict[str, str],
        *,
        notes: list[str] | None = None,
        own: bool = False,
    ) -> Documents:
        """Documents that are texts already, by name."""
        chunks = [chunk for name, text in texts.items() for chunk in split(name, text)]
        return cls(texts, chunks, notes or [], own)

    @cached_property
    def hash(self) -> str:
        """SHA-256 (hex) over names and texts."""
        said = repr(sorted(self.texts.items()))
        return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()

    def all_text(self, limit: int) -> str | None:
        """All documents, each under its file name; None if longer than ``limit`` tokens (estimated)."""
        text = "\n\n".join(f"[{name}]\n{content.strip()}" for name, content in self.texts.items())
        return text if len(text.encode()) <= limit * BYTES_PER_TOKEN else None

    def search(self, question: str, k: int = 5, *, embedder: Embedder | None = None) -> list[Chunk]:
        """The chunks that bear on a question, best first; none if nothing does.

        Lexical (BM25) unless an ``embedder`` is given: then hybrid, lexical and dense merged by
        reciprocal rank. A lexical hit must share two distinctive terms with the question, and 15 %
        of a long one's; terms in the chunk's heading, and identifiers and acronyms of the
        question, count twice. A dense hit needs a cosine of 0.3.

        Raises:
            ConfigurationError: The embedder's package or model is missing.
        """
        if not self.chunks:
            return []
        lexical = self._lexical(question)
        if embedder is None:
            return [replace(self.chunks[i], score=score) for i, score in lexical[:k]]
        dense = [hit for hit in self._index.nearest(question, max(k, 20), embedder) if hit[1] >= LEAST_COSINE]
        return [replace(self.chunks[i], score=score) for i, score in fused((lexical, dense))[:k]]

    @cached_property
    def _index(self) -> TextIndex:
        return TextIndex([chunk.text for chunk in self.chunks])

    @cached_property
    def _headings(self) -> list[set[str]]:
        return [distinctive(terms(chunk.heading)) for chunk in self.chunks]

    def _lexical(self, question: str) -> Ranking:
        wanted = terms(question)
        known, special = distinctive(wanted), _special(question)
        needed = max(LEAST_SHARED, LEAST_COVERAGE * len(known))

        def evidence(i: int) -> int:
            shared = known & self._index.bm25.texts[i]
            return len(shared) + len(shared & self._headings[i]) + len(shared & special)

        kept = [hit for hit in ranked(self._index.bm25.scores(wanted)) if evidence(hit[0]) >= needed]
        return [(i, score) for i, score in kept if score >= LEAST_OF_BEST * kept[0][1]]


def _special(question: str) -> set[str]:
    """Terms of words that stand out as written: identifiers, acronyms, letters with digits."""
    words = (word.strip("\"'`.,;:?!()[]{}") for word in question.split())
    return distinctive(terms(" ".join(word for word in words if _stands_out(word))))


def _stands_out(word: str) -> bool:
    letters = any(map(str.isalpha, word))
    return letters and ("_" in word or any(map(str.isdigit, word)) or sum(map(str.isupper, word)) > 1)
