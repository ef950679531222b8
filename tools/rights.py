"""Rights: rules that hide tables, and mask columns in all that leaves for a model, a trace or a page.

A rule is a pattern (``*``, ``?``, ``[abc]``; case does not count) over the end of a dotted name:
``salaries``, ``hr.*``, ``shop.hr.salaries`` for tables, ``ssn``, ``customers.email``, ``hr.*.ssn`` for
columns. ``tag:pii`` fits what has the word ``#pii`` in its comment.

The catalog has no hidden table, and of a masked column its name, type, comment and keys. So nothing above it
can show more; guard and lint refuse what the catalog lacks, the engine's own tables among them. Values reach
us in results and in errors of engines, where ``masked`` replaces them.
"""

from __future__ import annotations

import asyncio
import logging
import os
import re
import secrets
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path

from quorum.knowledge.catalog import Catalog, Column, Table, Withheld
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.verified import KnowledgeBase
from quorum.tools.databases.base import Connector
from quorum.tools.masking import MASK

KEY = "mask.key"
_TAG = re.compile(r"#([\w-]+)")
_LISTED = re.compile(r"(?is)\b(enum|set)\W.*")
_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Rights:
    """The rules of a session, and the folder of the key of its pseudonyms."""

    show: tuple[str, ...]
    hide: tuple[str, ...]
    mask: tuple[str, ...]
    home: Path

    async def seen(self, catalog: Catalog, connector: Connector) -> Catalog:  # noqa: ARG002
        """Return the catalog as far as the rules show it; what is withheld of it already stays so.

        Raises:
            ConfigurationError: No table is left, or the key cannot be kept.
        """
        return await asyncio.to_thread(self._applied, catalog)

    def _applied(self, catalog: Catalog) -> Catalog:
        unused = {*self.show, *self.hide, *self.mask}

        def fits(rules: Iterable[str], names: list[str], *comments: str) -> bool:
            tags = {f"tag:{tag}" for comment in comments for tag in _TAG.findall(comment.casefold())}
            found = [rule for rule in rules if _fits(rule.casefold(), names, tags)]
            unused.difference_update(found)
            return bool(found)

        tables, hidden, columns = list[Table](), list[Table](), set[tuple[str, str]]()
        for table in catalog.tables:
            names = _names(table, catalog.name)
            out = fits(self.hide, names, table.description)
            seen = not self.show or fits(self.show, names, table.description)
            (tables if seen and not out else hidden).append(table)
            for column in table.columns if seen and not out else ():
                paths = [column.name, *(f"{column.name}.{each.path}" for each in column.fields)]
                own = [path.casefold() for path in paths]
                own += [f"{name}.{path}" for name in names for path in own]
                if fits(self.mask, own, column.description, table.description):
                    columns.add((table.full_name, column.name))
        before = catalog.withheld or Withheld(key=_key(self.home))
        if not tables:
            raise ConfigurationError(
                f"The rights leave no table of {catalog.name} to be seen.",
                hint="Look at `show` and `hide` in quorum.toml, and at the key's schemas.",
            )
        if unused and catalog.withheld is None:
            rules = ", ".join(sorted(unused))
            logging.getLogger(__name__).warning(f"Rules that fit nothing in {catalog.name}: {rules}.")
        own_names = {name for table in tables for name in _names(table, catalog.name)}
        gone = {name for table in hidden for name in _names(table, catalog.name)} - own_names
        withheld = replace(
            before, tables=before.tables | frozenset(gone), columns=before.columns | frozenset(columns)
        )
        return replace(
            catalog,
            tables=tuple(_shown(table, withheld, {each.full_name for each in tables}) for table in tables),
            notes=tuple(note for note in catalog.notes if not withheld.named(note)),
            left_out=tuple(note for note in catalog.left_out if not withheld.named(note)),
            filtered=tuple(name for name in catalog.filtered if not withheld.named(name)),
            withheld=withheld,
        )


def _fits(rule: str, names: list[str], tags: set[str]) -> bool:
    return rule in tags if rule.startswith("tag:") else any(fnmatchcase(name, rule) for name in names)


def _names(table: Table, title: str) -> list[str]:
    """Return a table's name with more and more of what it is in, in lower case, its full name last."""
    schema, database = table.schema or "main", table.database or title
    names = [table.name, f"{schema}.{table.name}", f"{database}.{schema}.{table.name}"]
    names += [f"{database}.{table.name}", table.full_name]
    return [name.casefold() for name in names]


def _shown(table: Table, withheld: Withheld, seen: set[str]) -> Table:
    """Return a table without what was read of masked columns and what refers to hidden tables."""
    columns = []
    for column in table.columns:
        if (table.full_name, column.name) in withheld.columns:
            kind = _LISTED.sub(r"\1", column.type)
            fields = tuple(each for each in column.fields if not each.inferred)
            columns.append(Column(column.name, kind, column.description, (), fields, column.nullable))
        elif (profile := column.profile) and profile.keys:
            keys = [key for key in profile.keys if key.table in seen]
            keys = [key for key in keys if (key.table, key.column) not in withheld.columns]
            columns.append(replace(column, profile=replace(profile, keys=tuple(keys))))
        else:
            columns.append(column)
    columns = [replace(each, description=without(each.description, withheld)) for each in columns]
    return replace(
        table,
        columns=tuple(columns),
        description=without(table.description, withheld),
        foreign_keys=tuple(key for key in table.foreign_keys if key.ref_table in seen),
        metrics=tuple(each for each in table.metrics if not withheld.named(repr(each))),
    )


def without(text: str, withheld: Withheld) -> str:
    """Return a text without the names of hidden tables."""
    for name in sorted(withheld.named(text), key=len, reverse=True):
        text = re.sub(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", MASK, text)
    return text


def seen_documents(documents: Documents | None, withheld: Withheld | None) -> Documents | None:
    """Return documents without the paragraphs that name a hidden table, and the files that are called so."""
    if documents is None or withheld is None or not withheld.tables:
        return documents
    texts = {}
    for name, text in documents.texts.items():
        if not withheld.named(name):
            parts = (part for part in _PARAGRAPH.split(text) if not withheld.named(part))
            texts[name] = "\n\n".join(parts)
    notes = [note for note in documents.notes if not withheld.named(note)]
    return Documents.of(texts, notes=notes, own=documents.own)


def seen_knowledge(known: KnowledgeBase, withheld: Withheld | None) -> KnowledgeBase:
    """Return a knowledge base without what names a hidden table."""
    if withheld is None or not withheld.tables:
        return known
    pairs = tuple(pair for pair in known.pairs if not withheld.named(f"{pair.file} {pair.as_text()}"))
    texts = {name: text for name, text in known.texts.items() if not withheld.named(f"{name} {text}")}
    problems = [problem for problem in known.problems if not withheld.named(problem)]
    return replace(known, pairs=pairs, texts=texts, problems=problems)


def _key(home: Path) -> bytes:
    """Return the key in a folder; make one, for its owner alone, where there is none.

    Raises:
        ConfigurationError: It cannot be read or written.
    """
    path = home / KEY
    try:
        if not path.exists():
            home.mkdir(parents=True, exist_ok=True)
            part = path.with_name(f"{KEY}.{os.getpid()}.{secrets.token_hex(4)}")
            part.touch(mode=0o600)
            part.write_bytes(secrets.token_bytes(32))
            with suppress(FileExistsError):  # another process was faster
                os.link(part, path)
            part.unlink()
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"The key of masks {path} cannot be kept: {error.strerror}.") from error
