"""Verified answers: questions with the SQL that a person stands for, and a team's notes, as files to review.

    questions/how-many-orders-are-there-1a2b3c4d.md    a question, its SQL, who verified it and when
    notes/*.md                                         rules and conventions in the team's own words

A question's file is YAML between two lines ``---``, then the SQL in a fence, then perhaps a note. What merely
ran is never here: only what somebody kept, corrected or imported. The files are the only truth; every run
reads them anew, and an index over them can be thrown away.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path

from quorum.knowledge.chunks import Chunk
from quorum.knowledge.demonstrations import same_words
from quorum.knowledge.documents import Documents
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.index import Embedder

QUESTIONS, NOTES = "questions", "notes"
LONGEST_FILE = 1 << 20
"""Bytes of one file."""

_SQL = r"(?P<{0}>`{{3,}})sql\n(?P<{1}>.*?)\n(?P={0})\n*"
_FILE = re.compile(
    rf"\A---\n(?P<head>.*?)\n---\n+{_SQL.format('a', 'sql')}(?P<note>.*?)"
    rf"(?:^## Instead of\n+{_SQL.format('b', 'wrong')})?\Z",
    re.DOTALL | re.MULTILINE,
)
_FORM = "it is YAML with question, by and date between two lines ---, then the SQL between ```sql and ```"
_TEXTS = ("question", "database", "dialect", "by", "run")


@dataclass(frozen=True)
class VerifiedPair:
    """A question and the query that a person says is right.

    Attributes:
        database: Name of the catalog that it was asked of; empty for any.
        dialect: sqlglot's name; empty for any.
        tables: That the query reads.
        by, date: Who stands for it, and since when (ISO 8601).
        note: What settled its reading, in words; later questions see it.
        instead_of: The wrong query that it corrects; empty if it was kept as it was.
        run: Id of the run that it comes from; empty if it was imported.
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

    @property
    def id(self) -> str:
        """Eight characters of a hash: the same words, asked of the same database, are one question."""
        said = f"{same_words(self.question)}\n{self.database.casefold()}"
        return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()[:8]

    @property
    def file(self) -> str:
        """Its file below the knowledge base's folder."""
        words = re.findall(r"[a-z0-9]+", self.question.casefold())[:8]
        return f"{QUESTIONS}/{'-'.join([*words, self.id])}.md"

    @property
    def credit(self) -> str:
        """Who verified it and when, as a part of a sentence."""
        return f"verified by {self.by or 'somebody'}" + (f" on {self.date}" if self.date else "")

    def as_text(self) -> str:
        """The file's content."""
        import yaml

        texts = {name: getattr(self, name) for name in _TEXTS}
        head = {name: text for name, text in texts.items() if text}
        head |= {"date": self.date} if self.date else {}
        head |= {"tables": list(self.tables)} if self.tables else {}
        written = yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=100)
        note = f"\n{self.note.strip()}\n" if self.note.strip() else ""
        wrong = f"\n## Instead of\n\n{_fenced(self.instead_of)}" if self.instead_of else ""
        return f"---\n{written}---\n\n{_fenced(self.sql)}{note}{wrong}"

    @classmethod
    def of_text(cls, text: str) -> VerifiedPair:
        """What a file says.

        Raises:
            ValueError: It is no such file; the message says why.
        """
        import yaml

        found = _FILE.match(text.replace("\r\n", "\n").rstrip() + "\n")
        if found is None:
            raise ValueError(_FORM)
        try:
            head = yaml.safe_load(found["head"])
        except (yaml.YAMLError, ValueError, RecursionError) as error:
            raise ValueError(f"its head is no YAML: {str(error).splitlines()[0]}") from error
        if not isinstance(head, dict):
            raise ValueError(_FORM)
        texts = {name: str(head.get(name) or "").strip() for name in (*_TEXTS, "date")}
        tables = head.get("tables") or []
        if not isinstance(tables, list):
            raise ValueError("its tables are no list")
        if not texts["question"] or not found["sql"].strip():
            raise ValueError("it lacks its question or its SQL")
        return cls(
            sql=found["sql"].strip(),
            tables=tuple(map(str, tables)),
            note=found["note"].strip(),
            instead_of=(found["wrong"] or "").strip(),
            **texts,
        )


def _fenced(sql: str) -> str:
    fence = "`" * max(3, 1 + max(map(len, re.findall(r"`+", sql)), default=0))
    return f"{fence}sql\n{sql.strip()}\n{fence}\n"


@dataclass(eq=False)
class KnowledgeBase:
    """What a team knows of its databases.

    Attributes:
        pairs: Verified questions, in the order of their files' names.
        problems: Sentences on files that were left out.
        cache: Folder in which embedding indexes are kept; None keeps them in memory only.
    """

    folder: Path
    pairs: tuple[VerifiedPair, ...] = ()
    texts: dict[str, str] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    cache: Path | None = None

    @classmethod
    def load(cls, folder: Path, *, cache: Path | None = None) -> KnowledgeBase:
        """Read a folder; one that does not exist is empty, and a file that cannot be read is left out.

        Raises:
            ConfigurationError: It is a file, or cannot be read.
        """
        if folder.exists() and not folder.is_dir():
            raise ConfigurationError(f"{folder} is a file; a knowledge base is a folder.")
        problems: list[str] = []
        questions = dict(_read(folder / QUESTIONS, problems))
        pairs = []
        for name, text in questions.items():
            try:
                pairs.append(VerifiedPair.of_text(text))
            except ValueError as error:
                problems.append(f"{QUESTIONS}/{name} was left out: {error}")
        notes = {f"{NOTES}/{name}": text for name, text in _read(folder / NOTES, problems)}
        return cls(folder, tuple(pairs), notes, problems, cache)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to show or to say."""
        return not (self.pairs or self.texts or self.problems)

    @property
    def hash(self) -> str:
        """SHA-256 (hex) over pairs and notes."""
        said = repr((self.pairs, sorted(self.texts.items())))
        return hashlib.sha256(said.encode(errors="surrogatepass")).hexdigest()

    def of(self, database: str, dialect: str) -> KnowledgeBase:
        """What concerns one database."""
        fits = [
            pair
            for pair in self.pairs
            if pair.database.casefold() in ("", database.casefold()) and pair.dialect in ("", dialect)
        ]
        return replace(self, pairs=tuple(fits))

    def exact(self, question: str) -> VerifiedPair | None:
        """The pair of the same words, whatever their case, blanks and last mark."""
        asked = same_words(question)
        return next((pair for pair in self.pairs if same_words(pair.question) == asked), None)

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
        return Documents.of(self.texts | own, cache=self.cache)

    @cached_property
    def _questions(self) -> Documents:
        chunks = [
            Chunk(str(number), pair.question, " ".join((*pair.tables, pair.note)))
            for number, pair in enumerate(self.pairs)
        ]
        return Documents({}, chunks, [], self.cache)

    def keep(self, pair: VerifiedPair) -> Path:
        """Write a pair's file, in the place of an earlier one of the same question; returns it.

        Raises:
            ConfigurationError: The folder cannot be written to.
        """
        path = self.folder / pair.file
        part = path.with_name(f"{path.name}.{os.getpid()}.part")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            part.write_text(pair.as_text(), encoding="utf-8")
            part.replace(path)
            for older in path.parent.glob(f"*-{pair.id}.md"):
                if older != path:
                    older.unlink()
        except OSError as error:
            raise ConfigurationError(f"Cannot write {path}: {error.strerror}.") from error
        return path

    def find(self, name: str) -> VerifiedPair:
        """The pair with this id, or whose id begins so.

        Raises:
            ConfigurationError: There is none, or several.
        """
        found = [pair for pair in self.pairs if name and pair.id.startswith(name)]
        if len(found) != 1:
            several = f"{len(found)} verified questions begin" if found else "No verified question begins"
            raise ConfigurationError(
                f"{several} with {name!r} in {self.folder}.", hint="`quorum kb show` lists their ids."
            )
        return found[0]

    def forget(self, pair: VerifiedPair) -> list[Path]:
        """Delete a pair's files; returns them."""
        gone = [path for path in (self.folder / QUESTIONS).glob("*.md") if _is(path, pair)]
        for path in gone:
            path.unlink()
        return gone


def _is(path: Path, pair: VerifiedPair) -> bool:
    try:
        return VerifiedPair.of_text(path.read_text("utf-8")).id == pair.id
    except (OSError, ValueError):
        return False


def _read(folder: Path, problems: list[str]) -> Iterable[tuple[str, str]]:
    """Name and text of each Markdown file, sorted."""
    root = folder.resolve()
    for path in sorted(folder.glob("*.md")):
        why: str | None = None
        try:
            if not path.resolve().is_relative_to(root):
                why = "it is a link out of the folder"
            elif path.stat().st_size > LONGEST_FILE:
                why = f"it has over {LONGEST_FILE >> 20} MB"
            else:
                yield path.name, path.read_text("utf-8-sig")
        except OSError as error:
            why = error.strerror
        except UnicodeDecodeError:
            why = "it is not UTF-8"
        if why:
            problems.append(f"{folder.name}/{path.name} was left out: {why}.")
