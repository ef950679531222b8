"""Read a folder's documents as text."""

from __future__ import annotations

import csv
import io
import logging
import os
import re
from collections.abc import Iterator
from pathlib import Path

from quorum.knowledge.errors import ConfigurationError, install_hint

PLAIN = frozenset({".md", ".markdown", ".txt", ".rst", ".yml", ".yaml", ".csv"})
PDF = ".pdf"
MAX_FILE_BYTES = 2 * 2**20
MAX_PDF_BYTES = 32 * 2**20  # most of it are pictures and fonts
MAX_TOTAL_BYTES = 32 * 2**20
MAX_FILES = 5_000
NAMED = 10

_UNDERLINED = re.compile(r"^(?=\S)(.*\w.*)\n([=\-~^\"'`#*+.:_])\2{2,}[ \t]*$", re.MULTILINE)
_OVERLINE = re.compile(r"^([=\-~^\"'`#*+.:_])\1{2,}[ \t]*\n(?=[ \t]*\S.*\n\1{3,}[ \t]*$)", re.MULTILINE)


def read_folder(folder: Path) -> tuple[dict[str, str], list[str]]:
    """Texts of a folder's documents by relative name, sorted, and notes on what was left out.

    Reads files of ``PLAIN`` kinds in UTF-8 (or UTF-16 with its mark), and the text of PDFs (extra ``pdf``),
    also in subfolders. Hidden files are passed over; links that lead out of the folder are not followed.

    Raises:
        ConfigurationError: The folder does not exist, or has no file that can be read.
    """
    if not folder.is_dir():
        raise ConfigurationError(f"There is no documents folder {folder}.", hint="Check the path.")
    root, total = folder.resolve(), 0
    texts: dict[str, str] = {}
    notes, others = list[str](), list[str]()
    for path in _files(folder, notes, others):
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
    if others:
        more = f" and {len(others) - NAMED} more" if len(others) > NAMED else ""
        notes.append(f"Left out, of kinds that are not read: {', '.join(others[:NAMED])}{more}.")
    if not texts:
        left_out = f" {' '.join(notes)}" if notes else ""
        raise ConfigurationError(
            f"The documents folder {folder} has no document that can be read.{left_out}",
            hint=f"Add {', '.join(sorted(PLAIN))} or {PDF} files, or leave the option out.",
        )
    return texts, notes


def _files(folder: Path, notes: list[str], others: list[str]) -> Iterator[Path]:
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in folders:
            if (linked := Path(place, name)).is_symlink():
                notes.append(
                    f"{linked.relative_to(folder).as_posix()} is a link to a folder and was not followed."
                )
        for name in sorted(files):
            path = Path(place, name)
            if path.suffix.lower() in (*PLAIN, PDF) and not name.startswith("."):
                yield path
            elif not name.startswith("."):
                others.append(path.relative_to(folder).as_posix())


def _read(path: Path, name: str, root: Path, notes: list[str]) -> str | None:
    most = MAX_PDF_BYTES if path.suffix.lower() == PDF else MAX_FILE_BYTES
    if not path.resolve().is_relative_to(root):
        notes.append(f"{name} is a link out of the folder and was not followed.")
        return None
    try:
        if path.stat().st_size > most:
            notes.append(f"{name} was left out: over {most >> 20} MB. Split it.")
            return None
        if path.suffix.lower() == PDF:
            return _pdf_text(path, name, notes)
        content = path.read_bytes()
        utf16 = content.startswith((b"\xff\xfe", b"\xfe\xff"))
        return _as_text(content.decode("utf-16" if utf16 else "utf-8-sig"), path.suffix.lower())
    except OSError as error:
        notes.append(f"{name} was left out: {error.strerror}.")
    except UnicodeDecodeError as error:
        notes.append(f"{name} was left out: not UTF-8 at byte {error.start}. Save it as UTF-8.")
    except csv.Error as error:
        notes.append(f"{name} was left out: {error}.")
    return None


def _as_text(text: str, suffix: str) -> str:
    """A document with headings as in Markdown; of a table, a paragraph for each row."""
    if suffix == ".rst":
        return _with_headings(text)
    return "\n\n".join(_rows(text)) if suffix == ".csv" else text


def _with_headings(text: str) -> str:
    """reStructuredText whose titles are underlined: levels are in the order of their first appearance."""
    text = _OVERLINE.sub("\n", text)
    levels = list(dict.fromkeys(found[2] for found in _UNDERLINED.finditer(text)))
    return _UNDERLINED.sub(lambda found: f"{'#' * min(levels.index(found[2]) + 1, 6)} {found[1]}\n", text)


def _rows(text: str) -> Iterator[str]:
    rows = csv.reader(io.StringIO(text, newline=""))
    head = next(rows, [])
    for cells in rows:
        pairs = zip(head, cells, strict=False)
        if line := "; ".join(f"{name.strip()}: {cell.strip()}" for name, cell in pairs if cell.strip()):
            yield line


def _pdf_text(path: Path, name: str, notes: list[str]) -> str | None:
    """The text of a PDF under a heading for each page; None, and a note, if it has none."""
    try:
        from pypdf import PdfReader
        from pypdf.errors import DependencyError, PyPdfError
    except ImportError:
        notes.append(f"{name} was left out: PDFs need the package pypdf. {install_hint('pdf')}")
        return None
    logging.getLogger("pypdf").setLevel(logging.ERROR)  # it reports what it has repaired already
    try:
        pages = [page.extract_text() for page in PdfReader(path).pages]
    # pypdf raises Python's own errors too where a file is damaged
    except (PyPdfError, DependencyError, AttributeError, LookupError, TypeError, ValueError) as error:
        notes.append(f"{name} was left out: it cannot be read as a PDF ({error}).")
        return None
    if not any(page.strip() for page in pages):
        notes.append(f"{name} was left out: it holds no text. Is it a scan?")
        return None
    return "\n\n".join(f"# Page {number}\n{page}" for number, page in enumerate(pages, 1) if page.strip())
