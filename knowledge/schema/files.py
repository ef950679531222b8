"""A read-only folder of schema files for an agent to explore: ls, cat, head, grep.

Nothing here touches a file system or a shell: the files are strings made from a catalog, the
commands are parsed and run in process. Every answer is text for a model, errors included.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from functools import cached_property
from getopt import GetoptError, gnu_getopt

from quorum.knowledge.catalog import Catalog
from quorum.knowledge.naming import write_name
from quorum.knowledge.schema.blocks import full_name
from quorum.knowledge.schema.grammar import one_line
from quorum.knowledge.schema.layouts import Layout, find_layouts
from quorum.knowledge.schema.render import FULL
from quorum.knowledge.schema.writer import Writer

MAX_CHARS = 8_000
"""Characters that a command prints; a cut is marked."""

MAX_LINE = 500
"""Characters of one printed line."""

MAX_LISTED = 60
"""Files up to which ``ls`` lists the files in folders as well."""

_USAGE = "ls [PATH], cat FILE, head [-n N] FILE, grep [-i] [-r] [-l] [-F] PATTERN [PATH]"
_UNSAFE = re.compile(r"[^\w$ .(){}@+,=~%-]")
_README, _DDL = "README.md", "DDL.sql"


class SchemaFiles:
    """The schema of one database as files: README.md, DDL.sql, one file per table or field group.

    Args:
        catalog: What the files describe.
        documents: Further files by name, put under ``docs/``.
    """

    def __init__(self, catalog: Catalog, documents: Mapping[str, str] | None = None) -> None:
        self._catalog = catalog
        self._documents = {f"docs/{name}": text for name, text in (documents or {}).items()}
        self._commands: dict[str, Callable[[Sequence[str]], list[str]]] = {
            "ls": self._ls,
            "cat": self._cat,
            "head": self._head,
            "grep": self._grep,
        }

    @cached_property
    def _layouts(self) -> dict[str, Layout]:
        """The layouts by the path of their file, and by the path of each member's alias."""
        paths: dict[str, Layout] = {}
        for layout in find_layouts(self._catalog):
            for table in layout.tables:
                folder = ".".join(part for part in (table.database, table.schema) if part)
                stem = f"{folder}/{_UNSAFE.sub('_', table.name).strip() or '_'}".lstrip("/")
                path, number = f"{stem}.txt", 2
                while path in paths:
                    path, number = f"{stem}~{number}.txt", number + 1
                paths[path] = layout
        return paths

    @cached_property
    def _listed(self) -> dict[str, list[str]]:
        """Paths of the files that are listed, each with the aliases that lead to it."""
        paths: dict[Layout, list[str]] = {}
        for path, layout in self._layouts.items():
            paths.setdefault(layout, []).append(path)
        tables = {first: aliases for first, *aliases in paths.values()}
        return {_README: [], _DDL: [], **tables, **{path: [] for path in self._documents}}

    @cached_property
    def _folders(self) -> frozenset[str]:
        return frozenset(path.rpartition("/")[0] for path in self._listed if "/" in path)

    @cached_property
    def _path_of(self) -> dict[str, str]:
        """Paths by everything that opens them, in lower case: path, file name, table name."""
        known: dict[str, str] = {}
        for path in [*self._listed, *self._layouts]:
            stem, name = path.removesuffix(".txt"), path.rsplit("/", 1)[-1]
            for key in (path, stem, name, name.removesuffix(".txt"), stem.replace("/", ".")):
                known.setdefault(key.casefold(), path)
        return known

    def read(self, path: str) -> list[str] | None:
        """The lines of a file, by its path, a table's name, or a member of a group; None if unknown."""
        known = self._path_of.get(_clean(path).casefold())
        if known is None:
            return None
        if known in (_README, _DDL):
            return list(self._readme() if known == _README else self._ddl())
        if known in self._documents:
            return self._documents[known].splitlines()
        layout = self._layouts[known]
        alone = Layout(layout.tables, layout.columns)
        (text,) = Writer([alone], self._catalog.dialect, pack=False).write(FULL)
        return text.split("\n")

    def run(self, command: str) -> str:
        """Run one command and return what it prints, cut with a statement at ``MAX_CHARS``."""
        try:
            words = shlex.split(command)
        except ValueError as error:
            return f"Cannot read the command: {error}. Put patterns with spaces in quotes."
        if not words:
            return f"No command given. There are: {_USAGE}."
        if any(word in {"|", ">", ">>", "&&", "||", ";", "<"} for word in words):
            return f"One command at a time, without pipes or redirection. There are: {_USAGE}."
        if words[0] not in self._commands:
            return f"{words[0]}: no such command. There are: {_USAGE}."
        try:
            return self._cut(self._commands[words[0]](words[1:]))
        except _CommandError as error:
            return f"{words[0]}: {error}"

    def _cut(self, lines: Sequence[str]) -> str:
        kept: list[str] = []
        used = 0
        for line in lines:
            more = len(line) - MAX_LINE
            short = line if more <= 0 else line[:MAX_LINE] + f"… ({more:,} characters cut)"
            used += len(short) + 1
            if used > MAX_CHARS:
                kept.append(
                    f"… cut: {len(kept):,} of {len(lines):,} lines shown; use grep, or name one file."
                )
                break
            kept.append(short)
        return "\n".join(kept)

    def _ls(self, words: Sequence[str]) -> list[str]:
        _, paths = _options(words, "lahR1")
        folder = _clean(paths[0]) if paths else ""
        if not folder:
            if len(self._listed) <= MAX_LISTED:
                return [self._entry(path, path) for path in self._listed]
            inside = {f: sum(p.startswith(f"{f}/") for p in self._listed) for f in sorted(self._folders)}
            folders = [f"{name}/ ({count:,} files)" for name, count in inside.items()]
            return folders + [self._entry(path, path) for path in self._listed if "/" not in path]
        if folder in self._folders:
            names = [(path, path.removeprefix(f"{folder}/")) for path in self._listed]
            return [self._entry(path, name) for path, name in names if name != path and "/" not in name]
        if folder.casefold() in self._path_of:
            return [self._path_of[folder.casefold()]]
        raise _CommandError(f"{folder}: no such file or folder; ls shows what there is.")

    def _entry(self, path: str, name: str) -> str:
        aliases = self._listed[path]
        if not aliases:
            return name
        return f"{name} (one of {len(aliases) + 1:,} tables alike, to {aliases[-1].rsplit('/', 1)[-1]})"

    def _cat(self, words: Sequence[str]) -> list[str]:
        _, paths = _options(words, "n")
        if not paths:
            raise _CommandError("name a file; ls shows what there is.")
        return [line for path in paths for line in self._lines(path)]

    def _head(self, words: Sequence[str]) -> list[str]:
        words = [f"-n{w[1:]}" if re.fullmatch(r"-\d+", w) else w for w in words]
        options, paths = _options(words, "n:")
        count = options.get("n", "10")
        if not count.isdigit() or len(paths) != 1:
            raise _CommandError("head [-n N] FILE, with a whole number N.")
        return self._lines(paths[0])[: int(count)]

    def _lines(self, path: str) -> list[str]:
        lines = self.read(path)
        if lines is None:
            if _clean(path) in self._folders:
                raise _CommandError(f"{path} is a folder; ls {path} lists it.")
            raise _CommandError(f"{path}: no such file; ls shows what there is.")
        return lines

    def _grep(self, words: Sequence[str]) -> list[str]:
        options, rest = _options(words, "irRnlEFwHhe:")
        if "e" in options:
            rest = [options["e"], *rest]
        if not rest:
            raise _CommandError("grep [-i] [-r] PATTERN [PATH].")
        lines = [(path, line.strip()) for path in self._chosen(rest[1:]) for line in self.read(path) or ()]
        fixed, ignore_case = "F" in options, "i" in options
        plain, hits = search([line for _, line in lines], rest[0], ignore_case=ignore_case, fixed=fixed)
        if "l" in options:
            found = list(dict.fromkeys(lines[i][0] for i in hits))
        else:
            found = [": ".join(lines[i]) for i in hits]
        note = ["(searched as plain text: this pattern is more than grep takes here)"] if plain else []
        return [*note, *(found or [f"no line matches {rest[0]!r}"])]

    def _chosen(self, paths: Sequence[str]) -> Iterator[str]:
        """The listed files at the given paths (all but the DDL, which repeats the rest)."""
        for path in paths or ("",):
            folder = _clean(path)
            if folder == "" or folder in self._folders:
                inside = f"{folder}/" if folder else ""
                yield from (p for p in self._listed if p.startswith(inside) and p not in (_DDL, _README))
            elif "*" in folder:
                yield from (p for p in self._listed if fnmatchcase(p.casefold(), folder.casefold()))
            else:
                self._lines(path)
                yield self._path_of[folder.casefold()]

    def _readme(self) -> Iterator[str]:
        catalog = self._catalog
        columns = sum(len(table.columns) for table in catalog.tables)
        yield f"# {catalog.name} ({catalog.dialect}): {len(catalog.tables):,} tables, {columns:,} columns"
        yield (
            "One file per table; tables with the same columns share the file of the first of them, and"
            " any of their names opens it."
        )
        yield "A line: column TYPE, keys, [sample values], -- description; nested paths are indented."
        yield "DDL.sql: names, types and keys of all tables. docs/: documents, where there are any."
        yield from (f"Note: {one_line(fact)}" for fact in catalog.facts)

    def _ddl(self) -> Iterator[str]:
        dialect = self._catalog.dialect
        for table in self._catalog.tables:
            parts = [f"{write_name(c.name, dialect)} {c.type}".rstrip() for c in table.columns]
            if table.primary_key:
                parts.append(f"PRIMARY KEY ({_names(table.primary_key, dialect)})")
            for key in table.foreign_keys:
                there = (
                    f"{key.ref_table} ({_names(key.ref_columns, dialect)})"
                    if key.ref_columns
                    else key.ref_table
                )
                parts.append(f"FOREIGN KEY ({_names(key.columns, dialect)}) REFERENCES {there}")
            yield f"CREATE {table.kind.upper()} {full_name(table, dialect)} ({', '.join(parts)});"


def _names(columns: Sequence[str], dialect: str) -> str:
    return ", ".join(write_name(column, dialect) for column in columns)


class _CommandError(Exception):
    """A wrong command; the message is for the model that wrote it."""


def search(
    lines: Sequence[str], pattern: str, *, ignore_case: bool = False, fixed: bool = False
) -> tuple[bool, list[int]]:
    """Find a grep pattern (extended notation, ``\\|`` as well) in lines.

    The lines that hold the pattern as plain text match too, for in basic notation ``(`` is a character like
    any other. The search is RE2's, whose time grows with the text alone whatever pattern a model writes.

    Args:
        fixed: Look for plain text alone, as ``grep -F``.

    Returns:
        Whether the pattern was none and only its text was looked for, and the indexes of the lines found.
    """
    import pyarrow as pa
    import pyarrow.compute as pc

    def fold(text: str) -> str:
        return text.casefold() if ignore_case else text

    found = [fold(pattern) in fold(line) for line in lines]
    plain = False
    if not fixed:
        column = pa.array([line.encode("utf-8", "replace").decode() for line in lines], pa.string())
        wanted = pattern.replace(r"\|", "|").encode("utf-8", "replace").decode()
        try:
            matches = pc.match_substring_regex(column, wanted, ignore_case=ignore_case).to_pylist()
            found = [one or other for one, other in zip(found, matches, strict=True)]
        except pa.ArrowInvalid:
            plain = True
    return plain, [i for i, hit in enumerate(found) if hit]


def _clean(path: str) -> str:
    return path.removeprefix("./").strip("/") if path not in {".", "/", "./"} else ""


def _options(words: Sequence[str], known: str) -> tuple[dict[str, str], list[str]]:
    """Options by letter (``-n 5``, ``-n5``, ``-ir``), and the other words."""
    try:
        options, rest = gnu_getopt(list(words), known)
    except GetoptError as error:
        if "requires" in error.msg:
            raise _CommandError(f"option -{error.opt} needs a value.") from error
        raise _CommandError(f"unknown option -{error.opt}. There are: {_USAGE}.") from error
    return {name.lstrip("-"): value for name, value in options}, rest
