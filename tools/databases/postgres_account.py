"""What the role that asks may do on its PostgreSQL server beyond reading."""

from __future__ import annotations

from typing import TYPE_CHECKING

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.databases.base import Account
from quorum.tools.query import Limits, QueryError

if TYPE_CHECKING:
    from quorum.tools.databases.postgres import PostgresConnector

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
