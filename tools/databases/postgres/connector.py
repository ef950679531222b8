"""PostgreSQL over its own protocol. The driver, psycopg 3, is imported in ``session``."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Collection

from quorum.knowledge.catalog import Catalog
from quorum.tools.databases.base import Account
from quorum.tools.databases.postgres.catalog import OURS, introspect
from quorum.tools.databases.postgres.code import OwnCode, unsafe_query
from quorum.tools.databases.postgres.errors import query_error
from quorum.tools.databases.postgres.session import PostgresLink
from quorum.tools.databases.postgres.url import Target
from quorum.tools.databases.server import GRACE_SECONDS, Refusal, ServerConnector
from quorum.tools.databases.texts import READS, uncallable
from quorum.tools.query import Limits, QueryError

ROLE = f"""
    SELECT current_user::text AS name, rolsuper AS super, rolcreaterole AS roles,
        rolreplication AS replication,
        pg_has_role(current_user, 'pg_read_server_files', 'MEMBER') AS reads,
        pg_has_role(current_user, 'pg_write_server_files', 'MEMBER') AS writes,
        pg_has_role(current_user, 'pg_execute_server_program', 'MEMBER') AS programs,
        (SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
            WHERE c.relkind IN ('r', 'p', 'v', 'f') AND {OURS}
            AND has_schema_privilege(n.oid, 'USAGE')
            AND has_table_privilege(c.oid, 'INSERT, UPDATE, DELETE, TRUNCATE')) AS tables,
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
    "tables": "may write to tables: {:,}",
    "owned": "owns tables and views: {:,}",
    "schemas": "may create tables in schemas: {:,}",
}


class PostgresConnector(ServerConnector[PostgresLink, Target]):
    """``postgresql://user:password@host:port/database?schema=a,b``; ``postgres://`` as well.

    What the URL leaves out libpq finds where it always does: PG* variables, a password file, a service. Up to
    ``links`` queries run at once, each on a connection of its own, which later ones use again.
    """

    dialect = "postgres"
    scheme = "postgresql"
    urls = Target
    driver = ("psycopg", "psycopg", "A PostgreSQL database")
    first_words = READS
    hints = (
        (
            "password|authentication|pg_hba",
            "Check user and password, and until when it is valid; PGPASSFILE or a service may hold them.",
        ),
        (
            "SSL|certificate",
            "Set sslmode in the URL, and sslrootcert: the file of who signed the server's certificate.",
        ),
        ("does not exist", "Check the database's and the user's name."),
        (
            "too many|connection slots|connection limit",
            "Try again later, or raise the limit of the server or the role.",
        ),
        ("starting up|shutting down|recovery", "Try again in a moment."),
        ("parameter: options", "Let the pooler ignore it (PgBouncer: ignore_startup_parameters = options)."),
    )

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._name: str = target.parameters.get("dbname", "")
        self.version = 0
        """The server's, as 150003 for 15.3; known once it is open."""
        self.server = ""
        """Host and port that the first connection went to; known once it is open."""
        self._code = OwnCode()

    @property
    def name(self) -> str:
        return self._name

    async def open(self) -> None:
        self._code = OwnCode()
        await super().open()
        try:
            await self.own_code()
        except BaseException:
            await self.close()
            raise

    async def own_code(self) -> OwnCode:
        """Read the names that queries may not use, as the database is now.

        Raises:
            DatabaseUnavailable: It cannot be read.
        """
        await self.own_rows("SELECT 1", "The database's own functions")
        return self._code

    async def look(self, link: PostgresLink, seconds: float) -> None:
        if link.begun != self._code.mark:
            rows = await link.within(link.ask(unsafe_query()), seconds + GRACE_SECONDS)
            self._code = await asyncio.to_thread(OwnCode.of, rows, link.begun)

    def refusal(self, sql: str) -> QueryError | None:
        return uncallable(sql, "postgres") or self._code.refusal(sql)

    async def reread(self, names: Collection[str], *, samples: int = 3) -> Catalog:
        return await introspect(self, samples=samples, only=names)

    catalog = introspect

    async def identity(self) -> tuple[str, ...]:
        person = "system_user" if self.version >= PERSONS else "NULL"
        (row,) = await self.own_rows(IDENTITY.format(person=person), "Who asks")
        system = await self.ask(SYSTEM, Limits())  # not every server tells its own
        told = [] if isinstance(system, QueryError) else system.table["system"].to_pylist()
        options = os.environ.get("PGOPTIONS", "")
        asked = {"server": self.server, "system": told, "schemas": self.target.schemas, "options": options}
        return tuple(f"{name}: {value}" for name, value in (asked | row).items())

    async def account(self) -> Account:
        (row,) = await self.own_rows(ROLE, "What the role may do")
        if row["super"]:
            return Account(row["name"], (SUPER,))
        powers = [words for name, words in POWERS.items() if row[name]]
        powers += [words.format(row[name]) for name, words in COUNTS.items() if row[name]]
        return Account(row["name"], tuple(powers))

    async def connect(self) -> PostgresLink:
        return await PostgresLink.connect(self.target)

    def query_error(self, refusal: Refusal, sql: str) -> QueryError:
        return query_error(refusal, sql)

    def note_opened(self, link: PostgresLink) -> None:
        self._name, self.version, self.server = link.database, link.version, link.server
