"""Text in chunks: a few paragraphs under their headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

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
