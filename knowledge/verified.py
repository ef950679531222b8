"""Verified answers: questions with SQL that a person vouches for, and a team's notes, as files to review.

    questions/how-many-orders-are-there-1a2b3c4d.md    a question, its SQL, who verified it and when
    notes/*.md                                         rules and conventions in the team's own words

A question's file is YAML between two lines ``---``, then the SQL in a fence, then perhaps a note, and the
query that it corrects. What merely ran is never here: only what somebody kept, corrected or imported. The
files are the only truth, whatever they are called; every run reads them again, and an index over them can be
thrown away.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import unicodedata
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from quorum.knowledge.atomic import replace_file
from quorum.knowledge.demonstrations import Demonstrations
from quorum.knowledge.documents.search import Chunk, Documents
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.search.index import Embedder

QUESTIONS, NOTES = "questions", "notes"
LONGEST_FILE, LONGEST_HEAD = 1 << 16, 10_000
"""Bytes of one file, and characters of its head."""
INSTEAD = "## Instead of"

_FENCE = re.compile(r"(`{3,})sql")
_QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)|\"([^\"]+)\"|[“„]([^”“]+)[”“]")
_FORM = "it is YAML with question, by and date between two lines ---, then the SQL between ```sql and ```"
_TEXTS = ("question", "database", "dialect", "by", "date", "run")
_KEPT = ("by", "date", "note", "instead_of", "run")
_LONGEST_CREDIT = 60


@dataclass(frozen=True)
class VerifiedPair:
    """A question and the query that a person says is right.

    Attributes:
        database: Name of the catalog that it was asked of; empty for any.
        dialect: sqlglot's name; empty for any.
        tables, marks: That the query reads, and what their columns' names and types were then, as
            ``quorum.tools.sql.linking.table_marks`` says; no marks where that is not known.
        by, date: Who vouches for it, and since when (ISO 8601).
        note: What settled its reading, in words; later questions see it.
        instead_of: The wrong query that it corrects; empty if it was kept as it was.
        run: Id of the run that it comes from; empty if it was imported.
        file: That it was read from, below the knowledge base's folder; empty for a new one.
    """

    question: str
    sql: str
    database: str = ""
    dialect: str = ""
    tables: tuple[str, ...] = ()
    by: str = ""
    date: str = ""
    note: str = ""
    instead_of: str = ""
    run: str = ""
    marks: tuple[str, ...] = ()
    file: str = field(default="", compare=False)

    @property
    def id(self) -> str:
        """Eight characters of a hash: the same words, asked of the same database, are one question."""
        said = repr((_wording(self.question), self.database.casefold()))
        return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:8]

    @property
    def credit(self) -> str:
        """Return ``verified by NAME on DATE``, on one line."""
        who, when = (" ".join(text.split())[:_LONGEST_CREDIT] for text in (self.by, self.date))
        return f"verified by {who or 'somebody'}" + (f" on {when}" if when else "")

    def as_text(self) -> str:
        """The file's content."""
        import yaml

        head: dict[str, Any] = {name: text for name in _TEXTS if (text := getattr(self, name))}
        marked = dict(zip(self.tables, self.marks, strict=True)) if self.marks else list(self.tables)
        head |= {"tables": marked} if marked else {}
        written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100)
        note = f"\n{self.note}\n" if self.note else ""
        wrong = f"\n{INSTEAD}\n\n{_fenced(self.instead_of)}" if self.instead_of else ""
        return f"---\n{written}---\n\n{_fenced(self.sql)}{note}{wrong}"

    @classmethod
    def of_text(cls, text: str) -> VerifiedPair:
        """Read a pair from a file's text.

        Raises:
            ValueError: It is no such file; the message says why.
        """
        lines = text.replace("\r\n", "\n").rstrip().split("\n")
        if lines[0] != "---" or "---" not in lines[1:]:
            raise ValueError(_FORM)
        end = lines.index("---", 1)
        head = _head("\n".join(lines[1:end]))
        sql, rest = _cut_fence(lines[end + 1 :])
        note, wrong = _cut_wrong(rest)
        marked = head.get("tables", [])
        texts = {name: head.get(name, "") for name in _TEXTS}
        marks = [*marked.values()] if isinstance(marked, dict) else []
        tables: list[Any] = [*marked] if isinstance(marked, dict | list) else [None]
        if not all(isinstance(value, str) for value in (*tables, *marks, *texts.values())):
            raise ValueError("a value in its head is no text")
        if not texts["question"].strip() or not sql.strip():
            raise ValueError("it lacks its question or its SQL")
        _check_text("".join((*texts.values(), *tables, *marks)))
        return cls(
            sql=sql,
            tables=tuple(tables),
            marks=tuple(marks),
            note="\n".join(note).strip(),
            instead_of=wrong,
            **{name: value.strip() for name, value in texts.items()},
        )


def pairs_in(file: Path) -> list[VerifiedPair]:
    """The pairs of a file of demonstrations, with the further fields of an export.

    Raises:
        ConfigurationError: As ``Demonstrations.load``.
    """
    items = Demonstrations.load(file).items
    more: dict[tuple[str, str], dict[str, Any]] = {}
    for line in file.read_text(encoding="utf-8-sig").split("\n"):
        if line.startswith("{"):
            said = {name: text for name, text in json.loads(line).items() if isinstance(text, str)}
            key = said.get("question", "").strip(), said.get("sql", "").strip()
            more[key] = {name: said[name].strip() for name in _KEPT if name in said}
    return [
        VerifiedPair(item.question, item.sql, item.database, **more.get((item.question, item.sql), {}))
        for item in items
    ]


def _head(text: str) -> dict[str, Any]:
    """The head's values, all of them texts or lists."""
    import yaml

    if len(text) > LONGEST_HEAD:
        raise ValueError(f"its head has over {LONGEST_HEAD:,} characters")
    try:
        if any(isinstance(token, yaml.AliasToken | yaml.AnchorToken) for token in yaml.scan(text)):
            raise ValueError("its head has anchors, which may stand for anything")
        found = yaml.load(text, yaml.BaseLoader)
    except (yaml.YAMLError, RecursionError) as error:
        raise ValueError(f"its head is no YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(found, dict):
        raise ValueError(_FORM)
    return found


def _cut_fence(lines: Sequence[str]) -> tuple[str, list[str]]:
    """Split ``lines`` into the text in the fence at their beginning and the lines after it."""
    start = next((place for place, line in enumerate(lines) if line.strip()), len(lines))
    opening = _FENCE.fullmatch(lines[start]) if start < len(lines) else None
    if opening is None or opening[1] not in lines[start + 1 :]:
        raise ValueError(_FORM)
    end = lines.index(opening[1], start + 1)
    return "\n".join(lines[start + 1 : end]).strip(), list(lines[end + 1 :])


def _cut_wrong(lines: list[str]) -> tuple[list[str], str]:
    """The lines before the wrong query at their end, and that query; empty where there is none."""
    for place in (place for place, line in enumerate(lines) if line == INSTEAD):
        try:
            wrong, after = _cut_fence(lines[place + 1 :])
        except ValueError:
            continue
        if not after:
            return lines[:place], wrong
    return lines, ""


def _fenced(sql: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", sql)), default=0))
    return f"{fence}sql\n{sql}\n{fence}\n"


def _wording(question: str) -> tuple[str, tuple[str, ...]]:
    """Equal for texts that ask the same words, whatever their case, blanks and last mark.

    Text in quotes must be the same letter by letter.
    """
    text = unicodedata.normalize("NFC", question)
    quoted = tuple(next(filter(None, found.groups())) for found in _QUOTED.finditer(text))
    return " ".join(text.lower().split()).rstrip(" ?."), quoted


def _check_text(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise ValueError("it holds half a character (a surrogate)") from error


@dataclass(eq=False)
class KnowledgeBase:
    """A team's verified questions and notes.

    Attributes:
        pairs: Verified questions, in the order of their files' names, each question once.
        texts: Notes by file.
        problems: Sentences on files that were left out.
        stamp: The folder's files when it was read (``changed``); None if it was not.
    """

    folder: Path = Path()
    pairs: tuple[VerifiedPair, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    stamp: frozenset[tuple[str, int, int, int]] | None = None

    @classmethod
    def load(cls, folder: Path) -> KnowledgeBase:
        """Read a folder; one that does not exist is empty, and a file that cannot be read is left out.

        Of several files with the same question the one of the latest date counts.

        Raises:
            ConfigurationError: It is a file, or cannot be looked into.
        """
        known = cls(folder, stamp=_stamp(folder))
        try:
            if folder.exists() and not folder.is_dir():
                raise ConfigurationError(f"{folder} is a file; a knowledge base is a folder.")
            found = {part: dict(_read(folder, part, known.problems)) for part in (QUESTIONS, NOTES)}
        except (OSError, RuntimeError) as error:  # a loop of links is a RuntimeError in Python 3.11
            raise ConfigurationError(f"The knowledge base {folder} cannot be read: {error}.") from error
        pairs: dict[str, VerifiedPair] = {}
        for file, text in found[QUESTIONS].items():
            try:
                pair = replace(VerifiedPair.of_text(text), file=file)
            except ValueError as error:
                known.problems.append(f"{_shown(file)} was left out: {error}.")
                continue
            other = pairs.get(pair.id, pair)
            pairs[pair.id], less = (pair, other) if pair.date > other.date else (other, pair)
            if pair is not other:
                known.problems.append(
                    f"{_shown(less.file)} was left out: {pairs[pair.id].file} asks the same."
                )
        known.pairs, known.texts = tuple(pairs.values()), found[NOTES]
        return known

    def changed(self) -> bool:
        """True if a file of the folder has come, gone or been written since it was read."""
        return self.stamp is not None and self.stamp != _stamp(self.folder)

    @property
    def empty(self) -> bool:
        """True if there is no pair, note or problem."""
        return not (self.pairs or self.texts or self.problems)

    @property
    def hash(self) -> str:
        """SHA-256 (hex) over pairs and notes."""
        said = repr(([pair.as_text() for pair in self.pairs], sorted(self.texts.items())))
        return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()

    def of(self, database: str, dialect: str) -> KnowledgeBase:
        """Return the part that concerns one database."""
        fits = [
            pair
            for pair in self.pairs
            if pair.database.casefold() in ("", database.casefold()) and pair.dialect in ("", dialect)
        ]
        return replace(self, pairs=tuple(fits))

    def exact(self, question: str) -> VerifiedPair | None:
        """The pair of the same words, whatever their case, blanks and last mark.

        One that names its database comes before one for any, then the later one.
        """
        asked = _wording(question)
        same = [pair for pair in self.pairs if _wording(pair.question) == asked]
        return max(same, key=lambda pair: (bool(pair.database), pair.date), default=None)

    def similar(self, question: str, k: int, *, embedder: Embedder | None = None) -> list[VerifiedPair]:
        """The pairs whose questions bear on ``question``, best first; none if none does.

        Raises:
            ConfigurationError: The embedder's package or model is missing.
        """
        found = self._questions.search(question, k, embedder=embedder)
        return [self.pairs[int(chunk.source)] for chunk in found]

    @cached_property
    def notes(self) -> Documents:
        """The notes, and those of verified questions, under the tables that they concern."""
        own = {
            pair.file: f"# {', '.join(pair.tables)}\n{pair.note} ({pair.credit}, asking: {pair.question})"
            for pair in self.pairs
            if pair.note
        }
        return Documents.of(self.texts | own)

    @cached_property
    def _questions(self) -> Documents:
        chunks = [
            Chunk(str(number), pair.question, " ".join((*pair.tables, pair.note)))
            for number, pair in enumerate(self.pairs)
        ]
        return Documents({}, chunks, [])

    def keep(self, pair: VerifiedPair, now: KnowledgeBase | None = None) -> Path:
        """Write a pair's file, in the place of an earlier one of the same question; returns it.

        Args:
            now: What the folder holds; it is read if None.

        Raises:
            ConfigurationError: The folder cannot be written to, or the pair cannot be written as a file.
        """
        try:
            text = pair.as_text()
            if VerifiedPair.of_text(text) != pair or len(text.encode()) > LONGEST_FILE:
                raise ValueError("it is too long, or would be read as another")
        except ValueError as error:
            raise ConfigurationError(f"This question cannot be kept as a file: {error}.") from error
        now = now or KnowledgeBase.load(self.folder)
        before = next((other for other in now.pairs if other.id == pair.id), None)
        return _written(self.folder / (before.file if before else now.new_file(pair)), text)

    def keep_note(self, name: str, text: str) -> Path:
        """Write a note, in the place of an earlier one of that name; returns its file.

        Raises:
            ConfigurationError: The folder cannot be written to.
        """
        return _written(self.folder / NOTES / f"{name}.md", text)

    def new_file(self, pair: VerifiedPair) -> str:
        """A name for a pair's file that no other file has."""
        words = "-".join(re.findall(r"[a-z0-9]+", pair.question.casefold()))[:60].strip("-")
        stem = f"{QUESTIONS}/{words or 'question'}-{pair.id}"
        names = (f"{stem}{more}.md" for more in ("", *(f"-{number}" for number in range(2, 1000))))
        return next(name for name in names if not (self.folder / name).exists())

    def find(self, name: str) -> VerifiedPair:
        """The pair with this id, or whose id begins so, or whose file has this name.

        Raises:
            ConfigurationError: There is none, or several.
        """
        stem = Path(name).name.removesuffix(".md")
        named = [pair for pair in self.pairs if stem and Path(pair.file).stem == stem]
        found = named or [pair for pair in self.pairs if name and pair.id.startswith(name)]
        if len(found) != 1:
            several = f"{len(found)} verified questions begin" if found else "No verified question begins"
            raise ConfigurationError(
                f"{several} with {name!r} in {self.folder}.", hint="`quorum kb show` lists their ids."
            )
        return found[0]

    def forget(self, pair: VerifiedPair) -> Path:
        """Delete a pair's file; returns it.

        Raises:
            ConfigurationError: It cannot be deleted.
        """
        path = self.folder / pair.file
        try:
            path.unlink()
        except OSError as error:
            raise ConfigurationError(f"Cannot delete {path}: {error.strerror}.") from error
        return path


def _written(path: Path, text: str) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(path, text.encode())
    except OSError as error:
        raise ConfigurationError(f"Cannot write {path}: {error.strerror}.") from error
    return path


def _read(folder: Path, part: str, problems: list[str]) -> Iterator[tuple[str, str]]:
    """Name and text of each Markdown file of a subfolder, sorted; no link out of the folder is followed."""
    root, place = folder.resolve(), folder / part
    if not place.exists():
        return
    if not place.is_dir() or not place.resolve().is_relative_to(root):
        problems.append(f"{part}/ was left out: it is no folder, or a link out of the knowledge base.")
        return
    for name in sorted(name for name in os.listdir(place) if name.endswith(".md")):  # noqa: PTH208 - it raises
        path, why = place / name, ""
        try:
            _check_text(name)
            if not path.is_file() or not path.resolve().is_relative_to(root):
                why = "it is no file, or a link out of the knowledge base"
            elif path.stat().st_size > LONGEST_FILE:
                why = f"it has over {LONGEST_FILE >> 10} KB"
            else:
                yield f"{part}/{name}", path.read_bytes().decode("utf-8-sig")
        except UnicodeDecodeError:
            why = "it is not UTF-8"
        except (OSError, RuntimeError, ValueError) as error:
            why = getattr(error, "strerror", None) or str(error)
        if why:
            problems.append(f"{_shown(f'{part}/{name}')} was left out: {why}.")


def _stamp(folder: Path) -> frozenset[tuple[str, int, int, int]]:
    """Name, number, size and time of each file; empty where the folder cannot be read."""
    found = set()
    for part in (QUESTIONS, NOTES):
        with suppress(OSError, RuntimeError), os.scandir(folder / part) as files:
            for file in files:
                about = file.stat()
                found.add((file.name, about.st_ino, about.st_size, about.st_mtime_ns))
    return frozenset(found)


def _shown(file: str) -> str:
    """A file's name as text that can be printed and kept."""
    return file.encode("utf-8", "backslashreplace").decode()
