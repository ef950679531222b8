"""Queries that take guard and lint long: nested, of deep types, chains, long lists, odd characters."""

from __future__ import annotations

import random
from collections.abc import Callable

from quorum.tools.sql import sqlglot_dialect

LONGEST = 99_000


def split(text: str) -> list[str]:
    """The items of a list, which stand between ``¦``; ⏎ is a line break."""
    lines = [line.removeprefix("    ") for line in text.strip("\n").split("\n")]
    return [item.replace("⏎", "\n") for line in lines for item in line.split(" ¦ ")]


def forms(text: str) -> list[tuple[str, str]]:
    """The texts before and after ``…`` in each item of a list."""
    return [(before, after) for before, _, after in (item.partition("…") for item in split(text))]


# what can be written inside itself
NESTS = forms("""
    (…) ¦ ARRAY[…] ¦ […] ¦ STRUCT(…) ¦ {'a': …} ¦ MAP {'a': …} ¦ CASE WHEN a THEN … END ¦ CAST(… AS INT)
    f(…) ¦ NOT (…) ¦ - … ¦ NOT … ¦ (SELECT …) ¦ EXISTS (SELECT …) ¦ a IN (…) ¦ a IN (SELECT …) ¦ ROW(…)
    DECIMAL(…) ¦ TIMESTAMP(…) ¦ DATE(…) ¦ OBJECT(…) ¦ ENUM(…) ¦ JSON(…) ¦ STRUCT<a INT64>(…)
    ARRAY<INT64>[…] ¦ a::STRUCT(b …) ¦ TRY_CAST(… AS ARRAY<INT>) ¦ coalesce(a, …) ¦ IF(a, …, b) ¦ x -> …
    (x) -> (…) ¦ a[…] ¦ INTERVAL (…) ¦ EXTRACT(YEAR FROM …) ¦ TRIM(BOTH 'x' FROM …)
    SUBSTRING(… FROM 1) ¦ (a, …) ¦ sum(…) OVER (ORDER BY a) ¦ a BETWEEN 1 AND …
    CASE a WHEN 1 THEN … END ¦ a.f(…) ¦ JSON_OBJECT('a', …) ¦ repeat('x', …) ¦ format('{}', …) ¦ (a).…
    a:b… ¦ (VALUES (…)) ¦ NESTED(…) ¦ VECTOR(…) ¦ VARIANT(…) ¦ OBJECT(a …) ¦ CHAR(…)
""")
SOURCES = forms("""
    (SELECT * FROM …) ¦ (…) ¦ (t JOIN … ON 1) ¦ (WITH c AS (SELECT 1) SELECT * FROM …)
""")
TYPES = forms("""
    STRUCT<a …> ¦ ARRAY<…> ¦ MAP<INT, …> ¦ STRUCT(a …) ¦ LIST(…) ¦ …[]
""")
LITERALS = split(r"""
    '{}' ¦ '%{}d' ¦ '{{{}' ¦ '{{:{}}}' ¦ $${}$$ ¦ E'{}' ¦ x'{}' ¦ "{}" ¦ `{}` ¦ r'{}' ¦ '''{}'''
    {} ¦ /* {} */ 1 ¦ -- {}⏎ 1 ¦ # {}⏎ 1 ¦ N'{}' ¦ U&'{}' ¦ 0x{} ¦ {}e{} ¦ @{} ¦ :{} ¦ ${}
    _utf8'{}'
""")
PIECES = [*"1a{}%'\\é日\U0001f600 0\n;", "''", "/*", "--", "$$"]
OPERATORS = split("""
    + ¦ - ¦ * ¦ / ¦ % ¦ || ¦ AND ¦ OR ¦ = ¦ < ¦ . ¦ ::INT ¦ , ¦   ¦ -> ¦ ->> ¦ IS NOT NULL AND
    LIKE ¦ IN (1) AND ¦ BETWEEN 1 AND ¦ COLLATE x + ¦ AT TIME ZONE ¦ ^ ¦ ~ ¦ <=> ¦ IS ¦ [1] ¦ :
""")
PLACES = ["SELECT {} FROM t", "SELECT 1 FROM t WHERE a IN ({})", "VALUES ({})", "SELECT [{}]", "SELECT f({})"]
PLACES += ["SELECT 1 FROM t GROUP BY {}", "SELECT 1 FROM t ORDER BY {}", "SELECT 1 FROM {}"]
SETS = ["UNION ALL", "UNION", "INTERSECT", "EXCEPT"]


class Fuzz:
    """Queries of one dialect; the same for the same seed."""

    def __init__(self, dialect: str, seed: int) -> None:
        self.dice = random.Random(f"{dialect} {seed}")
        self.functions = sorted(sqlglot_dialect(dialect).parser_class.FUNCTIONS)  # some copy their arguments

    def query(self) -> str:
        """One query, at most ``LONGEST`` characters long."""
        forms: list[Callable[[], str]] = [
            self.nested,
            self.nested,
            self.calls,
            self.types,
            self.literal,
            self.chain,
        ]
        forms += [self.long_list, self.sources, self.ctes, self.sets, self.mixed, self.broken, self.words]
        return self.dice.choice(forms)()[:LONGEST]

    def size(self, most: int) -> int:
        """Small mostly, at times up to ``most``."""
        return max(1, int(most ** (self.dice.random() ** 4)))

    def wrapped(self, pairs: list[tuple[str, str]], core: str, depth: int) -> str:
        chosen = [self.dice.choice(pairs) for _ in range(depth)]
        return "".join(p[0] for p in chosen) + core + "".join(p[1] for p in reversed(chosen))

    def nested(self) -> str:
        kinds = self.dice.sample(NESTS, self.size(4))
        copies = self.size(60)
        items = [self.wrapped(kinds, "1", self.size(110)) for _ in range(copies)]
        return "SELECT " + ", ".join(items) + " FROM t"

    def calls(self) -> str:
        names = self.dice.sample(self.functions, self.size(3))
        more = ", a" * self.dice.randrange(4)
        pairs = [(f"{name}({'a, ' * self.dice.randrange(3)}", f"{more})") for name in names]
        return "SELECT " + ", ".join(self.wrapped(pairs, "1", self.size(90)) for _ in range(self.size(20)))

    def types(self) -> str:
        deep, flat = self.wrapped(TYPES, "INT", self.size(90)), self.wrapped(TYPES, "INT", 5)
        return f"SELECT CAST(a AS {deep}), a::{flat}"

    def literal(self) -> str:
        body = "".join(self.dice.choices(PIECES, k=self.size(6))) * self.size(20_000)
        form = self.dice.choice(LITERALS)
        written = form.replace("{}", body[:90_000])
        return f"SELECT {self.dice.choice(['', 'format(', 'printf(', 'f('])}{written} FROM t"

    def chain(self) -> str:
        signs = self.dice.sample(OPERATORS, self.size(3))
        count = self.size(30_000)
        return "SELECT a " + " ".join(f"{self.dice.choice(signs)} a" for _ in range(count)) + " FROM t"

    def long_list(self) -> str:
        item = self.dice.choice(
            ["1", "'x'", "a", "t.zz", "(1, 2)", "f(a)", "NULL", "CASE WHEN a THEN 1 END", "nope{}"]
        )
        count = self.size(30_000)
        items = ", ".join(item.replace("{}", str(n)) for n in range(count))
        return self.dice.choice(PLACES).replace("{}", items)

    def sources(self) -> str:
        return "SELECT * FROM " + self.wrapped(SOURCES, "t", self.size(110))

    def ctes(self) -> str:
        count, body = self.size(1500), self.dice.choice(["SELECT a, b FROM {}", "SELECT * FROM {} x, {} y",
                                                         "SELECT 1 UNION ALL SELECT a FROM {}"])  # fmt: skip
        steps = [f"c{n} AS ({body.replace('{}', f'c{n - 1}' if n else 't')})" for n in range(count)]
        flat = f"WITH {self.dice.choice(['', 'RECURSIVE '])}{', '.join(steps)} SELECT * FROM c{count - 1}"
        deep = [
            ("WITH c AS (", " UNION ALL SELECT a FROM t) SELECT a FROM c"),
            ("WITH d AS (", ") SELECT * FROM d"),
        ]
        return self.dice.choice([flat, self.wrapped(deep, "SELECT a FROM t", self.size(98))])

    def sets(self) -> str:
        return f" {self.dice.choice(SETS)} ".join(["SELECT a FROM t"] * self.size(5000))

    def mixed(self) -> str:
        inner = self.wrapped(self.dice.sample(NESTS, 6), self.literal()[7:500], self.size(40))
        return (
            f"WITH w AS ({self.sets()[:2000]}) SELECT {inner} FROM {self.wrapped(SOURCES, 'w', self.size(9))}"
        )

    def broken(self) -> str:
        sql = self.dice.choice([self.nested, self.types, self.chain, self.sources])()
        for _ in range(self.size(5)):
            place = self.dice.randrange(len(sql))
            sql = sql[:place] + self.dice.choice(["", *PIECES, "(", ")", "[", ">"]) + sql[place + 1 :]
        return sql

    def words(self) -> str:
        some = "SELECT FROM WHERE a ( ) [ ] , JOIN ON AS 1 STRUCT < > ARRAY CASE WHEN END UNION WITH INTERVAL"
        some += " PIVOT FOR IN VALUES NOT"
        return "SELECT " + " ".join(self.dice.choices(some.split(), k=self.size(3000)))
