"""The user's documents in chunks, and what they say of a question (External Knowledge Retriever's corpus)."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from quorum.knowledge.documents.files import read_folder
from quorum.knowledge.search.index import Embedder, Ranking, TextIndex, fused, ranked
from quorum.knowledge.search.lexical import distinctive, terms

TARGET_WORDS = 150
MAX_WORDS = 250

HEADING = re.compile(r"^ {0,3}(#{1,6})[ \t]+(.*?)[ \t#]*$")
FENCE = re.compile(r"^ {0,3}(```+|~~~+)")


@dataclass(frozen=True)
class Chunk:
    """A piece of a document.

    Attributes:
        source: ``file:line``, the file relative to the folder, the line where the piece begins.
        heading: The headings above it, outermost first, joined by `` > ``.
        body: The text as written, at most about 250 words.
        score: Of the search that found it; its unit depends on the search.
    """

    source: str
    heading: str
    body: str
    score: float = 0.0

    @property
    def text(self) -> str:
        """The heading and the body."""
        return f"{self.heading}\n{self.body}" if self.heading else self.body


@dataclass(frozen=True)
class _Paragraph:
    line: int
    text: str

    @property
    def words(self) -> int:
        return len(self.text.split())


def split(name: str, text: str) -> list[Chunk]:
    """Chunks of one document: paragraphs of one heading together, about 150 to 250 words."""
    chunks: list[Chunk] = []
    for heading, paragraphs in _sections(text):
        chunk: list[_Paragraph] = []
        for paragraph in [piece for whole in paragraphs for piece in _shorten(whole)]:
            words = sum(item.words for item in chunk)
            if chunk and (words >= TARGET_WORDS or words + paragraph.words > MAX_WORDS):
                chunks.append(_chunk(name, heading, chunk))
                chunk = []
            chunk.append(paragraph)
        if chunk:
            chunks.append(_chunk(name, heading, chunk))
    return chunks


def _chunk(name: str, heading: str, paragraphs: list[_Paragraph]) -> Chunk:
    return Chunk(f"{name}:{paragraphs[0].line}", heading, "\n\n".join(p.text for p in paragraphs))


def _sections(text: str) -> Iterator[tuple[str, list[_Paragraph]]]:
    """Each heading path with the paragraphs below it; a fenced block is one paragraph."""
    path: list[tuple[int, str]] = []
    paragraphs: list[_Paragraph] = []
    lines: list[str] = []
    fence, start = "", 0

    def close() -> None:
        if any(line.strip() for line in lines):
            paragraphs.append(_Paragraph(start, "\n".join(lines).strip("\n")))
        lines.clear()

    for number, line in enumerate(text.splitlines(), start=1):
        mark = FENCE.match(line)
        heading = None if fence else HEADING.match(line)
        if heading or not (line.strip() or fence):
            close()
        if heading:
            yield " > ".join(title for _, title in path), paragraphs
            paragraphs = []
            level = len(heading[1])
            path = [*((depth, title) for depth, title in path if depth < level), (level, heading[2])]
        elif line.strip() or fence:
            start = number if not lines else start
            lines.append(line)
        if mark:
            fence = "" if fence and mark[1].startswith(fence) else fence or mark[1]
    close()
    yield " > ".join(title for _, title in path), paragraphs


def _shorten(paragraph: _Paragraph) -> Iterator[_Paragraph]:
    """The paragraph in pieces of at most ``MAX_WORDS``: by lines, and a longer line by words."""
    if paragraph.words <= MAX_WORDS:
        yield paragraph
        return
    lines: list[str] = []
    start, count = paragraph.line, 0
    for number, line in enumerate(paragraph.text.split("\n"), start=paragraph.line):
        words = line.split()
        for i in range(0, len(words), MAX_WORDS):
            piece = line if len(words) <= MAX_WORDS else " ".join(words[i : i + MAX_WORDS])
            size = len(words[i : i + MAX_WORDS])
            if lines and count + size > MAX_WORDS:
                yield _Paragraph(start, "\n".join(lines))
                lines, count = [], 0
            start = start if lines else number
            lines.append(piece)
            count += size
    yield _Paragraph(start, "\n".join(lines))


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
