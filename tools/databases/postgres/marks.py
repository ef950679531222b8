"""What tells that values of a PostgreSQL table or view may have changed, without reading them.

The server counts rows that were inserted, changed and deleted; a table that was written anew has another
file. Columns, comments, keys, rights and policies need no mark: they are asked each time. Changes are counted
a moment after they happened, ten seconds at most, so that what somebody changed just now may be seen one
reading late. A server that only follows another one counts nothing: there any change of the whole server
counts.
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from typing import Any

from quorum.tools.databases.introspection import Introspection
from quorum.tools.databases.postgres.code import FIRST_OWN

SERVER = """
    SELECT pg_postmaster_start_time()::text AS started,
        (SELECT s.stats_reset FROM pg_stat_database s WHERE s.datname = current_database())::text AS reset,
        CASE WHEN pg_is_in_recovery() THEN pg_last_wal_replay_lsn()::text END AS replayed,
        current_setting('track_counts') = 'on' AS counting,
        (SELECT md5(string_agg((e.enumtypid, e.enumlabel, e.enumsortorder)::text, ',' ORDER BY e.oid))
            FROM pg_enum e) AS labels
"""
"""A label may be another word tomorrow, and no table is changed by that."""
TABLES = f"""
    WITH RECURSIVE parts AS (
        SELECT c.oid AS whole, c.oid AS part FROM pg_class c
        WHERE c.relkind IN ('r', 'p', 'm') AND c.oid >= {FIRST_OWN}
        UNION
        SELECT parts.whole, i.inhrelid FROM parts JOIN pg_inherits i ON i.inhparent = parts.part
    )
    SELECT parts.whole::bigint AS oid, md5(string_agg((
            c.oid, c.relfilenode, c.relpages, c.reltuples, c.relowner, c.relacl,
            pg_stat_get_tuples_inserted(c.oid), pg_stat_get_tuples_updated(c.oid),
            pg_stat_get_tuples_deleted(c.oid)
        )::text, ',' ORDER BY c.oid)) AS mark
    FROM parts JOIN pg_class c ON c.oid = parts.part
    GROUP BY parts.whole HAVING bool_and(c.relkind IN ('r', 'p', 'm'))
"""
VIEWS = rf"""
    SELECT r.ev_class::bigint AS oid, (r.oid, r.xmin, c.relowner, c.relacl::text)::text AS mark,
        array_agg(DISTINCT d.refobjid::bigint) FILTER (WHERE d.refobjid <> r.ev_class) AS sources
    FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
    JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
    WHERE r.rulename = '_RETURN' AND r.oid >= {FIRST_OWN} AND d.refclassid = 'pg_class'::regclass
    AND r.ev_action::text !~ '\{{(SQLVALUEFUNCTION|NEXTVALUEEXPR|TABLESAMPLECLAUSE)' AND NOT EXISTS (
        SELECT FROM regexp_matches(
            r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g'
        ) AS found JOIN pg_proc p ON p.oid = found[1]::bigint::oid
        WHERE p.provolatile <> 'i' OR p.oid >= {FIRST_OWN}
    )
    GROUP BY r.oid, r.ev_class, r.xmin, c.relowner, c.relacl::text
"""
"""Views that show what their tables hold and nothing else: no time, no setting, no function of somebody's."""


async def marks_of(look: Introspection, policed: Collection[int]) -> dict[int, str]:
    """Marks of tables and views, by their number; none where changes cannot be told.

    Ask before values are read: what changes meanwhile has another mark the next time.

    Args:
        policed: Of which row policies decide what rows there are, by whatever they look at.
    """
    (server,) = await look.ask(SERVER)
    if not server["counting"]:
        return {}
    general = [server[name] for name in ("started", "reset", "replayed", "labels")]
    tables = {row["oid"]: _digest(general, row["mark"]) for row in await look.ask(TABLES)}
    views = {row["oid"]: row for row in await look.ask(VIEWS)}
    marks = tables | {oid: mark for oid in views if (mark := _of_view(oid, views, tables))}
    return {oid: mark for oid, mark in marks.items() if oid not in policed}


def _of_view(oid: int, views: Mapping[int, Mapping[str, Any]], tables: Mapping[int, str]) -> str:
    """The mark of a view with those of all that it reads; empty if one of these has none."""
    seen: dict[int, str] = {}
    left = [oid]
    while left:
        number = left.pop()
        if number in seen:
            continue
        if number in views:
            seen[number] = views[number]["mark"]
            left += views[number]["sources"] or ()
        elif number in tables:
            seen[number] = tables[number]
        else:
            return ""
    return _digest(sorted(seen.items()))


def _digest(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]
