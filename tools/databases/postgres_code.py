"""Code of a PostgreSQL database's own that a plain query would call, where it may do more than read.

A read-only transaction stops neither sleeping, nor locks, nor reading files, nor whatever another server is
asked; the guard lets no query name what does so. But a view's definition, a row policy or a domain's check
may call it, an operator or a cast may stand for it, and a function of the database's own may bear the name of
a harmless one, for other types. What is declared VOLATILE is refused, by name; a function that is declared
STABLE or IMMUTABLE is believed, as the server itself believes it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from quorum.knowledge.errors import DatabaseUnavailable
from quorum.tools.guard.vocabulary import function_names
from quorum.tools.query import ErrorKind, Limits, QueryError

if TYPE_CHECKING:
    from quorum.tools.databases.postgres import PostgresConnector

FIRST_OWN = 16384
"""The least number of an object that was made after the server's own."""
WORDS = {
    "like": ("~~", "!~~"),
    "ilike": ("~~*", "!~~*"),
    "between": (">=", "<="),
    **dict.fromkeys(("in", "nullif", "using", "natural", "when", "distinct"), ("=", "<>")),
}
"""The operators that keywords stand for."""
SPELLINGS = {
    "int4": ("int", "integer"),
    "int8": ("bigint",),
    "int2": ("smallint",),
    "float8": ("float", "double"),
    "float4": ("float", "real"),
    "bool": ("boolean",),
    "varchar": ("character", "char", "national"),
    "bpchar": ("character", "char", "national"),
    "numeric": ("decimal", "dec"),
    "timestamptz": ("timestamp",),
    "timetz": ("time",),
    "varbit": ("bit",),
}
"""Other names of built-in types, by their first words."""

_CODE = f"""
    parts AS (
        SELECT a.aggfnoid::oid AS whole, part::oid AS part FROM pg_aggregate a CROSS JOIN LATERAL (VALUES
            (a.aggtransfn), (a.aggfinalfn), (a.aggcombinefn), (a.aggserialfn), (a.aggdeserialfn),
            (a.aggmtransfn), (a.aggminvtransfn), (a.aggmfinalfn)) AS of (part)
        WHERE part <> 0
    ),
    changing AS (
        SELECT p.oid, p.proname::text AS name, p.oid >= {FIRST_OWN} AND NOT EXISTS (
            SELECT FROM pg_depend e
            WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'
        ) AS own
        FROM pg_proc p
        WHERE p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype) AND (
            p.provolatile = 'v' OR p.oid IN (
                SELECT parts.whole FROM parts JOIN pg_proc q ON q.oid = parts.part WHERE q.provolatile = 'v'
            )
        )
    ),
    checked AS (
        SELECT k.contypid AS type, coalesce(o.oprcode::oid, d.refobjid) AS code
        FROM pg_constraint k JOIN pg_depend d ON d.classid = 'pg_constraint'::regclass AND d.objid = k.oid
        LEFT JOIN pg_operator o ON d.refclassid = 'pg_operator'::regclass AND o.oid = d.refobjid
        WHERE k.contypid <> 0 AND d.refclassid IN ('pg_proc'::regclass, 'pg_operator'::regclass)
        UNION
        SELECT k.contypid, found[1]::bigint::oid
        FROM pg_constraint k, regexp_matches(k.conbin::text, ':(?:funcid|opfuncid) (\\d+)', 'g') AS found
        WHERE k.contypid <> 0
    )
"""
CALLS = f"""
    WITH {_CODE}
    SELECT 'function' AS kind, c.name, c.name AS code, c.own, p.pronargs - p.pronargdefaults <= 1
        AND p.pronargs > 0 AND NOT EXISTS (
            SELECT FROM pg_attribute a JOIN pg_class r ON r.oid = a.attrelid
            WHERE a.attname = p.proname AND a.attnum > 0 AND a.attrelid >= {FIRST_OWN}
        ) AS field
    FROM changing c JOIN pg_proc p USING (oid) WHERE c.oid >= {FIRST_OWN} AND pg_function_is_visible(c.oid)
    UNION ALL
    SELECT 'operator', o.oprname::text, c.name, c.own, false FROM pg_operator o
    JOIN changing c ON c.oid = o.oprcode WHERE o.oid >= {FIRST_OWN} AND pg_operator_is_visible(o.oid)
    UNION ALL
    SELECT 'domain', t.typname::text, c.name, c.own, false
    FROM checked JOIN pg_type t ON t.oid = checked.type JOIN changing c ON c.oid = checked.code
    UNION ALL
    SELECT CASE WHEN k.castcontext = 'i' AND k.castsource < {FIRST_OWN} THEN 'any' ELSE 'cast' END,
        t.typname::text, c.name, c.own, false
    FROM pg_cast k JOIN changing c ON c.oid = k.castfunc
    JOIN pg_type t ON t.oid = CASE WHEN k.castsource < {FIRST_OWN} THEN k.casttarget ELSE k.castsource END
    WHERE k.oid >= {FIRST_OWN}
"""
READS = rf"""
    WITH RECURSIVE {_CODE},
    refers AS (
        SELECT r.ev_class AS relation, d.refclassid, d.refobjid FROM pg_rewrite r
        JOIN pg_class c ON c.oid = r.ev_class AND c.relkind = 'v'
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        WHERE r.rulename = '_RETURN'
    ),
    policed AS (
        SELECT p.oid, p.polrelid AS relation, p.polqual FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relrowsecurity AND p.polcmd IN ('r', '*')
    ),
    calls AS (
        SELECT f.relation, false AS policy, f.refobjid AS code FROM refers f
        WHERE f.refclassid = 'pg_proc'::regclass
        UNION SELECT f.relation, false, o.oprcode::oid FROM refers f
        JOIN pg_operator o ON o.oid = f.refobjid WHERE f.refclassid = 'pg_operator'::regclass
        UNION SELECT f.relation, false, k.code FROM refers f JOIN checked k ON k.type = f.refobjid
        WHERE f.refclassid = 'pg_type'::regclass
        UNION SELECT r.ev_class, false, found[1]::bigint::oid
        FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class AND c.relkind = 'v',
        regexp_matches(r.ev_action::text, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS found
        WHERE r.oid >= {FIRST_OWN}
        UNION SELECT p.relation, true, found[1]::bigint::oid
        FROM policed p, regexp_matches(p.polqual::text, ':(?:funcid|opfuncid|aggfnoid) (\d+)', 'g') AS found
        UNION SELECT a.attrelid, false, k.castfunc FROM pg_cast k JOIN pg_attribute a
        ON a.atttypid = k.castsource AND a.attnum > 0 AND NOT a.attisdropped
        WHERE k.castfunc <> 0 AND k.castsource >= {FIRST_OWN}
    ),
    found AS (
        SELECT calls.relation, calls.policy, c.name AS code, c.own
        FROM calls JOIN changing c ON c.oid = calls.code
        UNION
        SELECT t.ftrelid, false, 'a program of the server''s', true FROM pg_foreign_table t
        WHERE EXISTS (SELECT FROM unnest(t.ftoptions) AS given WHERE given LIKE 'program=%')
    ),
    reach AS (  -- from what calls to what reads it: there is little of the former
        SELECT found.relation, found.relation AS seen FROM found
        UNION
        SELECT f.relation, reach.seen FROM reach
        JOIN refers f ON f.refobjid = reach.relation AND f.refclassid = 'pg_class'::regclass
    )
    SELECT DISTINCT reach.relation::bigint AS oid, found.code, found.own
    FROM reach JOIN found ON found.relation = reach.seen JOIN pg_class c ON c.oid = reach.relation
    WHERE c.oid >= {FIRST_OWN} AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    AND (NOT found.policy OR reach.relation <> reach.seen OR row_security_active(reach.relation))
    ORDER BY 1, 2
"""
POLICED = """
    WITH RECURSIVE reach AS (
        SELECT c.oid AS relation, c.oid AS seen FROM pg_class c WHERE c.relkind IN ('r', 'p', 'v')
        UNION
        SELECT reach.relation, d.refobjid FROM reach
        JOIN pg_rewrite r ON r.ev_class = reach.seen AND r.rulename = '_RETURN'
        JOIN pg_depend d ON d.classid = 'pg_rewrite'::regclass AND d.objid = r.oid
        WHERE d.refclassid = 'pg_class'::regclass
    )
    SELECT DISTINCT reach.relation::bigint AS oid
    FROM reach JOIN pg_class s ON s.oid = reach.seen JOIN pg_class c ON c.oid = reach.relation
    JOIN pg_roles owner ON owner.oid = c.relowner
    WHERE s.relrowsecurity AND CASE
        WHEN reach.relation = reach.seen THEN row_security_active(s.oid)
        WHEN coalesce(c.reloptions && ARRAY['security_invoker=true', 'security_invoker=on'], false)
            THEN row_security_active(s.oid)
        ELSE NOT owner.rolsuper AND NOT owner.rolbypassrls
            AND (s.relowner <> c.relowner OR s.relforcerowsecurity)
    END
"""
"""Tables and views of which row policies show the role some rows only."""

_TOKEN = re.compile(
    r"""
    (?P<skip>\s+ | --[^\n]* | /\*.*?\*/)
    | (?P<text>[eE]'(?:[^'\\]|\\.|'')*' | '(?:[^']|'')*' | \$(?P<tag>\w*)\$.*?\$(?P=tag)\$)
    | "(?P<quoted>(?:[^"]|"")*)"
    | (?P<word>[^\W\d][\w$]*)
    | (?P<number>[\d.]*\d[\w.]*)
    | (?P<operator>[-+*/<>=~!@\#%^&|`?]+)
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)


@dataclass(frozen=True)
class OwnCode:
    """What a query may not name, by name and with the function that it would call."""

    functions: dict[str, str] = field(default_factory=dict)
    fields: dict[str, str] = field(default_factory=dict)
    operators: dict[str, str] = field(default_factory=dict)
    types: dict[str, str] = field(default_factory=dict)
    anywhere: str = ""

    @classmethod
    async def of(cls, connector: PostgresConnector) -> OwnCode:
        """That of a database, for the role and its search path.

        Raises:
            DatabaseUnavailable: It cannot be read.
        """
        answer = await connector.ask(CALLS, Limits(rows=10**6))
        if isinstance(answer, QueryError):
            raise DatabaseUnavailable(f"The database's own functions cannot be read: {answer.message}")
        known: dict[str, dict[str, str]] = defaultdict(dict)
        for row in answer.table.to_pylist():
            if not is_harmless(row["code"], own=row["own"]):
                known[row["kind"]][row["name"]] = row["code"]
                if row["field"]:
                    known["field"][row["name"]] = row["code"]
        types = known["domain"] | known["cast"]
        types |= {word: code for name, code in types.items() for word in SPELLINGS.get(name, ())}
        anywhere = next(iter(known["any"].values()), "")
        return cls(known["function"], known["field"], known["operator"], types, anywhere)

    def refusal(self, sql: str) -> QueryError | None:
        """Why a query may not run; None if it names nothing of the kind."""
        if not (self.functions or self.operators or self.types or self.anywhere):
            return None
        if self.anywhere:
            return _refused("A cast of this database", self.anywhere)
        tokens = list(_tokens(sql))
        return next(self._refusals(tokens), None)

    def _refusals(self, tokens: list[tuple[str, str]]) -> Iterator[QueryError]:
        around = zip([("", ""), *tokens], tokens, [*tokens[1:], ("", "")], strict=False)
        for before, (kind, name), after in around:
            if kind == "operator" and (code := self._operator(name)):
                yield _refused(f"The operator {name}", code)
            if kind not in ("word", "quoted"):
                continue
            if kind == "word" and (code := next(filter(None, map(self._operator, WORDS.get(name, ()))), "")):
                yield _refused(f"{name.upper()}", code)
            if name in self.types:
                yield _refused(f"The type {name}", self.types[name])
            if after[1] == "(" and name in self.functions:
                yield _refused(f"{name}, for some types,", self.functions[name])
            if before[1] == "." and name in self.fields:
                yield _refused(f"The field {name}", self.fields[name])

    def _operator(self, symbols: str) -> str:
        """The function behind a run of operators' symbols, which may be one and a sign."""
        signed = symbols.rstrip("+-") or symbols[:1]
        return self.operators.get(symbols) or self.operators.get(signed, "")


def is_harmless(function: str, *, own: bool) -> bool:
    """Whether a volatile function is one that queries may call: of the server or an extension, and listed."""
    return not own and function in function_names("postgres")


def by_relation(rows: Iterable[dict[str, object]]) -> dict[int, list[str]]:
    """Functions that reading a relation calls, by its number."""
    found: dict[int, list[str]] = defaultdict(list)
    for row in rows:
        if not is_harmless(str(row["code"]), own=bool(row["own"])):
            found[int(str(row["oid"]))].append(str(row["code"]))
    return found


def _refused(what: str, code: str) -> QueryError:
    return QueryError(
        ErrorKind.PERMISSION,
        f"{what} calls {code} here, which may do more than read. If it only reads, it can be declared "
        "STABLE or IMMUTABLE.",
    )


def _tokens(sql: str) -> Iterator[tuple[str, str]]:
    """Kinds and texts; names as the server folds them."""
    for found in _TOKEN.finditer(sql):
        kind = found.lastgroup or ""
        if kind == "tag":
            kind = "text"
        if kind == "skip":
            continue
        text = found[kind]
        yield kind, text.lower() if kind == "word" else text.replace('""', '"')
