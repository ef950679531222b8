"""Code of a PostgreSQL database's own that a plain query would call, where it may do more than read.

A read-only transaction stops neither sleeping, nor locks, nor reading files, nor whatever another server is
asked. The rule: a VOLATILE function that is not one of the harmless ones of the guard's list is unsafe, so
is a foreign table that runs a program; whatever uses something unsafe is unsafe, by the server's own records
of what uses what. A query that names something unsafe is refused, and an unsafe table or view is not in the
catalog. For example, a domain whose check calls a VOLATILE function is unsafe, and therefore its array, a
table with a column of it, and a view on that table. A function that is declared STABLE or IMMUTABLE is
believed, as the server itself believes it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from quorum.tools.databases.texts import Token, tokens
from quorum.tools.guard.vocabulary import function_names, words
from quorum.tools.query import ErrorKind, QueryError

FIRST_OWN = 16384
"""The least number of an object that was made after the server's own."""
WORDS = {
    "like": ("~~", "!~~"),
    "ilike": ("~~*", "!~~*"),
    "similar": ("~", "!~"),
    "between": (">=", "<=", "<", ">"),
    **dict.fromkeys(("in", "nullif", "using", "natural", "when", "distinct"), ("=", "<>")),
}
"""The operators that keywords stand for."""
NAMES = ("word", "name")
BEFORE_TABLES = ("from", "join", "only", "table", ",", "(")
KINDS = {
    "function": "{}",
    "type": "The type {}",
    "relation": "Reading {}",
    "row": "The field {}",
    "value": "The field {}",
}
SYMBOLS = "-+*/<>=~!@#%^&|`?"
"""What operators are made of."""
Word = tuple[str, str]
"""The kind and the text of a token; the kind ``other`` is of brackets, dots and commas."""
Rows = list[tuple[str, ...]]
"""Of an answer, as text."""
_EDGES = r"""
    trees AS (  -- expressions: on functions that come with the server it records no dependency
        SELECT 'pg_rewrite'::regclass::oid AS class, oid AS id, ev_action::text AS tree FROM pg_rewrite
        WHERE oid >= {first} AND rulename = '_RETURN'
        UNION ALL SELECT 'pg_policy'::regclass, oid, polqual::text FROM pg_policy
        UNION ALL SELECT 'pg_constraint'::regclass, oid, conbin::text FROM pg_constraint WHERE contypid <> 0
        UNION ALL SELECT 'pg_proc'::regclass, oid, proargdefaults::text FROM pg_proc WHERE oid >= {first}
    ),
    policies AS (
        SELECT p.oid, p.polrelid FROM pg_policy p JOIN pg_class c ON c.oid = p.polrelid
        WHERE c.relrowsecurity AND p.polcmd IN ('r', '*')
    ),
    families AS (  -- operator families and what they call; those of extensions are believed
        SELECT f.family, f.code FROM changing c JOIN (
            SELECT amprocfamily, amproc::oid FROM pg_amproc
            UNION SELECT m.amopfamily, o.oprcode::oid FROM pg_amop m JOIN pg_operator o ON o.oid = m.amopopr
        ) AS f (family, code) ON f.code = c.oid WHERE c.own
    ),
    uses (class, id, on_class, on_id) AS MATERIALIZED (
        SELECT d.classid, d.objid, d.refclassid, d.refobjid FROM pg_depend d WHERE CASE d.refclassid
            WHEN 'pg_type'::regclass THEN true
            WHEN 'pg_class'::regclass THEN d.classid IN ('pg_rewrite'::regclass, 'pg_policy'::regclass)
            WHEN 'pg_proc'::regclass THEN d.classid NOT IN ('pg_proc'::regclass, 'pg_class'::regclass)
            ELSE d.refclassid IN ('pg_operator'::regclass, 'pg_opclass'::regclass)
                AND d.classid <> 'pg_proc'::regclass
        END
        UNION ALL SELECT t.class, t.id, 'pg_proc'::regclass, c.oid FROM trees t
        CROSS JOIN regexp_matches(t.tree, ':(?:funcid|opfuncid|aggfnoid|winfnoid) (\d+)', 'g') AS found
        JOIN changing c ON c.oid = found[1]::bigint::oid
        UNION ALL SELECT 'pg_proc'::regclass, a.aggfnoid, 'pg_proc'::regclass, part
        FROM pg_aggregate a CROSS JOIN unnest(ARRAY[
            a.aggtransfn, a.aggfinalfn, a.aggcombinefn, a.aggserialfn, a.aggdeserialfn, a.aggmtransfn,
            a.aggminvtransfn, a.aggmfinalfn
        ]) AS part
        UNION ALL SELECT 'pg_operator'::regclass, o.oid, 'pg_operator'::regclass, other
        FROM pg_operator o CROSS JOIN unnest(ARRAY[o.oprcom, o.oprnegate]) AS other WHERE o.oid >= {first}
        UNION ALL SELECT 'pg_operator'::regclass, m.amopopr, 'pg_proc'::regclass, f.code
        FROM families f JOIN pg_amop m ON m.amopfamily = f.family
        UNION ALL SELECT 'pg_opclass'::regclass, c.oid, 'pg_proc'::regclass, f.code
        FROM families f JOIN pg_opclass c ON c.opcfamily = f.family
        UNION ALL SELECT 'pg_type'::regclass, opcintype, 'pg_opclass'::regclass, oid FROM pg_opclass
        WHERE opcdefault
        UNION ALL SELECT 'pg_type'::regclass,
            CASE WHEN castsource < {first} THEN casttarget ELSE castsource END, 'pg_proc'::regclass, castfunc
        FROM pg_cast
        UNION ALL SELECT 'pg_type'::regclass, contypid, 'pg_constraint'::regclass, oid FROM pg_constraint
        WHERE contypid <> 0
        UNION ALL SELECT 'pg_type'::regclass, c.reltype, 'pg_type'::regclass, d.refobjid
        FROM pg_depend d JOIN pg_class c ON c.oid = d.objid AND d.classid = 'pg_class'::regclass
        WHERE d.refclassid = 'pg_type'::regclass AND c.reltype <> 0
        UNION ALL SELECT 'pg_class'::regclass, r.ev_class, 'pg_rewrite'::regclass, r.oid
        FROM pg_rewrite r JOIN pg_class c ON c.oid = r.ev_class
        WHERE c.relkind = 'v' AND r.rulename = '_RETURN'
        UNION ALL SELECT 'pg_class'::regclass, polrelid, 'pg_policy'::regclass, oid FROM policies
        WHERE row_security_active(polrelid)
        UNION ALL SELECT d.classid, d.objid, 'pg_policy'::regclass, p.oid  -- who owns a view reads for others
        FROM policies p JOIN pg_depend d ON d.refobjid = p.polrelid AND d.refclassid = 'pg_class'::regclass
        WHERE d.classid = 'pg_rewrite'::regclass
        UNION ALL SELECT 'pg_class'::regclass, inhparent, 'pg_class'::regclass, inhrelid FROM pg_inherits
        UNION ALL SELECT 'pg_class'::regclass, indrelid, 'pg_class'::regclass, indexrelid FROM pg_index
    )
"""
"""What uses what, as pairs of a catalog's number and a number in it."""
UNSAFE = r"""
    WITH RECURSIVE named AS (
        SELECT p.oid, p.proname::text AS name, p.provolatile,
            'internal'::regtype <> ALL (p.proargtypes) AS callable, p.oid >= {first} AND NOT EXISTS (
            SELECT FROM pg_depend e
            WHERE e.classid = 'pg_proc'::regclass AND e.objid = p.oid AND e.deptype = 'e'
        ) AS own
        FROM pg_proc p WHERE p.prorettype NOT IN ('trigger'::regtype, 'event_trigger'::regtype)
    ),
    changing AS (
        SELECT oid, name, own FROM named
        WHERE provolatile = 'v' AND (own OR callable AND name <> ALL (string_to_array('{harmless}', ' ')))
    ),
    {edges},
    unsafe (class, id, code) AS (
        SELECT 'pg_proc'::regclass::oid, oid, name FROM changing
        UNION
        SELECT 'pg_class'::regclass, ftrelid, 'a program of the server''s' FROM pg_foreign_table
        WHERE EXISTS (SELECT FROM unnest(ftoptions) AS given WHERE given LIKE 'program=%')
        UNION
        SELECT uses.class, uses.id, unsafe.code
        FROM unsafe JOIN uses ON uses.on_class = unsafe.class AND uses.on_id = unsafe.id
    )
    SELECT 'function' AS kind, n.nspname::text AS home, p.proname::text AS name, p.oid::bigint AS oid, u.code,
        pg_function_is_visible(p.oid) AS visible, CASE
            WHEN p.pronargs = 0 OR p.pronargs - p.pronargdefaults > 1 THEN ''
            WHEN t.typtype IN ('c', 'd', 'p') OR EXISTS (
                SELECT FROM pg_cast k JOIN pg_type s ON s.oid = k.castsource
                WHERE k.casttarget = t.oid AND s.typrelid <> 0
            ) THEN 'row' ELSE 'value'
        END AS takes
    FROM unsafe u JOIN pg_proc p ON p.oid = u.id JOIN pg_namespace n ON n.oid = p.pronamespace
    LEFT JOIN pg_type t ON t.oid = p.proargtypes[0]
    WHERE u.class = 'pg_proc'::regclass
    UNION ALL
    SELECT 'operator', '', o.oprname::text, o.oid::bigint, u.code, true, ''
    FROM unsafe u JOIN pg_operator o ON o.oid = u.id WHERE u.class = 'pg_operator'::regclass
    UNION ALL
    SELECT CASE WHEN t.oid < {first} THEN 'any' ELSE 'type' END, n.nspname::text, t.typname::text,
        t.oid::bigint, u.code, pg_type_is_visible(t.oid), ''
    FROM unsafe u JOIN pg_type t ON t.oid = u.id JOIN pg_namespace n ON n.oid = t.typnamespace
    WHERE u.class = 'pg_type'::regclass
    UNION ALL
    SELECT 'relation', n.nspname::text, c.relname::text, c.oid::bigint, u.code, pg_table_is_visible(c.oid), ''
    FROM unsafe u JOIN pg_class c ON c.oid = u.id JOIN pg_namespace n ON n.oid = c.relnamespace
    WHERE u.class = 'pg_class'::regclass AND c.relkind IN ('r', 'p', 'v', 'm', 'f')
    UNION ALL
    SELECT 'closed', 'pg_catalog', relname::text, oid::bigint, relname::text, true, '' FROM pg_class
    WHERE relnamespace = 'pg_catalog'::regnamespace AND relkind IN ('r', 'v')
        AND relname <> ALL (string_to_array('{open}', ' '))
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

_MARKED = {
    "pg_constraint": "contypid <> 0",
    **dict.fromkeys(("pg_foreign_table", "pg_inherits", "pg_policy"), "true"),
    **dict.fromkeys(
        ("pg_amop", "pg_amproc", "pg_cast", "pg_opclass", "pg_operator", "pg_proc", "pg_rewrite"),
        f"oid >= {FIRST_OWN}",
    ),
}
MARK = " UNION ALL ".join(
    f"SELECT count(*), sum(xmin::text::bigint) FROM {name} WHERE {which}" for name, which in _MARKED.items()
)
"""What it answers changes whenever a function, a view, a policy, ... is made or altered or dropped."""


@dataclass(frozen=True)
class OwnCode:
    """The names that a query may not use, with the function that each would call.

    Attributes:
        unsafe: By kind (function, operator, type, relation; value and row for functions that a field's name
            calls; closed for the server's own tables of accounts, files and sessions), then by name:
            ``name`` where the search path finds it, and ``schema.name``.
        relations: Functions that reading a table or view calls, by its number.
        anywhere: The function that any query might call, by a cast or an order of a built-in type.
        mark: The server's answer to ``MARK`` that this was read at.
    """

    unsafe: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    relations: Mapping[int, list[str]] = field(default_factory=dict)
    anywhere: str = ""
    mark: Rows | None = None

    @classmethod
    def of(cls, rows: Rows, mark: Rows | None = None) -> OwnCode:
        """Build it from the rows of ``UNSAFE``."""
        unsafe: dict[str, dict[str, str]] = defaultdict(dict)
        relations: dict[int, list[str]] = defaultdict(list)
        anywhere = ""
        for kind, home, name, number, code, visible, takes in rows:
            unsafe[kind][f"{home}.{name}"] = code
            if visible == "t":
                unsafe[kind][name] = code
            if takes:
                unsafe[takes][name] = code
            if kind == "relation":
                relations[int(number)].append(code)
            if kind == "any":
                anywhere = code
        return cls(unsafe, relations, anywhere, mark)

    def refusal(self, sql: str) -> QueryError | None:
        """Return why a query may not run; None if it names nothing of the kind."""
        if self.anywhere:
            return _refused("A cast or an order of a built-in type", self.anywhere)
        return next(self._refusals(list(map(_folded, tokens(sql, "postgres")))), None)

    def _refusals(self, found: list[Word]) -> Iterator[QueryError]:
        nothing = ("", "")
        shifted = ([*[nothing] * back, *found] for back in (2, 1, 0))
        for first, before, (kind, name), after in zip(*shifted, [*found[1:], nothing], strict=False):
            if kind == "operator" and (code := self._operator(name)):
                yield _refused(f"The operator {name}", code)
            if kind not in NAMES:
                continue
            if kind == "word" and (code := next(filter(None, map(self._operator, WORDS.get(name, ()))), "")):
                yield _refused(f"{name.upper()}", code)
            dotted = before == ("other", ".")
            key = f"{first[1]}.{name}" if dotted else name
            if after == ("other", "("):
                yield from self._named("function", key)
            elif dotted:
                yield from self._named("row", name)
                if first[0] not in NAMES:  # (1).f
                    yield from self._named("value", name)
            if after != ("other", "."):
                yield from self._named("type", key)
            if dotted or before[1] in BEFORE_TABLES:
                yield from self._named("relation", key)
                if closed := self.unsafe.get("closed", {}).get(key):
                    message = f"{closed} is the engine's own and describes no data."
                    yield QueryError(ErrorKind.PERMISSION, message)

    def _named(self, kind: str, key: str) -> Iterator[QueryError]:
        if code := self.unsafe.get(kind, {}).get(key):
            yield _refused(KINDS[kind].format(key), code)

    def _operator(self, symbols: str) -> str:
        """The function behind a run of operators' symbols, which may be one and a sign."""
        operators = self.unsafe.get("operator", {})
        signed = symbols.rstrip("+-") or symbols[:1]
        return operators.get(symbols) or operators.get(signed, "")


def unsafe_query() -> str:
    """The question whose rows ``OwnCode.of`` reads."""
    harmless = " ".join(sorted(function_names("postgres")))
    edges = _EDGES.format(first=FIRST_OWN)
    opened = " ".join(sorted(words("postgres_catalog")))
    return UNSAFE.format(first=FIRST_OWN, harmless=harmless, edges=edges, open=opened)


def _refused(what: str, code: str) -> QueryError:
    itself = what.rpartition(".")[2] == code
    return QueryError(
        ErrorKind.PERMISSION,
        f"{f'The function {code}' if itself else f'{what} calls {code} here, which'} may do more than read. "
        "If it only reads, it can be declared STABLE or IMMUTABLE.",
    )


def _folded(token: Token) -> Word:
    """Return a token's kind and text; a bare word as the server folds it."""
    if token.kind == "word":
        return "word", token.text.lower()
    if token.kind == "sign":
        return "operator" if token.text[0] in SYMBOLS else "other", token.text
    return token.kind, token.text
