"""What a pure read may be made of: node classes and function names, read from ``lists/*.txt``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from importlib.resources import files

from quorum.tools.sql import STRICT_DIALECTS

INSPECTION_PRAGMAS = {
    "sqlite": frozenset(
        {"table_info", "table_xinfo", "table_list", "index_list", "index_info", "index_xinfo"}
    )
    | {"foreign_key_list", "database_list", "collation_list", "compile_options", "function_list"}
    | {"module_list", "pragma_list"},
    "duckdb": frozenset({"table_info", "show_tables", "show_tables_expanded", "show_databases", "show"})
    | {"database_list", "database_size", "storage_info", "collations", "functions", "version", "platform"},
}
"""PRAGMA statements that only show, by dialect."""

SHOWN = {
    "duckdb": frozenset({"TABLES", "ALL TABLES", "DATABASES", "SCHEMAS"}),
    "mysql": frozenset(
        {"TABLES", "COLUMNS", "INDEX", "DATABASES", "SCHEMAS", "CREATE TABLE", "CREATE VIEW", "TABLE STATUS"}
        | {"CHARACTER SET", "COLLATION", "WARNINGS"}
    ),
    "snowflake": frozenset(
        {"TABLES", "COLUMNS", "SCHEMAS", "DATABASES", "VIEWS", "OBJECTS", "TERSE TABLES", "DYNAMIC TABLES"}
        | {"PRIMARY KEYS", "UNIQUE KEYS", "IMPORTED KEYS", "EXPORTED KEYS", "MATERIALIZED VIEWS"}
    ),
}
"""What SHOW may show, by dialect."""

DESCRIBED = frozenset({"", "TABLE", "VIEW", "SCHEMA", "DATABASE", "MATERIALIZED VIEW", "EXTENDED"})
"""Kinds of object that DESCRIBE may describe; stages, users and integrations hold credentials."""

SETTINGS = (
    frozenset({"search_path", "server_version", "server_version_num", "timezone", "time zone", "datestyle"})
    | {"intervalstyle", "server_encoding", "client_encoding", "lc_collate", "lc_ctype", "lc_numeric"}
    | {"standard_conforming_strings", "statement_timeout", "transaction_isolation", "transaction_read_only"}
)
"""PostgreSQL's settings that SHOW and current_setting may tell; others hold passwords and paths."""

MYSQL_SETTINGS = (
    frozenset({"version", "version_comment", "sql_mode", "time_zone", "system_time_zone", "lc_time_names"})
    | {"character_set_client", "character_set_connection", "character_set_database", "character_set_server"}
    | {"collation_connection", "collation_database", "collation_server", "lower_case_table_names"}
    | {"group_concat_max_len", "div_precision_increment", "default_week_format", "transaction_read_only"}
)
"""MySQL's settings that ``@@`` may tell; others hold paths and addresses."""

FIRST_ARGUMENT = {
    "current_setting": SETTINGS,
    "get_ddl": frozenset({"table", "view", "dynamic table", "materialized view", "sequence"}),
}
"""What some functions may be asked for: asked for anything else they tell secrets."""

FILE_TABLES = frozenset({"fsdir", "lsdir", "zipfile", "vtablog", "completion"})
"""SQLite's tables that read the file system or the process."""

_SYSTEM_NAMES = {
    "sqlite": re.compile(r"sqlite_"),
    "duckdb": re.compile(r"(?:duckdb|pg|sqlite)_"),
    "postgres": re.compile(r"_?pg_"),
}
_EXTENSION_TABLES = re.compile(r"pg_(?:stat|buffercache|qualstats|store_plans|wait_sampling)")
"""PostgreSQL's extensions put these into a user's schema; they hold what others asked."""
_SYSTEM_SCHEMAS = {
    "duckdb": frozenset({"pg_catalog"}),
    "postgres": frozenset({"pg_catalog", "cron", "vault", "pgsodium", "pgsodium_masks"}),
    "mysql": frozenset({"mysql", "performance_schema", "sys", "ndbinfo"}),
    "snowflake": frozenset({"account_usage", "organization_usage", "reader_account_usage"})
    | {"data_sharing_usage", "trust_center"},
}


def is_system(path: Sequence[str], dialect: str) -> bool:
    """True if a table, by its lower-case names from the outermost on, is one of the engine's own."""
    *outer, name = path
    schema = outer[-1] if outer else ""
    own = schema in _SYSTEM_SCHEMAS.get(dialect, ()) or (dialect == "snowflake" and path[0] == "snowflake")
    hidden = dialect == "postgres" and schema.startswith(("pg_", "_"))
    prefix = _SYSTEM_NAMES.get(dialect)
    extension = dialect == "postgres" and _EXTENSION_TABLES.match(name)
    bare = not outer or dialect != "postgres" or extension  # on PostgreSQL, other a.pg_b are a user's
    named = bool(bare) and prefix is not None and prefix.match(name) is not None
    return own or hidden or named or "information_schema" in outer


def is_open(path: Sequence[str], dialect: str) -> bool:
    """True if introspection needs a system table, so that it may be read; all others are closed."""
    if "information_schema" in path[:-1]:
        return path[-1] in words("information_schema")
    if dialect == "snowflake":  # ACCOUNT_USAGE describes what INFORMATION_SCHEMA does
        return path[-2:-1] == ["account_usage"] and path[-1] in words("information_schema")
    return path[-1] in words(f"{dialect}_catalog") if dialect != "bigquery" else False


FIELD_CALLS = re.compile(
    r"pg_(?:sleep|ls_|read_|stat_file|stat_get_|stat_reset|stat_statements|try_advisory|advisory|cancel_backend"
    r"|terminate_backend|backup|start_backup|stop_backup|create_|drop_|file_|import_|log_|logical_|logdir"
    r"|check_|freespace|get_wal_|truncate_|visibility|promote|replication_|rotate|switch|tablespace_|options_to_table|sequence_last_value|prewarm"
    r"|current_logfile|get_multixact|relation_file|xact_commit|show_)\w*"
    r"|lo_(?:close|creat|create|export|from_bytea|get|import|lseek(?:64)?|open|put|tell(?:64)?|truncate(?:64)?"
    r"|unlink)|loread|lowrite|nextval|currval|lastval|setval|setseed|current_setting|set_config|ts_stat"
    r"|dblink(?:_(?:connect|disconnect|open|fetch|exec|close|send|is|get|cancel|current|build|error)\w*)?"
    r"|postgres_fdw_\w+|http_(?:get|head|delete)|crosstab\w*|pgrowlocks|pgstat(?:tuple|index|ginindex|hashindex)\w*"
    r"|brin_(?:de)?summarize\w*|gin_clean_pending_list|binary_upgrade_\w+|run_command_on_\w+|plpgsql_validator"
    r"|(?:query|table|schema|database|cursor)_to_xml\w*|txid_\w+|plpy_\w+"
)
"""PostgreSQL's and its extensions' functions that change, read or wait; ``x.f`` calls ``f(x)`` there."""

_FAMILY = {
    **dict.fromkeys(("athena", "presto"), "trino"),
    **dict.fromkeys(("databricks", "hive"), "spark"),
    **dict.fromkeys(("doris", "singlestore", "starrocks"), "mysql"),
}
"""Dialects that have their functions from another one."""

NAMESPACES = {"postgres": ("pg_catalog",), "bigquery": ("safe",)}
"""Schemas whose functions are the dialect's own, so that the qualified name means the bare one."""


SCRIPT_KEYWORDS = frozenset({"DECLARE", "DEFAULT", "SET", "CREATE", "TEMP", "TEMPORARY", "FUNCTION"}) | {
    "RETURNS",
    "LANGUAGE",
    "SQL",
    "ANY",
    "TYPE",
}
"""Words of the statements that may prepare a BigQuery query."""


@cache
def words(name: str) -> frozenset[str]:
    """Return the words of ``lists/<name>.txt``; lines that begin with # are comments."""
    text = files("quorum.tools.guard").joinpath("lists", f"{name}.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


@cache
def listed(dialect: str) -> frozenset[str]:
    """Return the functions of the dialect's list; of a strict dialect, with those that all such have."""
    if dialect not in STRICT_DIALECTS:
        return words(dialect)
    name = _FAMILY.get(dialect, dialect)
    own = files("quorum.tools.guard").joinpath("lists", f"{name}.txt").is_file()
    return words("common") | (words(name) if own else frozenset())


@cache
def function_names(dialect: str) -> frozenset[str]:
    """Return the lower-case names that may be called: those of its list and sqlglot's pure functions."""
    from sqlglot import exp

    if dialect in STRICT_DIALECTS:
        return listed(dialect)
    typed = words("typed")
    kinds = [kind for kind in exp.ALL_FUNCTIONS if kind.__name__ in typed]
    return words(dialect) | {name.lower() for kind in kinds for name in kind.sql_names()}
