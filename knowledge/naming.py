"""How SQL spells a name: bare where the dialect finds it so, else in the dialect's quotes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache

from quorum.knowledge.schema.grammar import quote

_PLAIN = {
    **dict.fromkeys(("snowflake", "oracle", "exasol"), re.compile(r"[A-Z_][A-Z0-9_]*")),
    "postgres": re.compile(r"[a-z_][a-z0-9_]*"),
}
"""These fold a bare name and then compare exactly; the others ignore case."""
_ANY_CASE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_MARKS = dict.fromkeys(("bigquery", "mysql", "doris", "singlestore", "starrocks"), "`")
_MARKS |= dict.fromkeys(("clickhouse", "databricks", "hive", "spark"), "`")
_CACHED = 1 << 16  # the same few names come back at every level of detail
_EVERYWHERE = """
    all alter and any as asc between by case cast check column constraint create cross current
    default delete desc distinct drop else end except exists false fetch for foreign from full grant
    group having if in index inner insert intersect into is join key left like limit natural not
    null offset on or order outer over partition primary references right row rows select set some
    table then to true union unique update user using values when where window with
"""
_MISREAD = """
    alter any charset connect_by_root cube current_date current_datetime current_time current_timestamp
    current_user describe drop force glob ilike insert install lateral lock map match_recognize notnull
    offset partitioned_by qualify regexp returning revoke rlike rollback rollup tablesample top uncache
    undrop xor
"""
"""Words that sqlglot, and so the guard, takes for more than a name in one of the dialects or another."""
_MISREAD_ELSEWHERE = """
    binary distinctrow eq ge global gt ins le locking lt minus mod ne prewhere sample sel separator
    serdeproperties straight_join variadic
"""
"""The same in a dialect that is asked through SQLAlchemy alone."""
_POSTGRES = """
    analyse analyze array asymmetric authorization binary both collate collation concurrently
    current_catalog current_date current_role current_schema current_time current_timestamp
    current_user deferrable do freeze ilike initially isnull lateral leading localtime localtimestamp
    notnull only overlaps placing returning session_user similar symmetric tablesample trailing
    variadic verbose
"""
_RESERVED = {
    "postgres": _POSTGRES,
    "duckdb": f"""{_POSTGRES} anti asof at describe glob lambda pivot pivot_longer pivot_wider
        positional qualify semi show summarize unpack unpivot""",
    "sqlite": """add autoincrement collate commit current_date current_time current_timestamp deferrable
        escape isnull nothing notnull raise returning transaction""",
    "snowflake": """connect current_date current_time current_timestamp current_user following ilike
        increment lateral localtime localtimestamp minus of qualify regexp revoke rlike sample start
        tablesample trigger try_cast whenever""",
    "tsql": """add authorization backup begin break browse bulk cascade checkpoint close clustered coalesce
        collate commit compute contains continue convert current_date current_time current_timestamp
        current_user cursor database dbcc deallocate declare deny disk distributed dump errlvl escape exec
        execute exit external file fillfactor freetext function goto holdlock identity identitycol kill
        lineno load merge national nocheck nonclustered nullif off offsets open option over percent pivot
        plan print proc procedure public raiserror read readtext reconfigure replication restore restrict
        return revert rollback rowcount rowguidcol rule save schema session_user setuser shutdown statistics
        system_user tablesample textsize top tran transaction trigger truncate tsequal unpivot updatetext use
        user view waitfor while writetext""",
    "oracle": """access add audit cluster column comment compressed connect date decimal exclusive file float
        identified immediate increment initial integer level lock long maxextents minus mlslabel mode modify
        noaudit nocompress nowait number of offline online option pctfree prior public raw rename resource
        rowid rownum session share size smallint start successful synonym sysdate trigger uid user validate
        systimestamp varchar varchar2 view whenever""",
}
"""Words beside those of ``_EVERYWHERE``; sqlglot has the lists of BigQuery, MySQL and some others."""


@lru_cache(_CACHED)
def write_name(name: str, dialect: str = "") -> str:
    """``name`` as a query in ``dialect`` must spell it, on one line (control characters are escaped)."""
    plain = _PLAIN.get(dialect, _ANY_CASE).fullmatch(name) and name.casefold() not in _never_bare(dialect)
    return name if plain else quote(name, _MARKS.get(dialect, '"'))


def write_names(names: Iterable[str], dialect: str = "") -> str:
    """Names joined by commas."""
    return ", ".join(write_name(name, dialect) for name in names)


def write_full_name(parts: Iterable[str], dialect: str = "") -> str:
    """``database.schema.name`` with each part quoted where needed."""
    return ".".join(write_name(part, dialect) for part in parts)


@cache
def reserved(dialect: str) -> frozenset[str]:
    """The words, in lower case, that the dialect reserves."""
    words = frozenset(f"{_EVERYWHERE} {_RESERVED.get(dialect, '')}".split())
    if dialect in ("", "duckdb", "postgres", "snowflake", "sqlite"):
        return words
    from sqlglot.dialects.dialect import Dialect

    listed = frozenset(map(str.lower, Dialect.get_or_raise(dialect).generator_class.RESERVED_KEYWORDS))
    return listed if dialect in ("bigquery", "mysql") else words | listed | {*_MISREAD_ELSEWHERE.split()}


@cache
def _never_bare(dialect: str) -> frozenset[str]:
    return reserved(dialect) | {*_MISREAD.split()}
