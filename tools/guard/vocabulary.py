"""What a pure read may be made of: node classes and function names, read from ``lists/*.txt``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

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
        | {"CHARACTER SET", "COLLATION", "VARIABLES", "STATUS", "WARNINGS"}
    ),
    "snowflake": frozenset(
        {"TABLES", "COLUMNS", "SCHEMAS", "DATABASES", "VIEWS", "OBJECTS", "TERSE TABLES", "DYNAMIC TABLES"}
        | {"PRIMARY KEYS", "UNIQUE KEYS", "IMPORTED KEYS", "EXPORTED KEYS", "MATERIALIZED VIEWS"}
    ),
}
"""What SHOW may show, by dialect."""

DESCRIBED = frozenset({"", "TABLE", "VIEW", "SCHEMA", "DATABASE", "MATERIALIZED VIEW", "EXTENDED"})
"""Kinds of object that DESCRIBE may describe; stages, users and integrations hold credentials."""

SECRET_TABLES = (
    frozenset({"pg_authid", "pg_shadow", "pg_user_mapping", "pg_user_mappings", "pg_hba_file_rules"})
    | {"pg_ident_file_mappings", "pg_file_settings", "pg_largeobject", "pg_subscription", "pg_foreign_server"}
    | {"user_mapping_options", "pg_dist_authinfo", "decrypted_secrets", "user_variables_by_thread"}
    | {"duckdb_secrets", "duckdb_settings", "duckdb_logs", "duckdb_variables"}
    | {"sqlite_dbpage", "sqlite_dbdata", "sqlite_dbptr", "fsdir", "lsdir", "zipfile", "vtablog"}
)
"""Tables that hold credentials, raw pages or the file system; no question about data needs them."""

HARMLESS_SERVER_TABLES = ("help_", "time_zone", "innodb_index_stats", "innodb_table_stats", "column_stats")
"""Beginnings of the names of those tables in MySQL's own schema that tell nothing of accounts."""

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
    """The words of ``lists/<name>.txt``; lines that begin with # are comments."""
    text = files("quorum.tools.guard").joinpath("lists", f"{name}.txt").read_text(encoding="utf-8")
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return frozenset(word for line in lines for word in line.split())


@cache
def function_names(dialect: str) -> frozenset[str]:
    """Lower-case names that may be called in ``dialect``: its own list and sqlglot's pure functions."""
    from sqlglot import exp

    typed = words("typed")
    kinds = [kind for kind in exp.ALL_FUNCTIONS if kind.__name__ in typed]
    return words(dialect) | {name.lower() for kind in kinds for name in kind.sql_names()}
