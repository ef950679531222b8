"""Rights: rules that hide tables, and mask columns in all that leaves for a model, a trace or a page.

A rule is a pattern (``*``, ``?``, ``[abc]``; case does not count) over the end of a dotted name:
``salaries``, ``hr.*``, ``shop.hr.salaries`` for tables, ``ssn``, ``customers.email``, ``hr.*.ssn`` for
columns. ``tag:pii`` fits what has the word ``#pii`` in its comment. A rule may name its database:
``shop:customers.email``, ``shop:tag:pii``, or any that it fits: ``*:*.ssn``.

The catalog has no hidden table, and of a masked column its name, type, comment and keys. So nothing above it
can show more; guard and lint refuse what the catalog lacks, the engine's own tables among them. Values reach
us in results and in errors of engines, where ``masked`` replaces them.
"""

from __future__ import annotations

import asyncio
import hmac
import json
import logging
import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlglot import exp

from quorum.knowledge.atomic import write_once
from quorum.knowledge.catalog import Catalog, Column, Table, Withheld
from quorum.knowledge.documents.search import Documents
from quorum.knowledge.errors import ConfigurationError
from quorum.knowledge.verified import KnowledgeBase
from quorum.tools.databases.base import Connector
from quorum.tools.databases.introspection import listed
from quorum.tools.guard.vocabulary import words
from quorum.tools.lint.lineage import Lineage, Masks
from quorum.tools.lint.tables import CaseRules, Tables
from quorum.tools.masking import MASK
from quorum.tools.query import Limits, QueryError, QueryResult
from quorum.tools.sql import SyntaxProblem, dialect_name, parse_one_statement

if TYPE_CHECKING:
    import pyarrow as pa

KEY = "mask.key"
_RULE = re.compile(r"(?:(?!tag:)([^:]*):)?(.*)", re.DOTALL)
_TAG = re.compile(r"#([\w-]+)")
_LISTED = re.compile(r"(?is)\b(enum|set)\W.*")
_VIEWS = {
    "": "SELECT table_schema AS place, table_name AS name, view_definition AS text "
    "FROM information_schema.views",
    "sqlite": "SELECT '' AS place, name, sql AS text FROM sqlite_master WHERE type = 'view'",
    "duckdb": "SELECT schema_name AS place, view_name AS name, sql AS text FROM duckdb_views()",
    "postgres": "SELECT schemaname AS place, viewname AS name, definition AS text FROM pg_catalog.pg_views "
    "UNION ALL SELECT schemaname, matviewname, definition FROM pg_catalog.pg_matviews",
}
"""Queries for the SQL of views, by dialect."""
_BLANK = re.compile(r"\s+")
_WORD = re.compile(r"[^\W\d]\w{2,}")
_PIECE = re.compile(r"\w+")
_PARAGRAPH = re.compile(r"\n\s*\n")


@dataclass(frozen=True)
class Rights:
    """The rules of a session, and the folder of the key of its pseudonyms."""

    show: tuple[str, ...]
    hide: tuple[str, ...]
    mask: tuple[str, ...]
    home: Path

    async def seen(self, catalog: Catalog, connector: Connector) -> Catalog:
        """Return the catalog as far as the rules show it.

        Raises:
            ConfigurationError: No table is left, a rule fits nothing, or the key cannot be kept.
        """
        return await asyncio.to_thread(self._applied, catalog, await _definitions(catalog, connector))

    def _applied(self, catalog: Catalog, views: Mapping[str, str]) -> Catalog:
        unused = {*self.hide, *self.mask}

        def fits(rules: Iterable[str], table: Table, paths: list[tuple[str, ...]], *comments: str) -> bool:
            tags = {f"tag:{tag}" for comment in comments for tag in _TAG.findall(comment.casefold())}
            database = _database(table, catalog.name)
            found = [rule for rule in rules if _fits(rule.casefold(), database, paths, tags)]
            unused.difference_update(found)
            return bool(found)

        tables, hidden, columns = list[Table](), list[Table](), set[tuple[str, str]]()
        for table in catalog.tables:
            paths = _paths(table, catalog.name)
            out = fits(self.hide, table, paths, table.description)
            seen = not self.show or fits(self.show, table, paths, table.description)
            (tables if seen and not out else hidden).append(table)
            for column in table.columns:
                inside = [column.name, *(f"{column.name}.{each.path}" for each in column.fields)]
                own = [(*path, name.casefold()) for path in [(), *paths] for name in inside]
                if fits(self.mask, table, own, column.description, table.description):
                    columns.add((table.full_name, column.name))
        _check_used(unused, catalog)
        exact = {rule.casefold() for rule in self.show}
        for view in _through(catalog, views, {table.full_name for table in hidden}, columns):
            if exact.isdisjoint(_names(view, catalog.name)):  # shown by a pattern at most
                tables.remove(view)
                hidden.append(view)
        if not tables:
            raise ConfigurationError(
                f"The rights leave no table of {catalog.name} to be seen.",
                hint="Look at `show` and `hide` in quorum.toml, and at the key's schemas.",
            )
        own_names = {name for table in tables for name in _names(table, catalog.name)}
        gone = {name for table in hidden for name in _names(table, catalog.name)} - own_names
        withheld = Withheld(frozenset(gone), frozenset(columns), _key(self.home))
        notes = [note for note in catalog.notes if not withheld.named(note)]
        pairs = ((table.full_name, column.name) for table in tables for column in table.columns)
        if masked := [".".join(pair) for pair in pairs if pair in columns]:
            what = f"A rule masks the values of {listed(masked)}"
            notes.append(f"{what}: none is shown, queries over them run.")
        return replace(
            catalog,
            tables=tuple(_shown(table, withheld, {each.full_name for each in tables}) for table in tables),
            notes=tuple(notes),
            left_out=tuple(note for note in catalog.left_out if not withheld.named(note)),
            filtered=tuple(name for name in catalog.filtered if not withheld.named(name)),
            withheld=withheld,
        )


async def _definitions(catalog: Catalog, connector: Connector) -> dict[str, str]:
    """Return the SQL of each view by its full name; "" where it cannot be known."""
    views = {table.full_name: table for table in catalog.tables if "view" in table.kind}
    if not views or not connector.live:
        return {}
    answer = await connector.run(_VIEWS.get(connector.dialect, _VIEWS[""]), Limits())
    rows = answer.table.to_pylist() if isinstance(answer, QueryResult) and not connector.several else []
    texts = {(row["place"] or "", row["name"]): row["text"] or "" for row in rows}
    return {name: texts.get((view.schema, view.name), "") for name, view in views.items()}


def _through(
    catalog: Catalog, views: Mapping[str, str], hidden: set[str], masked: set[tuple[str, str]]
) -> list[Table]:
    """Return the views that read hidden tables; add the columns that show masked ones to ``masked``.

    One whose SQL cannot be read may read whatever is withheld.
    """
    tables = Tables(catalog, CaseRules(dialect_name(catalog.dialect)))
    found = dict[str, Table]()
    before = -1
    while before != len(found) + len(masked):  # views may read views
        before = len(found) + len(masked)
        for view in catalog.tables:
            if view.full_name not in views or view.full_name in hidden:
                continue
            try:
                tree = parse_one_statement(views[view.full_name], catalog.dialect)
            except SyntaxProblem:
                found[view.full_name] = view
                continue
            tree = tree.expression if isinstance(tree, exp.Create) else tree
            read = {t.full_name for node in tree.find_all(exp.Table) for t in tables.find(node) or ()}
            if read & (hidden | found.keys()):
                found[view.full_name] = view
            masks = Lineage(tables, frozenset(masked)).masks(tree) if masked else False
            if not isinstance(masks, tuple) or len(masks) != len(view.columns):
                masks = (masks is not False,) * len(view.columns)
            masked |= {(view.full_name, c.name) for c, flag in zip(view.columns, masks, strict=True) if flag}
    return list(found.values())


def _check_used(unused: set[str], catalog: Catalog) -> None:
    """Raise for rules to hide or mask that fit nothing, but those of databases that are not open."""
    databases = {_database(table, catalog.name) for table in catalog.tables}
    places = {rule: _RULE.fullmatch(rule.casefold()) for rule in sorted(unused)}
    if wrong := [rule for rule, found in places.items() if found and found[1] in {None, *databases}]:
        what = f"fit no table or column of {catalog.name}"
        logger = logging.getLogger(__name__)  # what it says is for no caller of a server
        logger.error(f"These rules {what}: {', '.join(wrong)}.")
        raise ConfigurationError(
            f"{len(wrong)} of the rules in `hide` and `mask` {what}.",
            hint="The log names them. A typo would show everything, so nothing is asked. A rule for another "
            "database names it, as `shop:customers.email` does; one that may fit nothing begins with `*:`.",
        )


def _fits(rule: str, database: str, paths: list[tuple[str, ...]], tags: set[str]) -> bool:
    """True if a rule is one of the tags, or its parts fit a path, or the whole of it a name."""
    found = _RULE.fullmatch(rule)
    if found is None or not fnmatchcase(database, found[1] or "*"):
        return False
    if (pattern := found[2]).startswith("tag:"):
        return pattern in tags
    parts = pattern.split(".")
    return any(
        fnmatchcase(path[-1], pattern) or (len(path) == len(parts) and all(map(fnmatchcase, path, parts)))
        for path in paths
    )


def _database(table: Table, title: str) -> str:
    return (table.database or title).casefold()


def _paths(table: Table, title: str) -> list[tuple[str, ...]]:
    """Return a table's name alone and in what it is in, in lower case; SQLite's schema is ``main``."""
    schema, database = (table.schema or "main").casefold(), _database(table, title)
    name = table.name.casefold()
    return [(name,), (schema, name), (database, schema, name), (database, name)]


def _names(table: Table, title: str) -> set[str]:
    return {table.full_name.casefold(), *map(".".join, _paths(table, title))}


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
    )


def without(text: str, withheld: Withheld) -> str:
    """Return a text without the names of hidden tables."""
    for name in sorted(withheld.named(text), key=len, reverse=True):
        text = re.sub(rf"(?i)(?<!\w){re.escape(name)}(?!\w)", MASK, text)
    return text


def seen_documents(documents: Documents, withheld: Withheld) -> Documents:
    """Return documents without the paragraphs that name a hidden table, and the files that are called so."""
    if not withheld.tables:
        return documents
    texts = {}
    for name, text in documents.texts.items():
        if not withheld.named(name):
            parts = (part for part in _PARAGRAPH.split(text) if not withheld.named(part))
            texts[name] = "\n\n".join(parts)
    notes = [note for note in documents.notes if not withheld.named(note)]
    return Documents.of(texts, notes=notes, own=documents.own)


def seen_knowledge(known: KnowledgeBase, withheld: Withheld) -> KnowledgeBase:
    """Return a knowledge base without what names a hidden table."""
    pairs = tuple(pair for pair in known.pairs if not withheld.named(f"{pair.file} {pair.as_text()}"))
    texts = {name: text for name, text in known.texts.items() if not withheld.named(f"{name} {text}")}
    problems = [problem for problem in known.problems if not withheld.named(problem)]
    return replace(known, pairs=pairs, texts=texts, problems=problems)


def withhold(
    outcome: QueryResult | QueryError, sql: str, masks: Masks, catalog: Catalog
) -> QueryResult | QueryError:
    """Return a query's outcome as it may be seen: pseudonyms in masked columns, no value in an error."""
    if isinstance(outcome, QueryResult):
        if masks is False or (masks is not True and not any(masks) and len(masks) == len(outcome.columns)):
            return outcome
        return replace(outcome, table=_masked(outcome.table, sql, masks, catalog), column_types=())
    withheld = catalog.withheld or Withheld()
    if masks is not False:
        return without_values(outcome, sql, withheld)
    near = tuple(each for each in outcome.suggestions if not withheld.named(each))
    return replace(outcome, message=without(outcome.message, withheld), suggestions=near)


def without_values(error: QueryError, sql: str, withheld: Withheld) -> QueryError:
    """Return an engine's error without what may be a value, or the name of a hidden table."""
    return replace(error, message=without(_kept(error.message, sql), withheld), suggestions=(), also=())


def _masked(table: pa.Table, sql: str, masks: Masks, catalog: Catalog) -> pa.Table:
    """Return a result with pseudonyms: equal values get equal ones, NULL stays.

    All of it is masked where its columns are not those that were expected.
    """
    import pyarrow as pa

    from quorum.tools.results.values import plain_column

    key, known = catalog.withheld.key if catalog.withheld else b"", dict[str, str]()

    def pseudonym(value: Any) -> str | None:
        if value is None:
            return None
        if isinstance(value, float):
            value = int(value) if value.is_integer() else f"{value:.9g}"
        text = value if isinstance(value, str) else json.dumps(value, sort_keys=True)
        if text not in known:
            known[text] = MASK + hmac.digest(key, text.encode(errors="surrogatepass"), "sha256").hex()[:6]
        return known[text]

    names, flags = list(table.column_names), (True,) * table.num_columns
    if not isinstance(masks, bool) and len(masks) == table.num_columns:
        flags = masks
    else:  # some engines call columns by the values that they pivot
        written = _BLANK.sub("", sql).casefold()
        own = {column.name for _, column in catalog.columns()}
        names = [
            name if name in own or _BLANK.sub("", name).casefold() in written else str(pseudonym(name))
            for name in names
        ]
    columns = [
        pa.array(map(pseudonym, plain_column(column)), pa.string()) if flag else column
        for column, flag in zip(table.columns, flags, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=names)


def _kept(message: str, sql: str) -> str:
    """Return an engine's message without what may be a value: any word that is neither one of the query, of
    three letters at least, nor of those that errors are made of (``lists/errors.txt``)."""
    known = words("errors") | {*_WORD.findall(sql.casefold())}
    shown: list[str] = []
    for part in message.split():
        plain = part.casefold().strip("\"'`()[]{}.,:;!?<>=")
        if plain not in known and not known.issuperset(_PIECE.findall(plain) or ("?",)):
            part = MASK
        if part != MASK or shown[-1:] != [MASK]:
            shown.append(part)
    return " ".join(shown)


def _key(home: Path) -> bytes:
    """Return the key in a folder; make one, for its owner alone, where there is none.

    Raises:
        ConfigurationError: It cannot be read or written.
    """
    path = home / KEY
    try:
        if not path.exists():
            home.mkdir(parents=True, exist_ok=True)
            write_once(path, secrets.token_bytes(32), private=True)
        return path.read_bytes()
    except OSError as error:
        raise ConfigurationError(f"The key of masks {path} cannot be kept: {error.strerror}.") from error
