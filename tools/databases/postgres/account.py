"""Who asks on a PostgreSQL server, and what the role may do beyond reading."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.base import Account
from quorum.tools.query import Limits, QueryError

if TYPE_CHECKING:
    from quorum.tools.databases.postgres.connector import PostgresConnector

OURS = r"n.nspname NOT LIKE 'pg\_%' AND n.nspname <> 'information_schema'"
ROLE = f"""
    SELECT current_user::text AS name, rolsuper AS super, rolcreaterole AS roles,
        rolreplication AS replication,
        pg_has_role(current_user, 'pg_read_server_files', 'MEMBER') AS reads,
        pg_has_role(current_user, 'pg_write_server_files', 'MEMBER') AS writes,
        pg_has_role(current_user, 'pg_execute_server_program', 'MEMBER') AS programs,
        (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'f') AND {OURS}
            AND has_schema_privilege(n.oid, 'USAGE')
            AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')) AS writable,
        (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'm', 'f') AND {OURS}
            AND pg_has_role(c.relowner, 'USAGE')) AS owned,
        (SELECT count(*) FROM pg_namespace n WHERE {OURS}
            AND has_schema_privilege(n.oid, 'CREATE')) AS schemas
    FROM pg_roles WHERE rolname = current_user
"""
IDENTITY = """
    SELECT d.oid::text AS database, current_user::text AS role, session_user::text AS login,
        CASE WHEN r.rolsuper THEN 'superuser' WHEN r.rolbypassrls THEN 'sees all rows' END AS kind,
        CASE WHEN NOT r.rolsuper THEN (
            SELECT string_agg(m.rolname, ' ' ORDER BY m.rolname) FROM pg_roles m
            WHERE pg_has_role(current_user, m.oid, 'MEMBER')
        ) END AS memberships,
        (SELECT string_agg(s.name || '=' || s.setting, ' ' ORDER BY s.name) FROM pg_settings s
            WHERE s.source IN ('client', 'user', 'database', 'database user', 'global')) AS settings,
        (SELECT string_agg(s.setconfig::text, ' ' ORDER BY s.setdatabase, s.setrole)
            FROM pg_db_role_setting s LEFT JOIN pg_roles l ON l.oid = s.setrole
            WHERE s.setdatabase IN (0, d.oid) AND (s.setrole = 0 OR l.rolname = session_user)
        ) AS own_settings,
        {person} AS person
    FROM pg_database d CROSS JOIN pg_roles r
    WHERE d.datname = current_database() AND r.rolname = current_user
"""
"""Row policies and views may hang on any setting, those of extensions and of nobody included."""
SYSTEM = "SELECT system_identifier::text AS system FROM pg_control_system()"
PERSONS = 160_000
"""The version since which a server tells who logged in as a role."""
SUPER = "is a superuser: no right holds it back, and the server's files are open to it"
POWERS = {
    "reads": "may read files on the server",
    "writes": "may write files on the server",
    "programs": "may run programs on the server",
    "roles": "may make roles",
    "replication": "may copy the whole server by replication",
}
COUNTS = {
    "writable": ("may write to {} table", "may write to {} tables"),
    "owned": ("owns {} table or view", "owns {} tables and views"),
    "schemas": ("may create tables in {} schema", "may create tables in {} schemas"),
}


async def account_of(connector: PostgresConnector) -> Account:
    """See ``Connector.account``."""
    answer = await connector.ask(ROLE, Limits())
    if isinstance(answer, QueryError):
        raise DatabaseUnavailable(f"The role's rights cannot be read: {answer.message}")
    (row,) = answer.table.to_pylist()
    if row["super"]:
        return Account(row["name"], (SUPER,))
    powers = [words for name, words in POWERS.items() if row[name]]
    powers += [COUNTS[name][row[name] != 1].format(f"{row[name]:,}") for name in COUNTS if row[name]]
    return Account(row["name"], tuple(powers))


async def identity_of(connector: PostgresConnector) -> tuple[str, ...]:
    """See ``Connector.identity``."""
    person = "system_user" if connector.version >= PERSONS else "NULL"
    answer = await connector.ask(IDENTITY.format(person=person), Limits())
    if isinstance(answer, QueryError):
        raise DatabaseUnavailable(f"Who asks cannot be read: {answer.message}")
    system = await connector.ask(SYSTEM, Limits())  # not every server tells its own
    (row,) = answer.table.to_pylist()
    told = [] if isinstance(system, QueryError) else system.table["system"].to_pylist()
    options = os.environ.get("PGOPTIONS", "")
    asked = {"server": connector.server, "system": told, "schemas": connector.schemas, "options": options}
    return tuple(f"{name}: {value}" for name, value in (asked | row).items())
