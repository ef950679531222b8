"""Queries that take guard and lint long: nested, chains, long lists, odd characters, broken ones."""

from __future__ import annotations

import random

from quorum.tools.sql import sqlglot_dialect

LONGEST = 99_000
NESTS = """
    (…) ¦ ARRAY[…] ¦ STRUCT(…) ¦ {'a': …} ¦ CASE WHEN a THEN … END ¦ CAST(… AS INT) ¦ f(…) ¦ - … ¦ NOT …
    (SELECT …) ¦ EXISTS (SELECT …) ¦ a IN (SELECT …) ¦ DECIMAL(…) ¦ TIMESTAMP(…) ¦ OBJECT(…) ¦ JSON(…)
    STRUCT<a INT64>(…) ¦ TRY_CAST(… AS ARRAY<INT>) ¦ IF(a, …, b) ¦ (x) -> (…) ¦ a[…] ¦ INTERVAL (…)
    TRIM(BOTH 'x' FROM …) ¦ sum(…) OVER (ORDER BY a) ¦ a BETWEEN 1 AND … ¦ repeat('x', …) ¦ format('{}', …)
    (VALUES (…)) ¦ VECTOR(…) ¦ CAST(a AS STRUCT<a …>) ¦ (SELECT * FROM …) ¦ (t JOIN … ON 1)
    (WITH c AS (SELECT 1 UNION ALL SELECT …) SELECT * FROM c)
"""
LITERALS = (
    r"'{}' ¦ '%{}d' ¦ '{{{}' ¦ $${}$$ ¦ E'{}' ¦ x'{}' ¦ `{}` ¦ r'{}' ¦ /* {} */ 1 ¦ N'{}' ¦ 0x{} ¦ @{} ¦ ${}"
)
PIECES = [*"1a{}%'\\é日\U0001f600 0\n;", "''", "/*", "--", "$$"]
JOINS = """
    + ¦ || ¦ AND ¦ OR ¦ = ¦ . ¦ ::INT ¦ , ¦ ->> ¦ LIKE ¦ IN (1) AND ¦ COLLATE x + ¦ AT TIME ZONE ¦ [1] ¦ :
    FROM t UNION ALL SELECT ¦ FROM t EXCEPT SELECT ¦ , 'x', ¦ , (1, 2), ¦ , CASE WHEN a THEN 1 END,
"""


def split(text: str) -> list[str]:
    """The items of a list, which stand between ``¦`` and on lines of their own."""
    return [item.strip() for item in text.replace("\n", "¦").split("¦") if item.strip()]


class Fuzz:
    """Queries of one dialect; the same for the same seed."""

    def __init__(self, dialect: str, seed: int) -> None:
        self.dice = random.Random(f"{dialect} {seed}")
        functions = sorted(sqlglot_dialect(dialect).parser_class.FUNCTIONS)  # some copy their arguments
        self.nests = [*split(NESTS), *(f"{name}(a, …)" for name in functions)]

    def query(self) -> str:
        """One query, at most ``LONGEST`` characters long; a third of them broken."""
        core = self.dice.choice([self.nested, self.nested, self.chain, self.literal])()
        sql = f"SELECT {core} FROM t"[:LONGEST]
        for _ in range(self.size(5) if self.dice.random() < 1 / 3 else 0):
            place = self.dice.randrange(len(sql))
            sql = sql[:place] + self.dice.choice(["", *PIECES, "(", ")", "[", ">"]) + sql[place + 1 :]
        return sql

    def size(self, most: int) -> int:
        """Small mostly, at times up to ``most``."""
        return max(1, int(most ** (self.dice.random() ** 4)))

    def nested(self) -> str:
        kinds = [form.partition("…") for form in self.dice.sample(self.nests, self.size(4))]
        chosen = [self.dice.choice(kinds) for _ in range(self.size(110))]
        item = "".join(form[0] for form in chosen) + "1" + "".join(form[2] for form in reversed(chosen))
        return ", ".join([item] * self.size(60))

    def chain(self) -> str:
        return "a " + f"{self.dice.choice(split(JOINS))} a " * self.size(30_000)

    def literal(self) -> str:
        body = "".join(self.dice.choices(PIECES, k=self.size(6))) * self.size(20_000)
        return self.dice.choice(["", "format(", "f("]) + self.dice.choice(split(LITERALS)).replace("{}", body)
