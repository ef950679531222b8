"""A folder's documents as text, and text in chunks: a few paragraphs under their headings."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from quorum.knowledge.errors import ConfigurationError

SUFFIXES = frozenset({".md", ".markdown", ".txt"})
MAX_FILE_BYTES = 2 * 2**20
MAX_TOTAL_BYTES = 32 * 2**20
MAX_FILES = 5_000
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


def read_folder(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Texts of a folder's documents by relative name, sorted, and notes on what was left out.

    Reads ``.md``, ``.markdown`` and ``.txt`` files in UTF-8 (or UTF-16 with its mark), also in
    subfolders. Hidden files are passed over; links that lead out of the folder are not followed.

    Raises:
        ConfigurationError: The folder does not exist, or has no document that can be read.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"There is no documents folder {folder}.", hint="Check the path.")
    root, total = folder.resolve(), 0
    texts: dict[str, str] = {}
    notes: list[str] = []
    for path in _files(folder, notes):
        name = path.relative_to(folder).as_posix()
        text = _read(path, name, root, notes)
        if text is None:
            continue
        total += len(text)
        if len(texts) == MAX_FILES or total > MAX_TOTAL_BYTES:
            notes.append(
                f"{name} and what follows were left out: {MAX_TOTAL_BYTES >> 20} MB or {MAX_FILES} files."
            )
            break
        texts[name] = text
    if not texts:
        left_out = f" Left out: {' '.join(notes)}" if notes else ""
        raise ConfigurationError(
            f"The documents folder {folder} has no .md or .txt file that can be read.{left_out}",
            hint="Add documents, or leave the option out.",
        )
    return texts, notes


def _files(folder: Path, notes: list[str]) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if (linked := Path(place, name)).is_symlink():
                notes.append(
                    f"{linked.relative_to(folder).as_posix()} is a link to a folder and was not followed."
                )
        for name in sorted(files):
            if Path(name).suffix.lower() in SUFFIXES and not name.startswith("."):
                yield Path(place, name)


def _read(path: Path, name: str, root: Path, notes: list[str]) -> str | None:
    if not path.resolve().is_relative_to(root):
        notes.append(f"{name} is a link out of the folder and was not followed.")
        return None
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            notes.append(f"{name} was left out: over {MAX_FILE_BYTES >> 20} MB. Split it.")
            return None
        content = path.read_bytes()
        utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return content.decode("utf-16" if utf16 else "utf-8-sig")
    except OSError as error:
        notes.append(f"{name} was left out: {error.strerror}.")
    except UnicodeDecodeError as error:
        notes.append(f"{name} was left out: not UTF-8 at byte {error.start}. Save it as UTF-8.")
    return None


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
