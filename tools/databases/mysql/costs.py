"""What a query would read of MySQL's or MariaDB's tables, by the optimiser's plan, which runs nothing.

The two servers' plans have other shapes, and are read alike: a table that is scanned counts whole, or its
partitions do; rows that are found by an index count with their width, or with a page each where they lie
apart. A plan names tables by their aliases, so the server's own rewriting of the query, a note of EXPLAIN's,
says whose they are, in views too. What is read again and again counts each time if it is larger
than what the server keeps in memory. Where code of the database's own is called, or a table lies elsewhere,
the bytes are not told.
"""

from __future__ import annotations

import math
import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from quorum.tools.databases.scans import Hidden, repeated
from quorum.tools.query import Estimate
from quorum.tools.sql import SyntaxProblem, parse_one_statement

INSPECTS: Final = re.compile(r"\s*(?:EXPLAIN|SHOW|DESC|DESCRIBE)\b", re.IGNORECASE)
RUNS: Final = re.compile(r"\bANALY[SZ]E\b", re.IGNORECASE)
MAY_NOT_SEE: Final = ("1345", "1142", "1143")
"""Numbers of errors of EXPLAIN alone: what is behind a view is not for everybody to see."""
PAGE: Final = 16 * 2**10
ITERATIONS: Final = 10
"""Rounds of a recursive query that are counted."""
BUFFERED: Final = 1000
"""Rows for which a table is scanned at once where a join has a buffer, at least."""
WRAPPERS: Final = (
    *("block-nl-join", "read_sorted_file", "filesort", "temporary_table", "duplicates_removal"),
    *("range-checked-for-each-record", "ordering_operation", "grouping_operation", "buffer_result"),
    *("windowing", "window_functions_computation"),
)
"""What a plan may have around a join, or a table of one."""
LOCAL: Final = ("innodb", "myisam", "aria", "memory", "archive", "csv", "rocksdb", "tokudb", "columnstore")
"""Engines whose tables lie on the server, with their true sizes."""

FACTS: Final = """
    SELECT t.table_schema AS home, t.table_name AS name, lower(coalesce(t.engine, t.table_type)) AS engine,
        p.partition_name AS part, p.data_length AS data, p.index_length AS indexes, p.table_rows AS n
    FROM information_schema.tables t LEFT JOIN information_schema.partitions p
    ON p.table_schema = {home} AND p.table_name = {name}
    WHERE t.table_schema = {home} AND t.table_name = {name}
"""
VIEW: Final = """
    SELECT view_definition FROM information_schema.views WHERE table_schema = {home} AND table_name = {name}
"""
AGAIN: Final = re.compile("DEPENDENT|UNCACHEABLE|LATERAL")
"""Kinds of SELECTs that run anew for each row around them."""
_NAME = r"`(?P<{}>(?:[^`]|``)+)`"
_NAMES = re.compile(
    rf"'(?:[^'\\]|\\.|'')*'|\"(?:[^\"\\]|\\.|\"\")*\"|(?:{_NAME.format('home')}\.)?{_NAME.format('name')}"
    rf"(?P<more>\.`(?:[^`]|``)+`)*(?P<call>\()?(?:\s+{_NAME.format('alias')}(?!\.))?",
    re.DOTALL,
)

Plan = Mapping[str, Any]
Place = tuple[str, str]


NONE: Final[frozenset[Place]] = frozenset()


@dataclass(frozen=True)
class Named:
    """What a rewritten query names.

    Attributes:
        tables: Places that may be tables or views, by the names that a plan has for them.
        calls: Functions of the database's own.
    """

    tables: Mapping[str, frozenset[Place]]
    calls: tuple[str, ...]

    @classmethod
    def of(cls, texts: Iterable[str]) -> Named:
        """Those of texts as the server writes them, all names in backticks."""
        tables, calls = defaultdict[str, set[Place]](set), list[str]()
        for text in texts:
            for found in _NAMES.finditer(text):
                name, home, alias = (_bare(found[part]) for part in ("name", "home", "alias"))
                if found["call"] and name:
                    calls.append(name)
                elif home and name and not found["more"]:
                    tables[alias or name].add((home, name))
        return cls({name: frozenset(places) for name, places in tables.items()}, tuple(calls))

    def __or__(self, other: Named) -> Named:
        names = self.tables.keys() | other.tables.keys()
        both = {name: self.tables.get(name, NONE) | other.tables.get(name, NONE) for name in names}
        return Named(both, self.calls + other.calls)

    @property
    def places(self) -> list[Place]:
        return sorted(set().union(*self.tables.values())) if self.tables else []


@dataclass(frozen=True)
class Size:
    """A table's bytes, those of its indexes, and its rows."""

    data: int
    indexes: int
    rows: int

    @property
    def width(self) -> float:
        return self.data / max(1, self.rows)

    def __add__(self, other: Size) -> Size:
        return Size(self.data + other.data, self.indexes + other.indexes, self.rows + other.rows)


@dataclass(frozen=True)
class Facts:
    """What the server says of its tables: sizes by place and partition.

    Attributes:
        cache: Bytes that it keeps in memory.
        dependent: Numbers of the SELECTs that run anew for each row around them.
        few: Rows that are asked for, of a query that stops after them; None for all.
    """

    named: Named
    sizes: Mapping[Place, Mapping[str, Size]]
    cache: float
    dependent: Collection[int] = ()
    few: int | None = None


def sizes_of(rows: Iterable[Mapping[str, Any]]) -> dict[Place, dict[str, Size]]:
    """Sizes of tables by the rows of ``FACTS``.

    Raises:
        Hidden: A table lies elsewhere.
    """
    found = defaultdict[Place, dict[str, Size]](dict)
    for row in rows:
        if row["engine"] not in LOCAL and not row["engine"].endswith("view"):
            raise Hidden(f"{row['name']} is a table of the engine {row['engine']}")
        if row["data"] is not None:
            size = Size(int(row["data"]), int(row["indexes"] or 0), int(row["n"] or 0))
            found[row["home"], row["name"]][row["part"] or ""] = size
    return dict(found)


def facts_query(place: Place) -> str:
    """The query for the sizes of a table and its partitions."""
    return FACTS.format(home=_text(place[0]), name=_text(place[1]))


def view_query(place: Place) -> str:
    """The query for the definition of a view."""
    return VIEW.format(home=_text(place[0]), name=_text(place[1]))


def few_rows(sql: str) -> int | None:
    """Rows after which a plain look at one table stops; None for any other query."""
    from sqlglot import exp

    try:
        tree = parse_one_statement(sql, "mysql")
    except SyntaxProblem:
        return None
    limit, offset = tree.args.get("limit"), tree.args.get("offset")
    plain = isinstance(tree, exp.Select) and isinstance(limit, exp.Limit)
    other = ("joins", "where", "group", "having", "order", "distinct", "windows", "with_", "laterals")
    if not plain or any(tree.args.get(name) for name in other):
        return None
    if tree.find(exp.AggFunc, exp.Window, exp.Subquery):
        return None
    counts = [part.expression for part in (limit, offset) if part is not None]
    if not all(isinstance(part, exp.Literal) and part.is_int for part in counts):
        return None
    return sum(int(part.this) for part in counts)


def estimate_of(plan: Plan, facts: Facts) -> Estimate:
    """What a plan reads."""
    if facts.named.calls:
        return Estimate(unknown=f"it calls {facts.named.calls[0]}, code of the database's own")
    if "query_block" not in plan:
        return Estimate(unknown="its plan has a form that is not known")
    if not _plain(plan["query_block"]):
        facts = replace(facts, few=None)
    try:
        return Estimate(bytes=math.ceil(_read(plan, facts, 1.0)))
    except Hidden as hidden:
        return Estimate(unknown=str(hidden))


def _plain(block: Plan) -> bool:
    """Whether a query only scans one table, and gives its rows as they come."""
    tables = block.get("nested_loop") or [{"table": block.get("table")}]
    usual = {"select_id", "cost", "cost_info", "nested_loop", "table"}
    alone = len(tables) == 1 and isinstance(tables[0].get("table"), dict)
    return block.keys() <= usual and alone and not any(map(_is_made, tables[0]["table"]))


def _is_made(part: str) -> bool:
    """Whether a table of which a plan has such a part was made by the query."""
    return part.startswith("materialized")


def _read(node: Any, facts: Facts, loops: float) -> float:
    """Bytes that a part of a plan reads, which runs so many times."""
    if isinstance(node, list):
        return sum(_read(each, facts, loops) for each in node)
    if not isinstance(node, dict):
        return 0.0
    if node.get("message") == "Select tables optimized away":  # read off the end of an index
        return PAGE * loops
    total, rows = _scanned(node, facts, loops), loops
    for item in node.get("nested_loop") or ():
        total += _read(item, facts, rows)
        rows = _rows_after(item, rows)
    rows = _rows_of({"table": node} if "access_type" in node else node, loops)
    for name, part in node.items():
        if name == "nested_loop":
            continue
        for each in part if isinstance(part, list) else [part]:
            total += _read(each, facts, _loops_of(name, each, node, facts, loops, rows))
    return total


def _loops_of(name: str, part: Any, node: Plan, facts: Facts, loops: float, rows: float) -> float:
    """How often a part of a node runs, which gives ``rows``."""
    if "subqueries" in name or name.startswith("materialized"):
        return rows if _depends(part, facts) else 1.0
    if name == "recursive_union":
        return loops * ITERATIONS
    buffered = name == "table" and "buffer_type" in node
    return 1 + loops / BUFFERED if buffered else loops


def _depends(part: Any, facts: Facts) -> bool:
    """Whether a subquery runs anew for each row around it."""
    if not isinstance(part, dict):
        return False
    inner = part.get("expression_cache") or part
    block = inner.get("query_block") or {}
    parts = (block.get("union_result") or {}).get("query_specifications") or [inner]
    numbers = [(each.get("query_block") or {}).get("select_id") for each in parts]
    return bool(part.get("dependent")) or any(number in facts.dependent for number in numbers)


def _rows_of(node: Plan, before: float) -> float:
    """Rows of a join, inside whatever is done with them."""
    if "nested_loop" in node:
        for item in node["nested_loop"]:
            before = _rows_after(item, before)
        return before
    if isinstance(node.get("table"), dict):
        return _rows_after(node, before)
    inside = (node[name] for name in WRAPPERS if isinstance(node.get(name), dict))
    return max((_rows_of(part, before) for part in inside), default=before)


def _rows_after(item: Plan, before: float) -> float:
    """Rows of a join after one more of its tables."""
    table = _table_in(item)
    if table is None:
        return before
    if (cumulated := table.get("rows_produced_per_join")) is not None:  # MySQL
        return max(1.0, float(cumulated))
    kept = float(table.get("filtered") or 100) / 100
    return max(1.0, before * float(table.get("rows") or 1) * kept)


def _table_in(item: Plan) -> Plan | None:
    """The table of a join's part, inside whatever is done with it."""
    if isinstance(table := item.get("table"), dict):
        return table
    inside = (_table_in(item[name]) for name in WRAPPERS if isinstance(item.get(name), dict))
    return next(filter(None, inside), None)


def _scanned(table: Plan, facts: Facts, loops: float) -> float:
    """Bytes that are read of a table itself; 0 for what is none, or was made by the query."""
    name, access = table.get("table_name"), table.get("access_type")
    made = table.get("recursive") or any(map(_is_made, table))
    if not isinstance(name, str) or not isinstance(access, str) or name.startswith("<") or made:
        return 0.0
    size = _size(name, table.get("partitions"), facts)
    if table.get("using_join_buffer"):
        loops = 1 + loops / BUFFERED
    return repeated(size.data + size.indexes, _once(table, access, size, facts), loops, facts.cache)


def _once(table: Plan, access: str, size: Size, facts: Facts) -> float:
    """Bytes of one scan."""
    rows = float(table.get("rows_examined_per_scan") or table.get("rows") or 0)
    primary, covered = table.get("key") == "PRIMARY", bool(table.get("using_index"))
    whole_rows = "attached_condition" not in table
    if access == "ALL":
        few = facts.few if whole_rows else None
        return size.data if few is None else min(size.data, PAGE + few * size.width)
    if access == "index":
        whole = size.indexes if covered and not primary else size.data + (0 if primary else size.indexes)
        cut = whole_rows and rows < size.rows / 2  # by a LIMIT, in the index's order
        return min(whole, PAGE + rows * PAGE) if cut else whole
    return PAGE + rows * (size.width if primary or covered else PAGE)


def _size(name: str, partitions: Any, facts: Facts) -> Size:
    """The largest table that may bear a name in a plan.

    Raises:
        Hidden: None is known.
    """
    found = list[Size]()
    for place in facts.named.tables.get(name, ()):
        parts = facts.sizes.get(place)
        if not parts:
            continue
        chosen = [parts[each] for each in partitions or () if each in parts]
        every = chosen if chosen and len(chosen) == len(partitions) else list(parts.values())
        found.append(sum(every, Size(0, 0, 0)))
    if not found:
        raise Hidden(f"it is not known what {name} is")
    return max(found, key=lambda size: size.data)


def _text(name: str) -> str:
    return "'" + name.replace("\\", "\\\\").replace("'", "''") + "'"


def _bare(quoted: str | None) -> str:
    return (quoted or "").replace("``", "`")
