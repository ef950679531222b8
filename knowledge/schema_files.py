"""A read-only folder of schema files for an agent to explore: ls, cat, head, grep, find.

Nothing here touches a file system or a shell: the files are strings made from a catalog, the
commands are parsed and run in process. Every answer is text for a model, errors included.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.compress import FULL
from quorum.knowledge.layouts import Layout, find_layouts
from quorum.knowledge.line_search import compile_search
from quorum.knowledge.schema_grammar import one_line
from quorum.knowledge.schema_writer import Writer

MAX_CHARS = 8_000
"""Characters that a command prints; what is cut is said."""

MAX_LINE = 500
"""Characters of one printed line."""

MAX_LISTED = 60
"""Files up to which ``ls`` lists the files in folders as well."""

_USAGE = (
    "ls [PATH], cat FILE, head [-n N] FILE, grep [-i] [-r] [-l] [-F] PATTERN [PATH], find [PATH] [-name GLOB]"
)
_UNSAFE = re.compile(r"[^\w$ .(){}@+,=~%-]")


class SchemaFiles:
    """The schema of one database as files: README.md, DDL.sql, one file per table or field group.

    Args:
        catalog: What the files tell.
        documents: Further files by name, put under ``docs/``.
        max_chars: Characters that one command may print.
    """

    def __init__(
        self, catalog: Catalog, documents: Mapping[str, str] | None = None, *, max_chars: int = MAX_CHARS
    ) -> None:
        self._catalog = catalog
        self._documents = dict(documents or {})
        self._max_chars = max_chars

    @cached_property
    def _layouts(self) -> dict[str, Layout]:
        """The layouts by the path of their file, and by the path of each member's alias."""
        paths: dict[str, Layout] = {}
        for layout in find_layouts(self._catalog):
            for table in layout.tables:
                folder = ".".join(part for part in (table.database, table.schema) if part)
                stem = _UNSAFE.sub("_", table.name).strip() or "_"
                path, number = f"{folder}/{stem}.txt".lstrip("/"), 2
                while path in paths:
                    path, number = f"{folder}/{stem}~{number}.txt".lstrip("/"), number + 1
                paths[path] = layout
        return paths

    @cached_property
    def _shown(self) -> dict[str, list[str]]:
        """Paths of the files that are listed, each with the aliases that lead to it."""
        first: dict[int, str] = {}
        shown: dict[str, list[str]] = {"README.md": [], "DDL.sql": []}
        for path, layout in self._layouts.items():
            main = first.setdefault(id(layout), path)
            shown.setdefault(main, [])
            if main != path:
                shown[main].append(path)
        return {**shown, **{f"docs/{name}": [] for name in self._documents}}

    @cached_property
    def _by_folded(self) -> dict[str, str]:
        known: dict[str, str] = {}
        for path in [*self._shown, *self._layouts]:
            for name in (path, path.removesuffix(".txt"), path.rsplit("/", 1)[-1]):
                known.setdefault(name.casefold(), path)
            known.setdefault(path.removesuffix(".txt").rsplit("/", 1)[-1].casefold(), path)
            known.setdefault(path.removesuffix(".txt").replace("/", ".").casefold(), path)
        return known

    def read(self, path: str) -> list[str] | None:
        """The lines of a file, by its path, a table's name, or a member of a group; None if unknown."""
        known = self._by_folded.get(_clean(path).casefold())
        if known is None:
            return None
        if known == "README.md":
            return self._readme()
        if known == "DDL.sql":
            return list(self._ddl())
        if known.startswith("docs/"):
            return self._documents[known.removeprefix("docs/")].splitlines()
        layout = self._layouts[known]
        (text,) = Writer([Layout(layout.tables, layout.columns)], pack=False).write(FULL)
        return text.split("\n")

    def run(self, command: str) -> str:
        """Run one command and return what it prints, cut with a statement at ``max_chars``."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            return f"Cannot read the command: {error}. Put patterns with spaces in quotes."
        commands: dict[str, Callable[[Sequence[str]], list[str]]] = {
            "ls": self._ls,
            "cat": self._cat,
            "head": self._head,
            "grep": self._grep,
            "find": self._find,
        }
        if not words:
            return f"No command given. There are: {_USAGE}."
        if any(word in {"|", ">", ">>", "&&", "||", ";", "<"} for word in words):
            return f"One command at a time, without pipes or redirection. There are: {_USAGE}."
        if words[0] not in commands:
            return f"{words[0]}: no such command. There are: {_USAGE}."
        try:
            return self._cut(commands[words[0]](words[1:]))
        except _Complaint as error:
            return f"{words[0]}: {error}"

    def _cut(self, lines: Sequence[str]) -> str:
        kept: list[str] = []
        used = 0
        for line in lines:
            more = len(line) - MAX_LINE
            short = line if more <= 0 else line[:MAX_LINE] + f"… ({more:,} characters cut)"
            used += len(short) + 1
            if used > self._max_chars:
                said = f"… cut: {len(kept):,} of {len(lines):,} lines shown; use grep, or name one file."
                return "\n".join([*kept, said])
            kept.append(short)
        return "\n".join(kept)

    def _ls(self, words: Sequence[str]) -> list[str]:
        _, paths = _options(words, "lahR1", "")
        folder = _clean(paths[0]) if paths else ""
        if folder and folder.casefold() in self._by_folded and folder not in self._folders:
            return [self._by_folded[folder.casefold()]]
        if folder and folder not in self._folders:
            raise _Complaint(f"{folder}: no such file or folder; ls shows what there is.")
        if not folder and len(self._shown) <= MAX_LISTED:
            return [self._listed(path, path) for path in self._shown]
        inside = [path for path in self._shown if path.startswith(f"{folder}/" if folder else "")]
        names = [(path, path[len(folder) + 1 if folder else 0 :]) for path in inside]
        direct = [self._listed(path, name) for path, name in names if "/" not in name]
        return [*([] if folder else map(self._counted, sorted(self._folders))), *direct]

    def _counted(self, folder: str) -> str:
        return f"{folder}/ ({sum(path.startswith(f'{folder}/') for path in self._shown):,} files)"

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(path.rpartition("/")[0] for path in self._shown if "/" in path)

    def _listed(self, path: str, name: str) -> str:
        others = self._shown[path]
        if not others:
            return name
        last = others[-1].rsplit("/", 1)[-1]
        return f"{name} (one of {len(others) + 1:,} tables alike, to {last})"

    def _cat(self, words: Sequence[str]) -> list[str]:
        _, paths = _options(words, "n", "")
        if not paths:
            raise _Complaint("name a file; ls shows what there is.")
        return [line for path in paths for line in self._lines(path)]

    def _head(self, words: Sequence[str]) -> list[str]:
        words = [f"-n{w[1:]}" if re.fullmatch(r"-\d+", w) else w for w in words]
        options, paths = _options(words, "", "n")
        count = options.get("n", "10")
        if not count.isdigit() or len(paths) != 1:
            raise _Complaint("head [-n N] FILE, with a whole number N.")
        return self._lines(paths[0])[: int(count)]

    def _lines(self, path: str) -> list[str]:
        lines = self.read(path)
        if lines is None:
            if _clean(path) in self._folders:
                raise _Complaint(f"{path} is a folder; ls {path} lists it.")
            raise _Complaint(f"{path}: no such file; ls shows what there is.")
        return lines

    def _grep(self, words: Sequence[str]) -> list[str]:
        options, rest = _options(words, "irRnlEFwHh", "e")
        if "e" in options:
            rest = [options["e"], *rest]
        if not rest:
            raise _Complaint("grep [-i] [-r] PATTERN [PATH].")
        search = compile_search(rest[0], ignore_case="i" in options, fixed="F" in options)
        found: list[str] = []
        for path in self._chosen(rest[1:]):
            hits = [line.strip() for line in self.read(path) or () if search.matches(line.strip())]
            found += [path] if hits and "l" in options else [f"{path}: {hit}" for hit in hits]
        note = ["(searched as plain text: this pattern is more than grep takes here)"] if search.plain else []
        return [*note, *(found or [f"no line matches {rest[0]!r}"])]

    def _chosen(self, paths: Sequence[str]) -> Iterator[str]:
        """The listed files at the given paths (all but the DDL, which repeats the rest)."""
        for path in paths or ("",):
            folder = _clean(path)
            if folder == "" or folder in self._folders:
                inside = f"{folder}/" if folder else ""
                repeating = {"DDL.sql", "README.md"}
                yield from (p for p in self._shown if p.startswith(inside) and p not in repeating)
            elif "*" in folder:
                yield from (p for p in self._shown if fnmatchcase(p.casefold(), folder.casefold()))
            else:
                self._lines(path)
                yield self._by_folded[folder.casefold()]

    def _find(self, words: Sequence[str]) -> list[str]:
        words = list(words)
        pattern = "*"
        for option in ("-name", "-iname"):
            if option in words:
                at = words.index(option)
                if at + 1 >= len(words):
                    raise _Complaint("find [PATH] [-name GLOB].")
                pattern = words[at + 1]
                del words[at : at + 2]
        folder = _clean(words[0]) if words else ""
        inside = f"{folder}/" if folder else ""
        paths = [path for path in {**self._shown, **self._layouts} if path.startswith(inside)]
        found = [p for p in paths if fnmatchcase(p.rsplit("/", 1)[-1].casefold(), pattern.casefold())]
        return found or [f"no file is named {pattern}"]

    def _readme(self) -> list[str]:
        catalog = self._catalog
        columns = sum(len(table.columns) for table in catalog.tables)
        return [
            f"# {catalog.name} ({catalog.dialect}): {len(catalog.tables):,} tables, {columns:,} columns",
            "One file per table; tables with the same columns share the file of the first of them, and"
            " any of their names opens it.",
            "A line: column TYPE, keys, [sample values], -- description; nested paths are indented.",
            "DDL.sql: names and types of all tables. docs/: documents, where there are any.",
            *(f"Note: {one_line(note)}" for note in catalog.notes),
        ]

    def _ddl(self) -> Iterator[str]:
        for table in self._catalog.tables:
            columns = ", ".join(f"{_sql_name(c.name)} {c.type}".rstrip() for c in table.columns)
            names = ".".join(_sql_name(p) for p in (table.database, table.schema, table.name) if p)
            yield f"CREATE {table.kind.upper()} {names} ({columns});"


class _Complaint(Exception):
    """What is wrong with a command, for the model that wrote it."""


def _clean(path: str) -> str:
    return path.removeprefix("./").strip("/") if path not in {".", "/", "./"} else ""


def _sql_name(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z_]\w*", name) else '"' + one_line(name).replace('"', '""') + '"'


def _options(words: Sequence[str], flags: str, valued: str) -> tuple[dict[str, str], list[str]]:
    """Options (``-n 5``, ``-n5``, ``-ir``) and the other words.

    Raises:
        _Complaint: An option that the command does not have.
    """
    options: dict[str, str] = {}
    rest: list[str] = []
    queue = list(words)
    while queue:
        word = queue.pop(0)
        if word == "--":
            return options, [*rest, *queue]
        if len(word) < 2 or word[0] != "-":
            rest.append(word)
            continue
        for i, letter in enumerate(word[1:], 2):
            if letter in valued:
                options[letter] = word[i:] or (queue.pop(0) if queue else "")
                break
            if letter not in flags:
                raise _Complaint(f"unknown option -{letter}. There are: {_USAGE}.")
            options[letter] = ""
    return options, rest
