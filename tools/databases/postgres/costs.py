"""What a query would read of PostgreSQL's tables, by the planner's own plan, which runs nothing.

A plan names what it scans. A table that is scanned counts with all its pages, those of its long values too;
of an index scan count as many pages as the planner's costs can stand for, and no more than table and indexes
have. What is scanned again and again counts each time if it is larger than what the server keeps in memory.
Where a plan hides what is read (a foreign table, code of the database's own), the bytes are not told.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from quorum.tools.databases.postgres.code import FIRST_OWN
from quorum.tools.databases.scans import Hidden, repeated
from quorum.tools.query import Estimate

EXPLAIN: Final = "EXPLAIN (VERBOSE, FORMAT JSON) "
INSPECTS: Final = re.compile(r"\s*(?:EXPLAIN|SHOW)\b", re.IGNORECASE)
RUNS: Final = re.compile(r"\bANALY[SZ]E\b", re.IGNORECASE)
FEW_ROWS: Final = 1000
"""A LIMIT up to this is believed to cut a scan; of a larger one the planner may have had to guess."""
LEAST_BYTES: Final = 2**20
"""Read of a table at least by a scan that a LIMIT cuts."""
SYMBOL: Final = r"[-+*/<>=~!@#%^&|`?]"
ITERATIONS: Final = 10
"""Rounds of a recursive query, as the planner assumes."""

WHOLE: Final = ("Seq Scan", "Sample Scan")
BY_INDEX: Final = ("Index Scan", "Index Only Scan", "Bitmap Heap Scan", "Tid Scan", "Tid Range Scan")
NO_TABLE: Final = (
    *("Bitmap Index Scan", "CTE Scan", "WorkTable Scan", "Subquery Scan", "Function Scan", "Values Scan"),
    *("Table Function Scan", "Named Tuplestore Scan"),
)
STREAMS: Final = ("Limit", "Result", "Subquery Scan", "Append", "Gather", "ProjectSet")
"""Nodes that read no more than is asked of them, as long as they drop no rows."""

FACTS: Final = """
    SELECT 'size' AS kind, n.nspname::text AS home, c.relname::text AS name,
        pg_relation_size(c.oid) + coalesce(pg_relation_size(nullif(c.reltoastrelid, 0)), 0) AS bytes,
        pg_total_relation_size(c.oid) AS whole, greatest(c.reltuples, 0)::float8 AS rows
    FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE c.relkind IN ('r', 'm', 't', 'p') AND (n.nspname, c.relname) IN ({tables})
    UNION ALL
    SELECT 'setting', '', name, (CASE unit WHEN '8kB' THEN 8192 ELSE 1 END * setting::float8)::bigint, 0,
        setting::float8
    FROM pg_settings WHERE name IN ('block_size', 'seq_page_cost', 'random_page_cost', 'effective_cache_size')
"""
OWN_CODE: Final = f"""
    WITH code AS (
        SELECT p.oid, p.proname::text AS name FROM pg_proc p JOIN pg_language l ON l.oid = p.prolang
        WHERE p.oid >= {FIRST_OWN} AND (l.lanname NOT IN ('c', 'internal') OR p.prokind = 'a')
        AND NOT EXISTS (
            SELECT FROM pg_depend e
            WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'
        )
    )
    SELECT 'function' AS kind, name FROM code
    UNION SELECT 'operator', o.oprname::text FROM pg_operator o JOIN code ON code.oid = o.oprcode
    UNION SELECT 'cast', t.typname::text FROM pg_cast k JOIN code ON code.oid = k.castfunc
    JOIN pg_type t ON t.oid = k.casttarget
"""
"""What a plan's expressions may call that reads whatever it likes; code that is inlined is in the plan."""

Plan = Mapping[str, Any]


@dataclass(frozen=True)
class Facts:
    """What the server says of the tables that a plan scans: bytes, bytes with indexes, rows, by schema and
    name; and of its own."""

    sizes: Mapping[tuple[str, str], tuple[int, int, float]]
    block: int = 8192
    page_cost: float = 1.0
    cache: int = 4 * 2**30

    @classmethod
    def of(cls, rows: list[dict[str, Any]]) -> Facts:
        sizes = {
            (row["home"], row["name"]): (row["bytes"], row["whole"], row["rows"])
            for row in rows
            if row["kind"] == "size" and row["bytes"] is not None
        }
        settings = {row["name"]: row for row in rows if row["kind"] == "setting"}
        costs = [settings[name]["rows"] for name in ("seq_page_cost", "random_page_cost") if name in settings]
        return cls(
            sizes,
            block=settings["block_size"]["bytes"],
            page_cost=min(costs, default=1.0),
            cache=settings["effective_cache_size"]["bytes"],
        )


def plan_of(text: str) -> Plan:
    """The root of a plan as the server tells it."""
    plan: Plan = json.loads(text)[0]["Plan"]
    return plan


def tables_of(plan: Plan) -> list[tuple[str, str]]:
    """Schemas and names of the tables that a plan scans."""
    found = (
        (node.get("Schema", ""), node["Relation Name"]) for node in _nodes(plan) if "Relation Name" in node
    )
    return sorted(set(found))


def facts_query(tables: list[tuple[str, str]]) -> str:
    """The query for the facts about tables."""
    named = ", ".join(f"({_text(home)}, {_text(name)})" for home, name in tables) or "('', '')"
    return FACTS.format(tables=named)


def estimate_of(plan: Plan, facts: Facts, own: list[dict[str, Any]]) -> Estimate:
    """What a plan reads.

    Args:
        own: Rows of ``OWN_CODE``.
    """
    rows = math.ceil(plan.get("Plan Rows", 0))
    if called := _called(plan, own):
        return Estimate(rows=rows, unknown=f"it calls {called}, code of the database's own")
    try:
        return Estimate(bytes=math.ceil(_read(plan, facts, _Around())), rows=rows)
    except Hidden as hidden:
        return Estimate(rows=rows, unknown=str(hidden))


@dataclass(frozen=True)
class _Around:
    """What is above a node of a plan.

    Attributes:
        loops: How often it runs.
        workers: Processes that run it beside each other.
        part: Share of its rows that is asked for, if a LIMIT says so.
    """

    loops: float = 1.0
    workers: int = 1
    part: float = 1.0


def _read(node: Plan, facts: Facts, around: _Around) -> float:
    """Bytes that a node and those below it read."""
    below = sum(_read(child, facts, _below(node, child, facts, around)) for child in node.get("Plans", ()))
    kind = node["Node Type"]
    opaque = kind.endswith("Scan") and "Relation Name" not in node and not below and kind not in NO_TABLE
    if opaque or kind == "Foreign Scan":
        raise Hidden(f"its plan has a {kind}")
    if "Relation Name" not in node:
        return below
    place = node.get("Schema", ""), node["Relation Name"]
    if place not in facts.sizes:
        raise Hidden(f"the size of {place[1]} is not known")
    size, whole, _ = facts.sizes[place]
    parallel = bool(node.get("Parallel Aware"))
    loops = around.loops * (1 if parallel else around.workers)
    if kind in BY_INDEX and facts.page_cost > 0:
        pages = (
            around.part * float(node["Total Cost"]) / facts.page_cost * (around.workers if parallel else 1)
        )
        return below + repeated(whole, pages * facts.block, loops, facts.cache)
    if kind in BY_INDEX:
        size = whole
    once = min(size, max(LEAST_BYTES, around.part * size)) if kind == "Seq Scan" else size
    return below + repeated(size, once, loops, facts.cache)


def _below(node: Plan, child: Plan, facts: Facts, around: _Around) -> _Around:
    """What is above a child."""
    kind, role = node["Node Type"], child.get("Parent Relationship")
    loops, workers = around.loops, around.workers
    if role == "SubPlan" and f"hashed {child.get('Subplan Name')}" not in _words(node):
        loops *= _rows_into(node, facts)
    elif role == "Inner" and kind == "Nested Loop" and child["Node Type"] != "Materialize":
        loops *= max(1.0, float(_outer(node).get("Plan Rows", 1)))
    elif kind == "Recursive Union" and role == "Inner":
        loops *= ITERATIONS
    elif kind in ("Gather", "Gather Merge"):
        workers *= int(node.get("Workers Planned", 0)) + 1
    return replace(around, loops=loops, workers=workers, part=_part(node, child, around.part))


def _part(node: Plan, child: Plan, part: float) -> float:
    """The share of a child's rows that is asked for."""
    if node["Node Type"] == "Limit" and child.get("Parent Relationship") == "Outer":
        start, end = float(child["Startup Cost"]), float(child["Total Cost"])
        if node["Plan Rows"] <= FEW_ROWS and end > start:
            part *= min(1.0, max(0.0, float(node["Total Cost"]) - start) / (end - start))
    drops = "Filter" in node or "One-Time Filter" in node
    return part if node["Node Type"] in STREAMS and not drops and "Filter" not in child else 1.0


def _rows_into(node: Plan, facts: Facts) -> float:
    """Rows that a node looks at."""
    fed = [child for child in node.get("Plans", ()) if child.get("Parent Relationship") in ("Outer", "Inner")]
    known = facts.sizes.get((node.get("Schema", ""), node.get("Relation Name", "")))
    rows = [float(child.get("Plan Rows", 1)) for child in fed] + ([known[2]] if known else [])
    return max([1.0, float(node.get("Plan Rows", 1)), *rows])


def _outer(node: Plan) -> Plan:
    outer: Plan = next(child for child in node["Plans"] if child.get("Parent Relationship") == "Outer")
    return outer


def _called(plan: Plan, own: list[dict[str, Any]]) -> str:
    """A function of the database's own that an expression of the plan calls; empty if none does."""
    if not own:
        return ""
    words = "\n".join(_words(node) for node in _nodes(plan))
    for row in own:
        name = re.escape(row["name"])
        quoted = re.escape(row["name"].replace('"', '""'))
        looks = {
            "function": rf'(?<!\w){name}\(|"{quoted}"\(',
            "operator": rf"(?<!{SYMBOL}){name}(?!{SYMBOL})",
            "cast": rf'::(?:\w+\.|"[^"]*"\.)?(?:{name}\b|"{quoted}")',
        }
        if re.search(looks[row["kind"]], words):
            return str(row["name"])
    return ""


def _words(node: Plan) -> str:
    """The expressions of a node."""
    texts = (value if isinstance(value, list) else [value] for name, value in node.items() if name != "Plans")
    return "\n".join(text for each in texts for text in each if isinstance(text, str))


def _nodes(node: Plan) -> Iterator[Plan]:
    yield node
    for child in node.get("Plans", ()):
        yield from _nodes(child)


def _text(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"
