"""A query being written: what it needs so far, and how that is put into SQL."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from sqlglot import exp, tokenize

from quorum.knowledge.catalog import Table
from quorum.tools.offline.schema import Place, Schema
from quorum.tools.writing import write


@dataclass
class Draft:
    """The parts of one SELECT, as SQL text in which ``ref`` wrote the columns.

    ``items`` are shown in their order in the question; each has the table that it describes, or None if it
    is computed over rows.
    """

    schema: Schema
    main: Table
    items: dict[int, tuple[str, Table | None]] = field(default_factory=dict)
    where: list[str] = field(default_factory=list)
    having: list[str] = field(default_factory=list)
    order: list[str] = field(default_factory=list)
    limit: str = ""
    distinct: bool = False
    join: str = "JOIN"
    used: list[Table] = field(default_factory=list)

    def ref(self, place: Place) -> str:
        """``table.column`` in SQL; the table joins the FROM clause."""
        self.used.append(place[0])
        return f"{self.quote(place[0].name)}.{self.quote(place[1].name)}"

    def quote(self, name: str) -> str:
        """An identifier as it must stand in SQL: bare where that is safe."""
        plain = name.isidentifier() and name.isascii() and name.islower()
        kinds = [token.token_type.name for token in tokenize(name, read=self.schema.dialect)] if plain else []
        return write(exp.to_identifier(name, quoted=kinds != ["VAR"]), self.schema.dialect)

    def sql(self) -> str:
        """The query, one clause a line."""
        items = [item for _, item in sorted(self.items.items())]
        plain = [(table, text) for text, table in items if table]
        computed = re.search(r"\b[A-Z]{3,5}\(", " ".join(self.having + self.order))
        grouped = plain and (len(plain) < len(items) or computed)
        labelled = [table for table, text in plain if text == self.ref(self.schema.label(table))]
        keys = [self.ref((table, key)) for table in labelled if (key := self.schema.key(table))]
        distinct = "DISTINCT " if self.distinct and plain and not grouped else ""
        clauses = {
            "SELECT": distinct + ", ".join(dict.fromkeys(text for text, _ in items)),
            "FROM": self._sources(),
            "WHERE": " AND ".join(dict.fromkeys(self.where)),
            "GROUP BY": ", ".join(dict.fromkeys(keys + [text for _, text in plain])) if grouped else "",
            "HAVING": " AND ".join(self.having),
            "ORDER BY": ", ".join(dict.fromkeys(self.order)),
            "LIMIT": self.limit,
        }
        return "\n".join(f"{keyword} {text}" for keyword, text in clauses.items() if text)

    def _sources(self) -> str:
        """What stands after FROM: the tables, joined along the shortest paths of keys."""
        start, *others = self.used or [self.main]
        paths = self.schema.paths(start)
        joins = dict.fromkeys(join for table in others for join in paths[table.full_name])
        joined = [f"{self.join} {self.source(j[2])} ON {self.ref(j[:2])} = {self.ref(j[2:])}" for j in joins]
        return "\n".join([self.source(start), *joined])

    def source(self, table: Table) -> str:
        """A table, or the union of its shards."""
        alias, members = self.quote(table.name), self.schema.members[table.full_name]
        full = [".".join(self.quote(p) for p in (m.database, m.schema, m.name) if p) for m in members]
        union = "\n  UNION ALL ".join(f"SELECT * FROM {name}" for name in full)
        source = f"(\n  {union}\n)" if len(members) > 1 else full[0]
        return source if source == alias else f"{source} AS {alias}"
